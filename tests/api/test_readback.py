"""Looking for effects: what is asked, when, and what is said about it."""

import pytest
from twisted.internet.defer import Deferred

from monrest.base.concurrency import pause
from monrest.base.errors import BadRequest, SitesFailed
from monrest.base.values import SiteProblem
from monrest.commands.readback import passes
from monrest.query.model import Group, Test
from tests.api.cores import NOW, World, host, service

PATH = "/hosts/h1/cmd/disable_host_check"


@pytest.fixture
def world(monkeypatch):
    world = World(monkeypatch)
    one = world.site(
        "s1",
        hosts=[host(f"h{n}", active_checks_enabled=1, comments_with_info=[]) for n in range(100)],
        services=[service("h1", "ping")],
        comments=[],
        downtimes=[],
        status=[{"program_start": 1, "nagios_pid": 2, "enable_notifications": 1}],
        log=[],
    )
    one.obey = lambda order: obey(one, order)
    return world


def obey(site, order):
    """The few commands of these tests."""
    for row in site.tables["hosts"]:
        if order.fields[:1] == (row["name"],):
            if order.name == "DISABLE_HOST_CHECK":
                row["active_checks_enabled"] = 0
            if order.name == "ENABLE_HOST_CHECK":
                row["active_checks_enabled"] = 1
            if order.name == "ADD_HOST_COMMENT":
                number = 1 + len(row["comments_with_info"])
                info = [number, order.fields[2], order.fields[3], 0, 1, 0, 0]
                row["comments_with_info"] = [*row["comments_with_info"], info]
    if order.name == "DEL_HOST_COMMENT":
        site.tables["comments"] = [
            row for row in site.tables["comments"] if str(row["id"]) != order.fields[0]
        ]
    if order.name == "LOG":
        message = f"[{NOW}] {order.fields[0]}"
        site.tables["log"].append({"time": NOW, "message": message, "class": 0})


def looks(site):
    return [one for one in site.asked if one.columns != ("name",)]


@pytest.mark.parametrize(("wait", "seconds"), [("1", 10), ("true", 10), ("0.5", 0.5), ("3", 3)])
def test_not_seen_in_time(world, wait, seconds):
    world.sites[0].obey = lambda order: None
    answer = world.post(PATH, ("wait", wait))
    assert answer.value["effect"] == f"not seen within {seconds:g} seconds"
    assert world.clock.seconds() - NOW == pytest.approx(seconds, abs=0.1)
    assert answer.status == 200


def test_the_answer_comes_before_the_request_times_out(world):
    """Sending took half a minute; what is left of the time-out is waited."""
    world.sites[0].obey = lambda order: None
    world.hold = pause(world.clock, 30)
    answer = world.post(PATH, ("wait", "20"))
    assert answer.value["effect"] == "not seen within 9 seconds"
    assert world.clock.seconds() - NOW == pytest.approx(39, abs=0.2)


def test_looks_grow_apart(world):
    world.sites[0].obey = lambda order: None
    world.post(PATH, ("wait", "1"))
    assert 12 <= len(looks(world.sites[0])) <= 20


def test_seen_late(world):
    one = world.sites[0]
    one.obey = lambda order: world.clock.callLater(2, obey, one, order)
    answer = world.post(PATH, ("wait", "1"))
    assert answer.value["effect"] == "seen"
    assert 2 <= world.clock.seconds() - NOW <= 3.1


def test_an_old_comment_is_not_the_new_one(world):
    world.sites[0].tables["hosts"][1]["comments_with_info"] = [[9, "admin", "x", 0, 1, 0, 0]]
    parameters = (("comment_data", "x"), ("wait", "2"))
    answer = world.post("/hosts/h1/cmd/add_host_comment", *parameters)
    assert answer.value["effect"] == "seen"
    world.sites[0].obey = lambda order: None
    answer = world.post("/hosts/h1/cmd/add_host_comment", *parameters)
    assert answer.value["effect"] == "not seen within 2 seconds"


def test_of_several_sites_the_least_good(world):
    two = world.site("s2", hosts=[host("h1", active_checks_enabled=1)])
    answer = world.post(PATH, ("wait", "1"))
    assert answer.value["effects"] == {"s1": "seen", "s2": "not seen within 10 seconds"}
    assert answer.value["effect"] == "not seen within 10 seconds"
    # Who was seen is not asked again.
    assert len(looks(world.sites[0])) == 1 < len(looks(two))


def test_effect_clears_a_doubt(world):
    """The answer stays what it is, but says that the effect is there."""
    one = world.sites[0]
    one.doubtful, one.doubt = True, SiteProblem("s1", "S1", "cut")
    one.tables["hosts"][1]["active_checks_enabled"] = 0
    error = world.refused(SitesFailed, PATH, ("wait", "1"))
    assert error.extra["effects"] == {"s1": "seen"}


def test_refused_commands_are_not_looked_for(world):
    world.sites[0].refusals["DISABLE_HOST_CHECK"] = "400: no"
    error = world.refused(BadRequest, PATH, ("wait", "1"))
    assert "effects" not in error.extra
    assert looks(world.sites[0]) == []


