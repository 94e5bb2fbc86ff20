"""Sites of an LMD: what is asked of several in one turn is one request, and its end shows soon."""

import orjson
import pytest
from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.config.sections import LmdConfig
from monrest.livestatus.core_errors import (
    BrokenConnectionError,
    NoHeaderError,
    ProtocolError,
    RefusedError,
)
from monrest.livestatus.inbox import StoredRows
from monrest.query.model import Group, Pushed, Stat, Test
from monrest.sites.asking import prepare
from monrest.sites.lmd.joint_queries import JointQueries
from monrest.sites.lmd.lmd_source import SITE_COLUMNS, LmdSource, behind, capabilities_of, facts_of
from tests.fakes.livestatus import MemoryCore, Script, as_json, columns_of, framed, table_of
from tests.fakes.sites import outcome
from tests.fakes.threads import Reactor, own_memory
from tests.sites.asked import HOSTS, LAYOUT

CORE = capabilities_of(
    [
        *(["hosts", name, "string"] for name in ("name", "alias")),
        *(["hosts", name, "int"] for name in ("state", "has_been_checked")),
        *(["services", name, "string"] for name in ("host_name", "description")),
        *(["contacts", name, "string"] for name in ("name", "id")),
        ["log", "current_host_contacts", "list"],
        ["hosts", "custom_variables", "list"],
        ["hosts", "lmd_last_cache_update", "float"],
    ]
)


class Wire:
    """The pool of an LMD: what is asked waits until the test answers."""

    def __init__(self):
        self.open = []
        self.cancelled = 0

    def query(self, asked, timeout):
        done = Deferred(self._cancel)
        self.open.append((asked, timeout, done))
        return done

    def _cancel(self, _):
        self.cancelled += 1

    def answer(self, rows, failed=(), size=1000, cut=0):
        asked, _, done = self.open.pop(0)
        body = b",\n".join(map(orjson.dumps, rows))
        body = body[:cut] + b'"nonsense' + body[cut + 9 :] if cut else body
        data = b'{"data":\n[' + body + b']\n,"failed": ' + orjson.dumps(dict(failed)) + b"}\n"
        data = framed(data)
        reader, found = asked.reader(), None
        for at in range(0, len(data), size):
            found = reader.feed(data[at : at + size])
        done.callback(found)


class World:
    def __init__(self):
        self.clock, self.pool, self.logs, self.lost = Clock(), Wire(), Wire(), []
        self.joint = JointQueries(self.clock, self.pool, self.logs, lambda: self.lost.append(1))

    def ask(self, site, asked, timeout=30.0):
        return outcome(self.joint.query(site, asked, timeout))

    def turn(self):
        self.clock.advance(0)


@pytest.fixture
def world():
    return World()


def lines(wire, at=0):
    return wire.open[at][0].request.decode().split("\n")


def test_who_asks_twice_or_something_else_is_asked_by_itself(world):
    asked, other = prepare(HOSTS, CORE, LAYOUT), prepare(HOSTS, CORE, LAYOUT[::-1])
    for site, one in (("a", asked), ("a", asked), ("b", other)):
        world.ask(site, one)
    world.ask("c", asked, timeout=1.0)
    world.turn()
    assert [lines(world.pool, at)[-3] for at in range(4)] == [
        f"Backends: {site}" for site in ("a", "a", "b", "c")
    ]
    world.turn()


def test_a_limit_among_other_sites_is_another_request(world):
    asked = evolve(prepare(evolve(HOSTS, limit=2), CORE, LAYOUT), among="a b")
    for site, one in (("a", asked), ("b", asked), ("c", evolve(asked, among="c"))):
        world.ask(site, one)
    world.turn()
    assert [lines(world.pool, at)[-3] for at in range(2)] == ["Backends: a b", "Backends: c"]


def test_strange_rows_break_the_answer(world):
    for rows in ([["h1", 0, "zz"]], [["h1", 0, ["a"]]]):
        found = world.ask("a", prepare(HOSTS, CORE, LAYOUT))
        world.turn()
        world.pool.answer(rows)
        assert found[0].check(ProtocolError)
    world.ask("a", prepare(HOSTS, CORE, LAYOUT))
    world.turn()
    with pytest.raises(ProtocolError):
        world.pool.answer([["h1", 0]])


def test_a_text_without_header_is_a_refusal(world):
    found = world.ask("a", prepare(HOSTS, CORE, LAYOUT))
    world.turn()
    world.pool.open[0][2].errback(NoHeaderError("bad request: no such thing"))
    assert found[0].check(RefusedError)
    assert found[0].value.reason == "400: bad request: no such thing"
    assert not world.lost


