"""Sites over connections in memory, on a clock."""

from twisted.internet.task import Clock

from monrest.config.sections import SiteConfig
from monrest.sites.health import GRACE
from monrest.sites.site import Site
from tests.fakes.livestatus import MemoryCore, Script
from tests.fakes.threads import Reactor, own_memory


class Town:
    """A clock and sites on it, which share a ``memory``; ``cores`` by site id."""

    def __init__(self):
        self.clock = Clock()
        self.memory = own_memory(Reactor())
        self.cores = {}
        self.sites = []

    def site(self, id="a", script=None, *, start=True, up=True, **options):
        """A new site; unless told otherwise it is started and its first verdict is there."""
        core = self.cores[id] = MemoryCore(self.clock, script or Script(), up)
        options = {"name": id.upper(), "address": "unix:/run/core/live", **options}
        site = Site(self.clock, SiteConfig(id=id, **options), endpoint=core, memory=self.memory)
        self.sites.append(site)
        if start:
            site.startService()
            self.clock.advance(0)
            if up is False:
                self.pass_time(GRACE + 0.1)
        return site

    def pass_time(self, seconds, step=0.1):
        """Turn the clock in small steps, so that things happen in between."""
        for _ in range(round(seconds / step)):
            self.clock.advance(step)

    def stop(self):
        """Stop everything and look for what was left behind."""
        for site in self.sites:
            done = []
            site.stopService().addBoth(done.append)
            self.clock.advance(0)
            assert done == [None], done
            assert site.pool.quiet
        for core in self.cores.values():
            assert not core.open
        assert not self.clock.getDelayedCalls()


def outcome(deferred):
    """A list that will hold the result or the failure."""
    found = []
    deferred.addBoth(found.append)
    return found
