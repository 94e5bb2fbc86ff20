"""A pool on a clock, with connections in memory."""

from twisted.internet.task import Clock

from monrest.livestatus.pool import CoreRequest, Pool
from tests.fakes.livestatus import MemoryCore, framed

ASK = b"GET hosts\n\n"
HOSTS = CoreRequest(ASK)
OK = framed(b"[[1]]\n")


class Bench:
    """A pool on a clock, and what became of its queries."""

    def __init__(self, script=None, **options):
        self.clock = Clock()
        self.core = MemoryCore(self.clock, script)
        self.alarms = []
        self.pool = Pool(
            self.clock,
            self.core,
            on_lost=lambda: self.alarms.append("lost"),
            **options,
        )

    def ask(self, timeout=30.0, request=ASK, **options):
        results = []
        done = self.pool.query(CoreRequest(request, **options), timeout)
        done.addBoth(results.append)
        query = Query(done, results)
        self.clock.advance(0)
        return query

    def stop(self):
        done = []
        self.pool.stop().addBoth(done.append)
        self.clock.advance(0)
        assert done == [None]
        assert self.pool.quiet
        assert not self.core.open
        assert not self.clock.getDelayedCalls()


class Query:
    def __init__(self, deferred, results):
        self.deferred = deferred
        self.results = results

    @property
    def rows(self):
        assert self.results, "no answer yet"
        assert isinstance(self.results[0], list), self.results[0]
        return self.results[0]

    @property
    def error(self):
        assert self.results, "no answer yet"
        return self.results[0].value

    @property
    def pending(self):
        return not self.results
