"""A core that is reloaded, killed or stopped in the middle of each kind of request.

Every answer is right or names the site that has failed. Nothing is lost and nothing is done twice.
"""

import contextlib
import itertools
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from harness.configured import ConfiguredCore
from harness.cores import CORES
from harness.daemon import site
from harness.lying import LyingSite
from harness.waiting import until

OFF = {"logcache": {"enabled": False}, "server": {"workers": 1}}
"""Of one process: what a request meets depends on the connections that were used before."""
READS = {
    "rows": "/services?columns=host_name,description,state&sort=host_name,description",
    "aggregate": "/services?columns=count(*):n,state&sort=state",
    "totals": "/services/totals",
    "sorted and limited": "/hosts?columns=name,state&sort=-state,name&limit=3",
    "logs": "/logs?columns=message&type=SERVICE%20ALERT&host_name=web01",
    "availability": "/hosts/web01/availability?timeperiod=last24hours",
    "outages": "/hosts/web02/outages?timeperiod=last24hours",
    "processinfo": "/processinfo?columns=peer_key,program_version",
}
UNSTABLE = ("logs", "availability", "outages")
"""What goes on while the test runs: it is right when it is there."""


def has_failed(response):
    return response.status != 200 or "x-mon-failed-sites" in response.headers


class Crowd:
    """Threads that go through ``kinds`` again and again, until each has met every disturbance.

    A kind is a function of a client and a number; what it gives is kept in ``seen``. ``met`` are the
    kinds of which some request was under way at one of ``moments``.
    """

    def __init__(self, daemon, kinds, threads=8):
        self.daemon = daemon
        self.kinds = list(kinds.items())
        self.over = threading.Event()
        self.numbers = itertools.count()
        self.under_way = {}
        self.seen = []
        self.moments = []
        self.met = set()
        self.broken = []
        self.threads = [
            threading.Thread(target=self.run, args=(number,), daemon=True)
            for number in range(threads)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, at):
        try:
            with self.daemon.client() as client:
                while not self.over.is_set():
                    name, ask = self.kinds[at % len(self.kinds)]
                    at += 1
                    began = time.monotonic()
                    self.under_way[threading.get_ident()] = name, began
                    self.seen.append((name, ask(client, next(self.numbers))))
                    ended = time.monotonic()
                    if any(began < moment < ended for moment in tuple(self.moments)):
                        self.met.add(name)
                    del self.under_way[threading.get_ident()]
        except Exception as error:
            self.broken.append(error)

    def disturb(self, act, times=40):
        """Do it again and again until each kind was under way once.

        ``act`` gets a function to call at the last moment, which waits for a kind that is missing.
        """
        wanted = {name for name, _ in self.kinds}

        def met():
            missing = wanted - self.met
            # A request that waits since the disturbance before has to end first.
            last = self.moments[-1] if self.moments else 0.0
            asked, now = tuple(self.under_way.values()), time.monotonic()
            under_way = {name for name, began in asked if began > last}
            if self.broken or not missing or missing & under_way:
                # A quick one is over before this thread has its next turn.
                self.moments.append(now)
            return now in self.moments

        def at_last():
            until(met, "one of those that are missing is under way", pause=0.001)

        for _ in range(times):
            act(at_last)
            if self.broken or self.met == wanted:
                break
        assert (self.broken, self.met) == ([], wanted)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.over.set()
        for thread in self.threads:
            thread.join(60)
        assert self.broken == []


def reads(paths=READS):
    return {
        name: lambda client, _number, path=path: client.get(path) for name, path in paths.items()
    }


def comment(client, number, **more):
    text = f"number {number} of {threading.get_ident()}"
    data = {"comment_data": text, "persistent_comment": 1, **more}
    return text, client.post_form("/hosts/db01/cmd/add_host_comment", list(data.items()))


@pytest.fixture
def core(lab):
    return lab.core(ConfiguredCore)


