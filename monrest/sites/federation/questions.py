"""A question for a core as a request to another instance's API, and the rows of the answer.

The API takes the names of the cores for columns, and its filters mean what ours mean, so that
everything that can be pushed to a core is pushed to the other side, on behalf of a user
(docs/spec/sites.md, "Federation").
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred, DeferredList

from monrest.base.errors import BadRequest
from monrest.base.values import Capabilities, Row
from monrest.livestatus.core_errors import ProtocolError, StoppedError
from monrest.livestatus.inbox import StoredRows
from monrest.livestatus.lql import simplified
from monrest.livestatus.pool import CoreRequest
from monrest.query.column_names import EMPTY, CoreType
from monrest.query.model import CoreFilter, Pushed, Stat, Test, columns_of, conjuncts
from monrest.query.totals import core_test
from monrest.sites.federation.answers import Record, RecordReader
from monrest.sites.federation.remote import FORM, ITSELF, OnBehalfOf, PartialBody, Remote
from monrest.sites.normalise import RowTypes, fixed
from monrest.sites.transport import PartialRows

_LARGEST = 256 * 1024
"""Bytes of an answer that become rows at once."""

_LONGEST_URL = 4000
"""Bytes of a path with its query; longer ones go into a body, for the sake of proxies."""

Read: TypeAlias = Callable[[Sequence[Record]], list[Row]]

_COLLECTIONS = {"log": "logs", "status": "processinfo"}
_NEWEST = (("time", True), ("lineno", True))


@frozen
class RemoteReading:
    """Makes rows of objects, batch by batch; ``whole``: of all of them, because they are added."""

    read: Read
    whole: bool = False

    def __call__(self, records: Sequence[Any]) -> list[Row]:
        return self.read(records)


def question(pushed: Pushed, capabilities: Capabilities, layout: RowTypes | None) -> CoreRequest:
    """A request below the path of a site; raise BadRequest for a value that cannot be written."""
    types = capabilities.tables.get(pushed.table, {})
    given = _conditions(pushed, types)
    # The newest lines are what a limit of the other side's log means by itself.
    if pushed.sort and (pushed.table, pushed.sort) != ("log", _NEWEST):
        keys = [f"{'-' if descending else ''}{name}" for name, descending in pushed.sort]
        given.append(("sort", ",".join(keys)))
    if pushed.limit is not None:
        given.append(("limit", str(pushed.limit)))
    if pushed.stats:
        counted = _Counted(pushed.columns, pushed.stats)
        columns, width = counted.columns(), len(pushed.columns) + len(pushed.stats)
        reading = RemoteReading(counted.read, whole=True)
    else:
        columns = pushed.columns
        shape = layout or tuple((name, _type(types, name)) for name in columns)
        reading, width = RemoteReading(_reader(columns, shape)), len(shape)
    if columns:
        given.insert(0, ("columns", ",".join(columns)))
    collection = _COLLECTIONS.get(pushed.table, pushed.table)
    request = f"/{quote(collection)}?{urlencode(given, quote_via=quote)}"
    return CoreRequest(request.encode(), width, reading, pushed.waits_long)


def _type(types: Mapping[str, str], name: str) -> CoreType:
    kind = types.get(name, "string")
    return kind if kind in EMPTY else "string"  # type: ignore[return-value]  # the keys are the types


def _conditions(pushed: Pushed, types: Mapping[str, str]) -> list[tuple[str, str]]:
    tree = True if pushed.filter is None else simplified(pushed.filter)
    if isinstance(tree, bool):
        items: tuple[CoreFilter, ...] = () if tree else _never(pushed, types)
    else:
        items = tuple(conjuncts([tree]))
    given: list[tuple[str, str]] = []
    words: list[str] = []
    for item in items:
        # What stands alone may have any value, also one with both kinds of quotes.
        if isinstance(item, Test):
            given.append((f"{item.column}[{item.op}]", item.value))
        else:
            words.append(_written(item))
    if words:
        given.append(("q", " and ".join(words)))
    if pushed.table == "log" and not any(
        isinstance(item, Test) and item.column == "time" for item in items
    ):
        # Without a condition on the time the other side reads the last day only.
        given.append(("time[>=]", "0"))
    return given


def _never(pushed: Pushed, types: Mapping[str, str]) -> tuple[CoreFilter, ...]:
    names = (*pushed.columns, *types)
    name = next((name for name in names if types.get(name) in ("int", "string", "time")), "name")
    return Test(name, "=", "0"), Test(name, "!=", "0")


def _written(tree: CoreFilter) -> str:
    if isinstance(tree, Test):
        for mark in "'\"":
            if mark not in tree.value:
                return f"{tree.column} {tree.op} {mark}{tree.value}{mark}"
        raise BadRequest(
            "error during request",
            f"{tree.column}: expected a value without both kinds of quotes, because a site is "
            "asked over another instance",
        )
    return "(" + f" {tree.connector} ".join(map(_written, tree.items)) + ")"


def _reader(columns: Sequence[str], layout: RowTypes) -> Read:
    wanted = frozenset(columns)
    # No object has None for a key, so that a column that was not asked for is missing.
    names: list[Any] = [name if name in wanted else None for name, _ in layout]
    empties = [EMPTY[core_type] for _, core_type in layout]
    normal = fixed(layout)

    def read(records: Sequence[Record]) -> list[Row]:
        rows = []
        for record in records:
            row = list(map(record.get, names))
            if None in row:
                row = [
                    empty if value is None else value
                    for value, empty in zip(row, empties, strict=True)
                ]
            rows.append(row)
        return normal(rows)

    return read


@frozen
class _Counted:
    """Stats lines as an aggregation of the other side.

    Counts with a condition of their own are made here, of the numbers of rows that are alike in
    all columns of these conditions.
    """

    groups: tuple[str, ...]
    stats: tuple[Stat, ...]

    def _alike(self) -> tuple[str, ...]:
        names = dict.fromkeys(self.groups)
        for stat in self.stats:
            names.update(dict.fromkeys(columns_of(stat.filter)))
        return tuple(names)

    def columns(self) -> tuple[str, ...]:
        numbers = [
            f"{stat.function}({stat.column}):_{at}"
            for at, stat in enumerate(self.stats)
            if stat.function != "count"
        ]
        return (*self._alike(), "count(*):_n", *numbers)

    def read(self, records: Sequence[Record]) -> list[Row]:
        """One row for each group, as a core sends them."""
        alike = self._alike()
        tests = [
            core_test(stat.filter, {n: at for at, n in enumerate(alike)}) for stat in self.stats
        ]
        groups: dict[tuple[Any, ...], list[Any]] = {}
        for record in records:
            values = [record.get(name) for name in alike]
            number = _number(record.get("_n"))
            group = groups.setdefault(tuple(map(_key, values[: len(self.groups)])), [])
            if not group:
                group += values[: len(self.groups)]
                group += [None if stat.function in ("min", "max") else 0 for stat in self.stats]
            for at, stat in enumerate(self.stats):
                place = len(self.groups) + at
                if stat.function == "count":
                    group[place] += number if tests[at](values) else 0
                elif number:
                    value = _number(record.get(f"_{at}"))
                    if group[place] is None or stat.function == "sum":
                        group[place] = (group[place] or 0) + value
                    else:
                        best = min if stat.function == "min" else max
                        group[place] = best(group[place], value)
        if not groups and not self.groups:
            groups[()] = [0] * len(self.stats)
        return [[0 if value is None else value for value in row] for row in groups.values()]


def _key(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) or value is None else repr(value)


def _number(value: Any) -> int | float:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ProtocolError("a statistic is not a number")
    return value


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
    """See ``sites.transport.Queries``; ``path`` returns the path of the site on the other side."""

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
        """There is no state of one site."""


@define(eq=False)
class RecordParser:
    """Makes rows of a list of objects, a batch at a time; see ``inbox.Parser``."""

    reading: RemoteReading
    _reader: RecordReader = field(init=False, factory=RecordReader)

    def feed(self, data: bytes) -> None:
        self._reader.feed(data)

    def taken(self) -> list[Row]:
        return [] if self.reading.whole else self.reading(self._reader.taken())

    def finish(self) -> list[Row]:
        return self.reading(self._reader.finish())


@define(eq=False)
class _Found:
    """An answer that arrives piece by piece; ``stored`` takes a large one."""

    reading: RemoteReading
    stored: StoredRows | None
    _parser: RecordParser = field(init=False)
    _rows: list[Row] = field(factory=list, init=False)
    _first: list[bytes] = field(factory=list, init=False)
    """The part that may be large."""
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
