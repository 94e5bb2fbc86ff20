"""The event log as a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attrs import evolve

from monrest.base.values import Rows
from monrest.logs.ask import ask
from monrest.query.model import Condition, FilterTree
from monrest.reports.builder import ReportBuilder, any_of
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Head, Note, Sheet
from monrest.rows.columns import LOGS

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
    """What the lines of these types look like; nothing for no types, which are all."""
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
