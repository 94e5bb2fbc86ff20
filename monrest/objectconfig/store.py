"""Staged files and ids in the database: rows, and work for its transactions.

One person's stash of one site changes as a whole: the writer names the version that was read,
and reads again when another process was faster
(docs/spec/objectconfig.md, "Staged changes and the disk").
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import orjson
from attrs import field, frozen
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from monrest.objectconfig.model import Marks
from monrest.store.database import transaction
from monrest.store.tables import config_ids, config_stash, config_stashes

_FAST = 1


class StashOvertakenError(Exception):
    """The stash is not the one any more that was read."""


@frozen(kw_only=True)
class StagedFile:
    """A staged file: the disk's text when it was changed first, and the text that it is to have.

    None is a file that is not there. ``staged``: when it was changed last, seconds since the
    epoch.
    """

    path: str
    base: bytes | None = field(repr=False)
    base_hash: str | None
    content: bytes | None = field(repr=False)
    content_hash: str | None
    marks: Marks = field(repr=False)
    staged: int

    @property
    def action(self) -> str:
        """What saving does to the file: it is ``created``, ``changed`` or ``deleted``."""
        return _action(self.base_hash, self.content_hash)


@frozen(kw_only=True)
class StagedBy:
    """Who staged what, and when; ``action`` as of a staged file."""

    site: str
    user: str
    path: str
    action: str
    staged: int


@frozen
class Stash:
    """One person's staged files of a site by path; ``version`` is empty when there is nothing."""

    version: str = ""
    files: Mapping[str, StagedFile] = field(factory=dict)


def _action(base_hash: str | None, content_hash: str | None) -> str:
    if content_hash is None:
        return "deleted"
    return "created" if base_hash is None else "changed"


def packed(data: bytes | None) -> bytes | None:
    """Compress a file; None stays None."""
    return None if data is None else zlib.compress(data, _FAST)


def unpacked(data: bytes | None) -> bytes | None:
    return None if data is None else zlib.decompress(data)


def packed_marks(marks: Marks) -> bytes:
    return zlib.compress(orjson.dumps([marks.ids, marks.lines, marks.retired]), _FAST)


def unpacked_marks(data: bytes) -> Marks:
    ids, lines, retired = orjson.loads(zlib.decompress(data))
    return Marks(tuple(ids), tuple(lines), tuple(retired))


def _whose(site: str, user: str) -> ColumnElement[bool]:
    return and_(config_stash.c.site == site, config_stash.c.username == user)


def _version(connection: Connection, site: str, user: str) -> str:
    table = config_stashes
    found = connection.execute(
        select(table.c.version).where(table.c.site == site, table.c.username == user)
    ).scalar()
    return found or ""


@transaction
def version_of(connection: Connection, site: str, user: str) -> str:
    return _version(connection, site, user)


@transaction
def read(connection: Connection, site: str, user: str) -> Stash:
    rows = connection.execute(
        select(config_stash).where(_whose(site, user)).order_by(config_stash.c.path)
    ).mappings()
    return Stash(_version(connection, site, user), {row["path"]: _staged(row) for row in rows})


def _staged(row: Mapping[Any, Any]) -> StagedFile:
    return StagedFile(
        path=row["path"],
        base=unpacked(row["base"]),
        base_hash=row["base_hash"],
        content=unpacked(row["content"]),
        content_hash=row["content_hash"],
        marks=unpacked_marks(row["objects"]),
        staged=row["staged"],
    )


@frozen(kw_only=True)
class StashChange:
    """What to write into a stash of version ``version``: whole rows, and paths to forget.

    ``rows`` are ready for the table but for site and user.
    """

    version: str
    rows: tuple[Mapping[str, Any], ...] = ()
    forgotten: tuple[str, ...] = ()


def row_of(file: StagedFile, stored: StagedFile | None = None) -> dict[str, Any]:
    """Make the row of a staged file, or what differs from the one that is ``stored`` already.

    Compressing takes its time, so this is nothing for a transaction.
    """
    row: dict[str, Any] = {
        "path": file.path,
        "content": packed(file.content),
        "content_hash": file.content_hash,
        "objects": packed_marks(file.marks),
        "staged": file.staged,
    }
    if stored is None or stored.base_hash != file.base_hash:
        row |= {"base": packed(file.base), "base_hash": file.base_hash}
    return row


