"""A core that takes connections and says nothing, and one that is only slow."""

import pytest
from twisted.internet.defer import Deferred

from monrest.base.errors import SitesTimedOut
from monrest.livestatus.core_errors import HangingError
from monrest.query.model import Pushed, Test
from tests.fakes.livestatus import Script, framed, hang, rows, slow_drip
from tests.sites.asked import HOSTS, LAYOUT, ask, gather

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
