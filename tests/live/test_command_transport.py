"""Commands on their way: sites that lie, hang or die in the middle, and a daemon that stops.

Whatever a site does, every line is sent once at most, and what is not known is not called done.
"""

import http.client
import json
import socket
import threading

import pytest
from harness.client import InFlight
from harness.daemon import site
from harness.lying import DEEDS, FAST, LyingSite
from harness.recorder import problems
from harness.waiting import until

TIMEOUT = 2.0
IN_TIME = 12.0
COMMENT = "/hosts/web01/cmd/add_host_comment"
OPEN = [name for name in DEEDS if name not in FAST]


@pytest.fixture(scope="module")
def own(shared):
    return shared.core()


@pytest.fixture(scope="module")
def liar(own, shared):
    return shared.keep(LyingSite(shared.folder() / "live", own.socket))


@pytest.fixture(scope="module")
def slow(own, shared):
    return shared.keep(LyingSite(shared.folder() / "slow", own.socket))


@pytest.fixture(scope="module")
def daemon(tape, liar, slow, shared):
    """In front of a good site, a liar, and a hidden one that may be slow."""
    sites = [
        site("good", tape, timeout=20.0),
        site("liar", liar, timeout=TIMEOUT),
        site("slow", slow, timeout=60.0, hidden=True),
    ]
    yield shared.daemon(sites).start()
    liar.lie(None)


def up(client):
    return lambda: {row["connected"] for row in client.rows("/sites")} == {1}


@pytest.fixture
def client(daemon, liar):
    """A client of a daemon whose sites are both up."""
    liar.lie(None)
    liar.patience = 0
    with daemon.client() as client:
        until(up(client), "both sites are up")
        liar.commands.clear()
        yield client
        liar.release()
        liar.lie(None)
        until(up(client), "both sites are up again")


@pytest.fixture
def told(tape):
    """The command lines that have reached the honest core during the test, checked strictly."""
    mark = tape.mark()

    def lines():
        requests = tape.since(mark)
        assert not [found for request in requests for found in problems(request)]
        return [one.decode() for one in requests if one.startswith(b"COMMAND")]

    return lines


def entries(count, word):
    return [
        {"cmd": "add_host_comment", "host": "web01", "comment_data": f"{word} {number}"}
        for number in range(count)
    ]


