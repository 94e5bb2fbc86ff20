"""The log cache never changes an answer: random queries and reports over random logs, with and without it.

The same embedded core answers each query twice, once through the cache and once all by itself.
The cache ends before the newest lines, some lines are late, some hosts are gone, and who asks
sees everything or only what he is a contact of.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_twisted import blockon
from twisted.internet import reactor
from twisted.internet.defer import ensureDeferred

from monrest.api.visibility import HOSTS, SERVICES, SYSTEM
from monrest.base.errors import RestError
from monrest.base.values import ADMIN, Document, Identity, RestRequest
from monrest.config import AuthConfig, Config, LogcacheConfig, SiteConfig
from monrest.demo.service import DemoCore
from monrest.logs import ask as loglines
from monrest.logs import reader
from monrest.logs.cache import LogCache
from monrest.query import lines
from monrest.sites.registry import Registry
from monrest.sites.site import Site
from monrest.store.database import Database
from tests.examples import examples
from tests.fakes.clocks import Wall
from tests.fakes.context import make_context
from tests.fakes.standstill import Standstill
from tests.fakes.threads import threaded_memory

NOW = 1_795_242_791
DAY = 86400
ALL = Identity(user="root", superuser=True)
ANN = Identity(user="ann")
OBJECTS = """
define contact {
    contact_name ann
    host_notification_commands check
    service_notification_commands check
}
define contact {
    contact_name bob
    host_notification_commands check
    service_notification_commands check
}
define contactgroup {
    contactgroup_name others
    members bob
}
define command {
    command_name check
    command_line /bin/true
}
define host {
    name any
    check_command check
    max_check_attempts 3
    register 0
}
define host {
    use any
    host_name web
    contacts ann
}
define host {
    use any
    host_name Web
    contact_groups others
}
define host {
    use any
    host_name db
}
define service {
    host_name web,db
    service_description http
    check_command check
    max_check_attempts 3
    contacts bob
}
define service {
    host_name web
    service_description Disk ü
    check_command check
    max_check_attempts 3
    contacts ann,bob
}
"""
HOST_NAMES = ["web", "Web", "db", "gone"]
SERVICE_NAMES = ["http", "Disk ü", "none"]
TEXTS = ["it is; down", "ok", "", "K 100%", "\u017fs ß 😀 x", "a\\nb", "x" * 300, "time: 10:00"]


def line(random):
    """The text of some line."""
    host, service = random.choice(HOST_NAMES), random.choice(SERVICE_NAMES)
    text, contact = random.choice(TEXTS), random.choice(["ann", "bob", "nobody"])
    state = random.choice(["OK", "WARNING", "CRITICAL", "UNKNOWN", "PENDING"])
    up = random.choice(["UP", "DOWN", "UNREACHABLE", "RECOVERY"])
    kind = random.choice(["SOFT", "HARD"])
    number = random.randint(1, 3)
    return random.choice(
        [
            f"SERVICE ALERT: {host};{service};{state};{kind};{number};{text}",
            f"HOST ALERT: {host};{up};{kind};{number};{text}",
            f"CURRENT SERVICE STATE: {host};{service};{state};{kind};{number};{text}",
            f"CURRENT HOST STATE: {host};{up};{kind};{number};{text}",
            f"HOST DOWNTIME ALERT: {host};STARTED; {text}",
            f"SERVICE FLAPPING ALERT: {host};{service};STOPPED; {text}",
            f"HOST NOTIFICATION: {contact};{host};{up};notify!arg;{text}",
            f"SERVICE NOTIFICATION: {contact};{host};{service};{state};notify;{text}",
            f"PASSIVE SERVICE CHECK: {host};{service};{number};{text}",
            f"EXTERNAL COMMAND: ADD_HOST_COMMENT;{host};1;{contact};{text}",
            f"EXTERNAL COMMAND: SCHEDULE_FORCED_SVC_CHECK;{host};{service};1",
            f"SERVICE EVENT HANDLER: {host};{service};{state};{kind};{number};handler!secret",
            f"HOST ALERT: web;DOWN;HARD;1;{text}",
            f"SERVICE ALERT: {host};http;CRITICAL;HARD;3;{text}",
            f"HOST NOTE: {host};{text}",
            "Caught 'Terminated', shutting down...",
            "Naemon 1.5.2 starting... (PID=17)",
            f"Warning: {text}",
            "LOG VERSION: 2.0",
            "TIMEPERIOD TRANSITION: 24x7;-1;1",
            text,
        ]
    )


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sqlite")
    yield from world(folder, f"sqlite:///{folder}/monrest.sqlite")


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory, postgres_server):
    name = postgres_server.create()
    yield from world(tmp_path_factory.mktemp("postgresql"), postgres_server.url(name))
    postgres_server.drop(name)


@pytest.fixture(scope="module")
def compacted(tmp_path_factory, postgres_server):
    """But for the last two days."""
    name = postgres_server.create()
    folder = tmp_path_factory.mktemp("compacted")
    yield from world(folder, postgres_server.url(name), compact_after=2 * DAY)
    postgres_server.drop(name)


def world(folder, url, **more):
    """A context of two sites, with a log cache that ends before their newest lines.

    ``more`` is configuration of the cache.
    """
    objects = folder / "objects"
    objects.mkdir()
    (objects / "all.cfg").write_text(OBJECTS)
    standstill = Standstill()
    core = DemoCore(
        standstill, Wall(standstill), str(folder / "live"), objects_dir=objects, history_days=0
    )
    address = f"unix:{folder / 'live'}"
    registry = Registry(
        reactor,
        [SiteConfig(id="a", name="Alpha", address=address),
         SiteConfig(id="b", name="Beta", address=address)],
        memory=threaded_memory(reactor),
    )  # fmt: skip
    database = Database(reactor, url)
    database.startService()
    config = LogcacheConfig(first_import=5 * 86400, **more)
    cache = LogCache(standstill, Wall(standstill), database, config, registry.sites)
    core.startService()
    registry.startService()
    random = Random(7)
    book = core.core.log
    book.entries.clear()
    moments = sorted(NOW - int(random.random() ** 3 * 7 * 86400) for _ in range(2000))
    imported = len(moments) * 8 // 10
    for number, moment in enumerate(moments):
        if number == imported:
            standstill.clock.advance(moment - standstill.seconds())
            done = blockon(ensureDeferred(cache.update(registry.sites[0], back=True)))
            assert done.added > 1000
            assert blockon(ensureDeferred(cache.update(registry.sites[1], back=True))) == done
            standstill.clock.advance(NOW - standstill.seconds())
        book.past(moment, line(random))
        if random.random() < 0.02:
            # In the middle of a second.
            book.rotate(moment)
            book.past(moment, line(random))
    yield make_context(
        standstill,
        sites=registry,
        logcache=cache,
        zone=Config().display.zone(),
        config=Config(),
    )
    blockon(registry.stopService())
    blockon(core.stopService())
    blockon(database.stopService())


WORDS = ["", "web", "Web", "WEB", "http", "Disk ü", "gone", "ann", "bob", "HARD", "down", "ok", "K", "k",
         "SERVICE ALERT", "^(HOST|SERVICE) ALERT$", "^web$", "d.*n", "[0-9]+%", "ss", "ß", "😀", "10:00",
         "0", "1", "2", "x{3}", "notify", "notify!arg", "secret", "NOTE", "a|b", "; ", "\\\\n"]  # fmt: skip
NUMBERS = ["class", "state", "attempt", "lineno"]
TEXT_COLUMNS = ["type", "message", "options", "host_name", "service_description", "contact_name",
                "plugin_output", "state_type", "command_name", "comment"]  # fmt: skip
AGES = ["-1h", "-5m", "-6m", "-1d", "-2d", "-4d", "-119h", "-5d", "-6d", "-30d", "now", "0", "-36h"]


@st.composite
def conditions(draw):
    kind = draw(st.sampled_from(["number", "text", "text", "time", "peer", "current"]))
    if kind == "number":
        op = draw(st.sampled_from(["=", "!=", ">", "<", ">=", "<="]))
        return f"{draw(st.sampled_from(NUMBERS))} {op} {draw(st.integers(-1, 6))}"
    if kind == "time":
        op = draw(st.sampled_from([">", "<", ">=", "<=", "=", "!="]))
        return f'time {op} "{draw(st.sampled_from(AGES))}"'
    if kind == "peer":
        return f'peer_key = "{draw(st.sampled_from(["a", "b"]))}"'
    if kind == "current":
        column = draw(st.sampled_from(["current_host_name", "current_service_contacts", "current_host_state"]))  # fmt: skip
        op = ">=" if column.endswith("contacts") else draw(st.sampled_from(["=", "!="]))
        return f'{column} {op} "{draw(st.sampled_from(["web", "ann", "0"]))}"'
    op = draw(st.sampled_from(["=", "!=", "~", "!~", "~~", "!~~", ">", "<"]))
    return f'{draw(st.sampled_from(TEXT_COLUMNS))} {op} "{draw(st.sampled_from(WORDS))}"'


TREES = st.recursive(
    conditions(),
    lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
        lambda part: f"({part[0]} {part[1]} {part[2]})"
    ),
    max_leaves=4,
)
COLUMNS = ["time", "peer_key", *NUMBERS, *TEXT_COLUMNS, "upper(type) as u", "state+1 as n",
           "current_host_name"]  # fmt: skip


@st.composite
def queries(draw):
    bounds = [op for op in ("gte", "lt") if draw(st.booleans())]
    pairs = [(f"time[{op}]", draw(st.sampled_from(AGES))) for op in bounds]
    if draw(st.booleans()):
        pairs.append(("q", draw(TREES)))
    shape = draw(st.sampled_from(["all", "columns", "aggregate"]))
    if shape == "columns":
        pairs.append(("columns", ",".join(draw(st.lists(st.sampled_from(COLUMNS), min_size=1)))))
    elif shape == "aggregate":
        keys = draw(st.lists(st.sampled_from(["peer_key", *NUMBERS, *TEXT_COLUMNS]), max_size=3))
        made = st.builds("{}({})".format, st.sampled_from(["min", "max", "sum", "avg"]),
                         st.sampled_from(["time", *NUMBERS]))  # fmt: skip
        numbers = draw(st.lists(made, max_size=3))
        pairs.append(("columns", ",".join([*keys, "count(*)", *numbers])))
    if draw(st.booleans()):
        keys = draw(
            st.lists(st.sampled_from(["time", *NUMBERS, *TEXT_COLUMNS, "u", "n"]),
                     min_size=1, max_size=3)
        )  # fmt: skip
        pairs.append(("sort", ",".join(draw(st.sampled_from(["", "-"])) + key for key in keys)))
    if draw(st.booleans()):
        pairs.append(("limit", str(draw(st.integers(0, 60)))))
    if draw(st.booleans()):
        pairs.append(("offset", str(draw(st.integers(0, 30)))))
    if draw(st.booleans()):
        pairs.append(("backends", draw(st.sampled_from(["a", "b", "a,b"]))))
    return tuple(pairs)


PATHS = st.sampled_from(
    ["/logs", "/logs", "/alerts", "/notifications",
     *(f"/hosts/{name}/{kind}" for kind in ("alerts", "notifications")
       for name in ("web", "we*", "WEB", "gone", "*"))]
)  # fmt: skip
ROLES = st.sets(st.sampled_from([ADMIN, HOSTS, SERVICES, SYSTEM]), max_size=3)
USERS = st.sampled_from(["ann", "bob", "nobody", ""])


async def answer(context, path, pairs, identity=ALL):
    request = RestRequest(
        method="GET", path=path, segments=tuple(path.strip("/").split("/")),
        parameters=pairs, identity=identity,
    )  # fmt: skip
    try:
        result = await context.dispatch(context, request)
    except RestError as error:
        return (error.code, error.message)
    if isinstance(result, Document):
        return result.value
    return [one.name for one in result.columns], list(result.rows)


ROUNDS = settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
FEW = 20_000
QUESTIONS = given(
    path=PATHS,
    pairs=queries(),
    user=USERS,
    roles=ROLES,
    strict=st.booleans(),
    few=st.sampled_from([FEW, 300, 7]),
    most=st.sampled_from([100_000, 100_000, 500, 10]),
)


# Two functions, because hypothesis, coroutines and parameters of a test do not go together.
@ROUNDS
@QUESTIONS
async def test_the_answer_is_the_same_with_sqlite(on_sqlite, path, user, roles, **more):
    await same(on_sqlite, path, Identity(user=user, roles=frozenset(roles)), **more)


@ROUNDS
@QUESTIONS
async def test_the_answer_is_the_same_with_postgresql(on_postgresql, path, user, roles, **more):
    await same(on_postgresql, path, Identity(user=user, roles=frozenset(roles)), **more)


async def same(context, path, identity, *, pairs, strict, few, most):
    """With the cache and without, however many lines are held at once.

    What is refused because more than ``most`` would have to be held is refused both times.
    """
    context.config = Config(auth=AuthConfig(strict_host_authorization=strict))
    from_core = (*pairs, ("logcache", "0"))
    with pytest.MonkeyPatch.context() as patch:
        for module in (lines, reader):
            patch.setattr(module, "MOST_GROUPS", most)
        patch.setattr(lines, "MOST_HELD", most)
        whole = await answer(context, path, from_core, identity)
        for module in (lines, loglines, reader):
            patch.setattr(module, "FEW", few)
        patch.setattr(loglines, "_FEWEST", few)
        assert await answer(context, path, pairs, identity) == whole
        if few != FEW:
            assert await answer(context, path, from_core, identity) == whole


@pytest.mark.parametrize("identity", [ALL, ANN], ids=["all", "contact"])
@pytest.mark.parametrize(
    ("pairs", "from_cache"),
    [
        ((("time[gte]", "-4d"),), True),
        ((), True),
        ((("time[gte]", "-4d"), ("time[lt]", "-3d")), True),
        ((("time[gte]", "-4d"), ("sort", "-message"), ("limit", "7")), True),
        ((("time[gte]", "-4d"), ("columns", "type,count(*)")), True),
        ((("time[gte]", "-6d"),), False),
        ((("time[lt]", "-3d"),), False),
        ((("time[gte]", "-4d"), ("columns", "current_host_state")), False),
        ((("time[gte]", "-4d"), ("logcache", "0")), False),
    ],
)
async def test_what_comes_from_the_cache(on_sqlite, monkeypatch, identity, pairs, from_cache):
    """The core is left with the newest lines, and with none that the cache has for sure."""
    asked = []
    query = Site.query

    def recorded(site, ask):
        asked.append(ask.request)
        return query(site, ask)

    monkeypatch.setattr(Site, "query", recorded)
    on_sqlite.config = Config()
    _, rows = await answer(on_sqlite, "/logs", pairs, identity)
    assert rows
    bounds = [
        max(
            int(word.split()[-1])
            for word in request.decode().splitlines()
            if word.startswith("Filter: time >=")
        )
        for request in asked
        if request.startswith(b"GET log\n") and b"Filter: time >=" in request
    ]
    assert all(bound > NOW - 86400 for bound in bounds) or not from_cache
    if not from_cache:
        assert not bounds or min(bounds) <= NOW - 3 * 86400
    if ("time[lt]", "-3d") in pairs and from_cache:
        assert not any(request.startswith(b"GET log\n") for request in asked)


REPORTS = st.sampled_from(
    [
        *("/hosts/availability", "/services/availability", "/hosts/outages", "/services/outages"),
        *("/hosts/web/availability", "/services/web/http/availability", "/hosts/db/outages"),
    ]
)


@st.composite
def reports(draw):
    start = NOW - draw(st.integers(0, 7 * DAY))
    end = start + draw(st.one_of(st.integers(0, 3600), st.integers(0, 7 * DAY)))
    pairs = [("start", str(start)), ("end", str(end))]
    pairs.append(("backtrack", str(draw(st.integers(0, 4)))))
    for name, values in (
        ("type", ["both", "hosts", "services"]),
        ("withdowntimes", ["0", "1"]),
        ("includesoftstates", ["0", "1"]),
        ("assumestatesduringnotrunning", ["0", "1"]),
        ("rpttimeperiod", ["24x7", "nope"]),
        ("host", ["web", "db", "Web"]),
    ):
        if draw(st.booleans()):
            pairs.append((name, draw(st.sampled_from(values))))
    return tuple(pairs)


async def same_report(context, path, pairs):
    with_cache = await answer(context, path, pairs)
    without = await answer(context, path, (*pairs, ("logcache", "0")))
    assert with_cache == without


@ROUNDS
@given(path=REPORTS, pairs=reports())
async def test_the_report_is_the_same_with_sqlite(on_sqlite, path, pairs):
    await same_report(on_sqlite, path, pairs)


@ROUNDS
@given(path=REPORTS, pairs=reports())
async def test_the_report_is_the_same_with_compacted_lines(compacted, path, pairs):
    await same_report(compacted, path, pairs)
