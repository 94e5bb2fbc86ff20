"""A family of stored records: its six endpoints, and the SQL that all of them need.

A family says who sees which records, how they look and what may be in them; roles, messages,
errors, lines of the audit log and the check for a change meanwhile are the same for all.
Rules: docs/spec/store.md, "Records".
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args

from attrs import evolve, frozen
from sqlalchemy import Column as TableColumn
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Text,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)

from monrest.api.endpoint import (
    LIST_PARAMETERS,
    OBJECT_PARAMETERS,
    Context,
    DeclaredParameter,
    Endpoint,
    Method,
)
from monrest.api.fields import Fields, fields_of
from monrest.api.lists import local_schema, reselect, sparse
from monrest.api.lists import select as select_rows
from monrest.base.audit import audited
from monrest.base.errors import Conflict, NotFound
from monrest.base.values import ADMIN, Answer, Column, Document, Identity, RestRequest, Rows
from monrest.store.database import Database
from monrest.store.documents import merged
from monrest.store.stored import StoredRow, shown_columns

T = TypeVar("T")
Key: TypeAlias = str | int

_MERGED = (
    "The body is merged into what is stored: null removes a field, lists are changed "
    "position by position."
)
DONE = (
    Column("count", "number", "", "always 1"),
    Column("message", "string", "", "what was done"),
)
Verb: TypeAlias = Literal["list", "create", "one", "replace", "change", "remove"]

_WRITING: Mapping[Verb, tuple[Method, str, str]] = {
    "create": ("POST", "create", "create"),
    "replace": ("POST", "replace", "put"),
    "change": ("PATCH", "change fields of", "patch"),
    "remove": ("DELETE", "remove", "delete"),
}
_MOST_DIGITS = 9
_CHANGES = 2**20
"""Changes of one record: its version is a number that only it has, times this, and their count."""


def first_version() -> int:
    """Make the version of a new record: keys come again after a deletion, versions do not."""
    return (secrets.randbits(42) or 1) * _CHANGES


def birth(version: int) -> int:
    """Return what stays the same in all versions of a record and is another one in each record."""
    return version // _CHANGES


def memory_of(document: ColumnElement[Any]) -> ColumnElement[int]:
    """Estimate the bytes that a stored document needs while it is read and written to an answer.

    That depends on what is in it: an empty list of two characters needs 56 bytes.
    """
    text = cast(document, Text)
    size = func.length(text)

    def count(count: str) -> ColumnElement[int]:
        return size - func.length(func.replace(text, count, ""))

    # One character beyond the basic plane makes each one of its text four bytes long.
    characters = case((count("\\ud") > 0, 5 * size), else_=2 * size)
    return characters + 120 * count("{") + 56 * count("[") + 56 * count(",")


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):g} MB"


@frozen(kw_only=True, eq=False)
class RecordLimits:
    """How many records there may be of one owner and in all, and how much memory they may need.

    ``document`` is the column with what is stored, ``owner`` says whose it is. ``size`` is in
    bytes of memory, a quarter of it those of one owner. ``setting`` and ``size_setting`` are where
    ``owned`` and ``size`` are configured.
    """

    word: str
    document: TableColumn[Any]
    owner: ColumnElement[str] | None = None
    owned: int = 500
    count: int = 5_000
    size: int = 24 << 20
    setting: str = ""
    size_setting: str = ""

    @property
    def owned_size(self) -> int:
        return self.size // 4

    @property
    def description(self) -> str:
        """The limits as the reference page shows them."""
        owned = f"`{self.setting}` ({self.owned})" if self.setting else f"{self.owned:,}"
        size = f"{_megabytes(self.size)} of memory"
        size = f"`{self.size_setting}` ({size})" if self.size_setting else size
        most = f"{self.count:,} {self.word} and {size} in all"
        if self.owner is None:
            return f"At most {most}."
        return f"At most {owned} of a user in {_megabytes(self.owned_size)} of memory, and {most}."

    @contextmanager
    def room(self, connection: Connection, key: Key, owner: str | None) -> Iterator[None]:
        """Write the record ``key`` of ``owner``; Conflict where it grows beyond a limit.

        None is for who is bound by the limits for all alone.
        """
        table = self.document.table
        this = next(iter(table.primary_key.columns)) == key
        own = select(memory_of(self.document)).where(this)
        before = connection.execute(own).scalar_one_or_none()
        yield
        grown = (connection.execute(own).scalar_one_or_none() or 0) > (before or 0)
        if not grown:
            return
        (mine, my_size), (count, size) = self._used(connection, owner)
        if before is None and (mine > self.owned or count > self.count):
            raise Conflict(
                f"too many {self.word}",
                f"expected at most {self.owned} of a user and {self.count} in all",
            )
        where = f" ({self.size_setting})" if self.size_setting else ""
        if my_size > self.owned_size or size > self.size:
            raise Conflict(
                f"the {self.word} are too large together",
                f"expected at most {_megabytes(self.owned_size)} of a user and "
                f"{_megabytes(self.size)} in all{where}, as they are in memory; remove some or "
                "make them smaller",
            )

    def _used(
        self, connection: Connection, owner: str | None
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Count the records of an owner and the memory that they need, and those of all."""
        theirs: ColumnElement[Any] = literal(0)
        if self.owner is not None and owner is not None:
            theirs = case((self.owner == owner, 1), else_=0)
        query = select(theirs.label("mine"), func.count(), func.sum(memory_of(self.document)))
        counts = {
            mine: (count, int(size))
            for mine, count, size in connection.execute(query.group_by("mine"))
        }
        mine, others = counts.get(1, (0, 0)), counts.get(0, (0, 0))
        return mine, (mine[0] + others[0], mine[1] + others[1])


