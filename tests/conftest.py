"""What every test gets: a logged failure or an error that nobody handled fails the test."""

import fcntl
import gc
import tempfile
from pathlib import Path
from typing import ClassVar
from weakref import WeakSet
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from twisted.internet import defer
from twisted.logger import LogLevel, globalLogPublisher

from monrest.base.clock import measure_spans
from monrest.base.log import AUDIT
from monrest.query.model import Test
from tests.examples import SHARE, examples
from tests.fakes.postgres import (
    database_url,
    empty_database_url,
    empty_postgres_url,
    postgres_server,
    postgres_url,
)

__all__ = [
    "database_url",
    "empty_database_url",
    "empty_postgres_url",
    "postgres_server",
    "postgres_url",
]

# How fast a busy machine makes up and tries examples says nothing about what they are for.
settings.register_profile(
    "busy",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("busy")

# A condition on a column, and no class of tests, wherever it is imported.
Test.__test__ = False


@pytest.fixture(autouse=True, scope="session")
def reactor_that_nobody_sets():
    """Seconds are those of a daemon; imported late, because pytest-twisted chooses the reactor."""
    from twisted.internet import reactor

    measure_spans(reactor)


_LIVE = Path(__file__).parent / "live"
_STORE = Path(__file__).parent / "store"

_WAITING = [
    _LIVE / f"test_{name}.py"
    for name in (
        *("cluster_families", "report_mails", "webhooks", "recurring_downtimes", "clocks"),
        *("node_control_once", "node_control", "jobs_shared", "alertmanager", "event_sources"),
        *("cluster", "hung_database", "database_away", "clocks_of_nodes", "federation_chain"),
    )
]
"""They wait for minutes, until a lease ends or a minute begins, and work for seconds; longest first."""


_BOTH = ("sqlite", "postgresql")


def on_the_other_database(item):
    """Whether a test that runs on each kind of database has its turn on the other one.

    Half of them run on SQLite and half on PostgreSQL, and those of the database itself on both;
    with MONREST_EXAMPLES=1 all do.
    """
    params = item.callspec.params if hasattr(item, "callspec") else {}
    kind = params.get("database_url", params.get("empty_database_url"))
    if kind is None or SHARE >= 1 or item.path.is_relative_to(_STORE):
        return False
    rest = [one for one in item.callspec.id.split("-") if one not in _BOTH]
    return kind != _BOTH[crc32("-".join([item.originalname, *rest]).encode()) % 2]


def pytest_collection_modifyitems(config, items):
    """Modules that wait are spread over the others, so that there is always something to do."""
    others = {item for item in items if on_the_other_database(item)}
    config.hook.pytest_deselected(items=list(others))
    items[:] = [item for item in items if item not in others]
    modules = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    waiting = [path for path in _WAITING if path in modules]
    working = [path for path in modules if path not in _WAITING]
    # Tests of whole daemons first: small ones fill the processors at the end.
    working.sort(key=lambda path: not path.is_relative_to(_LIVE))
    each = len(working) // (len(waiting) + 1) + 1
    ordered = []
    for at in range(0, max(len(working), 1), each):
        ordered += [*waiting[:1], *working[at : at + each]]
        del waiting[:1]
    items[:] = [item for path in (*ordered, *waiting) for item in modules[path]]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """One worker compiles the modules of the tests; the others wait, and find them compiled."""
    with Path(tempfile.gettempdir(), "monrest-tests.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        # All that is made stays: looking for garbage again and again takes two fifths of the time.
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()
            gc.freeze()


class Unhandled(defer.DebugInfo):
    """What a Deferred has for as long as its result is an error; it logs that when it goes."""

    alive: ClassVar = WeakSet()

    def __init__(self):
        self.alive.add(self)


defer.DebugInfo = Unhandled


@pytest.fixture(autouse=True, scope="module")
def frozen_modules():
    """Leave what was imported out of the collections below."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def stray_failures():
    """Watch the log; a test appends the exception classes that it expects to be logged."""
    seen, expected = [], []

    def watch(event):
        level = event.get("log_level", LogLevel.info)
        if level >= LogLevel.error or event.get("log_failure") is not None:
            seen.append(event)

    globalLogPublisher.addObserver(watch)
    yield expected
    if any(one.failResult is not None for one in Unhandled.alive):
        gc.collect()  # errors of Deferreds that nobody handled are logged when they are collected
    globalLogPublisher.removeObserver(watch)
    stray = [
        event.get("log_failure") or event.get("log_format")
        for event in seen
        if not (event.get("log_failure") and event["log_failure"].check(*expected))
    ]
    assert not stray


@pytest.fixture
def audited():
    """The fields of each audit line, in their order."""
    seen = []

    def watch(event):
        if AUDIT in event:
            seen.append(event[AUDIT])

    globalLogPublisher.addObserver(watch)
    yield seen
    globalLogPublisher.removeObserver(watch)
