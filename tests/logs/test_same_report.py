"""The log cache never changes a report: the same numbers from it, from the core, from both.

Random reports over the random logs of ``test_same_answer``, of which the cache has five days up to
some hours before the end. Half of the caches are compacted but for the last two days.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monrest.base.errors import RestError
from monrest.base.values import Document, Identity, RestRequest
from monrest.logs.cached_log import CachedLog
from monrest.logs.model import DRIFT
from monrest.logs.reader import CacheReader
from monrest.logs.source import CORES, Wanted
from monrest.logs.state_events import Watched
from tests.examples import examples
from tests.logs.test_same_answer import HOST_NAMES, NOW, SERVICE_NAMES, world

DAY = 86400
ROOT = Identity(user="root", superuser=True)
COMPACTED = {"compact_after": 2 * DAY}


def cache_of(context):
    return context.dispatch.router.find("GET", "/logs", ("logs",)).handler.__self__


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sqlite")
    yield from world(folder, f"sqlite:///{folder}/monrest.sqlite")


@pytest.fixture(scope="module")
def compacted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compacted")
    yield from world(folder, f"sqlite:///{folder}/monrest.sqlite", **COMPACTED)


@pytest.fixture(scope="module")
def on_postgresql(tmp_path_factory, postgres_server):
    name = postgres_server.create()
    folder = tmp_path_factory.mktemp("postgresql")
    yield from world(folder, postgres_server.url(name), **COMPACTED)
    postgres_server.drop(name)


PATHS = st.sampled_from(
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


async def answer(context, path, pairs):
    request = RestRequest(
        method="GET", path=path, segments=tuple(path.strip("/").split("/")),
        parameters=pairs, identity=ROOT,
    )  # fmt: skip
    try:
        result = await context.dispatch(context, request)
    except RestError as error:
        return (error.code, error.message)
    if isinstance(result, Document):
        return result.value
    return [one.name for one in result.columns], result.rows


async def same(context, path, pairs):
    with_cache = await answer(context, path, pairs)
    without = await answer(context, path, (*pairs, ("logcache", "0")))
    assert with_cache == without


ROUNDS = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@ROUNDS
@given(path=PATHS, pairs=reports())
async def test_the_report_is_the_same_with_sqlite(on_sqlite, path, pairs):
    await same(on_sqlite, path, pairs)


@ROUNDS
@given(path=PATHS, pairs=reports())
async def test_the_report_is_the_same_with_compacted_lines(compacted, path, pairs):
    await same(compacted, path, pairs)


@ROUNDS
@given(path=PATHS, pairs=reports())
async def test_the_report_is_the_same_with_postgresql(on_postgresql, path, pairs):
    await same(on_postgresql, path, pairs)


@pytest.fixture(params=["on_sqlite", "compacted", "on_postgresql"])
def context(request):
    return request.getfixturevalue(request.param)


class Recorded:
    """The cores, and which times they were asked for."""

    def __init__(self):
        self.times = []

    def slices(self, site, wanted):
        self.times.append((wanted.since, wanted.until))
        return CORES.slices(site, wanted)


async def read(source, site, wanted):
    """What matters of the lines of a log; a core tells further ones."""
    hosts = wanted.names or HOST_NAMES
    keys = {(host, service) for host in hosts for service in ("", *SERVICE_NAMES)}
    watched = Watched(keys=keys, program=wanted.program)
    found = [line async for part in source.slices(site, wanted) for line in part]
    return [line for line in found if watched.event(*line) is not None]


def cached(context, **more):
    cache, core = cache_of(context), Recorded()
    reader = CacheReader(cache.database, cache.clock)
    return CachedLog(reader=reader, wall=cache.wall, core=core, **more), core


@pytest.mark.parametrize(
    ("most", "names"),
    [(7, {"web"}), (50, {"web", "db"}), (20_000, None)],
)
async def test_only_what_the_cache_lacks_is_asked_for(context, most, names):
    names = None if names is None else frozenset(names)
    site = context.sites.sites[0]
    known = await cache_of(context).record(site)
    before = known.covered_until - DRIFT
    source, core = cached(context, most=most)
    wanted = Wanted(since=NOW - 7 * DAY, until=NOW, names=names, program=True)
    found = await read(source, site, wanted)
    first = known.covered_from
    if known.compacted_until:
        first = -(-first // DAY) * DAY
    assert core.times == [(wanted.since, first - 1), (before, NOW)]
    told = await read(CORES, site, wanted)
    if known.compacted_until:
        assert 0 < len(found) < len(told)
        assert set(found) < set(told)
        late = Wanted(since=known.compacted_until, until=NOW, names=names)
        found, told = await read(source, site, late), await read(CORES, site, late)
    assert found == told
    within = Wanted(since=known.compacted_until or known.covered_from, until=before - 1)
    core.times.clear()
    assert await read(source, site, within)
    assert core.times == []


async def test_texts_of_repetitions_are_asked_from_the_core(compacted):
    site = compacted.sites.sites[0]
    known = await cache_of(compacted).record(site)
    source, core = cached(compacted)
    wanted = Wanted(since=NOW - 4 * DAY, until=NOW, texts="all")
    assert await read(source, site, wanted) == await read(CORES, site, wanted)
    assert core.times[0] == (wanted.since, known.compacted_until - 1)
