"""The tables of the front end: jobs, business processes, dashboards, reports, mails, the cluster.

As in ``monrest.config.sections``, which has the others and the whole file. Every float is a
duration in seconds, which the file may give as a text with units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NewType

from attrs import field, frozen

from monrest.base.schedule import comes
from monrest.config import limits
from monrest.config.addresses import HIGHEST_PORT
from monrest.config.limits import at_least, between, choice, expected, limited, matching, optional

Minutes = NewType("Minutes", int)
"""Minutes, which the file may give as a text with a unit."""

Size = NewType("Size", int)
"""Bytes, which the file gives as a text with a unit."""

_STATE_GROUP = "(acknowledged_|downtime_)?(up|down|unreachable|ok|warning|critical|unknown|pending)"
_SCHEDULE = optional(expected("five cron fields", comes))
_DAY_OR_NEVER = optional(at_least(86400, "0 (never) or at least 86400 seconds"))


@frozen(kw_only=True)
class JobsConfig:
    """The table ``[jobs]``: how many run at once in this daemon, how many may wait behind them.

    A single user may hold half of the ``queue``. Results are kept for ``keep`` seconds, and are of
    at most ``results_per_user`` and in all ``results`` bytes; a job that is not done ``timeout``
    seconds after it was asked for is ended.
    """

    concurrent: int = limited(4, between(1, 100))
    queue: int = limited(2000, between(1, 100000))
    keep: float = limited(3600.0, limits.positive)
    results_per_user: Size = Size(256 << 20)
    results: Size = Size(1 << 30)
    timeout: float = limited(259_200.0, limits.positive)


@frozen(kw_only=True)
class BpConfig:
    """The table ``[bp]``: business processes.

    ``refresh_interval`` in minutes, 0: never by itself. ``result_backend`` is the site that gets
    the results; empty: the only one there is. ``default_filter`` are filters of every process.
    ``default_state_order`` are groups of states, the worst first; empty: as in the reference.
    ``sync_downtime_ack_state``: 0 off, 1 acknowledgements and downtimes are passed on to parents,
    2 also to the core. ``functions_dir`` has Python files with functions and filters of one's own.
    ``spool_dir``: results go into files there if no site is named. ``objects_save_file`` gets the
    objects of all processes in ``objects_save_format`` and ``objects_reload_cmd`` makes the core
    read it; empty: RESTART_PROCESS. The commands around saving and after a refresh are run through
    a shell.
    """

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
    """The table ``[panorama]``.

    New dashboards get the first free number from ``new_files_start_at`` on. ``readonly``: only
    administrators change dashboards. ``memory`` is what a list of all of them may need, a quarter
    of it for those of one user. ``folder`` has programs that print dashboards, each ended
    after ``script_timeout`` seconds; empty: there are none.
    """

    new_files_start_at: int = limited(1, between(1, 1_000_000_000))
    readonly: bool = False
    memory: Size = limited(Size(24 << 20), at_least(1 << 20, "at least 1MB", " bytes"))
    folder: str = limited("", optional(limits.absolute_path))
    script_timeout: float = limited(15.0, limits.positive)


@frozen(kw_only=True)
class ControlledNode:
    """One ``[[nodecontrol.nodes]]``: how one site's host is asked and what is done there.

    ``host_name`` is the name of its host. ``gather`` is a command that prints facts, the others
    do what their names say; empty: that cannot be done.
    """

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
    """The table ``[nodecontrol]``; times in seconds.

    Everything is gathered at the times of the cron expression ``gather_schedule``, and what changes
    by the minute at those of ``runtime_schedule``; empty: never by itself.
    ``gather_timeout`` is for commands that print facts, ``command_timeout`` for all others.
    ``parallel_tasks`` nodes are asked at the same time.
    """

    enabled: bool = True
    gather_schedule: str = limited("0 3 * * *", _SCHEDULE)
    runtime_schedule: str = limited("", _SCHEDULE)
    parallel_tasks: int = limited(3, between(1, 100))
    gather_timeout: float = limited(60.0, limits.positive)
    command_timeout: float = limited(3600.0, limits.positive)
    nodes: tuple[ControlledNode, ...] = ()


@frozen(kw_only=True)
class LogcacheConfig:
    """The table ``[logcache]``; an empty ``url`` is the database of ``[database]``.

    All else is in seconds: ``first_import`` is how far the first import goes back, and at the age
    of ``compact_after`` and ``keep`` repetitions and whole lines are removed (0: never).
    """

    enabled: bool = True
    update_interval: float = limited(60.0, limits.positive)
    first_import: float = limited(31536000.0, at_least(3600, "at least 3600 seconds"))
    compact_after: float = limited(6048000.0, _DAY_OR_NEVER)
    keep: float = limited(63072000.0, _DAY_OR_NEVER)
    url: str = limited("", optional(limits.database))


@frozen(kw_only=True)
class ReportsConfig:
    """The table ``[reports]``: how many are made at once in this daemon, and how they are rounded.

    ``default_template`` is for reports that name none, which is wrong where it is empty.
    ``templates`` is a folder with further templates, read at start and at every reload.
    """

    concurrent: int = limited(2, between(1, 100))
    default_template: str = limited(
        "", optional(matching(r"[0-9a-zA-Z]+\w*\.tt", "a name ending in .tt"))
    )
    templates: str = limited("", limits.folder)
    rounding: Literal["round", "floor"] = "round"


@frozen(kw_only=True)
class MailConfig:
    """The table ``[mail]``: the server that takes mails, nothing is sent without a ``host``.

    ``security``: none, starttls or tls, of which the last two need a certificate of the host's
    name. ``timeout``: seconds for each answer of the server. ``tries``: how often a mail is tried.
    """

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
    """The table ``[webhooks]``.

    ``allow`` are names, addresses and networks that are reached though they are not public.
    ``ca_file`` are the authorities that receivers may have their certificates from; empty: those
    of the system. ``timeout`` in seconds for one message. ``per_user`` and ``waiting`` bound the
    webhooks of an owner and the messages of a webhook that wait.
    """

    allow: tuple[str, ...] = limited((), limits.receiver)
    ca_file: str = limited("", limits.readable_file)
    # Less than the time after which another daemon takes the duty.
    timeout: float = limited(10.0, between(1, 15, " seconds"))
    per_user: int = limited(20, between(1, 1_000_000))
    waiting: int = limited(10_000, between(1, 1_000_000))


@frozen(kw_only=True)
class FederationConfig:
    """The table ``[federation]``: how this instance serves those that have its sites.

    ``cascade``: requests of another instance may go on to the sites of a third one.
    """

    cascade: bool = True


@frozen(kw_only=True)
class ClusterConfig:
    """The table ``[cluster]``: the base URLs of all nodes; times in seconds.

    ``restart_notice``: for how long a node says that it leaves before it closes its ports.
    """

    nodes: tuple[str, ...] = limited((), limits.node_url)
    heartbeat_interval: float = limited(10.0, between(1, 3600, " seconds"))
    restart_notice: float = limited(10.0, between(0, 3600, " seconds"))

    @property
    def several(self) -> bool:
        return len(self.nodes) > 1


def without_slash(url: str) -> str:
    """Spell the base URL of a node in the one way in which it is compared."""
    return url.rstrip("/").lower()
