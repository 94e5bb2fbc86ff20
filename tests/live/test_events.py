"""What happens is told as it happens (docs/spec/events.md)."""

import json
import time
from contextlib import ExitStack

import pytest
from harness.commanding import boss, server, tape, web  # noqa: F401  fixtures
from harness.cores import EmbeddedCore
from harness.daemon import site
from harness.stream import Stream
from harness.waiting import until

from monrest.cli.main import main
from tests.table import each

KINDS = ("HOST", "SVC")


def alert(core, state, output, service="ping", host="db01"):
    core.command(f"PROCESS_SERVICE_CHECK_RESULT;{host};{service};{state};{output}")


@pytest.fixture
def stream(server):  # noqa: F811
    """A function that opens a stream, which is closed at the end."""
    opened = []

    def begin(parameters=(), user="admin", **more):
        opened.append(Stream(server.client(user), parameters, **more))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


def test_a_change_of_state_is_told_with_the_old_state_output_and_figures(own, stream):
    listening = stream().begun()
    alert(own, 2, "CRITICAL - slow|rta=900ms;100;500;0;")
    event = listening.next(type="state", host_name="db01", service_description="ping", state=2)
    data = event["data"]
    assert event["source"] == "/sites/s1"
    assert event["subject"] == "services/db01/ping"
    assert event["specversion"] == "1.0"
    assert data["old_state"] == 0
    assert data["plugin_output"] == "CRITICAL - slow"
    assert data["perf_data"] == "rta=900ms;100;500;0;"
    assert (data["state_type"], data["attempt"]) in {("SOFT", 1), ("HARD", 1)}
    alert(own, 0, "OK - again")
    event = listening.next(type="state", host_name="db01", service_description="ping", state=0)
    assert event["data"]["old_state"] == 2


def test_acknowledgements_downtimes_comments_and_commands_are_told(own, stream):
    listening = stream().begun()
    now = int(time.time())
    own.command(
        "ACKNOWLEDGE_SVC_PROBLEM;web02;ping;2;0;1;admin;on it; soon",
        "ADD_SVC_COMMENT;web02;ping;1;olga;a comment",
        f"SCHEDULE_SVC_DOWNTIME;web02;ping;{now - 5};{now + 600};1;0;605;admin;new cable",
    )
    told = listening.next(type="acknowledgement", action="added")
    assert told["subject"] == "services/web02/ping"
    assert (told["data"]["author"], told["data"]["comment"]) == ("admin", "on it; soon")
    told = listening.next(type="comment", action="added", author="olga")
    assert told["data"]["comment"] == "a comment"
    listening.at = 0
    listening.next(type="downtime", action="started", host_name="web02")
    own.command("REMOVE_SVC_ACKNOWLEDGEMENT;web02;ping")
    listening.next(type="acknowledgement", action="removed", host_name="web02")
    added = [one for one in listening.events if one["type"] == "acknowledgement"]
    assert len(added) == 2, "an acknowledgement is told once, however many lines the core writes"


