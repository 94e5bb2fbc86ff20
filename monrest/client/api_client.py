"""The operations of all clients, over a transport that sends and waits (docs/client.md)."""

from __future__ import annotations

import json
import os
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeAlias

from monrest.client import rows as row_types
from monrest.client.calling import Awaited, Blocking, Called, KindT, Operation, Stream
from monrest.client.clauses import Clause
from monrest.client.event_tail import EventDocument, EventTail
from monrest.client.exchange import (
    DEFAULT_URL,
    SAFE,
    ApiRequest,
    ClientCredentials,
    ClientError,
    HttpRequest,
    IncompleteError,
    NotThereError,
    OverloadedError,
    Reply,
    ServerAddress,
    UnreachableError,
    failure_of,
    json_body,
    parse_address,
    query_of,
    segment,
)
from monrest.client.http_connection import BlockingTransport, ConnectionOptions
from monrest.client.row_query import RowQuery

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_AGAIN = 302
_UNAVAILABLE = 503

ProgressCallback: TypeAlias = Callable[[Mapping[str, Any]], object]
"""Gets the state of a job again and again."""


class Transport(Protocol):
    """Sends requests of a client, and waits for it."""

    async def send(self, request: HttpRequest) -> Reply:
        """Send a request and return the beginning of its answer; raises UnreachableError."""

    async def pause(self, seconds: float) -> None: ...

    async def close(self) -> None:
        """Close idle connections."""


class AnsweredRows(list[Any]):
    """The rows of an answer.

    ``failed_sites`` are missing in them, ``warnings`` are the daemon's.
    """

    failed_sites: Sequence[str] = ()
    warnings: Sequence[str] = ()


class CommandOutcome(NamedTuple):
    """The outcome of a command.

    ``code``: 200 when all cores accepted it. ``effect``: what was seen afterwards where ``wait``
    was given, ``effects`` by site. ``failed_sites`` did not get it; with ``uncertain`` they may
    have. ``document`` is the whole answer.
    """

    code: int
    message: str
    effect: str
    effects: Mapping[str, str]
    commands: Sequence[str]
    failed_sites: Sequence[str]
    uncertain: bool
    warnings: Sequence[str]
    document: Mapping[str, Any]

    @property
    def sent(self) -> bool:
        """Whether all cores took it."""
        return self.code == 200 and not self.failed_sites


