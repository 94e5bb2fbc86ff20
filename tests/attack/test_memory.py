"""What many clients together can make a daemon hold: bodies that never end."""

import contextlib
import json
import select
import socket

from harness.daemon import site
from harness.waiting import until

PIECE = b"a" * 65536
MANY = 80


def unfinished(daemon, head, size):
    """Connections with ``head`` that each send up to ``size`` bytes of a body and wait."""
    with contextlib.ExitStack() as stack:
        connections = []
        for _ in range(MANY):
            connection = socket.create_connection(("127.0.0.1", daemon.port), timeout=1)
            connections.append(stack.enter_context(connection))
            with contextlib.suppress(OSError):
                connection.sendall(head)
                for _ in range(size // len(PIECE)):
                    connection.sendall(PIECE)
        stack.pop_all()
    return connections


def answered(connections):
    """The status and document of each connection that was answered."""
    found = []
    for connection in select.select(connections, [], [], 1)[0]:
        with contextlib.suppress(OSError):
            head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            found.append((int(head.split()[1]), json.loads(body)))
    return found


def posting(*more):
    lines = ["POST /mon/r/hosts HTTP/1.1", "Host: x", *more, "", ""]
    return "\r\n".join(lines).encode()


def test_bodies_of_nobody_take_no_room(made, embedded):
    daemon = made([site("s1", embedded)]).start()
    before = daemon.memory()
    declared = unfinished(daemon, posting("Content-Length: 33000000"), 8 << 20)
    assert daemon.memory() - before < 48 << 20
    assert {(status, told["message"]) for status, told in answered(declared)} <= {
        (401, "login required")
    }
    chunked = posting("Transfer-Encoding: chunked") + b"1f78a40\r\n"
    unfinished(daemon, chunked, 8 << 20)
    assert daemon.memory() - before < 48 << 20
    with daemon.client() as client:
        assert client.get("/hosts?columns=name&limit=1").status == 200


def test_bodies_of_somebody_share_the_room(made, embedded):
    daemon = made([site("s1", embedded)]).start()
    before = daemon.memory()
    known = (f"X-Mon-Auth-Key: {daemon.key}", "X-Mon-Auth-User: admin")
    head = posting(*known, "Content-Length: 2000000")
    connections = unfinished(daemon, head, 1 << 20)
    # 67 of these fit into 128 MiB.
    until(lambda: len(select.select(connections, [], [], 0)[0]) >= MANY - 67, "13 are answered")
    refused = answered(connections)
    assert len(refused) >= MANY - 69
    assert {status for status, _ in refused} == {503}
    assert daemon.memory() - before < 160 << 20
    for connection in connections:
        connection.close()
    with daemon.client() as client:
        until(
            lambda: client.post_form("/hosts", {"name": "x" * 1_900_000}).status != 503,
            "there is room again",
        )
