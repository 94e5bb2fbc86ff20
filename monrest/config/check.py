"""The second pass over a configuration: the limits of its fields, and rules about several.

All problems are collected; nothing is created or changed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import re2
from attrs import fields, has

from monrest.base.values import ROLES
from monrest.config.limits import LIMIT
from monrest.config.sections import (
    AuthConfig,
    Config,
    MailConfig,
    ServerConfig,
    SiteConfig,
    without_slash,
)

_WORD = re.compile(r"[a-z][a-z0-9]*\Z")
_OWN_HEADERS = frozenset(
    {"from", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version", "auto-submitted"}
    | {f"content-{word}" for word in ("type", "transfer-encoding", "disposition")}
)


def problems_of(config: Config) -> list[str]:
    """Every problem as ``key.path: what was expected``; an empty list means usable."""
    return [
        *_beyond_limits(config, ""),
        *_server(config.server),
        *_words(config),
        *_auth(config.auth),
        *_jobs(config),
        *_cluster(config),
        *_nodes(config),
        *_mail(config.mail),
        *_bp(config),
        *_lmd(config),
        *_same_ids("sites", (site.id for site in config.sites)),
        *(
            problem
            for index, site in enumerate(config.sites)
            for problem in _site(f"sites[{index}]", site)
        ),
    ]


def _beyond_limits(table: Any, path: str) -> Iterator[str]:
    """Values beyond the limit of their field, in a table and in those within it."""
    for attribute in fields(type(table)):
        value, limit = getattr(table, attribute.name), attribute.metadata.get(LIMIT)
        at = f"{path}{attribute.name}"
        items = enumerate(value) if isinstance(value, tuple) else [(None, value)]
        for index, item in items:
            where = at if index is None else f"{at}[{index}]"
            if has(type(item)):
                yield from _beyond_limits(item, f"{where}.")
            elif limit is not None and (problem := limit(item)):
                yield f"{where}: {problem}"


def _same_ids(path: str, ids: Iterable[str]) -> Iterator[str]:
    """Elements of the list at ``path`` that have the id of one before."""
    seen: dict[str, int] = {}
    for index, key in enumerate(ids):
        if key in seen:
            yield f"{path}[{index}].id: the same id as {path}[{seen[key]}]: {key!r}"
        seen.setdefault(key, index)


def _server(server: ServerConfig) -> Iterator[str]:
    if not server.listen:
        yield "server.listen: expected at least one endpoint"
    if server.max_body > server.memory.bodies:
        yield (
            f"server.max_body: expected at most {server.memory.bodies} bytes, a quarter of "
            f"server.memory_limit, got {server.max_body}"
        )


def _words(config: Config) -> Iterator[str]:
    for key in ("app", "dist", "cm"):
        word = getattr(config.names, key)
        if not _WORD.match(word):
            yield f"names.{key}: expected lower-case letters and digits, got {word!r}"


def _auth(auth: AuthConfig) -> Iterator[str]:
    if auth.lowercase_user and auth.uppercase_user:
        yield "auth.uppercase_user: expected false, as auth.lowercase_user is true"
    yield from _replacement(auth.user_replace)
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
    # Checked here, because a wrong one fails only for names that match the pattern.
    for escaped in re.findall(r"\\(.?)", pair[1], re.DOTALL):
        if escaped != "\\" and not ("1" <= escaped <= "9" and int(escaped) <= groups):
            yield (
                "auth.user_replace[1]: expected a text with \\1 to \\9 for groups of the pattern "
                f"and \\\\ for a backslash, got {pair[1]!r}"
            )
            return


def full_role(name: str) -> str:
    """Return the full name of a role named in short, such as ``admin``; unknown names as well."""
    return name if name.startswith("authorized_for_") else f"authorized_for_{name}"


def _roles(path: str, roles: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for name in roles:
        role = full_role(name)
        if role not in ROLES:
            short = [role.removeprefix("authorized_for_") for role in ROLES]
            near = get_close_matches(name.removeprefix("authorized_for_"), short, n=1)
            meant = (
                f", did you mean {near[0]}?" if near else f", expected one of {', '.join(short)}"
            )
            yield f"{path}.{name}: unknown role{meant}"
        if role in seen:
            yield f"{path}.{name}: the same role as {path}.{seen[role]}"
        seen[role] = name


def _jobs(config: Config) -> Iterator[str]:
    if not 1 << 20 <= config.jobs.results_per_user <= config.jobs.results:
        yield (
            "jobs.results_per_user: expected at least 1MB and at most jobs.results, "
            f"got {config.jobs.results_per_user} bytes"
        )


def _cluster(config: Config) -> Iterator[str]:
    plain = [*map(without_slash, config.cluster.nodes)]
    for index, url in enumerate(config.cluster.nodes):
        first = plain.index(plain[index])
        if first != index:
            yield f"cluster.nodes[{index}]: the same as cluster.nodes[{first}]: {url!r}"
    if config.cluster.several and config.database.url.startswith("sqlite:"):
        yield "cluster.nodes: several nodes need one PostgreSQL in database.url"


def _nodes(config: Config) -> Iterator[str]:
    sites, seen = {site.id for site in config.sites}, set()
    for index, node in enumerate(config.nodecontrol.nodes):
        path = f"nodecontrol.nodes[{index}].site"
        if node.site not in sites:
            yield f"{path}: expected the id of a site, got {node.site!r}"
        elif node.site in seen:
            yield f"{path}: {node.site!r} has an entry already"
        seen.add(node.site)


def _mail(mail: MailConfig) -> Iterator[str]:
    for name, value in mail.headers.items():
        if not re.fullmatch(r"[!-9;-~]+", name) or not value.isprintable():
            yield f"mail.headers.{name}: expected a header name and a printable text"
        elif name.lower() in _OWN_HEADERS:
            yield f"mail.headers.{name}: expected a header that no mail has anyway"
    if bool(mail.username) != bool(mail.password_file):
        yield "mail.password_file: expected together with mail.username"
    if mail.username and mail.security == "none":
        yield "mail.security: expected starttls or tls, because a password is sent"


def _bp(config: Config) -> Iterator[str]:
    backend = config.bp.result_backend
    if backend and not any(
        backend == site.id or (site.federated and backend.startswith(f"{site.id}-"))
        for site in config.sites
    ):
        yield f"bp.result_backend: expected the id of a site, got {backend!r}"


def _lmd(config: Config) -> Iterator[str]:
    lmd = config.lmd
    if not isinstance(lmd.address, str):
        if not lmd.address:
            yield "lmd.address: expected at least one address"
        for index, address in enumerate(lmd.address):
            if address in lmd.address[:index]:
                yield f"lmd.address[{index}]: the same address twice: {address!r}"
    if lmd.sites and not lmd.addresses:
        yield "lmd.address: expected the address of the LMD whose sites are in lmd.sites"
    direct = {site.id: index for index, site in enumerate(config.sites)}
    for index, site in enumerate(lmd.sites):
        if site.id in direct:
            yield f"lmd.sites[{index}].id: the same id as sites[{direct[site.id]}]: {site.id!r}"
    yield from _same_ids("lmd.sites", (site.id for site in lmd.sites))


def _site(path: str, site: SiteConfig) -> Iterator[str]:
    if site.tls_key_file and not site.tls_cert_file:
        yield f"{path}.tls_cert_file: expected the certificate of tls_key_file"
    try:
        where = site.where()
    except ValueError:
        return
    if not where.encrypted and (site.tls_cert_file or site.tls_key_file or site.tls_ca_file):
        yield f"{path}: tls_* keys need an address of the form tls:HOST:PORT or https://HOST/mon"
    if not where.federated:
        if site.auth_key:
            yield f"{path}.auth_key: expected only with an address of the form http(s)://HOST/mon"
        return
    if not re.fullmatch(r"[!-~]{1,500}", site.auth_key):
        yield f"{path}.auth_key: expected the API key of a superuser on the other side"
    if site.configtool is not None:
        yield f"{path}.configtool: expected on the other side, whose object configuration is used"
    if site.resource_file:
        yield f"{path}.resource_file: expected on the other side"
