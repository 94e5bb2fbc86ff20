"""The tables of cores that cannot be asked for their columns, and what they are made from.

Icinga 2 and Shinken have no ``columns`` table, so their lists are kept here: the columns of a
running Naemon (docs/spec/livestatus.md, "Tables and columns") minus what the other core lacks plus
what it adds (docs/spec/icinga2.md, "Values"). A column that is missing here is answered with an
empty value; one too many makes Icinga 2 refuse the whole query.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache

Columns = dict[str, str]
Tables = dict[str, Columns]


def _columns(**types: str) -> Columns:
    # The same names as everywhere, of which the interpreter keeps one.
    return {sys.intern(name): kind for kind, text in types.items() for name in text.split()}


NAEMON: Tables = {
    "hosts": _columns(
        string="""
            action_url action_url_expanded address alias check_command check_period
            check_source display_name event_handler filename icon_image icon_image_alt
            icon_image_expanded long_plugin_output name notes notes_expanded notes_url
            notes_url_expanded notification_period perf_data plugin_output
            statusmap_image
        """,
        int="""
            accept_passive_checks acknowledged acknowledgement_type
            active_checks_enabled check_flapping_recovery_notification check_freshness
            check_options check_timeout check_type checks_enabled current_attempt
            current_notification_number event_handler_enabled flap_detection_enabled
            hard_state has_been_checked hourly_value id in_check_period
            in_notification_period initial_state is_executing is_flapping last_check
            last_hard_state last_hard_state_change last_notification last_state
            last_state_change last_time_down last_time_unreachable last_time_up
            last_update max_check_attempts modified_attributes next_check
            next_notification no_more_notifications notifications_enabled notified_on
            num_services num_services_crit num_services_hard_crit num_services_hard_ok
            num_services_hard_unknown num_services_hard_warn num_services_ok
            num_services_pending num_services_unknown num_services_warn obsess
            obsess_over_host pending_flex_downtime pnpgraph_present
            process_performance_data scheduled_downtime_depth should_be_scheduled state
            state_type total_services worst_service_hard_state worst_service_state
        """,
        float="""
            check_interval execution_time first_notification_delay high_flap_threshold
            latency low_flap_threshold notification_interval percent_state_change
            retry_interval staleness x_3d y_3d z_3d
        """,
        list="""
            childs comments comments_with_info contact_groups contacts
            custom_variable_names custom_variable_values depends_exec
            depends_exec_with_info depends_notify depends_notify_with_info downtimes
            downtimes_with_info groups modified_attributes_list parents services
            services_with_info services_with_state
        """,
        dict="custom_variables",
    ),
    "services": _columns(
        string="""
            action_url action_url_expanded check_command check_period check_source
            description display_name event_handler icon_image icon_image_alt
            icon_image_expanded long_plugin_output notes notes_expanded notes_url
            notes_url_expanded notification_period perf_data plugin_output
        """,
        int="""
            accept_passive_checks acknowledged acknowledgement_type
            active_checks_enabled check_freshness check_options check_timeout check_type
            checks_enabled current_attempt current_notification_number
            event_handler_enabled flap_detection_enabled has_been_checked hourly_value
            id in_check_period in_notification_period initial_state is_executing
            is_flapping last_check last_hard_state last_hard_state_change
            last_notification last_state last_state_change last_time_critical
            last_time_ok last_time_unknown last_time_warning last_update
            max_check_attempts modified_attributes next_check next_notification
            no_more_notifications notifications_enabled notified_on obsess
            obsess_over_service pnpgraph_present process_performance_data
            scheduled_downtime_depth should_be_scheduled state state_type
        """,
        float="""
            check_interval execution_time first_notification_delay high_flap_threshold
            latency low_flap_threshold notification_interval percent_state_change
            retry_interval staleness
        """,
        list="""
            comments comments_with_info contact_groups contacts custom_variable_names
            custom_variable_values depends_exec depends_exec_with_info depends_notify
            depends_notify_with_info downtimes downtimes_with_info groups
            modified_attributes_list parents
        """,
        dict="custom_variables",
    ),
    "hostgroups": _columns(
        string="action_url alias name notes notes_url",
        int="""
            id num_hosts num_hosts_down num_hosts_pending num_hosts_unreach num_hosts_up
            num_services num_services_crit num_services_hard_crit num_services_hard_ok
            num_services_hard_unknown num_services_hard_warn num_services_ok
            num_services_pending num_services_unknown num_services_warn worst_host_state
            worst_service_hard_state worst_service_state
        """,
        list="members members_with_state",
    ),
    "servicegroups": _columns(
        string="action_url alias name notes notes_url",
        int="""
            id num_services num_services_crit num_services_hard_crit
            num_services_hard_ok num_services_hard_unknown num_services_hard_warn
            num_services_ok num_services_pending num_services_unknown num_services_warn
            worst_service_state
        """,
        list="members members_with_state",
    ),
    "contacts": _columns(
        string="""
            address1 address2 address3 address4 address5 address6 alias email
            host_notification_period name pager service_notification_period
        """,
        int="""
            can_submit_commands host_notifications_enabled id
            in_host_notification_period in_service_notification_period
            modified_attributes service_notifications_enabled
        """,
        list="""
            custom_variable_names custom_variable_values groups
            host_notification_commands modified_attributes_list
            service_notification_commands
        """,
        dict="custom_variables",
    ),
    "contactgroups": _columns(
        string="alias name",
        int="id",
        list="members",
    ),
    "commands": _columns(
        string="line name",
        int="id",
    ),
    "timeperiods": _columns(
        string="alias name",
        int="id in",
        list="""
            days exceptions_calendar_dates exceptions_month_date exceptions_month_day
            exceptions_month_week_day exceptions_week_day exclusions
        """,
    ),
    "comments": _columns(
        string="author comment",
        int="""
            entry_time entry_type expire_time expires id is_service persistent source
            type
        """,
    ),
    "downtimes": _columns(
        string="author comment",
        int="""
            duration end_time entry_time fixed id is_service start_time triggered_by
            type
        """,
    ),
    "log": _columns(
        string="""
            command_name comment contact_name host_name message options plugin_output
            service_description state_type type
        """,
        int="attempt class lineno state time",
    ),
    "status": _columns(
        string="livestatus_version program_version",
        int="""
            accept_passive_host_checks accept_passive_service_checks cached_log_messages
            check_external_commands check_host_freshness check_service_freshness
            connections enable_event_handlers enable_flap_detection enable_notifications
            execute_host_checks execute_service_checks forks host_checks interval_length
            last_command_check last_log_rotation livecheck_overflows livechecks
            log_messages nagios_pid neb_callbacks num_hosts num_services
            obsess_over_hosts obsess_over_services process_performance_data
            program_start requests service_checks
        """,
        float="""
            connections_rate forks_rate host_checks_rate livecheck_overflows_rate
            livechecks_rate log_messages_rate neb_callbacks_rate requests_rate
            service_checks_rate
        """,
    ),
}
"""Own columns of each table of Naemon 1.5 by core type; joined ones come from ``joined``."""

_JOINS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("comments", (("host_", "hosts"), ("service_", "services"))),
    ("downtimes", (("host_", "hosts"), ("service_", "services"))),
    (
        "log",
        (
            ("current_host_", "hosts"),
            ("current_service_", "services"),
            ("current_contact_", "contacts"),
            ("current_command_", "commands"),
        ),
    ),
)


@cache
def naemon() -> Tables:
    """All tables of Naemon with their joined columns."""
    return joined(NAEMON)


def joined(own: Tables) -> Tables:
    """All tables with their joined columns, from the own columns of each."""
    tables = {table: dict(columns) for table, columns in own.items()}
    hosts, services = own["hosts"], own["services"]
    tables["services"] |= _prefixed("host_", hosts)
    for table, joins in _JOINS:
        for prefix, other in joins:
            tables[table] |= _prefixed(prefix, own[other])
    groups = _prefixed("hostgroup_", own["hostgroups"])
    tables["hostsbygroup"] = hosts | groups
    tables["servicesbyhostgroup"] = services | _prefixed("host_", hosts) | groups
    groups = _prefixed("servicegroup_", own["servicegroups"])
    tables["servicesbygroup"] = services | _prefixed("host_", hosts) | groups
    return tables


def _prefixed(prefix: str, columns: Mapping[str, str]) -> Columns:
    return {prefix + name: kind for name, kind in columns.items()}


def _changed(table: str, without: Iterable[str] = (), more: Columns | None = None) -> Columns:
    gone = set(without)
    kept = {name: kind for name, kind in NAEMON[table].items() if name not in gone}
    return kept | (more or {})


_ICINGA2_LACKS = (
    "check_timeout",
    "depends_exec",
    "depends_exec_with_info",
    "depends_notify",
    "depends_notify_with_info",
    "hourly_value",
    "id",
    "last_update",
    "notified_on",
    "obsess",
    "should_be_scheduled",
)
_ICINGA2_ADDS = _columns(
    string="check_command_expanded original_attributes",
    int="cv_is_json is_reachable",
    list="comments_with_extra_info",
)
_VARIABLES = _columns(list="custom_variable_names custom_variable_values", dict="custom_variables")


@cache
def icinga2() -> Tables:
    """All tables of Icinga 2, joined columns included (seen on 2.13.6)."""
    own: Tables = {
        "hosts": _changed(
            "hosts",
            _ICINGA2_LACKS,
            _ICINGA2_ADDS | _columns(string="address6 host_name", float="x_2d y_2d"),
        ),
        "services": _changed(
            "services",
            [*_ICINGA2_LACKS, "parents"],
            _ICINGA2_ADDS | _columns(string="service_description"),
        ),
        "contacts": _changed(
            "contacts",
            [
                *(f"address{number}" for number in range(1, 7)),
                *_VARIABLES,
                *("groups", "host_notification_commands", "service_notification_commands", "id"),
            ],
            _columns(
                int="cv_is_json",
                list="vars_variable_names vars_variable_values",
                dict="vars_variables",
            ),
        ),
        "commands": _changed(
            "commands",
            ["id"],
            _VARIABLES | _columns(int="modified_attributes", list="modified_attributes_list"),
        ),
        "timeperiods": _columns(string="name alias", int="in"),
        "comments": _changed("comments"),
        "downtimes": _changed("downtimes"),
        "log": _changed("log"),
        "status": _changed(
            "status",
            (),
            _VARIABLES
            | _columns(
                int="""external_command_buffer_max external_command_buffer_slots
                external_command_buffer_usage external_commands livestatus_active_connections
                livestatus_queued_connections livestatus_threads""",
                float="external_commands_rate",
            ),
        ),
    }
    for table in ("hostgroups", "servicegroups", "contactgroups"):
        own[table] = _changed(table, ["id"])
    tables = joined(own)
    tables["endpoints"] = _columns(string="name identity node zone", int="is_connected")
    tables["zones"] = _columns(string="name parent", list="endpoints", int="global")
    return tables


_SHINKEN_LACKS = (
    *_ICINGA2_LACKS,
    "check_source",
    "check_flapping_recovery_notification",
    "staleness",
)


@cache
def shinken() -> Tables:
    """All tables of Shinken that are certain from its sources; no running one was at hand."""
    extras = _columns(
        int="is_impact business_impact is_problem criticity got_business_rule",
        string="poller_tag realm",
        list="source_problems impacts parent_dependencies",
    )
    own: Tables = {
        "hosts": _changed("hosts", _SHINKEN_LACKS, extras),
        "services": _changed(
            "services",
            [*_SHINKEN_LACKS, "parents"],
            {name: kind for name, kind in extras.items() if name != "realm"},
        ),
        "contacts": _changed(
            "contacts",
            ["groups", "host_notification_commands", "id", "service_notification_commands"],
        ),
        "status": _changed("status", ["num_hosts", "num_services"]),
        "timeperiods": _columns(string="name alias", int="in"),
    }
    for table in ("hostgroups", "servicegroups", "contactgroups", "commands"):
        own[table] = _changed(table, ["id"])
    for table in ("comments", "downtimes", "log"):
        own[table] = _changed(table)
    return joined(own)
