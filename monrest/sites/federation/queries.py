"""Queries of one site over the API of another instance, in somebody's name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList

from monrest.concurrency import sliced
from monrest.livestatus.errors import StoppedError
from monrest.livestatus.framing import PackedRows, Transform
from monrest.livestatus.recall import Recall
from monrest.sites.federation.answers import records
from monrest.sites.federation.questions import Reading
from monrest.sites.federation.remote import FORM, ITSELF, PartialBody, Remote, Whom
from monrest.sites.transport import PartialRows
from monrest.values import Row

_LONGEST_URL = 4000
"""Bytes of a path with its query; longer ones go into a body, for the sake of proxies."""
_AT_A_TIME = 200


@define(eq=False)
class Running:
    """What is on its way for a site, in whosever name; all of it can be stopped."""

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
        for one in tuple(self._open):
            done: Deferred[None] = Deferred()
            ended.append(done)
            one.addBoth(_passed_on, done)
            if cut:
                one.cancel()
        return DeferredList(ended).addCallback(lambda _: None)


def _passed_on(result: Any, done: Deferred[None]) -> Any:
    done.callback(None)
    return result


@define(eq=False)
class RestQueries:
    """See ``sites.transport.Queries``; ``path`` gives the path of the site on the other side."""

    remote: Remote
    path: Callable[[], str]
    whom: Whom = ITSELF
    limit: int = 4
    process: int = 0
    running: Running = field(factory=Running)

    @property
    def quiet(self) -> bool:
        """Whether no query runs."""
        return self.running.quiet

    def acting(self, whom: Whom) -> RestQueries:
        """Give the same in the name of somebody else."""
        return evolve(self, whom=whom)

    def query(
        self,
        request: bytes,
        timeout: float,
        *,
        width: int | None = None,
        transform: Transform | None = None,
        log: bool = False,
        urgent: bool = False,
        texts: bool = False,
        recall: Recall | None = None,
        packed: PackedRows | None = None,
    ) -> Deferred[list[Row]]:
        """Give the rows of a question (``questions.question``)."""
        del width, urgent, texts, recall, packed  # words of Livestatus
        assert isinstance(transform, Reading)
        return self.running.begin(self._query(request.decode(), timeout, transform, log))

    async def _query(self, request: str, timeout: float, reading: Reading, log: bool) -> list[Row]:
        if self.running.stopped:
            raise StoppedError
        path = self.path() + request
        if len(path) <= _LONGEST_URL:
            body = await self.remote.call("GET", path, timeout, self.whom)
        else:
            path, _, query = path.partition("?")
            sent = query.encode()
            body = await self.remote.call("POST", path, timeout, self.whom, sent, FORM)
        rows = await sliced(_rows(body, reading), self.remote.reactor)
        if log:
            # A core gives its newest lines first, an instance its oldest.
            rows.reverse()
        return PartialRows(rows) if isinstance(body, PartialBody) else rows

    def keep(self, idle: float) -> None:
        """Connections are kept for all sites of the other side together."""

    def stop(self) -> Deferred[None]:
        """End all queries."""
        return self.running.stop(cut=True)

    def retire(self) -> None:
        """Nothing is kept for one site."""


def _rows(body: bytes, reading: Reading) -> Generator[None, None, list[Row]]:
    found = yield from records(body)
    if reading.whole:
        return reading(found)
    rows: list[Row] = []
    for start in range(0, len(found), _AT_A_TIME):
        rows += reading(found[start : start + _AT_A_TIME])
        yield
    return rows