def test_ends_that_no_line_tells_are_told_of_their_object_to_its_contacts(own, tape, stream):  # noqa: F811
    def looked():
        """The second look begins after the first one has read what is there now."""
        mark = tape.mark()
        until(
            lambda: (
                sum(
                    one.startswith(b"GET comments\n") and b"\nStats: " in one
                    for one in tape.since(mark)
                )
                >= 2
            ),
            "the comments are looked at twice",
            seconds=130.0,
        )

    def looked_twice_since(mark):
        """One look at all problems may have begun before; the other one began after it."""

        def looks():
            begun, whole = False, 0
            for one in tape.since(mark):
                if one.startswith(b"GET services\n") and b"Filter: state != 0" in one:
                    begun = True
                elif begun and one.startswith(b"GET comments\n"):
                    begun, whole = False, whole + 1
            return whole

        until(lambda: looks() >= 2, "the problems are looked at twice", seconds=130.0)

    wanted = {"types": "acknowledgement,comment", "host_name": "web01"}
    olga = stream(wanted, user="olga").begun()
    mark = tape.mark()
    own.command("ADD_SVC_COMMENT;web01;ping;1;admin;soon gone")
    olga.next(type="comment", action="added", comment="soon gone")
    ((number,),) = own.ask("GET comments\nColumns: id\nFilter: comment = soon gone")
    if isinstance(own, EmbeddedCore):
        looked_twice_since(mark)
        until(
            lambda: [
                one
                for one in tape.since(mark)
                if one.startswith(b"GET comments\n") and b"\nColumns: " in one
            ],
            "the comments are read",
        )
    else:
        looked()
    own.command(f"DEL_SVC_COMMENT;{number}")
    event = olga.next(type="comment", action="removed")
    assert (event["source"], event["subject"]) == ("/sites/s1", "services/web01/ping")
    assert (event["data"]["author"], event["data"]["comment"]) == ("admin", "soon gone")

    def has(condition):
        mine = "Filter: host_name = web01\nFilter: description = ping"
        until(
            lambda: own.ask(f"GET services\nColumns: state\n{mine}\nFilter: {condition}"), condition
        )

    alert(own, 2, "a problem to know of", host="web01")
    has("state = 2")
    mark = tape.mark()
    own.command("ACKNOWLEDGE_SVC_PROBLEM;web01;ping;1;0;0;admin;known")
    olga.next(type="acknowledgement", action="added", comment="known")
    has("acknowledged = 1")
    if isinstance(own, EmbeddedCore):
        looked_twice_since(mark)
    else:
        looked()
    cursor = olga.id
    alert(own, 0, "well", host="web01")
    event = olga.next(type="acknowledgement", action="removed", comment="known")
    assert (event["subject"], event["data"]["author"]) == ("services/web01/ping", "admin")
    again = stream(wanted, user="olga", headers={"Last-Event-ID": cursor})
    assert again.next(action="removed", comment="known")["id"] == event["id"]


def test_a_stream_goes_on_behind_any_event_without_loss_or_repetition(own, stream):
    listening = stream({"types": "state"}).begun()
    for number in range(6):
        alert(own, 2 if number % 2 == 0 else 0, f"number {number}")
    listening.next(plugin_output="number 5")
    whole = list(listening.events)
    cursors = [identity for kind, identity, _ in listening.blocks if kind == "state"]
    for at, cursor in enumerate(cursors):
        again = stream({"types": "state"}, headers={"Last-Event-ID": cursor})
        alert(own, 2, f"after {at}", service="http", host="web02")
        again.next(plugin_output=f"after {at}")
        missed = [one["id"] for one in again.events if "db01/ping" in one["subject"]]
        assert missed == [one["id"] for one in whole[at + 1 :]]
        again.close()
        alert(own, 0, f"between {at}", service="http", host="web02")
    by_id = stream({"types": "state", "since": whole[2]["id"], "format": "sse"})
    assert by_id.next()["id"] == whole[3]["id"]


def test_conditions_on_the_event_and_on_its_object_choose(own, stream):
    everything = stream({"types": "state"}).begun()
    some = {
        "state": stream({"types": "state", "state": 2}),
        "group": stream({"types": "state", "host_groups[gte]": "web"}),
        "variable": stream({"types": "state", "q": "_HOSTWORKER = 'local' or state = 1"}),
        "of its host": stream({"types": "state", "_WORKER": "local"}),
        "not of its host": stream({"types": "state", "_WORKER[ne]": "local"}),
        "columns": stream({"types": "state", "columns": "host_name,upper(plugin_output):text"}),
        "names": stream({"types": "state", "state": "critical,down"}),
        "recoveries": stream({"types": "state", "q": "old_state = critical and state = ok"}),
        "commands": stream({"types": "command"}),
    }
    for one in some.values():
        one.begun()
    alert(own, 1, "warned one", host="web02")
    alert(own, 1, "warned two", host="router1")
    alert(own, 2, "broken three", host="web02")
    alert(own, 0, "fine four", host="web02")
    alert(own, 2, "broken five", host="web01")
    expected = {
        "state": ["broken three", "broken five"],
        "names": ["broken three", "broken five"],
        "group": ["warned one", "broken three", "fine four", "broken five"],
        "variable": ["warned one", "warned two", "broken five"],
        "of its host": ["broken five"],
    }
    for name, outputs in expected.items():
        some[name].next(plugin_output="broken five")
        told = [event["data"]["plugin_output"] for event in some[name].events]
        assert told == outputs, name
    some["not of its host"].next(plugin_output="fine four")
    told = [event["data"]["plugin_output"] for event in some["not of its host"].events]
    assert told == ["warned one", "warned two", "broken three", "fine four"]
    assert some["recoveries"].next()["data"]["plugin_output"] == "fine four"
    everything.next(plugin_output="broken five")
    assert some["columns"].next(text="BROKEN FIVE")["data"] == {
        "host_name": "web01", "text": "BROKEN FIVE",
    }  # fmt: skip
    assert {event["type"] for event in some["commands"].events} <= {"command"}
    alert(own, 0, "fine again", host="web01")
    everything.next(plugin_output="fine again")


