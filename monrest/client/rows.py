"""Types of rows, generated from the declared columns, which the API reference explains.

A row has the selected columns, without a selection the default ones. A column that a core does not
have is empty: 0, "" or an empty list.
"""

from __future__ import annotations

from typing import Any, TypedDict


class HostColumns(TypedDict, total=False):
    """The columns of a host in rows of other collections."""

    host_accept_passive_checks: int
    host_acknowledged: int
    host_acknowledgement_type: int
    host_action_url: str
    host_action_url_expanded: str
    host_active_checks_enabled: int
    host_address: str
    host_alias: str
    host_check_command: str
    host_check_flapping_recovery_notification: int
    host_check_freshness: int
    host_check_interval: float
    host_check_options: int
    host_check_period: str
    host_check_source: str
    host_check_timeout: int
    host_check_type: int
    host_checks_enabled: int
    host_childs: list[str]
    host_comments: list[int]
    host_comments_info: str
    host_comments_with_info: list[list[Any]]
    host_contact_groups: list[str]
    host_contacts: list[str]
    host_current_attempt: int
    host_current_notification_number: int
    host_custom_variable_names: list[str]
    host_custom_variable_values: list[str]
    host_custom_variables: dict[str, str]
    host_depends_exec: list[str]
    host_depends_exec_with_info: list[list[Any]]
    host_depends_notify: list[str]
    host_depends_notify_with_info: list[list[Any]]
    host_display_name: str
    host_downtimes: list[int]
    host_downtimes_info: str
    host_downtimes_with_info: list[list[Any]]
    host_event_handler: str
    host_event_handler_enabled: int
    host_execution_time: float
    host_filename: str
    host_first_notification_delay: float
    host_flap_detection_enabled: int
    host_groups: list[str]
    host_hard_state: int
    host_has_been_checked: int
    host_high_flap_threshold: float
    host_hourly_value: int
    host_icon_image: str
    host_icon_image_alt: str
    host_icon_image_expanded: str
    host_id: int
    host_in_check_period: int
    host_in_notification_period: int
    host_initial_state: int
    host_is_executing: int
    host_is_flapping: int
    host_last_check: int
    host_last_hard_state: int
    host_last_hard_state_change: int
    host_last_notification: int
    host_last_state: int
    host_last_state_change: int
    host_last_state_change_order: int
    host_last_time_down: int
    host_last_time_unreachable: int
    host_last_time_up: int
    host_last_update: float
    host_latency: float
    host_long_plugin_output: str
    host_low_flap_threshold: float
    host_max_check_attempts: int
    host_modified_attributes: int
    host_modified_attributes_list: list[str]
    host_name: str
    host_next_check: int
    host_next_notification: int
    host_no_more_notifications: int
    host_notes: str
    host_notes_expanded: str
    host_notes_url: str
    host_notes_url_expanded: str
    host_notification_interval: float
    host_notification_period: str
    host_notifications_enabled: int
    host_notified_on: int
    host_num_services: int
    host_num_services_crit: int
    host_num_services_hard_crit: int
    host_num_services_hard_ok: int
    host_num_services_hard_unknown: int
    host_num_services_hard_warn: int
    host_num_services_ok: int
    host_num_services_pending: int
    host_num_services_unknown: int
    host_num_services_warn: int
    host_obsess: int
    host_obsess_over_host: int
    host_parents: list[str]
    host_pending_flex_downtime: int
    host_percent_state_change: float
    host_perf_data: str
    host_plugin_output: str
    host_pnpgraph_present: int
    host_process_performance_data: int
    host_retry_interval: float
    host_scheduled_downtime_depth: int
    host_services: list[str]
    host_services_with_info: list[list[Any]]
    host_services_with_state: list[list[Any]]
    host_should_be_scheduled: int
    host_staleness: float
    host_state: int
    host_state_type: int
    host_statusmap_image: str
    host_total_services: int
    host_worst_service_hard_state: int
    host_worst_service_state: int
    host_x_3d: float
    host_y_3d: float
    host_z_3d: float


