"""The SQL of jobs; every function is work for one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from monrest.base.errors import Conflict, TooManyRequests
from monrest.config import JobsConfig
from monrest.jobs.model import Job, job_daemons, job_output
from monrest.store.database import transaction
from monrest.store.space import require_space

jobs = Job.table

_PIECES_AT_ONCE = 8

MOST_KEPT, MOST_KEPT_PER_USER = 3_000, 2_000
"""Ended jobs, so that a list of all is a small one."""

_RETRY_AFTER = 60.0
_UNENDED = jobs.c.ended.is_(None)


@transaction
def read_job(connection: Connection, number: int) -> Job | None:
    return Job.find(connection, number)


@transaction
def several(connection: Connection, user: str | None) -> list[Job]:
    """All jobs by id, or those of ``user`` and those without one."""
    query = select(jobs).order_by(jobs.c.id)
    if user is not None:
        query = query.where((jobs.c.user == user) | jobs.c.user.is_(None))
    return [Job.of(row) for row in connection.execute(query)]


@transaction
def piece(connection: Connection, number: int, at: int) -> bytes | None:
    """One piece of a result, None when there is none with this number."""
    query = select(job_output.c.data).where(job_output.c.job == number, job_output.c.piece == at)
    return connection.execute(query).scalar_one_or_none()


def beats(connection: Connection) -> dict[int, int | None]:
    """The beats of all daemons with jobs that have not ended, by run; None: the daemon has none."""
    query = (
        select(jobs.c.run, job_daemons.c.beat)
        .outerjoin(job_daemons, job_daemons.c.run == jobs.c.run)
        .where(_UNENDED)
        .distinct()
    )
    return {row.run: row.beat for row in connection.execute(query)}


@transaction
def expired(connection: Connection, before: float, most: int) -> list[int]:
    """The ids of up to ``most`` jobs that ended before a time."""
    query = select(jobs.c.id).where(jobs.c.ended < before).order_by(jobs.c.ended).limit(most)
    return list(connection.execute(query).scalars())


@transaction
def add(connection: Connection, job: Job) -> bool:
    """Store a new job, and that its daemon lives; False when the id is taken.

    TooManyRequests when too many are kept.
    """
    mine = func.sum(case((jobs.c.user == job.user, 1), else_=0))
    ended = select(func.count(), mine).where(jobs.c.ended.is_not(None))
    kept, own = connection.execute(ended).one()
    if kept >= MOST_KEPT or (own or 0) >= MOST_KEPT_PER_USER:
        raise TooManyRequests(
            "too many background jobs",
            f"expected at most {MOST_KEPT_PER_USER} of a user and {MOST_KEPT} in all that have "
            "ended; delete jobs whose results are not needed (DELETE), or wait until they are "
            "older than jobs.keep",
            _RETRY_AFTER,
        )
    try:
        with connection.begin_nested():
            connection.execute(insert(jobs).values(job.values()))
    except IntegrityError:
        return False
    beat(connection, job.run)
    return True


def beat(connection: Connection, run: int) -> None:
    query = update(job_daemons).where(job_daemons.c.run == run)
    if connection.execute(query.values(beat=job_daemons.c.beat + 1)).rowcount == 0:
        connection.execute(insert(job_daemons).values(run=run, beat=1))


_PROGRESS = ("started", "percent", "remaining", "message")
_REPORT = (
    update(jobs)
    .where(and_(jobs.c.id == bindparam("job"), _UNENDED))
    .values({name: bindparam(f"new_{name}") for name in _PROGRESS})
)


@transaction
def report(connection: Connection, run: int, changed: Sequence[Job]) -> dict[int, str | None]:
    """Store that a daemon lives and how far its jobs are.

    Returns the ids of all its jobs that have not ended, each with the user who cancels it.
    """
    left = select(jobs.c.id, jobs.c.canceled_by).where(_UNENDED, jobs.c.run == run)
    beat(connection, run)
    store_progress(changed)(connection)
    return {row.id: row.canceled_by for row in connection.execute(left)}


@transaction
def store_progress(connection: Connection, changed: Sequence[Job]) -> None:
    """Store how far jobs are."""
    rows = [
        {"job": job.id, **{f"new_{name}": getattr(job, name) for name in _PROGRESS}}
        for job in sorted(changed, key=lambda job: job.id)
    ]
    if rows:
        connection.execute(_REPORT, rows)


@transaction
def add_piece(connection: Connection, job: Job, at: int, data: bytes, limits: JobsConfig) -> None:
    """Store a piece of a result; Unavailable when the disk is nearly full.

    Conflict when the results that are kept would be too large together.
    """
    require_space(connection)
    _insert_piece(connection, job.id, at, data)
    _require_room(connection, job.user, limits)


def _require_room(connection: Connection, user: str | None, limits: JobsConfig) -> None:
    """Raise Conflict when the results of a user, or all, are larger than they may be."""
    size = func.length(job_output.c.data)
    mine = func.sum(case((jobs.c.user == user, size), else_=0))
    query = select(func.sum(size), mine).join(jobs, jobs.c.id == job_output.c.job)
    used, own = (int(size or 0) for size in connection.execute(query).one())
    for name, now, most in (
        ("results_per_user", own, limits.results_per_user),
        ("results", used, limits.results),
    ):
        if now > most:
            raise Conflict(
                "the results of background jobs are too large together",
                f"expected at most {most >> 20} MB (jobs.{name}); delete jobs whose results are "
                "not needed, or wait until they are older than jobs.keep",
            )


def _insert_piece(connection: Connection, number: int, at: int, data: bytes) -> None:
    connection.execute(insert(job_output).values(job=number, piece=at, data=data))


@transaction
def discard(connection: Connection, number: int) -> int:
    """Delete some pieces of a result, the last ones first; how many.

    In one transaction all pieces would keep other writers waiting, and need as much room in the
    write-ahead log as they have on the disk.
    """
    mine = job_output.c.job == number
    last = select(job_output.c.piece).where(mine).order_by(job_output.c.piece.desc())
    query = delete(job_output).where(mine, job_output.c.piece.in_(last.limit(_PIECES_AT_ONCE)))
    return connection.execute(query).rowcount


@transaction
def end(
    connection: Connection,
    job: Job,
    last: tuple[int, bytes] | None = None,
    limits: JobsConfig | None = None,
) -> bool:
    """Store how a job ended, with the last piece of its result; False if it has ended already.

    Without an answer all pieces are deleted. Conflict as ``add_piece``.
    """
    query = update(jobs).where(jobs.c.id == job.id, _UNENDED).values(job.values())
    if connection.execute(query).rowcount != 1:
        return False
    if job.status is None:
        connection.execute(delete(job_output).where(job_output.c.job == job.id))
    elif last is not None:
        _insert_piece(connection, job.id, *last)
        if limits is not None:
            _require_room(connection, job.user, limits)
    return True


@transaction
def end_lost(
    connection: Connection, run: int, now: float, only: Collection[int] | None = None
) -> list[Job]:
    """End the jobs of a daemon that is gone, or ``only`` these; returns what was ended."""
    chosen = and_(_UNENDED, jobs.c.run == run)
    if only is not None:
        chosen = and_(chosen, jobs.c.id.in_(list(only)))
    left = [Job.of(row) for row in connection.execute(select(jobs).where(chosen))]
    lost = [job.lost(now) for job in left]
    for job in lost:
        end(job)(connection)
    if only is None:
        connection.execute(delete(job_daemons).where(job_daemons.c.run == run))
    return lost


@transaction
def end_lost_of_former_runs(
    connection: Connection, host_id: int, run: int, now: float
) -> list[Job]:
    """End the jobs of former runs of the same daemon; returns what was ended."""
    query = (
        select(jobs.c.run).where(_UNENDED, jobs.c.host_id == host_id, jobs.c.run != run).distinct()
    )
    former = list(connection.execute(query).scalars())
    return [job for number in former for job in end_lost(number, now)(connection)]


@transaction
def leave(connection: Connection, run: int) -> None:
    """Remove a daemon that stops, unless it has jobs that others must end."""
    left = exists().where(_UNENDED, jobs.c.run == run)
    query = delete(job_daemons).where(job_daemons.c.run == run, ~left)
    connection.execute(query)


@transaction
def cancel(connection: Connection, number: int, user: str) -> None:
    """Ask the daemon of a job to end it."""
    query = update(jobs).where(jobs.c.id == number, _UNENDED, jobs.c.canceled_by.is_(None))
    connection.execute(query.values(canceled_by=user))


@transaction
def remove(connection: Connection, number: int) -> bool:
    """Delete an ended job with its result; False when there is none."""
    query = delete(jobs).where(jobs.c.id == number, jobs.c.ended.is_not(None))
    return connection.execute(query).rowcount == 1
