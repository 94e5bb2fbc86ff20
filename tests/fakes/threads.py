"""Threads that are none: what they are given is done at once, or when the test says so."""

from __future__ import annotations

from twisted.internet.defer import Deferred, maybeDeferred, succeed


class Reactor:
    """Runs at once what another thread would leave to the reactor."""

    def callFromThread(self, function, *arguments):
        function(*arguments)


class NoThreads:
    """``holds``: the work waits for ``go_on``."""

    def __init__(self):
        self.holds, self.waiting = False, []

    def startService(self):
        pass

    def stopService(self):
        return succeed(None)

    def run(self, function):
        if not self.holds:
            return maybeDeferred(function)
        done = Deferred()
        self.waiting.append((function, done))
        return done

    def go_on(self):
        self.holds = False
        waiting, self.waiting = self.waiting, []
        for function, done in waiting:
            maybeDeferred(function).chainDeferred(done)
