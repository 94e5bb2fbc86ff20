"""The ``monrest`` command, which never imports Twisted."""
