"""The instance itself."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from monrest import __release_date__
from monrest.api.endpoint import OBJECT_PARAMETERS, Context, Endpoint
from monrest.api.lists import own_columns, reselect
from monrest.base.values import Answer, Column, Document, RestRequest

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


@frozen(eq=False, kw_only=True)
class InstanceEndpoints:
    """What an instance says of itself, whose configuration is the file ``config_path``."""

    version: str
    config_path: str

    async def info(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        """Answer /mon."""
        app = context.names.app
        value = {
            "extra_link": "",
            "extra_version": "",
            "localtime": context.wall.now(),
            f"{app}_release_date": __release_date__,
            f"{app}_version": self.version,
            "project_root": str(Path(__file__).resolve().parent.parent.parent),
            "rest_version": REST_VERSION,
            "etc_path": str(Path(self.config_path).resolve().parent) if self.config_path else "",
            "var_path": context.config.server.var_dir,
        }
        columns = own_columns(INFO_COLUMNS, context.names)
        return await reselect(context, request, Document(value=value, columns=columns))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon",
        description="basic information about this instance",
        handler=InstanceEndpoints.info,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=INFO_COLUMNS,
    ),
)
