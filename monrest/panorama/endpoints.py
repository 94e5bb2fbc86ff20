"""Dashboards (docs/spec/panorama.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attrs import evolve, frozen

from monrest.accounts.rights import is_read_only
from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint, Parameter
from monrest.api.fields import fields_of
from monrest.api.lists import local_schema, reselect, select, sparse
from monrest.base.audit import audit
from monrest.base.errors import BadRequest, Conflict, Forbidden, NotFound, RestError
from monrest.base.values import ADMIN, Answer, Column, Document, RestRequest
from monrest.panorama import model as records
from monrest.panorama import store as statements
from monrest.panorama.model import Dashboard, Level
from monrest.store.merge import merged

_LONGEST_TEXT = 100_000

COLUMNS = (
    Column("file", "string", "", "where it is"),
    Column("file_version", "number", "", "version of its form, always 2"),
    Column("id", "string", "", "`pantab_` and its number"),
    Column("maintenance", "string", "", "why it is in maintenance; absent unless it is"),
    Column("nr", "number", "", "number; a word for some scripted ones"),
    Column("objects", "number", "", "number of panels"),
    Column("readonly", "boolean", "", "1: the asker may not change it"),
    Column("scripted", "boolean", "", "1: a program prints it"),
    Column("tab", "object", "", "its settings, in `xdata`"),
    Column("ts", "time", "", "last change"),
    Column("user", "string", "", "owner"),
)
_KNOWN = {one.name for one in COLUMNS}
_PANEL = Column("panlet_<nr>", "object", "", "a panel each: what it shows, in `xdata`")
_SHOWN = (*COLUMNS[:6], _PANEL, *COLUMNS[6:])
_TOLD = (Column("message", "string", "", "what was done"),)
_WRITTEN = (Column("count", "number", "", "always 1"), *_TOLD)
_MADE = (*_WRITTEN, Column("nr", "number", "", "number of the new dashboard"))
BACKUP_COLUMNS = (
    Column("dashboard", "object", "", "`tab`, `user` and panels, as a POST takes them"),
    Column("objects", "number", "", "number of panels"),
    Column("title", "string", "", "title"),
    Column("ts", "time", "", "until when it was like this"),
)
_BACKUPS = local_schema("panorama_backups", BACKUP_COLUMNS, ())

FIELDS = (
    Parameter(name="tab", description="settings: an object whose `xdata` has `title`, `refresh` "
              "(seconds), `backends`, `background`, `state_type` (soft or hard), `map`, and "
              '`groups` and `users`, lists of `{"<name>": "read-only"}` or `"read-write"`, the '
              "group `*` being everybody"),
    Parameter(name="panlet_<nr>", description="a panel: an object whose `xdata` has `cls`, "
              "`general`, `appearance`, `label`, `layout`, `link`, `popup`, `map`"),
    Parameter(name="user", description="owner, if an administrator asks"),
    Parameter(name="file_version", description="1 for records of an older form", type="integer"),
)  # fmt: skip


@frozen(kw_only=True)
class _Asker:
    """Who asks, as far as dashboards are concerned."""

    user: str
    admin: bool
    groups: Collection[str]
    readonly: bool

    def may(self, record: Mapping[str, Any]) -> Level:
        return records.level(
            record, self.user, self.groups, admin=self.admin, readonly=self.readonly
        )

    @property
    def runtime(self) -> str:
        """Whose state of panels he sees; administrators share one."""
        return "" if self.admin else self.user


async def _asker(context: Context, request: RestRequest) -> _Asker:
    identity = request.identity
    admin = identity.may(ADMIN)
    groups: Collection[str] = ()
    if identity.user and (not admin or context.config.panorama.folder):
        groups = (await context.contacts.of(identity.user)).groups
    readonly = context.config.panorama.readonly or (
        not admin and await is_read_only(identity, context.contacts, context.config)
    )
    return _Asker(user=identity.user, admin=admin, groups=groups, readonly=readonly)


# -------------------------------------------------------------------- reading


async def dashboards(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer GET /mon/panorama: all visible ones by title."""
    asker = await _asker(context, request)
    stored = await context.database.run(statements.read(asker.runtime))
    found = [one for one in stored.dashboards if asker.may(one.record)]
    taken = {one.nr for one in stored.dashboards}
    scripts = [
        one
        for one in await context.panorama.scripts()
        if one.nr not in taken and asker.may(one.head)
    ]
    found += await context.panorama.printed(scripts, asker.user, asker.groups)
    found.sort(key=lambda one: (one.title, one.nr.zfill(_WIDTH)))
    rows = [
        records.shown(
            one,
            asker.may(one.record),
            stored.runtime.get(one.nr, {}),
            stored.maintenance.get(one.nr),
        )
        for one in found
    ]
    panels = {name for row in rows for name in row} - _KNOWN
    further = sorted(panels, key=lambda name: name.zfill(_WIDTH))
    columns = (*COLUMNS, *(Column(name, "object") for name in further))
    answer = await select(context, request, local_schema("panorama", columns, ()), rows)
    return await sparse(context, request, answer, frozenset((*further, "maintenance")))


