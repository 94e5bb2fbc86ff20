"""The fields of what a client sends, in a form or as JSON: each kind has one reader.

A declaration carries the type, the limit, the default and the meaning of a field. The reference
page and every 400 are made from it. Rules: docs/spec/store.md, "Records".
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, tzinfo
from math import floor, isfinite
from typing import Any, Literal, TypeAlias

import orjson
from attrs import Factory, field, frozen

from monrest.base import truth
from monrest.base.errors import BadRequest
from monrest.base.values import Column, ColumnType, Parameters, RestRequest
from monrest.query.functions import Moment
from monrest.query.parse import RESERVED
from monrest.query.scan import printable
from monrest.query.target import check_values
from monrest.query.times import MOST_TIME, parse_time
from monrest.store.documents import require_storable
from monrest.store.stored import Shown

ParameterType: TypeAlias = Literal[
    "string", "integer", "number", "boolean", "time", "list", "object"
]

_COLUMN_TYPES: Mapping[ParameterType, ColumnType] = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "time": "string",
    "list": "array_of_strings",
    "object": "object",
}
"""Dates of records are stored and shown as texts."""

SITES = ("backend", "backends")
NUL = re.compile("\0")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CONTROL_BUT_LINES = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

DATE = "%Y-%m-%d %H:%M:%S"
"""How dates of records are stored, in the zone of the server."""

_LATEST_DATE = 253_402_128_000
"""Two days before the year 10000, which no zone moves behind the last year of calendars."""

_LAST_SECOND = 253_402_300_799
"""The end of the year 9999, the last that calendars know."""

_WHOLE = re.compile(r"-?[0-9]{1,9}")
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?")


@frozen
class Reading:
    """The context of a value: ``where`` is in front of names in errors.

    Relative dates count from the ``present``.
    """

    where: str = ""
    present: Moment | None = None


AS_IT_IS = Reading()


@frozen
class Field(ABC):
    """A field of a record or a parameter of an endpoint, with the one reader of its values.

    ``needed`` says what is expected where nothing would be wrong. ``title`` is the message of
    errors where it does not name the field. ``in_rows`` describes the column of a record where that
    differs from the ``description`` and ``type`` of what is sent; None: records do not show it.
    """

    name: str
    description: str
    type: ParameterType = field(default="string", kw_only=True)
    needed: str = field(default="", kw_only=True)
    title: str = field(default="", kw_only=True)
    in_rows: Shown | str | None = field(default="", kw_only=True)
    required: bool = field(
        default=Factory(lambda self: bool(self.needed), takes_self=True), kw_only=True
    )

    @abstractmethod
    def read(self, value: Any, at: Reading = AS_IT_IS) -> Any:
        """Return the value as the record has it; BadRequest for what is none."""

    @property
    def limit(self) -> str:
        return ""

    @property
    def column(self) -> Column | None:
        """The column of the field in records as they are shown."""
        if isinstance(self.in_rows, str):
            text = self.in_rows or self.description
            return Column(self.name, _COLUMN_TYPES[self.type], "", text)
        return None if self.in_rows is None else self.in_rows.column(self.name)

    def asked(self, parameters: Parameters, at: Reading = AS_IT_IS) -> Any:
        """Return what the last parameter of this name says; one that is empty says nothing."""
        value = None
        for name, text in parameters:
            if name == self.name:
                value = text
        return self.read(value if value and not value.isspace() else None, at)

    def wrong(self, at: Reading, expected: str) -> BadRequest:
        """Make the error that names the field and what was expected."""
        return BadRequest(
            self.title or f"invalid {self.name}", f"{at.where}{self.name}: expected {expected}"
        )


@frozen(kw_only=True)
class Text(Field):
    """A text of at most ``longest`` characters, without those of the pattern ``refused``.

    Values of ``numbers`` are texts as well. ``expected`` is what an error says for another type,
    for a refused character and for too long a text.
    """

    longest: int
    refused: re.Pattern[str] = CONTROL
    stripped: bool = True
    default: str = ""
    numbers: tuple[type, ...] = (int, float)
    expected: tuple[str, str, str] = (
        "a text",
        "a text without control characters",
        "at most {longest} characters",
    )

    def read(self, value: Any, at: Reading = AS_IT_IS) -> str:
        value = "" if value is None else value
        if isinstance(value, bool) or not isinstance(value, (str, *self.numbers)):
            raise self._wrong(at, 0)
        text = str(value).strip() if self.stripped else str(value)
        if self.refused.search(text):
            raise self._wrong(at, 1)
        if len(text) > self.longest:
            raise self._wrong(at, 2)
        if self.needed and not text.strip():
            raise BadRequest(
                f"missing {self.name}", f"{at.where}{self.name}: expected {self.needed}"
            )
        return text or self.default

    def _wrong(self, at: Reading, what: int) -> BadRequest:
        return self.wrong(at, self.expected[what].format(longest=self.longest))

    @property
    def limit(self) -> str:
        return f"{self.longest} characters"


@frozen
class Choice(Field):
    """One of some words; nothing is the default."""

    words: tuple[str, ...]
    default: str = ""
    expected: str = ""

    def read(self, value: Any, at: Reading = AS_IT_IS) -> str:
        word = value.strip() if isinstance(value, str) else value
        if word is None or word == "":
            return self.default
        if not isinstance(word, str) or word not in self.words:
            raise self.wrong(at, self.expected or f"one of {', '.join(self.words)}")
        return word

    @property
    def limit(self) -> str:
        return ", ".join(self.words)


@frozen(kw_only=True)
class Number(Field):
    """A whole number; ``words``: also the words for yes and no."""

    type: ParameterType = "integer"

    least: int
    most: int
    default: int = 0
    words: bool = False
    expected: str = "a number from {least} to {most}"

    def read(self, value: Any, at: Reading = AS_IT_IS) -> int:
        number: int | None = None
        if value is None:
            number = self.default
        elif isinstance(value, str):
            text = value.strip()
            if _WHOLE.fullmatch(text):
                number = int(text)
            elif self.words:
                number = truth.truth(text)
        elif isinstance(value, (bool, int)) or (isinstance(value, float) and value.is_integer()):
            number = int(value)
        if number is None or not self.least <= number <= self.most:
            raise self.wrong(at, self.expected.format(least=self.least, most=self.most))
        return int(number)

    @property
    def limit(self) -> str:
        return f"{self.least} to {self.most}"


@frozen(kw_only=True)
class Seconds(Field):
    """A number of seconds, with a fraction or without; nothing is None."""

    type: ParameterType = "number"

    least: float
    most: float

    def read(self, value: Any, at: Reading = AS_IT_IS) -> float | None:
        if value is None:
            return None
        text = str(value).strip()
        if not _SECONDS.fullmatch(text) or not self.least <= float(text) <= self.most:
            raise self.wrong(at, f"seconds from {self.limit}, such as 2 or 0.5")
        return float(text)

    @property
    def limit(self) -> str:
        return f"{self.least:g} to {self.most:g}"


@frozen(kw_only=True)
class Flag(Field):
    """1 or 0, for every word that says yes or no."""

    type: ParameterType = "boolean"

    default: int = 0

    def read(self, value: Any, at: Reading = AS_IT_IS) -> int:
        flag = self.default if value is None else truth.truth(value)
        if flag is None:
            raise self.wrong(at, truth.EXPECTED)
        return int(flag)


def comma_names(item: Any) -> Iterable[str] | None:
    """Return the names between the commas of a text; None for what is no text."""
    return map(str.strip, item.split(",")) if isinstance(item, str) else None


@frozen(kw_only=True)
class NameList(Field):
    """A list of names, or a text with commas; a name that comes again counts once.

    ``item`` returns the names of one item, None for what is none. ``check`` gets the field and a
    name, and raises BadRequest. ``kind`` and ``number`` are what an error says for what is no list
    of names, and for a list that is too long. ``longest`` are the characters of a name, if they
    are bound.
    """

    type: ParameterType = "list"

    most: int
    longest: int = 0
    item: Callable[[Any], Iterable[str] | None] = comma_names
    check: Callable[[str, str], object] = lambda *_: None
    ordered: bool = False
    kind: str = "a list of names"
    number: str = "a list of names"

    def read(self, value: Any, at: Reading = AS_IT_IS) -> list[str]:
        items = value.split(",") if isinstance(value, str) else [] if value is None else value
        if not isinstance(items, list):
            raise self.wrong(at, self.kind)
        listed: list[str] = []
        for item in items if items != [""] else ():
            names = self.item(item)
            if names is None:
                raise self.wrong(at, self.kind)
            for name in filter(None, names):
                if 0 < self.longest < len(name):
                    raise self.wrong(at, f"names of at most {self.longest} characters")
                self.check(f"{at.where}{self.name}", name)
                listed.append(name)
                if len(listed) > self.most:
                    raise self.wrong(at, self.number.format(most=self.most))
        return sorted(set(listed)) if self.ordered else list(dict.fromkeys(listed))

    @property
    def limit(self) -> str:
        length = f" of {self.longest} characters" if self.longest else ""
        return f"{self.most} names{length}"


@frozen(kw_only=True)
class Second(Field):
    """A moment in the zone of ``present``, as Unix time, a relative time or a date."""

    type: ParameterType = "time"
    limit = f"{MOST_TIME} characters"

    def read(self, value: Any, at: Reading = AS_IT_IS) -> int | None:
        """Return the second in Unix time, None for none."""
        present = at.present
        assert present is not None
        if not value:
            return None
        return second_of(f"{at.where}{self.name}", str(value), present.now, present.zone)


@frozen(kw_only=True)
class Date(Field):
    """A date in the zone of ``present``; what is relative becomes what it means then."""

    type: ParameterType = "time"
    limit = f"{MOST_TIME} characters"

    def read(self, value: Any, at: Reading = AS_IT_IS) -> str:
        """Return the date as ``DATE``, empty for none."""
        present = at.present
        assert present is not None
        if value is None or value == "":
            return ""
        moment = None
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            moment = parse_time(str(value), present.now, present.zone)
        if moment is None or not 0 <= moment <= _LATEST_DATE:
            raise self.wrong(at, "YYYY-MM-DD HH:MM:SS, YYYY-MM-DD HH:MM, or a time such as +7d")
        return datetime.fromtimestamp(int(moment), present.zone).strftime(DATE)


@frozen(kw_only=True)
class Ruled(Field):
    """An object or a list with a rule of its own; ``nested``: a form has it as a text of JSON."""

    rule: Callable[[Any], Any]
    nested: bool = False
    most: str = ""

    def read(self, value: Any, at: Reading = AS_IT_IS) -> Any:
        if self.nested and isinstance(value, str):
            value = self.parsed(value, at)
        return self.rule(value)

    def parsed(self, text: str, at: Reading = AS_IT_IS) -> Any:
        """Return what a form says in JSON."""
        check_values(text.encode(), self.name)
        try:
            return orjson.loads(text) if text else None
        except orjson.JSONDecodeError:
            kind = "an object" if self.type == "object" else "a list"
            raise self.wrong(at, f"{kind}, in a form as JSON") from None

    @property
    def limit(self) -> str:
        return self.most


@frozen
class Fields:
    """The fields of a record. ``computed`` are names that come from elsewhere and are dropped.

    A name that is in neither is kept with its value as it was given, up to ``longest`` bytes.
    """

    declared: tuple[Field, ...]
    computed: frozenset[str] = frozenset()
    longest: int = 1_048_576

    def record(self, given: Mapping[str, Any], present: Moment | None = None) -> dict[str, Any]:
        """Return a whole record as it is stored, with defaults for what was left out."""
        record = {name: value for name, value in given.items() if name not in self.computed}
        record |= self.values(record, Reading(present=present))
        require_storable(record, self.longest)
        return record

    def values(self, given: Mapping[str, Any], at: Reading = AS_IT_IS) -> dict[str, Any]:
        return {
            declared.name: declared.read(given.get(declared.name), at) for declared in self.declared
        }


def fields_of(request: RestRequest) -> dict[str, Any]:
    """Fields by name; of a form each value is a text, or a list of texts where it came often.

    BadRequest for a body that is a list. What says how to answer is no field of a form.
    """
    if isinstance(request.document, list):
        raise BadRequest(
            "failed to parse json data argument", "request body: expected a JSON object {…}"
        )
    if request.document is not None:
        return dict(request.document)
    return collected(pair for pair in request.parameters if pair[0] not in RESERVED)


def collected(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the values of a form by name: a text, or a list of texts where it came often."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in values.items()}


def require_only(request: RestRequest, *names: str) -> None:
    """Raise BadRequest for a parameter that has another name and does not say how to answer."""
    for name, _ in request.parameters:
        if name not in names and name not in RESERVED:
            expected = f"only {' and '.join(names)}" if names else "none"
            raise BadRequest("unknown parameter", f"{name[:80]!r}: expected {expected}")


def named_sites(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the sites that fields of a body name; BadRequest for what is no list of them."""
    names: list[str] = []
    for name in SITES:
        value = fields.get(name)
        items = value.split(",") if isinstance(value, str) else value or []
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise BadRequest(f"invalid {name}", f"{name}: expected a list of sites")
        names += [item.strip() for item in items if item.strip()]
    return tuple(names)


def named_in(parameters: Parameters) -> tuple[str, ...]:
    return tuple(
        item.strip()
        for name, value in parameters
        if name in SITES
        for item in value.split(",")
        if item.strip()
    )


def selected_sites(request: RestRequest) -> tuple[str, ...]:
    """Return the sites that a request names beside its fields: in parameters or before the path."""
    return named_in(request.parameters) or request.sites


def second_of(parameter: str, value: str, now: float, zone: tzinfo) -> int:
    """The second that a parameter means; BadRequest for what is no time."""
    moment = parse_time(value, now, zone)
    if moment is None or not isfinite(moment) or not 0 <= moment <= _LAST_SECOND:
        raise BadRequest(
            "error during request",
            f"{printable(parameter)}: cannot parse time '{printable(value)}', expected a unix "
            "time, a relative time such as -10m or now-1h, or a date",
        )
    return floor(moment)
