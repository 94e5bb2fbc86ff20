"""The configuration as frozen values, one class per table of the file.

``etc/monrest.toml`` shows every key with its default and its meaning. Every float is a duration in
seconds, which the file may give as a text with units. What is a path, an address or a pattern stays
text here. What a value may be stands at its field (``limits``), what several have to be together in
``monrest.config.check``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Literal, NewType, TypeAlias
from zoneinfo import ZoneInfo

from attrs import evolve, field, frozen

from monrest.base.memory import MemoryBudget
from monrest.base.names import Names
from monrest.base.schedule import comes
from monrest.config import limits
from monrest.config.addresses import HIGHEST_PORT, Address, parse_address
from monrest.config.limits import (
    LIMIT,
    at_least,
    between,
    choice,
    expected,
    limited,
    matching,
    optional,
)
from monrest.config.patterns import Replacement

Minutes = NewType("Minutes", int)
"""Minutes, which the file may give as a text with a unit."""

Size = NewType("Size", int)
"""Bytes, which the file gives as a text with a unit."""

_STATE_GROUP = "(acknowledged_|downtime_)?(up|down|unreachable|ok|warning|critical|unknown|pending)"
_SCHEDULE = optional(expected("five cron fields", comes))
_DAY_OR_NEVER = optional(at_least(86400, "0 (never) or at least 86400 seconds"))

NamesConfig: TypeAlias = Names
"""The table ``[names]``; the words know how to spell paths and headers themselves."""


_MARGIN = 1.0
"""Seconds that a request needs beside waiting."""


@frozen(kw_only=True)
class ServerConfig:
    """The table ``[server]``; ``memory_limit`` is that of each worker."""

    listen: tuple[str, ...] = limited(("tcp:8080:interface=127.0.0.1",), limits.listener)
    var_dir: str = limited("/var/lib/monrest", limits.state_folder)
    request_timeout: float = limited(40.0, limits.positive)
    drain_timeout: float = limited(30.0, limits.not_negative)
    workers: int = limited(1, between(0, 64))
    max_url: int = limited(131072, between(1024, 1048576, " bytes"))
    max_body: int = limited(2_097_152, at_least(1024, "at least 1024 bytes"))
    memory_limit: Size = limited(Size(512 << 20), at_least(128 << 20, "at least 128MB", " bytes"))
    ascii_json: bool = False
    demo_mode: bool = False
    public_docs: bool = True
    cors_origins: tuple[str, ...] = limited(
        (),
        matching(
            r"\*|https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?",
            "an origin such as https://grafana.example.org:3000, or *",
        ),
    )

    @property
    def memory(self) -> MemoryBudget:
        """The shares of the memory of a worker."""
        return MemoryBudget(self.memory_limit)

    @property
    def longest_wait(self) -> float:
        """For how many seconds a request can wait for something before it times out."""
        return max(self.request_timeout - _MARGIN, 0.0)


@frozen(kw_only=True)
class LogConfig:
    """The table ``[log]``."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"
    access: bool = True


@frozen(kw_only=True)
class DatabaseConfig:
    """The table ``[database]``."""

    url: str = limited("sqlite:///{var_dir}/monrest.sqlite", limits.database)


@frozen(kw_only=True)
class AuthConfig:
    """The table ``[auth]``."""

    secret_key_file: str = limited("{var_dir}/secret.key", limits.absolute_path)
    api_keys_enabled: bool = True
    htpasswd_file: str = limited("", limits.readable_file)
    remote_user_header: str = limited(
        "", matching("[A-Za-z0-9-]*", "a header name of letters, digits and '-'")
    )
    trusted_proxies: tuple[str, ...] = limited(("127.0.0.1",), limits.network)
    strict_host_authorization: bool = False
    default_user: str = ""
    lowercase_user: bool = False
    uppercase_user: bool = False
    user_replace: tuple[str, ...] = ()
    max_api_keys_per_user: int = limited(10, limits.not_negative)
    session_idle: float = limited(86400.0, limits.positive)
    session_lifetime: float = limited(604800.0, limits.positive)
    grace: float = limited(60.0, between(0, 3600, " seconds"))
    cookie_domain: str = limited("", matching("[A-Za-z0-9.-]*", "a domain name"))
    cookie_secure: bool = False
    lock_after_failed_logins: int = limited(10, limits.not_negative)
    locked_message: str = "account is locked, please contact an administrator"
    roles: Mapping[str, tuple[str, ...]] = field(factory=dict)
    contactgroup_roles: Mapping[str, tuple[str, ...]] = field(factory=dict)


