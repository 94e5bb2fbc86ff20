"""The configuration as frozen values, one class per table of the file.

The tables of the front end are in ``monrest.config.frontend``.

``etc/monrest.toml`` shows every key with its default and its meaning. Every float is a duration in
seconds, which the file may give as a text with units. Whatever is a path, an
address or a pattern stays text here. What a value may be stands at its field (``limits``), what
several have to be together in ``monrest.config.check``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from attrs import evolve, field, frozen

from monrest.base.memory import MemoryBudget
from monrest.base.names import Names
from monrest.config import limits
from monrest.config.addresses import Address, parse_address
from monrest.config.frontend import (
    BpConfig,
    ClusterConfig,
    FederationConfig,
    JobsConfig,
    LogcacheConfig,
    MailConfig,
    NodeControlConfig,
    PanoramaConfig,
    ReportsConfig,
    Size,
    WebhooksConfig,
)
from monrest.config.limits import LIMIT, at_least, between, choice, limited, matching
from monrest.config.patterns import Replacement

NamesConfig: TypeAlias = Names
"""The table ``[names]``; the words know how to spell paths and headers themselves."""


_MARGIN = 1.0
"""Seconds that a request needs beside waiting."""


@frozen(kw_only=True)
class ServerConfig:
    """The table ``[server]``; times in seconds, sizes in bytes.

    ``workers``: how many processes, 0 for one a processor. ``ascii_json``: JSON has every
    character beyond ASCII as an escape sequence. ``demo_mode``: every request that is no GET is
    refused. ``memory_limit`` is that of each worker. ``public_docs``: who has no account may read
    what the API is. ``cors_origins`` are the origins whose pages may use the API, or ``*``.
    """

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
        """How the memory of a worker is shared out."""
        return MemoryBudget(self.memory_limit)

    @property
    def longest_wait(self) -> float:
        """For how many seconds a request can wait for something before it times out."""
        return max(self.request_timeout - _MARGIN, 0.0)


@frozen(kw_only=True)
class LogConfig:
    """The table ``[log]``: the least level of lines, how they are written, lines of requests."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"
    access: bool = True


@frozen(kw_only=True)
class DatabaseConfig:
    """The table ``[database]``."""

    url: str = limited("sqlite:///{var_dir}/monrest.sqlite", limits.database)


@frozen(kw_only=True)
class AuthConfig:
    """The table ``[auth]``.

    ``roles`` maps full role names to user names, ``contactgroup_roles`` to contact groups; ``*``
    alone is everybody, ``*`` inside a name any text. ``user_replace`` is a pattern and what
    replaces it in the names of users. Lifetimes are seconds: ``session_idle`` since the last
    request, ``session_lifetime`` since the login. 0 failed logins never lock a user. ``grace`` are
    the seconds for which keys and sessions may still read after the database was asked about them
    last.
    """

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
    """The table ``[commands]``; durations in seconds.

    ``can_submit_commands`` is for users who are no contact. A ``downtime_max_duration`` of 0 is
    no limit. ``disabled`` holds names of commands, their type numbers and ranges of them; with
    ``enabled``, of the same form, all others are disabled.
    """

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
"""What is wrong with a site that is one."""


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
    """The table ``[display]``.

    ``show_full_commandline``: 0 nobody, 1 users with configuration_information, 2 everybody.
    ``show_full_commandline_source``: the attribute or custom variable that holds the command.
    ``expand_user_macros``: names such as ``USER1``, ranges such as ``USER10-20``, patterns with
    ``*``, ``ALL`` or ``NONE``. ``commandline_obfuscate_pattern``: regular expressions, what they
    find is replaced by ``***``; or ``/expression/replacement/`` between any two equal signs.
    ``first_day_of_week``: 1 Monday, 0 Sunday.
    ``expose_custom_variables``: names or patterns with ``*``, a leading ``_`` is optional.
    """

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
        """Give the zone of ``date`` and of absolute times; the server's own when none is named."""
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
    """The table ``[configtool]``: what holds for the object configuration of every site.

    ``obj_readonly`` is added to the patterns of each site. The commands before and after saving
    are run through a shell.
    """

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
    """One ``[[editor]]``: files that members of ``groups`` may edit; no groups: everybody."""

    name: str = field(metadata={LIMIT: limits.printable})
    groups: tuple[str, ...] = ()
    files: tuple[EditorFiles, ...] = ()


@frozen(kw_only=True)
class SiteConfig:
    """One ``[[sites]]``; ``timeout`` in seconds for one query, ``connections`` at most.

    ``groups`` are the contact groups whose members may use the site; empty means everybody.
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
        """Give the settings of a site's object configuration, those for all sites included.

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
