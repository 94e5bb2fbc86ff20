"""Many sites at once: concurrency, partial failure, cancellation; requests with less time than the
sites have; equal queries that are under way at the same moment and are sent once.
"""

import gc
import weakref

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred

from monrest.base.errors import BadRequest
from monrest.base.values import SiteProblem
from monrest.livestatus.core_errors import RefusedError
from monrest.livestatus.framing import RowParser
from monrest.livestatus.inbox import StoredRows
from monrest.query.model import Pushed, Test
from monrest.sites.asking import prepare
from monrest.sites.commands import send
from monrest.sites.fanout import fan_out
from monrest.sites.inflight import MOST_ROWS, SharedQueries
from monrest.sites.site import Deadline
from tests.fakes.clocks import Wall
from tests.fakes.livestatus import Script, fall_silent, hang, invalid_json, refused, rows
from tests.fakes.sites import outcome
from tests.fakes.threads import Reactor, own_memory
from tests.sites.asked import HOSTS, LAYOUT, ask, gather, log


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


LOG = Pushed(
    table="log", columns=("time", "message"), filter=Test("time", ">=", "0"), waits_long=True
)


def gather_within(town, seconds, *sites, pushed=HOSTS, layout=LAYOUT):
    deadline = Deadline(seconds, town.clock.seconds() + seconds)
    limited = [site.within(deadline) for site in sites]
    asked = fan_out(limited, lambda _site, _capabilities: pushed, layout, town.clock)
    return outcome(Deferred.fromCoroutine(asked))


def problems(found):
    return [(one.site, one.reason, one.timed_out) for one in found[0].problems]


def test_a_site_that_is_too_slow_is_named_in_time(town):
    slow, good = town.site("slow", Script(default=hang)), town.site("good")
    found = gather_within(town, 2, slow, good)
    town.pass_time(1.9)
    assert found == []
    town.pass_time(0.2)
    assert [answer.site.id for answer in found[0].answers] == ["good"]
    assert problems(found) == [("slow", "timed out after 2 s", True)]
    assert slow.connected
    assert not town.cores["slow"].script.plan


def test_impatience_proves_nothing(town):
    script = Script(default=hang)
    site = town.site(script=script, timeout=30)
    script.probe = hang
    for _ in range(5):
        found = gather_within(town, 0.1, site, town.site("other"))
        town.pass_time(0.2)
        assert problems(found) == [("a", "timed out after 0.1 s", True)]
    assert site.connected
    assert site.breaker.error is None


def test_a_hanging_core_is_noticed_by_those_in_a_hurry_too(town):
    script = Script(default=hang)
    site = town.site(script=script, timeout=30)
    town.pass_time(2)
    script.probe = hang
    gather_within(town, 2.5, site, town.site("other"))
    town.pass_time(2.6)
    assert not site.connected


def test_all_of_a_request_has_that_time_together(town):
    site = town.site(script=Script(default=hang))
    limited = site.within(Deadline(2, town.clock.seconds() + 2))
    town.pass_time(2.1)
    before = len(town.cores["a"].script.requests)
    found = ask(limited)
    assert found[0].value.reason == "timed out after 2 s"
    assert len(town.cores["a"].script.requests) == before


def test_log_queries_have_no_more(town):
    found = gather_within(
        town, 2, town.site(script=Script(default=hang)), town.site("b"), pushed=LOG, layout=None
    )
    town.pass_time(2.1)
    assert problems(found) == [("a", "timed out after 2 s", True)]


def test_the_first_answer_of_a_site_is_waited_for_no_longer(town):
    pending, good = town.site("pending", up=None), town.site("good")
    found = gather_within(town, 1, pending, good)
    town.pass_time(0.9)
    assert found == []
    town.pass_time(0.2)
    assert problems(found) == [("pending", "timed out after 1 s", True)]


def test_what_is_learned_meanwhile_is_known(town):
    pending = town.site("pending", up=None)
    found = gather_within(town, 1, pending)
    town.cores["pending"].let_in()
    town.clock.advance(0)
    assert [answer.rows for answer in found[0].answers] == [[["h1", 0]]]


def test_a_core_that_is_away_is_waited_for_no_longer(town):
    away, good = town.site("away"), town.site("good")
    core = town.cores["away"]
    core.up = False
    core.open[0].close()
    found = gather_within(town, 0.5, away, good)
    town.pass_time(0.6)
    assert problems(found) == [("away", "connection refused", False)]
    assert away.connected


def test_commands_say_what_is_not_known_by_then(town):
    site = town.site(script=Script(orders=[fall_silent]))
    limited = site.within(Deadline(1, town.clock.seconds() + 1))
    found = outcome(Deferred.fromCoroutine(send([(limited, log(1))], town.clock, Wall(town.clock))))
    town.pass_time(1.1)
    ((sent,),) = found
    assert (set(sent.doubtful), sent.problem.reason) == ({0}, "timed out after 1 s")
    assert site.connected