_WIDTH = 100


async def _one(context: Context, request: RestRequest, nr: str) -> tuple[Dashboard, Level, _Asker]:
    """Find the dashboard of a path, which is printed if need be; NotFound if he may not see it."""
    asker = await _asker(context, request)
    stored = await context.database.run(statements.read(asker.runtime, nr))
    for one in stored.dashboards:
        if asker.may(one.record):
            return one, asker.may(one.record), asker
        raise NotFound("no such dashboard")
    for script in await context.panorama.scripts():
        if script.nr == nr and asker.may(script.head):
            for made in await context.panorama.printed([script], asker.user, asker.groups):
                return made, asker.may(script.head), asker
    raise NotFound("no such dashboard")


async def dashboard(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer GET /mon/panorama/<nr>."""
    found, may, asker = await _one(context, request, where[0])
    stored = await context.database.run(statements.read(asker.runtime, found.nr))
    value = records.shown(
        found, may, stored.runtime.get(found.nr, {}), stored.maintenance.get(found.nr)
    )
    return await reselect(context, request, Document(value=value, columns=_SHOWN))


async def backups(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer GET /mon/panorama/<nr>/backups."""
    found, may, _ = await _one(context, request, where[0])
    _require(may, Level.WRITE)
    rows = [
        {
            "dashboard": record,
            "objects": Dashboard(nr=found.nr, record=record).panels,
            "title": record["tab"]["xdata"]["title"],
            "ts": at,
        }
        for at, record in await context.database.run(statements.former(found.nr))
    ]
    return await select(context, request, _BACKUPS, rows)


# -------------------------------------------------------------------- changing


def _require(may: Level, least: Level, what: str = "read-write access") -> None:
    if may < least:
        raise Forbidden("permission denied", f"{what} to the dashboard is needed")


async def create(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer POST /mon/panorama."""
    asker = await _asker(context, request)
    try:
        if asker.readonly and not asker.admin:
            raise Forbidden("permission denied", "dashboards are read-only for you")
        record, present = records.parted(records.checked(fields_of(request), asker.user))
        if not asker.admin:
            record["user"] = asker.user
        taken = {one.nr for one in await context.panorama.scripts()}
        first = context.config.panorama.new_files_start_at
        now = context.wall.now()
        nr = await context.database.change(
            statements.add(first, taken, record, (asker.runtime, present), now)
        )
    except RestError as error:
        _audit(request, "create", "", error)
        raise
    _audit(request, "create", nr)
    return Document(value={"message": "successfully created dashboard.", "nr": int(nr), "count": 1})


async def replace(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer POST /mon/panorama/<nr>."""
    return await _change(context, request, where[0], patch=False)


async def update(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer PATCH /mon/panorama/<nr>."""
    return await _change(context, request, where[0], patch=True)


async def _change(context: Context, request: RestRequest, nr: str, *, patch: bool) -> Answer:
    old, may, asker = await _one(context, request, nr)
    try:
        _require_stored(old)
        _require(may, Level.WRITE)
        fields = fields_of(request)
        if patch:
            stored = await context.database.run(statements.read(asker.runtime, nr))
            whole = records.shown(old, may, stored.runtime.get(nr, {}), None)
            before = {key: value for key, value in whole.items() if key not in records.COMPUTED}
            sent = {key: value for key, value in fields.items() if key not in records.COMPUTED}
            fields = merged(before, sent)
        record, present = records.parted(records.checked(fields, old.record["user"]))
        if not asker.admin and record["user"] != old.record["user"]:
            raise Forbidden("permission denied", "user: only administrators set another owner")
        if not records.shared(old.record, record):
            _require(may, Level.OWNER, "groups and users: owner's access")
        done = await context.database.change(
            statements.replace(old, record, (asker.runtime, present), context.wall.now())
        )
        if not done:
            raise Conflict("the dashboard was changed meanwhile", "read it again and repeat this")
    except RestError as error:
        _audit(request, "change", nr, error)
        raise
    _audit(request, "change", nr)
    return Document(value={"message": "successfully saved 1 dashboard.", "count": 1})


def _require_stored(found: Dashboard) -> None:
    if found.scripted:
        raise Forbidden("permission denied", "the dashboard is scripted: change its file")


async def delete(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer DELETE /mon/panorama/<nr>."""
    old, may, _ = await _one(context, request, where[0])
    try:
        _require_stored(old)
        _require(may, Level.OWNER, "owner's access")
        if not await context.database.change(statements.remove(old.nr)):
            raise NotFound("no such dashboard")
    except RestError as error:
        _audit(request, "delete", old.nr, error)
        raise
    _audit(request, "delete", old.nr)
    return Document(value={"message": "successfully removed 1 dashboard.", "count": 1})


async def halt(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer POST /mon/panorama/<nr>/maintenance."""
    text = fields_of(request).get("text")
    if text is None:
        raise BadRequest("missing argument: text", "text is a required argument")
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT or "\0" in text:
        raise BadRequest(
            "invalid text", f"text: expected a text of at most {_LONGEST_TEXT} characters"
        )
    title = await _set(context, request, where[0], text)
    return Document(value={"message": f"dashboard {title} put into maintenance mode"})


async def resume(context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
    """Answer DELETE /mon/panorama/<nr>/maintenance."""
    title = await _set(context, request, where[0], None)
    return Document(value={"message": f"maintenance mode removed from dashboard {title}"})


async def _set(context: Context, request: RestRequest, nr: str, text: str | None) -> str:
    found, may, _ = await _one(context, request, nr)
    what = "maintenance end" if text is None else "maintenance begin"
    try:
        _require(may, Level.WRITE)
        await context.database.change(statements.halt(found.nr, text))
    except RestError as error:
        _audit(request, what, found.nr, error)
        raise
    _audit(request, what, found.nr)
    return found.title or "no name"


def _audit(request: RestRequest, what: str, target: str, error: RestError | None = None) -> None:
    audit(
        request.identity,
        request.caller,
        f"dashboard {what}",
        target=target,
        result="ok" if error is None else error.message,
    )


_ITEM = Endpoint(
    path="/mon/panorama/<nr>",
    description="one dashboard",
    handler=dashboard,
    shape="object",
    parameters=OBJECT_PARAMETERS,
    columns=_SHOWN,
)
_WRITE = evolve(_ITEM, parameters=FIELDS, columns=_WRITTEN, structured=True)
_HALT = evolve(_WRITE, path="/mon/panorama/<nr>/maintenance", columns=_TOLD)

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/panorama",
        description="dashboards",
        text="All that the asker may see, by title: administrators all, others their own and "
        "those that name them or a contact group of theirs. What panels show at present is each "
        "user's own; administrators share it.",
        handler=dashboards,
        parameters=LIST_PARAMETERS,
        columns=_SHOWN,
    ),
    Endpoint(
        path="/mon/panorama",
        methods=("POST",),
        description="create a dashboard",
        text="It gets the lowest free number from `panorama.new_files_start_at` on and belongs to "
        "who asks. A dashboard that was read here or copied from a `.tab` file can be sent as it "
        "is.",
        handler=create,
        shape="object",
        parameters=FIELDS,
        columns=_MADE,
        structured=True,
    ),
    _ITEM,
    evolve(
        _WRITE, methods=("POST",), description="replace a dashboard", handler=replace,
        text="Needs read-write access, and the owner's to change who may see it.",
    ),
    evolve(
        _WRITE, methods=("PATCH",), description="change parts of a dashboard", handler=update,
        text="The body is merged into what is stored: null removes a panel or a setting, lists "
        "are changed position by position.",
    ),
    evolve(
        _WRITE, methods=("DELETE",), description="remove a dashboard", handler=delete,
        text="Needs the owner's access.", parameters=(), structured=False,
    ),
    Endpoint(
        path="/mon/panorama/<nr>/backups",
        description="what a dashboard was before",
        text="Up to five former records, at least ten minutes apart, the newest first.",
        handler=backups,
        parameters=LIST_PARAMETERS,
        columns=BACKUP_COLUMNS,
    ),
    evolve(
        _HALT, methods=("POST",), description="put a dashboard into maintenance mode",
        handler=halt, text="Needs read-write access. Again: with another text.",
        parameters=(
            Parameter(name="text", description="what is told instead of its panels, may be empty",
                      required=True),
        ),
    ),
    evolve(
        _HALT, methods=("DELETE",), description="end the maintenance mode of a dashboard",
        handler=resume, text="Also when it is in none.", parameters=(), structured=False,
    ),
)  # fmt: skip
