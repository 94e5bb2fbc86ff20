"""Making of stored reports: their data are read as their owners, and become sheets.

The event log and the present problems are here; the others have chapters of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import evolve, frozen

from monrest.api.endpoint import Context
from monrest.api.visibility import visible_sites
from monrest.api.zones import zone_of
from monrest.availability.account import HOST_WORDS, SERVICE_WORDS
from monrest.availability.chosen_objects import about_services, for_hosts, for_services
from monrest.base.errors import SitesFailed
from monrest.base.values import Identity, Progress, RestRequest, Rows, SiteProblem
from monrest.logs.ask import ask
from monrest.logs.cache import LogCache
from monrest.query.model import Condition, FilterTree
from monrest.reports import picture
from monrest.reports.availability import availability_or_outages
from monrest.reports.builder import ReportBuilder, any_of, not_connected
from monrest.reports.model import CANCEL, Report
from monrest.reports.own import written
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Head, Note, Sheet, Spelling
from monrest.reports.templates import Templates
from monrest.reports.url_report import answer_of_path
from monrest.rows.columns import HOSTS, LOGS, SERVICES
from monrest.sites.registry import remembered_sites

_MOST_EVENTS = 2200
_BEGIN = "^\\[[0-9]+\\] "
_STATE_TYPES = {"hard": "HARD", "soft": "SOFT", "both": "(HARD|SOFT)"}


async def event_log(builder: ReportBuilder) -> Sheet:
    """The log lines that are wanted, of those that the owner may see."""
    span, settings = builder.choose_span(), builder.settings
    trees: list[FilterTree] = [
        Condition("time", ">=", str(span.start), "params.timeperiod"),
        Condition("time", "<=", str(span.end), "params.timeperiod"),
        *_patterns(settings),
    ]
    for name, column in (("host", "host_name"), ("service", "service_description")):
        values = settings.names.get(name, ())
        if values:
            where = f"params.{name}"
            trees.append(any_of(Condition(column, "=", value, where) for value in values))
    parameters = (
        ("columns", "time,type,message"),
        ("sort", "-time" if settings.reverse else "time"),
        ("limit", str(_MOST_EVENTS + 1)),
    )
    request = evolve(builder.request, parameters=parameters)
    rows = await ask(builder.cache, builder.context, request, LOGS, extra=tuple(trees))
    assert isinstance(rows, Rows)
    builder.missing(rows.failed_sites)
    lines = [_line(*row) for row in rows.rows[:_MOST_EVENTS]]
    return sheet_of_events(builder, lines, more=len(rows.rows) > _MOST_EVENTS)


def sheet_of_events(
    builder: ReportBuilder, lines: Sequence[tuple[int, str, str]], *, more: bool
) -> Sheet:
    """Log lines: time, type, text; ``more``: there are others, which are not shown."""
    say = builder.say
    kinds = Counter(kind for _, kind, _ in lines)
    if kinds:
        counts = [(kind or say("Message"), number) for kind, number in kinds.most_common()]
        builder.table("Overview", (Head("Event"), Head("Number", "number")), counts)
    heads = Head("Time", "time"), Head("Event"), Head("Message", weight=4.0)
    builder.table("Event log", heads, lines)
    if more:
        builder.parts.append(Note(f"… {say('more rows are left out')}"))
    return builder.sheet(
        {"events": [{"time": time, "type": kind, "text": text} for time, kind, text in lines]}
    )


def _line(time: object, kind: object, message: object) -> tuple[int, str, str]:
    """Time, type and the text without both; what has no type of the log is a text only."""
    text = str(message).partition("] ")[2] or str(message)
    word, colon, rest = text.partition(": ")
    if colon and word.isupper():
        return int(str(time)), word, rest
    return int(str(time)), str(kind or "") if str(kind or "").isupper() else "", text


def _patterns(settings: ReportSettings) -> list[FilterTree]:
    trees: list[FilterTree] = []
    if settings.pattern:
        trees.append(Condition("message", "~~", settings.pattern, "params.pattern"))
    if settings.exclude_pattern:
        trees.append(
            Condition("message", "!~~", settings.exclude_pattern, "params.exclude_pattern")
        )
    wanted = _of_types(settings.event_types)
    if wanted:
        trees.append(
            any_of(Condition("message", "~", pattern, "params.event_types") for pattern in wanted)
        )
    return trees


def _of_types(types: Sequence[str]) -> list[str]:
    """The pattern of lines of these types; empty for no types, which means all."""
    patterns = []
    for kind in ("host", "service"):
        hardness = [name for name in types if name.startswith(f"{kind}_state_")]
        states = [name for name in types if name.startswith(f"{kind}_") and name not in hardness]
        if not states and not hardness:
            continue
        words = "|".join(state.removeprefix(f"{kind}_").upper() for state in states) or "[A-Z]+"
        if "UP" in words.split("|") or "OK" in words.split("|"):
            words += "|RECOVERY"
        how = _STATE_TYPES[hardness[0].rpartition("_")[2]] if hardness else _STATE_TYPES["both"]
        patterns.append(f"{_BEGIN}{kind.upper()} ALERT: .*;({words});{how};")
    patterns += [
        f"{_BEGIN}{kind.upper()} NOTIFICATION: "
        for kind in ("host", "service")
        if f"notification_{kind}" in types
    ]
    return patterns


_PENDING = "pending"
_COLUMNS = (
    "state,has_been_checked,last_state_change,plugin_output,acknowledged,scheduled_downtime_depth"
)
_WORST_FIRST = ("down", "critical", "unreachable", "unknown", "warning")
_HEADS = (
    Head("Host", weight=1.2), Head("Service", weight=1.4), Head("State", "state"),
    Head("Since", "time"), Head("Duration", "duration"), Head("Handled", weight=0.8),
    Head("Output", weight=2.0),
)  # fmt: skip


@frozen(kw_only=True)
class ObjectProblem:
    """A host (without service) or service that is not well; times are Unix seconds."""

    host: str
    service: str
    state: str
    since: int
    output: str
    acknowledged: bool
    downtime: bool


async def current_problems(builder: ReportBuilder) -> Sheet:
    """All hosts and services that the owner may see and that have a problem."""
    missing: dict[str, SiteProblem] = {}
    problems: list[ObjectProblem] = []
    trees, kind = builder.trees(), builder.settings.filter_type
    hosts: Counter[str] | None = None
    services: Counter[str] | None = None
    if kind != "Services" and not any(map(about_services, trees)):
        rows, failed = await builder.rows(HOSTS, f"name,{_COLUMNS}", for_hosts(trees))
        missing.update((site_problem.site, site_problem) for site_problem in failed)
        hosts = Counter()
        for name, *rest in rows:
            _count(hosts, HOST_WORDS, problems, str(name), "", rest)
    if kind != "Hosts":
        columns = f"host_name,description,host_scheduled_downtime_depth,{_COLUMNS}"
        rows, failed = await builder.rows(SERVICES, columns, for_services(trees))
        missing.update((site_problem.site, site_problem) for site_problem in failed)
        services = Counter()
        for host, name, depth, *rest in rows:
            # A service is in downtime with its host.
            rest[-1] = (rest[-1] or 0) + (depth or 0)
            _count(services, SERVICE_WORDS, problems, str(host), str(name), rest)
    builder.missing(missing.values())
    if not builder.settings.handled:
        problems = [
            problem for problem in problems if not problem.acknowledged and not problem.downtime
        ]
    problems.sort(
        key=lambda problem: (
            _WORST_FIRST.index(problem.state),
            -problem.since,
            problem.host,
            problem.service,
        )
    )
    return sheet_of_problems(builder, hosts, services, problems)


def sheet_of_problems(
    builder: ReportBuilder,
    hosts: Counter[str] | None,
    services: Counter[str] | None,
    problems: Sequence[ObjectProblem],
) -> Sheet:
    """The number of hosts and services by state, and all problems."""
    say = builder.say
    for title, words, counts in (
        ("Hosts", (*HOST_WORDS, _PENDING), hosts),
        ("Services", (*SERVICE_WORDS, _PENDING), services),
    ):
        if counts is not None:
            shares = picture.shares(say(title), [(word, counts[word]) for word in words])
            builder.parts.append(shares)
    rows = []
    for problem in problems:
        handled = [say("acknowledged")] * problem.acknowledged + [
            say("in downtime")
        ] * problem.downtime
        duration = max(0, int(builder.now) - problem.since)
        rows.append(
            (
                problem.host, problem.service, problem.state, problem.since, duration,
                ", ".join(handled),
                problem.output,
            )
        )  # fmt: skip
    builder.table("Problems", _HEADS, rows, empty="There are no problems.")
    count = sum(sum(counts.values()) for counts in (hosts, services) if counts is not None)
    data = [
        {
            "host": problem.host, "service": problem.service, "state": problem.state,
            "last_state_change": problem.since, "plugin_output": problem.output,
            "acknowledged": int(problem.acknowledged), "in_downtime": int(problem.downtime),
        }
        for problem in problems
    ]  # fmt: skip
    facts = ("Objects", str(count)), ("Problems", str(len(problems)))
    return builder.sheet({"problems": data}, *facts, worst=0.0 if problems else 100.0)


def _count(
    counts: Counter[str],
    words: Sequence[str],
    problems: list[ObjectProblem],
    host: str,
    service: str,
    values: Sequence[Any],
) -> None:
    state, checked, since, output, acknowledged, depth = values
    if not checked:
        counts[_PENDING] += 1
        return
    if type(state) is not int or not 0 <= state < len(words):
        return
    counts[words[state]] += 1
    if state:
        problems.append(
            ObjectProblem(
                host=host,
                service=service,
                state=words[state],
                since=int(since or 0),
                output=str(output or ""),
                acknowledged=bool(acknowledged),
                downtime=bool(depth),
            )
        )


_NO_LIMIT = 31_536_000.0


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
    visible = await visible_sites(identity, context.sites, context.contacts)
    context = evolve(context, sites=visible)
    sites, unknown = remembered_sites(report.sites, context.sites.sites)
    if unknown and (report.record["failed_backends"] == CANCEL or not sites):
        raise not_connected(
            tuple(SiteProblem(key, report.sites[key], "no such backend") for key in unknown)
        )
    request = RestRequest(
        method="GET",
        path=f"/mon/reports/{report.number}/report",
        segments=(),
        sites=tuple(site.id for site in sites) if report.sites else (),
        identity=identity,
        progress=progress,
    )
    builder = ReportBuilder(
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
        now=at,
        sites=[site.name for site in sites],
    )
    try:
        if template.kind == "events":
            sheet = await event_log(builder)
        elif template.kind == "problems":
            sheet = await current_problems(builder)
        elif template.kind == "url":
            sheet = await answer_of_path(builder)
        else:
            sheet = await availability_or_outages(builder, outages=template.kind == "outages")
    except SitesFailed as error:
        raise not_connected(tuple(error.problems)) from None
    if not template.text:
        return sheet
    params = report.record["params"]
    return await context.threads.run(lambda: written(template, sheet, params))