def test_site_that_is_away_for_a_while(world):
    """A core that restarts cannot be asked at first."""
    one = world.sites[0]

    def restart(order):
        one.fail()
        one.tables["status"] = [{"program_start": 9, "nagios_pid": 2}]
        world.clock.callLater(3, setattr, one, "problem", None)

    one.obey = restart
    answer = world.post("/system/cmd/restart_program", ("wait", "1"))
    assert answer.value["effect"] == "seen"
    assert world.clock.seconds() - NOW >= 3


def test_site_that_fails_before_the_command_only(world):
    """No rows from before, no judgement."""
    one = world.sites[0]
    one.fail()
    world.site("s2", status=[{"program_start": 1}])
    world.hold = Deferred()
    world.clock.callLater(0.1, setattr, one, "problem", None)
    world.clock.callLater(0.2, world.hold.callback, None)
    answer = world.post("/system/cmd/restart_program", ("wait", "0.2"))
    assert one.told == ["RESTART_PROGRAM"]
    assert answer.value["effects"]["s1"] == (
        "nothing to read back: the site could not be asked before"
    )
    assert "failed_sites" not in answer.value


@pytest.mark.parametrize("command", ["restart_program", "save_state_information"])
def test_site_that_was_told_nothing_has_no_effect(world, command):
    world.sites[0].fail()
    two = world.site("s2", status=[{"program_start": 1}])
    error = world.refused(SitesFailed, f"/system/cmd/{command}", ("wait", "0.2"))
    assert list(error.extra["effects"]) == ["s2"]
    assert [one["site"] for one in error.extra["failed_sites"]] == ["s1"]
    assert two.told == [command.upper()]


def test_core_that_lies_about_types(world):
    one = world.sites[0]
    for row in one.tables["hosts"]:
        row["comments_with_info"] = "nonsense"
    parameters = (("comment_data", "x"), ("wait", "0.2"))
    one.obey = lambda order: None
    answer = world.post("/hosts/h1/cmd/add_host_comment", *parameters)
    assert answer.value["effect"] == "not seen within 0.2 seconds"


def entry(name, n, **more):
    return {"cmd": name, "host": f"h{n}", **more}


def test_list_is_looked_for_with_one_query(world):
    entries = [entry("disable_host_check", n) for n in range(50)]
    entries += [entry("add_host_comment", n, comment_data=f"c{n}") for n in range(50, 100)]
    answer = world.bulk(*entries, parameters=(("wait", "1"),))
    assert {one["effect"] for one in answer.value} == {"seen"}
    # Once before and once afterwards.
    assert len(looks(world.sites[0])) == 2


def test_list_says_which_are_missing(world):
    one = world.sites[0]
    one.obey = lambda order: None if order.fields[0] == "h2" else obey(one, order)
    answer = world.bulk(
        *[entry("disable_host_check", n) for n in range(4)], parameters=(("wait", "0.5"),)
    )
    assert [one["effect"] for one in answer.value] == [
        "seen", "seen", "not seen within 0.5 seconds", "seen",
    ]  # fmt: skip


def test_in_a_list_the_effect_is_what_is_left(world):
    answer = world.bulk(
        entry("disable_host_check", 1),
        entry("enable_host_check", 1),
        parameters=(("wait", "0.5"),),
    )
    overtaken = "nothing to read back: a later command of the list sets the same"
    assert [one["effect"] for one in answer.value] == [overtaken, "seen"]
    assert world.clock.seconds() - NOW < 0.2
    answer = world.bulk(
        entry("disable_host_check", 1), entry("disable_host_check", 1), parameters=(("wait", "1"),)
    )
    assert [one["effect"] for one in answer.value] == ["seen", "seen"]
    world.sites[0].refusals["ENABLE_HOST_CHECK"] = "400: no"
    answer = world.bulk(
        entry("disable_host_check", 1), entry("enable_host_check", 1), parameters=(("wait", "1"),)
    )
    assert [one.get("effect") for one in answer.value] == ["seen", None]


ROW = {"name": "h1", "groups": ["a", "b"], "time": 10, "is_service": True}


@pytest.mark.parametrize(
    ("limit", "result"),
    [
        (None, True),
        (Test("name", "=", "h1"), True),
        (Test("name", "=", "H1"), False),
        (Test("groups", ">=", "b"), True),
        (Test("groups", ">=", "c"), False),
        (Test("time", ">=", "10"), True),
        (Test("time", ">=", "11"), False),
        (Test("is_service", "=", "1"), True),
        (Group("and", (Test("name", "=", "h1"), Test("time", ">=", "11"))), False),
        (Group("or", (Test("name", "=", "h1"), Test("time", ">=", "11"))), True),
        (Group("and", ()), True),
        (Group("or", ()), False),
    ],
)
def test_passes(limit, result):
    places = {name: at for at, name in enumerate(ROW)}
    assert passes(limit, list(ROW.values()), places) is result


def test_other_operators_are_no_oversight():
    with pytest.raises(LookupError):
        passes(Test("name", "~", "h"), ["h1"], {"name": 0})
