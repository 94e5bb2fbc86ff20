"""Reports of availability: arguments, days of users, what is read of the log, equal names."""

from datetime import datetime
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from monrest.accounts.model import Profile
from monrest.availability import chosen_objects
from monrest.availability.endpoints import ALL_TIMES, OUTAGE_COLUMNS
from monrest.availability.periods import Span
from monrest.availability.report_arguments import CURRENT, asked
from monrest.base.errors import BadRequest, Unavailable
from monrest.base.values import Column, Rows
from monrest.query.model import Condition, Group
from monrest.rows.columns import HOSTS, SERVICES
from tests.api.asking import answer, records
from tests.api.cores import FakeSite
from tests.fakes.context import make_context
from tests.table import each

NOW = 1711879200.7
AT = 1711879200
BERLIN = ZoneInfo("Europe/Berlin")
TIMES = frozenset(one.name for one in ALL_TIMES)
OUT = frozenset(one.name for one in OUTAGE_COLUMNS)


def read(*parameters, kind="hosts", fields=TIMES, single=False):
    return asked(
        parameters, kind=kind, fields=fields, now=NOW, zone=BERLIN, first_weekday=1, single=single
    )


def refused(*parameters, **more):
    with pytest.raises(BadRequest) as caught:
        read(*parameters, **more)
    return caught.value


def test_defaults():
    found = read()
    assert found.span == Span(AT - 86400, AT)
    assert found.since == AT - 86400 - 4 * 86400
    assert (found.kind, found.soft, found.not_running, found.with_downtimes) == (
        *("hosts", False, False, True),
    )
    assert (found.assumed_host, found.assumed_service, found.period) == (None, None, "")
    assert (found.chosen, found.objects, found.rows, found.left) == ({}, (), (), ())


@each(
    ("parameters", "start", "end"),
    [
        ([("start", "1000")], 1000, AT),
        ([("start", "1000"), ("end", "2000")], 1000, 2000),
        ([("start", "2000"), ("end", "1000")], 1000, 2000),
        ([("start", "1000"), ("end", "1000")], 1000, 1000),
        ([("start", "1000"), ("end", "99999999999")], 1000, 99999999999),
        ([("start", "-1d"), ("end", "now")], AT - 86400, AT),
        ([("start", "today")], 1711839600, AT),
        ([("start", "2024-03-01"), ("end", "2024-03-01 12:00:00")], 1709247600, 1709290800),
        ([("start", "1000"), ("start", "1500")], 1500, AT),
        ([("start", " 1000 "), ("end", "")], 1000, AT),
        ([("start", ""), ("end", ""), ("timeperiod", "")], AT - 86400, AT),
        ([("timeperiod", "lastmonth")], 1706742000, 1709247600),
        ([("q", "time >= 1000 and time <= 2000")], 1000, 2000),
        ([("q", "time > 1000 and time < 2000")], 1000, 2000),
        ([("q", "host = a and (time >= 1000 and time <= 2000)")], 1000, 2000),
        ([("q", "time >= 1000")], 1000, AT),
        ([("q", "time >= -1h")], AT - 3600, AT),
        ([("q", "timeperiod = lastmonth")], 1706742000, 1709247600),
    ],
)
def test_spans(parameters, start, end):
    found = read(*parameters)
    assert found.span == Span(start, end)
    assert found.since == max(0, start - 4 * 86400)
    assert found.rows == ()


