"""Events of cores that cannot wait, and that log little or nothing (docs/spec/events.md)."""

import contextlib
import os
import signal
import socket
import threading
import time

import pytest
from harness.configured import ConfiguredCore
from harness.cores import ICINGA2_SITE, EmbeddedCore, Icinga2Core
from harness.daemon import site
from harness.dates import DatedDaemon
from harness.recorder import Recorder, problems
from harness.staging import NEW
from harness.stream import Stream
from harness.waiting import until

TOLD = "state,acknowledgement,comment,downtime,config"


class Plain(Recorder):
    """What stands before an embedded core so that it is one that cannot wait.

    ``hides`` are conditions that no line of its log fulfils for whoever asks.
    """

    hides = ()

    def connect(self):
        return _Bent(super().connect(), self)

    def asked(self, mark, *tables):
        """How many questions about these tables have come since then."""
        firsts = {f"GET {one}\n".encode() for one in tables}
        return len([one for one in self.since(mark) if one[: one.find(b"\n") + 1] in firsts])


class _Bent:
    """A connection to the core that is not told what it is."""

    def __init__(self, core, plain):
        self.core, self.plain = core, plain

    def sendall(self, request):
        if request.startswith(b"GET log\n") and self.plain.hides:
            lines = request.rstrip(b"\n").split(b"\n")
            last = max(
                at for at, one in enumerate(lines) if one.startswith((b"Filter", b"Or", b"And"))
            )
            lines[last + 1 : last + 1] = [b"Filter: %s" % one for one in self.plain.hides]
            request = b"\n".join(lines) + b"\n\n"
        self.core.sendall(request)

    def recv(self, size):
        return self.core.recv(size).replace(b"naemon", b"nagios")

    def __getattr__(self, name):
        return getattr(self.core, name)


@pytest.fixture
def core(lab):
    return lab.core()


@pytest.fixture
def plain(core, lab):
    plain = lab.keep(Plain(lab.folder() / "plain", core.socket))
    yield plain
    assert not [(one, found) for one in plain.requests if (found := problems(one))]


@pytest.fixture
def daemon(plain, made):
    return made([site("s1", plain)]).start()


def told(listening):
    """What was told, without what changes from run to run."""
    return [
        (one["type"], one["data"].get("action", one["data"].get("state")), one["subject"])
        for one in listening.events
    ]


def test_comments_and_acknowledgements_that_no_line_tells_are_told_once(core, plain, daemon):
    plain.hides = [b"class != 5", b"type !~ ACKNOWLEDGE"]
    with Stream(daemon.client(), {"types": TOLD}).begun() as listening:
        core.command("ADD_SVC_COMMENT;web02;ping;1;olga;a comment; with more")
        event = listening.next(type="comment", action="added")
        assert (event["source"], event["subject"]) == ("/sites/s1", "services/web02/ping")
        assert event["data"]["author"] == "olga"
        assert event["data"]["comment"] == "a comment; with more"
        core.command("ACKNOWLEDGE_SVC_PROBLEM;web02;ping;2;0;0;admin;on it")
        event = listening.next(type="acknowledgement", action="added")
        assert (event["data"]["author"], event["data"]["comment"]) == ("admin", "on it")
        core.command("REMOVE_SVC_ACKNOWLEDGEMENT;web02;ping")
        listening.next(type="acknowledgement", action="removed", host_name="web02")
        mark, began = plain.mark(), time.monotonic()
        until(lambda: plain.asked(mark, "log") >= 5, "the log is asked")
        seconds = time.monotonic() - began
        assert plain.asked(mark, "log", "comments") <= 2 * seconds + 2
        assert plain.asked(mark, "hosts", "services") <= 2, "problems are looked at once a minute"
        assert not plain.asked(mark, "downtimes")
        whole, cursor = told(listening), listening.id
        assert len(whole) == len(set(whole)) == 3
        before = listening.events[0]["id"]
        daemon.stop(signal.SIGKILL)
    core.command("ADD_HOST_COMMENT;web01;1;admin;while nobody listened")
    daemon.start()
    with Stream(daemon.client(), {"types": TOLD}, {"Last-Event-ID": cursor}) as after:
        after.next(type="comment", comment="while nobody listened")
        core.command("ADD_HOST_COMMENT;web01;1;admin;the last one")
        after.next(type="comment", comment="the last one")
        assert [one["data"]["comment"] for one in after.events] == [
            "while nobody listened", "the last one",
        ]  # fmt: skip
    with Stream(daemon.client(), {"types": TOLD, "since": before}) as again:
        again.next(type="comment", comment="the last one")
        assert told(again)[:2] == whole[1:]