class ApiClient(Called[KindT]):
    """The operations of the API.

    ``url``: ``unix:PATH``, ``http://HOST:PORT`` or ``https://HOST``, with or without the root
    ``/mon/r``. ``user``: for a superuser key, for whom it acts. ``timeout``: seconds of silence.
    ``retries``: how often a request that changes nothing is sent again when the daemon cannot be
    reached or says 503. ``whole``: an answer that lacks sites raises IncompleteError.
    ``strict``: a name in ``columns`` or ``sort`` that no row has is an InvalidRequestError. Raises
    ValueError for a URL that is none.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
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
    ) -> None:
        self._address = parse_address(url)
        self._credentials = ClientCredentials(key, user)
        self._retries, self._whole, self._strict = retries, whole, strict
        options = ConnectionOptions(timeout, insecure, ca_file, cert_file, key_file, connections)
        self._transport = self.transport(self._address, options)

    @classmethod
    def from_environment(cls, **more: Any) -> Self:
        """A client by ``MONREST_URL``, ``MONREST_KEY`` and ``MONREST_USER``; ``more`` win."""
        named = {name: os.environ.get(f"MONREST_{name.upper()}", "") for name in ("key", "user")}
        return cls(**{"url": os.environ.get("MONREST_URL") or DEFAULT_URL, **named, **more})

    @abstractmethod
    def transport(self, address: ServerAddress, options: ConnectionOptions) -> Transport:
        """The transport of requests to ``address``."""

    @Operation
    async def close(self) -> None:
        """Close idle connections."""
        await self._transport.close()

    @Operation
    async def get(self, /, path: str, **parameters: Any) -> Any:
        """The decoded answer of a GET; a list is an ``AnsweredRows``. Raises ClientError."""
        return await self.document(ApiRequest(path, query=query_of(parameters)))

    @Operation
    async def post(self, /, path: str, document: Any = None, **parameters: Any) -> Any:
        """The decoded answer of a POST of ``document`` as JSON; it is sent once."""
        body = json_body(document)
        return await self.document(ApiRequest(path, "POST", query_of(parameters), body))

    @Operation
    async def patch(self, /, path: str, document: Any, **parameters: Any) -> Any:
        """The decoded answer of a PATCH; it is sent once."""
        body = json_body(document)
        return await self.document(ApiRequest(path, "PATCH", query_of(parameters), body))

    @Operation
    async def delete(self, /, path: str, **parameters: Any) -> Any:
        """The decoded answer of a DELETE; it is sent once."""
        return await self.document(ApiRequest(path, "DELETE", query_of(parameters)))

    @Stream
    async def stream(
        self, /, path: str, **parameters: Any
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """The rows of a list one by one as they come (NDJSON)."""
        async for row in self.each(ApiRequest(path, query=query_of(parameters), prefix="ndjson")):
            yield row

    @Stream
    async def events(
        self,
        clause: Clause | None = None,
        *,
        types: Sequence[str] = (),
        columns: Sequence[str] = (),
        sites: Sequence[str] = (),
        since: str = "",
        snapshot: bool = False,
    ) -> AsyncGenerator[EventDocument, None]:
        """Events as they happen, for ever; a lost connection is made again, behind the last event.

        ``since``: the ``cursor`` of an event, or a time such as ``-10m``. ``snapshot``: the present
        problems come first. Raises ClientError when the first request fails, and whenever the
        daemon refuses.
        """
        parameters = {
            "types": ",".join(types) or None,
            "columns": ",".join(columns) or None,
            "q": None if clause is None else clause.text(),
            "since": since or None,
            "snapshot": 1 if snapshot else None,
        }
        events = EventTail(parameters, sites).events(self._opened, self._transport.pause)
        try:
            async for event in events:
                yield event
        finally:
            await events.aclose()

    def hosts(self, clause: Clause | None = None) -> RowQuery[row_types.HostRow, KindT]:
        return RowQuery(self, "/hosts", clause)

    def services(self, clause: Clause | None = None) -> RowQuery[row_types.ServiceRow, KindT]:
        return RowQuery(self, "/services", clause)

    def hostgroups(self, clause: Clause | None = None) -> RowQuery[row_types.HostgroupRow, KindT]:
        return RowQuery(self, "/hostgroups", clause)

    def servicegroups(
        self, clause: Clause | None = None
    ) -> RowQuery[row_types.ServicegroupRow, KindT]:
        return RowQuery(self, "/servicegroups", clause)

    def contacts(self, clause: Clause | None = None) -> RowQuery[row_types.ContactRow, KindT]:
        return RowQuery(self, "/contacts", clause)

    def contactgroups(
        self, clause: Clause | None = None
    ) -> RowQuery[row_types.ContactgroupRow, KindT]:
        return RowQuery(self, "/contactgroups", clause)

    def timeperiods(self, clause: Clause | None = None) -> RowQuery[row_types.TimeperiodRow, KindT]:
        return RowQuery(self, "/timeperiods", clause)

    def check_commands(
        self, clause: Clause | None = None
    ) -> RowQuery[row_types.CheckCommandRow, KindT]:
        """Check commands (``/commands``)."""
        return RowQuery(self, "/commands", clause)

    def comments(self, clause: Clause | None = None) -> RowQuery[row_types.CommentRow, KindT]:
        return RowQuery(self, "/comments", clause)

    def downtimes(self, clause: Clause | None = None) -> RowQuery[row_types.DowntimeRow, KindT]:
        return RowQuery(self, "/downtimes", clause)

    def logs(self, clause: Clause | None = None) -> RowQuery[row_types.LogRow, KindT]:
        """Log lines; say from when: ``where`` cannot, ``column("time") > …`` can."""
        return RowQuery(self, "/logs", clause)

    def alerts(self, clause: Clause | None = None) -> RowQuery[row_types.LogRow, KindT]:
        """Alerts of the log."""
        return RowQuery(self, "/alerts", clause)

    def notifications(self, clause: Clause | None = None) -> RowQuery[row_types.LogRow, KindT]:
        """Notifications of the log."""
        return RowQuery(self, "/notifications", clause)

    def processes(self, clause: Clause | None = None) -> RowQuery[row_types.ProcessRow, KindT]:
        """The process information of the cores (``/processinfo``)."""
        return RowQuery(self, "/processinfo", clause)

    def sites(self, clause: Clause | None = None) -> RowQuery[row_types.SiteRow, KindT]:
        """Sites, with those that are down."""
        return RowQuery(self, "/sites", clause)

    def rows(self, path: str, clause: Clause | None = None) -> RowQuery[dict[str, Any], KindT]:
        """Any other list of the API."""
        return RowQuery(self, path, clause)

    @Operation
    async def host(self, name: str) -> row_types.HostRow:
        """One host by its name; NotThereError when there is none."""
        row: row_types.HostRow = await self._only_row(f"/hosts/{segment(name)}")
        return row

    @Operation
    async def service(self, host: str, description: str) -> row_types.ServiceRow:
        """One service; NotThereError when there is none."""
        row: row_types.ServiceRow = await self._only_row(
            f"/services/{segment(host)}/{segment(description)}"
        )
        return row

    async def _only_row(self, path: str) -> Any:
        answer = await self.document(ApiRequest(path))
        if not isinstance(answer, list):
            return answer
        if not answer:
            raise NotThereError(404, {"message": "no such object"})
        return answer[0]  # several sites may have an object of this name

    @Operation
    async def command(
        self, /, name: str, *, sites: Sequence[str] = (), **arguments: Any
    ) -> CommandOutcome:
        """Send a command: ``host``, ``service`` … name its object, ``wait`` seconds for its effect.

        It is sent once. Raises InvalidRequestError when a core refuses it, SitesFailedError when
        no site took it; UnreachableError when that is unknown.
        """
        sent = {
            "cmd": name,
            **{key: value for key, value in arguments.items() if value is not None},
        }
        query = query_of({key: sent.pop(key) for key in ("wait", "test_only") if key in sent})
        request = ApiRequest("/cmd", "POST", query, json_body(sent), sites=tuple(sites))
        return _outcome(await self.document(request))

    @Operation
    async def commands(
        self,
        entries: Sequence[Mapping[str, Any]],
        *,
        wait: float | None = None,
        sites: Sequence[str] = (),
    ) -> list[CommandOutcome]:
        """Send up to 10,000 commands in one request; none of them when one is malformed.

        Each entry has ``cmd``, its object and its arguments; a refusal of a core is an outcome.
        """
        query, body = query_of({"wait": wait}), json_body(list(map(dict, entries)))
        request = ApiRequest("/cmd", "POST", query, body, sites=tuple(sites))
        return [_outcome(outcome) for outcome in await self.document(request)]

    @Operation
    async def background(
        self, /, path: str, *, method: str = "GET", document: Any = None, **parameters: Any
    ) -> Job[KindT]:
        """Run a request as a job."""
        query = query_of({**parameters, "background": 1})
        answer = await self.document(ApiRequest(path, method, query, json_body(document)))
        if not isinstance(answer, dict) or not answer.get("job_id"):
            _unexpected("an answer with a job_id")
        return Job(self, str(answer["job_id"]))

    def job(self, id: str) -> Job[KindT]:
        """A job that was begun before."""
        return Job(self, id)

    async def document(self, request: ApiRequest) -> Any:
        """The decoded answer to a request, a coroutine in every client; raises ClientError."""
        return self._decoded(*await self._answered(request))

    async def each(self, request: ApiRequest) -> AsyncGenerator[Any, None]:
        """The rows of an answer of NDJSON; their reader ends the request by leaving."""
        reply = await self._opened(request)
        lines = reply.lines()
        try:
            self._failed_sites(reply)
            async for line in lines:
                if line:
                    yield json.loads(line)
        finally:
            await lines.aclose()
            await reply.leave()

    async def _answered(self, request: ApiRequest) -> tuple[Reply, bytes]:
        """Ask, and ask again where that is safe; raises ApiError, UnreachableError."""
        for attempt in range(self._retries + 1):
            last = attempt == self._retries or request.method not in SAFE
            pause = _FIRST_PAUSE * 2**attempt
            try:
                reply = await self._sent(request)
                body = await reply.read()
            except UnreachableError as error:
                # A daemon that did not answer in time may still be at work.
                if last or isinstance(error.__cause__, TimeoutError):
                    raise
            else:
                if reply.good or reply.status == _AGAIN:
                    return reply, body
                problem = _problem(reply, body)
                if last or reply.status != _UNAVAILABLE:
                    raise problem
                if isinstance(problem, OverloadedError) and problem.retry_after is not None:
                    pause = min(problem.retry_after, _LONGEST_PAUSE)
            await self._transport.pause(pause)
        raise AssertionError("the last attempt ends it")

    async def _sent(self, request: ApiRequest) -> Reply:
        prepared = request.prepared(self._address, self._credentials, strict=self._strict)
        return await self._transport.send(prepared)

    async def _opened(self, request: ApiRequest) -> Reply:
        """The beginning of a success; an answer that is none raises ApiError."""
        reply = await self._sent(request)
        if not reply.good:
            raise _problem(reply, await reply.read())
        return reply

    def _failed_sites(self, reply: Reply) -> list[str]:
        failed = reply.failed_sites(self._address.app)
        if failed and self._whole:
            raise IncompleteError(failed)
        return failed

    def _decoded(self, reply: Reply, body: bytes) -> Any:
        failed = self._failed_sites(reply)
        if not body:
            return None
        try:
            document = json.loads(body)
        except ValueError:
            raise ClientError("the answer is no JSON: is this the address of a monrest?") from None
        if not isinstance(document, list):
            return document
        answered = AnsweredRows(document)
        answered.failed_sites, answered.warnings = failed, reply.warnings(self._address.app)
        return answered


class Job(Called[KindT]):
    """A request that runs in the background at the daemon."""

    def __init__(self, client: ApiClient[KindT], id: str) -> None:
        self.id, self.kind = id, client.kind
        self._client = client
        self._path = f"/{client._address.app}/jobs/{segment(id)}"

    @Operation
    async def state(self) -> Mapping[str, Any]:
        """The progress: ``is_running``, ``percent``, ``remaining``, ``message`` …."""
        return await self._state()

    async def _state(self) -> Mapping[str, Any]:
        answer = await self._client.document(ApiRequest(self._path))
        if isinstance(answer, list) and len(answer) == 1:
            answer = answer[0]
        if not isinstance(answer, dict):
            _unexpected("the state of a job")
        return answer

    @Operation
    async def result(self, progress: ProgressCallback | None = None) -> Any:
        """Wait for its end and return the answer of its request.

        ``progress`` gets its state meanwhile. Without it the daemon holds the request. Raises what
        the request raises, an ApiError of code 500 when it was cancelled or failed.
        """
        client, pause = self._client, _FIRST_PAUSE
        while progress is not None:
            state = await self._state()
            progress(state)
            if not state.get("is_running"):
                break
            await client._transport.pause(pause)
            pause = min(pause * 1.5, 2.0)
        while True:
            reply, body = await client._answered(ApiRequest(f"{self._path}/output"))
            if reply.status != _AGAIN:
                return client._decoded(reply, body)
            await client._transport.pause(_FIRST_PAUSE)

    @Operation
    async def cancel(self) -> None:
        """End it; a second time removes its record."""
        await self._client.document(ApiRequest(self._path, "DELETE"))


BackgroundJob: TypeAlias = Job[Blocking]


class Client(ApiClient[Blocking]):
    """Asks one monrest; connections are kept and used again. Not for several threads at once."""

    kind = Blocking

    def transport(self, address: ServerAddress, options: ConnectionOptions) -> BlockingTransport:
        return BlockingTransport(address, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class AwaitedClient(ApiClient[Awaited]):
    """A client whose methods are coroutines."""

    kind = Awaited

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _problem(reply: Reply, body: bytes) -> ClientError:
    return failure_of(reply.status, body, reply.headers.get("Retry-After", ""))


def _outcome(answer: Any) -> CommandOutcome:
    if not isinstance(answer, dict):
        _unexpected("the outcome of a command")
    commands = answer.get("commands") or ()
    return CommandOutcome(
        code=int(answer.get("code", 200)),
        message=str(answer.get("message") or answer.get("error") or ""),
        effect=str(answer.get("effect") or ""),
        effects=answer.get("effects") or {},
        commands=commands.splitlines() if isinstance(commands, str) else list(commands),
        failed_sites=list(answer.get("failed_sites") or ()),
        uncertain=bool(answer.get("uncertain")),
        warnings=list(answer.get("warnings") or ()),
        document=answer,
    )


def _unexpected(what: str) -> NoReturn:
    raise ClientError(f"expected {what}: is this the address of a monrest?")
