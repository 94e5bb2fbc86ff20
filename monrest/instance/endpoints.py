"""The instance itself."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from monrest import __release_date__
from monrest.api.endpoint import OBJECT_PARAMETERS, Context, Endpoint
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.rows.fetch import reselect

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


def spelled(columns: tuple[Column, ...], app: str) -> tuple[Column, ...]:
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
        "localtime": context.wall.now(),
        f"{app}_release_date": __release_date__,
        f"{app}_version": context.version,
        "project_root": str(Path(__file__).resolve().parent.parent.parent),
        "rest_version": REST_VERSION,
        "etc_path": str(Path(context.config_path).resolve().parent) if context.config_path else "",
        "var_path": context.config.server.var_dir,
    }
    columns = spelled(INFO_COLUMNS, app)
    return await reselect(context, request, Document(value=value, columns=columns))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon",
        description="basic information about this instance",
        handler=info,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=INFO_COLUMNS,
    ),
)
