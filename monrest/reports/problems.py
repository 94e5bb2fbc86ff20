"""What is not well at present, as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import frozen

from monrest.availability.account import HOST_WORDS, SERVICE_WORDS
from monrest.availability.chosen_objects import about_services, for_hosts, for_services
from monrest.base.values import SiteProblem
from monrest.reports import picture
from monrest.reports.builder import ReportBuilder
from monrest.reports.sheet import Head, Sheet
from monrest.rows.columns import HOSTS, SERVICES

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
    """How many hosts and services are in which state, and all that are not well."""
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
