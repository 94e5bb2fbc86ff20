"""One structured line for everything that changes something, and for every login.

It has the user, the address, the method of the login, the action, its target and its result. The
values are escaped here; passwords and keys never get here, since callers name keys by their hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import define, field
from twisted.logger import Logger

from monrest.base.errors import RestError
from monrest.base.log import AUDIT
from monrest.base.values import Caller, Identity, RestRequest

log = Logger()


def audit(
    who: Identity | str,
    caller: Caller | None,
    action: str,
    *,
    target: str = "",
    result: str = "ok",
    **details: Any,
) -> None:
    """Write one line.

    ``who``: the identity that acts, or a name as it was presented, where no identity is known yet.
    ``action``: what is done, such as ``command`` or ``key create``; ``target``: to what.
    ``caller`` is None for what the daemon does by itself. Empty ``details`` are left out.
    """
    identity = who if isinstance(who, Identity) else None
    fields: dict[str, Any] = {
        "action": action,
        "user": identity.user if identity is not None else who,
        "client": "-" if caller is None else caller.client or "-",
        "method": "-" if identity is None else identity.source,
        "target": target,
        "result": result,
    }
    if caller is not None and caller.address and caller.address != caller.client:
        fields["proxy"] = caller.address
    if identity is not None and identity.key:
        fields["key"] = identity.key[:_SHOWN_OF_HASH]
    fields |= {name: value for name, value in details.items() if value not in ("", None, ())}
    log.info("audit {action}", action=action, **{AUDIT: fields})


_SHOWN_OF_HASH = 16


@define
class AuditLine:
    """The details of an audit line that only the handler knows: the target and the result."""

    target: str = ""
    details: dict[str, Any] = field(factory=dict)


@contextmanager
def audited(request: RestRequest, action: str, target: str = "") -> Iterator[AuditLine]:
    """Write a line for what is done meanwhile: that it was done, or with what error it was not.

    What ends otherwise, by a mistake of ours or because the client left, has no line.
    """
    line = AuditLine(target)
    try:
        yield line
    except RestError as error:
        _write(request, action, line, error.message)
        raise
    _write(request, action, line, "ok")


def _write(request: RestRequest, action: str, line: AuditLine, result: str) -> None:
    audit(
        request.identity,
        request.caller,
        action,
        target=line.target,
        result=result,
        **line.details,
    )