def bound_owner(identity: Identity, owner: str) -> str | None:
    """Return whose limits bind a change by ``identity``, None for administrators."""
    return None if identity.may(ADMIN) else owner


R = TypeVar("R", bound=StoredRow)


@frozen(eq=False)
class StoredRecords(Generic[R]):
    """Records in the table of a class with one key and a ``version``, which grows with every write.

    ``owner`` is whose limits a change is bound by (``RecordLimits.room``).
    """

    row: type[R]
    limits: RecordLimits

    @property
    def key(self) -> TableColumn[Any]:
        return self.row.primary_key()

    def same(self, key: Key, version: int) -> ColumnElement[bool]:
        """Return a condition: it is still the record of this version, changed or not."""
        first = birth(version) * _CHANGES
        stored = self.row.table.c.version
        return (self.key == key) & stored.between(first, first + _CHANGES - 1)

    def read(self, connection: Connection, key: Key | None = None) -> list[R]:
        """Read all records in the order of their keys, or the one that has this key."""
        query = select(self.row.table)
        if key is not None:
            query = query.where(self.key == key)
        rows = connection.execute(query).all()
        # No database sorts texts by code point by default.
        return [self.row.of(row) for row in sorted(rows, key=lambda row: row._mapping[self.key])]

    def add(self, connection: Connection, key: Key, values: Mapping[str, Any]) -> None:
        stored = {self.key.name: key, "version": first_version(), **values}
        connection.execute(insert(self.row.table).values(stored))

    def adopt(self, connection: Connection, key: Key, values: Mapping[str, Any]) -> bool:
        """Store a record of another installation under its key; False when that is taken."""
        taken = connection.execute(select(self.key).where(self.key == key)).first()
        if taken is None:
            self.add(connection, key, values)
        return taken is None

    def add_number(
        self,
        connection: Connection,
        first: int,
        values: Mapping[str, Any],
        owner: str | None = None,
        limits: RecordLimits | None = None,
    ) -> int:
        """Store a new record with the first free number from ``first`` on; returns the number."""
        query = select(self.key).where(self.key >= first).order_by(self.key)
        number = first
        for taken in connection.execute(query).scalars():
            if taken != number:
                break
            number += 1
        with (limits or self.limits).room(connection, number, owner):
            self.add(connection, number, values)
        return number

    def replace(
        self,
        connection: Connection,
        key: Key,
        version: int,
        values: Mapping[str, Any],
        owner: str | None = None,
        before: Callable[[Row[*tuple[Any, ...]]], object] = lambda _: None,
    ) -> bool:
        """Store other values; False when the record has not this version any more.

        ``before`` gets the row as it was.
        """
        this = (self.key == key) & (self.row.table.c.version == version)
        row = connection.execute(select(self.row.table).where(this)).one_or_none()
        if row is None:
            return False
        before(row)
        query = update(self.row.table).where(this).values({"version": version + 1, **values})
        with self.limits.room(connection, key, owner):
            return connection.execute(query).rowcount == 1

    def remove(self, connection: Connection, key: Key, version: int) -> bool:
        """Delete the record that has or had this version; False when it is gone."""
        query = delete(self.row.table).where(self.same(key, version))
        return connection.execute(query).rowcount == 1


def number_of(text: str) -> int | None:
    """Return the number of a record in a path, None for what is none."""
    digits = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if digits and text[0] != "0" else None


