"""Signatures of what is sent, as Standard Webhooks 1.0 says (docs/spec/webhooks.md, "Signature").

Pure but for the making of secrets.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

_PREFIX = "whsec_"
_BYTES = 32


def new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_BYTES)).decode()


def message_id(token: str, text: str) -> str:
    """The id of a message: the same for the same text of the same webhook, else another."""
    return "msg_" + hashlib.sha256(f"{token}:{text}".encode()).hexdigest()[:32]


def headers_of(keys: Iterable[str], message: str, now: float, body: bytes) -> dict[str, str]:
    """The headers of a message; one signature for each secret that is valid."""
    stamp = str(int(now))
    signed = f"{message}.{stamp}.".encode() + body
    signatures = []
    for key in keys:
        secret = base64.b64decode(key.removeprefix(_PREFIX))
        digest = hmac.new(secret, signed, hashlib.sha256).digest()
        signatures.append("v1," + base64.b64encode(digest).decode())
    return {
        "webhook-id": message,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(signatures),
    }
