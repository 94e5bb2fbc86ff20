"""Whether the cores of a configuration answer, asked without a daemon."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from monrest.client.exchange import (
    ApiRequest,
    ClientCredentials,
    ClientError,
    ServerAddress,
    UnreachableError,
    failure_of,
    plain,
)
from monrest.client.http_connection import (
    BlockingTransport,
    ConnectionOptions,
    error_text,
    tls_context,
)

if TYPE_CHECKING:
    from monrest.config import Config, SiteConfig

TITLES = ("SITE", "NAME", "STATE", "CORE", "VERSION", "ADDRESS", "PROBLEM")

_QUESTION = (
    b"GET status\nColumns: program_version livestatus_version\n"
    b"OutputFormat: json\nResponseHeader: fixed16\n\n"
)
_LMD_QUESTION = (
    b"GET sites\nColumns: name status last_error\nOutputFormat: json\nResponseHeader: fixed16\n\n"
)
_PEERS_QUESTION = (
    b"GET columns\nColumns: name\nFilter: table = hosts\nFilter: name = peer_key\n"
    b"OutputFormat: json\nResponseHeader: fixed16\n\n"
)
"""A query that has a row for an LMD too, whose status is that of its sites."""
_LONGEST_PROBE = 5.0
_MOST_BYTES = 1 << 20
_HEADER = 16
_CORES = {"icinga2": "Icinga 2", "shinken": "Shinken", "naemon": "Naemon"}
_WITH_COLUMNS = ("Naemon", "Nagios")


class SiteLine(NamedTuple):
    """The state of a site; ``problem`` is empty when it answers.

    ``pending``: the daemon has not asked it yet.
    """

    id: str
    name: str
    address: str
    core: str = ""
    version: str = ""
    problem: str = ""
    pending: bool = False

    @property
    def state(self) -> str:
        """``up``, ``down`` or ``pending``."""
        return "pending" if self.pending else "down" if self.problem else "up"

    def cells(self) -> tuple[str, ...]:
        """The line of the table."""
        parts = (self.core, self.version, self.address, self.problem)
        return (self.id, self.name, self.state, *parts)

    def document(self) -> dict[str, object]:
        """The line as an object of ``--json``."""
        names = ("id", "name", "address", "core", "version", "problem")
        values = {name: getattr(self, name) for name in names}
        return {**values, "state": self.state, "up": self.state == "up"}


def core_name(versions: str) -> str:
    """The kind of core of a version text."""
    names = (name for word, name in _CORES.items() if word in versions.lower())
    return next(names, "Nagios")


def probed(config: Config) -> list[SiteLine]:
    """Ask every site and LMD of a configuration, all at the same time."""
    with ThreadPoolExecutor(max_workers=32) as threads:
        sites = list(threads.map(_site, config.sites))
        return sites + list(threads.map(_lmd, config.lmd.addresses))


def _site(site: SiteConfig) -> SiteLine:
    line = SiteLine(site.id, site.name, site.address)
    try:
        if site.federated:
            return line._replace(core="monrest", version=_instance(site))
        (program, livestatus), *more = _asked(_connected(site), _QUESTION)
        name = core_name(f"{program} {livestatus}")
        if more or (name in _WITH_COLUMNS and _asked(_connected(site), _PEERS_QUESTION)):
            from monrest.config.sections import AN_LMD

            return line._replace(core="LMD", problem=AN_LMD)
    except (OSError, ValueError, ClientError) as error:
        return line._replace(problem=_reason(error))
    return line._replace(core=name, version=str(program))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error_text(error)
    return plain(str(error)) or "unexpected answer"


def _lmd(address: str) -> SiteLine:
    line = SiteLine("(lmd)", "", address, core="LMD")
    try:
        rows = _asked(_opened(address), _LMD_QUESTION)
    except (OSError, ValueError) as error:
        return line._replace(problem=_reason(error))
    down = [str(name) for name, status, _ in rows if status]
    problem = f"{len(down)} down: {', '.join(down)}" if down else ""
    return line._replace(name=f"{len(rows)} sites", problem=problem)


def _instance(site: SiteConfig) -> str:
    where = site.where()
    address = ServerAddress(
        "https" if where.encrypted else "http",
        root=f"/{where.url.split('/', 3)[3]}/r",
        host=where.host,
        port=where.port,
    )
    transport = BlockingTransport(address, _options(site))
    credentials = ClientCredentials(site.auth_key)

    def answered(path: str) -> object:
        reply = transport.ask(ApiRequest(path).prepared(address, credentials))
        body = reply.read()
        if not reply.good:
            expected = (
                "auth_key: expected the API key of a superuser on the other side, which says "
            )
            refused = failure_of(reply.status, body)
            raise UnreachableError(
                f"{expected if reply.status in (400, 401, 403) else ''}{refused}"
            )
        return json.loads(body)

    sites = answered("/sites?columns=instances")
    if not isinstance(sites, list) or not all(
        isinstance(site, dict) and isinstance(site.get("instances"), list) for site in sites
    ):
        raise UnreachableError("not a monrest: its list of sites has no instances")
    document = answered(f"/{address.app}?columns={address.app}_version")
    return str(next(iter(document.values()), "")) if isinstance(document, dict) else ""


def _options(site: SiteConfig) -> ConnectionOptions:
    return ConnectionOptions(
        timeout=min(site.timeout, _LONGEST_PROBE), insecure=not site.tls_verify,
        ca_file=site.tls_ca_file, cert_file=site.tls_cert_file, key_file=site.tls_key_file,
    )  # fmt: skip


def _opened(address: str) -> socket.socket:
    from monrest.config import parse_address

    where = parse_address(address)
    if where.kind == "unix":
        plain_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            plain_socket.settimeout(_LONGEST_PROBE)
            plain_socket.connect(where.path)
        except OSError:
            plain_socket.close()
            raise
        return plain_socket
    return socket.create_connection((where.host, where.port), _LONGEST_PROBE)


def _connected(site: SiteConfig) -> socket.socket:
    opened = _opened(site.address)
    where = site.where()
    if not where.encrypted:
        return opened
    context = tls_context(_options(site))
    try:
        return context.wrap_socket(opened, server_hostname=site.tls_server_name or where.host)
    except (OSError, ssl.SSLError):
        opened.close()
        raise


def _asked(opened: socket.socket, question: bytes) -> Sequence[Sequence[object]]:
    """The rows of an answer; ValueError when it is none."""
    with opened:
        opened.sendall(question)
        answer = b""
        while len(answer) < _MOST_BYTES and (piece := opened.recv(65536)):
            answer += piece
            if len(answer) >= _HEADER and len(answer) >= _HEADER + _length(answer):
                break
    status, body = answer[:3], answer[_HEADER:]
    if status != b"200":
        reason = (body or answer)[:200].decode("utf-8", "replace").strip()
        raise ValueError(
            f"refused: {reason}" if reason else "closed the connection without an answer"
        )
    rows = json.loads(body)
    if not isinstance(rows, list):
        raise ValueError("expected rows")  # noqa: TRY004  as what json says
    return rows


def _length(answer: bytes) -> int:
    try:
        return int(answer[4:15])
    except ValueError:
        return 0
