"""A core that is away for a moment, as in a reload, one that does not come back, and one that takes
connections and says nothing.
"""

import itertools

import pytest
from twisted.internet.defer import Deferred

from monrest.base.errors import SitesTimedOut
from monrest.livestatus.core_errors import ConnectError, HangingError
from monrest.query.model import Pushed, Test
from monrest.sites.health import pause_after
from tests.fakes.livestatus import (
    NAEMON_COLUMNS,
    Script,
    close_without_answer,
    columns_of,
    framed,
    hang,
    reset,
    rows,
    slow_drip,
    truncated,
)
from tests.fakes.sites import outcome
from tests.sites.asked import HOSTS, LAYOUT, ask, gather

STEP = 0.01


def leave(core):
    """The socket refuses, and whoever was connected is not any more."""
    core.up = False
    for talk in list(core.open):
        talk.close()


@pytest.mark.parametrize("away", [0.02, 0.15, 0.5, 1.0, 1.9])
def test_queries_wait_for_a_core_that_is_away_for_less_than_two_seconds(town, away):
    site = town.site()
    core = town.cores["a"]
    leave(core)
    found = [ask(site) for _ in range(8)]
    town.pass_time(away / 2, STEP)
    found += [ask(site) for _ in range(8)]
    town.pass_time(away / 2, STEP)
    assert found == [[]] * 16
    assert site.connected
    core.up = True
    town.pass_time(1.5 * away + 0.15, STEP)
    assert found == [[[["h1", 0]]]] * 16
    assert len(core.script.queries) == 16
    assert site.connected


def test_a_core_opens_its_socket_before_it_has_time_for_anybody(town):
    script = Script()
    site = town.site(script=script)
    core = town.cores["a"]
    town.pass_time(2, STEP)
    early = ask(site, HOSTS)
    leave(core)
    found = ask(site)
    town.pass_time(1.5, STEP)
    core.up, script.probe = True, hang
    town.pass_time(3, STEP)
    assert found == []
    assert site.connected
    (waiting,) = core.open
    waiting.say(framed(b'[["1.5.2","1.5.1-naemon",1700000000,4711]]'))
    script.probe = None
    town.pass_time(0.1, STEP)
    assert found == [[["h1", 0]]]
    assert early
    leave(core)
    found = ask(site)
    town.pass_time(0.5, STEP)
    core.up, script.probe = True, hang
    town.pass_time(5, STEP)
    assert found[0].value.reason == "hangs: no sign of life within 4 s"


def test_it_is_looked_for_after_50_ms_and_then_ever_more_seldom(town):
    site = town.site()
    core = town.cores["a"]
    town.pass_time(2)
    leave(core)
    before, times = core.connects, []
    for tick in range(3000):
        town.clock.advance(STEP)
        if core.connects > before:
            before = core.connects
            times.append(round(tick * STEP, 2))
    pauses = [round(b - a, 2) for a, b in itertools.pairwise(times)]
    assert pauses[0] == pytest.approx(0.05, abs=0.03)
    assert max(pauses[:8]) < 1
    assert pauses[-1] > 4
    assert len(times) < 25
    assert not site.connected


def test_pauses_grow_to_ten_seconds():
    pauses = [pause_after(failures) for failures in range(1000)]
    assert (pauses[0], pauses[-1]) == (0.05, 10)
    assert pauses == sorted(pauses)


def test_after_two_seconds_the_site_is_down_and_all_who_wait_are_told(town):
    site, other = town.site(), town.site("b")
    core = town.cores["a"]
    leave(core)
    found, both = ask(site), gather(town, [site, other])
    town.pass_time(1.9, STEP)
    assert found == both == []
    assert site.connected
    town.pass_time(0.2, STEP)
    assert (type(found[0].value), found[0].value.reason) == (ConnectError, "connection refused")
    assert [answer.site.id for answer in both[0].answers] == ["b"]
    assert [one.reason for one in both[0].problems] == ["connection refused"]
    assert not site.connected
    assert ask(site)[0].value.reason == "connection refused"  # at once
    core.up = True
    town.pass_time(1.5, STEP)
    assert site.connected


def test_nobody_waits_longer_than_his_own_time_out(town):
    site = town.site(timeout=0.5)
    leave(town.cores["a"])
    found = ask(site)
    town.pass_time(0.45, STEP)
    assert found == []
    town.pass_time(0.1, STEP)
    assert found[0].value.reason == "connection refused"
    assert site.connected


