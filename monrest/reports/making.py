"""What stored reports say: asking the logs and the cores as their owners, and building sheets.

The questions are those of the availability, outage, log and status endpoints.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from monrest.api.endpoint import Context
from monrest.api.visibility import CONFIGURATION, visible_sites
from monrest.api.zones import zone_of
from monrest.availability.account import Availability, Times
from monrest.availability.chosen_objects import Scope, choose
from monrest.availability.outages import Outages
from monrest.availability.periods import Span
from monrest.availability.report import AccountRecord, AccountReport, made
from monrest.availability.report_arguments import ObjectKinds, ReportArguments, asked
from monrest.base.errors import BadRequest, SitesFailed
from monrest.base.values import Identity, Progress, RestRequest, Row, Rows, SiteProblem
from monrest.logs.ask import ask
from monrest.logs.cache import LogCache
from monrest.logs.state_events import LogEvent, ObjectKey
from monrest.query.column_names import Visibility
from monrest.query.model import Condition, FilterTree
from monrest.reports import build
from monrest.reports.build import MOST_EVENTS, Measured, TimePart, figures, parts_of, require_room
from monrest.reports.model import CANCEL, Report
from monrest.reports.own import written
from monrest.reports.problems import problems_of
from monrest.reports.report_asking import Asking, any_of, not_connected
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Sheet, Spelling
from monrest.reports.templates import Templates
from monrest.reports.url_report import page_of
from monrest.rows.columns import HOSTS, LOGS, SERVICES
from monrest.rows.fetch import fetch
from monrest.sites.registry import remembered_sites
from monrest.sites.site import Site

_BEGIN = "^\\[[0-9]+\\] "
_STATE_TYPES = {"hard": "HARD", "soft": "SOFT", "both": "(HARD|SOFT)"}


async def events_of(asking: Asking) -> Sheet:
    """The log lines that are wanted, of those that the owner may see."""
    span, settings = asking.span(), asking.settings
    trees: list[FilterTree] = [
        Condition("time", ">=", str(span.start), "params.timeperiod"),
        Condition("time", "<=", str(span.end), "params.timeperiod"),
        *_patterns(settings),
    ]
    for name, column in (("host", "host_name"), ("service", "service_description")):
        values = settings.names.get(name, ())
        if values:
            trees.append(
                any_of(Condition(column, "=", value, f"params.{name}") for value in values)
            )
    parameters = (
        ("columns", "time,type,message"),
        ("sort", "-time" if settings.reverse else "time"),
        ("limit", str(MOST_EVENTS + 1)),
    )
    request = evolve(asking.request, parameters=parameters)
    rows = await ask(asking.cache, asking.context, request, LOGS, extra=tuple(trees))
    assert isinstance(rows, Rows)
    frame = asking.frame(span, rows.failed_sites)
    lines = [_line(*row) for row in rows.rows[:MOST_EVENTS]]
    return build.events(frame, lines, more=len(rows.rows) > MOST_EVENTS)


def _line(time: object, kind: object, message: object) -> tuple[int, str, str]:
    """Time, type and the text without both; what has no type of the log is a text only."""
    text = str(message).partition("] ")[2] or str(message)
    word, colon, rest = text.partition(": ")
    if colon and word.isupper():
        return int(str(time)), word, rest
    return int(str(time)), str(kind or "") if str(kind or "").isupper() else "", text


def _patterns(settings: ReportSettings) -> list[FilterTree]:
    found: list[FilterTree] = []
    if settings.pattern:
        found.append(Condition("message", "~~", settings.pattern, "params.pattern"))
    if settings.exclude_pattern:
        found.append(
            Condition("message", "!~~", settings.exclude_pattern, "params.exclude_pattern")
        )
    wanted = _of_types(settings.event_types)
    if wanted:
        found.append(any_of(Condition("message", "~", one, "params.event_types") for one in wanted))
    return found


def _of_types(types: Sequence[str]) -> list[str]:
    """What the lines of these types look like; nothing for no types, which are all."""
    found = []
    for kind in ("host", "service"):
        hardness = [one for one in types if one.startswith(f"{kind}_state_")]
        states = [one for one in types if one.startswith(f"{kind}_") and one not in hardness]
        if not states and not hardness:
            continue
        words = "|".join(one.removeprefix(f"{kind}_").upper() for one in states) or "[A-Z]+"
        if "UP" in words.split("|") or "OK" in words.split("|"):
            words += "|RECOVERY"
        how = _STATE_TYPES[hardness[0].rpartition("_")[2]] if hardness else _STATE_TYPES["both"]
        found.append(f"{_BEGIN}{kind.upper()} ALERT: .*;({words});{how};")
    found += [
        f"{_BEGIN}{kind.upper()} NOTIFICATION: "
        for kind in ("host", "service")
        if f"notification_{kind}" in types
    ]
    return found


_NO_LIMIT = 31_536_000.0
_KINDS: dict[str, ObjectKinds] = {"Hosts": "hosts", "Services": "services", "Both": "both"}


async def prepare(
    context: Context,
    cache: LogCache,
    templates: Templates,
    identity: Identity,
    report: Report,
    at: float,
    progress: Progress,
) -> Sheet:
    """The sheet of a report for the moment ``at``, as its owner sees things.

    Raise RestError: SitesFailed where sites are missing, BadRequest where a parameter cannot be.
    """
    template, settings = report.template(templates), report.settings(templates)
    server = evolve(context.config.server, request_timeout=_NO_LIMIT)
    context = evolve(context, config=evolve(context.config, server=server))
    sites = await visible_sites(identity, context.sites, context.contacts)
    context = evolve(context, sites=sites)
    chosen = _sites(report, context)
    request = RestRequest(
        method="GET",
        path=f"/mon/reports/{report.number}/report",
        segments=(),
        sites=tuple(site.id for site in chosen) if report.sites else (),
        identity=identity,
        progress=progress,
    )
    asking = Asking(
        cache=cache,
        context=context,
        request=request,
        report=report,
        settings=settings,
        spelling=Spelling(
            zone=await zone_of(context, request.identity),
            language=settings.language,
            date=settings.date_format,
            moment=settings.moment_format,
            decimals=settings.decimals,
            rounding=context.config.reports.rounding,
        ),
        at=at,
        sites=chosen,
    )
    try:
        if template.kind == "events":
            sheet = await events_of(asking)
        elif template.kind == "problems":
            sheet = await problems_of(asking)
        elif template.kind == "url":
            sheet = await page_of(asking)
        else:
            sheet = await _of_availability(asking, outages=template.kind == "outages")
    except SitesFailed as error:
        raise not_connected(tuple(error.problems)) from None
    if not template.text:
        return sheet
    params = report.record["params"]
    return await context.threads.run(lambda: written(template, sheet, params))


def _sites(report: Report, context: Context) -> list[Site]:
    sites, unknown = remembered_sites(report.sites, context.sites.sites)
    if unknown and (report.record["failed_backends"] == CANCEL or not sites):
        raise not_connected(
            tuple(SiteProblem(key, report.sites[key], "no such backend") for key in unknown)
        )
    return sites


@define(eq=False)
class _Accounts:
    """Availability, whole and by parts, and outages, in one pass."""

    availability: Availability
    outages: Outages

    def take(self, event: LogEvent) -> None:
        self.availability.take(event)
        self.outages.take(event)


def _account(asking: Asking, parts: Sequence[TimePart]) -> AccountReport:
    planned = any(one.endswith("_downtime") for one in asking.settings.unavailable)
    bounds = [part.start for part in parts]

    def records(accounts: _Accounts, key: ObjectKey, _: Any) -> Iterable[AccountRecord]:
        row: AccountRecord = {
            "host": key[0],
            "key": key,
            "whole": accounts.availability.times(key),
            "parts": accounts.availability.parts(key),
            "outages": accounts.outages.of(key),
        }
        if key[1]:
            row["service"] = key[1]
        return (row,)

    return AccountReport(
        account=lambda keys, rules, _: _Accounts(
            Availability(keys, rules, bounds), Outages(keys, rules, planned)
        ),
        records=records,
        outages=True,
    )


async def _of_availability(asking: Asking, *, outages: bool) -> Sheet:
    context, settings = asking.context, asking.settings
    span = asking.span()
    weekday = context.config.display.first_day_of_week
    parts = parts_of(span, settings.breakdown, asking.spelling.zone, weekday)
    wanted = _asked(asking, span)
    chosen = await choose(asking.cache, context, asking.request, Scope(), wanted)
    asking.frame(span, chosen.problems.values())
    require_room(sum(map(len, chosen.states.values())), len(parts), settings.breakdown)
    report = _account(asking, parts)
    found = await made(
        asking.cache, context, asking.request, asking.spelling.zone, report, wanted, chosen
    )
    frame = asking.frame(span, found.problems)
    names = await names_of(asking)
    make = build.outages if outages else build.availability

    def work() -> Sheet:
        measured = [_measured(row, names, settings.unavailable) for row in found.records]
        return make(frame, measured, parts)

    return await context.threads.run(work)


def _measured(row: AccountRecord, names: Shown, unavailable: Collection[str]) -> Measured:
    """The figures of an object; its times are let go of."""
    key = row["key"]
    return Measured(
        key=key,
        host=names.host(key),
        service=names.service(key),
        whole=figures(key, row["whole"], unavailable),
        parts=[figures(key, Times(*pair), unavailable).percent for pair in row.pop("parts")],
        outages=row["outages"][::-1],
    )


def _asked(asking: Asking, span: Span) -> ReportArguments:
    settings = asking.settings
    kind = _KINDS[settings.filter_type]
    found = asked(
        (
            *settings.rules.items(),
            ("type", kind),
            ("start", str(span.start)),
            ("end", str(span.end)),
            ("rpttimeperiod", settings.period),
        ),
        kind=kind,
        fields=frozenset(),
        now=asking.at,
        zone=asking.spelling.zone,
        first_weekday=asking.context.config.display.first_day_of_week,
    )
    # Numbers of few digits would be offsets from now.
    return evolve(
        found, span=span, since=max(0, span.start - (found.span.start - found.since)),
        objects=asking.trees(),
    )  # fmt: skip


@frozen
class Shown:
    """What objects are called in a report, where that is not their name."""

    hosts: dict[str, str] = field(factory=dict)
    services: dict[ObjectKey, str] = field(factory=dict)

    def host(self, key: ObjectKey) -> str:
        """The name of the host of an object."""
        return self.hosts.get(key[0]) or key[0]

    def service(self, key: ObjectKey) -> str:
        """The name of a service, empty for a host."""
        return self.services.get(key) or key[1]


_OTHER_NAMES = {
    "hostalias": "alias",
    "hostdisplayname": "display_name",
    "servicedisplayname": "display_name",
    "hostcustom": "custom_variables",
    "servicecustom": "custom_variables",
}


async def names_of(asking: Asking) -> Shown:
    """The names as ``hostnameformat`` and ``servicenameformat`` want them."""
    settings = asking.settings
    shown = Shown()
    for variable, where in (
        (settings.host_variable, "hostnameformat_cust"),
        (settings.service_variable, "servicenameformat_cust"),
    ):
        _require_exposed(asking, variable, where)
    column = _OTHER_NAMES.get(settings.host_names)
    if column:
        for name, value in await _rows(asking, HOSTS, f"name,{column}"):
            shown.hosts.setdefault(name, _name(value, settings.host_variable))
    column = _OTHER_NAMES.get(settings.service_names)
    if column and settings.filter_type != "Hosts":
        for host, name, value in await _rows(asking, SERVICES, f"host_name,description,{column}"):
            shown.services.setdefault((host, name), _name(value, settings.service_variable))
    return shown


def _require_exposed(asking: Asking, variable: str, where: str) -> None:
    display = asking.context.config.display
    seen = Visibility(
        tuple(display.expose_custom_variables), asking.request.identity.may(CONFIGURATION)
    )
    if variable and not seen.visible(variable):
        raise BadRequest(
            f"invalid params.{where}",
            f"params.{where}: expected a custom variable that display.expose_custom_variables has",
        )


def _name(value: Any, variable: str) -> str:
    if not variable:
        return str(value or "")
    found = value if isinstance(value, dict) else {}
    return next((str(one) for name, one in found.items() if str(name).upper() == variable), "")


async def _rows(asking: Asking, schema: Any, columns: str) -> Iterator[Row]:
    request = evolve(asking.request, parameters=(("columns", columns),))
    rows = await fetch(asking.context, request, schema)
    assert isinstance(rows, Rows)
    return rows.once()