@each(
    ("parameters", "name"),
    [
        ([("start", "garbage")], "start"),
        ([("start", "1000"), ("end", "garbage")], "end"),
        ([("end", "1000")], "end"),
        ([("start", "-1")], "start"),
        ([("start", "1e300")], "start"),
        ([("start", "nan")], "start"),
        ([("start", "inf")], "start"),
        ([("start", "9" * 400)], "start"),
        ([("start", "\x00")], "start"),
        ([("start", "253402300800")], "start"),
        ([("timeperiod", "custom")], "timeperiod"),
        ([("timeperiod", "last0months")], "timeperiod"),
        ([("timeperiod", "LASTMONTH")], "timeperiod"),
        ([("timeperiod", "today"), ("start", "1")], "timeperiod"),
        ([("timeperiod", "today"), ("end", "1")], "timeperiod"),
        ([("timeperiod", "today"), ("q", "time > 5")], "timeperiod"),
        ([("start", "5"), ("q", "timeperiod = today")], "timeperiod"),
        ([("q", "time < 5")], "q"),
        ([("q", "time = 5")], "q"),
        ([("q", "time > 5 and time > 6")], "q"),
        ([("q", "time > x")], "q"),
        ([("q", "timeperiod != today")], "q"),
        ([("q", "timeperiod = nope")], "q"),
        ([("q", "host = a or time_up > 5 or address = 5")], "q"),
        ([("q", "host =")], "q"),
        ([("type", "nope")], "type"),
        ([("type", "Hosts")], "type"),
        ([("includesoftstates", "2")], "includesoftstates"),
        ([("withdowntimes", "maybe")], "withdowntimes"),
        ([("assumeinitialstates", "-")], "assumeinitialstates"),
        ([("assumestatesduringnotrunning", "x")], "assumestatesduringnotrunning"),
        ([("assumestateretention", "x")], "assumestateretention"),
        ([("backtrack", "x")], "backtrack"),
        ([("backtrack", "1.5")], "backtrack"),
        ([("backtrack", "9" * 30)], "backtrack"),
        ([("backtrack", "\u0663")], "backtrack"),
        ([("initialassumedhoststate", "up")], "initialassumedhoststate"),
        ([("initialassumedservicestate", "ok")], "initialassumedservicestate"),
        ([("rpttimeperiod", "a\nb")], "rpttimeperiod"),
        ([("breakdown", "days")], "breakdown"),
    ],
)
def test_refusals_name_the_parameter(parameters, name):
    error = refused(*parameters)
    assert name in error.description or name in error.message
    assert (error.message + error.description).isprintable()


def test_both_kinds_of_bounds():
    message = "use either timeperiod or start/end, not both."
    assert refused(("timeperiod", "today"), ("start", "5")).message == message


@each(
    ("text", "value"),
    [*((one, True) for one in ("1", "yes", "true", "on", "ON")),
     *((one, False) for one in ("0", "no", "false", "off", "False"))],
)  # fmt: skip
def test_flags(text, value):
    assert read(("withdowntimes", text)).with_downtimes is value
    assert read(("includesoftstates", text)).soft is value
    assert read(("assumestatesduringnotrunning", text)).not_running is not value


@each(
    ("host", "service", "expected"),
    [
        ("0", "0", (None, None)),
        ("-1", "-1", (CURRENT, CURRENT)),
        ("3", "6", (0, 0)),
        ("4", "8", (1, 1)),
        ("5", "9", (2, 2)),
        ("6", "7", (None, 3)),
        ("99", "3", (None, None)),
    ],
)
def test_assumed_states(host, service, expected):
    given_ = (("initialassumedhoststate", host), ("initialassumedservicestate", service))
    found = read(*given_)
    assert (found.assumed_host, found.assumed_service) == expected
    none = read(*given_, ("assumeinitialstates", "0"))
    assert (none.assumed_host, none.assumed_service) == (None, None)


@each(("text", "days"), [("0", 0), ("-1", 4), ("-7", 4), ("10", 10)])
def test_backtrack(text, days):
    assert read(("backtrack", text), ("start", "9000000")).since == 9000000 - days * 86400


def test_objects_and_rows_are_told_apart():
    q = "host = a and time_down > 0 and (service = x or state = 1) and (host = b or time_up < 5)"
    found = read(("q", q), ("host", "web"), ("time_up[gt]", "0"), ("columns", "host"))
    assert found.chosen == {"host": "web"}
    assert [one.column for one in found.objects if isinstance(one, Condition)] == ["host"]
    assert [one.connector for one in found.objects if isinstance(one, Group)] == ["or"]
    conditions = [one.column for one in found.rows if isinstance(one, Condition)]
    assert sorted(conditions) == ["time_down", "time_up"]
    assert len(found.rows) == 3
    assert found.left == (("columns", "host"),)


