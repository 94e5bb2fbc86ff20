"""Broadcasts: messages of operators to users (docs/spec/broadcasts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen
from sqlalchemy import Connection, select

from monrest.api.endpoint import Context, Endpoint, Parameter, declared
from monrest.api.family import Family, Served
from monrest.api.records import (
    RecordLimits,
    Records,
    Save,
    StoredRecords,
    bound_owner,
    record_columns,
)
from monrest.base.errors import Conflict
from monrest.base.values import Answer, Column, RestRequest, Rows
from monrest.broadcasts import markdown, model
from monrest.broadcasts.model import FIELDS, Broadcast
from monrest.store.database import transaction

ROLE = "authorized_for_broadcasts"
_MOST_OF_A_DAY = 10_000

COLUMNS = record_columns(
    Broadcast,
    FIELDS,
    Column("active", "boolean", "", "1 while it is to be shown: begun, not expired, no template"),
    Column("author", "string", "", "who wrote it"),
    Column("authoremail", "string", "", "mail address of the author"),
    Column("expires_ts", "time", "", "the same as a time, 0 for never"),
    Column("frontmatter", "object", "", "keys and values from the beginning of the text"),
    Column("hide_before_ts", "time", "", "the same as a time, 0 for at once"),
    Column("html", "string", "", "the text, as Markdown, in HTML that is safe to show"),
    Column("macros", "object", "", "what stands for {{name}} in the text"),
    Column("raw_text", "string", "", "the text as it was written"),
)
LOGIN_COLUMNS = tuple(
    column for column in COLUMNS if column.name in ("annotation", "file", "html", "name", "text")
)


broadcasts = Broadcast.table
LIMITS = RecordLimits(
    word="broadcasts",
    document=broadcasts.c.record,
    owner=broadcasts.c.record["author"].as_string(),
    owned=100,
    count=500,
    size=2 << 20,
)
STORED = StoredRecords(Broadcast, LIMITS)


@transaction
def add(
    connection: Connection,
    file: str,
    record: dict[str, Any],
    now: float,
    *,
    exact: bool,
    owner: str | None = None,
) -> str | None:
    """Store a new one; returns its file. If that is taken: None, or unless ``exact`` another."""
    query = select(broadcasts.c.file).where(broadcasts.c.file.startswith(file, autoescape=True))
    taken = set(connection.execute(query).scalars())
    others = () if exact else (f"{file}_{number}" for number in range(1, _MOST_OF_A_DAY))
    name = next((candidate for candidate in (file, *others) if candidate not in taken), None)
    if name is not None:
        with LIMITS.room(connection, name, owner):
            STORED.add(connection, name, {"record": record, "changed": int(now)})
    return name


@transaction
def adopt(connection: Connection, file: str, record: Mapping[str, Any], changed: int) -> bool:
    """Store one of another installation; False when its name is taken."""
    return STORED.adopt(connection, file, {"record": dict(record), "changed": changed})


@transaction
def several(connection: Connection, file: str | None = None) -> list[Broadcast]:
    """All broadcasts, or the one with this name."""
    return STORED.read(connection, file)


@transaction
def replace(
    connection: Connection, old: Broadcast, record: Mapping[str, Any], now: float, owner: str | None
) -> bool:
    """Store another record instead of ``old``; False when that is not the stored one any more."""
    values = {"record": record, "changed": int(now)}
    return STORED.replace(connection, old.file, old.version, values, owner)


@transaction
def remove(connection: Connection, old: Broadcast) -> bool:
    return STORED.remove(connection, old.file, old.version)


@frozen(kw_only=True, eq=False)
class Broadcasts(Records[Broadcast]):
    """The endpoints of broadcasts."""

    word = "broadcast"
    title = "broadcast"
    path = "/mon/broadcasts"
    key = "file"
    summary = "messages to users"
    columns = COLUMNS
    fields = FIELDS
    limits = LIMITS
    key_column = Column("file", "string", "", "name of the new broadcast")
    created = "successfully created broadcast."
    create_parameters = (Parameter(name="file", description="its name"),)
    write_roles = (ROLE,)
    texts: ClassVar = {
        "list": "All that the user may see, also those that are not shown now, which `active=1` "
        "leaves out.",
        "create": "The author is the user. Dates are stored as what they mean now. Fields that "
        "are not known are kept. Without `file` the name is made of the day and the user.",
        "replace": "The author is the user.",
    }

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[Broadcast]:
        """Return those that the user may see, also those that are not shown now."""
        identity = request.identity
        file = None if key is None else key.removesuffix(".json")
        broadcasts = await self.database.run(several(file))
        if not broadcasts or identity.may(ROLE):
            return broadcasts
        groups = (await context.contacts.of(identity.user)).groups if identity.user else frozenset()
        return [
            broadcast for broadcast in broadcasts if broadcast.visible_to(identity.user, groups)
        ]

    def name(self, broadcast: Broadcast) -> str:
        return broadcast.file

    async def rows(self, context: Context, broadcasts: Iterable[Broadcast]) -> list[dict[str, Any]]:
        """In a thread, because rendering Markdown takes its time."""
        now, zone = context.wall.now(), context.zone

        def work() -> list[dict[str, Any]]:
            rows = [model.broadcast_record(broadcast, now, zone) for broadcast in broadcasts]
            return [{**row, "html": markdown.html(row["text"])} for row in rows]

        return await context.threads.run(work)

    def document(self, broadcast: Broadcast) -> dict[str, Any]:
        return dict(broadcast.record)

    async def add(self, context: Context, request: RestRequest, save: Save) -> str:
        """Store it under the name that was sent, or under that of the day and the user."""
        now, zone = context.wall.now(), context.zone
        wanted = save.sent.get("file")
        exact = wanted not in (None, "")
        user = request.identity.user
        name = model.file_name(str(wanted)) if exact else model.default_file_name(user, now, zone)
        values = {**model.checked(save.fields, now, zone), **await _author(context, request)}
        owner = bound_owner(request.identity, user)
        file = await self.database.change(add(name, values, now, exact=exact, owner=owner))
        if file is None:
            raise Conflict("the file exists", f"file: expected another name than {name}")
        return file

    async def replace(
        self, context: Context, request: RestRequest, old: Broadcast, save: Save
    ) -> bool:
        """A PATCH does not change the author."""
        now, zone = context.wall.now(), context.zone
        author = {key: old.record.get(key) for key in model.OF_AUTHOR}
        if not save.patch:
            author = await _author(context, request)
        record = {**model.checked(save.fields, now, zone), **author}
        owner = bound_owner(request.identity, str(author["author"]))
        return await self.database.change(replace(old, record, now, owner))

    async def remove(self, old: Broadcast) -> bool:
        return await self.database.change(remove(old))

    @Endpoint(
        path="/mon/login",
        description="messages that are shown before the login",
        text="Broadcasts with `loginpage` that are shown now and to all users, the newest first.",
        parameters=(),
        columns=LOGIN_COLUMNS,
        public=True,
    )
    async def before_login(
        self, context: Context, request: RestRequest, _: tuple[str, ...]
    ) -> Answer:
        del request
        now = context.wall.now()
        stored = await self.database.run(several())
        shown_now = [
            broadcast
            for broadcast in reversed(stored)
            if broadcast.record["loginpage"]
            and broadcast.active(now, context.zone)
            and broadcast.visible_to("", ())
        ]
        names = [column.name for column in LOGIN_COLUMNS]
        rows = [[row[name] for name in names] for row in await self.rows(context, shown_now)]
        return Rows(columns=LOGIN_COLUMNS, rows=rows)


async def _author(context: Context, request: RestRequest) -> dict[str, Any]:
    user = request.identity.user
    contact = await context.contacts.of(user) if user else None
    return {"author": user, "authoremail": contact.email if contact is not None else None}


FAMILY = Family(
    (
        Served(
            (*Broadcasts.endpoints(), *declared(Broadcasts)),
            lambda common: Broadcasts(database=common.database),
        ),
    )
)