def test_a_connection_that_ends_is_told(world):
    found = [world.ask(site, prepare(HOSTS, CORE, LAYOUT)) for site in "ab"]
    world.turn()
    for _, _, done in world.pool.open:
        done.errback(BrokenConnectionError("gone", kept=True))
    assert [one[0].value.kept for one in found] == [True, True]
    assert world.lost


def test_one_who_leaves_does_not_end_the_query_of_others(world):
    asked = prepare(HOSTS, CORE, LAYOUT)
    early = world.joint.query("z", asked, 30.0)
    first, second = (world.joint.query(site, asked, 30.0) for site in "ab")
    gone = [outcome(early), outcome(first)]
    rest = outcome(second)
    early.cancel()
    world.turn()
    assert lines(world.pool)[-3] == "Backends: a b"
    first.cancel()
    assert (world.pool.cancelled, len(gone[1])) == (0, 1)
    world.pool.answer([["h1", 0, "a"], ["h2", 0, "b"]])
    assert rest == [[["h2", 0]]]


def test_the_query_ends_when_all_have_left(world):
    asked = prepare(HOSTS, CORE, LAYOUT)
    waiting = [world.joint.query(site, asked, 30.0) for site in "ab"]
    found = [outcome(one) for one in waiting]
    world.turn()
    for one in waiting:
        one.cancel()
    assert world.pool.cancelled == 1
    assert [len(one) for one in found] == [1, 1]


def test_logs_are_asked_site_by_site_over_their_own_connections(world):
    since = Test("time", ">=", "1")
    log = Pushed(table="log", columns=("time",), filter=since, waits_long=True)
    asked = prepare(log, CORE)
    for site in "ab":
        world.ask(site, asked)
    world.turn()
    assert not world.pool.open
    assert [lines(world.logs, at)[-3] for at in (0, 1)] == ["Backends: a", "Backends: b"]


def inbox_of_little():
    """Where an answer is stored from a kilobyte on."""
    memory = own_memory(Reactor())
    memory.free = 1000
    return memory.inbox()


def test_large_answers_are_stored_by_site(world):
    """Each question has its own request: what is stored for one is let go of with it."""
    inboxes = [inbox_of_little() for _ in range(2)]
    stored = [{site: StoredRows(inbox, site) for site in "ab"} for inbox in inboxes]
    rows = [[f"h{at:05} {'x' * 60}", at % 3, "ab"[at % 2]] for at in range(6000)]
    asked = prepare(HOSTS, CORE, LAYOUT)
    found = [
        world.ask(site, evolve(asked, stored=one)) for each in stored for site, one in each.items()
    ]
    world.turn()
    for each in stored:
        world.pool.answer([[*row] for row in rows], size=65536)
        for site, one in each.items():
            kept = [row for batch in one.batches() for row in batch]
            assert kept == [row[:2] for row in rows if row[2] == site]
    assert found == [[[]]] * 4
    for inbox in inboxes:
        inbox.let_go()
        assert inbox.memory.files.stored == 0


def test_statistics_come_back_as_numbers(world):
    counted = Pushed(
        table="hosts", columns=("state", "name"), stats=(Stat("count"), Stat("sum", "state"))
    )
    found = world.ask("a", prepare(counted, CORE))
    world.turn()
    world.pool.answer([["2", "7", "a", 3, None], ["0", "h", "a", 1.0, 12.5]])
    assert found == [[[2, "7", 3, 0], [0, "h", 1, 12.5]]]


@pytest.mark.parametrize("cut", [2, 200_000])
def test_a_large_answer_that_is_none(world, cut):
    inbox = inbox_of_little()
    asked = evolve(prepare(HOSTS, CORE, LAYOUT), stored=StoredRows(inbox, "a"))
    found = world.ask("a", asked)
    world.turn()
    rows = [[f"h{at:05} {'x' * 60}", at % 3, "a"] for at in range(6000)]
    world.pool.answer(rows, size=65536, cut=cut)
    assert found.pop().check(ProtocolError)
    inbox.let_go()


def test_columns_that_it_does_not_list(world):
    services = CORE.tables["services"]
    assert {"description", "host_alias", "host_state", "host_custom_variables"} <= services.keys()
    assert services["host_custom_variables"] == "dict"
    assert CORE.tables["contacts"]["id"] == "int"
    assert CORE.tables["log"] == {"current_host_contacts": "list"}
    assert "hostgroup_name" not in CORE.tables["hostsbygroup"]
    assert not CORE.has("hosts", "lmd_last_cache_update")
    assert not CORE.has("services", "host_address")


def site_row(key, status=0, **more):
    row = {"key": key, "name": key.upper(), "status": status, "flags": [], **more}
    return [row.get(name, "") for name in SITE_COLUMNS]


