"""Reports with cores and logs in memory: zones of users, several sites, failures, rights."""

from datetime import datetime
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from monrest.accounts.contacts import NO_CONTACT
from monrest.accounts.model import Profile
from monrest.availability import chosen_objects as reportobjects
from monrest.base.errors import (
    BadRequest,
    Forbidden,
    SitesFailed,
    SitesTimedOut,
    Unavailable,
)
from monrest.base.values import Column, Identity, RestRequest, Rows, SiteProblem
from monrest.config import Config
from monrest.livestatus.core_errors import QueryTimeoutError, RefusedError
from monrest.rows.columns import HOSTS, SERVICES
from tests.fakes.context import make_context
from tests.fakes.keystore import value_of

BERLIN = ZoneInfo("Europe/Berlin")
NOW = 1711923000  # 2024-04-01 00:10 in Berlin, the evening before in New York
ROOT = Identity(user="root", superuser=True)
ANN = Identity(user="ann")


class FakeSite:
    local = True
    hidden = False
    section = ""

    def __init__(self, id, lines=()):
        self.id, self.name = id, id.upper()
        self.config = SimpleNamespace(groups=())
        self.lines = list(lines)
        self.error = None
        self.wait = None
        self.wanted = []

    def problem(self, error):
        return SiteProblem(self.id, self.name, error.reason, error.timed_out)


class FakeLog:
    async def slices(self, site, wanted):
        site.wanted.append(wanted)
        if site.wait is not None:
            await site.wait
        if site.error is not None:
            raise site.error
        lines = [one for one in site.lines if wanted.since <= one[0] <= wanted.until]
        for at in range(0, len(lines), 3):
            yield [(time, f"[{time}] {text}") for time, text in lines[at : at + 3]]


class Users:
    def __init__(self, tz=None, error=None):
        self.tz, self.error = tz, error

    async def get(self, name):
        if self.error is not None:
            raise self.error
        return Profile(name=name, tz=self.tz) if self.tz is not None else None


class Contacts:
    async def of(self, user):
        return NO_CONTACT if user == "nobody" else evolve(NO_CONTACT, alias=user)


class World:
    def __init__(self, monkeypatch):
        self.clock = Clock()
        self.clock.advance(NOW)
        self.sites = []
        self.problems = ()
        self.rows = {HOSTS.name: [], SERVICES.name: []}
        self.users = Users()
        self.config = Config()
        monkeypatch.setattr(reportobjects, "fetch", self.fetch)

    def site(self, id, *hosts, lines=(), services=()):
        made = FakeSite(id, lines)
        self.sites.append(made)
        for name in hosts:
            self.rows["hosts"].append([name, 1, 1, id])
        for host, description in services:
            self.rows["services"].append([host, description, 2, 0, id])
        return made

    async def fetch(self, context, request, schema, *, extra=()):
        names = request.parameters[0][1].split(",")
        wanted = [
            one.value for one in extra if one.op == "=" and one.column in ("name", "host_name")
        ]
        rows = [one for one in self.rows.get(schema.name, ()) if not wanted or one[0] in wanted]
        return Rows(
            columns=tuple(map(Column, names)), rows=[list(one) for one in rows],
            failed_sites=self.problems,
        )  # fmt: skip

    def start(self, path, *parameters, identity=ROOT):
        context = make_context(
            self.clock, *self.sites, users=self.users, contacts=Contacts(), zone=BERLIN,
            config=self.config, logcache=SimpleNamespace(source=FakeLog),
        )  # fmt: skip
        request = RestRequest(
            method="GET", path=path, segments=tuple(path.strip("/").split("/")),
            parameters=parameters, identity=identity,
        )  # fmt: skip
        return Deferred.fromCoroutine(context.dispatch(context, request))

    def get(self, path, *parameters, seconds=60, **more):
        found = []
        self.start(path, *parameters, **more).addBoth(found.append)
        for _ in range(seconds * 10):
            if found:
                break
            self.clock.advance(0.1)
        return value_of(found)


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def table(rows):
    names = [one.name for one in rows.columns]
    return [dict(zip(names, one, strict=False)) for one in rows.rows]


def at(text, zone=BERLIN):
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp())


