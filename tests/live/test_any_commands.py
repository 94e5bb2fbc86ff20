"""Commands on hosts of any core: each has its effect, is seen in the core, and is taken back.

``make test-core COMMANDS=1 HOSTS=regex`` runs this on a core that somebody has; a guard keeps back
whatever is not for a host that matches.
"""

import re
import time

import pytest
from harness.client import segment
from harness.commanding import OWN, boss, send, server, tape, value

__all__ = ["OWN", "boss", "server", "tape"]

SAME_FOR_ALL_CORES = "test_commands tells an Icinga 2 the same"

TEXT = "written by a test; 100% 'quoted' ü €"


@pytest.fixture(scope="module")
def places(own):
    """A host that may be told something, and one of its services: paths and words of commands."""
    told = getattr(own, "told", re.compile("^web").search)
    rows = own.ask("GET services\nColumns: host_name description")
    # Some cores cannot be told about a service with a semicolon in its name.
    found = sorted(row for row in rows if told(row[0]) and ";" not in row[1])
    assert found, "no service on a host that matches HOSTS"
    host, service = found[0]
    name = segment(host)
    return (f"/hosts/{name}", "host"), (f"/services/{name}/{segment(service)}", "svc")


def test_comments(own, boss, places):
    for path, word in places:
        send(boss, f"{path}/cmd/add_{word}_comment", comment_data=TEXT)
        (number,) = [row["id"] for row in boss.rows("/comments") if row["comment"] == TEXT]
        assert own.ask(f"GET comments\nColumns: author\nFilter: id = {number}") == [["admin"]]
        send(boss, f"{path}/cmd/del_comment", comment_id=number)
        assert own.ask(f"GET comments\nColumns: author\nFilter: id = {number}") == []


@pytest.mark.parametrize("fixed", [1, 0])
def test_downtimes(own, boss, places, fixed):
    start = int(time.time()) + 3600
    span = {"start_time": start, "end_time": start + 600, "fixed": fixed}
    for path, word in places:
        more = {} if fixed else {"duration": 300}
        send(boss, f"{path}/cmd/schedule_{word}_downtime", comment_data=TEXT, **span, **more)
        (row,) = [row for row in boss.rows("/downtimes") if row["comment"] == TEXT]
        assert (row["start_time"], row["end_time"], row["fixed"]) == (start, start + 600, fixed)
        assert fixed or row["duration"] == 300
        send(boss, f"{path}/cmd/del_downtime", downtime_id=row["id"])
        assert own.ask(f"GET downtimes\nColumns: id\nFilter: id = {row['id']}") == []


def test_switches(own, boss, places):
    for path, word in places:
        for name, column in {
            "notifications": "notifications_enabled",
            "check": "active_checks_enabled",
            "event_handler": "event_handler_enabled",
            "flap_detection": "flap_detection_enabled",
        }.items():
            before = value(boss, path, column)
            for wanted in (1 - before, before):
                verb = "enable" if wanted else "disable"
                send(boss, f"{path}/cmd/{verb}_{word}_{name}")
                assert value(boss, path, column) == wanted


def test_custom_variables(boss, places):
    for path, word in places:
        (row,) = boss.rows(path, {"columns": "custom_variables"})
        for name, before in list(row["custom_variables"].items())[:1]:
            for wanted in ("changed by a test", before):
                if wanted:
                    send(boss, f"{path}/cmd/change_custom_{word}_var", name=name, value=wanted)
                    (row,) = boss.rows(path, {"columns": "custom_variables"})
                    assert row["custom_variables"][name] == wanted


def test_what_no_core_takes_is_not_sent(own, boss, tape, places):
    """Ids of nothing, names with a semicolon, and flexible downtimes that last no time."""
    mark = tape.mark()

    def refused(path, given, name):
        answer = boss.post_form(path, given)
        assert answer.status == 400, answer
        assert answer.json["description"].startswith(f"{name}: "), answer

    for path, word in places:
        refused(f"{path}/cmd/del_comment", {"comment_id": 0}, "comment_id")
        refused(f"{path}/cmd/del_downtime", {"downtime_id": 0}, "downtime_id")
        span = {"comment_data": TEXT, "start_time": "now", "end_time": "+10m", "fixed": 0}
        for more in ({}, {"duration": 0}):
            path_of = f"{path}/cmd/schedule_{word}_downtime"
            refused(path_of, {**span, **more}, "duration")
    answer = boss.post_form("/hosts/no%3Bhost/cmd/add_host_comment", {"comment_data": TEXT})
    assert 400 <= answer.status < 500, answer
    assert [one for one in tape.since(mark) if one.startswith(b"COMMAND")] == []


def test_nothing_is_left(own):
    for table in ("comments", "downtimes"):
        rows = own.ask(f"GET {table}\nColumns: comment")
        assert [row for row in rows if row[0] == TEXT] == []
