"""A log line as the cache keeps it: its values, its identity, what of it repeats another one.

Values are kept as the cores tell them, so that an answer from the cache is the answer of the core
(docs/spec/logcache.md). ``options`` is left out where the message holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Literal, TypeAlias, TypeVar

from monrest.base.values import Row
from monrest.query.column_names import CoreType

COLUMNS: tuple[tuple[str, CoreType], ...] = (
    ("time", "int"),
    ("lineno", "int"),
    ("class", "int"),
    ("type", "string"),
    ("state", "int"),
    ("state_type", "string"),
    ("attempt", "int"),
    ("host_name", "string"),
    ("service_description", "string"),
    ("contact_name", "string"),
    ("command_name", "string"),
    ("plugin_output", "string"),
    ("comment", "string"),
    ("message", "string"),
    ("options", "string"),
)
"""The columns that are kept, in the order of a ``LogLine``."""

LogLine: TypeAlias = tuple[Any, ...]
"""The values of one line in the order of ``COLUMNS``."""

Texts: TypeAlias = Literal["none", "latest", "all"]
"""The needed lines that repeat the state of an object: none, the latest before a change, all."""

TIME, LINENO = range(2)
HOST, MESSAGE, OPTIONS = 7, 13, 14

STAMP = 13
"""Characters of ``[1700000000] `` before the text of a message."""

DAY = 86400
"""Seconds of what is compacted and removed together; days are those of UTC."""

LINE = 200
"""Bytes that a line has in the answer of a core, by which lines of a database take room."""

L = TypeVar("L", bound=Sequence[Any])

_NUMBERS = tuple(at for at, (_, kind) in enumerate(COLUMNS) if kind == "int")
_TEXTS = tuple(at for at, (_, kind) in enumerate(COLUMNS) if kind == "string")
_LARGEST = 2**63 - 1

_INFO, _ALERT, _PROGRAM, _PASSIVE, _STATE = 0, 1, 2, 4, 6
_STATE_ALERTS = frozenset({"HOST ALERT", "SERVICE ALERT"})
_DOWNTIMES = frozenset({"HOST DOWNTIME ALERT", "SERVICE DOWNTIME ALERT"})

_Target: TypeAlias = tuple[str, str]
_PROGRAM_ENDS = "Successfully shutdown"
# The object, its state, and whether that is hard: the words, since numbers and names that a core
# finds in a line are not the same for all states and all cores.
_STATED = re.compile(
    r"(?:INITIAL |CURRENT )?(HOST|SERVICE) (?:ALERT|STATE): (.*?);([^;]*;(?:HARD|SOFT));", re.DOTALL
)


def floor(time: int) -> int:
    """The beginning of the day of a moment."""
    return time // DAY * DAY


def ceil(time: int) -> int:
    """The beginning of a day at a moment or next after it."""
    return -(-time // DAY) * DAY


def options_of(message: str) -> str:
    """The usual value of ``options``: the text after the first colon."""
    return message[STAMP:].partition(":")[2].lstrip(" ")


def kept(row: Row) -> LogLine:
    """A core's row as it is stored; letters that no database can hold are replaced."""
    for at in _NUMBERS:
        row[at] = _number(row[at])
    for at in _TEXTS:
        row[at] = _text(row[at])
    if row[OPTIONS] == options_of(row[MESSAGE]):
        row[OPTIONS] = None
    return tuple(row)


def _number(value: Any) -> int:
    if type(value) is not int:
        if not isinstance(value, (int, float)) or value != value or abs(value) > _LARGEST:
            return 0
        value = int(value)
    return value if -_LARGEST <= value <= _LARGEST else 0


def _text(value: Any) -> str:
    text: str = value if isinstance(value, str) else "" if value is None else str(value)
    if text.isascii() and "\0" not in text:
        return text
    # PostgreSQL takes no NUL, and no database half of a surrogate pair.
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def in_order(lines: Sequence[L], *, newest_first: bool) -> list[L]:
    """Lines of a core by time and, within a second, as they stand in its log.

    The time comes first in a line. ``newest_first``: the order in which the core sends lines of
    one second, which counts if all lines are of the same.
    """
    if lines and lines[0][0] != lines[-1][0]:
        newest_first = lines[0][0] > lines[-1][0]
    return sorted(reversed(lines) if newest_first else lines, key=itemgetter(0))


def sizes(lines: Iterable[LogLine]) -> tuple[int, int]:
    """Bytes that lines take in the table and in its index, roughly: their characters."""
    data = index = 0
    for line in lines:
        data += 48 + sum([len(line[at]) for at in _TEXTS if line[at]])
        index += 16 + len(line[HOST])
    return data, index


def service_of(message: str, host: str, service: str) -> str:
    """The whole name of the service in a line with a state.

    ``service`` is what the core found there: names of an Icinga 2 may hold what separates fields.
    """
    match = _STATED.match(message, STAMP)
    whole = match is not None and match[1] == "SERVICE" and match[2].startswith(f"{host};")
    return match[2][len(host) + 1 :] if match is not None and whole else service


def repetitions(lines: Iterable[tuple[Any, int, str, str]]) -> Iterator[Any]:
    """Of (key, class, type, message) in log order, the keys of those that tell nothing new.

    These are passive checks, pure information, and alerts in the midst of equal ones of their
    object. Its first alert says when a state began and its latest one has the text of an outage;
    an outage may end for a downtime, so the latest before one stays as well. Every line stays
    that changes a state or a flag, or reports the end of a core (docs/spec/logcache.md).
    """
    last: dict[_Target, str] = {}
    # The latest repetition of each object, by its host.
    latest: dict[str, dict[_Target, Any]] = {}
    for key, number, kind, message in lines:
        if number == _PASSIVE:
            yield key
        elif number == _INFO:
            if not kind.startswith(_PROGRAM_ENDS):
                yield key
        elif number == _PROGRAM:
            # The state of an object is not known while its core does not run.
            last.clear()
            latest.clear()
        elif number == _STATE or kind in _STATE_ALERTS:
            match = _STATED.match(message, STAMP)
            if match is None:
                continue
            target, state = (match[1], match[2]), match[3]
            mine = latest.setdefault(match[2].partition(";")[0], {})
            before = mine.pop(target, None)
            if last.get(target) == state:
                if before is not None:
                    yield before
                if number != _STATE:
                    mine[target] = key
            last[target] = state
        elif kind in _DOWNTIMES:
            latest.pop(message[STAMP:].partition(": ")[2].partition(";")[0], None)
