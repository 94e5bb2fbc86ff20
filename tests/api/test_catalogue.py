"""The catalogue of columns against lists of what the interface and a Naemon have."""

import pytest

from monrest.query.column_names import CoreColumn, DerivedColumn
from monrest.rows.columns import JOINED, PSEUDO_COLUMNS, SCHEMAS
from monrest.rows.columns.declaring import (
    change_or_start,
    command_check,
    data_source,
    info,
    integer,
    state_order,
    table,
    text,
)
from tests.table import each

SERVICE_COUNTS = """num_services num_services_ok num_services_warn num_services_crit
    num_services_unknown num_services_pending num_services_hard_ok num_services_hard_warn
    num_services_hard_crit num_services_hard_unknown"""

DEFAULTS = {
    "hosts": """
        name display_name alias address check_command check_period event_handler
        notification_period plugin_output long_plugin_output perf_data notes notes_expanded
        notes_url notes_url_expanded action_url action_url_expanded icon_image icon_image_expanded
        icon_image_alt comments_info downtimes_info
        state state_type hard_state last_state last_hard_state has_been_checked check_type
        check_options current_attempt max_check_attempts current_notification_number
        scheduled_downtime_depth last_check next_check last_state_change last_hard_state_change
        last_state_change_order last_notification last_time_up last_time_down
        last_time_unreachable num_services num_services_ok num_services_warn num_services_crit
        num_services_unknown num_services_pending accept_passive_checks acknowledged
        active_checks_enabled check_freshness checks_enabled event_handler_enabled
        flap_detection_enabled in_check_period in_notification_period is_executing is_flapping
        notifications_enabled obsess_over_host process_performance_data
        check_interval retry_interval notification_interval first_notification_delay
        execution_time latency low_flap_threshold high_flap_threshold percent_state_change
        last_update
        childs parents groups contacts contact_groups services services_with_state
        services_with_info comments comments_with_info downtimes_with_info
        modified_attributes_list custom_variable_names custom_variable_values depends_exec
        depends_notify custom_variables""",
    "services": """
        host_name description display_name check_command check_period event_handler
        notification_period plugin_output long_plugin_output perf_data notes notes_expanded
        notes_url notes_url_expanded action_url action_url_expanded icon_image icon_image_expanded
        icon_image_alt comments_info downtimes_info host_alias host_display_name host_address
        host_check_command host_plugin_output host_perf_data host_notes host_notes_url_expanded
        host_action_url_expanded host_icon_image_expanded host_icon_image_alt
        state state_order state_type last_state last_hard_state has_been_checked check_type
        check_options current_attempt max_check_attempts current_notification_number
        scheduled_downtime_depth last_check next_check last_state_change last_hard_state_change
        last_state_change_order last_notification last_time_ok last_time_warning
        last_time_critical last_time_unknown accept_passive_checks acknowledged
        active_checks_enabled checks_enabled event_handler_enabled flap_detection_enabled
        in_check_period in_notification_period is_executing is_flapping notifications_enabled
        obsess_over_service process_performance_data host_state host_has_been_checked
        host_check_type host_current_attempt host_scheduled_downtime_depth host_last_state_change
        host_acknowledged host_accept_passive_checks host_active_checks_enabled
        host_checks_enabled host_notifications_enabled host_is_executing host_is_flapping
        check_interval retry_interval notification_interval first_notification_delay
        execution_time latency low_flap_threshold high_flap_threshold percent_state_change
        host_latency last_update
        groups contacts contact_groups comments comments_with_info downtimes_with_info
        modified_attributes_list custom_variable_names custom_variable_values host_groups
        host_parents host_contacts host_contact_groups host_comments host_custom_variable_names
        host_custom_variable_values depends_exec depends_notify parents
        custom_variables host_custom_variables""",
    "hostgroups": f"""
        name alias notes notes_url action_url members num_hosts num_hosts_up num_hosts_down
        num_hosts_unreach num_hosts_pending {SERVICE_COUNTS}
        worst_host_state worst_service_state worst_service_hard_state""",
    "servicegroups": f"""
        name alias notes notes_url action_url members {SERVICE_COUNTS} worst_service_state""",
    "contacts": """
        name alias email pager host_notification_period service_notification_period
        can_submit_commands host_notifications_enabled service_notifications_enabled
        in_host_notification_period in_service_notification_period modified_attributes_list
        id address1 address2 address3 address4 address5 groups host_notification_commands
        service_notification_commands custom_variable_names custom_variable_values
        custom_variables last_update""",
    "contactgroups": "name alias members",
    "commands": "name line",
    "timeperiods": "name alias exclusions",
    "comments": """
        id entry_time entry_type expires expire_time persistent source type author comment
        host_name service_description""",
    "downtimes": """
        id entry_time start_time end_time duration fixed triggered_by author comment host_name
        service_description""",
    "logs": """
        class state time type message options host_name service_description contact_name
        plugin_output state_type command_name attempt comment lineno""",
    "processinfo": """
        accept_passive_host_checks accept_passive_service_checks check_external_commands
        check_host_freshness check_service_freshness enable_event_handlers enable_flap_detection
        enable_notifications execute_host_checks execute_service_checks obsess_over_hosts
        obsess_over_services process_performance_data program_start last_command_check
        last_log_rotation nagios_pid interval_length program_version data_source_version
        peer_addr""",
}