def test_what_the_log_tells_is_not_told_again_by_objects(core, plain, daemon):
    with Stream(daemon.client(), {"types": TOLD}).begun() as listening:
        core.command("ADD_SVC_COMMENT;web02;ping;1;olga;said by both")
        listening.next(type="comment", comment="said by both")
        core.command("ACKNOWLEDGE_SVC_PROBLEM;web02;ping;2;0;0;admin;by both")
        listening.next(type="acknowledgement", comment="by both")
        core.command("REMOVE_SVC_ACKNOWLEDGEMENT;web02;ping")
        listening.next(type="acknowledgement", action="removed")
        mark = plain.mark()
        until(lambda: plain.asked(mark, "comments") >= 3, "the comments were looked at")
        core.command("ADD_SVC_COMMENT;web02;ping;1;olga;the end")
        listening.next(type="comment", comment="the end")
        assert len(listening.events) == 4
    with Stream(daemon.client(), {"types": TOLD, "since": "-10m"}) as again:
        again.next(type="comment", comment="the end")
        texts = [one["data"].get("comment") for one in again.events]
        assert texts.count("said by both") == texts.count("by both") == 1


def test_a_core_without_a_log_is_told_of_by_its_objects(core, plain, daemon):
    plain.hides = [b"class > 100"]
    now = int(time.time())
    with Stream(daemon.client(), {"types": TOLD}).begun() as listening:
        core.command("PROCESS_SERVICE_CHECK_RESULT;db01;ping;2;slow|rta=900ms;100;500;0;")
        data = listening.next(type="state", state=2)["data"]
        assert (data["host_name"], data["service_description"]) == ("db01", "ping")
        assert (data["old_state"], data["plugin_output"]) == (0, "slow")
        assert data["perf_data"] == "rta=900ms;100;500;0;"
        core.command("PROCESS_HOST_CHECK_RESULT;web01;1;gone")
        assert listening.next(type="state", host_name="web01")["subject"] == "hosts/web01"
        core.command("PROCESS_HOST_CHECK_RESULT;web01;0;there")
        assert listening.next(type="state", host_name="web01")["data"]["old_state"] == 1
        core.command(
            f"SCHEDULE_SVC_DOWNTIME;db01;ping;{now - 5};{now + 600};1;0;605;admin;new cable",
            "ACKNOWLEDGE_SVC_PROBLEM;db01;ping;2;0;0;olga;on it",
            "ADD_HOST_COMMENT;web01;1;admin;a comment",
        )
        listening.at = 0
        event = listening.next(type="downtime", action="started")
        assert (event["data"]["author"], event["data"]["comment"]) == ("admin", "new cable")
        listening.at = 0
        event = listening.next(type="acknowledgement", action="added")
        assert (event["data"]["author"], event["data"]["comment"]) == ("olga", "on it")
        listening.at = 0
        listening.next(type="comment", action="added", comment="a comment")
        ((number,),) = core.ask("GET downtimes\nColumns: id\nFilter: host_name = db01")
        core.command(f"DEL_SVC_DOWNTIME;{number}", "REMOVE_SVC_ACKNOWLEDGEMENT;db01;ping")
        listening.next(type="downtime", action="canceled")
        listening.at = 0
        listening.next(type="acknowledgement", action="removed")
        whole, cursor = told(listening), listening.id
        assert len(whole) == len(set(whole)) == 8
        mark, began = plain.mark(), time.monotonic()
        until(lambda: plain.asked(mark, "services") >= 5, "services are asked")
        seconds = time.monotonic() - began
        everything = ("log", "hosts", "services", "comments", "downtimes")
        assert plain.asked(mark, *everything) <= 2 * seconds + 3
        daemon.stop(signal.SIGKILL)
    core.command("PROCESS_SERVICE_CHECK_RESULT;db01;ping;0;quick")
    daemon.start()
    with Stream(daemon.client(), {"types": "state"}, {"Last-Event-ID": cursor}) as after:
        after.next(plugin_output="quick")
        core.command("PROCESS_SERVICE_CHECK_RESULT;db01;ping;1;medium")
        after.next(plugin_output="medium")
        assert [one["data"]["plugin_output"] for one in after.events] == ["quick", "medium"]
    mark = plain.mark()
    until(lambda: len(plain.since(mark)) >= 2, "the core is probed")
    until(lambda: not plain.asked(plain.mark(), "services"), "nobody asks")


class WithoutLog(Icinga2Core):
    """An Icinga 2 without the object that writes its log."""

    def arguments(self):
        conf = self.folder / "site.conf"
        lines = ICINGA2_SITE.read_text().splitlines()
        conf.write_text("\n".join(one for one in lines if "CompatLogger" not in one))
        return [str(conf) if one == str(ICINGA2_SITE) else one for one in super().arguments()]


@pytest.fixture(params=[Icinga2Core, WithoutLog])
def icinga2(request, lab):
    return lab.core(request.param)


