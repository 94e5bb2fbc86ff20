"""The configuration that is in force, without its secrets (frontend-data.md, section 12)."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import asdict, fields

from monrest.config import Config
from monrest.resources.declare import OBJECT_PARAMETERS, Context, Endpoint
from monrest.resources.fetch import reselect
from monrest.resources.instance import own_word
from monrest.values import Answer, Column, Document, RestRequest

HIDDEN = "***"

_OMITTED = frozenset({"secret_key_file"})
_SECRET = re.compile("auth|key|secret|pass|token", re.IGNORECASE)
_IN_URL = re.compile(r"(?<=://)[^\s/@]*(?:@[^\s/@]*)*@")
_IN_QUERY = re.compile(
    r"([?&][^=&\s]*(?:auth|key|secret|pass|token)[^=&\s]*=)[^&\s]*", re.IGNORECASE
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


def shown(value: Any, name: str = "") -> Any:
    """A value of the configuration for an administrator's eyes, keys sorted.

    Texts are hidden whose own key sounds like a secret, and credentials inside of URLs. Numbers
    and flags are no secrets, whatever they are called.
    """
    if isinstance(value, Mapping):
        keys = sorted(key for key in value if key not in _OMITTED)
        return {key: shown(value[key], key) for key in keys}
    if isinstance(value, (list, tuple)):
        return [shown(one, name) for one in value]
    if not isinstance(value, str) or not value:
        return value
    if _SECRET.search(name):
        return HIDDEN
    return _IN_QUERY.sub(rf"\1{HIDDEN}", _IN_URL.sub(f"{HIDDEN}@", value))


def _derived(context: Context) -> dict[str, Any]:
    config = context.config
    path = str(Path(context.config_path).resolve()) if context.config_path else ""
    return {
        "config_file": path,
        "etc_path": str(Path(path).parent) if path else "",
        "hostname": socket.gethostname(),
        own_word("mon_version", context.names.app): context.version,
        "project_root": str(Path(__file__).resolve().parent.parent.parent),
        "url_prefix": f"/{context.names.app}",
        "use_feature_api_keys": int(config.auth.api_keys_enabled),
        "use_feature_configtool": int(any(config.tool_of(site) for site in config.sites)),
        "use_feature_editor": int(bool(config.editor)),
        "use_feature_logcache": int(config.logcache.enabled),
        "var_path": config.server.var_dir,
    }


async def settings(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    """Answer GET /mon/config."""
    value = {**shown(asdict(context.config)), **_derived(context)}
    document = Document(value=dict(sorted(value.items())), columns=COLUMNS)
    return reselect(context, request, document)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/mon/config",
        description="the configuration that is in force",
        text="Every option with its value or default, by the tables of the configuration file, "
        "beside what follows from it. Texts whose name has `auth`, `key`, `secret`, `pass` or "
        f"`token` in it, and credentials inside of URLs, are shown as `{HIDDEN}`; "
        "`secret_key_file` is left out.",
        handler=settings,
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=COLUMNS,
        roles=("admin",),
    ),
)
