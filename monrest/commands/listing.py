"""Reading the catalogue of commands: what can be sent, with which arguments, and who may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from monrest.api.endpoint import LIST_PARAMETERS, OBJECT_PARAMETERS, Context, Endpoint
from monrest.api.lists import local_schema, reselect, select
from monrest.base.errors import NotFound
from monrest.base.values import Answer, Column, Document, RestRequest
from monrest.commands.arguments import arguments_of, configured, limits
from monrest.commands.effects import UNKNOWN_TO_ICINGA2
from monrest.commands.permissions import needed, refused_to_all
from monrest.config.sections import CommandsConfig
from monrest.livestatus.catalogue import (
    ALL,
    Argument,
    Command,
    CommandKind,
    find,
    singular,
    suggestion,
)

COLUMNS = (
    Column("arguments", "array_of_strings", "", "objects with name, type, required, default, the "
           "least and the greatest number, and further names in aliases"),
    Column("core_name", "string", "", "name of the command in the core"),
    Column("description", "string", "", "what it does"),
    Column("disabled", "boolean", "", "1: the configuration forbids it to all users"),
    Column("icinga2", "boolean", "", "0: an Icinga 2 does not know it"),
    Column("kind", "string", "", "kind of object that it is for; sites are whole cores"),
    Column("lookup", "boolean", "", "1: sent once for every comment or downtime that is found"),
    Column("name", "string", "", "name of the command"),
    Column("needs", "string", "", "who may send it"),
    Column("number", "number", "", "type number of the command, as the configuration takes it"),
    Column("url", "string", "", "path that sends it"),
    Column("wants_comment", "boolean", "", "1: takes a comment that is kept at the object"),
)  # fmt: skip
_SCHEMA = local_schema("commands of cores", COLUMNS, ("kind", "name"))

PATHS: dict[CommandKind, str] = {
    **{
        kind: f"/{kind}/<name>/cmd/"
        for kind in ("hosts", "hostgroups", "servicegroups", "contacts", "contactgroups")
    },
    "services": "/services/<host>/<service>/cmd/",
    "sites": "/system/cmd/",
}
"""Kind of object to the path of its commands, up to the name."""


def url_of(command: Command) -> str:
    """The template of the path that sends the command."""
    return f"{PATHS[command.kind]}{command.name}"


def described(command: Command, config: CommandsConfig) -> dict[str, Any]:
    """The command as a row with ``COLUMNS``."""
    taken = arguments_of(command, required=config.require_comments_for_disable)
    return {
        "arguments": [_argument(command, argument, config) for argument in taken],
        "core_name": command.core_name,
        "description": command.description,
        "disabled": int(refused_to_all(command, config) is not None),
        "icinga2": int(command.core_name not in UNKNOWN_TO_ICINGA2),
        "kind": command.kind,
        "lookup": int(command.lookup),
        "name": command.name,
        "needs": needed(command.permission, singular(command.kind)),
        "number": command.number,
        "url": url_of(command),
        "wants_comment": int(command.wants_comment),
    }


def _argument(command: Command, argument: Argument, config: CommandsConfig) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": argument.name,
        "type": argument.type,
        "required": argument.required,
    }
    if not argument.required:
        own = configured(command, argument, config)
        document["default"] = argument.default if own is None else own
    if argument.type == "integer":
        document["least"], document["greatest"] = limits(command, argument.name)
    if argument.aliases:
        document["aliases"] = list(argument.aliases)
    return document


@Endpoint(
    path="/cmd", description="lists all commands", parameters=LIST_PARAMETERS, columns=COLUMNS
)
async def catalogue(context: Context, request: RestRequest, _: tuple[str, ...]) -> Answer:
    rows = [described(command, context.config.commands) for command in ALL]
    return await select(context, request, _SCHEMA, rows)


def _describes(kind: CommandKind) -> Callable[..., Any]:
    async def handler(context: Context, request: RestRequest, names: tuple[str, ...]) -> Answer:
        command = find(kind, names[-1])
        if command is None:
            raise NotFound(
                "no such command",
                f"there is no command {names[-1][:100]} for type {singular(kind)}",
                extra={"help": suggestion(kind, names[-1])},
            )
        row = described(command, context.config.commands)
        value = {"message": "nothing was sent: POST sends the command", **row}
        answer = Document(value=value, columns=_OBJECT_COLUMNS, order=tuple(value))
        return await reselect(context, request, answer)

    return handler


_OBJECT_COLUMNS = (Column("message", "string", "", "how to send it"), *COLUMNS)


def _description(path: str, kind: CommandKind) -> Endpoint:
    return Endpoint(
        path=f"{path}<command>",
        description=f"describes a command for a {singular(kind)}",
        text="Nothing is sent, and the object need not exist.",
        handler=_describes(kind),
        shape="object",
        parameters=OBJECT_PARAMETERS,
        columns=_OBJECT_COLUMNS,
    )


DESCRIPTIONS: tuple[Endpoint, ...] = (
    *(_description(path, kind) for kind, path in PATHS.items()),
    _description("/core/cmd/", "sites"),
    _description("/cmd/", "sites"),
)
