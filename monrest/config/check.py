"""The second pass over a configuration: what types cannot say.

Unique site ids, addresses and endpoints that parse, ranges, role names, files that can be read.
All problems are collected; nothing is created or changed here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib.resources import files
from ipaddress import ip_network
from pathlib import Path
from zoneinfo import ZoneInfo

import re2

from monrest.base.extras import is_installed, remedy
from monrest.base.values import ROLES
from monrest.config import check_frontend, expected
from monrest.config.addresses import database_problem, parse_address, parse_listener
from monrest.config.patterns import Replacement
from monrest.config.sections import CommandsConfig, Config, ConfigTool, ServerConfig, SiteConfig

_SITE_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,63}\Z")
_RESERVED_IDS = frozenset({"ALL", "LOCAL"})
_WORD = re.compile(r"[a-z][a-z0-9]*\Z")
_ORIGIN = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?\Z")
_LEAST_MEMORY = 128 << 20
_HIGHEST_URL = 1048576
_MOST_WORKERS = 64
_COMMAND_NUMBERS = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?\Z")
_LONGEST_GRACE = 3600.0


def problems_of(config: Config) -> list[str]:
    """Every problem as ``key.path: what was expected``; an empty list means usable."""
    return [
        *_server(config.server),
        *_words(config),
        *_auth(config),
        *_commands(config.commands),
        *_databases(config),
        *check_frontend.problems_of(config),
        *_lmd(config),
        *_display(config),
        *_object_configuration(config),
        *_sites(config.sites),
    ]


def _server(server: ServerConfig) -> Iterator[str]:
    if not server.listen:
        yield "server.listen: expected at least one endpoint"
    for index, text in enumerate(server.listen):
        path = f"server.listen[{index}]"
        try:
            listener = parse_listener(text)
        except ValueError as error:
            yield f"{path}: {error}"
            continue
        for key, file in listener.files:
            yield from expected.readable(f"{path}: {key}", file)
    if not server.var_dir.startswith("/"):
        yield f"server.var_dir: expected an absolute path, got {server.var_dir!r}"
    elif Path(server.var_dir).exists() and not Path(server.var_dir).is_dir():
        yield f"server.var_dir: expected a directory, got the file {server.var_dir}"
    yield from _origins(server.cors_origins)
    yield from expected.positive("server.request_timeout", server.request_timeout)
    if not (server.drain_timeout >= 0 and math.isfinite(server.drain_timeout)):
        yield f"server.drain_timeout: expected 0 or more, got {server.drain_timeout}"
    if not 0 <= server.workers <= _MOST_WORKERS:
        yield f"server.workers: expected 0 to {_MOST_WORKERS}, got {server.workers}"
    if not 1024 <= server.max_url <= _HIGHEST_URL:
        yield f"server.max_url: expected 1024 to {_HIGHEST_URL} bytes, got {server.max_url}"
    if server.max_body < 1024:
        yield f"server.max_body: expected at least 1024 bytes, got {server.max_body}"
    if server.memory_limit < _LEAST_MEMORY:
        yield f"server.memory_limit: expected at least 128MB, got {server.memory_limit} bytes"
    elif server.max_body > server.memory.bodies:
        yield (
            f"server.max_body: expected at most {server.memory.bodies} bytes, a quarter of "
            f"server.memory_limit, got {server.max_body}"
        )


def _origins(origins: tuple[str, ...]) -> Iterator[str]:
    for index, origin in enumerate(origins):
        if origin != "*" and not _ORIGIN.match(origin):
            yield (
                f"server.cors_origins[{index}]: expected an origin such as "
                f"https://grafana.example.org:3000, or *, got {origin!r}"
            )


def _words(config: Config) -> Iterator[str]:
    for key in ("app", "dist", "cm"):
        word = getattr(config.names, key)
        if not _WORD.match(word):
            yield f"names.{key}: expected lower-case letters and digits, got {word!r}"


def _auth(config: Config) -> Iterator[str]:
    auth = config.auth
    if not auth.secret_key_file.startswith("/"):
        yield f"auth.secret_key_file: expected an absolute path, got {auth.secret_key_file!r}"
    yield from expected.readable("auth.htpasswd_file", auth.htpasswd_file)
    if auth.remote_user_header and not re.fullmatch(r"[A-Za-z0-9-]+", auth.remote_user_header):
        yield "auth.remote_user_header: expected a header name of letters, digits and '-'"
    for index, proxy in enumerate(auth.trusted_proxies):
        try:
            ip_network(proxy)
        except ValueError:
            yield f"auth.trusted_proxies[{index}]: expected an IP address or network, got {proxy!r}"
    if auth.lowercase_user and auth.uppercase_user:
        yield "auth.uppercase_user: expected false, as auth.lowercase_user is true"
    yield from _replacement(auth.user_replace)
    yield from expected.positive("auth.session_idle", auth.session_idle)
    yield from expected.positive("auth.session_lifetime", auth.session_lifetime)
    if not 0 <= auth.grace <= _LONGEST_GRACE:
        yield f"auth.grace: expected 0 to {_LONGEST_GRACE:g} seconds, got {auth.grace:g}"
    for key in ("max_api_keys_per_user", "lock_after_failed_logins"):
        if getattr(auth, key) < 0:
            yield f"auth.{key}: expected 0 or more, got {getattr(auth, key)}"
    if auth.cookie_domain and not re.fullmatch(r"[A-Za-z0-9.-]+", auth.cookie_domain):
        yield f"auth.cookie_domain: expected a domain name, got {auth.cookie_domain!r}"
    yield from _roles("auth.roles", auth.roles)
    yield from _roles("auth.contactgroup_roles", auth.contactgroup_roles)


def _replacement(pair: tuple[str, ...]) -> Iterator[str]:
    if not pair:
        return
    if len(pair) != 2:
        yield "auth.user_replace: expected a pattern and its replacement"
        return
    try:
        groups = re2.compile(pair[0]).groups
    except re2.error as error:
        yield f"auth.user_replace[0]: expected a regular expression: {error}"
        return
    # Looked at here, because a wrong one fails only for names that the pattern is found in.
    for escaped in re.findall(r"\\(.?)", pair[1], re.DOTALL):
        if escaped != "\\" and not ("1" <= escaped <= "9" and int(escaped) <= groups):
            yield (
                "auth.user_replace[1]: expected a text with \\1 to \\9 for groups of the pattern "
                f"and \\\\ for a backslash, got {pair[1]!r}"
            )
            return


def _commands(commands: CommandsConfig) -> Iterator[str]:
    yield from expected.positive("commands.downtime_duration", commands.downtime_duration)
    if not (commands.downtime_max_duration >= 0 and math.isfinite(commands.downtime_max_duration)):
        yield (
            "commands.downtime_max_duration: expected 0 (no limit) or a number of seconds, "
            f"got {commands.downtime_max_duration}"
        )
    if commands.sticky_ack not in (0, 1, 2):
        yield f"commands.sticky_ack: expected 0, 1 or 2, got {commands.sticky_ack}"
    for key in ("send_notification", "persistent_ack", "persistent_comments"):
        if getattr(commands, key) not in (0, 1):
            yield f"commands.{key}: expected 0 or 1, got {getattr(commands, key)}"
    for key in ("disabled", "enabled"):
        for index, item in enumerate(getattr(commands, key)):
            if not _is_command(item):
                yield (
                    f"commands.{key}[{index}]: expected the name of a command, its number or a "
                    f'range of numbers such as "35-36", got {item!r}'
                )


def _is_command(item: str) -> bool:
    """Whether it selects commands: read from the data of the catalogue, whose room is above."""
    if span := _COMMAND_NUMBERS.match(item):
        return int(span[1]) <= int(span[2] or span[1])
    catalogue = json.loads((files("monrest.livestatus") / "commands.json").read_text("utf-8"))
    return any(item.lower() in commands for commands in catalogue.values())


def full_role(name: str) -> str:
    """Give the full name of a role named in short, such as ``admin``; unknown names as well."""
    return name if name.startswith("authorized_for_") else f"authorized_for_{name}"


def _roles(path: str, roles: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name in roles:
        role = full_role(name)
        if role not in ROLES:
            short = [known.removeprefix("authorized_for_") for known in ROLES]
            near = get_close_matches(name.removeprefix("authorized_for_"), short, n=1)
            meant = (
                f", did you mean {near[0]}?" if near else f", expected one of {', '.join(short)}"
            )
            yield f"{path}.{name}: unknown role{meant}"
        if role in seen:
            yield f"{path}.{name}: the same role as {path}.{seen[role]}"
        seen[role] = name


def _databases(config: Config) -> Iterator[str]:
    for path, url in (("database.url", config.database.url), ("logcache.url", config.logcache.url)):
        if url and (problem := database_problem(url)):
            yield f"{path}: {problem}"
        elif url.startswith("postgresql") and not is_installed("psycopg"):
            yield f"{path}: {remedy('psycopg')}"


def _lmd(config: Config) -> Iterator[str]:
    lmd = config.lmd
    several = not isinstance(lmd.address, str)
    if several and not lmd.address:
        yield "lmd.address: expected at least one address"
    for index, address in enumerate(lmd.addresses):
        path = f"lmd.address[{index}]" if several else "lmd.address"
        try:
            kind = parse_address(address).kind
        except ValueError:
            kind = "http"
        if kind not in ("unix", "tcp"):
            yield f"{path}: expected unix:PATH or tcp:HOST:PORT, got {address!r}"
        elif address in lmd.addresses[:index]:
            yield f"{path}: the same address twice: {address!r}"
    if not 1 <= lmd.connections <= 1000:
        yield f"lmd.connections: expected 1 to 1000, got {lmd.connections}"
    yield from expected.positive("lmd.timeout", lmd.timeout)
    if lmd.sites and not lmd.addresses:
        yield "lmd.address: expected the address of the LMD whose sites are in lmd.sites"
    direct = {site.id: index for index, site in enumerate(config.sites)}
    seen: dict[str, int] = {}
    for index, site in enumerate(lmd.sites):
        path = f"lmd.sites[{index}].id"
        if site.id in direct:
            yield f"{path}: the same id as sites[{direct[site.id]}]: {site.id!r}"
        elif site.id in seen:
            yield f"{path}: the same id as lmd.sites[{seen[site.id]}]: {site.id!r}"
        seen.setdefault(site.id, index)
        yield from expected.readable(f"lmd.sites[{index}].resource_file", site.resource_file)


def _display(config: Config) -> Iterator[str]:
    if config.display.show_full_commandline not in (0, 1, 2):
        value = config.display.show_full_commandline
        yield f"display.show_full_commandline: expected 0, 1 or 2, got {value}"
    source = config.display.show_full_commandline_source
    if not re.fullmatch("[A-Za-z0-9_]+", source, re.ASCII):
        yield f"display.show_full_commandline_source: expected a name, got {source!r}"
    for index, text in enumerate(config.display.commandline_obfuscate_pattern):
        try:
            Replacement(text)
        except ValueError as error:
            yield f"display.commandline_obfuscate_pattern[{index}]: {error}"
    if config.display.first_day_of_week not in (0, 1):
        value = config.display.first_day_of_week
        yield f"display.first_day_of_week: expected 0 (Sunday) or 1 (Monday), got {value}"
    if config.display.timezone:
        try:
            ZoneInfo(config.display.timezone)
        except (OSError, ValueError, KeyError):
            yield f"display.timezone: no such time zone: {config.display.timezone!r}"


def _sites(sites: tuple[SiteConfig, ...]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for index, site in enumerate(sites):
        path = f"sites[{index}]"
        if not _SITE_ID.match(site.id) or site.id in _RESERVED_IDS:
            yield (
                f"{path}.id: expected up to 64 letters, digits and _.:- "
                f"(not ALL or LOCAL), got {site.id!r}"
            )
        elif site.id in seen:
            yield f"{path}.id: the same id as sites[{seen[site.id]}]: {site.id!r}"
        seen.setdefault(site.id, index)
        yield from _site(path, site)


def _site(path: str, site: SiteConfig) -> Iterator[str]:
    for key in ("name", "section"):
        text = getattr(site, key)
        if not text.strip() or not text.isprintable():
            yield f"{path}.{key}: expected a printable text, got {text!r}"
    try:
        where = site.where()
    except ValueError as error:
        yield f"{path}.address: {error}"
    else:
        if not where.encrypted and (site.tls_cert_file or site.tls_key_file or site.tls_ca_file):
            yield f"{path}: tls_* keys need an address of the form tls:HOST:PORT or https://HOST/mon"
        if where.federated:
            yield from _federated(path, site)
        elif site.auth_key:
            yield f"{path}.auth_key: expected only with an address of the form http(s)://HOST/mon"
    if not 1 <= site.connections <= 1000:
        yield f"{path}.connections: expected 1 to 1000, got {site.connections}"
    yield from expected.positive(f"{path}.timeout", site.timeout)
    for key in ("tls_ca_file", "tls_cert_file", "tls_key_file", "resource_file"):
        yield from expected.readable(f"{path}.{key}", getattr(site, key))
    if site.tls_key_file and not site.tls_cert_file:
        yield f"{path}.tls_cert_file: expected the certificate of tls_key_file"
    if site.configtool is not None:
        yield from _configtool(f"{path}.configtool", site.configtool)


def _federated(path: str, site: SiteConfig) -> Iterator[str]:
    """Check what another instance needs; what a core has is said there."""
    if not re.fullmatch(r"[!-~]{1,500}", site.auth_key):
        yield f"{path}.auth_key: expected the API key of a superuser on the other side"
    if site.configtool is not None:
        yield f"{path}.configtool: expected on the other side, whose object configuration is used"
    if site.resource_file:
        yield f"{path}.resource_file: expected on the other side"


def _configtool(path: str, tool: ConfigTool) -> Iterator[str]:
    yield from expected.readable(f"{path}.core_conf", tool.core_conf)
    for key in ("obj_exclude", "obj_readonly"):
        yield from expected.patterns(f"{path}.{key}", getattr(tool, key))
    if tool.core_conf and not tool.core_conf.startswith("/"):
        yield f"{path}.core_conf: expected an absolute path, got {tool.core_conf!r}"
    for key in ("obj_dir", "obj_file", "obj_resource_file"):
        yield from expected.absolute(f"{path}.{key}", getattr(tool, key))
    for key in ("obj_check_cmd", "obj_reload_cmd"):
        yield from expected.command(f"{path}.{key}", getattr(tool, key))


def _object_configuration(config: Config) -> Iterator[str]:
    tool = config.configtool
    yield from expected.patterns("configtool.obj_readonly", tool.obj_readonly)
    for key in ("pre_obj_save_cmd", "post_obj_save_cmd"):
        yield from expected.command(f"configtool.{key}", getattr(tool, key))
    for index, section in enumerate(config.editor):
        path = f"editor[{index}]"
        if not section.name.strip() or not section.name.isprintable():
            yield f"{path}.name: expected a printable text, got {section.name!r}"
        for at, folder in enumerate(section.files):
            where = f"{path}.files[{at}]"
            yield from expected.absolute(f"{where}.folder", folder.folder)
            yield from expected.patterns(f"{where}.filter", folder.filter)
