"""The configuration that is in force, without its secrets.

Rules: docs/spec/http.md, "The configuration that is shown".
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from attrs import asdict, fields, frozen

from monrest.api.endpoint import OBJECT_PARAMETERS, Context, Endpoint
from monrest.api.lists import reselect
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.config import Config
from monrest.instance.secrets import HIDDEN, shown

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
COLUMNS = tuple(
    sorted(
        (
            *_DERIVED,
            *(
                Column(
                    one.name,
                    "array_of_strings" if one.name in ("editor", "sites") else "object",
                    "",
                    f"every `[[{one.name}]]`"
                    if one.name in ("editor", "sites")
                    else f"the table `[{one.name}]`",
                )
                for one in fields(Config)
            ),
        ),
        key=lambda one: one.name,
    )
)


@frozen(eq=False, kw_only=True)
class SettingEndpoints:
    """The settings of an instance, whose configuration is the file ``config_path``."""

    version: str
    config_path: str

    def _derived(self, context: Context) -> dict[str, Any]:
        config = context.config
        path = str(Path(self.config_path).resolve()) if self.config_path else ""
        return {
            "config_file": path,
            "etc_path": str(Path(path).parent) if path else "",
            "hostname": socket.gethostname(),
            context.names.own("mon_version"): self.version,
            "project_root": str(Path(__file__).resolve().parent.parent.parent),
            "url_prefix": f"/{context.names.app}",
            "use_feature_api_keys": int(config.auth.api_keys_enabled),
            "use_feature_configtool": int(any(config.tool_of(site) for site in config.sites)),
            "use_feature_editor": int(bool(config.editor)),
            "use_feature_logcache": int(config.logcache.enabled),
            "var_path": config.server.var_dir,
        }

    async def settings(self, context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
        """Answer GET /mon/config."""
        value = {**shown(asdict(context.config)), **self._derived(context)}
        document = Document(value=dict(sorted(value.items())), columns=COLUMNS)
        return await reselect(context, request, document)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/config",
        description="the configuration that is in force",
        text="Every option with its value or default, by the tables of the configuration file, "
        "beside what follows from it. Texts whose name has `auth`, `key`, `secret`, `pass` or "
        "`token` in it, credentials inside of URLs, and what such words are given inside of "
        f"commands, are shown as `{HIDDEN}`; `secret_key_file` is left out.",
        handler=SettingEndpoints.settings,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
        roles=("admin",),
    ),
)
