"""Performance data to columns (docs/spec/query.md, "Performance data").

The text comes from plugins, so anything may stand in it: nothing raises, and the time is linear
in its length. A name of a template in brackets at the end needs no care, because nothing after
the last value is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, TypeAlias

from monrest.base.values import KeysAndValues
from monrest.query.scalars import number_of

_BLOCK = re.compile(r"\[[^\[\]=]*=[^\[\]]*\]")

# Nothing behind the value can fail to match, hence nothing is ever tried twice.
_VALUE = re.compile(
    r"([Uu]|(?:\+(?=[0-9]))?[0-9.,-]+(?:[eE][+-]?[0-9]+)?)"
    r"([A-Za-z/%]*(?:[^\W\d_][A-Za-z/%]*)*)"
    r";?([0-9.,:~@-]*);?([0-9.,:~@-]*);?([0-9.,-]*);?([0-9.,-]*)"
)
_RANGE = re.compile(r"-?[0-9]+(?:[.,][0-9]+)?:-?[0-9]+(?:[.,][0-9]+)?")
_ADDRESS = re.compile(
    r"((?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){1,6}:[0-9a-f]{1,4})"
    r"(rta|rtmin|rtamax|pl)",
    re.IGNORECASE,
)
_COMMON_LABEL = 100
_FEW_DIGITS = 18

_PLAIN = re.compile(
    r"(('[^\s'=\[\].:][^'=\[\].:]{0,64}'|[^\s'=\[\].:]{1,64})=([0-9.]+)([A-Za-z/%]*)"
    r"(?:;([0-9.:]*)(?:;([0-9.:]*)(?:;([0-9.]*)(?:;([0-9.]*))?)?)?)?)"
)
"""Such a value, behind one space or none, is read as it stands. Most texts are nothing but these,
and to find all of them at once takes half of the time."""

_Found: TypeAlias = tuple[str, str, str, str, str, str, str, str, str]
"""Parent, name, the trimmed piece of the text, value, unit, warn, crit, min and max.

Every part is text as in the input, empty when missing; but a value has a point where the input had
a decimal comma, and a range ``a:b`` is ``a-b``.
"""


def columns(text: str, prefix: str = "") -> dict[str, Any]:
    """The scalar columns: each label and its ``_unit``, with ``prefix`` before both.

    The first of equal labels wins.
    """
    values: dict[str, Any] = {}
    for parent, name, _, value, unit, *_ in _scan(text):
        key = f"{prefix}{parent}::{name}" if parent else prefix + name
        if key not in values:
            values[key] = _scalar(value)
            values.setdefault(key + "_unit", unit)
    return values


def expanded(text: str) -> list[dict[str, str]]:
    """``perf_data_expanded``: an object of texts for every value, in the order of the input."""
    return _objects(_scan(text))


def _objects(labels: Sequence[_Found]) -> list[dict[str, str]]:
    return [
        {
            "crit": crit,
            "max": most,
            "min": least,
            "name": name,
            "orig": whole,
            "parent": parent,
            "unit": unit,
            "value": value,
            "warn": warn,
        }
        for parent, name, whole, value, unit, warn, crit, least, most in labels
    ]


# The services of a host follow each other and share the host's text.
@lru_cache(maxsize=1024)
def expansion(prefix: str, text: str) -> KeysAndValues:
    """All further keys of a row and their values: ``perf_data_expanded`` and the scalar columns.

    Empty when nothing can be read. They are shared and must not be changed.
    """
    scanned = _scan(text)
    if not scanned:
        return (), ()
    labels: list[str] = []
    values: list[Any] = [_objects(scanned)]
    for parent, name, _, value, unit, *_ in scanned:
        labels.append(f"{parent}::{name}" if parent else name)
        values += (_scalar(value), unit)
    keys, different = _keys_of(prefix, tuple(labels))
    if different:
        return keys, values
    expanded: dict[str, Any] = {keys[0]: values[0]}
    for at in range(1, len(keys), 2):
        if keys[at] not in expanded:
            expanded[keys[at]] = values[at]
            expanded.setdefault(keys[at + 1], values[at + 1])
    return tuple(expanded), tuple(expanded.values())


# Most services of a kind have the same labels.
@lru_cache(maxsize=1024)
def _keys_of(prefix: str, labels: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """The keys of the list, and of number and unit of each label; whether no two are equal."""
    names = [prefix + name for label in labels for name in (label, f"{label}_unit")]
    keys = (f"{prefix}perf_data_expanded", *names)
    return keys, len(set(keys)) == len(keys)


# One row asks for its columns and for its list, one after the other.
@lru_cache(maxsize=16)
def _scan(text: str) -> Sequence[_Found]:
    text = text.strip()
    plain = _PLAIN.findall(text)
    if " ".join([item[0] for item in plain]) != text:
        return _scan_any(text)
    if ":" in text:
        plain = [
            (whole, label, value, unit, _threshold(warn), _threshold(crit), least, most)
            for whole, label, value, unit, warn, crit, least, most in plain
        ]
    return [
        ("", _names(label)[1], whole, value, unit, warn, crit, least, most)
        for whole, label, value, unit, warn, crit, least, most in plain
    ]


def _scan_any(text: str) -> Sequence[_Found]:
    if "[" in text:
        text = _BLOCK.sub("", text)
    labels: list[_Found] = []
    find, value_at = text.find, _VALUE.match
    parent = ""
    start = 0
    while (equal := find("=", start)) >= 0:
        match = value_at(text, equal + 1) if equal > start else None
        if match is None:
            # What cannot be read goes before the next label.
            start = equal + 1
            continue
        label = text[start:equal]
        start = match.end()
        own, name, lasting = _names(label) if len(label) <= _COMMON_LABEL else _read_label(label)
        if lasting and own is not None:
            parent = own
        if name or own:
            value, unit, warn, crit, least, most = match.groups()
            labels.append(
                (
                    *(parent if own is None else own, name, f"{label}={match[0]}".strip()),
                    *(value.replace(",", ".", 1), unit),
                    *(_threshold(warn), _threshold(crit), least, most),
                )
            )
    return labels


def _read_label(label: str) -> tuple[str | None, str, bool]:
    """Parent, name, and whether the parent stays for the labels that follow.

    A parent of None is that of the label before.
    """
    label = label.strip()
    if len(label) > 1 and label[0] == label[-1] == "'":
        label = label[1:-1].strip()
    address = _ADDRESS.fullmatch(label)
    if address:
        return address[1], address[2], False
    parent, separator, name = label.rpartition("::")
    return (parent, name, True) if separator else (None, name, False)


# The same few labels stand in nearly every row.
_names = lru_cache(maxsize=2048)(_read_label)


def _scalar(value: str) -> int | float | str:
    if value.isdigit() and len(value) <= _FEW_DIGITS:
        return int(value)
    if "." in value:
        # The signs that a value may have make this the same as number_of, and quicker.
        try:
            number = float(value)
        except ValueError:
            return value
        return number if isfinite(number) else value
    scalar = number_of(value)
    return value if scalar is None else scalar


def _threshold(text: str) -> str:
    return text.replace(":", "-", 1) if ":" in text and _RANGE.fullmatch(text) else text
