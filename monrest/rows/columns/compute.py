"""Pure computations behind derived columns (docs/spec/query.md, "Collections")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def info(entries: Sequence[Sequence[Any]] | None) -> str:
    """Write comments or downtimes as ``id:<id> author:<author>: text:<text>``, joined by ``, ``.

    ``entries`` are the records of a ``…_with_info`` column, which start with id, author, text;
    whatever is no such record is left out.
    """
    if not entries or not isinstance(entries, list):
        return ""
    return ", ".join(
        f"id:{entry[0]} author:{entry[1]}: text:{entry[2]}"
        for entry in entries
        if isinstance(entry, list) and len(entry) >= _RECORD
    )


_RECORD = 3


def state_order(state: Any) -> Any:
    """Rank a service state for sorting: critical (2) comes after unknown (3) as 4."""
    return 4 if state == 2 else state


def change_or_start(last_state_change: Any, program_start: Any) -> Any:
    """Give the last change of state, or the core's start for objects that never changed."""
    return last_state_change or program_start or 0


def command_check(last_command_check: Any, program_start: Any, now: Any) -> Any:
    """Show the present instead of the start, which the core sets before the first real check."""
    return int(now) if now and last_command_check == program_start else last_command_check


def data_source(livestatus_version: Any) -> str:
    """Name what delivers the data, with its version."""
    return f"Livestatus {livestatus_version}"


def given(value: Any) -> Any:
    """Give the value itself."""
    return value