def program_row(key):
    return [key, "1.5", "1.5-naemon", 1, 2, 3.0]


def test_sites_of_a_list():
    rows = [
        site_row("b", 1),
        site_row("a", 0, section="x"),
        site_row("c", 2, last_error="dead\nvery"),
        site_row("bad id"),
        site_row("ALL"),
        site_row("far", 0, flags=["MultiBackend"]),
        site_row("sub", 5, parent="far"),
        site_row("lone", 0, flags=["MultiBackend"]),
    ]
    found, strange = facts_of(rows, [program_row(key) for key in ("a", "b", "c")], "run")
    assert list(found) == ["a", "b", "c", "lone", "sub"]
    assert strange == ["ALL", "bad id"]
    assert [one.up for one in found.values()] == [True, True, False, False, False]
    assert [one.begins for one in found.values()] == [False, False, False, True, True]
    assert (found["c"].last_error, found["a"].section, found["b"].section) == (
        "dead",
        "x",
        "Default",
    )


@pytest.mark.parametrize(
    ("flags", "icinga2"),
    [(["Naemon"], False), (["Icinga2"], True), (["icinga2"], True), ([], False)],
)
def test_an_icinga2_behind_an_lmd(flags, icinga2):
    """A host that was never checked is down there, and up in the API."""
    found, _ = facts_of([site_row("a", 0, flags=flags)], [program_row("a")], "run")
    assert found["a"].icinga2 is icinga2
    core = behind(CORE, icinga2=found["a"].icinga2)
    assert (core.icinga2, core.kind, core.key != CORE.key) == (icinga2, "lmd", icinga2)
    asked = prepare(HOSTS, core, LAYOUT)
    checked = " has_been_checked" if icinga2 else ""
    assert f"Columns: name state{checked} peer_key\n".encode() in asked.request
    if icinga2:
        assert asked.transform is not None
        assert asked.transform([["a", 1, 0], ["b", 1, 1]]) == [["a", 0], ["b", 1]]


def test_too_many_names_are_shared_out(world):
    names = Group("or", tuple(Test("name", "=", f"h{at}") for at in range(20_500)))
    whole = Group("and", (Test("state", "=", "0"), names))
    found = world.ask("a", prepare(Pushed(table="hosts", columns=("name",), filter=whole), CORE))
    world.turn()
    counts = []
    for at in range(21):
        counts.append(sum(line.startswith("Filter: ") for line in lines(world.pool)))
        assert "Filter: state = 0" in lines(world.pool)
        world.pool.answer([[f"h{at}", "a"]])
    assert counts == [1000] * 20 + [520 + 1]
    assert found == [[[f"h{at}"] for at in range(21)]]


STEP = 0.05
LISTED = {
    "sites": [{"key": one, "peer_key": one, "name": one.upper(), "status": 0} for one in "ab"],
    "status": [
        {"peer_key": one, "program_version": "1.5.2-naemon", "program_start": 5} for one in "ab"
    ],
    "columns": [{"table": "hosts", "name": one, "type": "string"} for one in ("name", "peer_key")],
}


class LmdScript(Script):
    def answer(self, talk, request):
        columns = columns_of(request)
        told = [[row.get(name, "") for name in columns] for row in LISTED[table_of(request)]]
        talk.write(framed(as_json(told)))


@pytest.fixture
def core(town):
    return MemoryCore(town.clock, LmdScript())


@pytest.fixture
def source(town, core):
    config = LmdConfig(address="unix:/run/lmd")
    made = LmdSource(reactor=town.clock, config=config, changed=lambda: None, memory=town.memory)
    made.endpoint = core
    made.startService()
    town.pass_time(3)
    yield made
    ended = []
    made.stopService().addBoth(ended.append)
    town.pass_time(1)
    assert ended == [None]


def up(source):
    return [site.id for site in source.sites if site.breaker.error is None]


@pytest.mark.parametrize("before", [step * STEP for step in range(0, 60, 7)])
@pytest.mark.parametrize("away", [1, 1.3, 20, 600])
def test_an_lmd_that_ends_is_down_within_a_second_and_back_within_two(
    town, core, source, before, away
):
    """Whenever in the time between two looks that is, and however long it was away."""
    assert up(source) == ["a", "b"]
    town.pass_time(before, STEP)
    core.up = False
    for talk in core.open:
        talk.close()
    town.pass_time(1, STEP)
    assert up(source) == []
    town.pass_time(away, STEP if away < 20 else 1)
    assert up(source) == []
    core.up = True
    town.pass_time(2, STEP)
    assert up(source) == ["a", "b"]
