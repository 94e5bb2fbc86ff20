"""Large answers: clients that leave in the middle, a full disk, very many at once."""

import os
import socket
import threading
from contextlib import ExitStack
from itertools import product, repeat
from pathlib import Path

import pytest
from harness.daemon import site
from harness.waiting import until

from .large import LargeSite, given_back, stored
from .test_full_disk import small_disk

__all__ = ["small_disk"]

TICK = os.sysconf("SC_CLK_TCK")
PART = 3 << 20
KINDS = {
    "rows": "/services",
    "columns": "/services?columns=host_name,description,plugin_output",
    "sorted": "/services?sort=-latency",
    "computed": "/services?columns=upper(plugin_output):o,state&sort=o",
    "filtered": "/services?rta[gt]=-1",
    "elements": "/services?columns=to_rows(contacts),description",
    "grouped": "/services?columns=count(*),upper(plugin_output)",
    "counted": "/services/totals?q=rta%20%3E%200%20or%20state%20%3E=%200",
    "wrapped": "/wrapped_json/services",
    "lines": "/ndjson/services",
    "csv": "/csv/services",
    "text": "/text/services",
    "excel": "/xls/services",
}
MANY = 80
"""Large answers at once: more than there are threads and connections."""
PACKED = "Accept-Encoding: gzip\r\n"
ONE_ROW = "X-Mon-Output-Metadata-Only: true\r\n"


class Sizeable(LargeSite):
    """Has fewer services: those of two sites take a file."""

    size = PART


@pytest.fixture(scope="module")
def sizeable(embedded, shared):
    """Two sites whose services take a file."""
    cores = {
        name: shared.keep(Sizeable(shared.folder() / name, embedded.socket))
        for name in ("one", "two")
    }
    return [site(name, core, timeout=60.0, connections=4) for name, core in cores.items()]


def asking(daemon, path, *headers):
    """A connection on which an answer is wanted."""
    connection = socket.create_connection(("127.0.0.1", daemon.port))
    head = f"GET /mon/r{path} HTTP/1.1\r\nHost: x\r\nX-Mon-Auth-Key: {daemon.key}\r\n"
    head += "X-Mon-Auth-User: admin\r\n" + "".join(headers) + "\r\n"
    connection.sendall(head.encode())
    return connection


def worked(daemon):
    """Seconds of processor time that a daemon has used."""
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


@pytest.fixture(scope="module")
def served(sizeable, shared):
    """One daemon for all clients that leave."""
    return shared.daemon(sizeable).start()


@pytest.mark.parametrize(
    ("kind", "headers"),
    [*((kind, ()) for kind in KINDS), ("rows", (PACKED,)), ("rows", (ONE_ROW,))],
)
def test_who_leaves_in_the_middle_leaves_nothing(served, kind, headers):
    """Its thread ends, its file is closed and its room is free within a second of work."""
    path = KINDS[kind]
    began = worked(served)
    connection = asking(served, path, *headers)
    until(lambda: stored(served) or worked(served) - began > 0.05, "it works", pause=0.002)
    left = worked(served)
    connection.close()
    until(lambda: not stored(served), "the files are gone", pause=0.002)
    assert worked(served) - left < 1.0
    with served.client() as client:
        assert client.get("/services?limit=1").status == 200


def test_a_disk_that_fills_is_a_refusal_and_then_it_works(small_disk, made, sizeable):
    daemon = made(sizeable, sections={"server": {"var_dir": str(small_disk / "var")}}).start()
    filler, statuses = small_disk / "filler", []
    paths = ("/services", "/services?sort=-latency")
    with daemon.client() as client:
        # Neither the answers of the cores have room, nor ours beside those.
        for path, free in product(paths, (PART, 3 * PART)):
            with filler.open("wb", buffering=0) as filling, pytest.raises(OSError, match="space"):
                filling.writelines(repeat(bytes(65536), 10_000))
            with filler.open("ab") as filling:
                filling.truncate(filler.stat().st_size - free)
            answer = client.get(path)
            told = answer.json["message"], answer.headers["retry-after"]
            statuses.append((answer.status, *told))
            filler.unlink()
        assert statuses == [(503, "no room for large answers", "10")] * 4
        assert [client.get(path).status for path in paths] == [200, 200]
    given_back(daemon)


class Broken(Sizeable):
    """Its answer is none, which shows in the last row."""

    def body(self, rows):
        return super().body([*rows[:-1], rows[-1][:-9]])


@pytest.fixture(scope="module")
def half_broken(embedded, shared):
    """A daemon with a site whose answers are whole and one whose answers are not."""
    sites = []
    for kind in (Sizeable, Broken):
        core = shared.keep(kind(shared.folder() / kind.__name__, embedded.socket))
        sites.append(site(kind.__name__, core, timeout=60.0))
    return shared.daemon(sites).start()


@pytest.mark.parametrize("path", ["", "?sort=-latency", "?columns=count(*),upper(host_name)"])
@pytest.mark.parametrize("form", ["", "/csv"])
def test_a_large_answer_that_is_broken_is_that_of_its_site_alone(half_broken, form, path):
    with half_broken.client() as client:
        both = client.get(f"{form}/services{path}")
        assert both.status == 200
        assert both.headers["x-mon-failed-sites"] == "Broken"
        if form:
            *lines, last = both.body.splitlines()
            assert last.startswith(b"# failed sites: Broken (protocol error: not valid JSON")
            assert len(lines) > 4
            assert b"Broken" not in b"".join(lines)
        else:
            assert len(both.json) > 4
            assert {row.get("peer_key", "Sizeable") for row in both.json} == {"Sizeable"}
        assert client.get(f"/sites/Broken{form}/services{path}").status == 502
    given_back(half_broken)


class Many(LargeSite):
    """Has just enough for a file."""

    size = 5 << 18


def test_many_at_once(made, embedded, tmp_path):
    """They neither wait for each other for ever nor keep small requests waiting."""
    core = Many(tmp_path / "many", embedded.socket)
    sections = {"server": {"request_timeout": 600.0}}
    sites = [site("many", core, timeout=300.0)]
    sites.append(site("small", embedded))
    daemon = made(sites, sections=sections).start()
    ended, between = [], []

    def read(connection):
        data = connection.recv(65536)
        ended.append(data[:15])
        while connection.recv(1 << 20):
            pass

    paths = (
        "/sites/many/services",
        "/sites/many/services?sort=-latency",
        "/sites/many/csv/services",
        "/sites/many/services?columns=count(*),state",
    )
    with ExitStack() as stack, daemon.client() as client:
        readers = []
        for number in range(MANY):
            connection = asking(daemon, paths[number % len(paths)], "Connection: close\r\n")
            stack.enter_context(connection)
            readers.append(threading.Thread(target=read, args=(connection,)))
            readers[-1].start()
        while len(ended) < MANY:
            before = len(ended)
            assert client.get("/sites/small/services?limit=1").status == 200
            between.append(len(ended) - before)
        for reader in readers:
            reader.join(60)
    core.close()
    assert set(ended) == {b"HTTP/1.1 200 OK"}
    # Of many large answers only some are made while a small one waits.
    assert max(between) < MANY / 2
    given_back(daemon)