@pytest.mark.parametrize(
    ("users", "zone", "day"),
    [
        (Users(), BERLIN, "2024-03-31"),
        (Users("America/New_York"), ZoneInfo("America/New_York"), "2024-03-30"),
        (Users("Server Setting"), BERLIN, "2024-03-31"),
        (Users("Nowhere/City"), BERLIN, "2024-03-31"),
        (Users("../../etc/passwd"), BERLIN, "2024-03-31"),
        (Users(error=Unavailable("x")), BERLIN, "2024-03-31"),
    ],
)
def test_days_are_those_of_the_user(world, users, zone, day):
    site = world.site("a", "h")
    world.users = users
    world.get("/hosts/availability", ("timeperiod", "yesterday"), ("backtrack", "0"))
    (wanted,) = site.wanted
    assert wanted.since == at(day, zone)
    # In Berlin this day has 23 hours.
    assert wanted.until - wanted.since == (23 if zone is BERLIN else 24) * 3600


def test_what_is_read_of_the_log(world):
    site = world.site("a", "h", services=[("h", "s"), ("i", "s")])
    span = (("start", "9000000"), ("end", "9001000"))
    world.get("/hosts/availability", *span)
    world.get("/services/availability", *span, ("assumestatesduringnotrunning", "0"))
    hosts, services = site.wanted
    assert (hosts.since, hosts.until) == (9000000 - 4 * 86400, 9001000)
    assert (hosts.hosts, hosts.services, hosts.program) == (True, False, False)
    assert (services.hosts, services.services, services.program) == (False, True, True)
    assert services.names == {"h", "i"}


def test_nothing_is_read_for_no_time(world):
    site = world.site("a", "h")
    answer = world.get("/hosts/availability", ("start", "9000000"), ("end", "9000000"))
    assert site.wanted == []
    assert {value for name, value in table(answer)[0].items() if name != "host"} == {0}


DOWN = [(NOW - 3600, "HOST ALERT: h;DOWN;HARD;1;x")]
UP = [(NOW - 90000, "HOST ALERT: h;UP;HARD;1;x")]


def test_equal_names_on_several_sites(world):
    world.site("b", "h", "a", lines=UP)
    world.site("a", "h", lines=[*UP, *DOWN])
    answer = world.get("/hosts/availability", ("columns", "host,time_up"))
    assert table(answer) == [
        {"host": "a", "time_up": 0},
        {"host": "h", "time_up": 86400},
        {"host": "h", "time_up": 86400 - 3600},
    ]
    # A single object is of the first site in the order of the configuration.
    assert world.get("/hosts/h/availability").value["time_up"] == 86400


def test_when_every_site_fails(world):
    site = world.site("a", "h")
    site.error = RefusedError(400, "no")
    with pytest.raises(SitesFailed):
        world.get("/hosts/availability")
    site.error = QueryTimeoutError(5)
    with pytest.raises(SitesTimedOut):
        world.get("/hosts/h/availability")


def test_a_site_that_hangs_is_left_out_in_time(world):
    world.site("a", "h", lines=UP)
    world.site("b", "h").wait = Deferred()
    answer = world.get("/hosts/availability", ("columns", "host"))
    assert len(answer.rows) == 1
    ((problem,)) = answer.failed_sites
    assert (problem.site, problem.timed_out) == ("b", True)
    assert problem.reason == "its log was not read in 32 s, background=1 gives it more time"
    assert world.clock.seconds() < NOW + 40


def test_cancelling_ends_the_reading(world):
    ended = []
    world.site("a", "h").wait = Deferred(lambda _: ended.append(True))
    found = []
    running = world.start("/hosts/availability")
    running.addBoth(found.append)
    assert not found
    running.cancel()
    assert ended == [True]
    assert found[0].check(CancelledError)


def test_present_states(world):
    world.site("a", "h", services=[("h", "s")])
    parameters = (("initialassumedhoststate", "-1"), ("initialassumedservicestate", "-1"))
    assert world.get("/hosts/h/availability", *parameters).value["time_down"] == 86400
    # Never checked, hence pending, which is ok.
    row = table(world.get("/services/availability", *parameters))[0]
    assert row["time_ok"] == 86400


def test_who_may_see_nothing(world):
    world.site("a")
    with pytest.raises(Forbidden, match="insufficient permissions for user nobody"):
        world.get("/hosts/availability", identity=Identity(user="nobody"))
    assert world.get("/hosts/availability", identity=ANN).rows == []
    some = Identity(user="nobody", roles=frozenset({"authorized_for_all_services"}))
    assert world.get("/hosts/availability", identity=some).rows == []


def test_a_wrong_filter_is_refused_before_the_log_is_read(world):
    site = world.site("a", "h")
    with pytest.raises(BadRequest, match="alias column name used in filter"):
        world.get("/hosts/availability", ("columns", "time_up:n"), ("n", "1"))
    assert site.wanted == []
