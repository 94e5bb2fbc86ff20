"""What is not well at present, as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from attrs import evolve, frozen

from monrest.availability.account import HOST_WORDS, SERVICE_WORDS
from monrest.availability.chosen_objects import about_services, for_hosts, for_services
from monrest.base.values import Row, Rows, SiteProblem
from monrest.query.column_names import TableSchema
from monrest.reports import picture
from monrest.reports.build import Frame
from monrest.reports.report_asking import Asking
from monrest.reports.sheet import Grid, Head, Sheet, SheetPart
from monrest.rows.columns import HOSTS, SERVICES
from monrest.rows.fetch import fetch

# From what the cores say now to the sheet of a report.


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


def sheet_of_problems(
    frame: Frame,
    hosts: Counter[str] | None,
    services: Counter[str] | None,
    found: Sequence[ObjectProblem],
) -> Sheet:
    """How many hosts and services are in which state, and all that are not well."""
    say = frame.spelling.say
    whole: list[SheetPart] = frame.warnings()
    for title, words, counts in (
        ("Hosts", (*HOST_WORDS, "pending"), hosts),
        ("Services", (*SERVICE_WORDS, "pending"), services),
    ):
        if counts is not None:
            whole.append(picture.shares(say(title), [(word, counts[word]) for word in words]))
    rows = [
        (
            one.host, one.service, one.state, one.since, max(0, int(frame.now) - one.since),
            ", ".join(say(word) for word, is_so in (("acknowledged", one.acknowledged),
                                                    ("in downtime", one.downtime)) if is_so),
            one.output,
        )
        for one in found
    ]  # fmt: skip
    whole.append(
        Grid(
            title=say("Problems"),
            heads=(
                Head(say("Host"), weight=1.2), Head(say("Service"), weight=1.4),
                Head(say("State"), "state"), Head(say("Since"), "time"),
                Head(say("Duration"), "duration"), Head(say("Handled"), weight=0.8),
                Head(say("Output"), weight=2.0),
            ),
            rows=rows,
            empty=say("There are no problems."),
        )
    )  # fmt: skip
    count = sum(sum(counts.values()) for counts in (hosts, services) if counts is not None)
    return Sheet(
        title=frame.report.name,
        kind="problems",
        facts=frame.facts(("Objects", str(count)), ("Problems", str(len(found)))),
        parts=tuple(whole),
        spelling=frame.spelling,
        worst=0.0 if found else 100.0,
        data={
            "problems": [
                {
                    "host": one.host, "service": one.service, "state": one.state,
                    "last_state_change": one.since, "plugin_output": one.output,
                    "acknowledged": int(one.acknowledged), "in_downtime": int(one.downtime),
                }
                for one in found
            ]
        },
    )  # fmt: skip


_PENDING = "pending"
_SHARED = (
    "state,has_been_checked,last_state_change,plugin_output,acknowledged,scheduled_downtime_depth"
)
_WORST_FIRST = ("down", "critical", "unreachable", "unknown", "warning")


async def problems_of(asking: Asking) -> Sheet:
    """All hosts and services that the owner may see and that have a problem."""
    problems: dict[str, SiteProblem] = {}
    found: list[ObjectProblem] = []
    trees, kind = asking.trees(), asking.settings.filter_type
    hosts: Counter[str] | None = None
    services: Counter[str] | None = None
    if kind != "Services" and not any(map(about_services, trees)):
        rows = await _rows(asking, HOSTS, f"name,{_SHARED}", for_hosts(trees), problems)
        hosts = Counter()
        for name, *rest in rows:
            _count(hosts, HOST_WORDS, found, str(name), "", rest)
    if kind != "Hosts":
        columns = f"host_name,description,host_scheduled_downtime_depth,{_SHARED}"
        rows = await _rows(asking, SERVICES, columns, for_services(trees), problems)
        services = Counter()
        for host, name, depth, *rest in rows:
            # A service is in downtime with its host.
            rest[-1] = (rest[-1] or 0) + (depth or 0)
            _count(services, SERVICE_WORDS, found, str(host), str(name), rest)
    if not asking.settings.handled:
        found = [one for one in found if not one.acknowledged and not one.downtime]
    found.sort(key=lambda one: (_WORST_FIRST.index(one.state), -one.since, one.host, one.service))
    return sheet_of_problems(asking.frame(None, problems.values()), hosts, services, found)


async def _rows(
    asking: Asking,
    schema: TableSchema,
    columns: str,
    trees: Any,
    problems: dict[str, SiteProblem],
) -> Iterator[Row]:
    request = evolve(asking.request, parameters=(("columns", columns),))
    rows = await fetch(asking.context, request, schema, extra=trees)
    assert isinstance(rows, Rows)
    problems.update((one.site, one) for one in rows.failed_sites)
    return rows.once()


def _count(
    counts: Counter[str],
    words: Sequence[str],
    found: list[ObjectProblem],
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
        found.append(
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