class Asked:
    """Queries that are sent only when the test says so."""

    def __init__(self):
        self.queries = SharedQueries()
        self.sent = []
        self.cancelled = []

    def ask(self, ask):
        def send():
            self.sent.append(Deferred(self.cancelled.append))
            return self.sent[-1]

        return self.queries.ask(ask, send)


@pytest.fixture
def asked():
    return Asked()


@pytest.fixture
def hosts(town):
    site = town.site()
    return prepare(HOSTS, site.capabilities, LAYOUT)


def test_one_query_answers_all_who_ask_the_same(asked, hosts):
    first, second, third = (outcome(asked.ask(hosts)) for _ in range(3))
    (query,) = asked.sent
    assert not first
    assert not second
    query.callback([["a", 0], ["b", 1]])
    assert first == second == third == [[["a", 0], ["b", 1]]]
    first[0][0].append("more")
    assert second[0][0] == ["a", 0]
    asked.ask(hosts)
    assert len(asked.sent) == 2


def test_what_differs_in_a_byte_is_asked_for_itself(asked, town):
    site = town.site("b")
    for pushed in (
        HOSTS,
        Pushed(table="hosts", columns=("name", "state"), filter=Test("state", "=", "0")),
    ):
        asked.ask(prepare(pushed, site.capabilities, LAYOUT))
    assert len(asked.sent) == 2


def test_a_failure_is_told_to_all(asked, hosts):
    found = [outcome(asked.ask(hosts)) for _ in range(3)]
    asked.sent[0].errback(RefusedError(452, "no"))
    assert [type(one[0].value) for one in found] == [RefusedError] * 3


def test_who_leaves_first_takes_nothing_from_the_others(asked, hosts):
    first = asked.ask(hosts)
    left = outcome(first)
    others = [outcome(asked.ask(hosts)) for _ in range(2)]
    first.cancel()
    assert isinstance(left[0].value, CancelledError)
    assert len(asked.sent) == 2
    asked.sent[1].callback([["a", 0]])
    assert others == [[[["a", 0]]], [[["a", 0]]]]


def test_a_follower_who_leaves_is_forgotten(asked, hosts):
    first = outcome(asked.ask(hosts))
    second = asked.ask(hosts)
    left = outcome(second)
    second.cancel()
    assert isinstance(left[0].value, CancelledError)
    assert not asked.cancelled
    asked.sent[0].callback([["a", 0]])
    assert first == [[["a", 0]]]


def test_who_leaves_while_asking_anew_ends_its_own_query(asked, hosts):
    first, second = asked.ask(hosts), asked.ask(hosts)
    outcome(first), outcome(second)
    first.cancel()
    second.cancel()
    assert len(asked.cancelled) == 2


def test_a_large_answer_is_not_copied(asked, hosts):
    large = [["a", 0]] * (MOST_ROWS + 1)
    first, second = outcome(asked.ask(hosts)), outcome(asked.ask(hosts))
    asked.sent[0].callback(large)
    assert first == [large]
    assert not second
    asked.sent[1].callback(large)
    assert second == [large]
    asked.ask(hosts)
    asked.ask(hosts)
    assert len(asked.sent) == 4


def test_rows_that_are_stored_are_for_one_reader(asked, hosts):
    inbox = own_memory(Reactor()).inbox()
    stored = [StoredRows(inbox, at) for at in range(2)]
    found = [outcome(asked.ask(evolve(hosts, stored=one))) for one in stored]
    stored[0].begin_as(RowParser)
    stored[0].add(b'[["a", 0]]')
    asked.sent[0].callback([])
    assert found == [[[]], []]
    inbox.let_go()


def test_requests_of_many_are_one_for_the_core(town):
    script = Script(default=rows(["h1", 0]))
    site = town.site(script=script)
    asks = [gather(town, [site], shared=True) for _ in range(50)]
    town.clock.advance(0)
    assert len(script.queries) == 1
    assert all(one[0].answers[0].rows == [["h1", 0]] for one in asks)


def test_requests_that_are_not_shared_are_asked_each(town):
    script = Script(default=rows(["h1", 0]))
    site = town.site(script=script)
    for _ in range(3):
        gather(town, [site])
    town.pass_time(1)
    assert len(script.queries) == 3


def test_a_command_ends_the_waiting_for_older_answers(town):
    """What was asked before a command does not say what it has changed."""
    script = Script([hang], default=rows(["h1", 1]))
    site = town.site(script=script)
    before = gather(town, [site], shared=True)
    sent = outcome(Deferred.fromCoroutine(send([(site, log(1))], town.clock, Wall(town.clock))))
    town.pass_time(1)
    assert len(sent) == 1
    after = gather(town, [site], shared=True)
    town.pass_time(1)
    assert not before
    assert after[0].answers[0].rows == [["h1", 1]]