class ServiceColumns(TypedDict, total=False):
    """The columns of a service in rows of other collections."""

    service_accept_passive_checks: int
    service_acknowledged: int
    service_acknowledgement_type: int
    service_action_url: str
    service_action_url_expanded: str
    service_active_checks_enabled: int
    service_check_command: str
    service_check_freshness: int
    service_check_interval: float
    service_check_options: int
    service_check_period: str
    service_check_source: str
    service_check_timeout: int
    service_check_type: int
    service_checks_enabled: int
    service_comments: list[int]
    service_comments_info: str
    service_comments_with_info: list[list[Any]]
    service_contact_groups: list[str]
    service_contacts: list[str]
    service_current_attempt: int
    service_current_notification_number: int
    service_custom_variable_names: list[str]
    service_custom_variable_values: list[str]
    service_custom_variables: dict[str, str]
    service_depends_exec: list[list[Any]]
    service_depends_exec_with_info: list[list[Any]]
    service_depends_notify: list[list[Any]]
    service_depends_notify_with_info: list[list[Any]]
    service_description: str
    service_display_name: str
    service_downtimes: list[int]
    service_downtimes_info: str
    service_downtimes_with_info: list[list[Any]]
    service_event_handler: str
    service_event_handler_enabled: int
    service_execution_time: float
    service_first_notification_delay: float
    service_flap_detection_enabled: int
    service_groups: list[str]
    service_has_been_checked: int
    service_high_flap_threshold: float
    service_hourly_value: int
    service_icon_image: str
    service_icon_image_alt: str
    service_icon_image_expanded: str
    service_id: int
    service_in_check_period: int
    service_in_notification_period: int
    service_initial_state: int
    service_is_executing: int
    service_is_flapping: int
    service_last_check: int
    service_last_hard_state: int
    service_last_hard_state_change: int
    service_last_notification: int
    service_last_state: int
    service_last_state_change: int
    service_last_state_change_order: int
    service_last_time_critical: int
    service_last_time_ok: int
    service_last_time_unknown: int
    service_last_time_warning: int
    service_last_update: float
    service_latency: float
    service_long_plugin_output: str
    service_low_flap_threshold: float
    service_max_check_attempts: int
    service_modified_attributes: int
    service_modified_attributes_list: list[str]
    service_next_check: int
    service_next_notification: int
    service_no_more_notifications: int
    service_notes: str
    service_notes_expanded: str
    service_notes_url: str
    service_notes_url_expanded: str
    service_notification_interval: float
    service_notification_period: str
    service_notifications_enabled: int
    service_notified_on: int
    service_obsess: int
    service_obsess_over_service: int
    service_parents: list[list[Any]]
    service_percent_state_change: float
    service_perf_data: str
    service_plugin_output: str
    service_pnpgraph_present: int
    service_process_performance_data: int
    service_retry_interval: float
    service_scheduled_downtime_depth: int
    service_should_be_scheduled: int
    service_staleness: float
    service_state: int
    service_state_order: int
    service_state_type: int


class CheckedRow(TypedDict, total=False):
    """The common columns of ``/hosts`` and ``/services``."""

    accept_passive_checks: int
    acknowledged: int
    acknowledgement_type: int
    action_url: str
    action_url_expanded: str
    active_checks_enabled: int
    check_command: str
    check_freshness: int
    check_interval: float
    check_options: int
    check_period: str
    check_source: str
    check_timeout: int
    check_type: int
    checks_enabled: int
    comments: list[int]
    comments_info: str
    comments_with_info: list[list[Any]]
    contact_groups: list[str]
    contacts: list[str]
    current_attempt: int
    current_notification_number: int
    custom_variable_names: list[str]
    custom_variable_values: list[str]
    custom_variables: dict[str, str]
    depends_exec_with_info: list[list[Any]]
    depends_notify_with_info: list[list[Any]]
    display_name: str
    downtimes: list[int]
    downtimes_info: str
    downtimes_with_info: list[list[Any]]
    event_handler: str
    event_handler_enabled: int
    execution_time: float
    first_notification_delay: float
    flap_detection_enabled: int
    groups: list[str]
    has_been_checked: int
    high_flap_threshold: float
    hourly_value: int
    icon_image: str
    icon_image_alt: str
    icon_image_expanded: str
    id: int
    in_check_period: int
    in_notification_period: int
    initial_state: int
    is_executing: int
    is_flapping: int
    last_check: int
    last_hard_state: int
    last_hard_state_change: int
    last_notification: int
    last_state: int
    last_state_change: int
    last_state_change_order: int
    last_update: float
    latency: float
    long_plugin_output: str
    low_flap_threshold: float
    max_check_attempts: int
    modified_attributes: int
    modified_attributes_list: list[str]
    next_check: int
    next_notification: int
    no_more_notifications: int
    notes: str
    notes_expanded: str
    notes_url: str
    notes_url_expanded: str
    notification_interval: float
    notification_period: str
    notifications_enabled: int
    notified_on: int
    obsess: int
    percent_state_change: float
    perf_data: str
    plugin_output: str
    pnpgraph_present: int
    process_performance_data: int
    retry_interval: float
    scheduled_downtime_depth: int
    should_be_scheduled: int
    staleness: float
    state: int
    state_type: int