def test_what_somebody_may_not_see_is_not_sent(own, stream):
    olga, admin = stream(user="olga").begun(), stream().begun()
    alert(own, 3, "not for her", host="router1")
    alert(own, 1, "for her", host="web01")
    own.command("DISABLE_FLAP_DETECTION")
    alert(own, 0, "for her again", host="web01")
    admin.next(plugin_output="for her again")
    olga.next(plugin_output="for her again")
    assert {event["data"].get("host_name") for event in olga.events} == {"web01"}
    assert "router1" in {event["data"].get("host_name") for event in admin.events}


def test_arguments_of_commands_that_configure_are_for_who_sees_the_configuration(own, stream):
    olga, admin = stream(user="olga").begun(), stream().begun()
    guess = stream({"message[regex]": "s3cr3t"}, user="olga").begun()
    own.command("CHANGE_CUSTOM_SVC_VAR;web01;http;PASSWORD;s3cr3t")
    own.command("ADD_SVC_COMMENT;web01;http;1;admin;not s3cr3t at all")
    whole = admin.next(type="command", command_name="CHANGE_CUSTOM_SVC_VAR")["data"]
    assert whole["options"].endswith(";PASSWORD;s3cr3t")
    cut = olga.next(type="command", command_name="CHANGE_CUSTOM_SVC_VAR")["data"]
    assert cut["options"] == "CHANGE_CUSTOM_SVC_VAR;…"
    assert "s3cr3t" not in str(cut)
    assert guess.next(type="command")["data"]["command_name"] == "ADD_SVC_COMMENT"


@each(
    "parameters, expected",
    [
        ({"types": "state,sate"}, "types: no such type of event: sate"),
        ({"since": "yesterdayish"}, "since: expected the id of an event"),
        ({"columns": "nosuch"}, "columns: there is no column nosuch"),
        ({"columns": "count(*)"}, "columns: events have no groups"),
        ({"format": "csv"}, "format: expected one of sse, ndjson"),
        ({"limit": "some"}, "limit must be a non-negative integer"),
        ({"sort": "state"}, "sort: events come as they happen"),
        ({"snapshot": "perhaps"}, "snapshot: expected"),
        ({"state": "x"}, "state: state is a state, expected"),
        ({"nosuch": "1"}, "no data row has attribute(s) named: nosuch"),
        ({"backends": "nosuch"}, "backends: expected ids, names or sections"),
    ],
)
def test_a_wrong_parameter_is_named(boss, parameters, expected):  # noqa: F811
    response = boss.get("/events", parameters)
    assert response.status == 400, response
    assert expected in response.json["description"]


def test_lines_are_the_same_events(own, server):  # noqa: F811
    client = server.client()
    with Stream(client).begun() as listening:
        since = listening.id
        alert(own, 2, "as a line", service="ping", host="web02")
        alert(own, 0, "as a line too", service="ping", host="web02")
        event = listening.next(plugin_output="as a line")
        connection = Lines(client, {"since": since, "types": "state"})
        found = connection.next()
        assert found.pop("cursor")
        found["data"].pop("perf_data", None)
        event["data"].pop("perf_data", None)
        assert found == event
        connection.close()


class Lines(Stream):
    """The same as lines."""

    def __init__(self, client, parameters):
        super().__init__(client, {**parameters, "format": "ndjson"})

    def _read(self):
        while line := self.answer.readline():
            document = json.loads(line)
            self.blocks.append((document["type"], None, document))


