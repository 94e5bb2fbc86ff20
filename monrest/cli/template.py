"""Output templates of ``-o`` (docs/spec/cli.md, "Output templates")."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from monrest.cli.expression import ExpressionError, NumberToken, evaluate
from monrest.cli.lookup import MISSING, is_number, look_up

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
    """What counts in arithmetic: nothing and null are 0, a text is no number."""
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