@pytest.fixture
def other(embedded):
    return site("other", embedded)


def test_a_reload_in_the_middle_of_each_kind_of_request(made, core):
    daemon = made([site("s1", core, configtool=core.tool())], sections=OFF)
    daemon.start()
    with daemon.client() as client:
        wanted = {name: client.get(path) for name, path in READS.items()}
        assert not any(map(has_failed, wanted.values()))
        assert wanted["logs"].json

        def started():
            try:
                return core.ask("GET status\nColumns: program_start")[0][0]
            except (OSError, ValueError):
                return None  # in the middle of a reload

        def reload(at_last):
            before = until(started, "the core answers")
            # The core tells its start in whole seconds.
            until(lambda: int(time.time()) > before, "another second begins")
            at_last()
            core.process.send_signal(signal.SIGHUP)
            until(lambda: started() not in (before, None), "the core is reloaded")

        kinds = {**reads(), "command": comment}
        kinds["wait=1"] = lambda client, number: comment(client, number, wait=1)
        with Crowd(daemon, kinds) as crowd:
            crowd.disturb(reload)
            answer = client.request("POST", "/config/reload")
            assert answer.status == 200, answer
            assert (answer.status, answer.json[0]["failed"]) == (200, False), answer
        told = [row["comment"] for row in client.rows("/comments?columns=comment")]
    for name, found in crowd.seen:
        if name in ("command", "wait=1"):
            text, response = found
            # A line that the core may have read is never sent again, and then that is said.
            assert told.count(text) <= 1, text
            if response.status == 200:
                assert told.count(text) == 1, (text, response)
            else:
                assert response.status in (202, 502, 504), response
                assert "s1" in response.text
            continue
        assert not has_failed(found), (name, found)
        if name not in UNSTABLE:
            assert found.json == wanted[name].json, name
        elif name == "logs":
            assert len(found.json) >= len(wanted[name].json)


def test_a_core_that_is_killed_and_started_again(made, other, lab):
    core = lab.core()
    daemon = made([other, site("s1", core)], sections=OFF).start()
    with daemon.client() as client:
        alone = {name: client.get(f"/sites/other{path}") for name, path in READS.items()}

        def failed():
            return any(has_failed(found) for _, found in tuple(crowd.seen))

        def again(at_last):
            at_last()
            core.process.kill()
            core.stop()
            # A core that is back at once may be missed by nobody.
            until(failed, "somebody has missed the core")
            core.start()
            daemon.wait_connected({"s1"})

        with Crowd(daemon, reads()) as crowd:
            crowd.disturb(again)
    for name, found in crowd.seen:
        assert found.status == 200, (name, found)
        if not has_failed(found):
            continue
        assert found.headers["x-mon-failed-sites"] == "s1"
        if name not in UNSTABLE:
            assert found.json == alone[name].json, name


class Mortal(LyingSite):
    """Goes away in the middle of a query that it has read; ``read`` are the queries of a table."""

    def __init__(self, path, target):
        self.read = []
        super().__init__(path, target)

    def answer(self, connection, request):
        self.read.append(request.split("\n")[0].removeprefix("GET "))
        return super().answer(connection, request)


@pytest.fixture(scope="module")
def mortal(embedded, shared):
    return shared.keep(Mortal(shared.folder() / "live", embedded.socket))


@pytest.fixture(scope="module")
def both(embedded, mortal, shared):
    """A daemon in front of a core and of one that goes away."""
    sites = [site("other", embedded), site("s1", mortal)]
    yield shared.daemon(sites, sections=OFF).start()
    mortal.release()


