"""Columns of /processinfo."""

from __future__ import annotations

from monrest.base.values import Column
from monrest.query.column_names import TableSchema
from monrest.rows.columns.declaring import (
    command_check,
    data_source,
    decimal,
    derived,
    flag,
    given,
    integer,
    table,
    text,
    time,
)

COUNTERS = (
    "connections",
    "forks",
    "host_checks",
    "log_messages",
    "neb_callbacks",
    "requests",
    "service_checks",
)
"""Counters of the core since its start, each with a column ``…_rate`` per second."""

PROCESSINFO = TableSchema(
    name="processinfo",
    table="status",
    columns=table(
        integer(
            {
                "accept_passive_host_checks": "1 if passive results of hosts are accepted",
                "accept_passive_service_checks": "1 if passive results of services are accepted",
                "check_external_commands": "1 if external commands are accepted",
                "check_host_freshness": "1 if the age of host results is watched",
                "check_service_freshness": "1 if the age of service results is watched",
                "enable_event_handlers": "1 if event handlers are enabled",
                "enable_flap_detection": "1 if flap detection is enabled",
                "enable_notifications": "1 if notifications are enabled",
                "execute_host_checks": "1 if active checks of hosts are enabled",
                "execute_service_checks": "1 if active checks of services are enabled",
                "process_performance_data": "1 if performance data is processed",
                "nagios_pid": "process id of the core",
            }
        ),
        integer({"interval_length": "length of an interval unit"}, unit="s"),
        flag(
            {
                "obsess_over_hosts": "1 if host results are handed to the obsessive command",
                "obsess_over_services": "1 if service results are handed to the obsessive command",
            }
        ),
        time(
            {
                "program_start": "start of the core",
                "last_log_rotation": "last rotation of the log file",
            }
        ),
        derived(
            Column("last_command_check", "time", "", "last check for external commands"),
            ("last_command_check", "program_start", "now"),
            command_check,
        ),
        text({"program_version": "version of the core"}),
        derived(
            Column("data_source_version", "string", "", "version of the core's data interface"),
            ("livestatus_version",),
            data_source,
        ),
        derived(
            Column(
                "peer_addr",
                "string",
                "",
                "address of the site, empty without the role for system information",
            ),
            ("peer_addr",),
            given,
        ),
        text({"livestatus_version": "version of the core's data interface"}, default=False),
        integer(
            {
                "cached_log_messages": "log messages held in memory",
                **{name: f"{name.replace('_', ' ')} since the start" for name in COUNTERS},
                "livechecks": "checks by helper processes since the start",
                "livecheck_overflows": "times that no helper process was free",
                "num_hosts": "number of hosts",
                "num_services": "number of services",
            },
            default=False,
        ),
        decimal(
            {
                f"{name}_rate": f"{name.replace('_', ' ')} per second"
                for name in (*COUNTERS, "livechecks", "livecheck_overflows")
            },
            default=False,
        ),
        time({"localtime": "the core's clock"}, default=False),
    ),
)
