"""One background job as it is stored (docs/spec/jobs.md)."""

from __future__ import annotations

import math
import re
from typing import Annotated

from attrs import asdict, evolve, frozen
from sqlalchemy import BigInteger, Column, ForeignKey, LargeBinary, Table

from monrest.base.daemon_node import node_of
from monrest.base.values import ADMIN, READ_ONLY, Identity
from monrest.store.stored import INDEXED, KEY, Shown, StoredRow, shown_time, stored
from monrest.store.tables import metadata

ENDED_BY_DEATH = "the daemon that ran it ended unexpectedly"
NEVER_BEGAN = "the daemon that should have run it ended unexpectedly before it began"

_ID = re.compile(r"[1-9][0-9]{0,18}", re.ASCII)
_HIGHEST_ID = 2**63 - 1
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_WHOLE = 100.0


@frozen(kw_only=True)
class JobEnd:
    """The end of a job.

    ``status`` is that of the kept answer, None when there is none: then ``stderr`` says why.
    ``headers`` are those of the answer beside its type and ``disposition``; ``size`` in bytes.
    ``failed_sites`` are the ids of those that could not answer. ``stdout`` is the beginning of an
    answer that is text.
    """

    status: int | None = None
    content_type: str = ""
    disposition: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    failed_sites: tuple[str, ...] = ()
    size: int = 0
    stdout: Annotated[str, Shown("the first 4096 bytes of a result that is text")] = ""
    stderr: Annotated[str, Shown("why it failed")] = ""
    message: Annotated[str, Shown("what it does; how it ended")] = ""


@stored("jobs")
@frozen(kw_only=True)
class Job(JobEnd, StoredRow):
    """One job, together with how it ended; times in seconds since the epoch.

    ``roles`` are those (full names) with which it was asked for. ``run`` is the run of the
    daemon that works at it, on the host with ``host_id`` and ``host_name``, as process ``pid``.
    ``started`` and ``ended`` are None until then. ``percent`` and ``remaining`` (seconds, None
    when unknown) are as the work reported them. ``canceled_by`` is the user that wants it to end.
    No ``user``: the job belongs to all users.
    """

    id: Annotated[int, KEY, Shown("id of the job; later ones are greater", "number")]
    user: Annotated[
        str | None,
        INDEXED,
        Shown("whose job it is; null when it belongs to all users", nothing=None),
    ]
    roles: tuple[str, ...] = ()
    run: int
    host_id: Annotated[int, Shown("id of the node whose daemon runs it", "number", show=node_of)]
    host_name: Annotated[str, Shown("host of the daemon that runs it")]
    pid: Annotated[int, Shown("process of the daemon that runs it; empty when it ended", "number")]
    cmd: Annotated[str, Shown("what runs: method and path of the request")]
    created: float
    started: float | None = None
    ended: Annotated[float | None, INDEXED, shown_time("when it ended; 0 until then", "end")] = None
    percent: Annotated[float, Shown("how far it is; 100 when it ended", "number", "%")] = 0.0
    remaining: float | None = None
    canceled_by: str | None = None

    @property
    def rc(self) -> int:
        """Exit code of an ended job: 0 for an answer that is no error, else 1."""
        return 0 if self.status is not None and self.status < 400 else 1

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

    def with_end(self, end: JobEnd, now: float) -> Job:
        return evolve(self, ended=now, remaining=None, **asdict(end, recurse=False))

    def lost(self, now: float) -> Job:
        """Ended by the death of its daemon."""
        reason = NEVER_BEGAN if self.started is None else ENDED_BY_DEATH
        return self.with_end(JobEnd(stderr=reason, message="failed"), now)


job_daemons = Table(
    "job_daemons",
    metadata,
    Column("run", BigInteger, primary_key=True, autoincrement=False),
    Column("beat", BigInteger, nullable=False),
)
"""Runs of daemons that work at jobs; ``beat`` grows for as long as one lives and has any."""

job_output = Table(
    "job_output",
    metadata,
    Column("job", BigInteger, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("piece", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
)
"""The results of jobs, in pieces that are numbered from 0."""


def visible(job: Job, identity: Identity) -> bool:
    """Whether ``identity`` may know of the job: the owner, administrators, all if it has no owner.

    No answer goes to an identity with fewer roles than it was made with: not by a restricted
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