def first_number(value: Any) -> int:
    """Return the number from which a free one is looked for, 1 for what is none."""
    text = str(value)
    digits = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return max(1, int(text)) if digits else 1


def record_columns(row: type[StoredRow], fields: Fields, *more: Column) -> tuple[Column, ...]:
    """The columns of the fields, of what the class of the records shows, and ``more``, by name."""
    declared = (
        declared_field.column
        for declared_field in fields.declared
        if declared_field.column is not None
    )
    return shown_columns(row, *declared, *more)


@frozen(kw_only=True)
class Save:
    """A record to store: ``fields`` are the whole record, ``sent`` what the client sent.

    ``patch``: what was sent is merged into what was stored.
    """

    fields: Mapping[str, Any]
    sent: Mapping[str, Any]
    patch: bool = False


@frozen(kw_only=True, eq=False)
class Records(ABC, Generic[T]):
    """A family; ``T`` is one record together with what the user may do with it.

    ``word`` stands in messages, ``title`` in the audit log and in the index. ``key`` is the last
    segment of the path and the column that says which record it is. ``answer_columns`` are the
    declared columns where they differ from those of every row. ``optional`` columns are absent
    where they are null. ``texts`` are for the reference page, by verb. ``verbs`` are the endpoints
    that the family has, with what of their declaration is its own. ``done`` is what a change
    answers.
    """

    word: ClassVar[str]
    title: ClassVar[str]
    path: ClassVar[str]
    key: ClassVar[str]
    summary: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    fields: ClassVar[Fields] = Fields(())
    limits: ClassVar[RecordLimits]
    answer_columns: ClassVar[tuple[Column, ...]] = ()
    optional: ClassVar[frozenset[str]] = frozenset()
    key_column: ClassVar[Column]
    created: ClassVar[str]
    create_roles: ClassVar[tuple[str, ...]] = ()
    write_roles: ClassVar[tuple[str, ...]] = ()
    list_parameters: ClassVar[tuple[DeclaredParameter, ...]] = LIST_PARAMETERS
    further_parameters: ClassVar[tuple[DeclaredParameter, ...]] = ()
    create_parameters: ClassVar[tuple[DeclaredParameter, ...]] = ()
    texts: ClassVar[Mapping[str, str]] = MappingProxyType({})
    verbs: ClassVar[Mapping[Verb, Mapping[str, Any]]] = MappingProxyType(
        {verb: {} for verb in get_args(Verb)}
    )
    done: ClassVar[tuple[Column, ...]] = DONE

    database: Database

    @abstractmethod
    async def find(self, context: Context, request: RestRequest, key: str | None) -> Sequence[T]:
        """Return the records that exist for the user in their order, or the one of a path."""

    def name(self, record: T) -> str:
        """Return the key as the audit log has it."""
        raise NotImplementedError

    @abstractmethod
    async def rows(self, context: Context, records: Iterable[T]) -> list[dict[str, Any]]:
        """Return records as they are shown."""

    def document(self, record: T) -> dict[str, Any]:
        """Return what a patch is merged into."""
        raise NotImplementedError

    async def add(self, context: Context, request: RestRequest, save: Save) -> Key:
        """Check and store a new record; returns its key as the answer has it."""
        raise NotImplementedError

    async def replace(self, context: Context, request: RestRequest, old: T, save: Save) -> bool:
        """Check and store a record instead of ``old``; False when that was changed meanwhile."""
        raise NotImplementedError

    async def remove(self, old: T) -> bool:
        """Delete a record; False when it is gone."""
        raise NotImplementedError

    async def require_write(self, context: Context, request: RestRequest, old: T) -> None:
        """Raise Forbidden for who sees a record and may not change it."""

    async def require_removal(self, context: Context, request: RestRequest, old: T) -> None:
        """Raise Forbidden for who may not delete a record, unless who may change it may do so."""
        await self.require_write(context, request, old)

    def columns_of(self, context: Context) -> tuple[Column, ...]:
        """Return the columns where some are named after the site."""
        del context
        return self.columns

    def further(self, names: Iterable[str]) -> list[Column]:
        """Return the columns of fields that are not declared."""
        return [Column(name) for name in sorted(names)]

    def shown_alone(self, row: dict[str, Any]) -> dict[str, Any]:
        return {k: value for k, value in row.items() if k not in self.optional or value is not None}

    def missing(self) -> NotFound:
        return NotFound(f"no such {self.word}")

    async def find_one(self, context: Context, request: RestRequest, key: str) -> T:
        """Return the record of a path; NotFound also where the user must not know of it."""
        records = await self.find(context, request, key)
        if not records:
            raise self.missing()
        return records[0]

    async def answer_list(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        rows = await self.rows(context, await self.find(context, request, None))
        return await self.listed(context, request, rows)

    async def listed(
        self, context: Context, request: RestRequest, rows: Sequence[dict[str, Any]]
    ) -> Rows | Document:
        """Answer with those of the shown records that the request wants."""
        columns = self.columns_of(context)
        names = {column.name for column in columns}
        further = self.further({name for row in rows for name in row} - names)
        schema = local_schema(self.path.rpartition("/")[2], (*columns, *further), ())
        answer = await select_rows(context, request, schema, rows)
        optional = self.optional.union(column.name for column in further)
        return sparse(request, answer, optional)

    async def answer_one(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        record = await self.find_one(context, request, where[0])
        (row,) = await self.rows(context, [record])
        value = self.shown_alone(row)
        columns = self.answer_columns or self.columns_of(context)
        return await reselect(context, request, Document(value=value, columns=columns))

    async def create(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        with audited(request, f"{self.title} create") as line:
            sent = fields_of(request)
            key = await self.add(context, request, Save(fields=sent, sent=sent))
            line.target = str(key)
        return Document(value={"message": self.created, self.key_column.name: key, "count": 1})

    async def put(self, context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
        """Answer POST to one, which replaces it."""
        return await self._change(context, request, where[0], patch=False)

    async def patch(self, context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
        return await self._change(context, request, where[0], patch=True)

    async def _change(
        self, context: Context, request: RestRequest, key: str, *, patch: bool
    ) -> Answer:
        with audited(request, f"{self.title} change", key) as line:
            old = await self.find_one(context, request, key)
            line.target = self.name(old)
            await self.require_write(context, request, old)
            sent = fields_of(request)
            fields = sent
            if patch:
                kept = {k: value for k, value in sent.items() if k not in self.fields.computed}
                fields = merged(self.document(old), kept)
            save = Save(fields=fields, sent=sent, patch=patch)
            if not await self.replace(context, request, old, save):
                raise Conflict(
                    f"the {self.word} was changed meanwhile", "read it again and repeat this"
                )
        return self._done(f"successfully saved 1 {self.word}.")

    async def delete(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        with audited(request, f"{self.title} delete", where[0]) as line:
            old = await self.find_one(context, request, where[0])
            line.target = self.name(old)
            await self.require_removal(context, request, old)
            if not await self.remove(old):
                raise self.missing()
        return self._done(f"successfully removed 1 {self.word}.")

    def _done(self, message: str) -> Document:
        value = {"message": message, "count": 1}
        return Document(value={column.name: value[column.name] for column in self.done})

    @classmethod
    def endpoints(cls) -> tuple[Endpoint, ...]:
        """Declare those of the verbs that the family has."""
        return tuple(evolve(cls._endpoint(verb), **more) for verb, more in cls.verbs.items())

    @classmethod
    def _endpoint(cls, verb: Verb) -> Endpoint:
        item = f"{cls.path}/<{cls.key}>"
        columns = cls.answer_columns or cls.columns
        text = cls.texts.get(verb, _MERGED if verb == "change" else "")
        if verb == "list":
            return Endpoint(
                path=cls.path,
                description=cls.summary,
                text=text,
                handler=cls.answer_list,
                parameters=cls.list_parameters,
                columns=columns,
            )
        if verb == "one":
            return Endpoint(
                path=item,
                description=f"one {cls.title}",
                text=text,
                handler=cls.answer_one,
                shape="object",
                parameters=OBJECT_PARAMETERS,
                columns=columns,
            )
        method, what, handler = _WRITING[verb]
        parameters = (*cls.fields.declared, *cls.further_parameters)
        writing = Endpoint(
            path=item,
            methods=(method,),
            description=f"{what} a {cls.title}",
            text=text,
            handler=getattr(cls, handler),
            shape="object",
            parameters=parameters,
            columns=cls.done,
            roles=cls.write_roles,
            structured=True,
        )
        if verb == "remove":
            return evolve(writing, parameters=(), structured=False)
        if verb == "create":
            return evolve(
                writing,
                path=cls.path,
                text=f"{text} {cls.limits.description}".strip(),
                parameters=(*parameters, *cls.create_parameters),
                columns=(*cls.done, cls.key_column),
                roles=cls.create_roles or cls.write_roles,
            )
        return writing
