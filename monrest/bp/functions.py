"""The functions of nodes over their children: pure arithmetic (docs/spec/bp.md, "Functions")."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from attrs import frozen

from monrest.bp import thresholds
from monrest.bp.states import (
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
    WORDS,
    Item,
    counts,
    first_line,
    good,
    listed,
    worst_group,
)
from monrest.bp.syntax import text_at

NO_CHILDREN = "no dependent nodes"


class Outcome(NamedTuple):
    """What a function found; ``last_check`` and ``last_state_change`` are None for "now".

    ``output`` replaces the text of a process whose root this is, ``long_output`` follows it.
    """

    status: int
    short: str
    text: str = ""
    last_check: int | None = None
    last_state_change: int | None = None
    acknowledged: int = 0
    scheduled_downtime_depth: int = 0
    bp_ref: str | None = None
    bp_ref_peer: str | None = None
    output: str | None = None
    long_output: str = ""


def failed(reason: str, *, short: str = "") -> Outcome:
    """Give the outcome of a function that cannot say anything."""
    return Outcome(status=UNKNOWN, short=short or reason, text=reason if short else "")


# -------------------------------------------------------------------- worst and best


def worst_of(
    items: Sequence[Item],
    order: Sequence[str],
    *,
    best: bool = False,
    short: str = "",
    flags: bool = True,
) -> Outcome:
    """Give the state of the first group of the order; ``flags``: with those of its first member."""
    group = worst_group(items, order, best=best)
    if not group:
        return failed(NO_CHILDREN)
    first = group[0][1]
    word, name = WORDS[first.status], "Best" if best else "Worst"
    labels = [label for label, _ in group]
    details = ""
    if first.status != OK:
        lines = [f"\n- [{label}] {word} - {first_line(state[1])}" for label, state in group]
        details = "".join(lines)
    ok, warning, critical, unknown, pending = counts(items)
    return Outcome(
        status=first.status,
        short=short or f"{name.lower()} of",
        text=(
            f"{word} - {name} state is {word}: {listed(labels)}{details}"
            f"| services_ok={ok} services_warning={warning} services_unknown={unknown} "
            f"services_critical={critical} services_pending={pending}"
        ),
        acknowledged=first.acknowledged if flags else 0,
        scheduled_downtime_depth=first.scheduled_downtime_depth if flags else 0,
    )


# -------------------------------------------------------------------- counting


def at_least(arguments: Sequence[Any], items: Sequence[Item]) -> Outcome:
    """Critical when no more than the second limit are good, warning when no more than the first."""
    return _limited(arguments, items, ">=", lambda count, limit: count <= limit)


def not_more(arguments: Sequence[Any], items: Sequence[Item]) -> Outcome:
    """Critical when more than the second limit are good, warning when more than the first."""
    return _limited(arguments, items, "<=", lambda count, limit: count > limit)


def _limited(
    arguments: Sequence[Any],
    items: Sequence[Item],
    sign: str,
    beyond: Callable[[float, float], bool],
) -> Outcome:
    first = text_at(arguments, 0)
    second = text_at(arguments, 1) or first
    total = len(items)
    warning, critical = thresholds.number(first, total), thresholds.number(second, total)
    if warning is None:
        return failed("warning threshold must be numeric")
    if critical is None:
        return failed("critical threshold must be numeric")
    count = good(items)
    status = WARNING if beyond(count, warning) else OK
    if beyond(count, critical):
        status = CRITICAL
    both = first if first == second else f"{first},{second}"
    return _available(status, f"{sign} {both}", count, total, warning, critical)


def _available(
    status: int, short: str, count: int, total: int, warning: float, critical: float
) -> Outcome:
    limits = f"{thresholds.shown(warning)};{thresholds.shown(critical)}"
    return Outcome(
        status=status,
        short=short,
        text=(
            f"{WORDS[status]} - {count}/{total} nodes are available|good={count};{limits};0;{total}"
        ),
    )


def equals(arguments: Sequence[Any], items: Sequence[Item]) -> Outcome:
    """Critical unless exactly so many are good."""
    given = text_at(arguments, 0)
    limit = thresholds.number(given, len(items))
    if limit is None:
        return failed("threshold must be numeric")
    if not items:
        return failed(NO_CHILDREN)
    count = good(items)
    status = OK if count == limit else CRITICAL
    return _available(status, f"= {given}", count, len(items), limit, limit)


# -------------------------------------------------------------------- without children

_FIXED = {"0": OK, "ok": OK, "1": WARNING, "warning": WARNING}
_FIXED |= {"2": CRITICAL, "critical": CRITICAL, "down": CRITICAL}


def fixed(arguments: Sequence[Any]) -> Outcome:
    """Give the state that is written there."""
    status = _FIXED.get(text_at(arguments, 0).lower(), UNKNOWN)
    return Outcome(status=status, short="fixed", text=text_at(arguments, 1) or WORDS[status])


def random(choice: int) -> Outcome:
    """Give the state that chance chose."""
    word = WORDS[choice]
    return Outcome(status=choice, short="random", text=f"{word} - Random state is {word}")


# -------------------------------------------------------------------- limits for groups


@frozen(kw_only=True)
class Limited:
    """How many hosts and services there are and how many of them are bad; None: not looked at."""

    hosts: tuple[int, int] | None
    services: tuple[int, int] | None


def limits(arguments: Sequence[Any], found: Limited) -> tuple[int | None, str]:
    """Give the state by the limits hostwarn, hostcrit, servicewarn and servicecrit.

    None without any limit; a text for a limit that is no number.
    """
    status: int | None = None
    for at, (kind, total_and_bad, level) in enumerate(
        (
            ("host", found.hosts, WARNING),
            ("host", found.hosts, CRITICAL),
            ("service", found.services, WARNING),
            ("service", found.services, CRITICAL),
        )
    ):
        given = text_at(arguments, at)
        if not given or total_and_bad is None:
            continue
        total, bad = total_and_bad
        limit = thresholds.number(given, total)
        if limit is None:
            return UNKNOWN, f"UNKNOWN - {kind} {WORDS[level].lower()} threshold must be numeric"
        status = status or OK
        if bad >= limit:
            status = max(status, level)
    return status, ""
