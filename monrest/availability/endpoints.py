"""Availability and outages (docs/spec/availability.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from attrs import evolve

from monrest.api.endpoint import (
    LIST_PARAMETERS,
    OBJECT_PARAMETERS,
    SITE_PARAMETERS,
    Context,
    Endpoint,
    FamilyHandler,
    Parameter,
)
from monrest.api.family import Family, Served
from monrest.api.lists import local_schema, reselect, select, sparse
from monrest.api.zones import zone_of
from monrest.availability.account import HOST_WORDS, SERVICE_WORDS
from monrest.availability.chosen_objects import Scope, choose, in_hostgroup, in_servicegroup
from monrest.availability.report import (
    AVAILABILITY,
    OUTAGE,
    AccountAnswer,
    AccountReport,
    answer_of,
)
from monrest.availability.report_arguments import ARGUMENTS, TYPE, ObjectKinds, asked
from monrest.base.errors import NotFound
from monrest.base.values import Answer, Column, Document, RestRequest, no_progress
from monrest.logs.ask import LOGCACHE
from monrest.logs.cache import LogCache
from monrest.query.column_names import TableSchema
from monrest.query.model import Condition
from monrest.rows.columns import HOSTS, SERVICES
from monrest.rows.endpoints import exactly, matching

_INDETERMINATE = (
    ("time_indeterminate_nodata", "without any known state"),
    ("time_indeterminate_notrunning", "while the core was not running"),
    ("time_indeterminate_outside_timeperiod", "outside of the time period of the report"),
    ("scheduled_time_indeterminate", "without any known state, in downtimes"),
)


def _times(words: Iterable[str]) -> tuple[Column, ...]:
    described = [
        *((f"time_{word}", f"time in state {word}") for word in words),
        *((f"scheduled_time_{word}", f"time in state {word} in downtimes") for word in words),
        *((name, f"time {text}") for name, text in _INDETERMINATE),
    ]
    columns = []
    for name, text in described:
        columns.append(Column(name, "number", "s", text))
        columns.append(Column(f"{name}_percent", "number", "%", f"{text}, of the whole report"))
    return tuple(sorted(columns, key=lambda column: column.name))


HOST_TIMES = _times(HOST_WORDS)
SERVICE_TIMES = _times(SERVICE_WORDS)
_HOST = Column("host", "string", "", "name of the host")
_SERVICE = Column("service", "string", "", "description of the service, only of services")
ALL_TIMES = (
    _HOST,
    _SERVICE,
    *sorted({*HOST_TIMES, *SERVICE_TIMES}, key=lambda column: column.name),
)
OUTAGE_COLUMNS = (
    Column("class", "string", "", "down, unreachable, critical or unknown, as it was last"),
    Column("duration", "number", "s", "length within the report"),
    Column("end", "time", "", "end within the report"),
    _HOST,
    Column("plugin_output", "string", "", "output of the latest line"),
    _SERVICE,
    Column("start", "time", "", "start within the report"),
    Column("type", "string", "", "type of the latest line, for example HOST DOWN (HARD)"),
)


def _schema(name: str, columns: tuple[Column, ...]) -> TableSchema:
    # Names of hosts and services differ by case, as they do in the cores.
    elsewhere = frozenset(column.name for column in ALL_TIMES)
    return evolve(local_schema(name, columns, ("host",)), folded=False, elsewhere=elsewhere)


LISTS: Mapping[ObjectKinds, TableSchema] = {
    "hosts": _schema("availability", (_HOST, *HOST_TIMES)),
    "services": _schema("availability", (_HOST, _SERVICE, *SERVICE_TIMES)),
    "both": _schema("availability", ALL_TIMES),
}
OUTAGES = _schema("outages", OUTAGE_COLUMNS)
ONLY_SOME = frozenset({"service", *(column.name for column in {*HOST_TIMES} ^ {*SERVICE_TIMES})})
"""Columns that only hosts or only services have."""


Scoped: TypeAlias = Callable[[tuple[str, ...]], Scope]


def _handler(
    report: AccountReport, kind: ObjectKinds, scope: Scoped, *, single: bool = False
) -> FamilyHandler:
    columns = OUTAGE_COLUMNS if report is OUTAGE else ALL_TIMES
    fields = frozenset(column.name for column in columns)

    async def handler(
        cache: LogCache, context: Context, request: RestRequest, arguments: tuple[str, ...]
    ) -> Answer:
        zone = await zone_of(context, request.identity)
        wanted = asked(
            request.parameters,
            kind=kind,
            fields=fields,
            now=context.wall.now(),
            zone=zone,
            first_weekday=context.config.display.first_day_of_week,
            single=single,
        )
        schema = OUTAGES if report is OUTAGE else LISTS[wanted.kind]
        inner = evolve(request, parameters=wanted.left)
        if not single:
            # Errors of the request are found before the log is read.
            await select(context, inner, schema, (), extra=wanted.rows)
        # What takes its time is to read the logs, and only that counts as progress.
        choosing = evolve(request, progress=no_progress)
        chosen = await choose(cache, context, choosing, scope(arguments), wanted)
        account = await answer_of(cache, context, request, zone, report, wanted, chosen)
        if single:
            return await _single(
                context, inner, account, HOST_TIMES if kind == "hosts" else SERVICE_TIMES
            )
        answer = await select(context, inner, schema, account.records, extra=wanted.rows)
        answer = evolve(answer, warnings=(*answer.warnings, *_unknown(account)))
        if report is OUTAGE or wanted.kind == "both":
            answer = sparse(inner, answer, ONLY_SOME, "_percent")
        return evolve(answer, failed_sites=account.problems, backend_seconds=account.seconds)

    return handler


def _unknown(account: AccountAnswer) -> tuple[str, ...]:
    """The warning when objects have no state in the log."""
    count = sum(1 for record in account.records if None in record.values())
    if not count:
        return ()
    objects = f"{count} of {len(account.records)} objects"
    return (f"availability: no state is known of {objects}, their percentages are null",)


async def _single(
    context: Context, request: RestRequest, account: AccountAnswer, columns: tuple[Column, ...]
) -> Answer:
    """The numbers of one object; of the first site when several have it."""
    if not account.records:
        raise NotFound("no such object", "it is gone since the request came")
    row = account.records[0]
    answer = Document(
        value={column.name: row[column.name] for column in columns},
        columns=columns,
        failed_sites=account.problems,
        backend_seconds=account.seconds,
        warnings=_unknown(evolve(account, records=[row])),
    )
    return await reselect(context, request, answer)


def _host(condition: Callable[[str, str], Condition]) -> Scoped:
    def scope(arguments: tuple[str, ...]) -> Scope:
        name = condition("name", arguments[0])
        return Scope(
            hosts=(name,),
            services=(condition("host_name", arguments[0]),),
            schema=HOSTS,
            exists=(name,),
            word="host",
        )

    return scope


def _service(condition: Callable[[str, str], Condition]) -> Scoped:
    def scope(arguments: tuple[str, ...]) -> Scope:
        host, description = arguments
        both = (condition("host_name", host), condition("description", description))
        return Scope(
            hosts=(condition("name", host),),
            services=both,
            schema=SERVICES,
            exists=both,
            word="service",
        )

    return scope


_CHOOSING = (
    Parameter(name="host", description="exact name of a host"),
    Parameter(name="service", description="exact description of a service"),
    Parameter(name="hostgroup", description="exact name of a host group"),
    Parameter(name="servicegroup", description="exact name of a service group"),
)
_TEXT = (
    "Filters on columns of hosts or services choose the objects, those on fields of the result "
    "filter its rows, as parameters (`host_name=web01`) and in `q` alike; they may also hold the "
    "bounds (`time[gte]=…`, `time >= …`), and `q` a `timeperiod = …`. "
    "Days, weeks and months are those of the user's time zone. "
    "An object that exists on several sites has one row for each of them."
)
_PATHS: tuple[tuple[str, str, ObjectKinds, ObjectKinds, Scoped, str], ...] = (
    # path, what; type of availability and of outages; scope; words
    ("/hosts", "hosts", "hosts", "hosts", lambda _: Scope(), ""),
    ("/services", "services", "services", "services", lambda _: Scope(), ""),
    (
        "/hostgroups/<name>",
        "the hosts of a host group",
        "hosts",
        "both",
        lambda arguments: in_hostgroup(arguments[0]),
        "With type=services those of its hosts. ",
    ),
    (
        "/servicegroups/<name>",
        "the services of a service group",
        "services",
        "both",
        lambda arguments: in_servicegroup(arguments[0]),
        "With type=hosts the hosts of its services. ",
    ),
)
_SINGLE: tuple[
    tuple[str, str, ObjectKinds, Callable[[Callable[[str, str], Condition]], Scoped]], ...
] = (
    ("/hosts/<name>", "a host", "hosts", _host),
    ("/services/<host>/<service>", "a service", "services", _service),
)
_LIST = (TYPE, *_CHOOSING, *ARGUMENTS, LOGCACHE, *LIST_PARAMETERS, *SITE_PARAMETERS)


def _list(path: str, description: str, text: str, handler: FamilyHandler, *, out: bool) -> Endpoint:
    return Endpoint(
        path=path,
        description=description,
        text=f"{text}{_TEXT}",
        handler=handler,
        parameters=_LIST,
        columns=OUTAGE_COLUMNS if out else ALL_TIMES,
    )


def _endpoints() -> Iterable[Endpoint]:
    for path, what, kind, out_kind, scope, text in _PATHS:
        other = "hosts" if kind == "services" else "services"
        also = f" and of the {other}" if out_kind == "both" else ""
        default = f"Default type: {{}}. {text}"
        yield _list(
            f"{path}/availability",
            f"availability of {what}",
            default.format(kind),
            _handler(AVAILABILITY, kind, scope),
            out=False,
        )
        yield _list(
            f"{path}/outages",
            f"outages of {what}{also}",
            default.format(out_kind),
            _handler(OUTAGE, out_kind, scope),
            out=True,
        )
    for path, what, kind, scoped in _SINGLE:
        yield Endpoint(
            path=f"{path}/availability",
            description=f"availability of {what}",
            text="When several sites have it, the first of them counts.",
            shape="object",
            handler=_handler(AVAILABILITY, kind, scoped(exactly), single=True),
            parameters=(*ARGUMENTS, LOGCACHE, *OBJECT_PARAMETERS, *SITE_PARAMETERS),
            columns=HOST_TIMES if kind == "hosts" else SERVICE_TIMES,
        )
        yield _list(
            f"{path}/outages",
            f"outages of {what}",
            f"Default type: {kind}. Names may hold wildcards. ",
            _handler(OUTAGE, kind, scoped(matching)),
            out=True,
        )


FAMILY = Family((Served(tuple(_endpoints()), lambda common: common.the(LogCache)),))
