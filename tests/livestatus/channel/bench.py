"""A command channel on a clock, and a core that the test plays by hand."""

from twisted.internet.task import Clock

from monrest.livestatus.command_channel import STOP_LIMIT, CommandChannel
from monrest.livestatus.external import request
from monrest.livestatus.verdicts import Verdict
from tests.fakes.livestatus import MemoryCore, framed
from tests.fakes.sites import outcome

ROW = framed(b"[[1700000000]]\n")
NO = b"400: no\n" + ROW
REFUSED = Verdict("400: no")
THREE = tuple(f"COMMAND [1] LOG;{n}" for n in range(3))


def lines(count, first=0):
    return tuple(f"COMMAND [1] LOG;{n}" for n in range(first, first + count))


class Bench:
    """A channel to a core that the test plays by hand."""

    def __init__(self, **options):
        self.clock = Clock()
        self.core = MemoryCore(self.clock)
        self.channel = CommandChannel(self.clock, self.core, **options)
        self.outcomes = []

    def send(self, *texts, kind="naemon", timeout=30.0):
        found = outcome(self.channel.transmit(texts, kind, timeout))
        self.turn()
        self.outcomes.append(found)
        return found

    def turn(self, seconds=0.0):
        self.clock.advance(seconds)

    @property
    def talk(self):
        (talk,) = self.core.open
        return talk

    def heard(self, talk=None):
        """What the core heard on its open connection, in one piece."""
        return b"".join((talk or self.talk).written)

    def say(self, data, talk=None):
        (talk or self.talk).say(data)
        self.turn()

    def check_end(self):
        """Nothing is left over, and everybody was told something."""
        done = outcome(self.channel.stop())
        self.turn(STOP_LIMIT)
        self.turn()
        assert done == [None]
        assert self.channel.quiet
        assert not self.core.open
        assert not self.clock.getDelayedCalls()
        assert all(len(found) == 1 for found in self.outcomes)


def sent(kind, *texts):
    return b"".join(request(text, kind) for text in texts)