def test_a_snapshot_begins_with_the_present_problems(own, stream):
    alert(own, 2, "a problem before", host="web01")
    until(
        lambda: own.ask("GET services\nColumns: state\nFilter: plugin_output = a problem before"),
        "the core has it",
    )
    with_snapshot = stream({"snapshot": 1, "types": "state", "host_name": "web01"})
    event = with_snapshot.next(plugin_output="a problem before")
    assert (event["data"]["state"], event["type"]) == (2, "state")
    until(lambda: with_snapshot.id, "the snapshot ends with a place to go on from")
    told = [(kind, identity) for kind, identity, _ in with_snapshot.blocks]
    assert told[-1] == ("snapshot", with_snapshot.id)
    assert {identity for _, identity in told[:-1]} == {None}
    assert {one["data"]["host_name"] for one in with_snapshot.events} == {"web01"}
    assert 0 not in {one["data"]["state"] for one in with_snapshot.events}
    alert(own, 0, "fine after", host="web01")
    assert with_snapshot.next(plugin_output="fine after")["data"]["state"] == 0
    again = stream({"snapshot": 1, "types": "state"}, headers={"Last-Event-ID": with_snapshot.id})
    alert(own, 2, "a problem after", host="web01")
    again.next(plugin_output="a problem after")
    assert "snapshot" not in {kind for kind, _, _ in again.blocks}


def test_jobs_are_told_to_their_owners(own, stream, boss):  # noqa: F811
    admin, olga = stream({"types": "job"}).begun(), stream({"types": "job"}, user="olga").begun()
    answer = boss.get("/hosts", {"background": "1", "columns": "name"})
    number = answer.json["job_id"]
    event = admin.next(job=str(number), action="ended")
    assert (event["source"], event["subject"]) == ("/mon", f"jobs/{number}")
    assert event["data"]["percent"] == 100
    again = stream({"types": "job"}, headers={"Last-Event-ID": event["id"]})
    answer = boss.get("/hosts", {"background": "1", "columns": "name"})
    other = answer.json["job_id"]
    again.next(job=str(other), action="ended")
    assert {one["data"]["job"] for one in again.events} == {str(other)}
    assert olga.events == []


def test_a_core_is_asked_only_while_somebody_listens_and_once_for_all(own, tape, server):  # noqa: F811
    def asked():
        found = [one for one in tape.since(mark) if one.startswith(b"GET log\n")]
        return len(found)

    streams = [Stream(server.client(), {"types": "state"}).begun() for _ in range(5)]
    mark = tape.mark()
    began = time.monotonic()
    until(lambda: asked() >= 3, "the core is asked")
    assert asked() <= 3 + 2 * (time.monotonic() - began)
    # A core that is asked for its log locks that while it waits.
    waits = [one for one in tape.since(mark) if b"WaitTrigger" in one]
    assert {one.partition(b"\n")[0] for one in waits} <= {b"GET status"}
    for one in streams:
        one.close()
    clients = server.client()
    until(lambda: not streams[0].thread.is_alive(), "the clients have left")
    clients.get("/sites")

    def unasked():
        """The log cache may ask as well, now and then."""
        nonlocal mark
        mark = tape.mark()
        until(lambda: [one for one in tape.since(mark) if b"GET status" in one], "it is probed")
        return asked() == 0

    assert any(unasked() for _ in range(3))


def test_who_loses_his_key_gets_nothing_more(own, server, boss):  # noqa: F811
    key = boss.post_json("/mon/api_keys", {"comment": "stream"}).json
    client = server.client(None)
    client.key = key["private_key"]
    with Stream(client, {"types": "state"}).begun() as listening:
        assert boss.request("DELETE", f"/mon/api_keys/{key['hashed_key']}").status == 200
        until(lambda: listening.ended, "the stream ends", seconds=20)
        kind, _, data = listening.blocks[-1]
        assert (kind, data["code"]) in {("end", 401), ("end", 403)}


