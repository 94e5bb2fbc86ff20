"""Many sites at once: concurrency, partial failure, cancellation."""

import gc
import weakref

import pytest
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import BadRequest
from monrest.base.values import SiteProblem
from monrest.query.model import Pushed, Test
from monrest.sites.fanout import fan_out
from tests.fakes.livestatus import Script, hang, invalid_json, refused, rows
from tests.fakes.sites import outcome
from tests.sites.asked import HOSTS, LAYOUT, gather


def later(seconds, *wanted):
    return lambda talk, request: talk.later(seconds, lambda: rows(*wanted)(talk, request))


def test_all_sites_at_the_same_time(town):
    sites = [
        town.site(f"s{n}", Script(default=later(0.05 + n / 1000, [f"h{n}", 0]))) for n in range(10)
    ]
    found = gather(town, sites)
    town.pass_time(0.058, 0.001)
    assert found == []
    town.pass_time(0.002, 0.001)
    gathered = found[0]
    assert [answer.rows for answer in gathered.answers] == [[[f"h{n}", 0]] for n in range(10)]
    assert [answer.site for answer in gathered.answers] == sites
    assert gathered.problems == ()
    assert gathered.seconds == pytest.approx(0.059, abs=0.002)
    assert [answer.seconds for answer in gathered.answers] == pytest.approx(
        [0.05 + n / 1000 for n in range(10)], abs=0.002
    )
    assert all(answer.asked is HOSTS for answer in gathered.answers)
    assert gathered.answers[0].capabilities is sites[0].capabilities


def test_failing_sites_are_named_beside_the_others(town):
    sites = [
        town.site("ok"),
        town.site("refuses", Script([refused(400, b"bad\nworse")])),
        town.site("dead", up=False),
        town.site("mad", Script([invalid_json])),
        town.site("narrow", Script([rows(["h1"])])),
        town.site("hangs", Script([hang]), timeout=2.0),
    ]
    found = gather(town, sites)
    town.pass_time(3)
    gathered = found[0]
    assert [answer.site.id for answer in gathered.answers] == ["ok"]
    assert gathered.problems == (
        SiteProblem("refuses", "REFUSES", "400: bad", False),
        SiteProblem("dead", "DEAD", "connection refused", False),
        SiteProblem("mad", "MAD", "protocol error: not valid JSON near byte 17", False),
        SiteProblem("narrow", "NARROW", "protocol error: 1 columns instead of 2", False),
        SiteProblem("hangs", "HANGS", "timed out after 2 s", True),
    )


def test_no_sites(town):
    assert gather(town, [])[0].check(BadRequest)


def test_a_site_without_the_table_has_no_answer_and_no_problem(town):
    sites = [town.site("a"), town.site("b"), town.site("c", up=False)]
    found = gather(town, sites, lambda site, _: HOSTS if site.id == "a" else None)
    town.clock.advance(0)
    assert [answer.site.id for answer in found[0].answers] == ["a"]
    assert [problem.site for problem in found[0].problems] == ["c"]
    found = gather(town, sites, lambda *_: None)
    assert found[0].answers == ()
    assert len(town.cores["b"].script.queries) == 0


def test_a_plan_that_cannot_be_sent_fails_the_request_and_lets_go_of_the_rest(town):
    sites = [town.site("a", Script([hang])), town.site("b")]
    bad = Pushed(table="hosts", columns=("name",), filter=Test("name", "=", "a\nb"))
    found = gather(town, sites, lambda site, _: HOSTS if site.id == "a" else bad)
    assert found[0].check(BadRequest)
    town.clock.advance(0)
    assert town.cores["a"].talks[0].aborted


def test_a_plan_that_fails_later_does_so_too(town):
    sites = [town.site("a", Script([hang])), town.site("b", up=None)]

    def plan(site, _capabilities):
        if site.id == "b":
            raise BadRequest("no", "x")
        return HOSTS

    found = gather(town, sites, plan)
    town.cores["b"].let_in()
    town.clock.advance(0)
    assert found[0].check(BadRequest)
    assert town.cores["a"].talks[0].aborted


def test_cancelling_ends_everything(town):
    sites = [
        town.site("running", Script([hang])),
        town.site("answered"),
        town.site("pending", up=None),
    ]
    request = Deferred.fromCoroutine(fan_out(sites, lambda *_: HOSTS, LAYOUT, town.clock))
    gone = weakref.ref(request)
    found = outcome(request)
    town.clock.advance(0)
    request.cancel()
    assert found[0].check(CancelledError)
    town.clock.advance(0)
    assert town.cores["running"].talks[0].aborted
    assert not town.cores["answered"].talks[0].aborted
    assert sites[0].connected
    del request, found
    gc.collect()
    assert gone() is None
    assert len(gather(town, sites[:2])) == 0
    town.clock.advance(0)


def test_progress_is_that_of_the_sites_from_the_beginning_on(town):
    sites = [town.site("a"), town.site("b", Script([later(0.5, ["h1", 0])]))]
    reported = []
    gather(town, sites, progress=lambda percent, message: reported.append((percent, message)))
    assert reported == [(0.0, "0 of 2 sites have answered")]
    town.pass_time(1)
    assert reported[1:] == [
        (50.0, "1 of 2 sites have answered"),
        (100.0, "2 of 2 sites have answered"),
    ]