def test_a_site_that_was_never_there_is_waited_for_as_well(town):
    site = town.site(up=None)
    core = town.cores["a"]
    core.up = False
    for attempt, _ in core.hanging:
        core._refuse(attempt)
    core.hanging.clear()
    found = ask(site)
    town.pass_time(1, STEP)
    assert found == []
    assert site.health.state == "pending"
    core.up = True
    town.pass_time(1, STEP)
    assert found == [[["h1", 0]]]


def test_a_query_made_for_another_kind_of_core_is_not_sent_to_the_new_one(town):
    script = Script()
    site = town.site(script=script)
    core = town.cores["a"]
    leave(core)
    found = ask(site)
    script.columns = [one for one in NAEMON_COLUMNS if one[1] != "state"]
    script.status[3] += 1
    town.pass_time(0.5, STEP)
    core.up = True
    town.pass_time(0.5, STEP)
    assert found[0].value.reason == "another core has taken its place"
    assert script.queries == []


def die(core, **status):
    """What kills the core: the query is read, and the socket is gone with the connection."""

    def misdeed(talk, _request):
        leave(core)
        for at, value in status.items():
            core.script.status[int(at.removeprefix("at"))] = value

    return misdeed


def warm(town, site):
    """A kept connection that has served before."""
    found = ask(site)
    town.clock.advance(0)
    assert found == [[["h1", 0]]]


@pytest.mark.parametrize("back", [0.0, 0.1, 0.5, 3.0])
@pytest.mark.parametrize("changes", [{"at3": 4712}, {"at2": 1_700_000_100}])
def test_a_query_that_the_core_did_not_survive_is_never_sent_again(town, back, changes):
    script = Script()
    site, other = town.site(script=script), town.site("b")
    core = town.cores["a"]
    warm(town, site)
    script.plan.append(die(core, **changes))
    before = len(script.queries)
    both, behind = gather(town, [site, other]), None
    town.clock.advance(0)
    behind = ask(site)
    town.pass_time(back, STEP)
    core.up = True
    town.pass_time(5, STEP)
    assert [answer.site.id for answer in both[0].answers] == ["b"]
    (problem,) = both[0].problems
    assert problem.reason in (
        "the core went away while it was asked",
        "the core was restarted while it was asked",
    )
    assert site.connected
    # The one that came after it was never read by the old core, and is answered.
    assert len(script.queries) - before == 1 + (back < 2)
    assert isinstance(behind[0], list) == (back < 2)


def test_a_core_that_is_back_at_once_is_known_by_its_number(town):
    script = Script()
    site = town.site(script=script)
    warm(town, site)

    def replaced(talk, _request):
        script.status[3] += 1
        for one in list(town.cores["a"].open):
            one.close()

    script.plan.append(replaced)
    found = ask(site)
    town.pass_time(1, STEP)
    assert found[0].value.reason == "the core was restarted while it was asked"
    assert len(script.queries) == 2


def test_a_connection_that_a_living_core_dropped_costs_nothing(town):
    script = Script([rows(["h1", 0]), close_without_answer])
    site = town.site(script=script)
    warm(town, site)
    found = ask(site)
    town.pass_time(0.2, STEP)
    assert found == [[["h1", 0]]]
    assert len(script.queries) == 3
    # It was asked meanwhile whether it is still the same one.
    tables = [one.split(b"\n")[0] for one in script.requests]
    assert tables[-2:] == [b"GET status", b"GET hosts"]
    assert columns_of(script.requests[-2])[:2] == ["program_version", "livestatus_version"]


def test_it_is_sent_again_once_and_not_more(town):
    script = Script([rows(["h1", 0]), close_without_answer, close_without_answer])
    site = town.site(script=script)
    warm(town, site)
    found = ask(site)
    town.pass_time(3, STEP)
    assert found[0].value.reason == "connection closed without an answer"
    assert len(script.queries) == 3


