"""Staged files and ids in the database: rows, and work for its transactions.

One user's stash of one site changes as a whole: the writer names the version that was read,
and reads again when another process was faster
(docs/spec/objectconfig.md, "Staged changes and the disk").
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

import orjson
from attrs import field, frozen
from sqlalchemy import ColumnElement, Connection, Table, and_, delete, insert, select, update

from monrest.objectconfig.model import Marks
from monrest.objectconfig.save import Write
from monrest.store.database import transaction
from monrest.store.tables import config_ids, config_stash, config_stashes

_FAST = 1


class StashOvertakenError(Exception):
    """Another process changed the stash after it was read."""


@frozen(kw_only=True)
class StagedFile(Write):
    """A file that a user changed: ``content`` is what a save writes, None for a file to delete.

    ``base`` is the text that was on disk when the file was changed first; the difference of the two
    is exactly the user's own change. ``staged``: when it was changed last, seconds since the epoch.
    """

    base: bytes | None = field(repr=False)
    content_hash: str | None
    marks: Marks = field(repr=False)
    staged: int

    @property
    def action(self) -> str:
        """The effect of saving on the file: it is ``created``, ``changed`` or ``deleted``."""
        if self.content_hash is None:
            return "deleted"
        return "created" if self.base_hash is None else "changed"


StagedBy: TypeAlias = dict[str, dict[str, list[str]]]
"""The users that staged a file, sorted, by site and path."""


@frozen
class Stash:
    """One user's staged files of a site by path; ``version`` is empty when there are none."""

    version: str = ""
    files: Mapping[str, StagedFile] = field(factory=dict)


def _packed(data: bytes | None) -> bytes | None:
    return None if data is None else zlib.compress(data, _FAST)


def _unpacked(data: bytes | None) -> bytes | None:
    return None if data is None else zlib.decompress(data)


def _unpacked_marks(data: bytes) -> Marks:
    ids, lines, retired = orjson.loads(zlib.decompress(data))
    return Marks(tuple(ids), tuple(lines), tuple(retired))


def _whose(site: str, user: str) -> ColumnElement[bool]:
    return and_(config_stash.c.site == site, config_stash.c.username == user)


def _version(connection: Connection, site: str, user: str) -> str:
    table = config_stashes
    version = connection.execute(
        select(table.c.version).where(table.c.site == site, table.c.username == user)
    ).scalar()
    return version or ""


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
        base=_unpacked(row["base"]),
        base_hash=row["base_hash"],
        content=_unpacked(row["content"]),
        content_hash=row["content_hash"],
        marks=_unpacked_marks(row["objects"]),
        staged=row["staged"],
    )


Rows = Sequence[Mapping[str, Any]]
"""Rows of staged files as the table has them, but for site and user."""


def row_of(file: StagedFile, stored: StagedFile | None = None) -> dict[str, Any]:
    """The row of a staged file, without its base if ``stored`` has the same one.

    Compressing takes its time: it is done in a thread before the transaction.
    """
    marks = file.marks
    row: dict[str, Any] = {
        "path": file.path,
        "content": _packed(file.content),
        "content_hash": file.content_hash,
        "objects": zlib.compress(orjson.dumps([marks.ids, marks.lines, marks.retired]), _FAST),
        "staged": file.staged,
    }
    if stored is None or stored.base_hash != file.base_hash:
        row |= {"base": _packed(file.base), "base_hash": file.base_hash}
    return row


@transaction
def replace(
    connection: Connection, site: str, user: str, version: str, rows: Rows, gone: Collection[str]
) -> str:
    """Write ``rows`` into the stash of ``version`` and delete the paths that are ``gone``.

    Returns the new version. Raises StashOvertakenError when the stash has another version.
    """
    if _version(connection, site, user) != version:
        raise StashOvertakenError
    for row in rows:
        key = {"site": site, "username": user, "path": row["path"]}
        _put(connection, config_stash, key, row)
    for path in gone:
        connection.execute(
            delete(config_stash).where(_whose(site, user), config_stash.c.path == path)
        )
    return _renewed(connection, site, user)


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


@transaction
def saved(connection: Connection, site: str, user: str, rows: Rows) -> None:
    """Delete what was saved from the stash; ``rows`` are whole ones.

    What another process staged on top meanwhile stays. It moves to the saved text only from the
    very text that the save replaced: between those two is nothing but the user's own change, and
    from any other base the difference would hold changes of others.
    """
    columns = config_stash.c
    for row in rows:
        mine = and_(_whose(site, user), columns.path == row["path"])
        connection.execute(
            delete(config_stash).where(
                mine, columns.content_hash.is_not_distinct_from(row["content_hash"])
            )
        )
        connection.execute(
            update(config_stash)
            .where(mine, columns.base_hash.is_not_distinct_from(row["base_hash"]))
            .values(base=row["content"], base_hash=row["content_hash"])
        )
    _renewed(connection, site, user)


@transaction
def drop(connection: Connection, site: str, user: str) -> None:
    connection.execute(delete(config_stash).where(_whose(site, user)))
    _renewed(connection, site, user)


@transaction
def staged_by(connection: Connection, sites: Collection[str]) -> StagedBy:
    table = config_stash.c
    rows = connection.execute(
        select(table.site, table.path, table.username)
        .where(table.site.in_(sites))
        .order_by(table.username)
    )
    users: StagedBy = {}
    for site, path, user in rows:
        users.setdefault(site, {}).setdefault(path, []).append(user)
    return users


@transaction
def ids_of(
    connection: Connection, site: str, hashes: Mapping[str, str] | None = None
) -> dict[tuple[str, str], Marks]:
    """The ids kept for all files, or those of these hashes by path; by path and hash."""
    table = config_ids
    rows = connection.execute(
        select(table.c.path, table.c.hash, table.c.objects).where(table.c.site == site)
    )
    return {
        (row.path, row.hash): _unpacked_marks(row.objects)
        for row in rows
        if hashes is None or hashes.get(row.path) == row.hash
    }


@transaction
def keep_ids(connection: Connection, site: str, rows: Rows) -> None:
    """Keep the ids of files that are about to be saved; a deleted file has none."""
    for row in rows:
        if row["content_hash"] is not None:
            values = {"hash": row["content_hash"], "objects": row["objects"]}
            _put(connection, config_ids, {"site": site, "path": row["path"]}, values)
