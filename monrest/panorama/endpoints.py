"""Dashboards (docs/spec/panorama.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from attrs import evolve, frozen

from monrest.api.endpoint import LIST_PARAMETERS, Context, Endpoint, Parameter, declared
from monrest.api.family import Family, Life, Served
from monrest.api.fields import Fields, fields_of
from monrest.api.lists import local_schema, read_columns, select
from monrest.api.records import Records, Save, bound_owner
from monrest.api.rights import is_read_only
from monrest.base.audit import audited
from monrest.base.errors import BadRequest, Forbidden
from monrest.base.values import ADMIN, Answer, Column, Document, RestRequest
from monrest.panorama import model as records
from monrest.panorama import store as statements
from monrest.panorama.model import Dashboard, Level
from monrest.panorama.service import Panorama

_WIDTH = 100
_TEXT = records.free_text(
    "text", "what is shown instead of its panels, may be empty", longest=100_000, required=True
)

COLUMNS = (
    Column("file", "string", "", "where it is"),
    Column("file_version", "number", "", "version of its form, always 2"),
    Column("id", "string", "", "`pantab_` and its number"),
    Column("maintenance", "string", "", "why it is in maintenance; absent unless it is"),
    Column("nr", "number", "", "number; a word for some scripted ones"),
    Column("objects", "number", "", "number of panels"),
    Column("readonly", "boolean", "", "1: the user may not change it"),
    Column("scripted", "boolean", "", "1: a program prints it"),
    Column("tab", "object", "", "its settings, in `xdata`"),
    Column("ts", "time", "", "last change"),
    Column("user", "string", "", "owner"),
)
_PANEL = Column("panlet_<nr>", "object", "", "a panel each: what it shows, in `xdata`")
_SCHEMA = local_schema("panorama", COLUMNS, ())
_OF_DOCUMENTS = frozenset({"objects", "tab"})
"""The columns that need more of a dashboard than whose it is and who may see it."""
_SHOWN = (*COLUMNS[:6], _PANEL, *COLUMNS[6:])
BACKUP_COLUMNS = (
    Column("dashboard", "object", "", "`tab`, `user` and panels, as a POST takes them"),
    Column("objects", "number", "", "number of panels"),
    Column("title", "string", "", "title"),
    Column("ts", "time", "", "until when it was like this"),
)
_BACKUPS = local_schema("panorama_backups", BACKUP_COLUMNS, ())

_SETTINGS = records.SETTINGS.declared
_PARAMETERS = (
    Parameter(
        name="tab",
        description="settings: an object whose `xdata` has `map`, "
        + ", ".join(
            f"`{setting.name}` ({setting.description}, {setting.limit})" for setting in _SETTINGS
        )
        + '; rights are lists of `{"<name>": "read-only"}` or `"read-write"`',
        type="object",
    ),
    Parameter(
        name="panlet_<nr>",
        description="a panel: an object whose `xdata` has `cls`, `general`, `appearance`, "
        "`label`, `layout`, `link`, `popup`, `map`",
        type="object",
    ),
    records.USER,
    records.VERSION,
)


@frozen(kw_only=True)
class _Asker:
    """The user of a request, as far as dashboards are concerned."""

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
        """The user whose state of panels is shown; administrators share an empty name."""
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


@frozen(kw_only=True)
class AccessibleDashboard:
    """A dashboard with what the user may do with it, and what they see on it at present."""

    dashboard: Dashboard
    asker: _Asker
    may: Level
    present: Mapping[str, Any]
    maintenance: str | None

    @property
    def nr(self) -> str:
        return self.dashboard.nr

    def require(self, least: Level, what: str = "read-write access") -> None:
        if self.may < least:
            raise Forbidden("permission denied", f"{what} to the dashboard is needed")

    def require_stored(self) -> None:
        if self.dashboard.scripted:
            raise Forbidden("permission denied", "the dashboard is scripted: change its file")


_MAINTENANCE = "/mon/panorama/<nr>/maintenance"

_TOLD = (Column("message", "string", "", "what was done"),)


@frozen(kw_only=True, eq=False)
class DashboardRecords(Records[AccessibleDashboard]):
    """The dashboards that a user sees, and what is stored of one that is sent."""

    word = "dashboard"
    title = "dashboard"
    path = "/mon/panorama"
    key = "nr"
    summary = "dashboards"
    columns = COLUMNS
    answer_columns = _SHOWN
    optional = frozenset({"maintenance"})
    limits = statements.LIMITS
    fields = Fields((), computed=records.COMPUTED)
    further_parameters = _PARAMETERS
    key_column = Column("nr", "number", "", "number of the new dashboard")
    created = "successfully created dashboard."
    texts: ClassVar = {
        "list": "All that the user may see, by title: administrators all, others their own and "
        "those that name them or a contact group of theirs. What panels show at present is each "
        "user's own; administrators share it.",
        "create": "It gets the lowest free number from `panorama.new_files_start_at` on and "
        "belongs to the user. A dashboard that was read here or copied from a `.tab` file can be "
        "sent as it is.",
        "replace": "Needs read-write access, and the owner's to change who may see it.",
        "change": "The body is merged into what is stored: null removes a panel or a setting, "
        "lists are changed position by position.",
        "remove": "Needs the owner's access.",
    }

    panorama: Panorama

    async def find(
        self, context: Context, request: RestRequest, key: str | None
    ) -> Sequence[AccessibleDashboard]:
        """Return those that the user may see by title; scripted ones are printed."""
        asker = await _asker(context, request)
        columns = None if key is not None else await read_columns(context, request, _SCHEMA)
        documents = columns is None or not columns.isdisjoint(_OF_DOCUMENTS)
        reading = statements.read(asker.runtime, key, asker.may, documents=documents)
        stored = await self.database.run(reading)
        dashboards, taken = list(stored.dashboards), stored.numbers
        if key is None or not taken:
            scripts = [
                script
                for script in await self.panorama.scripts()
                if key in (None, script.nr) and script.nr not in taken and asker.may(script.head)
            ]
            dashboards += await self.panorama.printed(scripts, asker.user, asker.groups)
        dashboards.sort(key=lambda dashboard: (dashboard.title, dashboard.nr.zfill(_WIDTH)))
        return [
            AccessibleDashboard(
                dashboard=dashboard,
                asker=asker,
                may=asker.may(dashboard.record),
                present=stored.runtime.get(dashboard.nr, {}),
                maintenance=stored.maintenance.get(dashboard.nr),
            )
            for dashboard in dashboards
        ]

    def name(self, dashboard: AccessibleDashboard) -> str:
        return dashboard.nr

    async def rows(
        self, context: Context, dashboards: Iterable[AccessibleDashboard]
    ) -> list[dict[str, Any]]:
        del context
        return [
            records.dashboard_record(
                dashboard.dashboard, dashboard.may, dashboard.present, dashboard.maintenance
            )
            for dashboard in dashboards
        ]

    def further(self, names: Iterable[str]) -> list[Column]:
        return [
            Column(name, "object") for name in sorted(names, key=lambda name: name.zfill(_WIDTH))
        ]

    def document(self, dashboard: AccessibleDashboard) -> dict[str, Any]:
        """Return what is stored, with what panels show at present."""
        whole = records.dashboard_record(
            dashboard.dashboard, dashboard.may, dashboard.present, None
        )
        return {key: value for key, value in whole.items() if key not in records.COMPUTED}

    async def add(self, context: Context, request: RestRequest, save: Save) -> int:
        """A dashboard of a user who is no administrator is always the user's own."""
        asker = await _asker(context, request)
        if asker.readonly and not asker.admin:
            raise Forbidden("permission denied", "dashboards are read-only for you")
        record, present = records.parted(records.checked(save.fields, asker.user))
        if not asker.admin:
            record["user"] = asker.user
        taken = {script.nr for script in await self.panorama.scripts()}
        first, now = context.config.panorama.new_files_start_at, context.wall.now()
        owner = bound_owner(request.identity, record["user"])
        limits = evolve(statements.LIMITS, size=context.config.panorama.memory)
        work = statements.add(first, taken, record, (asker.runtime, present), now, owner, limits)
        return int(await self.database.change(work))

    async def require_write(
        self, context: Context, request: RestRequest, old: AccessibleDashboard
    ) -> None:
        del context, request
        old.require_stored()
        old.require(Level.WRITE)

    async def require_removal(
        self, context: Context, request: RestRequest, old: AccessibleDashboard
    ) -> None:
        del context, request
        old.require_stored()
        old.require(Level.OWNER, "owner's access")

    async def replace(
        self, context: Context, request: RestRequest, old: AccessibleDashboard, save: Save
    ) -> bool:
        """Only owners change who may see it, and only administrators change the owner."""
        before = old.dashboard.record
        record, present = records.parted(records.checked(save.fields, before["user"]))
        if not old.asker.admin and record["user"] != before["user"]:
            raise Forbidden("permission denied", "user: only administrators set another owner")
        if not records.shared(before, record):
            old.require(Level.OWNER, "groups and users: owner's access")
        seen = (old.asker.runtime, present)
        owner = bound_owner(request.identity, record["user"])
        limits = evolve(statements.LIMITS, size=context.config.panorama.memory)
        now = context.wall.now()
        work = statements.replace(old.dashboard, record, seen, now, owner, limits)
        return await self.database.change(work)

    async def remove(self, old: AccessibleDashboard) -> bool:
        return await self.database.change(statements.remove(old.dashboard))

    @Endpoint(
        path="/mon/panorama/<nr>/backups",
        description="what a dashboard was before",
        text="Up to five former records, at least ten minutes apart, the newest first.",
        parameters=LIST_PARAMETERS,
        columns=BACKUP_COLUMNS,
    )
    async def backups(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        dashboard = await self.find_one(context, request, where[0])
        dashboard.require(Level.WRITE)
        rows = [
            {
                "dashboard": record,
                "objects": Dashboard(nr=dashboard.nr, record=record).panels,
                "title": record["tab"]["xdata"]["title"],
                "ts": at,
            }
            for at, record in await self.database.run(statements.former(dashboard.nr))
        ]
        return await select(context, request, _BACKUPS, rows)

    @Endpoint(
        path=_MAINTENANCE,
        methods=("POST",),
        description="put a dashboard into maintenance mode",
        text="Needs read-write access. Again: with another text.",
        shape="object",
        parameters=(_TEXT,),
        columns=_TOLD,
        structured=True,
    )
    async def halt(self, context: Context, request: RestRequest, where: tuple[str, ...]) -> Answer:
        value = fields_of(request).get("text")
        if value is None:
            raise BadRequest("missing argument: text", "text is a required argument")
        title = await self._set(context, request, where[0], _TEXT.read(value))
        return Document(value={"message": f"dashboard {title} put into maintenance mode"})

    @Endpoint(
        path=_MAINTENANCE,
        methods=("DELETE",),
        description="end the maintenance mode of a dashboard",
        text="Also when it is in none.",
        shape="object",
        parameters=(),
        columns=_TOLD,
    )
    async def resume(
        self, context: Context, request: RestRequest, where: tuple[str, ...]
    ) -> Answer:
        title = await self._set(context, request, where[0], None)
        return Document(value={"message": f"maintenance mode removed from dashboard {title}"})

    async def _set(self, context: Context, request: RestRequest, nr: str, text: str | None) -> str:
        dashboard = await self.find_one(context, request, nr)
        what = "maintenance end" if text is None else "maintenance begin"
        with audited(request, f"dashboard {what}", dashboard.nr):
            dashboard.require(Level.WRITE)
            await self.database.change(statements.halt(dashboard.nr, text))
        return dashboard.dashboard.title or "no name"


FAMILY = Family(
    life=Life(
        lambda common: Panorama(
            common.reactor, common.wall, common.database, common.threads, common.config.panorama
        ),
        configure=lambda common, panorama: panorama.configure(common.config.panorama),
    ),
    served=(
        Served(
            (*DashboardRecords.endpoints(), *declared(DashboardRecords)),
            lambda common: DashboardRecords(
                database=common.database, panorama=common.the(Panorama)
            ),
        ),
    ),
)
