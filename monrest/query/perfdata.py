"""Performance data to columns (query-engine.md, section 11)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from attrs import frozen

_TEMPLATE = re.compile(r"\s*\[[A-Za-z_\-. ]*\]\s*\Z")
_BLOCK = re.compile(r"\[[^\[\]=]*=[^\[\]]*\]")
_VALUE = re.compile(
    r"([Uu](?![A-Za-z])|[+-]?[\d.,][\d.,\-]*(?:[eE][+-]?\d+)?)(%|[^\W\d_]*(?:/[^\W\d_]*)?)?"
    r"(?:;?([\d.,\-:~@]*))?(?:;([\d.,\-:~@]*))?(?:;([\d.,\-]*))?(?:;([\d.,\-]*))?"
)
_RANGE = re.compile(r"-?[\d.,]+:-?[\d.,]+\Z")
_ADDRESS = re.compile(
    r"((?:\d{1,3}\.){3}\d{1,3}|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(rta|rtmin|rtamax|pl)\Z",
    re.IGNORECASE,
)


@frozen
class PerfValue:
    """One value; all parts are the text of the input, empty where missing."""

    parent: str
    name: str
    value: str
    unit: str
    warn: str
    crit: str
    min: str
    max: str
    orig: str

    @property
    def label(self) -> str:
        """``parent::name``, or the name alone."""
        return f"{self.parent}::{self.name}" if self.parent else self.name

    @property
    def number(self) -> int | float | str:
        """The value as a number if it looks like one."""
        return _number(self.value)

    def as_dict(self) -> dict[str, str]:
        """The object of ``perf_data_expanded``."""
        return {
            "crit": self.crit, "max": self.max, "min": self.min, "name": self.name,
            "orig": self.orig, "parent": self.parent, "unit": self.unit, "value": self.value,
            "warn": self.warn,
        }  # fmt: skip


def _number(text: str) -> int | float | str:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def _threshold(text: str | None) -> str:
    if not text:
        return ""
    return text.replace(":", "-", 1) if ":" in text and _RANGE.match(text) else text


@lru_cache(maxsize=4096)
def parse(text: str) -> tuple[PerfValue, ...]:
    """All values of a text, in order; what cannot be read becomes part of the next label."""
    if "[" in text:
        text = _BLOCK.sub("", _TEMPLATE.sub("", text, count=1))
    found: list[PerfValue] = []
    parent = ""
    start = at = 0
    while True:
        equal = text.find("=", at)
        if equal < 0:
            break
        match = _VALUE.match(text, equal + 1)
        label = text[start:equal].strip()
        if not match or not label:
            at = equal + 1
            if not label:
                start = at
            continue
        name = label[1:-1].strip() if len(label) > 1 and label[0] == label[-1] == "'" else label
        name = name.strip("'")
        if "::" in name:
            parent, _, name = name.rpartition("::")
            mine = parent
        else:
            mine = parent
            address = _ADDRESS.match(name)
            if address:
                mine, name = address[1], address[2]
        value, unit, warn, crit, low, high = match.groups()
        if value.upper() != "U":
            value = value.replace(",", ".", 1)
        found.append(
            PerfValue(
                mine, name, value, unit or "", _threshold(warn), _threshold(crit), low or "",
                high or "", text[start : match.end()].strip(),
            )
        )  # fmt: skip
        start = at = match.end()
        while at < len(text) and text[at] not in " '":
            # The rest of a match that has more fields than there are is dropped.
            if text[at] == ";":
                nxt = text.find(" ", at)
                at = len(text) if nxt < 0 else nxt
                start = at
            else:
                break
    return tuple(found)


def columns(text: str, prefix: str = "") -> dict[str, Any]:
    """Scalar columns: every label and its ``_unit``; the first of equal labels wins."""
    found: dict[str, Any] = {}
    for one in parse(text):
        label = prefix + one.label
        if label not in found:
            found[label] = one.number
            found[label + "_unit"] = one.unit
    return found


def expanded(text: str) -> list[dict[str, str]]:
    """``perf_data_expanded``."""
    return [one.as_dict() for one in parse(text)]
