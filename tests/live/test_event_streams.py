"""Streams that outlive nodes, workers, daemons, rights and clients (docs/spec/events.md)."""

import os
import resource
import select
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest
from harness.cores import OBJECTS, EmbeddedCore
from harness.daemon import site
from harness.federated import far_site, superuser_key
from harness.lmd import FakeLmd
from harness.nodes import Nodes
from harness.stream import Stream
from harness.waiting import until
from harness.workers import kill

STATES = {"types": "state", "service_description": "http"}
CROWD = 1000


@pytest.fixture
def alone(tmp_path, lab):
    """An embedded core of one's own, whose object files a test may change."""
    shutil.copytree(OBJECTS, tmp_path / "objects")
    return lab.core(EmbeddedCore, objects=tmp_path / "objects")


def alert(core, number, service="http", host="web01"):
    core.command(
        f"PROCESS_SERVICE_CHECK_RESULT;{host};{service};{(1, 3)[number % 2]};alert {number}"
    )


def outputs(stream):
    return [event["data"]["plugin_output"] for event in stream.events]


class Reader:
    """Somebody who goes on at another daemon behind what it has got, as clients do."""

    def __init__(self, daemon, parameters=STATES):
        self.parameters, self.told = parameters, []
        self.stream = Stream(daemon.client(), parameters).begun()

    def expect(self, output):
        self.stream.next(plugin_output=output)

    def go_on(self, daemon):
        until(lambda: self.stream.ended, "the stream ends")
        cursor = self.stream.id
        self.close()
        self.stream = Stream(daemon.client(), self.parameters, {"Last-Event-ID": cursor})

    def close(self):
        self.stream.close()
        self.told += outputs(self.stream)
        self.stream.blocks = []


def test_a_stream_goes_on_at_another_node_when_its_own_is_killed(alone, postgres_server, lab):
    nodes = lab.keep(Nodes(lab.folder(), postgres_server, [site("s1", alone)], count=2))
    nodes.start()
    first, second = nodes.nodes
    readers = [Reader(first), Reader(first), Reader(second)]
    for number in range(3):
        alert(alone, number)
    readers[0].expect("alert 2")
    # The second has not seen the last ones when its node is gone.
    readers[1].expect("alert 0")
    first.stop(signal.SIGKILL)
    for number in range(3, 6):
        alert(alone, number)
    readers[0].go_on(second)
    readers[1].go_on(second)
    for number in range(6, 9):
        alert(alone, number)
    for one in readers:
        one.expect("alert 8")
        one.close()
        assert one.told == [f"alert {number}" for number in range(9)]


