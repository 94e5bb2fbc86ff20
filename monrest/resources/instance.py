"""The instance itself and who is asking (api.md, "Instance info"; auth-and-commands.md, 5.1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve

from monrest import __release_date__
from monrest.errors import SitesFailed
from monrest.query.model import Pushed, Test
from monrest.query.schema import CoreType
from monrest.resources.declare import OBJECT_PARAMETERS, Context, Endpoint
from monrest.resources.fetch import reselect
from monrest.sites.fanout import fan_out
from monrest.sites.site import Site
from monrest.values import (
    ADMIN,
    READ_ONLY,
    ROLES,
    Answer,
    Capabilities,
    Column,
    Document,
    RestRequest,
    SiteProblem,
)

REST_VERSION = "1"

INFO_COLUMNS = (
    Column("extra_link", "string", "", "link of the packager"),
    Column("extra_version", "string", "", "version of the packager"),
    Column("localtime", "time", "", "clock of this instance"),
    Column("mon_release_date", "string", "", "release date"),
    Column("mon_version", "string", "", "version of this instance"),
    Column("project_root", "string", "", "folder of the program"),
    Column("rest_version", "string", "", "version of the API"),
    Column("etc_path", "string", "", "folder of the configuration"),
    Column("var_path", "string", "", "folder of the state"),
)


def _spelled(columns: tuple[Column, ...], app: str) -> tuple[Column, ...]:
    """The columns with the site's own word in the place of ``mon``."""
    return tuple(evolve(one, name=own_word(one.name, app)) for one in columns)


def own_word(name: str, app: str) -> str:
    """A column's name as this site spells it: ``mon_version`` with its own word for ``mon``."""
    return "_".join(app if word == "mon" else word for word in name.split("_"))


async def info(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer /mon."""
    app = context.names.app
    value = {
        "extra_link": "",
        "extra_version": "",
        "localtime": context.clock.seconds(),
        f"{app}_release_date": __release_date__,
        f"{app}_version": context.version,
        "project_root": str(Path(__file__).resolve().parent.parent.parent),
        "rest_version": REST_VERSION,
        "etc_path": str(Path(context.config_path).resolve().parent) if context.config_path else "",
        "var_path": context.config.server.var_dir,
    }
    columns = _spelled(INFO_COLUMNS, app)
    return reselect(context, request, Document(value=value, columns=columns))


WHOAMI_COLUMNS = (
    Column("alias", "string", "", "longer name, null for a user who is no contact"),
    Column("auth_src", "string", "", "how the request was authenticated"),
    Column("can_submit_commands", "boolean", "", "1 if the user may send commands"),
    Column("email", "string", "", "mail address, null for a user who is no contact"),
    Column("groups", "array_of_strings", "", "contact groups"),
    Column("has_mon_profile", "boolean", "", "whether data of the user is stored here"),
    Column("id", "string", "", "name of the user"),
    Column("locked", "boolean", "", "whether the user is locked"),
    Column("original_username", "string", "", "name before it was transformed"),
    Column("roles", "array_of_strings", "", "roles"),
    Column("tz", "string", "", "time zone of the user's profile"),
)

_CONTACT: tuple[tuple[str, CoreType], ...] = (
    ("name", "string"),
    ("alias", "string"),
    ("email", "string"),
    ("can_submit_commands", "int"),
)
_MEMBERS: tuple[tuple[str, CoreType], ...] = (("name", "string"),)
_COMMAND_ROLES = (
    "authorized_for_all_host_commands",
    "authorized_for_all_service_commands",
    "authorized_for_system_commands",
)


async def whoami(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer /mon/whoami; what the cores do not tell now stays empty."""
    identity = request.identity
    contacts, failed = await _ask(
        context, Pushed(table="contacts", filter=Test("name", "=", identity.user)), _CONTACT
    )
    groups, failed_too = await _ask(
        context,
        Pushed(table="contactgroups", filter=Test("members", ">=", identity.user)),
        _MEMBERS,
    )
    held = [role for role in ROLES if identity.may(role)]
    may_submit = all(row[3] for row in contacts)
    if any(identity.may(role) for role in _COMMAND_ROLES):
        may_submit = True
    elif READ_ONLY in identity.roles:
        may_submit = False
    if not may_submit and READ_ONLY not in held:
        held.append(READ_ONLY)
    value: dict[str, Any] = {
        "alias": next((row[1] for row in contacts), None),
        "auth_src": identity.source,
        "can_submit_commands": int(may_submit or identity.may(ADMIN)),
        "email": next((row[2] for row in contacts), None),
        "groups": sorted({row[0] for row in groups}),
        f"has_{context.names.app}_profile": False,
        "id": identity.user,
        "locked": False,
        "original_username": identity.user,
        "roles": sorted(held),
        "tz": None,
    }
    problems = {one.site: one for one in (*failed, *failed_too)}
    columns = _spelled(WHOAMI_COLUMNS, context.names.app)
    answer = Document(value=value, columns=columns, failed_sites=tuple(problems.values()))
    return reselect(context, request, answer)


async def _ask(
    context: Context, pushed: Pushed, columns: tuple[tuple[str, CoreType], ...]
) -> tuple[list[list[Any]], tuple[SiteProblem, ...]]:
    """Rows about the user from all sites; none of it is worth failing for."""

    def plan(_site: Site, capabilities: Capabilities) -> Pushed | None:
        known = tuple(name for name, _ in columns if capabilities.has(pushed.table, name))
        return Pushed(table=pushed.table, columns=known, filter=pushed.filter) if known else None

    if not context.sites.sites:
        return [], ()
    try:
        gathered = await fan_out(context.sites.sites, plan, columns, context.clock)
    except SitesFailed as error:
        return [], error.problems
    return [row for answer in gathered.answers for row in answer.rows], gathered.problems


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon",
        description="basic information about this instance",
        handler=info,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=INFO_COLUMNS,
    ),
    Endpoint(
        path="/mon/whoami",
        description="the user who is asking",
        handler=whoami,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=WHOAMI_COLUMNS,
    ),
)
