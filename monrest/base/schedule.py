"""When something recurs: schedules of downtimes and reports (docs/spec/downtimes.md, "Schedule").

Pure. Times are those of a zone, as its clocks show them: what falls into the hour that is left
out in spring comes right after it, what falls into the hour that comes twice in autumn comes
once; where every hour is meant, all of them are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from math import floor
from typing import Any

from cronsim import CronSim, CronSimError

from monrest.base.errors import BadRequest

TYPES = ("day", "week", "month", "monthday", "cust")
_NUMBERS = {"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "Last": "L"}
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_FIELDS = 5
_LONGEST_CRON = 200
_RANGES = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31)}
MOST_ENTRIES = 100


def read(value: Any, name: str = "schedule") -> list[dict[str, Any]]:
    """Check a whole schedule and return it as it is stored; BadRequest that names the place."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise BadRequest(f"invalid {name}", f"{name}: expected a list of objects")
    if len(value) > MOST_ENTRIES:
        raise BadRequest(f"invalid {name}", f"{name}: expected at most {MOST_ENTRIES} entries")
    for at, entry in enumerate(value):
        cron(entry, f"{name}.{at}")
    return value


def cron(entry: Mapping[str, Any], where: str = "schedule") -> str:
    """An entry as a cron expression of five fields; BadRequest for one that never comes."""
    kind = entry.get("type")
    if kind == "cust":
        text = _text(entry, "cust", where)
        if len(text) > _LONGEST_CRON or len(text.split()) != _FIELDS:
            raise _wrong(f"{where}.cust", "five cron fields")
    elif kind in TYPES:
        times = f"{_number(entry, 'minute', where)} {_number(entry, 'hour', where)}"
        if kind == "day":
            text = f"{times} * * *"
        elif kind == "week":
            text = f"{times} * * {_week_days(entry, where)}"
        elif kind == "month":
            text = f"{times} {_number(entry, 'day', where)} * *"
        else:
            text = f"{times} * * {_month_day(entry, where)}"
    else:
        raise _wrong(f"{where}.type", f"one of {', '.join(TYPES)}")
    if not _comes(text):
        raise _wrong(f"{where}.{'cust' if kind == 'cust' else 'day'}", "a time that comes")
    return text


def comes(text: str) -> bool:
    """Whether a text is a cron expression of five fields that means some time."""
    return len(text) <= _LONGEST_CRON and len(text.split()) == _FIELDS and _comes(text)


def _wrong(where: str, expected: str) -> BadRequest:
    return BadRequest("invalid schedule", f"{where}: expected {expected}")


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise _wrong(f"{where}.{key}", "a text")
    return value.strip()


def _number(entry: Mapping[str, Any], key: str, where: str) -> int:
    least, most = _RANGES[key]
    text = _text({key: entry.get(key, "")}, key, where)
    if text.isascii() and text.isdigit() and len(text) <= len("059") and least <= int(text) <= most:
        return int(text)
    raise _wrong(f"{where}.{key}", f"a number from {least} to {most}")


def _week_days(entry: Mapping[str, Any], where: str) -> str:
    value = entry.get("week_day")
    items = value if isinstance(value, list) else _text(entry, "week_day", where).split(",")
    days = {str(item).strip() for item in items if not isinstance(item, bool)}
    if not days or not days <= set("01234567"):
        raise _wrong(f"{where}.week_day", "a comma list of numbers from 0 to 7")
    return ",".join(sorted(days))


def _month_day(entry: Mapping[str, Any], where: str) -> str:
    number, _, day = _text(entry, "month_day", where).partition("_")
    if number not in _NUMBERS or day not in _WEEKDAYS:
        raise _wrong(
            f"{where}.month_day", "1st, 2nd, 3rd, 4th or Last, _ and a weekday, as 1st_Monday"
        )
    return f"{_WEEKDAYS.index(day)}{_NUMBERS[number]}"


@lru_cache(maxsize=1024)
def _comes(text: str) -> bool:
    """Whether an expression can be read, and means some time of the next decades."""
    try:
        next(CronSim(text, datetime(2000, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration, ValueError, OverflowError):
        return False
    return True


def expressions(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """The cron expressions of those entries that can be scheduled; broken ones are left out."""
    crons: dict[str, None] = {}
    for entry in entries:
        try:
            crons[cron(entry)] = None
        except BadRequest:
            continue
    return list(crons)


def following(crons: Sequence[str], after: float, zone: tzinfo) -> int | None:
    """The first time after ``after`` (both Unix) of any of the expressions."""
    times = [next(_times(cron, after, zone), None) for cron in crons]
    return min((time for time in times if time is not None), default=None)


def between(crons: Sequence[str], after: float, until: float, zone: tzinfo, most: int) -> list[int]:
    """The times with ``after < time <= until`` in order, of which only the ``most`` newest."""
    times: set[int] = set()
    for cron in crons:
        newest: deque[int] = deque(maxlen=most)
        for time in _times(cron, after, zone):
            if time > until:
                break
            newest.append(time)
        times.update(newest)
    return sorted(times)[-most:]


def _times(text: str, after: float, zone: tzinfo) -> Iterator[int]:
    """All times of one expression after a time, each once and in order."""
    # Times are whole seconds, and a datetime would round up what lies right before one.
    last = floor(after)
    # A clock that was put back shows times again that are over.
    for moment in CronSim(text, datetime.fromtimestamp(last, zone)):
        time = int(moment.timestamp())
        if time > last:
            last = time
            yield time
