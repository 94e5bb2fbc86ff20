"""Queries of one site over the API of another instance, on behalf of a user."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList

from monrest.base.values import Row
from monrest.livestatus.core_errors import StoppedError
from monrest.livestatus.inbox import StoredRows
from monrest.livestatus.pool import CoreRequest
from monrest.sites.federation.answers import Record, RecordReader
from monrest.sites.federation.questions import RemoteReading
from monrest.sites.federation.remote import FORM, ITSELF, OnBehalfOf, PartialBody, Remote
from monrest.sites.transport import PartialRows

_LARGEST = 256 * 1024
"""Bytes of an answer that become rows at once."""

_LONGEST_URL = 4000
"""Bytes of a path with its query; longer ones go into a body, for the sake of proxies."""


@define(eq=False)
class Running:
    """The requests that are on their way for a site; all of them can be stopped."""

    stopped: bool = False
    _open: set[Deferred[Any]] = field(init=False, factory=set)

    @property
    def quiet(self) -> bool:
        """Whether nothing is on its way."""
        return not self._open

    def begin(self, work: Coroutine[Deferred[Any], Any, Any]) -> Deferred[Any]:
        """Run ``work``, which fails with StoppedError when everything is stopped."""
        running = Deferred.fromCoroutine(work)
        if not running.called:
            self._open.add(running)

        def ended(result: Any) -> Any:
            self._open.discard(running)
            if self.stopped and hasattr(result, "check") and result.check(CancelledError):
                raise StoppedError
            return result

        return running.addBoth(ended)

    def stop(self, *, cut: bool) -> Deferred[None]:
        """Stop; ``cut``: do not wait until everything has ended by itself."""
        self.stopped = True
        ended: list[Deferred[None]] = []
        for query in tuple(self._open):
            done: Deferred[None] = Deferred()

            def passed_on(result: Any, done: Deferred[None] = done) -> Any:
                done.callback(None)
                return result

            ended.append(done)
            query.addBoth(passed_on)
            if cut:
                query.cancel()
        return DeferredList(ended).addCallback(lambda _: None)


@define(eq=False)
class RestQueries:
    """See ``sites.transport.Queries``; ``path`` gives the path of the site on the other side."""

    remote: Remote
    path: Callable[[], str]
    whom: OnBehalfOf = ITSELF
    limit: int = 4
    process: int = 0
    running: Running = field(factory=Running)

    @property
    def quiet(self) -> bool:
        return self.running.quiet

    def acting(self, whom: OnBehalfOf) -> RestQueries:
        """The same on behalf of another user."""
        return evolve(self, whom=whom)

    def query(self, asked: CoreRequest, timeout: float) -> Deferred[list[Row]]:
        """The rows of a question (``questions.question``)."""
        return self.running.begin(self._query(asked, timeout))

    async def _query(self, asked: CoreRequest, timeout: float) -> list[Row]:
        if self.running.stopped:
            raise StoppedError
        assert isinstance(asked.transform, RemoteReading)
        answer = _Found(asked.transform, None if asked.log else asked.stored)
        path = self.path() + asked.request.decode()
        if len(path) <= _LONGEST_URL:
            call = partial(self.remote.call, "GET", path, timeout, self.whom)
        else:
            path, _, query = path.partition("?")
            sent = query.encode()
            call = partial(self.remote.call, "POST", path, timeout, self.whom, sent, FORM)
        body = await call(sink=answer.take)
        rows = answer.finish()
        if asked.log:
            # A core gives its newest lines first, an instance its oldest.
            rows.reverse()
        return PartialRows(rows) if isinstance(body, PartialBody) else rows

    def keep(self, idle: float) -> None:
        """Connections are kept for all sites of the other side together."""

    def stop(self) -> Deferred[None]:
        return self.running.stop(cut=True)

    def retire(self) -> None:
        """Nothing is kept for one site."""


@define(eq=False)
class RecordParser:
    """Makes rows of a list of objects, a batch at a time; see ``inbox.Parser``."""

    reading: RemoteReading
    _reader: RecordReader = field(init=False)
    _records: list[Record] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._reader = RecordReader(self._records.extend)

    def feed(self, data: bytes) -> None:
        self._reader.feed(data)

    def taken(self) -> list[Row]:
        if self.reading.whole:
            return []
        rows = self.reading(self._records)
        self._records.clear()
        return rows

    def finish(self) -> list[Row]:
        self._reader.finish()
        return self.reading(self._records)


@define(eq=False)
class _Found:
    """An answer that arrives piece by piece; ``stored`` takes a large one."""

    reading: RemoteReading
    stored: StoredRows | None
    _parser: RecordParser = field(init=False)
    _rows: list[Row] = field(factory=list, init=False)
    _first: list[bytes] = field(factory=list, init=False)
    """What may turn out to be large."""
    _size: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._parser = RecordParser(self.reading)
        if self.stored is not None:
            # It may have the beginning of an answer that was lost.
            self.stored.begin_as(partial(RecordParser, self.reading))

    def take(self, piece: bytes) -> None:
        self._size += len(piece)
        if self.stored is None:
            self._parser.feed(piece)
            self._rows += self._parser.taken()
        elif self._size <= _LARGEST:
            self._first.append(piece)
        else:
            for part in (*self._first, piece):
                self.stored.add(part)
            self._first = []

    def finish(self) -> list[Row]:
        if self.stored is not None and self._size > _LARGEST:
            return []
        for piece in self._first:
            self._parser.feed(piece)
        return self._rows + self._parser.finish()
