"""One site: detection, restarts, what ``/sites`` shows, reasons without addresses."""

import pytest

from monrest.base.values import SiteProblem
from monrest.livestatus.core_errors import (
    ConnectError,
    LivestatusError,
    RefusedError,
    StoppedError,
)
from monrest.query.model import Pushed, Test
from tests.fakes.livestatus import (
    NAEMON_COLUMNS,
    Script,
    close_without_answer,
    columns_of,
    hang,
    raw,
    refused,
    rows,
    rows_in_pieces,
    table_of,
)
from tests.fakes.sites import outcome
from tests.sites.asked import ask


def test_asking_a_pending_site_waits_for_it(town):
    site = town.site(up=None)
    found = ask(site)
    assert found == []
    assert site.health.state == "pending"
    assert (site.connected, site.status) == (False, 1)
    town.cores["a"].let_in()
    town.clock.advance(0)
    assert found == [[["h1", 0]]]


def test_dead_from_the_start(town):
    site = town.site(up=False)
    found = ask(site)
    town.clock.advance(0)
    assert isinstance(found[0].value, ConnectError)
    assert site.capabilities is None
    assert (site.connected, site.status, site.last_error) == (False, 1, "connection refused")
    connects = town.cores["a"].connects
    for _ in range(10):
        assert isinstance(ask(site)[0].value, ConnectError)
    assert town.cores["a"].connects == connects
    town.cores["a"].up = True
    town.pass_time(30)
    assert site.connected
    assert site.capabilities.kind == "naemon"


def test_no_answer_in_time_from_the_start(town):
    site = town.site(script=Script(probe=hang))
    town.pass_time(10.5)
    assert site.health.state == "down"
    assert site.last_error == "timed out after 10 s"


@pytest.mark.parametrize("change", [(2, 1_800_000_000), (3, 99), (0, "1.6.0")])
def test_a_restarted_core_is_read_again(town, change):
    script = Script()
    site = town.site(script=script)
    script.columns = [*NAEMON_COLUMNS, ["hosts", "brand_new", "int"]]
    town.pass_time(15)
    assert not site.capabilities.has("hosts", "brand_new")
    at, value = change
    script.status[at] = value
    town.pass_time(15)
    assert site.capabilities.has("hosts", "brand_new")


def test_without_a_restart_the_columns_are_read_once(town):
    script = Script()
    town.site(script=script)
    town.pass_time(60)
    tables = [table_of(one) for one in script.requests]
    assert tables.count("columns") == 1
    assert 5 <= tables.count("status") <= 7


MANY_NAMES = [[f"h{at:04} {'x' * 50}"] for at in range(5000)]
"""More than are read in one go."""


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        ([], {"hosts"}),
        ([["B"], ["a"], ["b"]], {"hosts"}),
        ([["a"], ["B"]], set()),
        ([["a"], ["a"]], set()),
        ([["a"], ["grinning \U0001f600"]], set()),
        ([["a"], ["broken \ufffd"]], set()),
        ([["a"], [1.5]], set()),
        ([[None], ["a"]], set()),
        ([["a"], [["b"]]], set()),
        (MANY_NAMES, {"hosts"}),
        ([*MANY_NAMES[:50], *MANY_NAMES[51:], MANY_NAMES[50]], set()),
        ([MANY_NAMES[-1], *MANY_NAMES[:-1]], set()),
        ([*MANY_NAMES[3:], *MANY_NAMES[:3]], set()),
    ],
)
def test_the_order_of_a_table_is_learned(town, names, ordered):
    script = Script([rows_in_pieces(*names)])
    site = town.site(script=script)
    before = site.capabilities
    site.learn_order("hosts", ("name",))
    town.clock.advance(0)
    assert site.capabilities.ordered == ordered
    assert site.capabilities.key == before.key
    for _ in range(3):
        site.learn_order("hosts", ("name",))
    town.clock.advance(0)
    assert [columns_of(one) for one in script.queries] == [["name"]]


def test_the_order_of_a_restarted_core_is_learned_again(town):
    script = Script([rows(["a"], ["b"]), rows(["b"], ["a"])])
    site = town.site(script=script)
    site.learn_order("hosts", ("name",))
    town.clock.advance(0)
    assert site.capabilities.ordered == {"hosts"}
    script.status[2] += 60
    town.pass_time(15)
    assert site.capabilities.ordered == set()
    site.learn_order("hosts", ("name",))
    town.clock.advance(0)
    assert len(script.queries) == 2
    assert site.capabilities.ordered == set()


def test_an_order_that_could_not_be_looked_at_is_looked_at_later(town):
    script = Script([refused(452, b"not now"), rows(["a"], ["b"])])
    site = town.site(script=script)
    site.learn_order("hosts", ("name",))
    town.clock.advance(0)
    assert site.capabilities.ordered == set()
    town.pass_time(2)
    site.learn_order("hosts", ("name",))
    town.clock.advance(0)
    assert site.capabilities.ordered == {"hosts"}


def test_a_refused_query_makes_the_columns_be_read_again(town):
    script = Script([refused(452, b"no such column")])
    site = town.site(script=script)
    found = ask(site)
    town.clock.advance(0)
    assert isinstance(found[0].value, RefusedError)
    town.pass_time(2)
    assert [table_of(one) for one in script.requests].count("columns") == 2
    assert site.connected


def test_closed_connections_are_a_reason_to_look(town):
    script = Script()
    town.site(script=script)
    town.pass_time(3)
    before = len(script.requests)
    script.status[3] = 99
    town.cores["a"].open[0].close()
    town.pass_time(0.5)
    assert [table_of(one) for one in script.requests[before:]] == ["status", "columns"]


