"""The expanded check command of hosts and services.

Only values in rows of a host, a service and the list of commands are used; a macro without one
stays as it is and is reported. Rules: docs/spec/objectconfig.md, "Command lines".
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from attrs import evolve, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from monrest.api.endpoint import Context, Endpoint, Handler
from monrest.api.lists import local_schema, select
from monrest.api.visibility import CONFIGURATION, SYSTEM, view_of
from monrest.base.errors import BadRequest, Forbidden, SitesFailed, all_sites_failed
from monrest.base.hidden import HIDDEN
from monrest.base.values import Answer, Capabilities, Column, RestRequest, Rows, SiteProblem
from monrest.config.patterns import MacroNames, Replacement
from monrest.livestatus.core_errors import LivestatusError
from monrest.query.column_names import TableSchema
from monrest.query.limit import Limit
from monrest.query.model import Condition, Pushed
from monrest.query.regex import compile_pattern
from monrest.query.scalars import number_of, text_of
from monrest.rows.columns import HOSTS, SERVICES
from monrest.rows.endpoints import matching
from monrest.rows.fetch import fetch
from monrest.sites.fanout import fan_out
from monrest.sites.federation.answers import records as records_of
from monrest.sites.federation.federated_site import FederatedSite
from monrest.sites.site import Site

_MACRO = re.compile(r"\$([A-Za-z0-9_:-]+)\$")
_ARGUMENT = re.compile(r"ARG([0-9]+)\Z")
_NOT_ESCAPED = re.compile(r"(?<!\\)!")
NOT_EXPANDED = "could not expand all macros!"
NO_COMMAND = "no command defined"

_STATES = {
    "HOST": ("UP", "DOWN", "UNREACHABLE"),
    "SERVICE": ("OK", "WARNING", "CRITICAL", "UNKNOWN"),
}
_OF_BOTH = {
    "LATENCY": "latency", "OUTPUT": "plugin_output", "PERFDATA": "perf_data",
    "ATTEMPT": "current_attempt", "DOWNTIME": "scheduled_downtime_depth",
    "CHECKCOMMAND": "check_command", "NOTESURL": "notes_url_expanded",
}  # fmt: skip
_COLUMNS = {
    "HOST": {
        **_OF_BOTH, "ADDRESS": "address", "NAME": "name", "ALIAS": "alias",
        "NOTES": "notes_expanded",
    },
    "SERVICE": {**_OF_BOTH, "DESC": "description"},
}  # fmt: skip
"""Macros that are the value of a column, without the kind of object in front."""

_FURTHER = ("state", "state_type", "last_state_change", "max_check_attempts", "custom_variables")
HOST_FIELDS = (*_COLUMNS["HOST"].values(), *_FURTHER)
SERVICE_FIELDS = (*_COLUMNS["SERVICE"].values(), *_FURTHER, *(f"host_{n}" for n in HOST_FIELDS))
"""The columns that the macros of an object are made of."""

_PATTERN_VARIABLES = ("OBFUSCATE_REGEXP", "OBFUSCATE_REGEX", "OBFUSCATE_ME")
_TEXT_VARIABLES = ("OBFUSCATE_STRING", "OBFUSCATE_STR")


@frozen
class CommandLine:
    """``check_command``, ``command_line`` and ``error`` of the resource."""

    check_command: str
    command_line: str
    error: str = ""


def expand(
    check_command: str, commands: Mapping[str, str], macros: Mapping[str, str]
) -> CommandLine:
    """The line of a check: ``commands`` maps names to lines, ``macros`` names to values."""
    if not check_command:
        return CommandLine(NO_COMMAND, "")
    name, *arguments = _NOT_ESCAPED.split(check_command)
    line = commands.get(name)
    if line is None:
        return CommandLine("", "")
    missing: list[str] = []

    def plain(match: re.Match[str]) -> str:
        value = macros.get(match[1])
        if value is None:
            if not _ARGUMENT.match(match[1]):
                missing.append(match[1])
            return match[0]
        return value

    expanded = [_MACRO.sub(plain, argument) for argument in arguments]

    def whole(match: re.Match[str]) -> str:
        argument = _ARGUMENT.match(match[1])
        if argument:
            at = int(argument[1]) - 1
            return expanded[at] if 0 <= at < len(expanded) else ""
        return plain(match)

    text = _MACRO.sub(whole, line)
    text = text.replace("$$", "$").replace("\\;", ";").replace("\\!", "!")
    return CommandLine(check_command, text, NOT_EXPANDED if missing else "")


def object_macros(
    kind: Literal["HOST", "SERVICE"],
    row: Mapping[str, Any],
    prefix: str,
    site: Mapping[str, str],
    now: float,
) -> dict[str, str]:
    """Macros of an object; ``prefix`` is that of its columns (``host_`` in rows of services)."""
    state = int(number_of(row.get(f"{prefix}state")) or 0)
    changed = number_of(row.get(f"{prefix}last_state_change")) or now
    words = _STATES[kind]
    macros = {
        **{kind + name: _text(row.get(prefix + of)) for name, of in _COLUMNS[kind].items()},
        f"MAX{kind}ATTEMPTS": _text(row.get(f"{prefix}max_check_attempts")),
        f"{kind}STATEID": str(state),
        f"{kind}STATE": words[state] if 0 <= state < len(words) else "",
        f"{kind}STATETYPE": "HARD" if row.get(f"{prefix}state_type") else "SOFT",
        f"{kind}DURATION": str(int(now - changed)),
        **{kind + name: text for name, text in site.items()},
    }
    for name, text in variables(row, prefix).items():
        macros[f"_{kind}{name.upper()}"] = text
    return macros


def variables(row: Mapping[str, Any], prefix: str) -> Mapping[str, str]:
    """Custom variables as texts; a site that sends something else has sent none."""
    sent = row.get(f"{prefix}custom_variables")
    return {name: text_of(value) for name, value in sent.items()} if isinstance(sent, dict) else {}


def command_of(row: Mapping[str, Any], source: str) -> str:
    """The command of an object: what ``source`` holds, else its check command.

    ``source`` is an attribute, or a custom variable with its underscore
    (``display.show_full_commandline_source``).
    """
    if source.startswith("_"):
        wanted = source[1:].upper()
        own = variables(row, "")
        text = next((value for name, value in own.items() if name.upper() == wanted), "")
    else:
        text = text_of(row.get(source))
    return text or text_of(row.get("check_command"))


def time_macros(now: float, zone: tzinfo) -> dict[str, str]:
    moment = datetime.fromtimestamp(now, zone)
    return {
        "SHORTDATETIME": moment.strftime("%Y-%m-%d %H:%M:%S"),
        "LONGDATETIME": moment.strftime("%a %b %d %H:%M:%S %Z %Y"),
        "DATE": moment.strftime("%Y-%m-%d"),
        "TIME": moment.strftime("%H:%M:%S"),
        "TIMET": str(int(now)),
    }


def hide(
    line: CommandLine, replacements: Sequence[Replacement], *variables: Mapping[str, str]
) -> CommandLine:
    """Replace what the configuration and the object's own variables ask to hide, in both texts."""
    command, text = line.check_command, line.command_line
    for replacement in replacements:
        command, text = replacement.apply(command), replacement.apply(text)
    for variable in variables:
        for name, value in variable.items():
            wanted = _decoded(value)
            if not wanted:
                continue
            if name.upper() in _TEXT_VARIABLES:
                command, text = command.replace(wanted, HIDDEN), text.replace(wanted, HIDDEN)
            elif name.upper() in _PATTERN_VARIABLES:
                try:
                    pattern = compile_pattern(wanted, ignore_case=False, parameter=name)
                except BadRequest:
                    # A pattern that cannot be applied must not show what it should hide.
                    command = text = HIDDEN
                    continue
                command, text = pattern.sub(HIDDEN, command), pattern.sub(HIDDEN, text)
    return CommandLine(command, text, line.error)


