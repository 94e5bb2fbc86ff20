"""Performance data behind the output of ``-o`` (docs/spec/cli.md, "Performance data")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from monrest.cli.client_errors import UsageError
from monrest.cli.lookup import is_number
from monrest.cli.template import spelled
from monrest.cli.thresholds import LEVELS, Threshold

_UNSAFE = re.compile(r"[=|\x00-\x1f\x7f]")


class Unit(NamedTuple):
    """A unit for the labels that equal ``label`` or match ``pattern`` from end to end."""

    label: str
    pattern: re.Pattern[str] | None
    unit: str

    def fits(self, label: str) -> bool:
        """Whether ``label`` gets the unit."""
        if label == self.label:
            return True
        return self.pattern is not None and self.pattern.fullmatch(label) is not None


def unit(text: str) -> Unit:
    """Read ``LABEL:UNIT``; a label that is no pattern is only compared."""
    label, colon, name = text.rpartition(":")
    if not colon or not label:
        raise UsageError(f"--perfunit: expected LABEL:UNIT, got {text!r}")
    try:
        return Unit(label, re.compile(label), name)
    except re.error:
        return Unit(label, None, name)


def label_filter(text: str) -> re.Pattern[str]:
    """Read a pattern of ``--perffilter``."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"--perffilter: {text!r} is no regular expression: {error}") from None


def performance_data(
    total: dict[str, Any],
    thresholds: Sequence[Threshold],
    units: Sequence[Unit],
    filters: Sequence[re.Pattern[str]],
) -> str:
    """All numbers of ``total`` as ``'label'=value[unit];warning;critical;;``, sorted by name."""
    return " ".join(
        _item(label, value, thresholds, units)
        for label, top, value in sorted(_leaves(total), key=lambda condition: condition[0])
        if not filters or any(pattern.search(top) or pattern.search(label) for pattern in filters)
    )


def _leaves(
    value: dict[str, Any], prefix: str = "", top: str = ""
) -> Iterator[tuple[str, str, Any]]:
    """(label, its top-level name, number or None) of everything that is a number or null."""
    for key, item in value.items():
        label = f"{prefix}{key}"
        if isinstance(item, dict):
            yield from _leaves(item, f"{label}::", top or key)
        elif item is None or is_number(item):
            yield label, top or key, item


def _item(label: str, value: Any, thresholds: Sequence[Threshold], units: Sequence[Unit]) -> str:
    name = _UNSAFE.sub("_", label).replace("'", "''")
    if value is None:
        number = "U"
    else:
        number = spelled(value) + next((unit.unit for unit in units if unit.fits(label)), "")
    limits = (_limit(label, level, thresholds) for level in LEVELS.values())
    return f"'{name}'={number};{';'.join(limits)};;"


def _limit(label: str, level: int, thresholds: Sequence[Threshold]) -> str:
    return next(
        (
            threshold.text
            for threshold in thresholds
            if threshold.level == level and label in (threshold.key, threshold.label)
        ),
        "",
    )
