"""The instance itself: its paths, what it is, and the configuration that is in force.

Rules: docs/spec/http.md, "The configuration that is shown".
"""

from __future__ import annotations

import socket
from pathlib import Path

from attrs import asdict, fields, frozen

from monrest import __release_date__, __version__
from monrest.api.endpoint import (
    LIST_PARAMETERS,
    METHOD_ORDER,
    OBJECT_PARAMETERS,
    Context,
    Endpoint,
    declared,
)
from monrest.api.family import Family, Served
from monrest.api.lists import local_schema, own_columns, reselect, select
from monrest.base.hidden import HIDDEN
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.commands.listing import url_of
from monrest.config import Config
from monrest.instance.hidden_settings import display_value
from monrest.instance.stats import FigureEndpoints
from monrest.livestatus.catalogue import ALL

REST_VERSION = "1"

INDEX_COLUMNS = (
    Column("url", "string", "", "path with its variables in angle brackets"),
    Column("protocol", "string", "", "method"),
    Column("description", "string", "", "what it is for"),
)
_INDEX = local_schema("index", INDEX_COLUMNS, ("url",))
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

_DERIVED = (
    Column("config_file", "string", "", "file of the configuration, empty for the demo"),
    Column("etc_path", "string", "", "folder of the configuration"),
    Column("hostname", "string", "", "host on which the daemon runs"),
    Column("mon_version", "string", "", "version of this instance"),
    Column("project_root", "string", "", "folder of the program"),
    Column("url_prefix", "string", "", "path below which everything is answered"),
    Column("use_feature_api_keys", "boolean", "", "1: API keys are taken"),
    Column("use_feature_configtool", "boolean", "", "1: some object configuration can be changed"),
    Column("use_feature_editor", "boolean", "", "1: there are files for the editor"),
    Column("use_feature_logcache", "boolean", "", "1: log lines are cached"),
    Column("var_path", "string", "", "folder of the state"),
)
SETTING_COLUMNS = tuple(
    sorted(
        (
            *_DERIVED,
            *(
                Column(
                    attribute.name,
                    "array_of_strings" if attribute.name in ("editor", "sites") else "object",
                    "",
                    f"every `[[{attribute.name}]]`"
                    if attribute.name in ("editor", "sites")
                    else f"the table `[{attribute.name}]`",
                )
                for attribute in fields(Config)
            ),
        ),
        key=lambda column: column.name,
    )
)


def _index(path: str, description: str) -> Endpoint:
    return Endpoint(
        path=path,
        description=description,
        parameters=LIST_PARAMETERS,
        columns=INDEX_COLUMNS,
    )


def spelled(path: str, app: str) -> str:
    """A template with the site's own word in the place of ``mon``."""
    return f"/{app}{path[4:]}" if path == "/mon" or path.startswith("/mon/") else path


@frozen(eq=False, kw_only=True)
class InstanceEndpoints:
    """The endpoints about the instance; ``config_path`` is the file of its configuration."""

    config_path: str

    @_index("/", "alias of /index")
    @_index("/index", "lists all rest urls")
    async def index(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        records = [
            {
                "url": spelled(endpoint.path, context.names.app),
                "protocol": method,
                "description": endpoint.description,
            }
            for endpoint in context.dispatch.router.endpoints
            for method in endpoint.methods
        ]
        records += [
            {"url": url_of(command), "protocol": "POST", "description": command.description}
            for command in ALL
        ]
        records.sort(key=lambda record: (record["url"], METHOD_ORDER.index(record["protocol"])))
        return await select(context, request, _INDEX, records)

    @Endpoint(
        path="/mon",
        description="basic information about this instance",
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=INFO_COLUMNS,
    )
    async def info(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        app = context.names.app
        value = {
            "extra_link": "",
            "extra_version": "",
            "localtime": context.wall.now(),
            f"{app}_release_date": __release_date__,
            f"{app}_version": __version__,
            "project_root": str(Path(__file__).resolve().parent.parent.parent),
            "rest_version": REST_VERSION,
            "etc_path": str(Path(self.config_path).resolve().parent) if self.config_path else "",
            "var_path": context.config.server.var_dir,
        }
        columns = own_columns(INFO_COLUMNS, context.names)
        return await reselect(context, request, Document(value=value, columns=columns))

    @Endpoint(
        path="/mon/config",
        description="the configuration that is in force",
        text="Every option with its value or default, by the tables of the configuration file, "
        "beside what follows from it. Texts whose name has `auth`, `key`, `secret`, `pass` or "
        "`token` in it, credentials inside of URLs, and what such words are given inside of "
        f"commands, are shown as `{HIDDEN}`; `secret_key_file` is left out.",
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=SETTING_COLUMNS,
        roles=("admin",),
    )
    async def settings(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        config = context.config
        path = str(Path(self.config_path).resolve()) if self.config_path else ""
        value = {
            **display_value(asdict(config)),
            "config_file": path,
            "etc_path": str(Path(path).parent) if path else "",
            "hostname": socket.gethostname(),
            context.names.own("mon_version"): __version__,
            "project_root": str(Path(__file__).resolve().parent.parent.parent),
            "url_prefix": f"/{context.names.app}",
            "use_feature_api_keys": int(config.auth.api_keys_enabled),
            "use_feature_configtool": int(any(config.tool_of(site) for site in config.sites)),
            "use_feature_editor": int(bool(config.editor)),
            "use_feature_logcache": int(config.logcache.enabled),
            "var_path": config.server.var_dir,
        }
        document = Document(value=dict(sorted(value.items())), columns=SETTING_COLUMNS)
        return await reselect(context, request, document)


FAMILY = Family(
    served=(
        Served(
            declared(InstanceEndpoints), lambda common: InstanceEndpoints(config_path=common.path)
        ),
        Served(
            declared(FigureEndpoints),
            lambda common: FigureEndpoints(figures=common.figures, meters=common.meters),
        ),
    ),
)
