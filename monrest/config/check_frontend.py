"""What types cannot say about the tables of the front end."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

from monrest.base.schedule import comes
from monrest.config import expected
from monrest.config.frontend import (
    JobsConfig,
    LogcacheConfig,
    MailConfig,
    PanoramaConfig,
    ReportsConfig,
    WebhooksConfig,
    without_slash,
)
from monrest.config.sections import Config

_HIGHEST_NUMBER = 1_000_000_000
_HIGHEST_PORT = 65535
_MOST_TRIES = 100
_LONGEST_POST = 15
"""Below the time after which another daemon takes the duty."""
_MOST_WAITING = 1_000_000
_LONGEST_PAUSE = 3600.0
_NODE_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
_NODE_URL = re.compile(
    rf"https?://{_NODE_HOST}(?::(?P<port>[0-9]{{1,5}}))?(?:/[A-Za-z0-9._~/-]*)?\Z"
)
_HOST_NAME = re.compile(r"(?:\*\.)?[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,30}")
_OWN_HEADERS = frozenset(
    {"from", "to", "cc", "bcc", "subject", "date", "message-id", "mime-version", "auto-submitted"}
    | {f"content-{one}" for one in ("type", "transfer-encoding", "disposition")}
)
_STATE_GROUP = re.compile(
    "(acknowledged_|downtime_)?(up|down|unreachable|ok|warning|critical|unknown|pending)"
)


def problems_of(config: Config) -> Iterator[str]:
    """Every problem as ``key.path: what was expected``."""
    yield from _logcache(config.logcache)
    yield from _jobs(config.jobs)
    yield from _cluster(config)
    yield from _panorama(config.panorama)
    yield from _nodes(config)
    yield from _reports(config.reports)
    yield from _mail(config.mail)
    yield from _bp(config)
    yield from _webhooks(config.webhooks)


_LEAST_ROOM = 1 << 20


def _jobs(jobs: JobsConfig) -> Iterator[str]:
    if not 1 <= jobs.concurrent <= 100:
        yield f"jobs.concurrent: expected 1 to 100, got {jobs.concurrent}"
    if not 1 <= jobs.queue <= 100000:
        yield f"jobs.queue: expected 1 to 100000, got {jobs.queue}"
    yield from expected.positive("jobs.keep", jobs.keep)
    if not _LEAST_ROOM <= jobs.results_per_user <= jobs.results:
        yield (
            f"jobs.results_per_user: expected at least 1MB and at most jobs.results, "
            f"got {jobs.results_per_user} bytes"
        )
    yield from expected.positive("jobs.timeout", jobs.timeout)


def _logcache(logcache: LogcacheConfig) -> Iterator[str]:
    yield from expected.positive("logcache.update_interval", logcache.update_interval)
    for key, least in (("first_import", 3600), ("compact_after", 86400), ("keep", 86400)):
        value = getattr(logcache, key)
        if not (math.isfinite(value) and (value >= least or (value == 0 and key[0] != "f"))):
            never = "" if key[0] == "f" else "0 (never) or "
            yield f"logcache.{key}: expected {never}at least {least} seconds, got {value}"


def _bp(config: Config) -> Iterator[str]:
    bp = config.bp
    if not 0 <= bp.refresh_interval <= 60:
        yield f"bp.refresh_interval: expected 0 (never) to 60 minutes, got {bp.refresh_interval}"
    if bp.sync_downtime_ack_state not in (0, 1, 2):
        value = bp.sync_downtime_ack_state
        yield f"bp.sync_downtime_ack_state: expected 0, 1 or 2, got {value}"
    if bp.result_backend and not any(
        bp.result_backend == site.id
        or (site.federated and bp.result_backend.startswith(f"{site.id}-"))
        for site in config.sites
    ):
        yield f"bp.result_backend: expected the id of a site, got {bp.result_backend!r}"
    for index, name in enumerate(bp.default_filter):
        if not re.fullmatch("[A-Za-z0-9_]{1,100}", name):
            yield f"bp.default_filter[{index}]: expected the name of a filter, got {name!r}"
    for index, name in enumerate(bp.default_state_order):
        if not _STATE_GROUP.fullmatch(name):
            yield f"bp.default_state_order[{index}]: expected a group of states, got {name!r}"
    if bp.functions_dir and not Path(bp.functions_dir).is_dir():
        yield f"bp.functions_dir: expected a directory, got {bp.functions_dir}"
    if bp.spool_dir and not Path(bp.spool_dir).is_dir():
        yield f"bp.spool_dir: expected a directory, got {bp.spool_dir}"
    file = bp.objects_save_file
    if file and not (Path(file).is_absolute() and Path(file).parent.is_dir()):
        yield f"bp.objects_save_file: expected an absolute path in a directory, got {file!r}"
    elif file and (Path(file).is_dir() or ".." in Path(file).parts):
        yield f"bp.objects_save_file: expected the path of a file without .., got {file!r}"


def _cluster(config: Config) -> Iterator[str]:
    given = config.cluster
    seen: dict[str, int] = {}
    for index, url in enumerate(given.nodes):
        found = _NODE_URL.match(url)
        if found is None or not 0 < int(found["port"] or 1) <= _HIGHEST_PORT:
            yield f"cluster.nodes[{index}]: expected http(s)://HOST:PORT, got {url!r}"
            continue
        plain = without_slash(url)
        if plain in seen:
            yield f"cluster.nodes[{index}]: the same as cluster.nodes[{seen[plain]}]: {url!r}"
        seen.setdefault(plain, index)
    if given.several and config.database.url.startswith("sqlite:"):
        yield "cluster.nodes: several nodes need one PostgreSQL in database.url"
    for key, least in (("heartbeat_interval", 1.0), ("restart_notice", 0.0)):
        value = getattr(given, key)
        if not (math.isfinite(value) and least <= value <= _LONGEST_PAUSE):
            yield f"cluster.{key}: expected {least:g} to {_LONGEST_PAUSE:g} seconds, got {value}"


def _panorama(panorama: PanoramaConfig) -> Iterator[str]:
    if not 1 <= panorama.new_files_start_at <= _HIGHEST_NUMBER:
        yield (
            f"panorama.new_files_start_at: expected 1 to {_HIGHEST_NUMBER}, "
            f"got {panorama.new_files_start_at}"
        )
    if panorama.memory < _LEAST_ROOM:
        yield f"panorama.memory: expected at least 1MB, got {panorama.memory} bytes"
    if panorama.folder and not panorama.folder.startswith("/"):
        yield f"panorama.folder: expected an absolute path, got {panorama.folder!r}"
    yield from expected.positive("panorama.script_timeout", panorama.script_timeout)


def _nodes(config: Config) -> Iterator[str]:
    control = config.nodecontrol
    if not 1 <= control.parallel_tasks <= 100:
        yield f"nodecontrol.parallel_tasks: expected 1 to 100, got {control.parallel_tasks}"
    for key in ("gather_schedule", "runtime_schedule"):
        text = getattr(control, key)
        if text and not comes(text):
            yield f"nodecontrol.{key}: expected five cron fields, got {text!r}"
    yield from expected.positive("nodecontrol.gather_timeout", control.gather_timeout)
    yield from expected.positive("nodecontrol.command_timeout", control.command_timeout)
    sites, seen = {site.id for site in config.sites}, set()
    for index, node in enumerate(control.nodes):
        path = f"nodecontrol.nodes[{index}]"
        if node.site not in sites:
            yield f"{path}.site: expected the id of a site, got {node.site!r}"
        elif node.site in seen:
            yield f"{path}.site: {node.site!r} has an entry already"
        seen.add(node.site)
        for key in ("gather", "install", "update", "cleanup", "os_update", "os_sec_update"):
            yield from expected.command(f"{path}.{key}", getattr(node, key))


def _reports(reports: ReportsConfig) -> Iterator[str]:
    if not 1 <= reports.concurrent <= 100:
        yield f"reports.concurrent: expected 1 to 100, got {reports.concurrent}"
    name = reports.default_template
    if name and not re.fullmatch(r"[0-9a-zA-Z]+\w*\.tt", name, re.ASCII):
        yield f"reports.default_template: expected a name ending in .tt, got {name!r}"
    if reports.templates and not Path(reports.templates).is_dir():
        yield f"reports.templates: expected a directory, got {reports.templates}"


def _mail(mail: MailConfig) -> Iterator[str]:
    if mail.host and not re.fullmatch(r"[A-Za-z0-9._:-]+", mail.host):
        yield f"mail.host: expected a host name or address, got {mail.host!r}"
    if not 1 <= mail.port <= _HIGHEST_PORT:
        yield f"mail.port: expected 1 to {_HIGHEST_PORT}, got {mail.port}"
    if not re.fullmatch(r"[!-;=?-~]+@[!-;=?-~]+", mail.sender):
        yield f"mail.sender: expected an address as monitoring@example.org, got {mail.sender!r}"
    if not mail.subject_prefix.isprintable():
        yield "mail.subject_prefix: expected a printable text"
    for name, value in mail.headers.items():
        if not re.fullmatch(r"[!-9;-~]+", name) or not value.isprintable():
            yield f"mail.headers.{name}: expected a header name and a printable text"
        elif name.lower() in _OWN_HEADERS:
            yield f"mail.headers.{name}: expected a header that no mail has anyway"
    if bool(mail.username) != bool(mail.password_file):
        yield "mail.password_file: expected together with mail.username"
    if mail.username and mail.security == "none":
        yield "mail.security: expected starttls or tls, because a password is sent"
    yield from expected.readable("mail.password_file", mail.password_file)
    yield from expected.readable("mail.tls_ca_file", mail.tls_ca_file)
    yield from expected.positive("mail.timeout", mail.timeout)
    if not 1 <= mail.tries <= _MOST_TRIES:
        yield f"mail.tries: expected 1 to {_MOST_TRIES}, got {mail.tries}"


def _webhooks(webhooks: WebhooksConfig) -> Iterator[str]:
    for index, entry in enumerate(webhooks.allow):
        try:
            ip_network(entry, strict=False)
        except ValueError:
            if not _HOST_NAME.fullmatch(entry):
                yield (
                    f"webhooks.allow[{index}]: expected a network such as 10.0.0.0/8, an address, "
                    f"or a name such as alerts.example.org or *.example.org, got {entry!r}"
                )
    yield from expected.readable("webhooks.ca_file", webhooks.ca_file)
    if not 1 <= webhooks.timeout <= _LONGEST_POST:
        yield f"webhooks.timeout: expected 1 to {_LONGEST_POST} seconds, got {webhooks.timeout}"
    for key in ("per_user", "waiting"):
        value = getattr(webhooks, key)
        if not 1 <= value <= _MOST_WAITING:
            yield f"webhooks.{key}: expected 1 to {_MOST_WAITING}, got {value}"
