"""Slices of a core's log: complete, in order, bounded, and asked for in terms of each core."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monrest.livestatus.core_errors import ProtocolError
from monrest.logs.source import CoreLog, Wanted
from monrest.query.model import Group, Test
from tests.logs.core import DAY, LoggingCore, done, times
from tests.table import each


def site_of(lines, kind="naemon"):
    """A core whose log are (time, text)."""
    core = LoggingCore(kind=kind)
    for time, text in lines:
        core.write(time, text)
    return core


def lines_of(site):
    return [(row["time"], row["message"]) for row in site.rows]


def read(site, *, most=20, since=0, until=10 * DAY, **wanted):
    async def collect():
        slices = CoreLog(most=most).slices(site, Wanted(since=since, until=until, **wanted))
        return [list(one) async for one in slices]

    return done(collect())


@given(
    st.lists(st.integers(0, 10 * DAY + 5), max_size=200),
    st.sampled_from(["naemon", "icinga2", "rest"]),
    st.integers(3, 50),
)
@settings(deadline=None)
def test_every_line_once_and_in_order(moments, kind, most):
    lines = [(time, f"line {at}") for at, time in enumerate(sorted(moments))]
    site = site_of(lines, kind)
    slices = read(site, most=most)
    told = [one for one in lines_of(site) if one[0] <= 10 * DAY]
    assert [one for part in slices for one in part] == told
    assert all(one.waits_long for one in site.asked)
    assert all(len(part) <= most or part[0][0] == part[-1][0] for part in slices)


def test_lines_of_one_second_keep_the_order_of_the_log():
    lines = [(5, "a"), (5, "b"), (5, "a"), (5, "c")]
    for kind in ("naemon", "mk", "shinken", "icinga2", "rest"):
        site = site_of(lines, kind)
        assert read(site, most=2) == [lines_of(site)]


def test_slices_grow_where_there_is_little():
    site = site_of([])
    assert read(site, until=1000 * DAY) == []
    assert len(site.asked) < 15


def test_slices_cover_the_range_without_gaps():
    site = site_of([(time, "x") for time in range(0, 3 * DAY, 600)])
    assert sum(len(one) for one in read(site, most=50, until=3 * DAY - 1)) == 432
    assert {one.limit for one in site.asked} == {51}


def test_a_day_more_is_asked_of_icinga():
    site = site_of([], "icinga2")
    read(site, since=5 * DAY, until=6 * DAY - 1)
    bounds = times(site.asked[0].filter)
    assert [(one.op, int(one.value)) for one in bounds] == [
        (">=", 5 * DAY),
        ("<", 6 * DAY),
        (">=", 4 * DAY),  # the last one chooses the files
    ]


def chosen(kind="naemon", **wanted):
    site = site_of([], kind)
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


@each(
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


@each("row", [["x", "text"], [None, "text"], [1.5, "text"], [5, None], [5, 7], [-1, "text"]])
def test_a_lying_core(row):
    site = site_of([])

    async def ask(pushed, layout, share):
        return [row, [5, "text"]]

    site.ask = ask
    with pytest.raises(ProtocolError):
        read(site)
