"""Events of the log as a report."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from monrest.base.values import Rows
from monrest.logs.ask import ask
from monrest.query.model import Condition, FilterTree
from monrest.reports import build
from monrest.reports.build import MOST_EVENTS
from monrest.reports.report_asking import Asking, any_of
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Sheet
from monrest.rows.columns import LOGS

_BEGIN = "^\\[[0-9]+\\] "
_KINDS = {"hard": "HARD", "soft": "SOFT", "both": "(HARD|SOFT)"}


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
    rows = await ask(asking.context, request, LOGS, extra=tuple(trees))
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
        how = _KINDS[hardness[0].rpartition("_")[2]] if hardness else _KINDS["both"]
        found.append(f"{_BEGIN}{kind.upper()} ALERT: .*;({words});{how};")
    found += [
        f"{_BEGIN}{kind.upper()} NOTIFICATION: "
        for kind in ("host", "service")
        if f"notification_{kind}" in types
    ]
    return found