class Held:
    """A request of which the core has read a query and does not answer it."""

    def __init__(self, daemon, mortal, kind):
        self.mortal, self.path = mortal, READS[kind]
        logs = {"logs": "log", "availability": "log", "outages": "log"}
        self.table = logs.get(kind, "hosts" if self.path.startswith("/hosts") else "services")
        mortal.lie(None, self.table)
        mortal.hold()
        self.before = self.count()
        self.found = []
        self.thread = threading.Thread(target=self.run, args=(daemon,), daemon=True)
        self.thread.start()
        assert mortal.waiting.wait(300)
        self.read = self.count()

    def count(self):
        return self.mortal.read.count(self.table)

    def run(self, daemon):
        with daemon.client() as client:
            self.found.append(client.get(self.path))

    def result(self):
        self.mortal.lie(None)
        self.mortal.release()
        self.thread.join(40)
        (response,) = self.found
        return response


# The status is not held back: a probe asks for it too.
HELD = [kind for kind in READS if kind != "processinfo"]


@pytest.mark.parametrize("kind", HELD)
def test_what_a_core_did_not_survive_is_read_once(both, mortal, kind):
    with both.client() as client:
        assert not has_failed(client.get(READS[kind]))
        alone = client.get(f"/sites/other{READS[kind]}")
        held = Held(both, mortal, kind)
        mortal.die()
        response = held.result()
        assert response.status == 200
        assert response.headers["x-mon-failed-sites"] == "s1", response
        if kind not in UNSTABLE:
            assert response.json == alone.json
        mortal.listen()
        both.wait_connected({"s1"})
        assert held.count() == held.read
        assert not has_failed(client.get(READS[kind]))


@pytest.mark.parametrize("kind", HELD)
def test_a_connection_that_a_living_core_drops_costs_nothing(both, mortal, kind):
    with both.client() as client:
        warm = client.get(READS[kind])
        held = Held(both, mortal, kind)
        mortal.cut()
        response = held.result()
        assert not has_failed(response), response
        if kind not in UNSTABLE:
            assert response.json == warm.json


def status_of(process):
    """The state letter and the parent of a process, as /proc/PID/stat has them."""
    text = Path(f"/proc/{process}/stat").read_text()
    letter, parent = text.rpartition(")")[2].split()[:2]
    return letter, int(parent)


def family(process):
    """A process and all that it has started, zombies left out."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            letter, parent = status_of(folder.name)
            if letter != "Z":
                parents.setdefault(parent, []).append(int(folder.name))
    found = [process]
    for one in found:
        found += parents.get(one, [])
    return found


def stand_still(process, stopped):
    """Stop a process and all that it has started; ``stopped`` gains each before it is stopped.

    A process may start another one until it stands, so that the family is looked at again.
    """

    def all_stand():
        for one in family(process):
            with contextlib.suppress(OSError):
                if status_of(one)[0] not in "TZ":
                    stopped.add(one)
                    os.kill(one, signal.SIGSTOP)
                    return False
        return True

    until(all_stand, "the core stands still")


@pytest.mark.parametrize("kind", ["embedded", pytest.param("icinga2", marks=pytest.mark.icinga2)])
def test_a_core_that_stands_still_holds_nobody(lab, other, kind):
    core = lab.core(CORES[kind])
    daemon = lab.daemon([other, site("s1", core, timeout=600.0)], sections=OFF).start()
    stopped = set()
    try:
        with daemon.client() as client:
            path = "/hosts?columns=name,peer_key"
            assert not has_failed(client.get(path))
            stand_still(core.process.pid, stopped)
            for _ in range(3):
                found = client.get(path)
                assert found.status == 200
                assert {row["peer_key"] for row in found.json} == {"other"}
                assert found.headers["x-mon-failed-sites"] == "s1"
            alone = client.get(f"/sites/s1{path}")
            assert alone.status == 504
            assert "hangs" in alone.json["description"]
            for one in stopped:
                os.kill(one, signal.SIGCONT)
            until(lambda: not has_failed(client.get(path)), "the site is back")
    finally:
        for one in stopped:
            if Path(f"/proc/{one}").exists():
                os.kill(one, signal.SIGCONT)
