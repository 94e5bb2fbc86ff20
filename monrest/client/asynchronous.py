"""The client as coroutines, for Twisted.

All but the transport and the clock is that of ``AsyncioClient`` as well: Twisted is not imported
before it is used.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from monrest.client import operations
from monrest.client.clauses import Clause
from monrest.client.client_problems import IncompleteError, UnreachableError, failure_of
from monrest.client.event_tail import AGAIN, LOST, EventDocument, EventTail
from monrest.client.exchange import (
    ClientCredentials,
    Prepared,
    ReplyHeaders,
    failed_sites_of,
    prepared,
    segment,
)
from monrest.client.list_request import DEFAULT, PAGE, ListRequest, RowT, from_variables
from monrest.client.operations import (
    Answered,
    Ask,
    ClientSteps,
    CommandFate,
    Pause,
    Policy,
    TellsProgress,
)
from monrest.client.rows import (
    CheckCommandRow,
    CommentRow,
    ContactgroupRow,
    ContactRow,
    DowntimeRow,
    HostgroupRow,
    HostRow,
    LogRow,
    ProcessRow,
    ServicegroupRow,
    ServiceRow,
    SiteRow,
    TimeperiodRow,
)
from monrest.client.server_address import parse

T = TypeVar("T")


class StreamedReply(Protocol):
    """An answer whose body is still on its way; it is read once, with ``lines`` or ``read``."""

    status: int

    @property
    def headers(self) -> ReplyHeaders:
        """Those of the answer."""

    async def read(self) -> bytes:
        """The whole body."""

    def lines(self) -> AsyncIterator[bytes]:
        """The lines of the body without their ends, each as soon as it is there."""

    async def abort(self) -> None:
        """Read no further."""


class CoroutineTransport(Protocol):
    """Sends requests; raises UnreachableError."""

    async def send(self, request: Prepared) -> StreamedReply:
        """Send a request and give the beginning of its answer."""

    async def close(self) -> None:
        """Close idle connections."""


class AsyncClient:
    """As ``Client``, with coroutines; requests run at the same time as far as you let them.

    ``reactor``: the one to use, default: the installed one. ``timeout`` in seconds for the
    beginning of an answer and for each silence after that.
    """

    def __init__(
        self,
        url: str = DEFAULT,
        *,
        key: str = "",
        user: str = "",
        timeout: float = 60.0,
        retries: int = 2,
        whole: bool = False,
        strict: bool = True,
        insecure: bool = False,
        ca_file: str = "",
        cert_file: str = "",
        key_file: str = "",
        connections: int = 4,
        reactor: Any = None,
    ) -> None:
        if reactor is None:
            from twisted.internet import reactor
        from monrest.client.twisted_transport import TwistedTransport

        self._asks(url, key, user, retries, whole, strict)
        self._reactor = reactor
        self._transport: CoroutineTransport = TwistedTransport(
            reactor, self._address, timeout=timeout, insecure=insecure, ca_file=ca_file,
            cert_file=cert_file, key_file=key_file, keep=connections,
        )  # fmt: skip

    def _asks(self, url: str, key: str, user: str, retries: int, whole: bool, strict: bool) -> None:
        self._address = parse(url)
        self._credentials = ClientCredentials(key, user)
        self._policy = Policy(self._address.app, retries, whole, strict)

    @classmethod
    def from_environment(cls, **more: Any) -> Self:
        """A client by ``MONREST_URL``, ``MONREST_KEY`` and ``MONREST_USER``."""
        return cls(**from_variables(more))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close idle connections."""
        await self._transport.close()

    async def get(self, path: str, **parameters: Any) -> Any:
        """The decoded answer of a GET; a list is an ``AnsweredRows``. Raises ClientError."""
        return await self._run(self._ask("GET", path, parameters, None))

    async def post(self, path: str, document: Any = None, **parameters: Any) -> Any:
        """The decoded answer of a POST of ``document`` as JSON; it is sent once."""
        return await self._run(self._ask("POST", path, parameters, document))

    async def patch(self, path: str, document: Any, **parameters: Any) -> Any:
        """The decoded answer of a PATCH; it is sent once."""
        return await self._run(self._ask("PATCH", path, parameters, document))

    async def delete(self, path: str, **parameters: Any) -> Any:
        """The decoded answer of a DELETE; it is sent once."""
        return await self._run(self._ask("DELETE", path, parameters, None))

    def stream(self, path: str, **parameters: Any) -> AsyncIterator[Mapping[str, Any]]:
        """The rows of a list one by one as they come (NDJSON)."""
        return self._stream(Ask(path, query=operations.query_of(parameters), prefix="ndjson"))

    async def events(
        self,
        clause: Clause | None = None,
        *,
        types: Sequence[str] = (),
        columns: Sequence[str] = (),
        sites: Sequence[str] = (),
        since: str = "",
        snapshot: bool = False,
    ) -> AsyncIterator[EventDocument]:
        """Events as they happen, for ever; a lost connection is made again, behind the last event.

        ``since``: the ``cursor`` of an event, or a time such as ``-10m``. ``snapshot``: the present
        problems come first. Raises ClientError when the first request fails, and whenever the
        daemon refuses.
        """
        tail = EventTail.chosen(clause, types, columns, sites, since, snapshot)
        while True:
            try:
                reply = await self._opened(tail.ask())
                try:
                    async for line in reply.lines():
                        event = tail.take(line)
                        if event is not None:
                            yield event
                finally:
                    # Who listens no longer ends the request.
                    await reply.abort()
            except LOST:
                if not tail.began:
                    raise
            await self._pause(AGAIN)

    def _ask(
        self, method: str, path: str, parameters: Mapping[str, Any], document: Any
    ) -> ClientSteps[Any]:
        ask = Ask(path, method, operations.query_of(parameters), document)
        return operations.document(ask, self._policy)

    async def _run(self, steps: ClientSteps[T]) -> T:
        """Drive an operation to its end."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await self._pause(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    answer = await self._answer(step)
                except UnreachableError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return cast(T, end.value)

    async def _answer(self, ask: Ask) -> Answered:
        reply = await self._reply(ask)
        return Answered(reply.status, reply.headers, await reply.read())

    async def _reply(self, ask: Ask) -> StreamedReply:
        request = prepared(
            self._address, self._credentials, ask.path,
            method=ask.method, query=ask.query, body=ask.body, prefix=ask.prefix, sites=ask.sites,
            strict=self._policy.strict,
        )  # fmt: skip
        return await self._transport.send(request)

    async def _opened(self, ask: Ask) -> StreamedReply:
        """The beginning of a success; an answer that is none raises ApiError."""
        reply = await self._reply(ask)
        if reply.status // 100 != 2:
            retry_after = reply.headers.get("Retry-After", "")
            raise failure_of(reply.status, await reply.read(), retry_after)
        return reply

    async def _stream(self, ask: Ask) -> AsyncIterator[Mapping[str, Any]]:
        reply = await self._opened(ask)
        failed = failed_sites_of(reply.headers, self._policy.app)
        if failed and self._policy.whole:
            await reply.abort()
            raise IncompleteError(failed)
        try:
            async for line in reply.lines():
                if line:
                    yield json.loads(line)
        finally:
            # Who reads no further ends the request.
            await reply.abort()

    async def _pause(self, seconds: float) -> None:
        from twisted.internet.task import deferLater

        await cast(Any, deferLater(self._reactor, seconds, lambda: None))

    def hosts(self, clause: Clause | None = None) -> AsyncRowQuery[HostRow]:
        return AsyncRowQuery[HostRow](self, "/hosts").filter(clause)

    def services(self, clause: Clause | None = None) -> AsyncRowQuery[ServiceRow]:
        return AsyncRowQuery[ServiceRow](self, "/services").filter(clause)

    def hostgroups(self, clause: Clause | None = None) -> AsyncRowQuery[HostgroupRow]:
        return AsyncRowQuery[HostgroupRow](self, "/hostgroups").filter(clause)

    def servicegroups(self, clause: Clause | None = None) -> AsyncRowQuery[ServicegroupRow]:
        return AsyncRowQuery[ServicegroupRow](self, "/servicegroups").filter(clause)

    def contacts(self, clause: Clause | None = None) -> AsyncRowQuery[ContactRow]:
        return AsyncRowQuery[ContactRow](self, "/contacts").filter(clause)

    def contactgroups(self, clause: Clause | None = None) -> AsyncRowQuery[ContactgroupRow]:
        return AsyncRowQuery[ContactgroupRow](self, "/contactgroups").filter(clause)

    def timeperiods(self, clause: Clause | None = None) -> AsyncRowQuery[TimeperiodRow]:
        return AsyncRowQuery[TimeperiodRow](self, "/timeperiods").filter(clause)

    def check_commands(self, clause: Clause | None = None) -> AsyncRowQuery[CheckCommandRow]:
        """Check commands (``/commands``)."""
        return AsyncRowQuery[CheckCommandRow](self, "/commands").filter(clause)

    def comments(self, clause: Clause | None = None) -> AsyncRowQuery[CommentRow]:
        return AsyncRowQuery[CommentRow](self, "/comments").filter(clause)

    def downtimes(self, clause: Clause | None = None) -> AsyncRowQuery[DowntimeRow]:
        return AsyncRowQuery[DowntimeRow](self, "/downtimes").filter(clause)

    def logs(self, clause: Clause | None = None) -> AsyncRowQuery[LogRow]:
        """Log lines; say from when: ``where`` cannot, ``column("time") > …`` can."""
        return AsyncRowQuery[LogRow](self, "/logs").filter(clause)

    def alerts(self, clause: Clause | None = None) -> AsyncRowQuery[LogRow]:
        """Alerts of the log."""
        return AsyncRowQuery[LogRow](self, "/alerts").filter(clause)

    def notifications(self, clause: Clause | None = None) -> AsyncRowQuery[LogRow]:
        """Notifications of the log."""
        return AsyncRowQuery[LogRow](self, "/notifications").filter(clause)

    def processes(self, clause: Clause | None = None) -> AsyncRowQuery[ProcessRow]:
        """What the cores say of themselves (``/processinfo``)."""
        return AsyncRowQuery[ProcessRow](self, "/processinfo").filter(clause)

    def sites(self, clause: Clause | None = None) -> AsyncRowQuery[SiteRow]:
        """Sites, with those that are down."""
        return AsyncRowQuery[SiteRow](self, "/sites").filter(clause)

    def rows(self, path: str, clause: Clause | None = None) -> AsyncRowQuery[dict[str, Any]]:
        """Any other list of the API."""
        return AsyncRowQuery[dict[str, Any]](self, path).filter(clause)

    async def host(self, name: str) -> HostRow:
        """One host by its name; NotThereError when there is none."""
        return cast(HostRow, operations.only_row(await self.get(f"/hosts/{segment(name)}")))

    async def service(self, host: str, description: str) -> ServiceRow:
        """One service; NotThereError when there is none."""
        path = f"/services/{segment(host)}/{segment(description)}"
        return cast(ServiceRow, operations.only_row(await self.get(path)))

    async def command(
        self, name: str, *, sites: Sequence[str] = (), **arguments: Any
    ) -> CommandFate:
        """Send a command, as ``Client.command`` does."""
        return await self._run(operations.command(name, arguments, tuple(sites), self._policy))

    async def commands(
        self,
        entries: Sequence[Mapping[str, Any]],
        *,
        wait: float | None = None,
        sites: Sequence[str] = (),
    ) -> list[CommandFate]:
        """Send up to 10,000 commands in one request, as ``Client.commands`` does."""
        return await self._run(operations.commands(entries, wait, tuple(sites), self._policy))

    async def background(
        self, path: str, *, method: str = "GET", document: Any = None, **parameters: Any
    ) -> AsyncJob:
        """Have a request done as a job."""
        ask = Ask(path, method, operations.query_of(parameters), document)
        return AsyncJob(self, await self._run(operations.begin_job(ask, self._policy)))

    def job(self, id: str) -> AsyncJob:
        """A job that was begun before."""
        return AsyncJob(self, id)


class AsyncJob:
    """A request that goes on at the daemon."""

    def __init__(self, client: AsyncClient, id: str) -> None:
        self.id = id
        self._client = client

    async def state(self) -> Mapping[str, Any]:
        """How far it is: ``is_running``, ``percent``, ``remaining``, ``message`` …."""
        return await self._client._run(operations.job_state(self.id, self._client._policy))

    async def result(self, progress: TellsProgress | None = None) -> Any:
        """Wait for it and give what its request answers, as ``BackgroundJob.result`` does."""
        steps = operations.job_result(self.id, progress, self._client._policy)
        return await self._client._run(steps)

    async def cancel(self) -> None:
        """End it; a second time removes its record."""
        await self._client._run(operations.cancel_job(self.id, self._client._policy))


class AsyncRowQuery(ListRequest[RowT], Generic[RowT]):
    """A selection whose rows are awaited, or iterated with ``async for``."""

    def __init__(self, client: AsyncClient, path: str) -> None:
        super().__init__(path)
        self._client = client

    async def all(self) -> list[RowT]:
        """All rows; an ``AnsweredRows``, which names the sites that are missing."""
        return cast(list[RowT], await self._asked())

    async def _asked(self, **more: str | None) -> Any:
        return await self._client._run(
            operations.document(self.ask("", **more), self._client._policy)
        )

    async def first(self) -> RowT | None:
        """The first row, None when there is none."""
        rows = await self.limit(1).all()
        return rows[0] if rows else None

    async def one(self) -> RowT:
        """The only row; LookupError when there are none or several."""
        rows = await self.limit(2).all()
        if len(rows) != 1:
            raise LookupError(f"expected one row, got {'several' if rows else 'none'}")
        return rows[0]

    async def count(self) -> int:
        """How many rows there are, counted by the cores."""
        return operations.number_of(await self._asked(columns="count(*) as n", sort=None))

    async def pages(self, size: int = PAGE) -> AsyncIterator[list[RowT]]:
        """The rows in lists of ``size``, each asked for when it is wanted."""
        start, most = self._bounds
        while most is None or most > 0:
            wanted = size if most is None else min(size, most)
            page = await self.offset(start).limit(wanted).all()
            if page:
                yield page
            if len(page) < wanted:
                return
            start += wanted
            most = None if most is None else most - wanted

    def __aiter__(self) -> AsyncIterator[RowT]:
        """The rows one by one as they come, in one request that needs little memory (NDJSON)."""
        return cast(AsyncIterator[RowT], self._client._stream(self.ask("ndjson")))
