"""Type and unit of a column of which only the name is known (docs/spec/render.md, "Types by name").

The rules bound to one resource (availability times, recurring downtimes, sessions) are not
here: those resources declare their columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monrest.base.values import ColumnType

_TIMES = frozenset(("mtime", "start", "end", "localtime", "ts", "time", "lmd_last_cache_update"))
_NO_TIMES = frozenset(("last_job", "last_error", "last_state", "last_hard_state"))
"""Names that begin like a time and are none."""
_SECONDS = frozenset(("duration", "response_time", "execution_time"))
_BYTES = frozenset(("bytes_received", "bytes_send", "index_size", "data_size"))


def by_name(name: str) -> tuple[ColumnType | None, str]:
    """Type and unit by the first rule that fits ``name``; ``(None, "")`` when none does."""
    if name == "percent" or name.endswith(("_perc", "_percent")):
        return "number", "%"
    if name.endswith(("_sum", "_avg", "_min", "_max")):
        if "_time_" in name:
            return "number", "s"
        return "number", "%" if "state_change" in name else ""
    if name in _TIMES:
        return "time", ""
    if name.startswith(("last_", "next_", "start_", "end_")) and name not in _NO_TIMES:
        return "time", ""
    if name.endswith(("_ts", "_till", "_last_update")):
        return "time", ""
    if name in _SECONDS or name.endswith(("_duration", "_seconds")):
        return "number", "s"
    if name in _BYTES:
        return "number", "bytes"
    return None, ""