MORE = {
    "hosts": """
        acknowledgement_type check_flapping_recovery_notification check_timeout hourly_value id
        initial_state modified_attributes next_notification no_more_notifications notified_on
        num_services_hard_crit num_services_hard_ok num_services_hard_unknown
        num_services_hard_warn obsess pending_flex_downtime pnpgraph_present should_be_scheduled
        total_services worst_service_state worst_service_hard_state staleness x_3d y_3d z_3d
        downtimes depends_exec_with_info depends_notify_with_info check_source filename
        statusmap_image""",
    "hostgroups": "id members_with_state",
    "servicegroups": "id members_with_state",
    "contacts": "modified_attributes address6",
    "contactgroups": "id",
    "commands": "id",
    "timeperiods": """id in days exceptions_calendar_dates exceptions_month_date
        exceptions_month_day exceptions_month_week_day exceptions_week_day""",
}
OWN_MORE_OF_SERVICES = """
    acknowledgement_type check_freshness check_timeout hourly_value id initial_state
    modified_attributes next_notification no_more_notifications notified_on obsess
    pnpgraph_present should_be_scheduled staleness downtimes depends_exec_with_info
    depends_notify_with_info check_source"""

DERIVED = {
    "hosts": {"comments_info", "downtimes_info", "last_state_change_order"},
    "services": {"comments_info", "downtimes_info", "last_state_change_order", "state_order"},
    "processinfo": {"last_command_check", "data_source_version", "peer_addr"},
}

SIZES = {
    # What a Naemon has in all; contacts have one that no core has.
    "hosts": 118, "services": 210, "hostgroups": 26, "servicegroups": 19, "contacts": 26 + 1,
    "contactgroups": 4, "commands": 3, "timeperiods": 11, "comments": 221, "downtimes": 221,
    "log": 254,
}  # fmt: skip

