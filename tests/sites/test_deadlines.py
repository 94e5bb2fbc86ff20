"""A request may have less time than the sites are given."""

from twisted.internet.defer import Deferred

from monrest.query.model import Pushed, Test
from monrest.sites.commands import send
from monrest.sites.fanout import fan_out
from monrest.sites.site import Deadline
from tests.fakes.clocks import Wall
from tests.fakes.livestatus import Script, fall_silent, hang
from tests.fakes.sites import outcome
from tests.sites.asked import HOSTS, LAYOUT, ask, log

LOG = Pushed(
    table="log", columns=("time", "message"), filter=Test("time", ">=", "0"), waits_long=True
)


def gather(town, seconds, *sites, pushed=HOSTS, layout=LAYOUT):
    deadline = Deadline(seconds, town.clock.seconds() + seconds)
    plan = lambda _site, _capabilities: pushed  # noqa: E731
    limited = [site.within(deadline) for site in sites]
    return outcome(Deferred.fromCoroutine(fan_out(limited, plan, layout, town.clock)))


def problems(found):
    return [(one.site, one.reason, one.timed_out) for one in found[0].problems]


def test_a_site_that_is_too_slow_is_named_in_time(town):
    slow, good = town.site("slow", Script(default=hang)), town.site("good")
    found = gather(town, 2, slow, good)
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
        found = gather(town, 0.1, site, town.site("other"))
        town.pass_time(0.2)
        assert problems(found) == [("a", "timed out after 0.1 s", True)]
    assert site.connected
    assert site.breaker.error is None


def test_a_hanging_core_is_noticed_by_those_in_a_hurry_too(town):
    script = Script(default=hang)
    site = town.site(script=script, timeout=30)
    town.pass_time(2)
    script.probe = hang
    gather(town, 2.5, site, town.site("other"))
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
    found = gather(
        town, 2, town.site(script=Script(default=hang)), town.site("b"), pushed=LOG, layout=None
    )
    town.pass_time(2.1)
    assert problems(found) == [("a", "timed out after 2 s", True)]


def test_the_first_answer_of_a_site_is_waited_for_no_longer(town):
    pending, good = town.site("pending", up=None), town.site("good")
    found = gather(town, 1, pending, good)
    town.pass_time(0.9)
    assert found == []
    town.pass_time(0.2)
    assert problems(found) == [("pending", "timed out after 1 s", True)]


def test_what_is_learned_meanwhile_is_known(town):
    pending = town.site("pending", up=None)
    found = gather(town, 1, pending)
    town.cores["pending"].let_in()
    town.clock.advance(0)
    assert [answer.rows for answer in found[0].answers] == [[["h1", 0]]]


def test_a_core_that_is_away_is_waited_for_no_longer(town):
    away, good = town.site("away"), town.site("good")
    core = town.cores["away"]
    core.up = False
    core.open[0].close()
    found = gather(town, 0.5, away, good)
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
