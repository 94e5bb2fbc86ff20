"""Broadcasts: messages of operators to users (docs/spec/broadcasts.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint, Parameter
from monrest.api.fields import fields_of
from monrest.api.lists import local_schema, reselect, select, sparse
from monrest.base.audit import audit
from monrest.base.errors import Conflict, NotFound, RestError
from monrest.base.values import Answer, Column, Document, Identity, RestRequest, Rows
from monrest.broadcasts import model as records
from monrest.broadcasts import store as statements
from monrest.broadcasts import texts
from monrest.broadcasts.model import Broadcast
from monrest.store.merge import merged

ROLE = "authorized_for_broadcasts"

COLUMNS = (
    Column("active", "boolean", "", "1 while it is to be shown: begun, not expired, no template"),
    Column("annotation", "string", "", "its icon: info, warning or none"),
    Column("author", "string", "", "who wrote it"),
    Column("authoremail", "string", "", "mail address of the author"),
    Column("contactgroups", "array_of_strings", "", "groups that see it; ! in front: do not"),
    Column("contacts", "array_of_strings", "", "users that see it; ! in front: do not"),
    Column("expires", "string", "", "date from which it is not shown any more"),
    Column("expires_ts", "time", "", "the same as a time, 0 for never"),
    Column("file", "string", "", "its name"),
    Column("frontmatter", "object", "", "keys and values from the beginning of the text"),
    Column("hide_before", "string", "", "date from which it is shown"),
    Column("hide_before_ts", "time", "", "the same as a time, 0 for at once"),
    Column("html", "string", "", "the text, as Markdown, in HTML that is safe to show"),
    Column("loginpage", "boolean", "", "1: shown before the login, too"),
    Column("macros", "object", "", "what stands for {{name}} in the text"),
    Column("name", "string", "", "title"),
    Column("panorama", "boolean", "", "1: shown on dashboards, too"),
    Column("raw_text", "string", "", "the text as it was written"),
    Column("template", "boolean", "", "1: only a pattern for others, never shown"),
    Column("text", "string", "", "the text without front matter, macros replaced"),
)
LOGIN_COLUMNS = tuple(
    one for one in COLUMNS if one.name in ("annotation", "file", "html", "name", "text")
)
_KNOWN = {one.name for one in COLUMNS}
_WRITTEN = (
    Column("count", "number", "", "always 1"),
    Column("message", "string", "", "what was done"),
)
_MADE = (*_WRITTEN, Column("file", "string", "", "name of the new broadcast"))

FIELDS = (
    Parameter(name="name", description="title"),
    Parameter(name="text", required=True, description="Markdown, also with HTML; front matter "
              "between two lines `---` with a `key: value` each; `{{key}}` is replaced"),
    Parameter(name="contacts", description="users that see it, a list or with commas, `!` in "
              "front for those who do not; none: everybody"),
    Parameter(name="contactgroups", description="contact groups, in the same way"),
    Parameter(name="expires", description="date, or a time such as `+7d`"),
    Parameter(name="hide_before", description="date, or a time such as `tomorrow`"),
    Parameter(name="annotation", description="info or warning"),
    Parameter(name="loginpage", description="1: show it before the login", type="boolean"),
    Parameter(name="panorama", description="1: show it on dashboards", type="boolean"),
    Parameter(name="template", description="1: never show it", type="boolean"),
)  # fmt: skip


# -------------------------------------------------------------------- reading


async def _visible(
    context: Context, identity: Identity, found: Iterable[Broadcast]
) -> list[Broadcast]:
    if identity.may(ROLE):
        return list(found)
    groups = (await context.contacts.of(identity.user)).groups if identity.user else frozenset()
    return [one for one in found if one.visible_to(identity.user, groups)]


async def _records(context: Context, found: Iterable[Broadcast]) -> list[dict[str, Any]]:
    """Broadcasts as they are shown; Markdown takes its time, so that is a thread's work."""
    now, zone = context.wall.now(), context.zone

    def work() -> list[dict[str, Any]]:
        rows = [records.shown(one, now, zone) for one in found]
        return [{**row, "html": texts.html(row["text"])} for row in rows]

    return await context.threads.run(work)


