"""``monrest r`` as a plugin: thresholds, output templates, performance data.

The precedence in arithmetic is that of Python, whose parser reads the tokens; names and numbers are
put in afterwards. Rules: docs/spec/cli.md.
"""

from __future__ import annotations

import json
import operator
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

from monrest.cli.output import UsageError
from monrest.client.exchange import ClientError

NumberToken: TypeAlias = int | float
Resolve: TypeAlias = Callable[[str], NumberToken]
"""Returns the number of a name; raises ExpressionError for a value that is none."""

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*(?:(?:\.|::)\w+)*)"
    r"|(?P<quoted>\"[^\"]+\"|'[^']+')"
    r"|(?P<sign>[-+*/()]))"
)
_OPERATORS: Mapping[str, Callable[..., NumberToken]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv,
    "UAdd": operator.pos, "USub": operator.neg,
}  # fmt: skip
"""By their names in Python's syntax tree."""


class ExpressionError(Exception):
    """The text is no expression, or it has no value."""


def evaluate(text: str, resolve: Resolve) -> NumberToken:
    """The value of ``text``; raise ExpressionError when it has none (division by zero, ...)."""
    from ast import parse  # 7 ms, which a template without calculations does not cost

    numbers: list[NumberToken] = []
    words: list[str] = []
    position, end = 0, len(text.rstrip())
    try:
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise ExpressionError(text)
            position = match.end()
            if match["sign"]:
                words.append(match["sign"])
                continue
            words.append(f"_{len(numbers)}")
            if number := match["number"]:
                numbers.append(int(number) if number.isdigit() else float(number))
            else:
                numbers.append(resolve(match["name"] or match["quoted"][1:-1]))
        return _calculated(parse(" ".join(words), mode="eval").body, numbers)
    except (ArithmeticError, ValueError, SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(text) from None


def _calculated(node: Any, numbers: Sequence[NumberToken]) -> NumberToken:
    kind = type(node).__name__
    if kind == "Name":
        return numbers[int(node.id[1:])]
    if kind == "UnaryOp":
        return _OPERATORS[type(node.op).__name__](_calculated(node.operand, numbers))
    if kind == "BinOp":
        left, right = _calculated(node.left, numbers), _calculated(node.right, numbers)
        return _OPERATORS[type(node.op).__name__](left, right)
    raise ExpressionError("expected numbers between the signs")


_SEPARATOR = re.compile(r"\.|::")
_LONGEST_INDEX = 9


class Missing:
    """The type of ``MISSING``, which no JSON value equals."""


MISSING: Final = Missing()


def look_up(value: Any, path: str) -> Any:
    """The value at ``path`` (``a.b.0.c`` or ``a::b::0::c``), or MISSING.

    A key that contains a separator itself is found before it is taken apart.
    """
    if isinstance(value, dict):
        if path in value:
            return value[path]
        for separator in _SEPARATOR.finditer(path):
            head = path[: separator.start()]
            if head in value:
                inner = look_up(value[head], path[separator.end() :])
                if inner is not MISSING:
                    return inner
        return MISSING
    if isinstance(value, list):
        head, *rest = _SEPARATOR.split(path, maxsplit=1)
        if not (head.isascii() and head.isdigit() and len(head) <= _LONGEST_INDEX):
            return MISSING
        if int(head) >= len(value):
            return MISSING
        item = value[int(head)]
        return look_up(item, rest[0]) if rest else item
    return MISSING


def is_number(value: Any) -> bool:
    """Whether a JSON value counts: numbers, and booleans as 1 and 0."""
    return isinstance(value, (int, float))


def summed(results: Iterable[Any]) -> dict[str, Any]:
    """Add up all results that are objects.

    Numbers of a key are added, objects below it as well; of anything else the first value that
    is not null stays.
    """
    total: dict[str, Any] = {}
    for result in results:
        if isinstance(result, dict):
            total = _merged(total, result)
    return total


def _merged(total: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(total)
    for key, value in more.items():
        merged[key] = _added(merged[key], value) if key in merged else value
    return merged


def _added(first: Any, second: Any) -> Any:
    if is_number(first) and is_number(second):
        return first + second
    if isinstance(first, dict) and isinstance(second, dict):
        return _merged(first, second)
    return second if first is None else first


_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PLAIN = re.compile(rf"{_NUMBER}\Z")
_RANGE = re.compile(rf"(?P<inside>@)?(?:(?P<start>~|{_NUMBER})?:)?(?P<end>{_NUMBER})?\Z")
_BRACED = re.compile(r"\{([^{}]+)\}(.*)\Z", re.DOTALL)

LEVELS = {"warning": 1, "critical": 2}


class ThresholdError(ClientError):
    """A threshold cannot be read, or its name is not in the answer; replaces all output."""


class Threshold(NamedTuple):
    """Alert outside ``start`` to ``end``, or inside when ``inside``.

    ``key`` is the name as it was given, ``text`` the threshold as it was given, ``level`` the
    state that it sets (1 or 2).
    """

    level: int
    key: str
    text: str
    start: float
    end: float
    inside: bool

    @property
    def label(self) -> str:
        """The name with ``::`` between its parts, as performance data spell it."""
        return self.key.replace(".", "::")

    def alerts(self, value: float) -> bool:
        """Whether ``value`` sets the state."""
        return (self.start <= value <= self.end) is self.inside


def threshold(option: str, text: str) -> Threshold:
    """Read ``key:T``, ``a.b:T`` or ``{a::b}T`` of ``option`` (warning or critical)."""
    match = _BRACED.match(text)
    key, limits = (match[1], match[2]) if match else text.partition(":")[::2]
    bounds = _bounds(limits)
    if not key or bounds is None:
        raise ThresholdError(
            f"unknown threshold format, syntax is --{option}={{key}}threshold, got: {text}"
        )
    start, end, inside = bounds
    return Threshold(LEVELS[option], key, limits, start, end, inside)


def _bounds(text: str) -> tuple[float, float, bool] | None:
    if _PLAIN.match(text):
        return 0.0, float(text), False
    match = _RANGE.match(text)
    if match is None or (match["end"] is None and ":" not in text):
        return None
    start = {"~": -inf, None: 0.0}.get(match["start"])
    if start is None:
        start = float(match["start"])
    end = inf if match["end"] is None else float(match["end"])
    return (start, end, match["inside"] is not None) if start <= end else None


def state(thresholds: tuple[Threshold, ...], data: Any) -> int:
    """The worst state of one result: 0, 1 or 2. Raises ThresholdError for an unknown name."""
    worst = 0
    for threshold in thresholds:
        value = look_up(data, threshold.key)
        if value is MISSING:
            option = next(name for name, level in LEVELS.items() if level == threshold.level)
            raise ThresholdError(
                f"unknown variable {threshold.key} in thresholds, syntax is --{option}=key:value"
            )
        if threshold.alerts(value if is_number(value) else 0):
            worst = max(worst, threshold.level)
    return worst


STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_EARLIER = re.compile(r"\{([0-9]{1,9}:(?!:)[^{}]+)\}")
_NUMBERED = re.compile(r"([0-9]{1,9}):(?!:)")
_RAW = re.compile(r"RAW([0-9]{0,9})\Z")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|[^\"'%]+|[\"']")
_STRFTIME = "strftime:"
_CONVERSION = re.compile(r"%(?:%|([-+ 0#]*[0-9]{0,3}(?:\.[0-9]{0,3})?)[hlqL]*([diouxXeEfFgGs]))")
_CALCULATES = re.compile(r"[-+*/()]")
_WHOLE = "diouxX"
_ERROR = "(error)"
_DIGITS = ".15g"


class Fetched(NamedTuple):
    """One fetched answer: its ``body``, and ``data`` decoded from it (None if it is no JSON)."""

    body: bytes
    data: Any


class NoValueError(Exception):
    """A placeholder has no value; the text stands in its place."""


class FormatError(Exception):
    """A value does not fit a format, or the format is none."""


def spelled(value: Any) -> str:
    """A JSON value as output shows it: 1 and 0 for booleans, compact JSON for what nests."""
    if value is None:
        return "(null)"
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return format(value, _DIGITS)
    if isinstance(value, int):
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def render(
    template: str, total: dict[str, Any], results: Sequence[Fetched], status: int
) -> tuple[str, int]:
    """Fill ``template``; the status is 3 (unknown) afterwards when something of it has no value.

    ``total`` is the sum of all results, which names without a number look at first; ``status`` is
    the exit status so far, 0 to 3.
    """
    names = [total, *(result.data for result in results if isinstance(result.data, list))]
    filled: dict[str, str] = {}
    # Line ends of the template only: values keep theirs.
    template = template.replace("\\n", "\n")
    for text in dict.fromkeys(_PLACEHOLDER.findall(template)):
        if text == "STATUS":
            continue
        try:
            filled[text] = _filled(text, names, results)
        except NoValueError as wrong:
            filled[text], status = str(wrong), 3
    filled["STATUS"] = STATES[status]
    return _PLACEHOLDER.sub(lambda match: filled[match[1]], template), status


def fill_earlier(text: str, results: Sequence[Fetched], quoted: Callable[[str], str]) -> str:
    """Replace ``{N:…}`` in a URL or command by what it is in answer N.

    Raises NoValueError for a name that this answer does not have.
    """
    return _EARLIER.sub(lambda match: quoted(_filled(match[1], [], results)), text)


def is_earlier(text: str) -> bool:
    """Whether all of ``text`` is one value of an earlier answer."""
    return _EARLIER.fullmatch(text) is not None


def _filled(text: str, names: Sequence[Any], results: Sequence[Fetched]) -> str:
    if raw := _RAW.match(text):
        number = int(raw[1] or 1)
        if 0 < number <= len(results):
            return results[number - 1].body.decode("utf-8", "surrogateescape")
        raise NoValueError(_does_not_exist(text))
    body = text
    if numbered := _NUMBERED.match(text):
        number = int(numbered[1])
        if not 0 < number <= len(results):
            raise NoValueError(_does_not_exist(text))
        names, body = [results[number - 1].data], text[numbered.end() :]
    try:
        return _value(body, names)
    except (ExpressionError, FormatError):
        raise NoValueError(_ERROR) from None


def _does_not_exist(name: str) -> str:
    return f"{{error:{name} does not exist}}"


def _value(text: str, names: Sequence[Any]) -> str:
    """The text of ``name``, ``expression``, and either of them with a format."""

    def value_of(name: str) -> Any:
        values = (look_up(data, name) for data in names)
        return next((value for value in values if value is not MISSING), MISSING)

    whole = value_of(text.strip())
    if whole is not MISSING:
        return spelled(whole)
    name, wanted = _split(text)
    value = value_of(name) if wanted is not None else MISSING
    if value is MISSING:
        if not _CALCULATES.search(name):
            raise NoValueError(_does_not_exist(name))
        value = evaluate(name, lambda name: _number(value_of(name)))
    return spelled(value) if wanted is None else _formatted(value, wanted)


def _split(text: str) -> tuple[str, str | None]:
    """Take the format off: everything behind the first ``%`` outside quotes."""
    position = 0
    while position < len(text) and text[position] != "%":
        match = _QUOTED.match(text, position)
        if match is None:
            break
        position = match.end()
    if position >= len(text):
        return text.strip(), None
    return text[:position].strip(), text[position + 1 :]


def _number(value: Any) -> NumberToken:
    """The number for arithmetic: empty and null are 0, a text is no number."""
    if value is MISSING or value is None:
        return 0
    if is_number(value):
        return value + 0  # type: ignore[no-any-return]  # a number of any kind
    raise ExpressionError


def _formatted(value: Any, wanted: str) -> str:
    try:
        if wanted.startswith(_STRFTIME):
            moment = time.localtime(_number(value))
            return time.strftime(wanted.removeprefix(_STRFTIME), moment)
        return _printf(value, f"%{wanted}")
    except (ArithmeticError, ValueError, OSError, ExpressionError):
        raise FormatError(wanted) from None


def _printf(value: Any, text: str) -> str:
    """One conversion in ``text``, and any number of ``%%``."""
    filled, used = [], 0
    position = 0
    for match in _CONVERSION.finditer(text):
        filled.append(text[position : match.start()])
        position = match.end()
        if match[2] is None:
            filled.append("%")
            continue
        used += 1
        flags, kind = match[1], match[2]
        if kind == "s":
            filled.append(f"%{flags}s" % spelled(value))
            continue
        number = _number(value)
        filled.append(f"%{flags}{kind}" % (int(number) if kind in _WHOLE else number))
    filled.append(text[position:])
    printed = "".join(filled)
    if used != 1 or "%" in "".join(_CONVERSION.split(text)[::3]):
        raise FormatError(text)
    return printed


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