_NAMED = sorted({*HOSTS.columns, *SERVICES.columns, "host_name", "service_description"})
_OPS = {"": "=", "[ne]": "!=", "[~]": "~", "[regex]": "~~", "[gte]": ">=", "[notin]": "!>="}


@given(
    st.sampled_from([*_NAMED, "host", "service", "_ENV", "time_down", "start", "class", "nope"]),
    st.sampled_from(sorted(_OPS)),
    st.sampled_from(["hosts", "services", "both"]),
    st.sampled_from([TIMES, OUT]),
)  # fmt: skip
def test_a_filter_is_the_same_as_a_parameter_and_in_q(column, op, kind, fields):
    parameter = f"{column}{op}"
    if parameter in ("host", "service", "start"):  # arguments of their own
        parameter = f"{column}[=]"
    found = read((parameter, "x"), kind=kind, fields=fields)
    in_q = read(("q", f"`{column}` {_OPS[op]} x"), kind=kind, fields=fields)
    for mine, theirs in ((found.objects, in_q.objects), (found.rows, in_q.rows)):
        assert [evolve(one, parameter="") for one in mine] == [
            evolve(one, parameter="") for one in theirs
        ]
    assert len(found.objects) + len(found.rows) == 1
    assert bool(found.rows) == (column in fields - {"host", "service"})


def test_bounds_may_be_parameters():
    assert read(("time[gte]", "1000"), ("time[lte]", "2000")).span == Span(1000, 2000)
    assert "time[ne]" in refused(("time[ne]", "5")).description
    error = refused(("time[gt]", "5"), ("q", "time > 6"))
    assert "more than one bound" in error.description


def test_aggregates_and_aliases_are_about_rows():
    found = read(("columns", "count(*):n,host"), ("count(*)[gt]", "2"), ("n", "3"))
    assert sorted(one.column for one in found.rows) == ["count(*)", "n"]
    assert found.objects == ()


def test_arguments_are_no_filters_but_operators_are():
    found = read(("type", "both"), ("type[ne]", "x"), ("start[gt]", "5"), fields=OUT)
    assert [one.column for one in found.rows] == ["type", "start"]
    assert found.left == ()
    (condition,) = read(("q", "duration >= 300"), fields=OUT).rows
    assert condition.column == "duration"


def test_single_objects():
    assert read(("type", "nope"), ("columns", "time_up"), single=True).kind == "hosts"
    for pair in (("time_up[gt]", "0"), ("host", "a"), ("q", "host = a"), ("q", "time_up > 5")):
        assert "typo" in refused(pair, single=True).message
    assert read(("q", "time > 5"), single=True).span.start == 5


_NAMES = st.sampled_from(
    [*("type", "timeperiod", "start", "end", "withdowntimes", "includesoftstates", "backtrack"),
     *("rpttimeperiod", "initialassumedhoststate", "q", "host", "x[gt]")]
)  # fmt: skip
_VALUES = st.text(max_size=12) | st.sampled_from(["1", "now", "-1d", "hosts", "time > 5", "today"])


@given(st.lists(st.tuples(_NAMES, _VALUES), max_size=5), st.booleans())
def test_anything_is_understood_or_refused(pairs, single):
    try:
        found = read(*pairs, single=single)
    except BadRequest:
        return
    assert 0 <= found.since <= found.span.start <= found.span.end


MIDNIGHT = 1711923000  # 2024-04-01 00:10 in Berlin, the evening before in New York


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
        self.clock.advance(MIDNIGHT)
        self.sites = []
        self.rows = {HOSTS.name: [], SERVICES.name: []}
        self.users = Users()
        monkeypatch.setattr(chosen_objects, "fetch", self.fetch)

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


DOWN = [(MIDNIGHT - 3600, "HOST ALERT: h;DOWN;HARD;1;x")]
UP = [(MIDNIGHT - 90000, "HOST ALERT: h;UP;HARD;1;x")]


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
