"""Patterns of clients, in linear time (query-engine.md, sections 1.4, 4.2 and 20)."""

from __future__ import annotations

import re as _plain
from functools import lru_cache
from typing import Any, Literal

import re2
from attrs import frozen

from monrest.errors import BadRequest
from monrest.query.model import Operator

LONGEST_PATTERN = 1024
LONGEST_TEXT = 65536

_SAFE = _plain.compile(r"(?:[A-Za-z0-9_ \-/:,@%&=!<>~#'\"]|\\[.\-/^$*+?()\[\]|\\])*\Z")
_WIDER = _plain.compile(
    r"\^?(?:[A-Za-z0-9_ \-/:,@%&=!<>~#'\"]|\\[.\-/^$*+?()\[\]|\\]|\.\*|\||\[[A-Za-z0-9_]+(?:-[A-Za-z0-9_])?\][+*?]?)*\$?\Z"
)


@frozen
class Pattern:
    """A compiled pattern; subjects are looked at up to 64 KiB."""

    compiled: Any

    def found(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the text."""
        return self.compiled.search(_subject(text)) is not None

    def sub(self, replacement: str, text: str) -> str:
        """Every match replaced by the literal text."""
        return str(self.compiled.sub(lambda _match: replacement, _subject(text)))


def _subject(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT]


@lru_cache(maxsize=1024)
def _compiled(pattern: str, ignore_case: bool) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.max_mem = 8 << 20
    return re2.compile(pattern, options)


def compile_pattern(pattern: str, *, ignore_case: bool, parameter: str) -> Pattern:
    """The pattern, or BadRequest naming ``parameter`` when it is invalid or too long."""
    if len(pattern) > LONGEST_PATTERN:
        raise BadRequest(
            "error during request",
            f"{parameter}: expected a regular expression of up to {LONGEST_PATTERN} characters",
        )
    try:
        return Pattern(_compiled(pattern, ignore_case))
    except (re2.error, UnicodeError) as error:
        raise BadRequest(
            "error during request", f"{parameter}: invalid regex in {pattern}: {_reason(error)}"
        ) from None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


def pushability(pattern: str, *, ignore_case: bool) -> Literal["exact", "wider", "no"]:
    """Whether a core may evaluate the pattern: the same rows, at least the same rows, or not."""
    if not pattern or pattern != pattern.strip() or not pattern.isascii():
        return "no"
    body = (
        pattern.removeprefix("^").removesuffix("$")
        if not pattern.endswith("\\$")
        else pattern.removeprefix("^")
    )
    if _SAFE.match(body):
        return "wider" if ignore_case else "exact"
    if _WIDER.match(pattern) and not any(one == "" for one in pattern.split("|")):
        return "wider"
    return "no"


def wildcard(segment: str) -> tuple[Operator, str]:
    """The condition for a path segment with wildcards (section 1.4)."""
    if not any(one in segment for one in "^|*{}[]"):
        return "=", segment
    if not any(one in segment for one in "^|{}[]+?()$\\"):
        parts = segment.replace(".*", "*").split("*")
        return "~~", "^" + ".*".join(_plain.escape(part) for part in parts) + "$"
    return "~~", segment.replace(".*", "*").replace("*", ".*")
