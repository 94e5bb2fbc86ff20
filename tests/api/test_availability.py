"""Reports with cores and logs in memory: days of users, what is read of the log, equal names."""

from datetime import datetime
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from twisted.internet.task import Clock

from monrest.accounts.model import Profile
from monrest.availability import chosen_objects as reportobjects
from monrest.base.errors import BadRequest, Unavailable
from monrest.base.values import Column, Rows
from monrest.rows.columns import HOSTS, SERVICES
from tests.api.asking import answer, records
from tests.api.cores import FakeSite
from tests.fakes.context import make_context

BERLIN = ZoneInfo("Europe/Berlin")
NOW = 1711923000  # 2024-04-01 00:10 in Berlin, the evening before in New York


class FakeLog:
    async def slices(self, site, wanted):
        site.wanted.append(wanted)
        for time, text in site.lines:
            if wanted.since <= time <= wanted.until:
                yield [(time, f"[{time}] {text}")]


class Users:
    def __init__(self, tz=None, error=None):
        self.tz, self.error = tz, error

    async def get(self, name):
        if self.error is not None:
            raise self.error
        return Profile(name=name, tz=self.tz) if self.tz is not None else None


class World:
    def __init__(self, monkeypatch):
        self.clock = Clock()
        self.clock.advance(NOW)
        self.sites = []
        self.rows = {HOSTS.name: [], SERVICES.name: []}
        self.users = Users()
        monkeypatch.setattr(reportobjects, "fetch", self.fetch)

    def site(self, id, *hosts, lines=(), services=()):
        made = FakeSite(id)
        made.lines, made.wanted = lines, []
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
        return Rows(columns=tuple(map(Column, names)), rows=[list(one) for one in rows])

    def get(self, path, *parameters):
        context = make_context(
            self.clock, *self.sites, users=self.users, zone=BERLIN,
            logcache=SimpleNamespace(source=FakeLog),
        )  # fmt: skip
        return answer(context, path, *parameters)


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


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
    found = world.get("/hosts/availability", ("start", "9000000"), ("end", "9000000"))
    assert site.wanted == []
    assert {value for name, value in records(found)[0].items() if name != "host"} == {0}


DOWN = [(NOW - 3600, "HOST ALERT: h;DOWN;HARD;1;x")]
UP = [(NOW - 90000, "HOST ALERT: h;UP;HARD;1;x")]


def test_equal_names_on_several_sites(world):
    world.site("b", "h", "a", lines=UP)
    world.site("a", "h", lines=[*UP, *DOWN])
    found = world.get("/hosts/availability", ("columns", "host,time_up"))
    assert records(found) == [
        {"host": "a", "time_up": 0},
        {"host": "h", "time_up": 86400},
        {"host": "h", "time_up": 86400 - 3600},
    ]
    # A single object is of the first site in the order of the configuration.
    assert world.get("/hosts/h/availability").value["time_up"] == 86400


def test_a_wrong_filter_is_refused_before_the_log_is_read(world):
    site = world.site("a", "h")
    with pytest.raises(BadRequest, match="alias column name used in filter"):
        world.get("/hosts/availability", ("columns", "time_up:n"), ("n", "1"))
    assert site.wanted == []
