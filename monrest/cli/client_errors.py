"""Everything that ends a run of the command with a message instead of a result."""

from __future__ import annotations

USAGE = 3
"""Exit status of a wrong command line, of help, and of everything that is not known."""


class ClientError(Exception):
    """Ends the command with ``str(self)`` and exit status 3."""


class UsageError(ClientError):
    """The command line is wrong; the text says what was expected."""


class OutputClosedError(Exception):
    """Whoever read our standard output has stopped reading."""


def plain(text: str) -> str:
    """``text`` without what could steer a terminal: other control characters become ``?``."""
    return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)
