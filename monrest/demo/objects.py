"""The embedded core's objects: configuration and present state of hosts, services and the rest.

Attribute names are those of the Livestatus columns (docs/spec/livestatus.md, "Tables and columns")
wherever a column shows the attribute as it is, so that a column needs no code of its own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from attrs import define, field

HARD, SOFT = 1, 0
UP, DOWN, UNREACHABLE = 0, 1, 2

STATE_TYPES = ("SOFT", "HARD")

ATTRIBUTES: Mapping[str, str] = {
    "notifications_enabled": "notifications_enabled",
    "active_checks_enabled": "active_checks_enabled",
    "passive_checks_enabled": "accept_passive_checks",
    "event_handler_enabled": "event_handler_enabled",
    "flap_detection_enabled": "flap_detection_enabled",
    "failure_prediction_enabled": "",
    "performance_data_enabled": "process_performance_data",
    "obsessive_handler_enabled": "obsess",
    "event_handler_command": "event_handler",
    "check_command": "check_command",
    "normal_check_interval": "check_interval",
    "retry_check_interval": "retry_interval",
    "max_check_attempts": "max_check_attempts",
    "freshness_checks_enabled": "check_freshness",
    "check_timeperiod": "check_period",
    "custom_variable": "custom_variables",
    "notification_timeperiod": "notification_period",
}
"""Words of ``modified_attributes_list``, lowest bit first, to what commands change under them."""

MODIFIED: Mapping[str, int] = {word: 1 << bit for bit, word in enumerate(ATTRIBUTES)}
"""Bits of ``modified_attributes`` by the same words."""

_BITS = {attribute: MODIFIED[word] for word, attribute in ATTRIBUTES.items()}


@define(eq=False)
class CheckCommand:
    """A check or notification command."""

    id: int
    name: str
    line: str


@define(eq=False, kw_only=True)
class Changeable:
    """Values that commands change; the bits of ``MODIFIED`` mark the changed ones."""

    modified_attributes: int = 0

    def change(self, attribute: str, value: Any) -> None:
        setattr(self, attribute, value)
        # Contacts have notifications_enabled and notification_period for hosts and for services.
        self.modified_attributes |= _BITS[re.sub("^(host|service)_", "", attribute)]


@define(eq=False, kw_only=True)
class CoreContact(Changeable):
    """A user who is notified and may log in."""

    id: int
    name: str
    alias: str
    email: str
    pager: str
    addresses: tuple[str, ...]
    can_submit_commands: int
    host_notifications_enabled: int
    service_notifications_enabled: int
    host_notification_period: str
    service_notification_period: str
    host_notification_options: frozenset[str]
    service_notification_options: frozenset[str]
    host_notification_commands: tuple[str, ...]
    service_notification_commands: tuple[str, ...]
    groups: tuple[str, ...]
    custom_variables: dict[str, str]


@define(eq=False)
class ContactGroup:
    """Contacts under one name; ``members`` are names, sorted."""

    id: int
    name: str
    alias: str
    members: tuple[str, ...]


@define(eq=False)
class DependsOn:
    """One dependency as seen from the dependent object."""

    master: Host | Service
    criteria: frozenset[str]
    period: str
    inherits_parent: bool


@define(eq=False, kw_only=True)
class Comment:
    """A comment; ``entry_type`` 1 user, 2 downtime, 3 flapping, 4 acknowledgement."""

    id: int
    target: Host | Service
    author: str
    comment: str
    entry_time: int
    entry_type: int
    persistent: int
    source: int
    expires: int = 0
    expire_time: int = 0


@define(eq=False, kw_only=True)
class CoreDowntime:
    """A planned absence. ``started`` is when it took effect, 0 while it has not."""

    id: int
    target: Host | Service
    author: str
    comment: str
    entry_time: int
    start_time: int
    end_time: int
    fixed: int
    duration: int
    triggered_by: int
    comment_id: int
    started: int = 0

    @property
    def ends(self) -> int:
        return self.end_time if self.fixed else self.started + self.duration


@define(eq=False, kw_only=True)
class Checkable(Changeable):
    """The common base of hosts and services."""

    kind: ClassVar[str]
    states: ClassVar[tuple[str, ...]]
    letters: ClassVar[str]
    """The letters of the states in option lists."""

    id: int
    display_name: str
    check_command: str
    event_handler: str
    check_period: str
    notification_period: str
    notes: str
    notes_url: str
    action_url: str
    icon_image: str
    icon_image_alt: str
    notes_expanded: str = ""
    notes_url_expanded: str = ""
    action_url_expanded: str = ""
    icon_image_expanded: str = ""
    check_interval: float
    retry_interval: float
    notification_interval: float
    first_notification_delay: float
    low_flap_threshold: float
    high_flap_threshold: float
    max_check_attempts: int
    check_timeout: int
    hourly_value: int
    initial_state: int
    freshness_threshold: int
    active_checks_enabled: int
    accept_passive_checks: int
    check_freshness: int
    event_handler_enabled: int
    flap_detection_enabled: int
    notifications_enabled: int
    obsess: int
    process_performance_data: int
    notification_options: frozenset[str]
    flap_detection_options: frozenset[str]
    contacts: tuple[str, ...]
    contact_groups: tuple[str, ...]
    groups: tuple[str, ...] = ()
    authorized: frozenset[str] = frozenset()
    """Contacts and those of escalations: who may see the object."""
    custom_variables: dict[str, str]
    execution_dependencies: list[DependsOn] = field(factory=list)
    notification_dependencies: list[DependsOn] = field(factory=list)
    comments: dict[int, Comment] = field(factory=dict)
    downtimes: dict[int, CoreDowntime] = field(factory=dict)

    state: int = 0
    state_type: int = HARD
    last_state: int = 0
    last_hard_state: int = 0
    has_been_checked: int = 0
    current_attempt: int = 1
    check_type: int = 0
    check_options: int = 0
    check_source: str = ""
    should_be_scheduled: int = 1
    is_executing: int = 0
    last_check: int = 0
    next_check: int = 0
    last_state_change: int = 0
    last_hard_state_change: int = 0
    last_update: float = 0.0
    latency: float = 0.0
    execution_time: float = 0.0
    plugin_output: str = ""
    long_plugin_output: str = ""
    perf_data: str = ""
    acknowledged: int = 0
    acknowledgement_type: int = 0
    acknowledgement_end: int = 0
    current_notification_number: int = 0
    last_notification: int = 0
    next_notification: int = 0
    no_more_notifications: int = 0
    notified_on: int = 0
    scheduled_downtime_depth: int = 0
    pending_flex_downtime: int = 0
    is_flapping: int = 0
    percent_state_change: float = 0.0
    recent_states: deque[int] = field(factory=lambda: deque(maxlen=21))
    due: float | None = None
    """When the next check is due, by the clock that cannot be set; None without a planned one."""
    forced: bool = False

    def state_name(self, state: int | None = None) -> str:
        """The word for a state, of the present one when none is given."""
        number = self.state if state is None else state
        return self.states[min(number, len(self.states) - 1)]

    @property
    def hard_state(self) -> int:
        """The state that counts: the present one when good or hard, else the last hard one."""
        if self.state == 0 or self.state_type == HARD:
            return self.state
        return self.last_hard_state

    def letter(self, state: int) -> str:
        return self.letters[state]

    def seen(self, state: int, moment: int) -> None:
        setattr(self, f"last_time_{self.states[state].lower()}", moment)


@define(eq=False, kw_only=True)
class Host(Checkable):
    """A host; ``parents`` and ``children`` are the hosts between it and the core and behind."""

    kind = "host"
    states = ("UP", "DOWN", "UNREACHABLE")
    letters = "odu"

    name: str
    alias: str
    address: str
    filename: str
    statusmap_image: str
    coordinates: tuple[float, float, float] = (0.0, 0.0, 0.0)
    parents: list[Host] = field(factory=list)
    children: list[Host] = field(factory=list)
    services: list[Service] = field(factory=list)
    last_time_up: int = 0
    last_time_down: int = 0
    last_time_unreachable: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def key(self) -> str:
        """How columns name it."""
        return self.name

    @property
    def label(self) -> str:
        """The name in log lines and commands."""
        return self.name

    @property
    def host(self) -> Host:
        """Itself, so that code for both kinds can ask for the host."""
        return self

    @property
    def description(self) -> str:
        """Empty: a host is no service."""
        return ""


@define(eq=False, kw_only=True)
class Service(Checkable):
    """A service of one host."""

    kind = "service"
    states = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
    letters = "owcu"

    host: Host
    description: str
    parents: list[Service] = field(factory=list)
    last_time_ok: int = 0
    last_time_warning: int = 0
    last_time_critical: int = 0
    last_time_unknown: int = 0

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def names(self) -> tuple[str, ...]:
        return (self.host.name, self.description)

    @property
    def key(self) -> tuple[str, ...]:
        """How columns name it."""
        return self.names

    @property
    def label(self) -> str:
        """``host;service``, as log lines and commands name it."""
        return f"{self.host.name};{self.description}"


HostOrService: TypeAlias = Host | Service


Member = TypeVar("Member", Host, Service)


@define(eq=False)
class ObjectGroup(Generic[Member]):
    """Hosts, sorted by name, or services, sorted by host and description, under one name."""

    id: int
    name: str
    members: list[Member]
    alias: str
    notes: str
    notes_url: str
    action_url: str
