"""Columns that the tables hosts and services have in common.

Rules: docs/spec/livestatus.md, "Tables and columns".
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from monrest.demo.columns import Column, Style, column
from monrest.demo.core import INTERVAL_LENGTH, Core
from monrest.demo.objects import MODIFIED, Checkable, Comment, DependsOn, Downtime, Host


def modified_names(number: int) -> tuple[str, ...]:
    """The words for the bits of ``modified_attributes``."""
    if not number:
        return ()
    return tuple(word for word, bit in MODIFIED.items() if number & bit)


def comment_info(item: Comment) -> tuple[Any, ...]:
    """The element of ``comments_with_info``."""
    expiry = (item.expires, item.expire_time)
    return (item.id, item.author, item.comment, item.entry_time, item.entry_type, *expiry)


def downtime_info(item: Downtime) -> tuple[Any, ...]:
    """The element of ``downtimes_with_info``."""
    times = (item.entry_time, item.start_time, item.end_time)
    return (item.id, item.author, item.comment, *times, item.fixed, item.duration,
            item.triggered_by)  # fmt: skip


def _dependency_name(link: DependsOn) -> Any:
    master = link.master
    return master.name if isinstance(master, Host) else (master.name, master.description)


def _dependency_info(link: DependsOn) -> tuple[Any, ...]:
    master = link.master
    names = (master.name,) if isinstance(master, Host) else (master.name, master.description)
    options = "".join(sorted(link.criteria))
    return (*names, options, link.period, int(link.inherits_parent))


def _listing(
    attribute: str, element: Callable[[Any], Any]
) -> Callable[[Checkable], tuple[Any, ...]]:
    get = attrgetter(attribute)

    def listing(target: Checkable) -> tuple[Any, ...]:
        items = get(target)
        if not items:
            return ()
        return tuple(map(element, items.values() if isinstance(items, dict) else items))

    return listing


def shared_columns(core: Core, kind: str) -> tuple[Column, ...]:
    """The columns of both tables; ``kind`` is ``host`` or ``service`` and is used in texts."""
    in_period, wall = core.in_period, core.wall

    def staleness(target: Checkable) -> float:
        span = target.check_interval * INTERVAL_LENGTH
        if not span or not target.last_check:
            return 0.0
        return (wall.now() - target.last_check) / span

    executing, notifying = "execution_dependencies", "notification_dependencies"
    pairs: Style = "pairs" if kind == "service" else ""
    return (
        *_configuration(core, kind),
        *_status(kind),
        column("staleness", "float", "Age of the last check in check intervals", staleness),
        column("in_check_period", "int", f"Whether the {kind} is in its check period (0/1)",
               lambda target: in_period(target.check_period)),
        column("in_notification_period", "int", "Whether it is in its notification period (0/1)",
               lambda target: in_period(target.notification_period)),
        column("comments", "list", "Ids of all comments", lambda target: tuple(target.comments)),
        column("comments_with_info", "list", "All comments with their values",
               _listing("comments", comment_info)),
        column("downtimes", "list", "Ids of all downtimes", lambda target: tuple(target.downtimes)),
        column("downtimes_with_info", "list", "All downtimes with their values",
               _listing("downtimes", downtime_info)),
        column("depends_exec", "list", "Objects on which its checks depend",
               _listing(executing, _dependency_name), pairs),
        column("depends_exec_with_info", "list", "The same with criteria, period and inheritance",
               _listing(executing, _dependency_info)),
        column("depends_notify", "list", "Objects on which its notifications depend",
               _listing(notifying, _dependency_name), pairs),
        column("depends_notify_with_info", "list", "The same with criteria, period, inheritance",
               _listing(notifying, _dependency_info)),
    )  # fmt: skip


def _configuration(core: Core, kind: str) -> tuple[Column, ...]:
    return (
        column("action_url", "string", "Address of custom actions or information"),
        column("action_url_expanded", "string", "The same with macros replaced"),
        column("check_command", "string", f"Command and arguments that check the {kind}"),
        column("check_period", "string", "Time period of active checks, empty for always"),
        column("check_source", "string", "Where the last result came from"),
        column("display_name", "string", "Name for display"),
        column("event_handler", "string", "Command that handles state changes"),
        column("icon_image", "string", "Picture for web pages"),
        column("icon_image_alt", "string", "Text in place of the picture"),
        column("icon_image_expanded", "string", "The picture with macros replaced"),
        column("notes", "string", "Optional notes"),
        column("notes_expanded", "string", "The notes with macros replaced"),
        column("notes_url", "string", "Address with further information"),
        column("notes_url_expanded", "string", "The same with macros replaced"),
        column("notification_period", "string", "Time period of notifications, empty for always"),
        column("check_interval", "float", "Interval units between two checks"),
        column("retry_interval", "float", "Interval units between checks in a soft problem"),
        column("notification_interval", "float", "Interval units between notifications"),
        column("first_notification_delay", "float", "Interval units before the first notification"),
        column("high_flap_threshold", "float", "Percentage above which flapping starts"),
        column("low_flap_threshold", "float", "Percentage below which flapping stops"),
        column("max_check_attempts", "int", "Checks until a problem becomes hard"),
        column("check_timeout", "int", "Seconds after which a check is given up"),
        column("hourly_value", "int", f"Importance of the {kind}"),
        column("initial_state", "int", "State before the first check"),
        column("id", "int", "Number of the object in the core"),
        column("contact_groups", "list", "Names of its contact groups"),
        column("contacts", "list", "Names of its contacts, groups resolved"),
        column("groups", "list", f"Names of the {kind} groups it is in"),
        column("custom_variables", "dict", "Custom variables by name"),
        column("custom_variable_names", "list", "Names of the custom variables",
               lambda target: tuple(target.custom_variables)),
        column("custom_variable_values", "list", "Values of the custom variables",
               lambda target: tuple(target.custom_variables.values()), deadly=core.valueless),
    )  # fmt: skip


def _status(kind: str) -> tuple[Column, ...]:
    return (
        column("state", "int", f"Present state of the {kind}"),
        column("state_type", "int", "Type of the state (0: soft, 1: hard)"),
        column("last_state", "int", "State before the last change"),
        column("last_hard_state", "int", "Last hard state"),
        column("has_been_checked", "int", "Whether there was a check already (0/1)"),
        column("current_attempt", "int", "Number of the present check attempt"),
        column("plugin_output", "string", "First line of the last check's output"),
        column("long_plugin_output", "string", "The output's other lines"),
        column("perf_data", "string", "Performance data of the last check", "", "perf"),
        column("execution_time", "float", "Seconds that the last check took"),
        column("latency", "float", "Seconds between planned and real start of the check"),
        column("percent_state_change", "float", "Share of state changes among the last checks"),
        column("acknowledged", "int", "Whether the problem is acknowledged (0/1)"),
        column("acknowledgement_type", "int", "0: none, 1: normal, 2: sticky"),
        column("active_checks_enabled", "int", "Whether active checks are on (0/1)"),
        column("accept_passive_checks", "int", "Whether passive results are accepted (0/1)"),
        column("checks_enabled", "int", "Whether checks are on (0/1)", "active_checks_enabled"),
        column("check_freshness", "int", "Whether freshness is checked (0/1)"),
        column("check_options", "int", "Options of the planned check (1: forced)"),
        column("check_type", "int", "Type of the last check (0: active, 1: passive)"),
        column("current_notification_number", "int", "Number of the present notification"),
        column("event_handler_enabled", "int", "Whether event handlers are on (0/1)"),
        column("flap_detection_enabled", "int", "Whether flapping is detected (0/1)"),
        column("is_executing", "int", "Whether a check is running (0/1)"),
        column("is_flapping", "int", "Whether the state flaps (0/1)"),
        column("last_check", "int", "Time of the last check", "", "time"),
        column("last_hard_state_change", "int", "Time of the last hard change", "", "time"),
        column("last_notification", "int", "Time of the last notification", "", "time"),
        column("last_state_change", "int", "Time of the last change, soft or hard", "", "time"),
        column("last_update", "int", "Time of the last change of any value", "", "micro"),
        column("next_check", "int", "Time of the next check", "", "time"),
        column("next_notification", "int", "Time of the next notification", "", "time"),
        column("modified_attributes", "int", "Bits of what commands have changed"),
        column("modified_attributes_list", "list", "Words for what commands have changed",
               lambda target: modified_names(target.modified_attributes), "bits"),
        column("no_more_notifications", "int", "Whether notifications have stopped (0/1)"),
        column("notifications_enabled", "int", "Whether notifications are on (0/1)"),
        column("notified_on", "int", "Bits of the states that were notified"),
        column("obsess", "int", "Whether it is obsessed over (0/1)"),
        column(f"obsess_over_{kind}", "int", "Whether it is obsessed over (0/1)", "obsess"),
        column("pnpgraph_present", "int", "Whether there is a graph, -1 when unknown",
               lambda _target: -1),
        column("process_performance_data", "int", "Whether performance data is processed (0/1)"),
        column("scheduled_downtime_depth", "int", "Number of downtimes in effect"),
        column("should_be_scheduled", "int", "Whether checks are planned (0/1)"),
    )  # fmt: skip