@pytest.mark.icinga2
def test_an_icinga2_tells_the_same_with_and_without_a_log(icinga2, lab):
    tape = lab.keep(Recorder(lab.folder() / "tape", icinga2.socket))
    daemon = lab.daemon([site("s1", tape)]).start()
    now = int(time.time())
    with Stream(daemon.client(), {"types": TOLD}).begun() as listening:
        icinga2.command("PROCESS_SERVICE_CHECK_RESULT;db01;ping;2;slow|rta=9ms;1;5;0;")
        data = listening.next(type="state", state=2)["data"]
        assert (data["host_name"], data["service_description"]) == ("db01", "ping")
        assert (data["old_state"], data["plugin_output"]) == (0, "slow")
        icinga2.command("ADD_SVC_COMMENT;web02;ping;1;olga;a comment")
        listening.next(type="comment", action="added", author="olga")
        icinga2.command("ACKNOWLEDGE_SVC_PROBLEM;db01;ping;2;0;0;admin;on it")
        event = listening.next(type="acknowledgement", action="added")
        assert (event["data"]["author"], event["data"]["comment"]) == ("admin", "on it")
        icinga2.command("REMOVE_SVC_ACKNOWLEDGEMENT;db01;ping")
        listening.next(type="acknowledgement", action="removed")
        icinga2.command(f"SCHEDULE_SVC_DOWNTIME;db01;ping;{now - 5};{now + 600};1;0;605;a;b")
        listening.next(type="downtime", action="started", host_name="db01")
        icinga2.command("DEL_DOWNTIME_BY_HOST_NAME;db01")
        listening.next(type="downtime", action="canceled", host_name="db01")
        os.kill(icinga2.process.pid, signal.SIGHUP)
        listening.next(type="config", action="reloaded")
        icinga2.command("PROCESS_SERVICE_CHECK_RESULT;db01;ping;0;quick")
        listening.next(type="state", state=0)
        found = told(listening)
        assert len(found) == len(set(found)) == 8, found
        assert not [(one, wrong) for one in tape.requests if (wrong := problems(one))]


class Door(Recorder):
    """What stands before a core that may be away."""

    def __init__(self, *args):
        self.ends = []
        super().__init__(*args)

    def connect(self):
        self.ends.append(super().connect())
        return self.ends[-1]

    def shut(self):
        """Let nobody in, and cut those off who are."""
        self.close()
        for one in self.ends:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def unlock(self):
        """Let everybody in again."""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()


def of(listening, key):
    """The ids of what was told of a site."""
    return [one["id"] for one in listening.events if one["source"] == f"/sites/{key}"]


def test_who_resumes_while_a_core_is_down_gets_what_is_cached_and_later_the_rest(lab):
    core = EmbeddedCore(lab.folder(), None)
    core.start()
    lab.ends.callback(core.stop)
    ((host,),) = core.ask("GET hosts\nColumns: name\nLimit: 1")
    door = lab.keep(Door(lab.folder() / "door", core.socket))
    sites = [site("s1", door), site("s2", core)]
    cached = {"logcache": {"update_interval": 1.0, "first_import": 86400}}
    daemon = lab.daemon(sites, sections=cached).start()
    wanted = {"types": "state", "since": int(time.time()) - 40000}
    with Stream(daemon.client(), wanted) as listening:
        core.command(f"PROCESS_HOST_CHECK_RESULT;{host};1;before")
        listening.next(plugin_output="before")
        listening.next(plugin_output="before")
        whole = of(listening, "s1")
        old = [
            one["id"]
            for one in listening.events
            if one["source"] == "/sites/s1" and one["data"]["time"] < time.time() - 400
        ]
    assert len(whole) > len(old) > 20
    with daemon.client() as client:
        until(
            lambda: {one["status"] for one in client.rows("/mon/logcache/stats")} == {"OK"},
            "the cache has the log",
        )
    door.shut()
    with Stream(daemon.client(), wanted) as resumed:
        until(lambda: len(of(resumed, "s1")) >= len(old), "what is cached is told")
        core.command(f"PROCESS_HOST_CHECK_RESULT;{host};0;meanwhile")
        resumed.next(plugin_output="meanwhile")
        first, cursor = of(resumed, "s1"), resumed.id
    assert first == whole[: len(first)]
    with Stream(daemon.client(), {"types": "state"}, {"Last-Event-ID": cursor}) as again:
        core.command(f"PROCESS_HOST_CHECK_RESULT;{host};1;still away")
        again.next(plugin_output="still away")
        assert of(again, "s1") == []
        door.unlock()
        until(lambda: len(first + of(again, "s1")) >= len(whole) + 2, "the rest is told")
        core.command(f"PROCESS_HOST_CHECK_RESULT;{host};0;the end")
        again.next(plugin_output="the end")
        until(lambda: len(first + of(again, "s1")) >= len(whole) + 3, "all is told")
        found = first + of(again, "s1")
        assert found[: len(whole)] == whole
        assert len(found) == len(set(found))
        assert "gap" not in {kind for kind, _, _ in again.blocks}
    # The core makes alerts of its own too: nothing is missing of what it has now.
    with Stream(daemon.client(), wanted) as complete:
        until(lambda: len(of(complete, "s1")) >= len(found), "everything is told again")
        assert of(complete, "s1")[: len(found)] == found


