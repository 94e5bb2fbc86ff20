"""What becomes of commands: accepted, refused, lost, in doubt; answers and audit lines (1.11)."""

from __future__ import annotations

import pytest
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import BadRequest, Forbidden, NotFound, SitesFailed, SitesTimedOut
from monrest.base.values import SiteProblem
from tests.api.cores import ANN, NOW, World, host
from tests.fakes.strict import stray_failures  # noqa: F401  a fixture

CHECK = "/hosts/h1/cmd/enable_host_flap_detection"
LINE = f"COMMAND [{NOW}] ENABLE_HOST_FLAP_DETECTION;h1"
NAME = "ENABLE_HOST_FLAP_DETECTION"
TEXT = "400: Too many arguments to command - expected 1"


@pytest.fixture
def world(monkeypatch):
    world = World(monkeypatch)
    for name in ("s1", "s2"):
        world.site(name, hosts=[host("h1", "ann"), host("h2")])
    return world


def refuse(site):
    site.refusals[NAME] = TEXT


def test_success_has_two_members(world):
    answer = world.post(CHECK)
    assert answer.value == {
        "message": "Command successfully submitted",
        "commands": f"{LINE}\n{LINE}",
    }
    assert (answer.status, answer.failed_sites) == (200, ())


def test_refusal_of_one_site_is_a_refusal(world):
    refuse(world.sites[1])
    error = world.refused(BadRequest, CHECK)
    assert error.message == "sending command failed"
    assert error.description == f"sending command failed: S2: {TEXT}"
    assert error.extra["error"] == f"S2: {TEXT}"
    assert error.extra["commands"] == f"{LINE}\n{LINE}"
    assert error.extra["help"]
    assert world.sites[0].told == [f"{NAME};h1"]


def test_refusal_of_all_sites(world):
    for site in world.sites:
        refuse(site)
    error = world.refused(BadRequest, CHECK)
    assert error.extra["error"] == f"S1: {TEXT}\nS2: {TEXT}"


def test_site_that_may_not_have_the_object_is_named_beside_success(world):
    world.sites[1].fail()
    answer = world.post(CHECK)
    assert answer.value == {
        "message": "Command successfully submitted",
        "commands": LINE,
        "failed_sites": [{"site": "s2", "name": "S2", "reason": "connection refused"}],
        "accepted_sites": ["s1"],
    }
    assert answer.failed_sites == (SiteProblem("s2", "S2", "connection refused"),)


@pytest.mark.parametrize("timed_out", [False, True])
@pytest.mark.parametrize(
    "asked",
    [
        ("/system/cmd/enable_notifications",),
        (CHECK, ("backends", "s1,s2")),
        (CHECK, ("backend", "ALL")),
    ],
)
def test_site_that_was_meant_and_not_told_is_an_error(world, asked, timed_out):
    world.sites[0].fail(timed_out=timed_out)
    error = world.refused(SitesTimedOut if timed_out else SitesFailed, *asked)
    assert error.message == "not all sites took the command"
    assert error.extra["commands"].startswith(f"COMMAND [{NOW}] ENABLE_")
    assert [one["site"] for one in error.extra["failed_sites"]] == ["s1"]
    assert error.extra["accepted_sites"] == ["s2"]
    assert world.audited[-1]["result"] == "not all sites took the command"


@pytest.mark.parametrize(
    ("slow", "kind"), [((True, True), SitesTimedOut), ((True, False), SitesFailed)]
)
def test_all_sites_failed(world, slow, kind):
    for site, timed_out in zip(world.sites, slow, strict=True):
        site.fail(timed_out=timed_out)
    error = world.refused(kind, "/system/cmd/enable_notifications")
    assert type(error) is kind
    assert error.message == "no backend available"
    assert error.extra["commands"] == ""
    assert [one["site"] for one in error.extra["failed_sites"]] == ["s1", "s2"]
    assert [one.site for one in error.problems] == ["s1", "s2"]


def in_doubt(site, *, timed_out=False):
    """The connection breaks after the lines were sent; look-ups still work."""
    site.doubtful = True
    site.doubt = SiteProblem(site.id, site.name, "connection lost", timed_out)


