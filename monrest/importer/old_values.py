"""Numbers, truths, spans and patterns of the old configuration. Pure."""

from __future__ import annotations

import re

_SPAN = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([ywdhms]?)\s*\Z")
_UNITS = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}
_LONGEST_EXPRESSION = 500
_REPLACE = re.compile(r"s(?P<mark>[/|#!,~@])(.*)(?P=mark)(.*)(?P=mark)([a-z]*)\Z", re.DOTALL)


def truth(text: str) -> bool:
    """Whether a text means yes: all but an empty one and 0."""
    return text not in ("", "0")


def whole(text: str) -> int | None:
    """A whole number, None for what is none."""
    stripped = text.strip()
    return int(stripped) if re.fullmatch(r"-?[0-9]{1,15}", stripped) else None


def span(text: str) -> float | None:
    """Seconds of a number with a unit or without, None for what is none."""
    match = _SPAN.match(text)
    if match is None:
        return None
    seconds = float(match[1]) * _UNITS[match[2]]
    return int(seconds) if seconds.is_integer() else seconds


def replacement(text: str) -> tuple[str, str] | None:
    r"""The pattern and the text of ``s/pattern/text/flags``; None for what is none.

    ``$1`` becomes ``\1``, ``\@`` the sign alone; with the flag ``x`` blanks of the pattern go.
    """
    match = _REPLACE.match(text.strip()) if len(text) <= _LONGEST_EXPRESSION else None
    if match is None:
        return None
    pattern, text, flags = match[2], match[3], match[4]
    if "x" in flags:
        pattern = re.sub(r"(?<!\\)\s+", "", pattern)
    pattern = pattern.replace("\\@", "@").replace("\\/", "/")
    text = text.replace("\\@", "@").replace("\\/", "/")
    text = re.sub(r"\$(?:([1-9])|\{([1-9])\})", lambda match: f"\\{match[1] or match[2]}", text)
    return (f"(?i){pattern}" if "i" in flags else pattern), text


def mail_address(text: str) -> str:
    """The address of ``Name <address>``."""
    match = re.search(r"<([^<>]*)>\s*\Z", text)
    return (match[1] if match else text).strip()
