"""What is stored, as SQLAlchemy Core tables.

Times are seconds since the epoch, whole ones but for jobs. Keys and session ids are kept as
hashes only. A change here needs a migration of its own in ``migrations/versions``; a test compares
the two.
"""

from __future__ import annotations

from monrest.store.tables.access import api_keys, sessions, users
from monrest.store.tables.background import job_daemons, job_output, jobs
from monrest.store.tables.base import metadata
from monrest.store.tables.bp import bp_figures, bp_processes, bp_results
from monrest.store.tables.cluster import cluster_nodes, cluster_restarts, duties, duty_daemons
from monrest.store.tables.frontend import (
    broadcasts,
    dashboard_backups,
    dashboard_maintenance,
    dashboard_runtime,
    dashboards,
    downtime_occurrences,
    recurring_downtimes,
)
from monrest.store.tables.logs import logcache_days, logcache_lines, logcache_sites
from monrest.store.tables.nodecontrol import controlled_nodes, node_logs
from monrest.store.tables.objects import config_ids, config_stash, config_stashes
from monrest.store.tables.reporting import report_files, report_runs, reports

__all__ = [
    "api_keys",
    "bp_figures",
    "bp_processes",
    "bp_results",
    "broadcasts",
    "cluster_nodes",
    "cluster_restarts",
    "config_ids",
    "config_stash",
    "config_stashes",
    "controlled_nodes",
    "dashboard_backups",
    "dashboard_maintenance",
    "dashboard_runtime",
    "dashboards",
    "downtime_occurrences",
    "duties",
    "duty_daemons",
    "job_daemons",
    "job_output",
    "jobs",
    "logcache_days",
    "logcache_lines",
    "logcache_sites",
    "metadata",
    "node_logs",
    "recurring_downtimes",
    "report_files",
    "report_runs",
    "reports",
    "sessions",
    "users",
]