LABELS = {
    "hosts": {
        "accept_passive_checks": "boolean", "action_url_expanded": "string",
        "check_freshness": "number", "check_options": "number", "checks_enabled": "number",
        "childs": "array_of_strings", "comments": "array_of_strings", "comments_info": "string",
        "comments_with_info": "array_of_strings", "custom_variable_names": "array_of_strings",
        "custom_variable_values": "array_of_strings", "downtimes_info": "string",
        "downtimes_with_info": "array_of_strings", "groups": "array_of_strings", "hard_state": "number",
        "icon_image_expanded": "string", "in_check_period": "boolean",
        "in_notification_period": "boolean", "is_executing": "boolean", "latency": "number",
        "modified_attributes_list": "array_of_strings", "notes_expanded": "string",
        "notes_url_expanded": "string",
    },
    "services": {
        "accept_passive_checks": "boolean", "action_url_expanded": "string",
        "check_options": "number", "checks_enabled": "boolean", "comments": "array_of_strings",
        "comments_info": "string", "comments_with_info": "array_of_strings",
        "custom_variable_names": "array_of_strings", "custom_variable_values": "array_of_strings",
    },
    "hostgroups": {f"num_services_hard_{one}": "number" for one in ("ok", "warn", "crit")},
    "servicegroups": {f"num_services_hard_{one}": "number" for one in ("ok", "warn", "crit")},
    "contacts": {
        "in_host_notification_period": "boolean", "in_service_notification_period": "boolean",
        "modified_attributes_list": "array_of_strings",
    },
    "logs": {
        **dict.fromkeys(["attempt", "class", "lineno", "state"], "number"), "time": "time",
        **dict.fromkeys(
            ["command_name", "comment", "contact_name", "host_name", "message", "options",
             "plugin_output", "service_description", "type", "state_type"], "string"),
    },
    "processinfo": {
        "check_external_commands": "number", "data_source_version": "string",
        "nagios_pid": "number", "obsess_over_hosts": "boolean", "obsess_over_services": "boolean",
        "peer_addr": "string",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_default_columns(name):
    declared = [one.name for one in SCHEMAS[name].columns.values() if one.default]
    assert sorted(declared) == sorted(DEFAULTS[name].split())


@pytest.mark.parametrize("name", MORE)
def test_further_columns(name):
    declared = [one.name for one in SCHEMAS[name].columns.values() if not one.default]
    assert sorted(declared) == sorted(MORE[name].split())


def test_further_columns_of_services():
    declared = [
        one.name
        for one in SCHEMAS["services"].columns.values()
        if not one.default and not one.name.startswith("host_")
    ]
    assert sorted(declared) == sorted(OWN_MORE_OF_SERVICES.split())


@pytest.mark.parametrize("name", SCHEMAS)
def test_derived_columns(name):
    derived = {
        one.name
        for one in SCHEMAS[name].columns.values()
        if isinstance(one, DerivedColumn)
        and not any(one.name.startswith(joined.prefix) for joined in JOINED.get(name, ()))
    }
    assert derived == DERIVED.get(name, set())


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_the_number_of_core_columns(schema):
    core = [one for one in schema.columns.values() if isinstance(one, CoreColumn)]
    if schema.table in SIZES:
        assert len(core) == SIZES[schema.table]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_sources_of_derived_columns_exist(schema):
    for one in schema.columns.values():
        if isinstance(one, DerivedColumn):
            for source in one.sources:
                # A core column may be shadowed by the column that is computed from it.
                assert source in PSEUDO_COLUMNS or source in schema.columns, one.name


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_every_column_is_described(schema):
    for name, one in schema.columns.items():
        assert one.name == name
        assert one.column.description
        assert one.column.type
        if isinstance(one, CoreColumn) and one.column.type == "time":
            assert one.core_type == "time"


@each(
    ("name", "column", "label"),
    [(name, column, label) for name, each in LABELS.items() for column, label in each.items()],
)
def test_types_of_the_interface_description(name, column, label):
    assert SCHEMAS[name].columns[column].column.type == label


@pytest.mark.parametrize(
    ("name", "column", "unit"),
    [
        ("hosts", "latency", "s"),
        ("hosts", "execution_time", "s"),
        ("services", "host_latency", "s"),
        ("services", "percent_state_change", "%"),
        ("downtimes", "duration", "s"),
        ("hosts", "check_interval", ""),
    ],
)
def test_units(name, column, unit):
    assert SCHEMAS[name].columns[column].column.unit == unit


@pytest.mark.parametrize("name", JOINED)
def test_joined_columns_are_those_of_the_other_collection(name):
    for joined in JOINED[name]:
        other = SCHEMAS[joined.collection].columns
        found = {
            one.removeprefix(joined.prefix)
            for one in SCHEMAS[name].columns
            if one.startswith(joined.prefix)
        }
        if joined.collection == "services":
            other = {one: each for one, each in other.items() if not one.startswith("host_")}
        if joined.collection == "contacts":
            other = {one: each for one, each in other.items() if one != "last_update"}
        if name == "logs":
            assert found == set(other)
        else:
            assert found >= set(other)
        for column in other:
            mine = SCHEMAS[name].columns[joined.prefix + column]
            assert mine.column.type == other[column].column.type
            assert type(mine) is type(other[column])


def test_sources_of_joined_columns_are_joined_too():
    column = SCHEMAS["comments"].columns["service_last_state_change_order"]
    assert isinstance(column, DerivedColumn)
    assert column.sources == ("service_last_state_change", "program_start")


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_keys_name_columns(schema):
    for column in (*schema.order, *schema.aliases.values(), *schema.q_aliases.values()):
        assert column in schema.columns
    for column, _ in (*schema.perf, *schema.custom):
        assert column in schema.columns


def test_a_name_declared_twice_is_refused():
    with pytest.raises(ValueError, match="column name is declared twice"):
        table(text({"name": "one"}), integer({"name": "two"}))


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (None, ""),
        ([], ""),
        ([[3, "ann", "disk is full"]], "id:3 author:ann: text:disk is full"),
        (
            [[3, "ann", "a", 17, 1], [4, "bob", "b"]],
            "id:3 author:ann: text:a, id:4 author:bob: text:b",
        ),
    ],
)
def test_info(entries, expected):
    assert info(entries) == expected


@pytest.mark.parametrize(("state", "order"), [(0, 0), (1, 1), (2, 4), (3, 3), (None, None)])
def test_state_order(state, order):
    assert state_order(state) == order


@pytest.mark.parametrize(
    ("change", "start", "expected"), [(7, 5, 7), (0, 5, 5), (None, 5, 5), (0, None, 0)]
)
def test_last_state_change_order(change, start, expected):
    assert change_or_start(change, start) == expected


@pytest.mark.parametrize(("check", "start", "expected"), [(9, 5, 9), (5, 5, 77), (0, 5, 0)])
def test_last_command_check(check, start, expected):
    assert command_check(check, start, 77.9) == expected


def test_data_source():
    assert data_source("1.5.1") == "Livestatus 1.5.1"