def _decoded(value: str) -> str:
    for mark in ("b64:", "base64:"):
        if value.startswith(mark):
            try:
                return base64.b64decode(value[len(mark) :], validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                return value
    return value


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def user_macros(text: str, wanted: MacroNames) -> dict[str, str]:
    """``$USERn$`` macros of a resource file, as far as they are ``wanted``."""
    macros = {}
    for line in text.splitlines():
        name, equal, value = line.strip().partition("=")
        match = _MACRO.fullmatch(name.strip())
        if equal and match and wanted.has(match[1]):
            macros[match[1]] = value.strip()
    return macros


log = Logger()

_LINE = (
    Column("check_command", "string", "", "check command with its arguments"),
    Column("command_line", "string", "", "command line, expanded as far as possible"),
    Column("error", "string", "", "what could not be expanded"),
    Column("host_name", "string", "", "name of the host"),
    Column("peer_key", "string", "", "id of the site"),
    Column("peer_name", "string", "", "name of the site"),
    Column("peer_section", "string", "", "section of the site"),
)
_SERVICE = Column("service_description", "string", "", "description of the service")
HOST_COLUMNS = _LINE
SERVICE_COLUMNS = (*_LINE, _SERVICE)


async def _objects(
    context: Context,
    request: RestRequest,
    schema: TableSchema,
    fields: Sequence[str],
    conditions: tuple[Condition, ...],
) -> Rows:
    """The objects whose lines are wanted; raise Forbidden where the user may not see any."""
    display = context.config.display
    if not view_of(context, request.identity).commands:
        level = display.show_full_commandline
        needed = f"this needs the role {CONFIGURATION}" if level else "no user is"
        raise Forbidden(
            "not authorized",
            f"you are not authorized to view the command line, {needed}"
            f"{request.identity.why_not(CONFIGURATION)}",
        )
    columns = [*fields, "peer_key", "peer_name", "peer_section"]
    if not display.show_full_commandline_source.startswith("_"):
        columns.append(display.show_full_commandline_source)
    backends = tuple(pair for pair in request.parameters if pair[0] in ("backend", "backends"))
    parameters = (("columns", ",".join(dict.fromkeys(columns))), *backends)
    # A user who may see command lines sees what they are made of, and without the custom
    # variables nothing would be hidden that they ask to hide.
    identity = evolve(request.identity, roles=request.identity.roles | {CONFIGURATION})
    inner = evolve(request, parameters=parameters, identity=identity)
    rows = await fetch(context, inner, schema, extra=conditions)
    assert isinstance(rows, Rows)
    return rows


def _lines(schema: TableSchema, fields: Sequence[str], columns: tuple[Column, ...]) -> Handler:
    local = local_schema("commandline", columns, ())
    names = ("name",) if schema is HOSTS else ("host_name", "description")

    async def handler(context: Context, request: RestRequest, arguments: tuple[str, ...]) -> Answer:
        display, now = context.config.display, context.wall.now()
        # A reload may take sites away while their rows are on the way.
        by_id = {site.id: site for site in context.sites.sites}
        conditions = tuple(map(matching, names, arguments))
        rows = await _objects(context, request, schema, fields, conditions)
        keys = [column.name for column in rows.columns]
        peer = keys.index("peer_key")
        sites = [by_id[key] for key in dict.fromkeys(row[peer] for row in rows.rows)]
        # The questions that follow wait for room as well.
        rows.gone()
        secrets = _Shown(
            source=display.show_full_commandline_source,
            user_macros=MacroNames(display.expand_user_macros),
            replacements=tuple(map(Replacement, display.commandline_obfuscate_pattern)),
            addresses=request.identity.may(SYSTEM),
        )
        far = [site for site in sites if isinstance(site, FederatedSite)]
        path = "/".join(quote(part, safe="") for part in (schema.name, *arguments, "commandline"))
        lines, problems = await _far_lines(context, far, f"/{path}", secrets)
        near = [site for site in sites if site not in far]
        sources, failed = await _sources(context, near, secrets.user_macros, now)
        problems += failed
        if sites and len(problems) == len(sites):
            raise all_sites_failed(problems)
        # A site whose commands are not known has no lines: that is not the same as a command that
        # it does not have.
        known_rows = [row for row in rows.rows if row[peer] in sources]

        def lines_of(_: Limit) -> list[dict[str, Any]]:
            named = (dict(zip(keys, row, strict=True)) for row in known_rows)
            return [_record(row, sources[row["peer_key"]], schema, secrets, now) for row in named]

        records = await context.compute(lines_of, len(known_rows) * _EFFORT)
        at = [keys.index(name) for name in ("peer_key", *names)]
        # A core may send lists where names belong.
        places = {
            tuple(text_of(row[key_column]) for key_column in at): place
            for place, row in enumerate(rows.rows)
        }
        about = itemgetter("peer_key", "host_name", *([] if schema is HOSTS else [_SERVICE.name]))
        records += [line for line in lines if about(line) in places]
        records.sort(key=lambda record: places[about(record)])
        answer = await select(context, evolve(request, sites=()), local, records)
        missing = {failed_site.site: failed_site for failed_site in (*rows.failed_sites, *problems)}
        return evolve(
            answer, failed_sites=tuple(missing.values()), backend_seconds=rows.backend_seconds
        )

    return handler


_EFFORT = 100
"""Values of rows that take as long as one command line."""


@frozen
class _Source:
    """The common data of all lines of a site: commands by name, macros that are not an object's."""

    site: Site
    commands: Mapping[str, str]
    macros: Mapping[str, str]


@frozen(kw_only=True)
class _Shown:
    """The parts of a line that are shown: ``addresses`` of sites, the rest by the configuration."""

    source: str
    user_macros: MacroNames
    replacements: tuple[Replacement, ...]
    addresses: bool


async def _far_lines(
    context: Context, sites: Sequence[FederatedSite], path: str, secrets: _Shown
) -> tuple[list[dict[str, Any]], list[SiteProblem]]:
    """The lines of sites of other instances, which know the resource files of their cores."""
    asked = [
        site.call("GET", path, site.config.timeout).addCallback(
            lambda body: Deferred.fromCoroutine(records_of(body, context.memory.threads))
        )
        for site in sites
    ]
    lines: list[dict[str, Any]] = []
    problems: list[SiteProblem] = []
    for site, (_, records) in zip(
        sites, await DeferredList(asked, consumeErrors=True), strict=True
    ):
        if isinstance(records, Failure):
            if not isinstance(records.value, LivestatusError):
                records.raiseException()
            problems.append(site.problem(records.value))
            continue
        peer = {"peer_key": site.id, "peer_name": site.name, "peer_section": site.section}
        for record in records:
            texts = {column.name: text_of(record.get(column.name)) for column in SERVICE_COLUMNS}
            line = CommandLine(texts["check_command"], texts["command_line"], texts["error"])
            hidden = hide(line, secrets.replacements)
            lines.append(
                {
                    **texts,
                    **peer,
                    "check_command": hidden.check_command,
                    "command_line": hidden.command_line,
                }
            )
    return lines, problems


async def _sources(
    context: Context, sites: Sequence[Site], wanted: MacroNames, now: float
) -> tuple[Mapping[str, _Source], tuple[SiteProblem, ...]]:
    """The source of each site by its id, with one query for each; and the sites that failed.

    ``wanted`` are the user macros that may be shown. A resource file that cannot be read has none.
    """
    if not sites:
        return {}, ()

    def plan(_site: Site, capabilities: Capabilities) -> Pushed | None:
        if not capabilities.has("commands", "line"):
            return None
        return Pushed(table="commands", columns=("name", "line"))

    layout = (("name", "string"), ("line", "string"))
    try:
        gathered = await fan_out(sites, plan, layout, context.clock)  # type: ignore[arg-type]  # "string" is a core type
    except SitesFailed as error:
        return {}, tuple(error.problems)
    commands = {
        answer.site.id: {text_of(name): text_of(line) for name, line in answer.rows}
        for answer in gathered.answers
    }

    def read(path: str) -> Mapping[str, str]:
        try:
            return user_macros(Path(path).read_text(errors="replace"), wanted)
        except OSError as error:
            log.warn("resource file not read: {error}", error=error)
            return {}

    failed = {problem.site for problem in gathered.problems}
    present = time_macros(now, context.zone)
    sources: dict[str, _Source] = {}
    for site in sites:
        if site.id in failed:
            continue
        path, macros = site.config.resource_file, present
        if path:
            macros = {**present, **await context.threads.run(partial(read, path))}
        sources[site.id] = _Source(site, commands.get(site.id, {}), macros)
    return sources, gathered.problems


def _record(
    row: Mapping[str, Any], source: _Source, schema: TableSchema, secrets: _Shown, now: float
) -> dict[str, Any]:
    site = source.site
    where = {"BACKENDNAME": site.name, "BACKENDID": site.id}
    if secrets.addresses:
        where["BACKENDADDRESS"] = site.address
    prefix = "" if schema is HOSTS else "host_"
    macros = {**source.macros, **object_macros("HOST", row, prefix, where, now)}
    own = [variables(row, prefix)]
    if schema is SERVICES:
        macros.update(object_macros("SERVICE", row, "", where, now))
        own.append(variables(row, ""))
    line = expand(command_of(row, secrets.source), source.commands, macros)
    line = hide(line, secrets.replacements, *own)
    record = {
        "check_command": line.check_command,
        "command_line": line.command_line,
        "error": line.error,
        "host_name": text_of(row[f"{prefix}name"]),
        "peer_key": row["peer_key"],
        "peer_name": row["peer_name"],
        "peer_section": row["peer_section"],
    }
    if schema is SERVICES:
        record["service_description"] = text_of(row["description"])
    return record


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        path="/hosts/<name>/commandline",
        description="displays commandline for check command",
        text="The name may hold wildcards.",
        handler=_lines(HOSTS, HOST_FIELDS, HOST_COLUMNS),
        columns=HOST_COLUMNS,
    ),
    Endpoint(
        path="/services/<host>/<service>/commandline",
        description="displays commandline for check command",
        text="Both names may hold wildcards.",
        handler=_lines(SERVICES, SERVICE_FIELDS, SERVICE_COLUMNS),
        columns=SERVICE_COLUMNS,
    ),
)
