"""Whether the core that ``make test-core`` was given is an LMD with its sites."""

from __future__ import annotations

import json
import socket
from functools import lru_cache


@lru_cache
def is_lmd(address):
    """Whether an LMD listens at ``unix:PATH`` or ``tcp:HOST:PORT``: no core has a table of sites."""
    kind, _, rest = address.partition(":")
    if kind == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(rest)
    else:
        host, _, port = rest.rpartition(":")
        connection = socket.create_connection((host.strip("[]"), int(port)), 10)
    with connection:
        connection.settimeout(10)
        connection.sendall(b"GET sites\nColumns: peer_key\nOutputFormat: json\n\n")
        said = b""
        try:
            while chunk := connection.recv(65536):
                said += chunk
            return bool(json.loads(said)[0][0])
        except (OSError, ValueError, LookupError, TypeError):
            return False
