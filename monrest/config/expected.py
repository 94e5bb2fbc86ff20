"""What values of several tables have to be: each gives ``path: what was expected``, or nothing."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import re2


def positive(path: str, value: float) -> Iterator[str]:
    """A number above 0 that is not infinite."""
    if not (value > 0 and math.isfinite(value)):
        yield f"{path}: expected a number above 0, got {value}"


def readable(path: str, value: str) -> Iterator[str]:
    """The path of a file that this process may read, or an empty text."""
    if value and not (Path(value).is_file() and os.access(value, os.R_OK)):
        yield f"{path}: expected a readable file, got {value}"


def patterns(path: str, values: tuple[str, ...]) -> Iterator[str]:
    """Regular expressions."""
    for index, value in enumerate(values):
        try:
            re2.compile(value)
        except re2.error:
            yield f"{path}[{index}]: expected a regular expression, got {value!r}"


def absolute(path: str, values: tuple[str, ...]) -> Iterator[str]:
    for index, value in enumerate(values):
        if not value.startswith("/") or "\0" in value:
            yield f"{path}[{index}]: expected an absolute path, got {value!r}"


def command(path: str, text: str) -> Iterator[str]:
    """Text for a shell; an empty one is fine."""
    if "\0" in text:
        yield f"{path}: expected a shell command, got a text with a zero byte"
