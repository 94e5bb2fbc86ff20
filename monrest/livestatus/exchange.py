"""What a pool keeps about a query on its way and about a connection being made."""

from __future__ import annotations

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IProtocol
from twisted.python.failure import Failure

from monrest.base.values import Row
from monrest.livestatus.connection import Connection
from monrest.livestatus.errors import BrokenConnectionError, LivestatusError, tls_error
from monrest.livestatus.framing import AnswerReader, PackedRows, Transform
from monrest.livestatus.recall import Recall, RecallParser


@define(eq=False)
class Exchange:
    """One query: waiting for a connection, or running on ``connection``.

    ``started`` is a time of the pool's clock and ``timeout`` counts from it. ``retried``: it was
    lost on a kept connection and now needs a new one. ``texts``: the request asks for CSV.
    ``recall``: what was answered before. ``packed``: where rows of a large answer may be kept.
    """

    request: bytes
    timeout: float
    started: float
    width: int | None = None
    transform: Transform | None = None
    log: bool = False
    urgent: bool = False
    texts: bool = False
    recall: Recall | None = None
    packed: PackedRows | None = None
    done: Deferred[list[Row]] = field(init=False)
    connection: Connection | None = None
    retried: bool = False

    @property
    def until(self) -> float:
        """When its time is over."""
        return self.started + self.timeout

    def reader(self) -> AnswerReader:
        """What reads the answer."""
        recall = self.recall
        parser = RecallParser(self.width, self.transform, recall) if recall is not None else None
        return AnswerReader(self.width, self.transform, self.texts, parser, self.packed)

    def fail(self, error: LivestatusError) -> None:
        """Tell whoever waits, unless it was told already.

        Several fail in one go when a connection cannot be made, and whoever hears it first may
        cancel the others.
        """
        if not self.done.called:
            self.done.errback(error)


@define(eq=False)
class Opening:
    """A connection being made since ``since``.

    ``connection`` exists while TLS is still shaking hands; ``ended``: nobody waits for the
    outcome any more.
    """

    since: float
    attempt: Deferred[IProtocol] | None = None
    connection: Connection | None = None
    ended: bool = False


def why_lost(reader: AnswerReader, reason: Failure, *, kept: bool) -> LivestatusError:
    """Why a query failed whose connection went away while it was running.

    ``kept``: the connection had served other queries before.
    """
    if reader.started:
        text = "connection lost in the middle of an answer"
        return reader.lost() or BrokenConnectionError(text, begun=True)
    tls = tls_error(reason)
    if tls is not None:
        return tls
    if reason.check(ConnectionDone):
        # This is how Icinga 2 says "bad query".
        return BrokenConnectionError("connection closed without an answer", kept=kept)
    return BrokenConnectionError("connection lost", kept=kept)