async def broadcasts(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer GET /mon/broadcasts: all visible ones, also those that are not shown now."""
    stored = await context.database.run(statements.everything)
    rows = await _records(context, await _visible(context, request.identity, stored))
    further = sorted({name for row in rows for name in row} - _KNOWN)
    schema = local_schema("broadcasts", (*COLUMNS, *(Column(name) for name in further)), ())
    answer = await select(context, request, schema, rows)
    return await sparse(context, request, answer, frozenset(further))


async def _one(context: Context, request: RestRequest, name: str) -> Broadcast:
    """Find the broadcast of a path, if the asker may see it; NotFound."""
    found = await context.database.run(statements.one(name.removesuffix(".json")))
    if found is None or not await _visible(context, request.identity, [found]):
        raise NotFound("no such broadcast")
    return found


async def broadcast(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer GET /mon/broadcasts/<file>."""
    (value,) = await _records(context, [await _one(context, request, where[0])])
    return await reselect(context, request, Document(value=value, columns=COLUMNS))


async def before_login(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer GET /mon/login: what everybody is shown before the login, the newest first."""
    now = context.wall.now()
    stored = await context.database.run(statements.everything)
    found = [
        one
        for one in reversed(stored)
        if one.record["loginpage"] and one.active(now, context.zone) and one.visible_to("", ())
    ]
    names = [one.name for one in LOGIN_COLUMNS]
    rows = [[row[name] for name in names] for row in await _records(context, found)]
    del request
    return Rows(columns=LOGIN_COLUMNS, rows=rows)


# -------------------------------------------------------------------- changing


async def create(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer POST /mon/broadcasts."""
    now, zone = context.wall.now(), context.zone
    try:
        fields = fields_of(request)
        wanted = fields.pop("file", None)
        exact = wanted not in (None, "")
        user = request.identity.user
        name = records.file_name(str(wanted)) if exact else records.usual_name(user, now, zone)
        made = {**records.checked(fields, now, zone), **await _author(context, request)}
        file = await context.database.change(statements.add(name, made, now, exact=exact))
        if file is None:
            raise Conflict("the file exists", f"file: expected another name than {name}")
    except RestError as error:
        _audit(request, "create", "", error)
        raise
    _audit(request, "create", file)
    value = {"message": "successfully created broadcast.", "file": file, "count": 1}
    return Document(value=value)


async def _author(context: Context, request: RestRequest) -> dict[str, Any]:
    user = request.identity.user
    contact = await context.contacts.of(user) if user else None
    return {"author": user, "authoremail": contact.email if contact is not None else None}


async def replace(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer POST /mon/broadcasts/<file>."""
    return await _change(context, request, where[0], patch=False)


async def update(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer PATCH /mon/broadcasts/<file>."""
    return await _change(context, request, where[0], patch=True)


async def _change(context: Context, request: RestRequest, name: str, *, patch: bool) -> Answer:
    now, zone = context.wall.now(), context.zone
    old = await _one(context, request, name)
    try:
        fields = fields_of(request)
        author = {key: old.record.get(key) for key in records.OF_AUTHOR}
        if patch:
            sent = {key: value for key, value in fields.items() if key not in records.COMPUTED}
            fields = merged(dict(old.record), sent)
        else:
            author = await _author(context, request)
        made = {**records.checked(fields, now, zone), **author}
        if not await context.database.change(statements.replace(old, made, now)):
            raise Conflict("the broadcast was changed meanwhile", "read it again and repeat this")
    except RestError as error:
        _audit(request, "change", old.file, error)
        raise
    _audit(request, "change", old.file)
    return Document(value={"message": "successfully saved 1 broadcast.", "count": 1})


async def delete(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer DELETE /mon/broadcasts/<file>."""
    old = await _one(context, request, where[0])
    if not await context.database.change(statements.remove(old.file)):
        raise NotFound("no such broadcast")
    _audit(request, "delete", old.file)
    return Document(value={"message": "successfully removed 1 broadcast.", "count": 1})


def _audit(request: RestRequest, what: str, target: str, error: RestError | None = None) -> None:
    audit(
        request.identity,
        request.caller,
        f"broadcast {what}",
        target=target,
        result="ok" if error is None else error.message,
    )


_ITEM = Endpoint(
    path="/mon/broadcasts/<file>",
    description="one broadcast",
    handler=broadcast,
    shape="object",
    parameters=OBJECT_PARAMETERS,
    columns=COLUMNS,
)
_WRITE = evolve(_ITEM, roles=(ROLE,), parameters=FIELDS, columns=_WRITTEN, structured=True)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/broadcasts",
        description="messages to users",
        text="All that the asker may see, also those that are not shown now, which `active=1` "
        "leaves out.",
        handler=broadcasts,
        parameters=LIST_PARAMETERS,
        columns=COLUMNS,
    ),
    Endpoint(
        path="/mon/broadcasts",
        methods=("POST",),
        description="create a broadcast",
        text="The author is who asks. Dates are stored as what they mean now. Fields that are not "
        "known are kept. Without `file` the name is made of the day and the user.",
        handler=create,
        shape="object",
        parameters=(*FIELDS, Parameter(name="file", description="its name")),
        columns=_MADE,
        roles=(ROLE,),
        structured=True,
    ),
    _ITEM,
    evolve(
        _WRITE, methods=("POST",), description="replace a broadcast", handler=replace,
        text="The author is who asks.",
    ),
    evolve(
        _WRITE, methods=("PATCH",), description="change fields of a broadcast", handler=update,
        text="The body is merged into what is stored: null removes a field, lists are changed "
        "position by position.",
    ),
    evolve(
        _WRITE, methods=("DELETE",), description="remove a broadcast", handler=delete,
        parameters=(), structured=False,
    ),
    Endpoint(
        path="/mon/login",
        description="messages that are shown before the login",
        text="Broadcasts with `loginpage` that are shown now and to everybody, the newest first.",
        handler=before_login,
        parameters=(),
        columns=LOGIN_COLUMNS,
        public=True,
    ),
)  # fmt: skip