def test_localtime_is_asked_where_it_exists(town):
    script = Script(columns=[*NAEMON_COLUMNS, ["status", "localtime", "float"]])
    site = town.site(script=script)
    script.status.append(12345.5)
    town.pass_time(15)
    assert columns_of(script.requests[-1])[-1] == "localtime"
    assert site.health.program.localtime == 12345.5


def test_a_slow_query_does_not_take_the_site_down(town):
    script = Script([hang])
    site = town.site(script=script, timeout=30.0)
    found = ask(site)
    town.pass_time(29)
    assert found == []
    assert site.connected
    town.pass_time(2)
    assert found[0].value.reason == "timed out after 30 s"
    assert site.connected
    again = ask(site)
    town.clock.advance(0)
    assert again == [[["h1", 0]]]


def test_a_hanging_site_is_down_with_its_first_time_out_at_the_latest(town):
    script = Script(default=hang)
    site = town.site(script=script, timeout=1.0)
    script.probe = hang
    found = ask(site)
    town.pass_time(1.1)
    assert found[0].value.timed_out
    assert not site.connected
    assert ask(site)[0].value.timed_out  # at once
    script.default, script.probe = rows(["h1", 0]), None
    town.pass_time(15)
    assert site.connected


def test_all_connections_busy_is_no_reason_to_be_down(town):
    script = Script(default=hang)
    site = town.site(script=script, connections=2, timeout=30.0)
    found = [ask(site) for _ in range(5)]
    town.pass_time(25)
    assert site.connected
    assert len(town.cores["a"].open) <= 3
    town.pass_time(6)
    assert all(one[0].value.timed_out for one in found)


def test_log_queries_have_more_time(town):
    script = Script([hang, hang])
    site = town.site(script=script, timeout=2.0)
    log = ask(
        site,
        Pushed(
            table="log",
            columns=("time", "message"),
            filter=Test("time", ">=", "0"),
            waits_long=True,
        ),
        None,
    )
    plain = ask(site)
    town.pass_time(3)
    assert plain[0].value.timed_out
    assert log == []
    town.pass_time(298, 1)
    assert log[0].value.reason == "timed out after 300 s"


def test_reasons_hide_the_address(town):
    site = town.site("a", address="tcp:core.example:6557")
    error = LivestatusError("400: no core.example:6557 and no core.example\nsecond line")
    assert site.problem(error) == SiteProblem("a", "A", "400: no … and no …", False)
    local = town.site("b")
    assert local.problem(LivestatusError("bad /run/core/live")).reason == "bad …"
    named = town.site("c", address="tcp:core:6557")
    assert named.problem(LivestatusError("the core is core:6557")).reason == "the core is …"
    assert town.site("d", up=False).last_error == "connection refused"


@pytest.mark.parametrize(
    ("status", "configured", "limit"),
    [("1.2.8", 4, 2), ("1.2.8", 3, 3), ("1.2.8", 20, 8), ("1.5.1-naemon", 20, 20)],
)
def test_an_mk_core_gets_few_connections(town, status, configured, limit):
    script = Script()
    script.status[1] = status
    assert town.site(script=script, connections=configured).pool.limit == limit


@pytest.mark.parametrize(("configured", "limit"), [(4, 2), (3, 3), (20, 20)])
def test_an_icinga2_keeps_its_threads(town, configured, limit):
    script = Script([rows(["h1", 0])])
    script.status[0] = "r2.13.6-1-icinga2"
    site = town.site(script=script, connections=configured)
    assert (site.pool.limit, site.pool.size) == (limit, 0)
    ask(site)
    town.clock.advance(0)
    assert site.pool.size == 0


@pytest.mark.parametrize("probe", [raw(b"nonsense\n"), close_without_answer, rows(), rows([1])])
def test_nonsense_instead_of_a_status_is_down(town, probe):
    site = town.site(script=Script(probe=probe))
    assert site.health.state == "down"
    assert site.last_error


def test_old_reads_of_a_retired_site_finish(town):
    script = Script([hang])
    site = town.site(script=script)
    found = ask(site)
    assert outcome(site.retire()) == [None]
    town.clock.advance(0)
    assert len(town.cores["a"].open) == 1
    late = ask(site)
    town.clock.advance(0)
    assert late == [[["h1", 0]]]
    town.cores["a"].open[0].say(b"200          11\n" + b'[["h2",0]]\n')
    town.clock.advance(0)
    assert found == [[["h2", 0]]]
    assert not town.cores["a"].open
    assert not town.clock.getDelayedCalls()


@pytest.mark.parametrize("retired_first", [False, True])
def test_a_site_retired_before_its_first_verdict_still_answers(town, retired_first):
    site = town.site(up=None)
    if retired_first:
        retired, found = outcome(site.retire()), ask(site)
    else:
        found, retired = ask(site), outcome(site.retire())
    assert (found, retired) == ([], [])
    assert not site.quiet
    for _connection in ("status", "columns", "hosts"):
        town.cores["a"].let_in()
        town.clock.advance(0)
    assert found == [[["h1", 0]]]
    assert retired == [None]
    assert site.quiet
    assert not town.cores["a"].open
    assert not town.clock.getDelayedCalls()


def test_the_end_does_not_wait_for_the_first_verdict_of_a_retired_site(town):
    site = town.site(up=None)
    found, retired = ask(site), outcome(site.retire())
    assert outcome(site.stopService()) == [None]
    assert retired == [None]
    assert found[0].check(StoppedError)
    assert not town.clock.getDelayedCalls()
