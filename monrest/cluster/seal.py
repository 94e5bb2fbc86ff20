"""Proving that one knows the secret key without sending it.

A call to another node carries a number that is used once and a seal over it; the answer is sealed
with the same number, so that a recorded answer is of no use. A call that comes
again is refused; at another node, or after a restart, it gets an answer and changes nothing.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import Any

import orjson
from attrs import define, field

_NUMBER_BYTES = 16
_REMEMBERED = 20_000
_PURPOSE = b"monrest cluster"
SEAL = "seal"
"""The key of an answer that holds its seal."""


def key_of(secret: str) -> bytes:
    """Derive the key of the seals, which is of no use anywhere else, from the secret key."""
    return hmac.digest(secret.encode("ascii"), _PURPOSE, "sha256")


def new_number() -> str:
    """Make a number that was not used before."""
    return secrets.token_hex(_NUMBER_BYTES)


def _seal(key: bytes, *words: Any) -> str:
    text = orjson.dumps(words, option=orjson.OPT_SORT_KEYS)
    return hmac.new(key, text, "sha256").hexdigest()


def of_call(key: bytes, number: str, url: str) -> str:
    """Spell the credentials of a call to the node at ``url``."""
    return f"{number}:{_seal(key, 'call', number, url)}"


def number_of_call(key: bytes, credentials: str, url: str) -> str | None:
    """Return the number of a call; None unless the caller has the key."""
    number = credentials.partition(":")[0]
    if len(number) != 2 * _NUMBER_BYTES or not credentials.isascii() or not url.isprintable():
        return None
    return number if hmac.compare_digest(credentials, of_call(key, number, url)) else None


@define(eq=False)
class Used:
    """The numbers of calls that were answered, as many as there is room for."""

    _seen: dict[str, None] = field(factory=dict, init=False)

    def first(self, number: str) -> bool:
        """Whether a call with this number comes for the first time."""
        if number in self._seen:
            return False
        self._seen[number] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        return True


def sealed(key: bytes, number: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Add the seal to an answer, a JSON object."""
    return {**answer, SEAL: _seal(key, "answer", number, dict(answer))}


def is_sealed(key: bytes, number: str, answer: Mapping[str, Any]) -> bool:
    """Whether an answer was made for this number by a node that has the key."""
    given = answer.get(SEAL)
    plain = {name: value for name, value in answer.items() if name != SEAL}
    try:
        right = _seal(key, "answer", number, plain)
    except orjson.JSONEncodeError:
        return False
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(given, right)
