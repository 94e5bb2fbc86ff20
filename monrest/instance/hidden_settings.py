"""Texts of the configuration without their secrets, as administrators see them. Pure.

A text is hidden whose own name sounds like a secret; inside of all others, commands above all,
what is given as one: credentials of URLs, values of options, variables and headers.

Rules: docs/spec/http.md, "The configuration that is shown".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from monrest.base.hidden import HIDDEN

_OMITTED = frozenset({"secret_key_file"})
_WORDS = "auth|key|secret|pass|token"
_SECRET = re.compile(_WORDS, re.IGNORECASE)
_URL = re.compile(r"[A-Za-z][\w.+-]*://(?!/)(.*)", re.DOTALL)
_IN_URL = re.compile(r"(?<=://)[^\s/@]*(?:@[^\s/@]*)*@")

_NAME = rf"(?=[\w.-]*(?:{_WORDS}))[\w.-]++"  # without going back, so that it takes no time
_START = r"(?<![\w./:@-])"  # of a name, and not of a host with its port
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*')"""
_WORD = r"""[^\s"'&;]+"""
_SCHEME = r"(?:(?:basic|bearer|digest|token)\s+)?"
_USER = r"(?<!\S)(?:-u|--(?:proxy-)?user)[\s=]*"
_GIVEN = tuple(
    re.compile(rf"({before}){value}", re.IGNORECASE | re.DOTALL)
    for before, value in (
        (rf"""(?<![\w.-]){_NAME}["']\s*[=:]\s*""", rf"(?:{_QUOTED}|{_WORD})"),
        # To the end of what is quoted: "name: value", 'name=value'.
        (rf"(?<=\")[^\"']*?{_START}{_NAME}\s*[=:]\s*{_SCHEME}", r"(?:[^\"\\]|\\.)+"),
        (rf"(?<=')[^\"']*?{_START}{_NAME}\s*[=:]\s*{_SCHEME}", r"[^']+"),
        (rf"{_START}{_NAME}\s*:\s*{_SCHEME}", rf"(?:{_QUOTED}|{_WORD})"),
        # But for the files of a listening port.
        (rf"(?<![\w.-])(?!(?:private|cert)Key=){_NAME}\s*=\s*", rf"(?:{_QUOTED}|{_WORD})"),
        (rf"(?<!\S)--?{_NAME}\s+", rf"(?:{_QUOTED}|{_WORD})"),
        (r"\bsshpass\s+-p\s*", rf"(?:{_QUOTED}|{_WORD})"),
        (r"\b(?:mysql|mariadb)[\w-]*\s(?:[^|;&]{0,200}?\s)?-p", rf"(?:{_QUOTED}|{_WORD})"),
        (rf"{_USER}[^\s:%\"']+[:%]", rf"(?:{_QUOTED}|{_WORD})"),
        (rf"{_USER}\"[^:%\"']+[:%]", r"(?:[^\"\\]|\\.)+"),
        (rf"{_USER}'[^:%\"']+[:%]", r"[^']+"),
    )
)
"""The text before a secret, and the secret."""


def display_value(value: Any, name: str = "") -> Any:
    """A value of the configuration for an administrator's eyes, keys sorted.

    Numbers and flags are no secrets under any name.
    """
    if isinstance(value, Mapping):
        keys = sorted(key for key in value if key not in _OMITTED)
        return {key: display_value(value[key], key) for key in keys}
    if isinstance(value, (list, tuple)):
        return [display_value(item, name) for item in value]
    if not isinstance(value, str) or not value:
        return value
    return HIDDEN if _SECRET.search(name) else without_secrets(value)


def without_secrets(text: str) -> str:
    text = _IN_URL.sub(f"{HIDDEN}@", _of_url(text))
    for pattern in _GIVEN:
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def _of_url(text: str) -> str:
    """Hide the credentials of a text that is one URL, in which a password may be anything."""
    match = _URL.fullmatch(text)
    if match is None:
        return text
    before, at, rest = match[1].rpartition("@")
    if not at or (":" not in before and "/" in before):
        return text
    return f"{text[: match.start(1)]}{HIDDEN}@{rest}"