def test_a_core_that_goes_away_in_the_middle_of_a_burst_is_told_whole_and_once(core, lab):
    door = lab.keep(Door(lab.folder() / "door", core.socket))
    daemon = lab.daemon([site("s1", door)]).start()
    chosen = {"types": "state", "service_description": "http"}
    results = [
        f"PROCESS_SERVICE_CHECK_RESULT;web01;http;{number % 2};burst {number}"
        for number in range(1200)
    ]
    with Stream(daemon.client(), chosen).begun() as listening:
        sender = threading.Thread(target=core.command, args=results)
        sender.start()
        listening.next(plugin_output="burst 200")
        door.shut()
        sender.join()
        door.unlock()
        listening.next(plugin_output="burst 1199")
        told = [one["data"]["plugin_output"] for one in listening.events]
        assert told == [f"burst {number}" for number in range(1200)]


def test_a_clock_that_is_set_changes_nothing(core, lab):
    daemon = lab.daemon([site("s1", core)], kind=DatedDaemon).start()
    with Stream(daemon.client(), {"types": "state"}).begun() as listening:
        for number, ahead in enumerate((0, -3600, 0, 3600, 0)):
            daemon.set_clock(ahead)
            core.command(f"PROCESS_HOST_CHECK_RESULT;web01;{1 - number % 2};set {number}")
            listening.next(plugin_output=f"set {number}")
            with Stream(daemon.client(), {"types": "state"}).begun() as other:
                state = 2 - number % 2
                core.command(f"PROCESS_SERVICE_CHECK_RESULT;db01;ping;{state};new {number}")
                assert other.next()["data"]["plugin_output"] == f"new {number}"
            listening.next(plugin_output=f"new {number}")
        told = [one["data"]["plugin_output"] for one in listening.events]
    assert told == [f"{word} {number}" for number in range(5) for word in ("set", "new")]


def test_a_new_log_file_and_a_reload_repeat_nothing(lab):
    core = lab.core(ConfiguredCore)
    entry = site("s1", core, configtool=core.files.tool())
    daemon = lab.daemon([entry]).start()
    with Stream(daemon.client(), {"types": "state,config"}).begun() as listening:
        core.command("PROCESS_HOST_CHECK_RESULT;web01;1;before")
        listening.next(plugin_output="before")
        with daemon.client() as client:
            assert client.post_json("/config/objects", NEW).status == 200
            assert client.request("POST", "/config/save").status == 200
        saved = listening.next(type="config", action="saved")["data"]
        assert (saved["site"], saved["author"]) == ("s1", "admin")
        # A new file begins with the states of all objects, and so does a core that reloads.
        os.kill(core.process.pid, signal.SIGHUP)
        listening.next(type="config", action="reloaded")
        core.command("PROCESS_HOST_CHECK_RESULT;web01;0;after")
        listening.next(plugin_output="after")
        told = [(one["type"], one["data"].get("plugin_output")) for one in listening.events]
        assert told == [
            ("state", "before"), ("config", None), ("config", None), ("state", "after"),
        ]  # fmt: skip


def test_flapping_and_notifications_are_told(core, daemon):
    with Stream(daemon.client(), {"types": "flapping,notification"}).begun() as listening:
        core.command(
            *(
                f"PROCESS_SERVICE_CHECK_RESULT;web01;http;{2 * (number % 2)};flap {number}"
                for number in range(24)
            )
        )
        data = listening.next(type="flapping", action="started")["data"]
        assert (data["host_name"], data["service_description"]) == ("web01", "http")
        core.command("SEND_CUSTOM_HOST_NOTIFICATION;web01;2;admin;come and see")
        event = listening.next(type="notification", host_name="web01")
        assert event["subject"] == "hosts/web01"
        assert event["data"]["contact_name"]
        core.command("DISABLE_SVC_FLAP_DETECTION;web01;http")
        listening.next(type="flapping", action="disabled")


def test_a_core_is_asked_for_nothing_while_nobody_listens(core, plain, lab):
    lab.daemon([site("s1", plain)], sections={"logcache": {"enabled": False}}).start()
    mark = plain.mark()
    until(lambda: plain.asked(mark, "status") >= 2, "the core is probed")
    assert {one.partition(b"\n")[0] for one in plain.since(mark)} == {b"GET status"}
