"""Daemons with one database and one duty, on clocks that a test advances."""

from __future__ import annotations

from twisted.internet.task import Clock

from monrest.store.duties import Duties
from tests.fakes.clocks import Wall
from tests.fakes.keystore import Store, result

MIDNIGHT = 1_700_000_000 // 86400 * 86400  # in UTC
SIX = MIDNIGHT + 6 * 3600
BEGIN = SIX - 60
DAILY = [{"type": "day", "minute": 0, "hour": 6}]


class Daemons:
    """``join`` starts a daemon; ``pass_`` lets time go by for all that are not frozen.

    A subclass gives ``service``, what is scheduled of a daemon. ``books`` is the database.
    """

    def __init__(self, url, begun=BEGIN):
        self.url, self.begun, self.daemons, self.elapsed = url, begun, [], 0.0
        self.wrong, self.ahead = {}, 0.0
        self.books = Store(url, Clock())
        self.books.startService()

    @property
    def now(self):
        return self.begun + self.elapsed

    def join(self, owner="one", wrong=0.0, **more):
        clock = Clock()
        clock.advance(self.now + wrong)
        store = Store(self.url, clock)
        store.startService()
        duties = Duties(store, clock, owner, timer=lambda: self.elapsed)
        made = self.service(
            database=store, clock=clock, wall=Wall(clock, self.ahead), duties=duties, **more
        )
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
                    now = self.now + self.wrong[daemon]
                    daemon.clock.advance(now - daemon.clock.seconds())

    def set_clocks(self, ahead):
        """Set the clock of the machine on which they are, so many seconds ahead of the right time."""
        self.ahead = ahead
        for daemon in self.daemons:
            daemon.wall.ahead = ahead

    def change(self, work):
        return result(self.books.change(work))

    def run(self, work):
        return result(self.books.run(work))

    def close(self):
        for daemon in self.daemons:
            daemon.database.down = False
            result(daemon.stopService())
            result(daemon.duties.stopService())
            daemon.database.stopService()
        self.books.stopService()
