"""Business processes: list, read, write, calculate (docs/spec/bp.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import define, evolve, field, frozen

from monrest.api import visibility
from monrest.api.endpoint import (
    LIST_PARAMETERS,
    SITE_PARAMETERS,
    Context,
    Endpoint,
    Parameter,
)
from monrest.api.fields import collected
from monrest.api.lists import local_schema, read_columns, reselect, select, sparse
from monrest.api.records import Records, record_columns
from monrest.api.rights import may_submit
from monrest.base.audit import audited
from monrest.base.errors import BadRequest, Forbidden, NotFound
from monrest.base.values import (
    Answer,
    Column,
    Document,
    Identity,
    RestRequest,
    Rows,
    SiteProblem,
)
from monrest.bp.core_rows import ObjectName
from monrest.bp.model import NODES, PROCESS, StoredProcess
from monrest.bp.node_state import runtime_of
from monrest.bp.service import BusinessProcesses
from monrest.bp.store import LIMITS, MOST_NODES, number_of
from monrest.commands.lookups import commanded
from monrest.commands.permissions import Grant, grant, needed
from monrest.livestatus.command import Target
from monrest.query.column_names import CoreColumn, CoreType, TableSchema
from monrest.query.model import Condition, FilterTree, Group
from monrest.query.parse import parse_query
from monrest.rows.columns import HOSTS, SERVICES
from monrest.rows.fetch import fetch
from monrest.sites.federation.federated_site import FederatedSite
from monrest.store.stored import shown_values

ROLE = "authorized_for_business_processes"

COLUMNS = record_columns(
    StoredProcess,
    PROCESS,
    Column("affected_peers", "array_of_strings", "", "sites the last calculation is from, or null"),
    Column("bp_backend", "string", "", "site with the host of this process, or null"),
    Column("last_check", "time", "", "when it was calculated; 0: never"),
    Column("last_state_change", "time", "", "when its status changed; 0: never"),
    Column("status", "number", "", "0 ok, 1 warning, 2 critical, 3 unknown, 4 pending"),
    Column("status_text", "string", "", "what it says"),
    Column("time", "number", "s", "duration of the last calculation"),
)
_HELD: Mapping[str, CoreType] = {"nodes": "list"}
_SCHEMA = local_schema("bp", COLUMNS, (), _HELD)
_STORED = tuple(declared.name for declared in PROCESS.declared)


def record(process: StoredProcess, *, nodes: bool = True) -> dict[str, Any]:
    definition, result = process.definition, process.result
    return {
        **shown_values(process),
        **definition.attributes(),
        **result.summary(),
        "nodes": [
            {**node.document(), **runtime_of(result.node(node.id), result)}
            for node in (definition.nodes if nodes else ())
        ],
    }


def read_attributes(request: RestRequest) -> dict[str, Any]:
    """Return the attributes of a process in a request: of its JSON object, or of a form.

    Nodes of a form are JSON text. Raises BadRequest.
    """
    document = request.document
    if document is not None and not isinstance(document, dict):
        raise BadRequest("invalid value", "request body: expected an object")
    values: dict[str, Any] = dict(document or {})
    names = {*_STORED, "id"}.difference(values)
    form = collected(pair for pair in request.parameters if pair[0] in names)
    for name, value in form.items():
        if name == "filter":
            texts = value if isinstance(value, list) else [value]
            values[name] = [
                part.strip() for text in texts for part in text.split(",") if part.strip()
            ]
        elif isinstance(value, list):
            raise BadRequest("too many values", f"{name}: expected one value, got {len(value)}")
        else:
            values[name] = NODES.parsed(value) if name == NODES.name else value
    return values


def _require_writable(context: Context) -> None:
    if context.config.bp.read_only:
        raise Forbidden("business processes are read-only", "bp.read_only is on")


async def _check_refresh(context: Context, identity: Identity, name: str) -> None:
    """Raise Forbidden without the role and without the right to command the host of this name."""
    if identity.may(ROLE):
        return
    allowed = await may_submit(identity, context.contacts, context.config)
    verdict = grant(identity, "host", name, may_submit=allowed)
    sites = context.sites.select()
    if verdict is Grant.CONTACT and sites:
        target = Target("hosts", name)
        strict = context.config.auth.strict_host_authorization
        commands = await commanded(sites, (target,), identity.user, context.clock, strict=strict)
        verdict = Grant.ALLOWED if commands.on(target) else Grant.DENIED
    if verdict is not Grant.ALLOWED:
        raise Forbidden(
            "not authorized",
            f"needs the role {ROLE}, or for the host {name}: {needed('host', 'host')}"
            f"{identity.why_not(ROLE)}",
        )


_FEW = 50
"""Objects up to which a core is asked for them alone."""
_LONGEST_AUDITED = 200
"""Characters of a name that was refused."""

_TYPE = Column("_type", "string", "", "host or service")
_HOST_NAME = Column("host_name", "string", "", "name of the host")


_ID = Parameter(name="id", description="first number to try; default 1", type="integer")

_MESSAGE = Column("message", "string", "", "what was done")

_LEFT_OUT = Column(
    "description",
    "string",
    "",
    "processes that are not in the core's configuration, with the reason; absent if there are none",
)

_OTHERS = "Attributes that are not listed are not kept. "

_OBJECT_COLUMNS = (_TYPE, _HOST_NAME)

_OBJECTS_TEXT = (
    "Rows of `/hosts` and `/services` that the user may see, with `_type` (host or service); "
    "rows of hosts have `host_name` too. "
)


@frozen(eq=False, kw_only=True)
class ProcessRecords(Records[StoredProcess]):
    """Business processes that are asked for and changed."""

    word = "business process"
    title = "business process"
    path = "/mon/bp"
    key = "nr"
    summary = "business processes"
    columns = COLUMNS
    fields = PROCESS
    limits = LIMITS
    write_roles = (ROLE,)
    key_column = Column("data", "object", "", "the business process")
    done = (_MESSAGE, _LEFT_OUT)
    verbs: ClassVar = {
        "list": {
            "text": f"The role {ROLE} sees all of them, drafts too; others those of which they see "
            "a service of the core. Of nodes about hosts and services that the user may not see it "
            "says `not visible`; the state of the process as a whole is there."
        },
        "one": {},
        "create": {
            "description": "make a business process",
            "text": "It is a draft, which is not calculated regularly, until it is changed for the "
            "first time: an empty PATCH is enough. A name that is taken gets a number. Functions "
            "of nodes: status, groupstatus, fixed, worst, best, at_least, not_more, equals, "
            "statusfilter, random, custom. Processes that link to each other in a circle are "
            f"refused. {_OTHERS}{LIMITS.description} All processes have at most {MOST_NODES:,} "
            "nodes.",
            "parameters": (_ID, *PROCESS.declared),
        },
        "replace": {"text": f"What is not given has its default; the name is needed. {_OTHERS}"},
        "change": {
            "description": "change a business process",
            "text": "Objects merge by key, lists by position, null removes. A new function without "
            f"function_args has no arguments but those in its text. {_OTHERS}",
        },
        "remove": {"description": "delete a business process"},
    }

    bp: BusinessProcesses

    async def readable_by(
        self, context: Context, identity: Identity
    ) -> Callable[[StoredProcess], bool]:
        """Return the test whether a process exists for ``identity``.

        Without the role it has to be live, and some service of it to be visible. Raises SitesFailed
        when the cores cannot be asked.
        """
        if identity.may(ROLE):
            return lambda _: True
        seen = visibility.visibility(
            identity, "services", strict=context.config.auth.strict_host_authorization
        )
        carried = await self.bp.runner.carriers("services", context.sites.select(), seen)
        numbers = frozenset(carried.values())
        return lambda process: not process.draft and process.id in numbers

    async def mask_for(
        self, context: Context, identity: Identity, processes: Sequence[StoredProcess]
    ) -> tuple[list[StoredProcess], tuple[SiteProblem, ...]]:
        """Return processes with what ``identity`` may see of them (docs/spec/bp.md).

        The second value are sites that could not say what that is.
        """
        own = {site.id for site in context.sites.sites}
        whole = own.issuperset(site.id for site in self.bp.sites.sites)
        far = any(isinstance(site, FederatedSite) for site in context.sites.sites)
        if not processes or (
            identity.may(visibility.HOSTS)
            and identity.may(visibility.SERVICES)
            and whole
            and not far
        ):
            return list(processes), ()
        strict = context.config.auth.strict_host_authorization
        return await self.bp.runner.visible(
            processes,
            context.sites.select(),
            lambda table: visibility.visibility(identity, table, strict),
        )

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> list[StoredProcess]:
        """Live ones and drafts by name, those that the user may see."""
        if key is None:
            visible = await self.readable_by(context, request.identity)
            return [process for process in await self.bp.several() if visible(process)]
        number = number_of(key)
        if number is None:
            raise NotFound(f"unknown rest path: {request.path}")
        process = await self.bp.get(number)
        if process is None or not (await self.readable_by(context, request.identity))(process):
            return []
        return [process]

    async def rows(
        self, context: Context, processes: Iterable[StoredProcess]
    ) -> list[dict[str, Any]]:
        del context
        return [record(process) for process in processes]

    async def answer_list(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        """Nodes are made where they are asked for."""
        processes = await self.find(context, request, None)
        theirs, problems = await self.mask_for(context, request.identity, processes)
        columns = await read_columns(context, request, _SCHEMA)
        nodes = columns is None or "nodes" in columns
        rows = (record(process, nodes=nodes) for process in theirs)
        answer = await select(context, request, _SCHEMA, rows)
        return evolve(answer, failed_sites=problems)

    async def answer_one(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        process = await self.find_one(context, request, where[0])
        theirs, problems = await self.mask_for(context, request.identity, [process])
        (row,) = await self.rows(context, theirs)
        value = Document(value=row, columns=COLUMNS, failed_sites=problems)
        return await reselect(context, request, value)

    async def create(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        with audited(request, "bp create") as line:
            _require_writable(context)
            values = read_attributes(request)
            line.details["name"] = str(values.get("name") or "")[:_LONGEST_AUDITED]
            first = values.get("id")
            start = 1 if first in (None, "") else number_of(str(first).strip())
            if start is None:
                raise BadRequest(
                    "invalid id", "id: expected a number above 0, the first one to try"
                )
            created = await self.bp.create(values, start)
            line.target, line.details["name"] = created.id, created.definition.name
        return self._done("business process successfully created", data=record(created))

    async def _change(
        self, context: Context, request: RestRequest, key: str, *, patch: bool
    ) -> Answer:
        """The definition goes live; a patch is merged into what is stored then."""
        with audited(request, "bp change", key) as line:
            _require_writable(context)
            before = await self.find_one(context, request, key)
            line.details["name"] = before.definition.name
            values = {
                name: value for name, value in read_attributes(request).items() if name in _STORED
            }
            change = self.bp.patch if patch else self.bp.replace
            after = await change(before.nr, values)
            if after is None:
                raise self.missing()
            line.details["name"] = after.definition.name
        return self._done("business process successfully updated")

    async def delete(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        with audited(request, "bp delete", where[0]) as line:
            _require_writable(context)
            before = await self.find_one(context, request, where[0])
            line.details["name"] = before.definition.name
            if not await self.bp.delete(before.nr):
                raise self.missing()
        return self._done("business process successfully removed")

    def _done(self, message: str, **more: Any) -> Document:
        """Report what was done, and which processes the core's configuration could not have."""
        value = {"message": message, **more}
        if self.bp.exporter.left_out:
            value["description"] = f"not exported: {'; '.join(self.bp.exporter.left_out)}"
        return Document(value=value)

    @Endpoint(
        path="/mon/bp/<nr>/refresh",
        methods=("POST",),
        description="calculate a business process now",
        text=f"Needs the role {ROLE}, or the right to send commands to the host of its name. The "
        "results go to the core as after a regular calculation, except those of a draft.",
        shape="object",
        parameters=(),
        columns=(key_column, _MESSAGE),
    )
    async def refresh(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        before = await self.find_one(context, request, where[0])
        await _check_refresh(context, request.identity, before.definition.name)
        process, unanswered = await self.bp.refresh(before)
        (theirs,), problems = await self.mask_for(context, request.identity, [process])
        own = {site.id for site in context.sites.sites}
        problems += tuple(
            problem for problem in unanswered if problem.site in own and problem not in problems
        )
        value = {
            "message": "business process refreshed successfully",
            "data": record(theirs),
        }
        return Document(value=value, failed_sites=problems)

    @Endpoint(
        path="/mon/bp/<nr>/objects",
        description="hosts and services of a business process",
        text=_OBJECTS_TEXT,
        parameters=(*LIST_PARAMETERS, *SITE_PARAMETERS),
        columns=_OBJECT_COLUMNS,
    )
    async def objects(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        process = await self.find_one(context, request, where[0])
        return await _answer(context, request, await self.bp.runner.objects(process))

    @Endpoint(
        path="/mon/bp/<nr>/objects/recursive",
        description="hosts and services of a business process and of all that it links to",
        text=f"{_OBJECTS_TEXT}Linked processes that the user may not see are left out.",
        parameters=(*LIST_PARAMETERS, *SITE_PARAMETERS),
        columns=_OBJECT_COLUMNS,
    )
    async def recursive(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        process = await self.find_one(context, request, where[0])
        by_number = {process.id: process for process in await self.find(context, request, None)}
        return await _answer(context, request, await self._linked(context, process, by_number))

    async def _linked(
        self, context: Context, process: StoredProcess, by_number: Mapping[str, StoredProcess]
    ) -> set[ObjectName]:
        """Return what the process and all linked ones refer to; each process is looked at once."""
        sites = context.sites.select()
        numbers: dict[ObjectName, set[str]] = {}
        for table in ("hosts", "services"):
            for (_, host, service), number in (
                await self.bp.runner.carriers(table, sites, None)
            ).items():
                numbers.setdefault((host, service), set()).add(number)
        result: set[ObjectName] = set()
        seen, waiting = {process.id}, [process]
        while waiting:
            keys = await self.bp.runner.objects(waiting.pop())
            result |= keys
            linked = {
                number
                for host, service in keys
                for key in ((host, service), (host, ""))
                for number in numbers.get(key, ())
            }
            for number in sorted(linked - seen):
                if number in by_number:
                    seen.add(number)
                    waiting.append(by_number[number])
        return result


async def _answer(context: Context, request: RestRequest, keys: set[ObjectName]) -> Answer:
    query = parse_query(request.parameters)
    sites = tuple(pair for pair in request.parameters if pair[0] in ("backend", "backends"))
    inner = evolve(request, parameters=sites)
    seen = _ObjectRows()
    for schema, kind in ((HOSTS, "host"), (SERVICES, "service")):
        wanted = {key for key in keys if bool(key[1]) == (kind == "service")}
        if wanted:
            await seen.fetch(context, inner, schema, kind, wanted)
    problems = tuple(seen.problems.values())
    if not seen.records:
        # Nothing says whether a name in a filter is a typing error.
        context.sites.select(request.sites or query.backends)
        return Rows(columns=(_TYPE, _HOST_NAME), rows=[], failed_sites=problems)
    answer = await select(context, request, seen.schema(), seen.sorted())
    optional = frozenset(seen.columns) - {"_type", "host_name"}
    answer = sparse(request, answer, optional)
    return evolve(answer, failed_sites=problems, backend_seconds=seen.seconds)


def _limit(keys: set[ObjectName]) -> tuple[FilterTree, ...]:
    """The filter for these objects, none where they are many: all rows come faster then."""
    if len(keys) > _FEW:
        return ()
    each: list[FilterTree] = []
    for host, service in sorted(keys):
        if service:
            names = (("host_name", host), ("description", service))
            both = tuple(Condition(column, "=", name, "path") for column, name in names)
            each.append(Group("and", both))
        else:
            each.append(Condition("name", "=", host, "path"))
    return (Group("or", tuple(each)),)


@define(eq=False)
class _ObjectRows:
    """Rows of both collections as records, with all columns of both."""

    records: list[dict[str, Any]] = field(factory=list)
    columns: dict[str, Column] = field(factory=lambda: {"_type": _TYPE, "host_name": _HOST_NAME})
    held: dict[str, CoreType] = field(factory=dict)
    problems: dict[str, SiteProblem] = field(factory=dict)
    seconds: float = 0.0

    async def fetch(
        self,
        context: Context,
        request: RestRequest,
        schema: TableSchema,
        kind: str,
        wanted: set[ObjectName],
    ) -> None:
        answer = await fetch(context, request, schema, extra=_limit(wanted))
        assert isinstance(answer, Rows)
        try:
            size = len(answer.rows) * len(answer.columns)
            await context.compute(lambda _: self._add(answer, schema, kind, wanted), size)
        finally:
            # The rows of the other collection wait for room.
            answer.gone()

    def _add(self, answer: Rows, schema: TableSchema, kind: str, wanted: set[ObjectName]) -> None:
        self.problems.update((failed_site.site, failed_site) for failed_site in answer.failed_sites)
        self.seconds += answer.backend_seconds
        for column in answer.columns:
            self.columns.setdefault(column.name, column)
            declared = schema.columns.get(column.name)
            if isinstance(declared, CoreColumn):
                self.held.setdefault(column.name, declared.core_type)
        names = [column.name for column in answer.columns]
        for row in answer.rows:
            record: dict[str, Any] = dict(zip(names, row, strict=False))
            if kind == "host":
                record["host_name"] = record["name"]
            service = record["description"] if kind == "service" else ""
            if (record["host_name"], service) not in wanted:
                continue
            more = answer.expand(row) if answer.expand is not None else {}
            for name in more:
                self.columns.setdefault(name, Column(name))
            self.records.append({**more, **record, "_type": kind})

    def schema(self) -> TableSchema:
        return local_schema("objects", tuple(self.columns.values()), (), self.held)

    def sorted(self) -> Iterable[Mapping[str, Any]]:
        """By host, the host itself before its services."""
        return sorted(
            self.records,
            key=lambda record: (
                str(record["host_name"]),
                record["_type"],
                str(record.get("description", "")),
                str(record.get("peer_key", "")),
            ),
        )
