"""Equal queries that are under way at the same moment are sent once."""

import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred

from monrest.livestatus.core_errors import RefusedError
from monrest.livestatus.framing import RowParser
from monrest.livestatus.inbox import StoredRows
from monrest.query.model import Pushed, Test
from monrest.sites.asking import prepare
from monrest.sites.commands import send
from monrest.sites.inflight import MOST_ROWS, SharedQueries
from tests.fakes.clocks import Wall
from tests.fakes.livestatus import Script, hang, rows
from tests.fakes.sites import outcome
from tests.fakes.threads import Reactor, own_memory
from tests.sites.asked import HOSTS, LAYOUT, gather, log


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
