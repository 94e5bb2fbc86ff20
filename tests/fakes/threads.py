"""Threads that are none: what they are given is done at once, or when the test says so."""

import tempfile
from pathlib import Path

from twisted.internet.defer import Deferred, maybeDeferred, succeed

from monrest.base.answer_file import AnswerFiles
from monrest.base.concurrency import Threads
from monrest.base.room import RowRoom
from monrest.livestatus.inbox import AnswerMemory


class Reactor:
    """Runs at once what another thread would leave to the reactor."""

    def callFromThread(self, function, *arguments):
        function(*arguments)


class NoThreads:
    """``holds``: the work waits for ``go_on``."""

    running = False
    stoppable = Threads.stoppable

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


def own_memory(reactor):
    """Memory for sites that are no daemon's, whose threads are none."""
    return AnswerMemory(RowRoom(reactor), AnswerFiles(Path(tempfile.gettempdir())), NoThreads())


def threaded_memory(reactor):
    """The same with a thread."""
    threads = Threads(reactor, 1, "answers")
    threads.startService()
    return AnswerMemory(RowRoom(reactor), AnswerFiles(Path(tempfile.gettempdir())), threads)