class GroupRow(TypedDict, total=False):
    """The common columns of ``/hostgroups`` and ``/servicegroups``."""

    action_url: str
    alias: str
    id: int
    members_with_state: list[list[Any]]
    name: str
    notes: str
    notes_url: str
    num_services: int
    num_services_crit: int
    num_services_hard_crit: int
    num_services_hard_ok: int
    num_services_hard_unknown: int
    num_services_hard_warn: int
    num_services_ok: int
    num_services_pending: int
    num_services_unknown: int
    num_services_warn: int
    worst_service_state: int


class HostRow(CheckedRow, total=False):
    """A row of ``/hosts``."""

    address: str
    alias: str
    check_flapping_recovery_notification: int
    childs: list[str]
    depends_exec: list[str]
    depends_notify: list[str]
    filename: str
    hard_state: int
    last_time_down: int
    last_time_unreachable: int
    last_time_up: int
    name: str
    num_services: int
    num_services_crit: int
    num_services_hard_crit: int
    num_services_hard_ok: int
    num_services_hard_unknown: int
    num_services_hard_warn: int
    num_services_ok: int
    num_services_pending: int
    num_services_unknown: int
    num_services_warn: int
    obsess_over_host: int
    parents: list[str]
    pending_flex_downtime: int
    services: list[str]
    services_with_info: list[list[Any]]
    services_with_state: list[list[Any]]
    statusmap_image: str
    total_services: int
    worst_service_hard_state: int
    worst_service_state: int
    x_3d: float
    y_3d: float
    z_3d: float


class ServiceRow(HostColumns, CheckedRow, total=False):
    """A row of ``/services``."""

    depends_exec: list[list[Any]]
    depends_notify: list[list[Any]]
    description: str
    last_time_critical: int
    last_time_ok: int
    last_time_unknown: int
    last_time_warning: int
    obsess_over_service: int
    parents: list[list[Any]]
    state_order: int


class HostgroupRow(GroupRow, total=False):
    """A row of ``/hostgroups``."""

    members: list[str]
    num_hosts: int
    num_hosts_down: int
    num_hosts_pending: int
    num_hosts_unreach: int
    num_hosts_up: int
    worst_host_state: int
    worst_service_hard_state: int


class ServicegroupRow(GroupRow, total=False):
    """A row of ``/servicegroups``."""

    members: list[list[Any]]


class ContactRow(TypedDict, total=False):
    """A row of ``/contacts``."""

    address1: str
    address2: str
    address3: str
    address4: str
    address5: str
    address6: str
    alias: str
    can_submit_commands: int
    custom_variable_names: list[str]
    custom_variable_values: list[str]
    custom_variables: dict[str, str]
    email: str
    groups: list[str]
    host_notification_commands: list[str]
    host_notification_period: str
    host_notifications_enabled: int
    id: int
    in_host_notification_period: int
    in_service_notification_period: int
    last_update: str
    modified_attributes: int
    modified_attributes_list: list[str]
    name: str
    pager: str
    service_notification_commands: list[str]
    service_notification_period: str
    service_notifications_enabled: int


