"""Emoji that a Naemon destroys in JSON, read again as text (docs/spec/livestatus.md, "Emoji").

There every character from U+1F000 to U+1FFFF arrives as one letter of an alphabet that few
people write. Where such letters turn up the same rows are asked for once more, as JSON and as
CSV, which is complete but knows no types; a text of the one is replaced by that of the other when
exactly this damage makes them equal, so that rows that changed meanwhile stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from monrest.base.values import Row
from monrest.livestatus.framing import SEPARATORS, Transform

_JSON = b"\nOutputFormat: json\n"
_TEXTS = (
    b"\nOutputFormat: csv\nSeparators: " + b" ".join(b"%d" % ord(one) for one in SEPARATORS) + b"\n"
)
# Which of the two blocks depends on the third of the four bytes.
_LEFT = re.compile("[\u07c0-\u07ff\u0fc0-\u0fff]")
_TURN = 50
_ELEMENT, _INNER = SEPARATORS[2], SEPARATORS[3]


def as_texts(request: bytes) -> bytes:
    """The same request with its answer as CSV."""
    return request.replace(_JSON, _TEXTS, 1)


def mend(
    rows: list[Row], texts: list[Row], transform: Transform | None = None
) -> Generator[None, None, list[Row]]:
    """Put the emoji of ``texts`` back into ``rows``, the same rows read as JSON, in slices.

    Give the rows as ``transform`` makes them.
    """
    wanted: list[Row] = []
    for start in range(0, len(rows), _TURN):
        some = rows[start : start + _TURN]
        for row, whole in zip(some, texts[start : start + _TURN], strict=False):
            for at, value in enumerate(row):
                if type(value) not in (int, float) and value:
                    row[at] = _mended(value, whole[at], _ELEMENT, _INNER)
        wanted += some if transform is None else transform(some)
        yield
    return wanted


def _mended(value: Any, text: str, between: str, inside: str) -> Any:
    if isinstance(value, str):
        if _LEFT.search(value) and _was(value, text):
            return text
        return value
    if not isinstance(value, (list, dict)):
        return value
    parts = text.split(between)
    if len(parts) != len(value):
        return value
    if isinstance(value, list):
        return [_mended(one, part, inside, inside) for one, part in zip(value, parts, strict=True)]
    return {
        name: _mended(one, part.partition(inside)[2], inside, inside)
        for (name, one), part in zip(value.items(), parts, strict=True)
    }


def _was(value: str, text: str) -> bool:
    """Whether a Naemon would make ``value`` of ``text``."""
    return len(value) == len(text) and all(
        letter == sign
        or (
            "\U0001f000" <= sign <= "\U0001ffff"
            and _LEFT.match(letter) is not None
            # Of the last byte of an emoji all six bits are kept.
            and ord(letter) & 0x3F == ord(sign) & 0x3F
        )
        for letter, sign in zip(value, text, strict=True)
    )
