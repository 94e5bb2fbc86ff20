"""What clients that read slowly can make a daemon hold: answers that are large."""

import contextlib
import socket

import pytest
from harness.daemon import site
from harness.federated import far_site, superuser_key
from harness.waiting import until

from .large import SIZE, LargeSite, given_back

MANY = 8
PATIENT = {"server": {"request_timeout": 600.0}}
"""Large answers are made one after another, however slow the machine is."""


@pytest.fixture(scope="module")
def large(embedded, shared):
    """Two large sites."""
    cores = {
        name: shared.keep(LargeSite(shared.folder() / name, embedded.socket))
        for name in ("one", "two")
    }
    return [site(name, core, timeout=60.0, connections=4) for name, core in cores.items()]


@contextlib.contextmanager
def reading(daemon, path, count=MANY):
    """Clients that read the beginning of their answers; gives the most memory until then."""
    head = (
        f"GET /mon/r{path} HTTP/1.1\r\nHost: x\r\nX-Mon-Auth-Key: {daemon.key}\r\n"
        "X-Mon-Auth-User: admin\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        waiting, most = [], 0
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.connect(("127.0.0.1", daemon.port))
            connection.sendall(head.encode())
            connection.setblocking(False)
            waiting.append(connection)

        def answered():
            nonlocal most
            most = max(most, daemon.memory())
            for connection in tuple(waiting):
                with contextlib.suppress(BlockingIOError):
                    assert connection.recv(1024).startswith(b"HTTP/1.1 200 ")
                    waiting.remove(connection)
            return not waiting

        until(answered, "everybody has the beginning of an answer", seconds=120)
        yield most


def test_rows_of_cores_are_made_while_they_are_read(made, large):
    daemon = made(large, sections=PATIENT).start()
    before = daemon.memory()
    for path in ("/services", "/wrapped_json/services"):
        with reading(daemon, path) as most:
            assert most - before < 64 << 20
        given_back(daemon)


def test_rows_that_are_sorted_here_are_in_memory_for_one_at_a_time(made, large):
    daemon = made(large, sections=PATIENT).start()
    before = daemon.memory()
    with reading(daemon, "/services?sort=-latency", 4) as most:
        assert most - before < 176 << 20
    given_back(daemon)


def test_rows_of_another_instance(made, large):
    far = made(large, sections=PATIENT).start()
    near = made([far_site("far", far, superuser_key(far), timeout=600.0)], sections=PATIENT)
    near.start(connected={"far-one", "far-two"})
    before = near.memory()
    with reading(near, "/services", 4) as most:
        assert most - before < 64 << 20
    given_back(near)


class ManyServices(LargeSite):
    """Has five times as many of them."""

    size = 5 * SIZE


@pytest.fixture
def many(embedded, lab):
    """Two sites with many services."""
    cores = {
        name: lab.keep(ManyServices(lab.folder() / name, embedded.socket))
        for name in ("one", "two")
    }
    return [site(name, core, timeout=120.0) for name, core in cores.items()]


def test_rows_that_are_counted_here_are_not_held(made, many):
    """Of what a core cannot filter all rows come, with the columns that the filter looks at."""
    least = {"server": {**PATIENT["server"], "memory_limit": "128MB"}}
    daemon = made(many, sections=least).start()
    path = "/services/totals?q=rta%20%3E%200%20or%20state%20%3E=%200"
    with daemon.client() as client:
        counted = client.get(path)
        assert counted.json["total"] > 5_000, counted
    idle = daemon.memory()
    with reading(daemon, path, 8) as most:
        assert most - idle < 64 << 20