class ContactgroupRow(TypedDict, total=False):
    """A row of ``/contactgroups``."""

    alias: str
    id: int
    members: list[str]
    name: str


TimeperiodRowKeywords = TypedDict("TimeperiodRowKeywords", {"in": int}, total=False)


class TimeperiodRow(TimeperiodRowKeywords, total=False):
    """A row of ``/timeperiods``."""

    alias: str
    days: list[list[Any]]
    exceptions_calendar_dates: list[dict[str, Any]]
    exceptions_month_date: list[dict[str, Any]]
    exceptions_month_day: list[dict[str, Any]]
    exceptions_month_week_day: list[dict[str, Any]]
    exceptions_week_day: list[dict[str, Any]]
    exclusions: list[str]
    id: int
    name: str


class CheckCommandRow(TypedDict, total=False):
    """A row of ``/commands``."""

    id: int
    line: str
    name: str


class CommentRow(HostColumns, ServiceColumns, total=False):
    """A row of ``/comments``."""

    author: str
    comment: str
    entry_time: int
    entry_type: int
    expire_time: int
    expires: int
    id: int
    is_service: int
    persistent: int
    source: int
    type: int


class DowntimeRow(HostColumns, ServiceColumns, total=False):
    """A row of ``/downtimes``."""

    author: str
    comment: str
    duration: int
    end_time: int
    entry_time: int
    fixed: int
    id: int
    is_service: int
    start_time: int
    triggered_by: int
    type: int


LogRowKeywords = TypedDict("LogRowKeywords", {"class": int}, total=False)