@transaction
def store(connection: Connection, site: str, user: str, change: StashChange) -> str:
    """Write a change, and give the new version; StashOvertakenError if it is too late."""
    if _version(connection, site, user) != change.version:
        raise StashOvertakenError
    for row in change.rows:
        key = {"site": site, "username": user, "path": row["path"]}
        _put(connection, config_stash, key, row)
    _forget(connection, site, user, change.forgotten)
    return _renewed(connection, site, user)


def _forget(connection: Connection, site: str, user: str, paths: Iterable[str]) -> None:
    for path in paths:
        connection.execute(
            delete(config_stash).where(_whose(site, user), config_stash.c.path == path)
        )


def _renewed(connection: Connection, site: str, user: str) -> str:
    """Give the stash a new version, or none when nothing is left of it."""
    table = config_stashes
    mine = and_(table.c.site == site, table.c.username == user)
    if connection.execute(select(config_stash.c.path).where(_whose(site, user))).first() is None:
        connection.execute(delete(table).where(mine))
        return ""
    version = uuid4().hex
    _put(connection, table, {"site": site, "username": user}, {"version": version})
    return version


def _put(
    connection: Connection, table: Table, key: Mapping[str, Any], values: Mapping[str, Any]
) -> None:
    where = and_(*(table.c[name] == value for name, value in key.items()))
    if not connection.execute(update(table).where(where).values(**values)).rowcount:
        connection.execute(insert(table).values(**{**key, **values}))


@frozen(kw_only=True)
class WrittenFile:
    """A file of a save: the hashes before and after it, and the packed content."""

    path: str
    base_hash: str | None
    content_hash: str | None
    content: bytes | None = field(repr=False)


@transaction
def saved(connection: Connection, site: str, user: str, files: Sequence[WrittenFile]) -> None:
    """What was saved is staged no more.

    What another process staged on top meanwhile stays. It moves to the saved text only from the
    very text that the save replaced: between those two is nothing but the user's own change, and
    from any other base the difference would hold changes of others.
    """
    columns = config_stash.c
    for file in files:
        mine = and_(_whose(site, user), columns.path == file.path)
        connection.execute(
            delete(config_stash).where(
                mine, columns.content_hash.is_not_distinct_from(file.content_hash)
            )
        )
        connection.execute(
            update(config_stash)
            .where(mine, columns.base_hash.is_not_distinct_from(file.base_hash))
            .values(base=file.content, base_hash=file.content_hash)
        )
    _renewed(connection, site, user)


@transaction
def drop(connection: Connection, site: str, user: str) -> None:
    connection.execute(delete(config_stash).where(_whose(site, user)))
    _renewed(connection, site, user)


@transaction
def overview(connection: Connection, sites: Collection[str]) -> list[StagedBy]:
    """Who staged what, by site, user and path."""
    table = config_stash
    rows = connection.execute(
        select(
            table.c.site,
            table.c.username,
            table.c.path,
            table.c.base_hash,
            table.c.content_hash,
            table.c.staged,
        )
        .where(table.c.site.in_(sites))
        .order_by(table.c.site, table.c.username, table.c.path)
    )
    return [
        StagedBy(
            site=row.site,
            user=row.username,
            path=row.path,
            action=_action(row.base_hash, row.content_hash),
            staged=row.staged,
        )
        for row in rows
    ]


@transaction
def ids_of(
    connection: Connection, site: str, hashes: Mapping[str, str] | None = None
) -> dict[tuple[str, str], Marks]:
    """The ids kept for all files, or those of these hashes by path; by path and hash."""
    table = config_ids
    found = connection.execute(
        select(table.c.path, table.c.hash, table.c.objects).where(table.c.site == site)
    )
    return {
        (row.path, row.hash): unpacked_marks(row.objects)
        for row in found
        if hashes is None or hashes.get(row.path) == row.hash
    }


@transaction
def keep_ids(connection: Connection, site: str, files: Mapping[str, tuple[str, bytes]]) -> None:
    """Keep the ids of files that are about to be saved, as hash and packed marks by path."""
    for path, (content_hash, objects) in files.items():
        values = {"hash": content_hash, "objects": objects}
        _put(connection, config_ids, {"site": site, "path": path}, values)
