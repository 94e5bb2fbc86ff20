"""Slices of a core's log: complete, in order, bounded, and asked for in terms of each core."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, succeed

from monrest.base.values import Capabilities
from monrest.livestatus.core_errors import ProtocolError
from monrest.logs.source import CoreLog, Wanted
from monrest.query.model import Group, Test
from tests.fakes.threads import Reactor, own_memory

DAY = 86400


class FakeSite:
    """A core whose log are (time, message); it applies bounds and limit, nothing else."""

    def __init__(self, lines, kind="naemon"):
        self.lines = lines
        self.capabilities = Capabilities(kind=kind, key=kind)
        self.asked = []
        self.memory = own_memory(Reactor())

    def verdict(self):
        return succeed(None)

    async def ask(self, pushed, layout, share):
        assert pushed.table == "log"
        assert pushed.waits_long
        assert [name for name, _ in layout] == list(pushed.columns) == ["time", "message"]
        self.asked.append(pushed)
        low = max(int(t.value) for t in times(pushed.filter) if t.op == ">=")
        high = min(int(t.value) for t in times(pushed.filter) if t.op == "<")
        rows = [[time, text] for time, text in self.lines if low <= time < high]
        if self.capabilities.kind != "icinga2":
            rows.reverse()
        if pushed.limit is not None:
            rows = rows[: pushed.limit]
        if self.capabilities.kind == "rest":
            # The newest lines, the oldest of them first, as other instances answer.
            rows.reverse()
        return rows


def times(limit):
    assert isinstance(limit, Group)
    assert limit.connector == "and"
    return [one for one in limit.items if isinstance(one, Test) and one.column == "time"]


def read(site, *, most=20, since=0, until=10 * DAY, **wanted):
    async def collect():
        return [
            list(one)
            async for one in CoreLog(most=most).slices(
                site, Wanted(since=since, until=until, **wanted)
            )
        ]

    found = []
    Deferred.fromCoroutine(collect()).addBoth(found.append)
    if hasattr(found[0], "raiseException"):
        found[0].raiseException()
    return found[0]


@given(
    st.lists(st.integers(0, 10 * DAY + 5), max_size=200),
    st.sampled_from(["naemon", "icinga2", "rest"]),
    st.integers(3, 50),
)
@settings(deadline=None)
def test_every_line_once_and_in_order(moments, kind, most):
    lines = [(time, f"line {at}") for at, time in enumerate(sorted(moments))]
    slices = read(FakeSite(lines, kind), most=most)
    assert [one for part in slices for one in part] == [one for one in lines if one[0] <= 10 * DAY]
    assert all(len(part) <= most or part[0][0] == part[-1][0] for part in slices)


def test_lines_of_one_second_keep_the_order_of_the_log():
    lines = [(5, "a"), (5, "b"), (5, "a"), (5, "c")]
    for kind in ("naemon", "mk", "shinken", "icinga2", "rest"):
        assert read(FakeSite(lines, kind), most=2) == [lines]


def test_slices_grow_where_there_is_little():
    site = FakeSite([])
    assert read(site, until=1000 * DAY) == []
    assert len(site.asked) < 15


def test_slices_cover_the_range_without_gaps():
    site = FakeSite([(time, "x") for time in range(0, 3 * DAY, 600)])
    assert sum(len(one) for one in read(site, most=50, until=3 * DAY - 1)) == 432
    assert {one.limit for one in site.asked} == {51}


def test_a_day_more_is_asked_of_icinga():
    site = FakeSite([], "icinga2")
    read(site, since=5 * DAY, until=6 * DAY - 1)
    bounds = times(site.asked[0].filter)
    assert [(one.op, int(one.value)) for one in bounds] == [
        (">=", 5 * DAY),
        ("<", 6 * DAY),
        (">=", 4 * DAY),  # the last one chooses the files
    ]


def chosen(kind="naemon", **wanted):
    site = FakeSite([], kind)
    read(site, until=DAY - 1, **wanted)
    return [one for one in site.asked[0].filter.items if getattr(one, "column", "") != "time"]


STATES = Group("or", (Test("class", "=", "1"), Test("class", "=", "6")))


def test_what_is_asked():
    (everything,) = chosen()
    assert everything == Group("and", (STATES, Test("type", "~", "(ALERT|STATE)$")))
    (hosts,) = chosen(services=False)
    assert hosts.items[1].value == "HOST (ALERT|STATE|DOWNTIME ALERT)$"
    (services,) = chosen(hosts=False)
    assert services.items[1].value == "SERVICE (ALERT|STATE)$|DOWNTIME ALERT$"
    (program,) = chosen(program=True)
    assert program == Group("or", (everything, Test("class", "=", "2")))
    (transitions,) = chosen(transitions=True)
    assert transitions.items[0] == Test("class", "=", "6")


def test_few_hosts_are_asked_for_by_name():
    (one,) = chosen(names=frozenset({"a"}))
    assert one.items[2] == Test("host_name", "=", "a")
    (two,) = chosen(names=frozenset({"a", "b"}))
    assert two.items[2] == Group("or", (Test("host_name", "=", "a"), Test("host_name", "=", "b")))
    (icinga,) = chosen("icinga2", names=frozenset({"a.b"}))
    assert icinga.items[2] == Test("message", "~", ": a\\.b;")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("naemon", {str(number) for number in range(21)}),
        ("naemon", {"ends with a blank "}),
        ("naemon", {"😀"}),
        ("naemon", {"new\nline"}),
        ("icinga2", {"Größe"}),
        ("icinga2", {"a{2}"}),
    ],
)
def test_other_hosts_are_looked_for_here(kind, names):
    (one,) = chosen(kind, names=frozenset(names))
    assert len(one.items) == 2


@pytest.mark.parametrize(
    "row", [["x", "text"], [None, "text"], [1.5, "text"], [5, None], [5, 7], [-1, "text"]]
)
def test_a_lying_core(row):
    site = FakeSite([])

    async def ask(pushed, layout, share):
        return [row, [5, "text"]]

    site.ask = ask
    with pytest.raises(ProtocolError):
        read(site)
