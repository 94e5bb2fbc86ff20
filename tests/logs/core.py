"""A core's log for the tests of the cache: lines that appear with any time."""

from types import SimpleNamespace

from sqlalchemy import select
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from monrest.base.values import Capabilities
from monrest.config import LogcacheConfig
from monrest.demo.logbook import LogEntry
from monrest.logs import cache_records as records
from monrest.logs.cache_records import Leases
from monrest.logs.importer import SiteImport
from monrest.logs.line import COLUMNS
from monrest.logs.model import CachedSite
from monrest.query.model import Group
from monrest.store.tables import logcache_lines
from tests.fakes.clocks import Wall
from tests.fakes.threads import Reactor, own_memory

NOW = 1_700_000_000
DAY = 86400
NAMES = [name for name, _ in COLUMNS]

_TESTS = {">=": int.__ge__, "<": int.__lt__}


def row(time, lineno, text):
    """A row of the log table as a Naemon tells it."""
    entry = LogEntry(time, lineno, f"[{time}] {text}").read()
    return {name: getattr(entry, "class_" if name == "class" else name) for name in NAMES}


class Prompt(Clock):
    """A clock on which the next turn of the reactor comes at once, however slow the machine is."""

    def callLater(self, when, what, *args, **kw):
        call = super().callLater(when, what, *args, **kw)
        if not when:
            self.advance(0)
        return call


class LoggingCore:
    """A site whose log is ``rows``; ``asked`` are the questions, ``before`` is called with each.

    Rows that are ``unread`` are counted, and not given. A "rest" is another instance.
    """

    def __init__(self, id="a", kind="naemon"):
        self.id, self.name = id, id.upper()
        self.memory = own_memory(Reactor())
        self.capabilities = Capabilities(kind=kind, tables={"log": dict(COLUMNS)}, key=kind)
        self.rows = []
        self.longest = 0
        self.lineno = 0
        self.asked = []
        self.before = lambda pushed: None
        self.health = SimpleNamespace(program=SimpleNamespace(localtime=None), program_start=1)
        self.unread = lambda row: False
        self.connected = True

    def write(self, time, text):
        self.lineno += 1
        self.rows.append(row(time, self.lineno, text))

    def rotate(self, time):
        self.lineno = 0
        self.write(time, "LOG ROTATION: DAILY")
        self.write(time, "LOG VERSION: 2.0")

    async def verdict(self):
        """It is up."""

    async def ask(self, pushed, layout=None, share=None):
        self.asked.append(pushed)
        if share is not None:
            await share.admit(1000)
        held = self.before(pushed)
        if isinstance(held, Deferred):
            await held
        tests = [(_TESTS[one.op], int(one.value)) for one in times(pushed.filter)]
        found = [one for one in self.rows if all(test(one["time"], value) for test, value in tests)]
        if pushed.stats:
            return [[len(found)]]
        names = NAMES if layout is None else [name for name, _ in layout]
        rows = [[one.get(name, "") for name in names] for one in found if not self.unread(one)]
        if self.capabilities.kind != "icinga2":
            rows.reverse()
        rows = rows[: pushed.limit]
        self.longest = max(self.longest, len(rows))
        # Other instances answer with the newest lines, the oldest of them first.
        return rows[::-1] if self.capabilities.kind == "rest" else rows

    def told(self, since=0):
        """All that the core tells, as comparable values."""
        return sorted(
            tuple(one[name] for name in NAMES) for one in self.rows if one["time"] >= since
        )


def times(tree):
    """The tests of the time that all rows pass, in nested groups too."""
    items = tree.items if isinstance(tree, Group) and tree.connector == "and" else [tree]
    for one in items:
        if isinstance(one, Group):
            yield from times(one) if one.connector == "and" else ()
        elif one.column == "time":
            yield one


def importer(core, database, clock, *, owner="me", first=30 * DAY, compact=0, keep=0, **more):
    config = LogcacheConfig(first_import=first, compact_after=compact, keep=keep)
    return SiteImport(
        site=core,
        database=database,
        clock=clock,
        wall=Wall(clock),
        owner=owner,
        leases=more.pop("leases", None) or Leases(database),
        config=config,
        **more,
    )


def stored(database, site="a", since=0):
    """All lines of a site, as comparable values."""

    def work(connection):
        columns = [logcache_lines.c[name] for name in NAMES]
        found = connection.execute(
            select(*columns)
            .join(CachedSite.table, CachedSite.table.c.id == logcache_lines.c.site)
            .where(CachedSite.table.c.site == site, logcache_lines.c.time >= since)
        )
        return sorted(tuple(_whole(one)) for one in found)

    return done(database.run(work))


def _whole(one):
    *rest, message, options = one
    derived = message[13:].partition(":")[2].lstrip(" ")
    return (*rest, message, derived if options is None else options)


def done(deferred):
    """The result of what has fired already."""
    found = []
    if not isinstance(deferred, Deferred):
        deferred = Deferred.fromCoroutine(deferred)
    deferred.addBoth(found.append)
    (value,) = found
    if hasattr(value, "raiseException"):
        value.raiseException()
    return value


def lease_of(database, clock):
    known = done(database.change(records.acquire("a", "thin", "update", clock.seconds())))
    return records.UpdateLease(id=known.id, owner="thin")
