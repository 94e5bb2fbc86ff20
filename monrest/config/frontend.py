"""The tables of the front end: jobs, business processes, dashboards, reports, mails, the cluster.

As in ``monrest.config.sections``, which has the others and the whole file. Every float is a
duration in seconds, which the file may give as a text with units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NewType

from attrs import field, frozen

Minutes = NewType("Minutes", int)
"""Minutes, which the file may give as a text with a unit."""

Size = NewType("Size", int)
"""Bytes, which the file gives as a text with a unit."""


@frozen(kw_only=True)
class JobsConfig:
    """The table ``[jobs]``: how many run at once in this daemon, how many may wait behind them.

    A single user may hold half of the ``queue``. Results are kept for ``keep`` seconds, and are of
    at most ``results_per_user`` and in all ``results`` bytes; a job that is not done ``timeout``
    seconds after it was asked for is ended.
    """

    concurrent: int = 4
    queue: int = 2000
    keep: float = 3600.0
    results_per_user: Size = Size(256 << 20)
    results: Size = Size(1 << 30)
    timeout: float = 259_200.0


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

    refresh_interval: Minutes = Minutes(1)
    result_backend: str = ""
    default_filter: tuple[str, ...] = ()
    default_state_order: tuple[str, ...] = ()
    sync_downtime_ack_state: int = 1
    functions_dir: str = ""
    spool_dir: str = ""
    objects_save_file: str = ""
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

    new_files_start_at: int = 1
    readonly: bool = False
    memory: Size = Size(24 << 20)
    folder: str = ""
    script_timeout: float = 15.0


@frozen(kw_only=True)
class ControlledNode:
    """One ``[[nodecontrol.nodes]]``: how one site's host is asked and what is done there.

    ``host_name`` is the name of its host. ``gather`` is a command that prints facts, the others
    do what their names say; empty: that cannot be done.
    """

    site: str
    host_name: str = ""
    gather: str = ""
    install: str = ""
    update: str = ""
    cleanup: str = ""
    os_update: str = ""
    os_sec_update: str = ""


@frozen(kw_only=True)
class NodeControlConfig:
    """The table ``[nodecontrol]``; times in seconds.

    Everything is gathered at the times of the cron expression ``gather_schedule``, and what changes
    by the minute at those of ``runtime_schedule``; empty: never by itself.
    ``gather_timeout`` is for commands that print facts, ``command_timeout`` for all others.
    ``parallel_tasks`` nodes are asked at the same time.
    """

    enabled: bool = True
    gather_schedule: str = "0 3 * * *"
    runtime_schedule: str = ""
    parallel_tasks: int = 3
    gather_timeout: float = 60.0
    command_timeout: float = 3600.0
    nodes: tuple[ControlledNode, ...] = ()


@frozen(kw_only=True)
class LogcacheConfig:
    """The table ``[logcache]``; an empty ``url`` is the database of ``[database]``.

    All else is in seconds: ``first_import`` is how far the first import goes back, and at the age
    of ``compact_after`` and ``keep`` repetitions and whole lines are removed (0: never).
    """

    enabled: bool = True
    update_interval: float = 60.0
    first_import: float = 31536000.0
    compact_after: float = 6048000.0
    keep: float = 63072000.0
    url: str = ""


@frozen(kw_only=True)
class ReportsConfig:
    """The table ``[reports]``: how many are made at once in this daemon, and how they are rounded.

    ``default_template`` is for reports that name none, which is wrong where it is empty.
    ``templates`` is a folder with further templates, read at start and at every reload.
    """

    concurrent: int = 2
    default_template: str = ""
    templates: str = ""
    rounding: Literal["round", "floor"] = "round"


@frozen(kw_only=True)
class MailConfig:
    """The table ``[mail]``: the server that takes mails, nothing is sent without a ``host``.

    ``security``: none, starttls or tls, of which the last two need a certificate of the host's
    name. ``timeout``: seconds for each answer of the server. ``tries``: how often a mail is tried.
    """

    host: str = ""
    port: int = 25
    security: Literal["none", "starttls", "tls"] = "none"
    tls_ca_file: str = ""
    username: str = ""
    password_file: str = ""
    sender: str = "monrest@localhost"
    subject_prefix: str = ""
    headers: Mapping[str, str] = field(factory=dict)
    timeout: float = 30.0
    tries: int = 8


@frozen(kw_only=True)
class WebhooksConfig:
    """The table ``[webhooks]``.

    ``allow`` are names, addresses and networks that are reached though they are not public.
    ``ca_file`` are the authorities that receivers may have their certificates from; empty: those
    of the system. ``timeout`` in seconds for one message. ``per_user`` and ``waiting`` bound the
    webhooks of an owner and the messages of a webhook that wait.
    """

    allow: tuple[str, ...] = ()
    ca_file: str = ""
    timeout: float = 10.0
    per_user: int = 20
    waiting: int = 10_000


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

    nodes: tuple[str, ...] = ()
    heartbeat_interval: float = 10.0
    restart_notice: float = 10.0

    @property
    def several(self) -> bool:
        return len(self.nodes) > 1


def without_slash(url: str) -> str:
    """Spell the base URL of a node in the one way in which it is compared."""
    return url.rstrip("/").lower()
