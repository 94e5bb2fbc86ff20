"""What becomes of commands: accepted, refused, lost, in doubt; answers and audit lines (1.11)."""

import pytest

from monrest.base.errors import BadRequest, Forbidden, NotFound, SitesFailed
from monrest.base.values import SiteProblem
from tests.api.cores import ANN, NOW, World, host

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


def test_refusal_of_one_site_is_a_refusal(world):
    refuse(world.sites[1])
    error = world.refused(BadRequest, CHECK)
    assert error.message == "sending command failed"
    assert error.description == f"sending command failed: S2: {TEXT}"
    assert error.extra["error"] == f"S2: {TEXT}"
    assert error.extra["commands"] == f"{LINE}\n{LINE}"
    assert error.extra["help"]
    assert world.sites[0].told == [f"{NAME};h1"]


def in_doubt(site, *, timed_out=False):
    """The connection breaks after the lines were sent; look-ups still work."""
    site.doubtful = True
    site.doubt = SiteProblem(site.id, site.name, "connection lost", timed_out)


def test_doubt_beside_a_refusal(world):
    in_doubt(world.sites[1])
    refuse(world.sites[0])
    error = world.refused(BadRequest, CHECK)
    assert error.extra["failed_sites"][0]["uncertain"] is True
    assert error.problems == (world.sites[1].doubt,)


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