class LogRow(LogRowKeywords, total=False):
    """A row of ``/logs``."""

    attempt: int
    command_name: str
    comment: str
    contact_name: str
    current_command_id: int
    current_command_line: str
    current_command_name: str
    current_contact_address1: str
    current_contact_address2: str
    current_contact_address3: str
    current_contact_address4: str
    current_contact_address5: str
    current_contact_address6: str
    current_contact_alias: str
    current_contact_can_submit_commands: int
    current_contact_custom_variable_names: list[str]
    current_contact_custom_variable_values: list[str]
    current_contact_custom_variables: dict[str, str]
    current_contact_email: str
    current_contact_groups: list[str]
    current_contact_host_notification_commands: list[str]
    current_contact_host_notification_period: str
    current_contact_host_notifications_enabled: int
    current_contact_id: int
    current_contact_in_host_notification_period: int
    current_contact_in_service_notification_period: int
    current_contact_modified_attributes: int
    current_contact_modified_attributes_list: list[str]
    current_contact_name: str
    current_contact_pager: str
    current_contact_service_notification_commands: list[str]
    current_contact_service_notification_period: str
    current_contact_service_notifications_enabled: int
    current_host_accept_passive_checks: int
    current_host_acknowledged: int
    current_host_acknowledgement_type: int
    current_host_action_url: str
    current_host_action_url_expanded: str
    current_host_active_checks_enabled: int
    current_host_address: str
    current_host_alias: str
    current_host_check_command: str
    current_host_check_flapping_recovery_notification: int
    current_host_check_freshness: int
    current_host_check_interval: float
    current_host_check_options: int
    current_host_check_period: str
    current_host_check_source: str
    current_host_check_timeout: int
    current_host_check_type: int
    current_host_checks_enabled: int
    current_host_childs: list[str]
    current_host_comments: list[int]
    current_host_comments_info: str
    current_host_comments_with_info: list[list[Any]]
    current_host_contact_groups: list[str]
    current_host_contacts: list[str]
    current_host_current_attempt: int
    current_host_current_notification_number: int
    current_host_custom_variable_names: list[str]
    current_host_custom_variable_values: list[str]
    current_host_custom_variables: dict[str, str]
    current_host_depends_exec: list[str]
    current_host_depends_exec_with_info: list[list[Any]]
    current_host_depends_notify: list[str]
    current_host_depends_notify_with_info: list[list[Any]]
    current_host_display_name: str
    current_host_downtimes: list[int]
    current_host_downtimes_info: str
    current_host_downtimes_with_info: list[list[Any]]
    current_host_event_handler: str
    current_host_event_handler_enabled: int
    current_host_execution_time: float
    current_host_filename: str
    current_host_first_notification_delay: float
    current_host_flap_detection_enabled: int
    current_host_groups: list[str]
    current_host_hard_state: int
    current_host_has_been_checked: int
    current_host_high_flap_threshold: float
    current_host_hourly_value: int
    current_host_icon_image: str
    current_host_icon_image_alt: str
    current_host_icon_image_expanded: str
    current_host_id: int
    current_host_in_check_period: int
    current_host_in_notification_period: int
    current_host_initial_state: int
    current_host_is_executing: int
    current_host_is_flapping: int
    current_host_last_check: int
    current_host_last_hard_state: int
    current_host_last_hard_state_change: int
    current_host_last_notification: int
    current_host_last_state: int
    current_host_last_state_change: int
    current_host_last_state_change_order: int
    current_host_last_time_down: int
    current_host_last_time_unreachable: int
    current_host_last_time_up: int
    current_host_last_update: float
    current_host_latency: float
    current_host_long_plugin_output: str
    current_host_low_flap_threshold: float
    current_host_max_check_attempts: int
    current_host_modified_attributes: int
    current_host_modified_attributes_list: list[str]
    current_host_name: str
    current_host_next_check: int
    current_host_next_notification: int
    current_host_no_more_notifications: int
    current_host_notes: str
    current_host_notes_expanded: str
    current_host_notes_url: str
    current_host_notes_url_expanded: str
    current_host_notification_interval: float
    current_host_notification_period: str
    current_host_notifications_enabled: int
    current_host_notified_on: int
    current_host_num_services: int
    current_host_num_services_crit: int
    current_host_num_services_hard_crit: int
    current_host_num_services_hard_ok: int
    current_host_num_services_hard_unknown: int
    current_host_num_services_hard_warn: int
    current_host_num_services_ok: int
    current_host_num_services_pending: int
    current_host_num_services_unknown: int
    current_host_num_services_warn: int
    current_host_obsess: int
    current_host_obsess_over_host: int
    current_host_parents: list[str]
    current_host_pending_flex_downtime: int
    current_host_percent_state_change: float
    current_host_perf_data: str
    current_host_plugin_output: str
    current_host_pnpgraph_present: int
    current_host_process_performance_data: int
    current_host_retry_interval: float
    current_host_scheduled_downtime_depth: int
    current_host_services: list[str]
    current_host_services_with_info: list[list[Any]]
    current_host_services_with_state: list[list[Any]]
    current_host_should_be_scheduled: int
    current_host_staleness: float
    current_host_state: int
    current_host_state_type: int
    current_host_statusmap_image: str
    current_host_total_services: int
    current_host_worst_service_hard_state: int
    current_host_worst_service_state: int
    current_host_x_3d: float
    current_host_y_3d: float
    current_host_z_3d: float
    current_service_accept_passive_checks: int
    current_service_acknowledged: int
    current_service_acknowledgement_type: int
    current_service_action_url: str
    current_service_action_url_expanded: str
    current_service_active_checks_enabled: int
    current_service_check_command: str
    current_service_check_freshness: int
    current_service_check_interval: float
    current_service_check_options: int
    current_service_check_period: str
    current_service_check_source: str
    current_service_check_timeout: int
    current_service_check_type: int
    current_service_checks_enabled: int
    current_service_comments: list[int]
    current_service_comments_info: str
    current_service_comments_with_info: list[list[Any]]
    current_service_contact_groups: list[str]
    current_service_contacts: list[str]
    current_service_current_attempt: int
    current_service_current_notification_number: int
    current_service_custom_variable_names: list[str]
    current_service_custom_variable_values: list[str]
    current_service_custom_variables: dict[str, str]
    current_service_depends_exec: list[list[Any]]
    current_service_depends_exec_with_info: list[list[Any]]
    current_service_depends_notify: list[list[Any]]
    current_service_depends_notify_with_info: list[list[Any]]
    current_service_description: str
    current_service_display_name: str
    current_service_downtimes: list[int]
    current_service_downtimes_info: str
    current_service_downtimes_with_info: list[list[Any]]
    current_service_event_handler: str
    current_service_event_handler_enabled: int
    current_service_execution_time: float
    current_service_first_notification_delay: float
    current_service_flap_detection_enabled: int
    current_service_groups: list[str]
    current_service_has_been_checked: int
    current_service_high_flap_threshold: float
    current_service_hourly_value: int
    current_service_icon_image: str
    current_service_icon_image_alt: str
    current_service_icon_image_expanded: str
    current_service_id: int
    current_service_in_check_period: int
    current_service_in_notification_period: int
    current_service_initial_state: int
    current_service_is_executing: int
    current_service_is_flapping: int
    current_service_last_check: int
    current_service_last_hard_state: int
    current_service_last_hard_state_change: int
    current_service_last_notification: int
    current_service_last_state: int
    current_service_last_state_change: int
    current_service_last_state_change_order: int
    current_service_last_time_critical: int
    current_service_last_time_ok: int
    current_service_last_time_unknown: int
    current_service_last_time_warning: int
    current_service_last_update: float
    current_service_latency: float
    current_service_long_plugin_output: str
    current_service_low_flap_threshold: float
    current_service_max_check_attempts: int
    current_service_modified_attributes: int
    current_service_modified_attributes_list: list[str]
    current_service_next_check: int
    current_service_next_notification: int
    current_service_no_more_notifications: int
    current_service_notes: str
    current_service_notes_expanded: str
    current_service_notes_url: str
    current_service_notes_url_expanded: str
    current_service_notification_interval: float
    current_service_notification_period: str
    current_service_notifications_enabled: int
    current_service_notified_on: int
    current_service_obsess: int
    current_service_obsess_over_service: int
    current_service_parents: list[list[Any]]
    current_service_percent_state_change: float
    current_service_perf_data: str
    current_service_plugin_output: str
    current_service_pnpgraph_present: int
    current_service_process_performance_data: int
    current_service_retry_interval: float
    current_service_scheduled_downtime_depth: int
    current_service_should_be_scheduled: int
    current_service_staleness: float
    current_service_state: int
    current_service_state_order: int
    current_service_state_type: int
    host_name: str
    lineno: int
    message: str
    options: str
    plugin_output: str
    service_description: str
    state: int
    state_type: str
    time: int
    type: str