def holder(pids, port):
    """Which process holds the end of a connection that goes to the local ``port``."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    inodes = {one[9] for one in fields if int(one[2].rpartition(":")[2], 16) == port}
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if any(str(entry.readlink()) == f"socket:[{inode}]" for inode in inodes):
                return pid
    return None


def test_clients_of_both_workers_get_all_and_go_on_when_one_is_killed(alone, made):
    daemon = made([site("s1", alone)], sections={"server": {"workers": 2}}).start()
    readers = {}
    while len(readers) < 2:
        reader = Reader(daemon)
        port = reader.stream.socket.getsockname()[1]
        pid = until(lambda port=port: holder(daemon.workers(), port), "a worker has it")
        if pid in readers:
            reader.close()
        else:
            readers[pid] = reader
    alert(alone, 0)
    for one in readers.values():
        one.expect("alert 0")
    (killed, lost), (_, kept) = readers.items()
    kill(killed)
    alert(alone, 1)
    kept.expect("alert 1")
    lost.go_on(daemon)
    alert(alone, 2)
    for one in readers.values():
        one.expect("alert 2")
        one.close()
        assert one.told == ["alert 0", "alert 1", "alert 2"]


def test_a_daemon_is_restarted_in_the_middle_of_a_stream_again_and_again(alone, made):
    daemon = made([site("s1", alone)]).start()
    reader = Reader(daemon)
    for number in range(0, 12, 4):
        alert(alone, number)
        reader.expect(f"alert {number}")
        alert(alone, number + 1)
        daemon.stop(signal.SIGKILL if number else signal.SIGTERM)
        alert(alone, number + 2)
        daemon.start()
        reader.go_on(daemon)
        alert(alone, number + 3)
        reader.expect(f"alert {number + 3}")
    reader.close()
    assert reader.told == [f"alert {number}" for number in range(12)]


def test_a_site_of_another_instance_is_told_of_and_loses_nothing_while_that_is_away(alone, made):
    far = made([site("core", alone)]).start()
    near = made([far_site("f", far, superuser_key(far))]).start()
    reader = Reader(near)
    alert(alone, 0)
    reader.expect("alert 0")
    far.stop(signal.SIGKILL)
    alert(alone, 1)
    far.start()
    alert(alone, 2)
    reader.expect("alert 2")
    reader.close()
    assert reader.told == ["alert 0", "alert 1", "alert 2"]


@pytest.mark.parametrize("workers", [1, 2])
def test_sites_behind_an_lmd_are_told_of(alone, made, tmp_path, workers, lab):
    """Each worker watches both, and looks at once whether their logs have lines."""
    lmd = lab.keep(FakeLmd(tmp_path / "lmd", dict.fromkeys("ab", alone.socket)))
    sections = {"lmd": {"address": lmd.address}, "server": {"workers": workers}}
    daemon = made([], sections=sections).start()
    daemon.wait_connected({"a", "b"})
    with Stream(daemon.client(), STATES).begun() as everything:
        one = Reader(daemon, {**STATES, "backends": "b"})
        for number in range(3):
            alert(alone, number)
            one.expect(f"alert {number}")
        until(lambda: len(everything.events) == 6, "both sites are told of")
        sources = {event["source"] for event in everything.events}
        one.close()
    assert one.told == ["alert 0", "alert 1", "alert 2"]
    assert sources == {"/sites/a", "/sites/b"}


def told_of_no_more(core, stream, unseen, seen):
    """Whether an alert for ``unseen`` is left out, when the one behind it for ``seen`` came."""
    told_of_no_more.number += 1
    number = told_of_no_more.number
    alert(core, number, *unseen)
    alert(core, number, *seen)
    event = stream.next(plugin_output=f"alert {number}")
    return event["data"]["host_name"] == seen[1]


told_of_no_more.number = 0


def test_a_role_that_is_taken_away_ends_what_it_showed(alone, made):
    roles = {"auth.roles": {"admin": ["admin", "olga"]}}
    daemon = made([site("s1", alone)], sections=roles).start()
    pair = ("ping", "router1"), ("http", "web01")
    with Stream(daemon.client("olga"), {"types": "state"}).begun() as olga:
        assert not told_of_no_more(alone, olga, *pair)
        olga.next(host_name="web01")
        daemon.sections["auth.roles"] = {"admin": ["admin"]}
        daemon.reload()
        until(lambda: told_of_no_more(alone, olga, *pair), "she sees less", seconds=30)
        for _ in range(3):
            assert told_of_no_more(alone, olga, *pair)


def test_a_contact_that_is_taken_from_a_host_is_told_of_it_no_more(alone, made, tmp_path):
    daemon = made([site("s1", alone)]).start()
    pair = ("http", "web01"), ("ping", "db01")
    with Stream(daemon.client("olga"), {"types": "state"}).begun() as olga:
        assert not told_of_no_more(alone, olga, *pair)
        olga.next(host_name="db01")
        alone.stop()
        # This core has its log in memory: it begins again with another second.
        stopped = int(time.time())
        until(lambda: time.time() >= stopped + 1, "the next second")
        file = tmp_path / "objects" / "site.cfg"
        text = file.read_text()
        assert "contact_groups  webteam" in text
        file.write_text(text.replace("contact_groups  webteam", "contact_groups  admins"))
        alone.start()
        daemon.wait_connected({"s1"})
        until(lambda: told_of_no_more(alone, olga, *pair), "she sees less", seconds=30)
        for _ in range(3):
            assert told_of_no_more(alone, olga, *pair)


@pytest.fixture
def many_descriptors():
    """Room for the connections of a crowd, here and in what is started here."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * CROWD + 1000
    if before[1] < needed:
        pytest.fail(f"the limit of open files is {before[1]}, expected {needed}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], needed), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Crowd:
    """Many raw connections on one stream; ``texts`` are the ends of what they got."""

    def __init__(self, daemon, count):
        with daemon.client() as client:
            head = "".join(f"{name}: {value}\r\n" for name, value in client.credentials().items())
            path = f"{client.root}/events?types=state&columns=plugin_output&format=ndjson"
        asked = f"GET {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode()
        self.poll, self.connections, self.texts = select.epoll(), {}, {}
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", daemon.port), timeout=60)
            one.sendall(asked)
            one.setblocking(False)
            self.connections[one.fileno()], self.texts[one.fileno()] = one, b""
            self.poll.register(one.fileno(), select.EPOLLIN)
        self.all_have(b"heartbeat")

    def all_have(self, text, times=1):
        """Wait until each has got ``text`` so often."""

        def read():
            for number, _ in self.poll.poll(0.5, 1000):
                data = self.connections[number].recv(1 << 18)
                assert data, "a stream has ended"
                self.texts[number] += data
                if self.texts[number].count(text) >= times:
                    left.discard(number)
            return not left

        left = {number for number, got in self.texts.items() if got.count(text) < times}
        until(lambda: not left or read(), f"all have {text} {times} times", seconds=120, pause=0)

    def close(self):
        for one in self.connections.values():
            one.close()
        self.poll.close()


def test_very_many_clients_get_all_in_bounded_memory_and_leave_nothing(
    alone, made, many_descriptors
):
    daemon = made([site("s1", alone)]).start()
    with Stream(daemon.client(), STATES).begun():
        before, held = daemon.descriptors(), daemon.memory()
        crowd = Crowd(daemon, CROWD)
        try:
            assert daemon.memory() - held < CROWD * 32 * 1024
            alone.command(
                *[
                    f"PROCESS_SERVICE_CHECK_RESULT;web01;http;{number % 2 + 1};alert {number}."
                    for number in range(100)
                ]
            )
            crowd.all_have(b"alert ", 100)
            told = {got[got.index(b'"alert 0.') :].count(b"alert ") for got in crowd.texts.values()}
            assert told == {100}, "nothing comes twice"
            assert daemon.memory() - held < CROWD * 32 * 1024 + 24_000_000
        finally:
            crowd.close()
        # The connection of the client who asked is there, or not yet gone.
        until(lambda: daemon.descriptors() <= before + 2, "nothing is left of them")
    os.kill(daemon.process.pid, 0)
