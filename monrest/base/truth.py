"""The words for yes and no, the same wherever something is sent: parameters, bodies, arguments."""

from __future__ import annotations

from monrest.base.errors import BadRequest

_WORDS = {
    "1": True, "true": True, "yes": True, "on": True,
    "0": False, "false": False, "no": False, "off": False, "": False,
}  # fmt: skip

EXPECTED = "0 or 1 (or false, no, off, true, yes, on)"
"""The expected values, for errors."""


def truth(value: object) -> bool | None:
    """The truth of a text in any case, a number or a boolean; empty is false. None: neither."""
    if value is None:
        return False
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return bool(value)
    return None


def flag(name: str, value: object) -> bool:
    """The truth of the parameter ``name``; raises BadRequest that names it."""
    answer = truth(value)
    if answer is None:
        raise BadRequest(f"invalid {name}", f"{name}: expected {EXPECTED}")
    return answer