class ProcessRow(TypedDict, total=False):
    """A row of ``/processinfo``."""

    accept_passive_host_checks: int
    accept_passive_service_checks: int
    cached_log_messages: int
    check_external_commands: int
    check_host_freshness: int
    check_service_freshness: int
    connections: int
    connections_rate: float
    data_source_version: str
    enable_event_handlers: int
    enable_flap_detection: int
    enable_notifications: int
    execute_host_checks: int
    execute_service_checks: int
    forks: int
    forks_rate: float
    host_checks: int
    host_checks_rate: float
    interval_length: int
    last_command_check: int
    last_log_rotation: int
    livecheck_overflows: int
    livecheck_overflows_rate: float
    livechecks: int
    livechecks_rate: float
    livestatus_version: str
    localtime: int
    log_messages: int
    log_messages_rate: float
    nagios_pid: int
    neb_callbacks: int
    neb_callbacks_rate: float
    num_hosts: int
    num_services: int
    obsess_over_hosts: int
    obsess_over_services: int
    peer_addr: str
    process_performance_data: int
    program_start: int
    program_version: str
    requests: int
    requests_rate: float
    service_checks: int
    service_checks_rate: float


class SiteRow(TypedDict, total=False):
    """A row of ``/sites``."""

    addr: str
    connected: int
    core: str
    federation_addr: list[str]
    federation_key: list[str]
    federation_name: list[str]
    federation_type: list[str]
    federation_version: list[str]
    groups: list[str]
    hidden: int
    id: str
    instances: list[str]
    last_error: str
    localtime: int
    name: str
    program_start: int
    section: str
    status: int
    tables: dict[str, Any]
    type: str