@pytest.mark.parametrize(("timed_out", "kind"), [(False, SitesFailed), (True, SitesTimedOut)])
def test_doubt_is_told_clearly(world, timed_out, kind):
    del world.sites[1]
    in_doubt(world.sites[0], timed_out=timed_out)
    error = world.refused(kind, CHECK)
    assert type(error) is kind
    assert error.message == "it is not known whether the command was executed"
    assert error.extra["commands"] == LINE
    assert error.extra["failed_sites"] == [
        {"site": "s1", "name": "S1", "reason": "connection lost", "uncertain": True}
    ]


def test_doubt_about_one_of_two(world):
    in_doubt(world.sites[1])
    error = world.refused(SitesFailed, CHECK)
    assert error.extra["commands"] == f"{LINE}\n{LINE}"
    assert error.extra["failed_sites"][0]["uncertain"] is True
    assert error.extra["accepted_sites"] == ["s1"]


def test_doubt_beside_a_refusal(world):
    in_doubt(world.sites[1])
    refuse(world.sites[0])
    error = world.refused(BadRequest, CHECK)
    assert error.extra["failed_sites"][0]["uncertain"] is True
    assert error.problems == (world.sites[1].doubt,)


def test_audit_of_success(world):
    world.sites[1].fail()
    world.post("/hosts/h1/cmd/add_host_comment", ("comment_data", 'say "x"; y'), identity=ANN)
    assert world.audited == [
        {
            "who": "ann",
            "client": "192.0.2.1",
            "action": "command",
            "target": "host h1",
            "result": "ok",
            "command": "add_host_comment",
            "lines": (f'COMMAND [{NOW}] ADD_HOST_COMMENT;h1;1;ann;say "x"; y',),
            "sites": ("s1",),
            "failed_sites": ("s2",),
            "error": "",
        }
    ]


@pytest.mark.parametrize(
    ("path", "identity", "kind", "result"),
    [
        ("/hosts/h2/cmd/enable_host_check", ANN, Forbidden, "not allowed"),
        ("/system/cmd/shutdown_program", ANN, Forbidden, "not allowed"),
        ("/hosts/h1/cmd/nonsense", ANN, NotFound, "not sent"),
        ("/hosts/h1/cmd/add_host_comment", ANN, BadRequest, "not sent"),
    ],
)
def test_audit_of_what_was_not_sent(world, path, identity, kind, result):
    error = world.refused(kind, path, identity=identity)
    (entry,) = world.audited
    assert (entry["who"], entry["result"], entry["error"]) == ("ann", result, str(error))
    assert entry["command"] == path.rpartition("/")[2]
    assert "lines" not in entry


def test_audit_of_refusals_and_doubts(world):
    refuse(world.sites[0])
    world.refused(BadRequest, CHECK)
    world.sites[0].refusals.clear()
    for site in world.sites:
        in_doubt(site)
    world.refused(SitesFailed, CHECK)
    assert [entry["result"] for entry in world.audited] == [
        "sending command failed",
        "it is not known whether the command was executed",
    ]
    assert world.audited[0]["error"] == f"S1: {TEXT}"


def test_who_leaves_is_audited_all_the_same(world, stray_failures):  # noqa: F811
    """A command that is on its way goes on and is written down."""
    world.hold = Deferred()
    found = []
    request = world.start(CHECK)
    request.addBoth(found.append)
    assert (found, world.audited) == ([], [])
    request.cancel()
    assert found[0].check(CancelledError)
    world.hold.callback(None)
    assert [site.told for site in world.sites] == [[f"{NAME};h1"]] * 2
    assert [entry["result"] for entry in world.audited] == ["ok"]


def test_equal_lines_are_sent_once(world):
    answer = world.bulk(*[{"cmd": "enable_notifications"}] * 3)
    assert [site.told for site in world.sites] == [["ENABLE_NOTIFICATIONS"]] * 2
    assert [one["code"] for one in answer.value] == [200] * 3
    assert len({one["commands"] for one in answer.value}) == 1
