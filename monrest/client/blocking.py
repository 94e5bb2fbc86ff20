"""The client for programs that wait: nothing but the standard library."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from monrest.client import operations
from monrest.client.clauses import Clause
from monrest.client.client_problems import IncompleteError, UnreachableError, failure_of
from monrest.client.event_tail import EventDocument, EventTail, followed
from monrest.client.exchange import ClientCredentials, failed_sites_of, prepared, segment
from monrest.client.http_transport import Reply, Transport
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


class Client:
    """Asks one monrest; connections are kept and used again. Not for several threads at once.

    ``url``: ``unix:PATH``, ``http://HOST:PORT`` or ``https://HOST``, with or without the root
    ``/mon/r``. ``user``: for a superuser key, for whom it acts. ``timeout``: seconds of silence.
    ``retries``: how often a request that changes nothing is sent again when the daemon cannot be
    reached or says 503. ``whole``: an answer that lacks sites raises IncompleteError.
    ``strict``: a name in ``columns`` or ``sort`` that no row has is an InvalidRequestError. Raises
    ValueError for a URL that is none.
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
    ) -> None:
        self._address = parse(url)
        self._credentials = ClientCredentials(key, user)
        self._policy = Policy(self._address.app, retries, whole, strict)
        self._transport = Transport(
            timeout=timeout, insecure=insecure, ca_file=ca_file, cert_file=cert_file,
            key_file=key_file, keep=connections,
        )  # fmt: skip

    @classmethod
    def from_environment(cls, **more: Any) -> Client:
        """A client by ``MONREST_URL``, ``MONREST_KEY`` and ``MONREST_USER``."""
        return cls(**from_variables(more))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def get(self, path: str, **parameters: Any) -> Any:
        """The decoded answer of a GET; a list is an ``AnsweredRows``. Raises ClientError."""
        return self._run(self._ask("GET", path, parameters, None))

    def post(self, path: str, document: Any = None, **parameters: Any) -> Any:
        """The decoded answer of a POST of ``document`` as JSON; it is sent once."""
        return self._run(self._ask("POST", path, parameters, document))

    def patch(self, path: str, document: Any, **parameters: Any) -> Any:
        """The decoded answer of a PATCH; it is sent once."""
        return self._run(self._ask("PATCH", path, parameters, document))

    def delete(self, path: str, **parameters: Any) -> Any:
        """The decoded answer of a DELETE; it is sent once."""
        return self._run(self._ask("DELETE", path, parameters, None))

    def stream(self, path: str, **parameters: Any) -> Iterator[Mapping[str, Any]]:
        """The rows of a list one by one as they come (NDJSON)."""
        ask = Ask(path, query=operations.query_of(parameters), prefix="ndjson")
        return self._stream(ask)

    def events(
        self,
        clause: Clause | None = None,
        *,
        types: Sequence[str] = (),
        columns: Sequence[str] = (),
        sites: Sequence[str] = (),
        since: str = "",
        snapshot: bool = False,
    ) -> Iterator[EventDocument]:
        """Events as they happen, for ever; a lost connection is made again, behind the last event.

        ``since``: the ``cursor`` of an event, or a time such as ``-10m``. ``snapshot``: the present
        problems come first. Raises ClientError when the first request fails, and whenever the
        daemon refuses.
        """
        tail = EventTail.chosen(clause, types, columns, sites, since, snapshot)
        return followed(tail, self._opened, lambda _: None)

    def _ask(
        self, method: str, path: str, parameters: Mapping[str, Any], document: Any
    ) -> ClientSteps[Any]:
        ask = Ask(path, method, operations.query_of(parameters), document)
        return operations.document(ask, self._policy)

    def _run(self, steps: ClientSteps[T]) -> T:
        """Drive an operation to its end."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = steps.send(None)
                    continue
                try:
                    answer = self._answer(step)
                except UnreachableError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            return cast(T, end.value)

    def _answer(self, ask: Ask) -> Answered:
        reply = self._reply(ask)
        return Answered(reply.status, reply.headers, reply.read())

    def _reply(self, ask: Ask) -> Reply:
        request = prepared(
            self._address, self._credentials, ask.path,
            method=ask.method, query=ask.query, body=ask.body, prefix=ask.prefix, sites=ask.sites,
            strict=self._policy.strict,
        )  # fmt: skip
        return self._transport.send(self._address, request)

    def _opened(self, ask: Ask) -> Reply:
        """The beginning of a success; an answer that is none raises ApiError."""
        reply = self._reply(ask)
        if not reply.good:
            retry_after = reply.headers.get("Retry-After", "")
            raise failure_of(reply.status, reply.read(), retry_after)
        return reply

    def _stream(self, ask: Ask) -> Iterator[Mapping[str, Any]]:
        reply = self._opened(ask)
        failed = failed_sites_of(reply.headers, self._policy.app)
        if failed and self._policy.whole:
            reply.close()
            raise IncompleteError(failed)
        for line in reply.lines():
            if line:
                yield json.loads(line)

    def hosts(self, clause: Clause | None = None) -> RowQuery[HostRow]:
        return RowQuery[HostRow](self, "/hosts").filter(clause)

    def services(self, clause: Clause | None = None) -> RowQuery[ServiceRow]:
        return RowQuery[ServiceRow](self, "/services").filter(clause)

    def hostgroups(self, clause: Clause | None = None) -> RowQuery[HostgroupRow]:
        return RowQuery[HostgroupRow](self, "/hostgroups").filter(clause)

    def servicegroups(self, clause: Clause | None = None) -> RowQuery[ServicegroupRow]:
        return RowQuery[ServicegroupRow](self, "/servicegroups").filter(clause)

    def contacts(self, clause: Clause | None = None) -> RowQuery[ContactRow]:
        return RowQuery[ContactRow](self, "/contacts").filter(clause)

    def contactgroups(self, clause: Clause | None = None) -> RowQuery[ContactgroupRow]:
        return RowQuery[ContactgroupRow](self, "/contactgroups").filter(clause)

    def timeperiods(self, clause: Clause | None = None) -> RowQuery[TimeperiodRow]:
        return RowQuery[TimeperiodRow](self, "/timeperiods").filter(clause)

    def check_commands(self, clause: Clause | None = None) -> RowQuery[CheckCommandRow]:
        """Check commands (``/commands``)."""
        return RowQuery[CheckCommandRow](self, "/commands").filter(clause)

    def comments(self, clause: Clause | None = None) -> RowQuery[CommentRow]:
        return RowQuery[CommentRow](self, "/comments").filter(clause)

    def downtimes(self, clause: Clause | None = None) -> RowQuery[DowntimeRow]:
        return RowQuery[DowntimeRow](self, "/downtimes").filter(clause)

    def logs(self, clause: Clause | None = None) -> RowQuery[LogRow]:
        """Log lines; say from when: ``where`` cannot, ``column("time") > …`` can."""
        return RowQuery[LogRow](self, "/logs").filter(clause)

    def alerts(self, clause: Clause | None = None) -> RowQuery[LogRow]:
        """Alerts of the log."""
        return RowQuery[LogRow](self, "/alerts").filter(clause)

    def notifications(self, clause: Clause | None = None) -> RowQuery[LogRow]:
        """Notifications of the log."""
        return RowQuery[LogRow](self, "/notifications").filter(clause)

    def processes(self, clause: Clause | None = None) -> RowQuery[ProcessRow]:
        """What the cores say of themselves (``/processinfo``)."""
        return RowQuery[ProcessRow](self, "/processinfo").filter(clause)

    def sites(self, clause: Clause | None = None) -> RowQuery[SiteRow]:
        """Sites, with those that are down."""
        return RowQuery[SiteRow](self, "/sites").filter(clause)

    def rows(self, path: str, clause: Clause | None = None) -> RowQuery[dict[str, Any]]:
        """Any other list of the API."""
        return RowQuery[dict[str, Any]](self, path).filter(clause)

    def host(self, name: str) -> HostRow:
        """One host by its name; NotThereError when there is none."""
        return cast(HostRow, operations.only_row(self.get(f"/hosts/{segment(name)}")))

    def service(self, host: str, description: str) -> ServiceRow:
        """One service; NotThereError when there is none."""
        path = f"/services/{segment(host)}/{segment(description)}"
        return cast(ServiceRow, operations.only_row(self.get(path)))

    def command(self, name: str, *, sites: Sequence[str] = (), **arguments: Any) -> CommandFate:
        """Send a command: ``host``, ``service`` … name its object, ``wait`` seconds for its effect.

        It is sent once. Raises InvalidRequestError when a core refuses it, SitesFailedError when
        no site took it; UnreachableError when that is unknown.
        """
        return self._run(operations.command(name, arguments, tuple(sites), self._policy))

    def commands(
        self,
        entries: Sequence[Mapping[str, Any]],
        *,
        wait: float | None = None,
        sites: Sequence[str] = (),
    ) -> list[CommandFate]:
        """Send up to 10,000 commands in one request; none of them when one is malformed.

        Each entry has ``cmd``, its object and its arguments.
        """
        return self._run(operations.commands(entries, wait, tuple(sites), self._policy))

    def background(
        self, path: str, *, method: str = "GET", document: Any = None, **parameters: Any
    ) -> BackgroundJob:
        """Have a request done as a job."""
        ask = Ask(path, method, operations.query_of(parameters), document)
        return BackgroundJob(self, self._run(operations.begin_job(ask, self._policy)))

    def job(self, id: str) -> BackgroundJob:
        """A job that was begun before."""
        return BackgroundJob(self, id)


class BackgroundJob:
    """A request that goes on at the daemon."""

    def __init__(self, client: Client, id: str) -> None:
        self.id = id
        self._client = client

    def state(self) -> Mapping[str, Any]:
        """How far it is: ``is_running``, ``percent``, ``remaining``, ``message`` …."""
        return self._client._run(operations.job_state(self.id, self._client._policy))

    def result(self, progress: TellsProgress | None = None) -> Any:
        """Wait for it and give what its request answers; ``progress`` gets its state meanwhile.

        Raises what the request raises, an ApiError of code 500 when it was cancelled or failed.
        """
        return self._client._run(operations.job_result(self.id, progress, self._client._policy))

    def cancel(self) -> None:
        """End it; a second time removes its record."""
        self._client._run(operations.cancel_job(self.id, self._client._policy))


class RowQuery(ListRequest[RowT], Generic[RowT]):
    """A selection that is asked with ``all``, ``first``, ``one``, ``count``, or by iterating."""

    def __init__(self, client: Client, path: str) -> None:
        super().__init__(path)
        self._client = client

    def all(self) -> list[RowT]:
        """All rows; an ``AnsweredRows``, which names the sites that are missing."""
        return cast(list[RowT], self._asked())

    def _asked(self, **more: str | None) -> Any:
        return self._client._run(operations.document(self.ask("", **more), self._client._policy))

    def first(self) -> RowT | None:
        """The first row, None when there is none."""
        rows = self.limit(1).all()
        return rows[0] if rows else None

    def one(self) -> RowT:
        """The only row; LookupError when there are none or several."""
        rows = self.limit(2).all()
        if len(rows) != 1:
            raise LookupError(f"expected one row, got {'several' if rows else 'none'}")
        return rows[0]

    def count(self) -> int:
        """How many rows there are, counted by the cores."""
        return operations.number_of(self._asked(columns="count(*) as n", sort=None))

    def pages(self, size: int = PAGE) -> Iterator[list[RowT]]:
        """The rows in lists of ``size``, each asked for when it is wanted.

        Rows that come or go between two pages may be missing or twice; sort by a name.
        """
        start, most = self._bounds
        while most is None or most > 0:
            wanted = size if most is None else min(size, most)
            page = self.offset(start).limit(wanted).all()
            if page:
                yield page
            if len(page) < wanted:
                return
            start += wanted
            most = None if most is None else most - wanted

    def __iter__(self) -> Iterator[RowT]:
        """The rows one by one as they come, in one request that needs little memory (NDJSON)."""
        return cast(Iterator[RowT], self._client._stream(self.ask("ndjson")))