def refused(port):
    """Whether nobody listens any more."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return True
    return False


def texts(lines):
    """The comments in command lines."""
    return [line.rpartition(";")[2] for line in lines]


@pytest.mark.parametrize("deed", sorted(DEEDS))
def test_a_liar_is_not_believed(client, liar, told, deed):
    """It took nothing, and nothing says that it did; the other site did its work."""
    liar.lie(deed, "COMMAND")
    response = client.post_form(COMMENT, {"comment_data": deed}, timeout=IN_TIME)
    assert response.status in (502, 504), response
    assert response.headers["x-mon-failed-sites"] == "liar"
    assert response.json["message"] == "not all sites took the command"
    assert response.json["accepted_sites"] == ["good"]
    (failed,) = response.json["failed_sites"]
    assert failed["site"] == "liar"
    assert failed["uncertain"] is True
    assert str(liar.path) not in response.text
    assert texts(told()) == [deed]
    assert liar.commands == []


@pytest.mark.parametrize("deed", ["closed at once", "no header", "silent"])
def test_a_liar_alone_is_a_failure_that_says_what_is_not_known(client, liar, deed):
    liar.lie(deed, "COMMAND")
    response = client.post_form("/sites/liar" + COMMENT, {"comment_data": "x"}, timeout=IN_TIME)
    assert response.status == (504 if deed == "silent" else 502), response
    assert response.json["message"] == "it is not known whether the command was executed"
    assert response.json["commands"].startswith("COMMAND [")
    assert "liar" in response.json["description"]


def test_half_of_a_hundred(client, liar, told):
    """Of those that were answered it is known, of the others it is not, and none comes twice."""
    liar.lie("closed at once", "COMMAND")
    liar.patience = 50
    body = entries(150, "half")
    response = client.post_json("/cmd", body, timeout=IN_TIME)
    results = response.json
    states = [
        [one.get("uncertain", False) for one in result.get("failed_sites", ())]
        for result in results
    ]
    assert states == [[]] * 50 + [[True]] * 50 + [[False]] * 50
    assert [result["code"] for result in results] == [200] * 50 + [502] * 100
    assert texts(liar.commands) == [f"half {number}" for number in range(50)]
    assert texts(told()) == [f"half {number}" for number in range(150)]


def test_a_dead_site_beside_a_living_one(client, liar, told):
    """It is named in the header and the body; alone it is a failure, and never a success."""
    liar.die()
    path = "/hosts/db01/cmd/add_host_comment"
    try:
        response = client.post_form(path, {"comment_data": "half", "wait": 10})
        assert response.status == 200, response
        assert response.headers["x-mon-failed-sites"] == "liar"
        (failed,) = response.json["failed_sites"]
        assert (failed["site"], failed.get("uncertain", False)) == ("liar", False)
        assert response.json["effects"] == {"good": "seen"}
        assert response.json["commands"].count("COMMAND") == 1
        assert texts(told()) == ["half"]
        response = client.post_form("/hosts/none/cmd/add_host_comment", {"comment_data": "x"})
        assert response.status == 400, response
        assert response.json["message"].endswith("unreachable sites: LIAR")
        assert response.headers["x-mon-failed-sites"] == "liar"
        for alone, given in (path, {"comment_data": "x"}), ("/system/cmd/enable_notifications", {}):
            response = client.post_form(f"/sites/liar{alone}", given)
            assert response.status == 502, response
            assert response.json["message"] == "no backend available"
        named = client.post_form(f"/sites/good,liar{path}", {"comment_data": "named"})
        for response in (client.post_form("/system/cmd/enable_notifications", {}), named):
            assert response.status == 502, response
            assert response.json["message"] == "not all sites took the command"
            assert response.headers["x-mon-failed-sites"] == "liar"
            assert [one["site"] for one in response.json["failed_sites"]] == ["liar"]
            assert response.json["accepted_sites"] == ["good"]
            assert response.json["commands"].count("COMMAND") == 1
    finally:
        liar.listen()


def test_refusals_of_one_site_belong_to_their_command(client, liar):
    liar.claims = {"hostgroups": ["no such group"]}
    body = [
        {"cmd": "add_host_comment", "host": "web01", "comment_data": "first"},
        {"cmd": "del_downtime_by_hostgroup_name", "hostgroup_name": "no such group"},
        {"cmd": "add_host_comment", "host": "web01", "comment_data": "last"},
    ]
    response = client.post_json("/cmd?backends=liar", body, timeout=IN_TIME)
    liar.claims = {}
    results = response.json
    assert [result["code"] for result in results] == [200, 400, 200]
    assert results[1]["error"].startswith("LIAR: 400: ")
    assert len(liar.commands) == 3


def test_requests_wait_for_each_other_and_arrive_whole(daemon, client, told):
    words = [f"w{number}" for number in range(6)]
    answers = {}

    def send(word):
        with daemon.client() as other:
            answers[word] = other.post_json("/cmd?backends=good", entries(150, word))

    threads = [threading.Thread(target=send, args=(word,)) for word in words]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [answers[word].status for word in words] == [200] * 6
    arrived = texts(told())
    assert len(arrived) == 900
    for word in words:
        mine = [text for text in arrived if text.startswith(word + " ")]
        assert mine == [f"{word} {number}" for number in range(150)]


def test_a_client_that_leaves_does_not_cut_its_commands(daemon, client, slow):
    """They go their way and into the audit log."""
    slow.lie(None, "COMMAND")
    slow.hold()
    leaving = http.client.HTTPConnection("127.0.0.1", daemon.port)
    headers = {**client.credentials(), "Content-Type": "application/json"}
    path = f"{client.root}/cmd?backends=slow"
    leaving.request("POST", path, json.dumps(entries(150, "left")), headers)
    assert slow.waiting.wait(IN_TIME)
    leaving.close()
    slow.release()
    until(lambda: len(slow.commands) == 150, "all commands have arrived")
    assert texts(slow.commands) == [f"left {number}" for number in range(150)]
    until(lambda: "left 149" in daemon.log, "they are in the audit log")
    lines = [line for line in daemon.log.splitlines() if "left " in line and " audit " in line]
    assert len(lines) == 150


def test_stopping_waits_for_the_transmission_under_way(own, made, tmp_path, lab):
    slow = lab.keep(LyingSite(tmp_path / "slow", own.socket))
    daemon = made([site("slow", slow, timeout=20.0)]).start()
    slow.lie(None, "COMMAND")
    slow.hold()
    running = InFlight(daemon, "/hosts/web01/cmd/add_host_comment", {"comment_data": "stop"})
    assert slow.waiting.wait(IN_TIME)
    stopping = threading.Thread(target=daemon.stop)
    stopping.start()
    until(lambda: refused(daemon.port), "the daemon is stopping")
    slow.release()
    response = running.result()
    stopping.join(30)
    assert response.status == 200, response
    assert texts(slow.commands) == ["stop"]
    assert "Traceback" not in daemon.log
    assert json.loads(response.body)["message"] == "Command successfully submitted"


def test_a_command_that_hangs_while_the_daemon_stops_is_written_down(own, made, tmp_path, lab):
    hanging = lab.keep(LyingSite(tmp_path / "hanging", own.socket))
    daemon = made(
        [site("hanging", hanging, timeout=4.0)],
        sections={"server": {"drain_timeout": 1}},
    ).start()
    hanging.lie(None, "COMMAND")
    hanging.hold()
    InFlight(daemon, COMMENT, {"comment_data": "cut off"})
    assert hanging.waiting.wait(IN_TIME)
    daemon.stop(seconds=20)
    (line,) = [one for one in daemon.log.splitlines() if " audit " in one]
    assert "cut off" in line
    assert "not known whether" in line
    assert "failed_sites=hanging" in line
    assert "Traceback" not in daemon.log


def impossible(core, number):
    """A command that this core refuses, though its host is there."""
    if core.name == "icinga2":
        return {"cmd": "process_host_check_result", "host": "web01", "plugin_state": 2,
                "plugin_output": f"neither up nor down {number}"}  # fmt: skip
    return {"cmd": "change_host_check_timeperiod", "host": "web01",
            "timeperiod": f"no such period {number}"}  # fmt: skip


def test_every_refusal_of_a_core_belongs_to_its_command(core, recorder, made, tmp_path, request):
    mark = recorder.mark()

    def told():
        return [one.decode() for one in recorder.since(mark) if one.startswith(b"COMMAND")]

    path = recorder.path
    if core.name == "embedded":
        claiming = LyingSite(tmp_path / "claiming", core.socket)
        request.addfinalizer(claiming.close)
        claiming.claims = {"timeperiods": [f"no such period {n}" for n in range(7, 120, 10)]}
        path = claiming.path

        def told():
            return claiming.commands

    daemon = made([site("s1", f"unix:{path}")]).start()
    body = entries(120, "mixed")
    for number in range(7, 120, 10):
        body[number] = impossible(core, number)
    with daemon.client() as client:
        response = client.post_json("/cmd", body, timeout=300)
    wrong = [result["index"] for result in response.json if result["code"] != 200]
    assert wrong == list(range(7, 120, 10))
    for result in response.json:
        assert (result["code"] == 400) == ("error" in result)
        assert "stack" not in result.get("error", "").lower()
        assert "/usr" not in result.get("error", "")
    assert len(told()) == len(set(told())) == 120
    expected = [f"mixed {number}" for number in range(120) if number % 10 != 7]

    def comments():
        return core.ask("GET comments\nColumns: id comment\nFilter: comment ~ ^mixed ")

    def arrived():
        return [comment for _, comment in sorted(comments())] == expected

    until(arrived, "all other comments are there, in order")
    # The core is that of other tests as well.
    body = [
        {"cmd": "del_comment", "host": "web01", "comment_id": number} for number, _ in comments()
    ]
    with daemon.client() as client:
        assert {one["code"] for one in client.post_json("/cmd", body, timeout=300).json} == {200}
    until(lambda: not comments(), "they are gone again")


def test_the_daemon_logged_no_traceback(daemon):
    assert "Traceback" not in daemon.log
