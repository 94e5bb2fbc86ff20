"""One background job as it is stored (docs/spec/jobs.md)."""

from __future__ import annotations

import math
import re
from typing import Any

from attrs import evolve, field, frozen

from monrest.base.values import ADMIN, READ_ONLY, Identity

ENDED_BY_DEATH = "the daemon that ran it ended unexpectedly"
NEVER_BEGAN = "the daemon that should have run it ended unexpectedly before it began"

_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_HIGHEST_ID = 2**63 - 1
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_WHOLE = 100.0


@frozen(kw_only=True)
class JobEnd:
    """How a job ended.

    ``status`` is that of the kept answer, None when there is none: then ``stderr`` says why.
    ``headers`` are those of the answer beside its type and ``disposition``; ``size`` in bytes.
    ``failed_sites`` are the ids of those that could not answer.
    ``stdout`` is the beginning of an answer that is text.
    """

    status: int | None = None
    content_type: str = ""
    disposition: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    failed_sites: tuple[str, ...] = ()
    size: int = 0
    stdout: str = ""
    stderr: str = ""
    message: str = ""


@frozen(kw_only=True)
class Job:
    """One job; times in seconds since the epoch.

    ``roles`` are those (full names) with which it was asked for. ``run`` is the run of the
    daemon that works at it, on the host with ``host_id`` and ``host_name``, as process ``pid``.
    ``started`` and ``ended`` are None until then. ``percent`` and ``remaining`` (seconds, None
    when unknown) are as the work reported them. ``canceled_by`` is the user that wants it to end.
    No ``user``: it is everybody's.
    """

    id: int
    user: str | None
    roles: tuple[str, ...] = ()
    run: int
    host_id: int
    host_name: str
    pid: int
    cmd: str
    created: float
    started: float | None = None
    ended: float | None = None
    percent: float = 0.0
    remaining: float | None = None
    message: str = ""
    canceled_by: str | None = None
    outcome: JobEnd = field(factory=JobEnd)

    @property
    def rc(self) -> int:
        """Exit code of an ended job: 0 for an answer that is no error, else 1."""
        status = self.outcome.status
        return 0 if status is not None and status < 400 else 1

    def begun(self) -> float:
        """When it began; while it waits, when it was asked for."""
        return self.created if self.started is None else self.started

    def seconds_left(self, now: float) -> float | None:
        """The remaining time as the work reports it, else from how long it took so far."""
        if self.ended is not None or self.remaining is not None:
            return self.remaining
        if self.started is None or not 0 < self.percent < _WHOLE:
            return None
        return max(0.0, now - self.started) * (_WHOLE - self.percent) / self.percent

    def failed(self, reason: str, now: float) -> Job:
        return evolve(self, ended=now, outcome=JobEnd(stderr=reason, message="failed"))

    def lost(self, now: float) -> Job:
        """Ended by the death of its daemon."""
        return self.failed(NEVER_BEGAN if self.started is None else ENDED_BY_DEATH, now)


def visible(job: Job, identity: Identity) -> bool:
    """Whether ``identity`` may know of the job: the owner, administrators, all if it has no owner.

    Nobody gets what was made with more roles than those with which they come: not by a restricted
    key or session, nor after some were taken from them, nor what a key made that acts as them with
    roles of its own.
    """
    if job.user is None or identity.may(ADMIN):
        return True
    if not identity.user or job.user != identity.user:
        return False
    return all(identity.may(role) for role in job.roles if role != READ_ONLY)


def id_of(text: str) -> int | None:
    """The id in a path; None for a text that cannot be one."""
    if _ID.fullmatch(text) is None or int(text) > _HIGHEST_ID:
        return None
    return int(text)


def new_id(now: float, chance: int) -> int:
    """Make an id: later ones are greater, and exact as a JSON number (below 2**53).

    ``chance`` (0 to 999) keeps those of two daemons apart; where it is taken, another is tried.
    """
    return int(now * 1000) * 1000 + chance


def storable(text: str, longest: int) -> str:
    """Cut ``text`` and replace what a database or a terminal does not take."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text[:longest])


def percent_of(value: float) -> float:
    """Keep a percentage between 0 and 100; 0 for what is no number."""
    return min(max(value, 0.0), _WHOLE) if not math.isnan(value) else 0.0


def values_of(outcome: JobEnd) -> dict[str, Any]:
    return {
        "status": outcome.status,
        "content_type": outcome.content_type,
        "disposition": outcome.disposition,
        "headers": [list(pair) for pair in outcome.headers],
        "failed_sites": list(outcome.failed_sites),
        "size": outcome.size,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
    }