def test_the_command_line_follows_and_runs_a_command(own, server, capfdbinary, monkeypatch):  # noqa: F811
    client = server.client()
    with Stream(client, {"types": "state"}).begun() as listening:
        since = listening.id
        alert(own, 3, "for the terminal", host="web02")
        listening.next(plugin_output="for the terminal")
        alert(own, 0, "well again", host="web02")
        listening.next(plugin_output="well again")
    monkeypatch.setenv("MONREST_URL", f"http://127.0.0.1:{client.port}/mon/r")
    monkeypatch.setenv("MONREST_KEY", client.key)
    monkeypatch.setenv("MONREST_USER", "admin")
    words = ["events", "--types", "state", "--since", since, "--limit", "1", "--color", "never"]
    words += ["plugin_output=for the terminal"]
    assert main([*words, "--exec", 'echo "$MONREST_EVENT_HOST is $MONREST_EVENT_STATE"']) == 0
    first, second = capfdbinary.readouterr().out.decode().splitlines()
    assert first.split()[1:] == ["state", "web02/ping", "UNKNOWN", *first.split()[4:]]
    assert first.endswith("for the terminal")
    assert second == "web02 is 3"
    assert main([*words, "--json"]) == 0
    event = json.loads(capfdbinary.readouterr().out)
    assert event["data"]["plugin_output"] == "for the terminal"
    assert main(["events", "--types", "nosuch"]) == 1
    assert b"types: no such type of event" in capfdbinary.readouterr().err


def test_a_daemon_that_stops_ends_its_streams_at_once(alone, lab):
    daemon = lab.daemon([site("s1", alone)]).start()
    with Stream(daemon.client()).begun() as listening:
        began = time.monotonic()
        daemon.stop()
        assert time.monotonic() - began < 20, "a drain waits for 30 seconds"
        until(lambda: listening.ended, "the stream ends")


def test_a_core_that_is_killed_and_started_again_repeats_nothing(alone, lab):
    daemon = lab.daemon([site("s1", alone)]).start()
    with Stream(daemon.client(), {"types": "state,site,config"}).begun() as listening:
        alert(alone, 2, "one")
        listening.next(plugin_output="one")
        alone.stop()
        down = listening.next(type="site", action="down")
        assert (down["data"]["site"], bool(down["data"]["reason"])) == ("s1", True)
        alone.start()
        listening.next(type="site", action="up")
        alert(alone, 1, "two")
        listening.next(plugin_output="two")
        told = [one["data"].get("plugin_output") for one in listening.events]
        assert (told.count("one"), told.count("two")) == (1, 1)


def test_a_burst_of_alerts_is_told_whole_and_once(alone, lab):
    daemon = lab.daemon([site("s1", alone)]).start()
    with Stream(daemon.client(), {"types": "state", "service_description": "http"}) as listening:
        listening.begun()
        lines = [
            f"PROCESS_SERVICE_CHECK_RESULT;web01;http;{number % 2};burst {number}"
            for number in range(1000)
        ]
        alone.command(*lines)
        listening.next(plugin_output="burst 999")
        told = [one["data"]["plugin_output"] for one in listening.events]
        assert told == [f"burst {number}" for number in range(1000)]
        assert len({one["id"] for one in listening.events}) == 1000


def test_who_reads_nothing_gets_a_gap_and_goes_on(alone, lab):
    daemon = lab.daemon([site("s1", alone)]).start()
    # Groups of listeners share the room, so that a small part of it is that of these two.
    others = [Stream(daemon.client(), {"types": "job", "job": number}) for number in range(12)]
    slow = Stream(daemon.client(), {"types": "state,command"}, reads=False)
    with (
        Stream(daemon.client(), {"types": "state,command"}).begun() as quick,
        slow,
        ExitStack() as ends,
    ):
        for one in others:
            ends.enter_context(one)
        before = daemon.memory()
        for part in range(4):
            alone.command(*[f"ADD_HOST_COMMENT;web01;0;admin;{part} {'x' * 7000}"] * 500)
        alert(alone, 2, "the end")
        quick.next(plugin_output="the end")
        grown = daemon.memory() - before
        slow.reads.set()
        until(lambda: [1 for kind, _, _ in slow.blocks if kind == "gap"], "there is a gap")
        gap = next(data for kind, _, data in slow.blocks if kind == "gap")
        assert gap["since"] != gap["until"]
        assert gap["logs"].startswith("/logs?time[gte]=")
        slow.next(plugin_output="the end")
        told = [one["id"] for one in slow.events]
        assert len(told) == len(set(told))
        assert (
            len(told) + sum(data["count"] for kind, _, data in slow.blocks if kind == "gap") == 2001
        )
        # The events of all groups are bounded by 64 MB; an allocator on a busy machine keeps as much again.
        assert grown < 150_000_000