PID = 4711
RESTART = {"at2": 1_700_000_100}
"""A reload, and the start of a container in which every core has the same number."""


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("process", "status", "answered"),
    [
        (PID, RESTART, True),  # the system says that the core itself is at the other end
        (0, RESTART, False),  # a core in another container
        (77, RESTART, False),  # a proxy, which lives on when the core does not
        (PID, {**RESTART, "at3": 4712}, False),  # another process
    ],
)
def test_a_reload_is_not_a_death_where_the_system_says_so(town, kept, process, status, answered):
    script = Script(default=hang)
    site = town.site(script=script, up=None)
    core = town.cores["a"]
    core.process, core.up = process, True
    core.let_in()
    town.clock.advance(0)
    if not kept:
        first = ask(site)  # keeps the only connection busy
        town.clock.advance(0)
    found = ask(site)
    town.clock.advance(0)
    assert [talk.client.served > 0 for talk in core.open] == ([True] if kept else [True, False])
    core.process = status.get("at3", process) if process == PID else process
    die(core, **status)(None, None)
    town.pass_time(0.5, STEP)
    assert (found == []) == (process == PID)
    script.default = rows(["h1", 0])
    core.up = True
    town.pass_time(1, STEP)
    if answered:
        assert found == [[["h1", 0]]]
    elif kept or process == PID:
        assert found[0].value.reason.endswith("while it was asked")
    else:
        assert found[0].value.reason == "connection closed without an answer"
    count = len(script.queries)
    if not kept:
        assert (first == [[["h1", 0]]]) == answered
        assert count == (4 if answered else 2)
    else:
        assert count == (2 if answered else 1)


def test_a_living_core_that_closes_a_new_connection_does_not_like_the_query(town):
    script = Script([close_without_answer])
    site = town.site(script=script, up=None)
    core = town.cores["a"]
    core.process, core.up = PID, True
    core.let_in()
    town.clock.advance(0)
    core.open[0].close()
    town.clock.advance(0)
    found = ask(site)
    town.pass_time(2, STEP)
    assert found[0].value.reason == "connection closed without an answer"
    assert len(script.queries) == 1


def test_a_probe_that_was_under_way_before_proves_nothing(town):
    script = Script()
    site = town.site(script=script)
    core = town.cores["a"]
    script.plan.append(hang)
    first = ask(site)
    warm(town, site)
    core.open[0].say(framed(b'[["h1",0]]'))
    assert first == [[["h1", 0]]]
    town.pass_time(2, STEP)
    held = []
    script.probe = lambda talk, request: held.append(talk)
    probing = outcome(site.breaker.probed())
    town.clock.advance(0)
    # The old core answers the probe and dies of the query.
    script.plan.append(lambda talk, _request: None)
    found = ask(site)
    town.clock.advance(0)
    (running,) = (talk for talk in core.open if talk is not held[0])
    running.close()
    town.clock.advance(0)
    script.probe = None
    old = [list(script.status)]
    script.status[3] += 1
    rows(*old)(held[0], b"")
    town.pass_time(1, STEP)
    assert probing == [None]
    assert found[0].value.reason == "the core was restarted while it was asked"
    assert len(script.queries) == 3


def test_nothing_that_was_not_read_is_lost(town):
    """The system resets a Unix socket whose other end was closed with unread bytes in it."""
    script = Script([reset, reset, rows(["h1", 0])])
    site = town.site(script=script)
    script.status[3] += 1  # whatever became of the core
    found = ask(site)
    town.pass_time(1, STEP)
    assert found == [[["h1", 0]]]


def test_over_tcp_a_reset_proves_nothing(town):
    script = Script([rows(["h1", 0]), reset])
    site = town.site(script=script, address="tcp:core.example:6557")
    warm(town, site)
    script.status[3] += 1
    found = ask(site)
    town.pass_time(1, STEP)
    assert found[0].value.reason == "the core was restarted while it was asked"
    assert len(script.queries) == 2


def test_an_answer_that_had_begun_is_asked_for_once_more(town):
    """Its header says how long it is, so that the core had made all of it and lived."""
    script = Script([truncated(["h1", 0])])
    site = town.site(script=script)
    script.status[3] += 1
    found = ask(site)
    town.pass_time(1, STEP)
    assert found == [[["h1", 0]]]
    script.plan.extend([truncated(["h1", 0]), truncated(["h1", 0])])
    found = ask(site)
    town.pass_time(1, STEP)
    assert found[0].value.reason == "connection lost in the middle of an answer"
    assert len(script.queries) == 4


def test_zero_bytes_on_a_fresh_connection_is_a_bad_query(town):
    script = Script([close_without_answer], status=["r2.13.6-1-icinga2", "r2", 1, 2])
    site = town.site(script=script)
    found = ask(site)
    town.pass_time(1, STEP)
    assert found[0].value.reason == "connection closed without an answer"
    assert len(script.queries) == 1


