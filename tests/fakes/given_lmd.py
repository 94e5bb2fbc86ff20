"""Whether what ``make test-core`` was given is an LMD, and which sites it has."""

import json
import socket
from functools import lru_cache


@lru_cache
def lmd_sites(address):
    """The ids of an LMD's sites at ``unix:PATH`` or ``tcp:HOST:PORT``; a core has no such table."""
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
            return tuple(sorted(str(key) for (key,) in json.loads(said)))
        except (OSError, ValueError, TypeError):
            return ()