@frozen(kw_only=True)
class CommandsConfig:
    """The table ``[commands]``."""

    lock_author_names: bool = True
    can_submit_commands: bool = True
    sticky_ack: int = limited(1, choice(0, 1, 2, wanted="0, 1 or 2"))
    send_notification: int = limited(1, choice(0, 1, wanted="0 or 1"))
    persistent_ack: int = limited(0, choice(0, 1, wanted="0 or 1"))
    persistent_comments: int = limited(1, choice(0, 1, wanted="0 or 1"))
    downtime_duration: float = limited(7200.0, limits.positive)
    downtime_max_duration: float = limited(0.0, at_least(0, "0 (no limit) or a number of seconds"))
    require_comments_for_disable: bool = False
    disabled: tuple[str, ...] = limited((), limits.commands)
    enabled: tuple[str, ...] = limited((), limits.commands)


@frozen(kw_only=True)
class LmdSiteConfig:
    """One ``[[lmd.sites]]``: what is this daemon's own of a site that an LMD has."""

    id: str
    hidden: bool = False
    groups: tuple[str, ...] = ()
    resource_file: str = limited("", limits.readable_file)


AN_LMD = "this is an LMD: its address belongs in [lmd]"
"""The error of a site that is an LMD."""


@frozen(kw_only=True)
class LmdConfig:
    """The table ``[lmd]``; without an address there are only direct connections to cores.

    Several addresses are LMDs with the same sites. ``timeout`` in seconds for one query,
    ``connections`` at most.
    """

    address: str | tuple[str, ...] = limited("", limits.optional(limits.lmd_address))
    connections: int = limited(4, between(1, 1000))
    timeout: float = limited(30.0, limits.positive)
    sites: tuple[LmdSiteConfig, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses in the order in which they are tried."""
        if isinstance(self.address, str):
            return (self.address,) if self.address else ()
        return self.address

    def own(self, id: str) -> LmdSiteConfig | None:
        return next((site for site in self.sites if site.id == id), None)


@frozen(kw_only=True)
class DisplayConfig:
    """The table ``[display]``."""

    show_full_commandline: int = limited(1, choice(0, 1, 2, wanted="0, 1 or 2"))
    show_full_commandline_source: str = limited(
        "check_command", matching("[A-Za-z0-9_]+", "a name")
    )
    expand_user_macros: tuple[str, ...] = ("ALL",)
    commandline_obfuscate_pattern: tuple[str, ...] = limited((), limits.readable_by(Replacement))
    expose_custom_variables: tuple[str, ...] = ()
    timezone: str = limited("", limits.optional(limits.time_zone))
    first_day_of_week: int = limited(1, choice(0, 1, wanted="0 (Sunday) or 1 (Monday)"))

    def zone(self) -> tzinfo:
        """Return the zone of ``date`` and of absolute times, by default the server's own."""
        if self.timezone:
            return ZoneInfo(self.timezone)
        localtime = Path("/etc/localtime")
        try:
            with localtime.open("rb") as file:
                _, marker, name = str(localtime.resolve()).partition("/zoneinfo/")
                return ZoneInfo.from_file(file, key=name if marker else None)
        except (OSError, ValueError):
            return ZoneInfo("UTC")


@frozen(kw_only=True)
class ConfigTool:
    """The table ``[sites.configtool]``.

    ``obj_exclude`` and ``obj_readonly`` are regular expressions searched in the full path.
    """

    core_conf: str = limited("", limits.optional(limits.absolute_file))
    obj_dir: tuple[str, ...] = limited((), limits.absolute_path)
    obj_file: tuple[str, ...] = limited((), limits.absolute_path)
    obj_exclude: tuple[str, ...] = limited((), limits.regular_expression)
    obj_resource_file: tuple[str, ...] = limited((), limits.absolute_path)
    obj_readonly: tuple[str, ...] = limited((), limits.regular_expression)
    core_type: Literal["auto", "naemon", "nagios", "icinga", "shinken"] = "auto"
    obj_check_cmd: str = limited("", limits.shell_command)
    obj_reload_cmd: str = limited("", limits.shell_command)
    git_base_dir: str = ""
    disable: bool = False


@frozen(kw_only=True)
class ConfigToolDefaults:
    """The table ``[configtool]``: what holds for the object configuration of every site."""

    obj_readonly: tuple[str, ...] = limited((), limits.regular_expression)
    pre_obj_save_cmd: str = limited("", limits.shell_command)
    post_obj_save_cmd: str = limited("", limits.shell_command)
    git_base_dir: str = ""


@frozen(kw_only=True)
class EditorFiles:
    """One ``[[editor.files]]``.

    ``filter`` are regular expressions searched in the path; none means all files of ``folder``.
    """

    folder: tuple[str, ...] = field(metadata={LIMIT: limits.absolute_path})
    filter: tuple[str, ...] = limited((), limits.regular_expression)
    syntax: str = ""
    action: str = ""
    pre_save_cmd: str = ""
    post_save_cmd: str = ""
    show_summary_prompt: bool | None = None


@frozen(kw_only=True)
class EditorConfig:
    """One ``[[editor]]``: files that members of ``groups`` may edit; no groups: all users."""

    name: str = field(metadata={LIMIT: limits.printable})
    groups: tuple[str, ...] = ()
    files: tuple[EditorFiles, ...] = ()


@frozen(kw_only=True)
class SiteConfig:
    """One ``[[sites]]``; ``timeout`` in seconds for one query, ``connections`` at most.

    ``groups`` are the contact groups whose members may use the site; empty means all users.
    """

    id: str = field(metadata={LIMIT: limits.site_id})
    name: str = field(metadata={LIMIT: limits.printable})
    section: str = limited("Default", limits.printable)
    address: str = field(metadata={LIMIT: limits.readable_by(parse_address)})
    hidden: bool = False
    connections: int = limited(4, between(1, 1000))
    timeout: float = limited(30.0, limits.positive)
    auth_key: str = field(default="", repr=False)
    tls_ca_file: str = limited("", limits.readable_file)
    tls_cert_file: str = limited("", limits.readable_file)
    tls_key_file: str = limited("", limits.readable_file)
    tls_server_name: str = ""
    tls_verify: bool = True
    resource_file: str = limited("", limits.readable_file)
    groups: tuple[str, ...] = ()
    configtool: ConfigTool | None = None

    @property
    def federated(self) -> bool:
        """Whether it is another instance and not a core."""
        return self.address.startswith(("http:", "https:"))

    def where(self) -> Address:
        """Take the address apart; ValueError if it has none of the known forms."""
        return parse_address(self.address)


@frozen(kw_only=True)
class JobsConfig:
    """The table ``[jobs]``; a single user may hold half of the ``queue``."""

    concurrent: int = limited(4, between(1, 100))
    queue: int = limited(2000, between(1, 100000))
    keep: float = limited(3600.0, limits.positive)
    results_per_user: Size = Size(256 << 20)
    results: Size = Size(1 << 30)
    timeout: float = limited(259_200.0, limits.positive)


@frozen(kw_only=True)
class BpConfig:
    """The table ``[bp]``: business processes. Its commands are run through a shell."""

    refresh_interval: Minutes = limited(
        Minutes(1), expected("0 (never) to 60 minutes", lambda minutes: 0 <= minutes <= 60)
    )
    result_backend: str = ""
    default_filter: tuple[str, ...] = limited(
        (), matching("[A-Za-z0-9_]{1,100}", "the name of a filter")
    )
    default_state_order: tuple[str, ...] = limited((), matching(_STATE_GROUP, "a group of states"))
    sync_downtime_ack_state: int = limited(1, choice(0, 1, 2, wanted="0, 1 or 2"))
    functions_dir: str = limited("", limits.folder)
    spool_dir: str = limited("", limits.folder)
    objects_save_file: str = limited("", limits.saved_file)
    objects_save_format: Literal["nagios", "icinga2"] = "nagios"
    objects_reload_cmd: str = ""
    pre_save_cmd: str = ""
    post_save_cmd: str = ""
    post_refresh_cmd: str = ""
    read_only: bool = False


@frozen(kw_only=True)
class PanoramaConfig:
    """The table ``[panorama]``: dashboards."""

    new_files_start_at: int = limited(1, between(1, 1_000_000_000))
    readonly: bool = False
    memory: Size = limited(Size(24 << 20), at_least(1 << 20, "at least 1MB", " bytes"))
    folder: str = limited("", optional(limits.absolute_path))
    script_timeout: float = limited(15.0, limits.positive)


@frozen(kw_only=True)
class ControlledNode:
    """One ``[[nodecontrol.nodes]]``: commands for what is done there; empty: it is not done."""

    site: str
    host_name: str = ""
    gather: str = limited("", limits.shell_command)
    install: str = limited("", limits.shell_command)
    update: str = limited("", limits.shell_command)
    cleanup: str = limited("", limits.shell_command)
    os_update: str = limited("", limits.shell_command)
    os_sec_update: str = limited("", limits.shell_command)


@frozen(kw_only=True)
class NodeControlConfig:
    """The table ``[nodecontrol]``."""

    enabled: bool = True
    gather_schedule: str = limited("0 3 * * *", _SCHEDULE)
    runtime_schedule: str = limited("", _SCHEDULE)
    parallel_tasks: int = limited(3, between(1, 100))
    gather_timeout: float = limited(60.0, limits.positive)
    command_timeout: float = limited(3600.0, limits.positive)
    nodes: tuple[ControlledNode, ...] = ()


@frozen(kw_only=True)
class LogcacheConfig:
    """The table ``[logcache]``; an empty ``url`` is the database of ``[database]``."""

    enabled: bool = True
    update_interval: float = limited(60.0, limits.positive)
    first_import: float = limited(31536000.0, at_least(3600, "at least 3600 seconds"))
    compact_after: float = limited(6048000.0, _DAY_OR_NEVER)
    keep: float = limited(63072000.0, _DAY_OR_NEVER)
    url: str = limited("", optional(limits.database))


@frozen(kw_only=True)
class ReportsConfig:
    """The table ``[reports]``."""

    concurrent: int = limited(2, between(1, 100))
    default_template: str = limited(
        "", optional(matching(r"[0-9a-zA-Z]+\w*\.tt", "a name ending in .tt"))
    )
    templates: str = limited("", limits.folder)
    rounding: Literal["round", "floor"] = "round"


@frozen(kw_only=True)
class MailConfig:
    """The table ``[mail]``: the server that takes mails; nothing is sent without a ``host``."""

    host: str = limited("", matching("[A-Za-z0-9._:-]*", "a host name or address"))
    port: int = limited(25, between(1, HIGHEST_PORT))
    security: Literal["none", "starttls", "tls"] = "none"
    tls_ca_file: str = limited("", limits.readable_file)
    username: str = ""
    password_file: str = limited("", limits.readable_file)
    sender: str = limited(
        "monrest@localhost",
        matching("[!-;=?-~]+@[!-;=?-~]+", "an address as monitoring@example.org"),
    )
    subject_prefix: str = limited("", expected("a printable text", str.isprintable))
    headers: Mapping[str, str] = field(factory=dict)
    timeout: float = limited(30.0, limits.positive)
    tries: int = limited(8, between(1, 100))


@frozen(kw_only=True)
class WebhooksConfig:
    """The table ``[webhooks]``."""

    allow: tuple[str, ...] = limited((), limits.receiver)
    ca_file: str = limited("", limits.readable_file)
    # Less than the time after which another daemon takes the duty.
    timeout: float = limited(10.0, between(1, 15, " seconds"))
    per_user: int = limited(20, between(1, 1_000_000))
    waiting: int = limited(10_000, between(1, 1_000_000))


@frozen(kw_only=True)
class FederationConfig:
    """The table ``[federation]``: how this instance serves those that have its sites.

    ``cascade``: requests of another instance may reach the sites of a third one.
    """

    cascade: bool = True


@frozen(kw_only=True)
class ClusterConfig:
    """The table ``[cluster]``: the base URLs of all nodes."""

    nodes: tuple[str, ...] = limited((), limits.node_url)
    heartbeat_interval: float = limited(10.0, between(1, 3600, " seconds"))
    restart_notice: float = limited(10.0, between(0, 3600, " seconds"))

    @property
    def several(self) -> bool:
        return len(self.nodes) > 1


def without_slash(url: str) -> str:
    """Spell the base URL of a node in the one way in which it is compared."""
    return url.rstrip("/").lower()


@frozen(kw_only=True)
class Config:
    """The whole file."""

    server: ServerConfig = ServerConfig()
    log: LogConfig = LogConfig()
    names: NamesConfig = field(factory=Names)
    database: DatabaseConfig = DatabaseConfig()
    auth: AuthConfig = AuthConfig()
    commands: CommandsConfig = CommandsConfig()
    jobs: JobsConfig = field(factory=JobsConfig)
    bp: BpConfig = field(factory=BpConfig)
    logcache: LogcacheConfig = field(factory=LogcacheConfig)
    panorama: PanoramaConfig = field(factory=PanoramaConfig)
    nodecontrol: NodeControlConfig = field(factory=NodeControlConfig)
    reports: ReportsConfig = field(factory=ReportsConfig)
    mail: MailConfig = field(factory=MailConfig)
    webhooks: WebhooksConfig = field(factory=WebhooksConfig)
    cluster: ClusterConfig = field(factory=ClusterConfig)
    federation: FederationConfig = field(factory=FederationConfig)
    lmd: LmdConfig = LmdConfig()
    display: DisplayConfig = DisplayConfig()
    configtool: ConfigToolDefaults = ConfigToolDefaults()
    editor: tuple[EditorConfig, ...] = ()
    sites: tuple[SiteConfig, ...] = ()

    def tool_of(self, site: SiteConfig) -> ConfigTool | None:
        """Return the settings of a site's object configuration, those for all sites included.

        None for a site that takes no part in it.
        """
        tool = site.configtool
        if tool is None or tool.disable or tool == ConfigTool():
            return None
        readonly = (*tool.obj_readonly, *self.configtool.obj_readonly)
        return evolve(tool, obj_readonly=readonly)


def fixed_while_running(old: Config, new: Config) -> list[str]:
    """Name what differs and cannot change while the daemon runs."""
    fixed = (
        ("server.listen", old.server.listen, new.server.listen),
        ("server.workers", old.server.workers, new.server.workers),
        ("server.var_dir", old.server.var_dir, new.server.var_dir),
        ("database.url", old.database.url, new.database.url),
        ("logcache.url", old.logcache.url, new.logcache.url),
    )
    return [
        f"{path}: cannot change while the daemon runs, restart it"
        for path, before, after in fixed
        if before != after
    ]
