"""HTTP on one side, ``RestRequest`` and ``Answer`` on the other; nothing else crosses."""