REASON = "hangs: no sign of life within 1 s"
ICINGA2 = ["r2.13.6-1-icinga2", "r2.13.6-1", 1_700_000_000, 1]
SHINKEN = ["2.4", "2.4-shinken", 1_700_000_000, 1]


def freeze(script):
    script.default = script.probe = hang


def thaw(script):
    script.default, script.probe = rows(["h1", 0]), None


@pytest.mark.parametrize("status", [None, ICINGA2])
def test_requests_that_wait_are_answered_after_four_seconds_and_new_ones_at_once(town, status):
    script = Script(**({"status": list(status)} if status else {}))
    hung, good = town.site("hung", script, timeout=30), town.site("good")
    town.pass_time(2)
    freeze(script)
    first = gather(town, [hung, good])
    town.pass_time(2)
    second = gather(town, [hung, good])
    town.pass_time(1.9)
    assert first == second == []
    assert len(town.cores["hung"].open) <= hung.pool.limit + 1
    town.pass_time(0.3)
    for found in (first, second):
        assert [answer.site.id for answer in found[0].answers] == ["good"]
        ((problem),) = found[0].problems
        assert (problem.site, problem.reason, problem.timed_out) == ("hung", REASON, True)
    at_once = gather(town, [hung, good])
    town.clock.advance(0)
    assert [one.reason for one in at_once[0].problems] == [REASON]
    alone = gather(town, [hung])
    assert isinstance(alone[0].value, SitesTimedOut)
    assert (hung.connected, hung.last_error) == (False, REASON)


def test_it_returns_by_itself_as_soon_as_the_probe_is_answered(town):
    script = Script()
    site = town.site(script=script, timeout=30)
    freeze(script)
    found = ask(site)
    town.pass_time(6)
    assert isinstance(found[0].value, HangingError)
    assert not site.connected
    thaw(script)
    (waiting,) = town.cores["a"].open  # the probe goes on
    waiting.say(framed(b'[["1.5.2","1.5.1-naemon",1700000000,4711]]\n'))
    assert site.connected
    found = ask(site)
    town.clock.advance(0)
    assert found == [[["h1", 0]]]


def test_it_returns_when_the_probe_was_lost(town):
    script = Script()
    site = town.site(script=script, timeout=30)
    freeze(script)
    ask(site)
    town.pass_time(30)
    assert not site.connected
    thaw(script)
    town.pass_time(11)
    assert site.connected


def test_a_core_that_hangs_later_is_noticed_as_well(town):
    script = Script(default=hang)
    site = town.site(script=script, timeout=30)
    found = ask(site)
    town.pass_time(12)
    assert found == []
    script.probe = hang
    town.pass_time(4.2)
    assert found[0].value.reason == REASON


def test_bytes_of_any_answer_are_a_sign_of_life(town):
    script = Script([slow_drip(["h1", 0], every=0.5)])
    site = town.site(script=script, timeout=30)
    town.pass_time(2)
    script.probe = hang
    found = ask(site)
    town.pass_time(14)
    assert found == []
    assert site.connected
    town.pass_time(5)
    assert found == [[["h1", 0]]]


def test_log_queries_are_told_too(town):
    script = Script()
    site = town.site(script=script, timeout=2.0)
    freeze(script)
    since = Test("time", ">=", "0")
    columns = ("time", "message")
    log = ask(site, Pushed(table="log", columns=columns, filter=since, waits_long=True), None)
    town.pass_time(4.2)
    assert log[0].value.reason == REASON


def test_a_core_that_answers_one_after_the_other_does_not_hang_behind_a_long_query(town):
    script = Script(status=list(SHINKEN))
    site = town.site(script=script, timeout=30)
    assert site.capabilities.kind == "shinken"
    freeze(script)
    found = ask(site)
    town.pass_time(9)
    assert found == []
    town.cores["a"].open[0].say(framed(b'[["h1",0]]\n'))
    assert found == [[["h1", 0]]]


def test_all_who_wait_are_told_when_the_first_of_them_leaves_with_the_others(town):
    script = Script()
    site = town.site(script=script, timeout=30)
    freeze(script)
    queries = [Deferred.fromCoroutine(site.ask(HOSTS, LAYOUT)) for _ in range(4)]
    found = []
    queries[0].addErrback(lambda failure: (queries[2].cancel(), failure)[1])
    for query in queries:
        query.addErrback(lambda failure: found.append(failure.type.__name__))
    town.pass_time(4.2)
    assert sorted(found) == ["CancelledError", "HangingError", "HangingError", "HangingError"]
