"""Metrics of the daemon itself, for Prometheus (docs/spec/metrics.md).

Each part counts for itself and offers a source, which is read when a client asks: nothing is
computed in vain. With several workers each is asked, and their samples are joined.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import count
from typing import Any, Literal, TypeAlias

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from monrest.base.workers import Workers

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Joining: TypeAlias = Literal["sum", "max", "min"]

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: the upper bounds of the buckets of histograms."""

_PATIENCE = 1.0
"""Seconds for which the samples of other workers are waited for."""

_IN_A_MESSAGE = 200
"""Samples, so that a message is short enough for the line between workers."""


@frozen
class Meter:
    """One family of samples; ``joining`` is what becomes of those of several workers."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    joining: Joining = "sum"


METERS = (
    Meter("build_info", "gauge", "1, labelled with the version", ("version", "python"), "max"),
    Meter("workers", "gauge", "worker processes that answered"),
    Meter(
        "http_request_duration_seconds", "histogram",
        "time from the head of a request to the end of its answer", ("method", "route"),
    ),
    Meter("http_requests_total", "counter", "answered requests", ("method", "route", "status")),
    Meter("http_response_bytes_total", "counter", "bytes of answers with their heads"),
    Meter("http_connections", "gauge", "open connections of clients"),
    Meter("http_body_bytes", "gauge", "bytes of bodies that are being received"),
    Meter("site_up", "gauge", "1 if the site answers", ("site",), "min"),
    Meter(
        "site_query_duration_seconds", "histogram",
        "time from asking a core to its whole answer", ("site",),
    ),
    Meter("site_query_errors_total", "counter", "queries that a core did not answer", ("site",)),
    Meter("site_connections", "gauge", "open connections to a core", ("site", "state")),
    Meter("site_queries_waiting", "gauge", "queries that wait for a connection", ("site",)),
    Meter("hosts", "gauge", "hosts by state", ("site", "state", "handled"), "max"),
    Meter("services", "gauge", "services by state", ("site", "state", "handled"), "max"),
    Meter("jobs", "gauge", "background jobs in this daemon", ("state",)),
    Meter(
        "logcache_lag_seconds", "gauge", "age of the last update of the log cache", ("site",),
        "max",
    ),
    Meter("logcache_lines", "gauge", "log lines in the cache", ("site",), "max"),
    Meter("reactor_lag_seconds", "histogram", "how late a timer of the reactor is called"),
    Meter("process_cpu_seconds_total", "counter", "processor time of all workers"),
    Meter("process_resident_memory_bytes", "gauge", "resident memory of all workers"),
    Meter("process_open_fds", "gauge", "open file descriptors of all workers"),
    Meter("process_start_time_seconds", "gauge", "Unix time of the start", (), "min"),
)  # fmt: skip
"""Everything that is measured."""

_JOINING = {meter.name: meter.joining for meter in METERS}

Sample: TypeAlias = tuple[str, tuple[str, ...], Any]
"""The name of a meter, the values of its labels, and a number or, of a histogram, ``Spread``."""

Spread: TypeAlias = list[float]
"""A histogram: counts by bucket, one more for what is beyond the last bound, then the sum."""

MeterSource: TypeAlias = Callable[[], Iterable[Sample] | Awaitable[Iterable[Sample]]]
"""Returns the samples of a part; cheap enough for a look every few seconds."""


def spread() -> Spread:
    return [0.0] * (len(BOUNDS) + 2)


def observe(histogram: Spread, seconds: float) -> None:
    histogram[bisect_left(BOUNDS, seconds)] += 1
    histogram[-1] += seconds


def joined(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Join the samples of several workers that are about the same."""
    values: dict[tuple[str, tuple[str, ...]], Any] = {}
    for name, labels, value in samples:
        key, before = (name, tuple(labels)), values.get((name, tuple(labels)))
        if before is None:
            values[key] = value
        elif isinstance(value, list):
            values[key] = [mine + other for mine, other in zip(before, value, strict=True)]
        elif _JOINING[name] == "sum":
            values[key] = before + value
        else:
            values[key] = max(before, value) if _JOINING[name] == "max" else min(before, value)
    return ((name, labels, value) for (name, labels), value in values.items())


async def _read(sources: Iterable[MeterSource]) -> list[Sample]:
    read: list[Sample] = []
    for source in sources:
        samples = source()
        read += await samples if isinstance(samples, Awaitable) else samples
    return read


@define(eq=False)
class _Asked:
    """A look at all workers: how many are still expected, and what came."""

    done: Deferred[None]
    expected: int
    samples: list[Sample] = field(factory=list)


@define(eq=False)
class Meters:
    """The sources of this worker, and the way to those of the others."""

    clock: IReactorTime
    workers: Workers = field(factory=Workers)
    _sources: list[MeterSource] = field(factory=list, init=False)
    _of_all: list[MeterSource] = field(factory=list, init=False)
    _asked: dict[int, _Asked] = field(factory=dict, init=False)
    _numbers: count[int] = field(factory=count, init=False)

    def __attrs_post_init__(self) -> None:
        self.workers.hear("meters wanted", self._send)
        self.workers.hear("meters", self._receive)

    def offer(self, source: MeterSource, *, of_all: bool = False) -> None:
        """Read ``source`` from now on; ``of_all``: it says the same in each worker."""
        (self._of_all if of_all else self._sources).append(source)

    async def own(self) -> list[Sample]:
        """Return the samples of this worker. Raises what a source raises."""
        return [("workers", (), 1), *await _read(self._sources)]

    async def all(self) -> list[Sample]:
        """Return the joined samples of all workers that answer within a second."""
        samples = [*await self.own(), *await _read(self._of_all)]
        others = self.workers.count - 1
        if others:
            number = next(self._numbers)
            asked = self._asked[number] = _Asked(Deferred(), others)
            late = self.clock.callLater(_PATIENCE, asked.done.callback, None)
            self.workers.tell("meters wanted", self.workers.number, number)
            try:
                await asked.done
            finally:
                del self._asked[number]
                if late.active():
                    late.cancel()
            samples += asked.samples
        return list(joined(samples))

    def _send(self, asker: int, number: int) -> None:
        async def send() -> None:
            samples = await self.own()
            for at in range(0, len(samples), _IN_A_MESSAGE):
                part = samples[at : at + _IN_A_MESSAGE]
                last = at + _IN_A_MESSAGE >= len(samples)
                self.workers.tell("meters", asker, number, last, part)

        Deferred.fromCoroutine(send()).addErrback(lambda _: None)

    def _receive(self, asker: int, number: int, last: bool, samples: list[Any]) -> None:
        asked = self._asked.get(number) if asker == self.workers.number else None
        if asked is None:
            return
        asked.samples += [(name, tuple(labels), value) for name, labels, value in samples]
        asked.expected -= last
        if not asked.expected and not asked.done.called:
            asked.done.callback(None)
