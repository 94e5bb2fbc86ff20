"""Daemons with one database and the same cores, which obey, refuse, vanish or lose the answer."""

from __future__ import annotations

from collections import Counter
from datetime import UTC
from types import SimpleNamespace

from twisted.internet.task import Clock

from monrest.base.errors import SitesFailed
from monrest.base.values import SiteProblem
from monrest.config.sections import CommandsConfig
from monrest.downtimes import cores, service
from monrest.downtimes import store as statements
from monrest.downtimes.model import checked
from monrest.downtimes.service import RecurringDowntimes
from monrest.livestatus.command import Target
from monrest.livestatus.external import line
from monrest.sites.commands import SentToSite
from monrest.store.duties import Duties
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store, result

NOW = 1_700_000_000 // 86400 * 86400  # midnight in UTC
DAILY = [{"type": "day", "minute": 0, "hour": 6}]
SIX = NOW + 6 * 3600
BEGIN = SIX - 60


class Core:
    """A site; ``obeyed`` are the commands that it has followed."""

    def __init__(self, id, *objects):
        self.id, self.name, self.section = id, id.upper(), ""
        self.objects = set(objects) or {
            Target("hosts", "h"), Target("services", "h", "s"), Target("hosts", "k"),
        }  # fmt: skip
        self.obeyed, self.down, self.manner = [], False, "obey"
        self.held = None

    def problem(self):
        return SiteProblem(self.id, self.name, "connection refused")


class World:
    """``join`` starts a daemon; ``pass_`` lets time go by for all that are not frozen."""

    def __init__(self, url, monkeypatch, *sites, now=BEGIN):
        self.url, self.daemons, self.elapsed, self.wrong = url, [], 0.0, {}
        self.begun, self.ahead = now, 0.0
        self.sites = sites or (Core("a"),)
        monkeypatch.setattr(service, "send", self.send)
        monkeypatch.setattr(cores, "in_effect", self.in_effect)
        monkeypatch.setattr(cores, "existing", self.existing)
        self.books = Store(url, Clock())
        self.books.startService()

    def join(self, owner="one", wrong=0.0, zone=UTC):
        clock = Clock()
        clock.advance(self.begun + self.elapsed + wrong)
        store = Store(self.url, clock)
        store.startService()
        duties = Duties(store, clock, owner, timer=lambda: self.elapsed)
        made = RecurringDowntimes(
            database=store, clock=clock, wall=Wall(clock, self.ahead), duties=duties, registry=self, zone=zone,
        )  # fmt: skip
        made.startService()
        duties.startService()
        self.daemons.append(made)
        self.wrong[made] = wrong
        return made

    def kill(self, daemon):
        self.daemons.remove(daemon)
        daemon.database.stopService()

    def pass_(self, seconds, *frozen, step=1.0):
        """A clock goes on while its daemon is frozen, which then finds it where it is."""
        for _ in range(int(seconds / step)):
            self.elapsed += step
            for daemon in self.daemons:
                if daemon not in frozen:
                    now = self.begun + self.elapsed + self.wrong[daemon]
                    daemon.clock.advance(now - daemon.clock.seconds())

    def set_clocks(self, ahead):
        """Set the clock of the machine on which they are, so many seconds ahead of the right time."""
        self.ahead = ahead
        for daemon in self.daemons:
            daemon.wall.ahead = ahead

    def close(self):
        for daemon in self.daemons:
            daemon.database.down = False
            result(daemon.stopService())
            result(daemon.duties.stopService())
            daemon.database.stopService()
        self.books.stopService()

    async def existing(self, sites, targets, clock):
        if all(site.down for site in sites):
            raise SitesFailed([site.problem() for site in sites])

        def on(target):
            return {one.id for one in sites if not one.down and target in one.objects}

        problems = {site.id: site.problem() for site in sites if site.down}
        return SimpleNamespace(problems=problems, on=on)

    async def send(self, orders, clock, wall, allowed):
        done = []
        for site, commands in orders:
            lines = tuple(line(one, 0, decodes_backslashes=False) for one in commands)
            if site.held is not None:
                await site.held
            if not allowed():
                problem = SiteProblem(site.id, site.name, "withdrawn before it was sent")
                done.append(SentToSite(site=site, unsent=lines, problem=problem))
            elif site.down or site.manner == "vanish":
                done.append(SentToSite(site=site, unsent=lines, problem=site.problem()))
            elif site.manner == "refuse":
                refused = dict.fromkeys(range(len(lines)), "no such thing")
                done.append(SentToSite(site=site, lines=lines, refused=refused))
            elif site.manner in ("lose", "swallow"):
                if site.manner == "lose":
                    site.obeyed += commands
                doubtful = dict.fromkeys(range(len(lines)), "connection lost")
                done.append(
                    SentToSite(site=site, lines=lines, doubtful=doubtful, problem=site.problem())
                )
            else:
                site.obeyed += commands
                done.append(SentToSite(site=site, lines=lines))
        return tuple(done)

    async def in_effect(self, site, orders, downtime, at, until, clock):
        if site.down:
            raise SitesFailed([site.problem()])
        return {order.key for order in orders if order.command in site.obeyed}

    def add(self, daemon=None, sites=(), **fields):
        record = checked({"host": ["h"], "schedule": DAILY, **fields}, CommandsConfig())
        now = self.begun + self.elapsed
        work = statements.add(1, record, {one: one.upper() for one in sites}, now, UTC)
        return result(self.books.change(work))

    def get(self, number):
        return next(iter(result(self.books.run(statements.several(number)))), None)

    def told(self, at=0):
        """How often each command reached a core: (host, service or "", begin, end)."""
        return Counter(
            (one.name, *one.fields[:-2]) for one in self.sites[at].obeyed
        )  # fmt: skip

    def begins(self, at=0):
        """The begins that a core was told, in order."""
        return [int(one.fields[-7]) for one in self.sites[at].obeyed]

    def unfinished(self):
        return [
            (one.downtime.number, one.at) for one in result(self.books.run(statements.unfinished))
        ]
