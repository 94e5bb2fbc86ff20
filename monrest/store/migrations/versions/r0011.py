"""All tables of the first version.

Databases that were made step by step before there was a version stand at this revision as well.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("hashed_key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("user", sa.Text()),
        sa.Column("superuser", sa.Boolean(), nullable=False),
        sa.Column("force_user", sa.Text()),
        sa.Column("roles", sa.JSON(none_as_null=True)),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("last_used", sa.BigInteger()),
        sa.Column("last_from", sa.Text()),
        sa.PrimaryKeyConstraint("hashed_key", name="pk_api_keys"),
    )
    op.create_index("ix_api_keys_user", "api_keys", ["user"])
    op.create_table(
        "bp_figures",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_bp_figures"),
    )
    op.create_table(
        "bp_processes",
        sa.Column("nr", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("draft", sa.Boolean(), nullable=False),
        sa.Column("definition", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("nr", name="pk_bp_processes"),
        sa.UniqueConstraint("name", name="uq_bp_processes_name"),
    )
    op.create_table(
        "broadcasts",
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("file", name="pk_broadcasts"),
    )
    op.create_table(
        "cluster_nodes",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("maintenance", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cluster_nodes"),
    )
    op.create_table(
        "cluster_restarts",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("node", sa.BigInteger(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_cluster_restarts"),
    )
    op.create_table(
        "config_ids",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("objects", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("site", "path", name="pk_config_ids"),
    )
    op.create_table(
        "config_stash",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("base", sa.LargeBinary()),
        sa.Column("base_hash", sa.Text()),
        sa.Column("content", sa.LargeBinary()),
        sa.Column("content_hash", sa.Text()),
        sa.Column("objects", sa.LargeBinary(), nullable=False),
        sa.Column("staged", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("site", "username", "path", name="pk_config_stash"),
    )
    op.create_table(
        "config_stashes",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("site", "username", name="pk_config_stashes"),
    )
    op.create_table(
        "controlled_nodes",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("gathered", sa.BigInteger(), nullable=False),
        sa.Column("facts_gathered", sa.BigInteger(), nullable=False),
        sa.Column("gathering_until", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("last_error_at", sa.BigInteger(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("job", sa.BigInteger()),
        sa.Column("claimed", sa.BigInteger(), nullable=False),
        sa.Column("last_job", sa.BigInteger()),
        sa.PrimaryKeyConstraint("site", name="pk_controlled_nodes"),
    )
    op.create_table(
        "dashboard_maintenance",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("nr", name="pk_dashboard_maintenance"),
    )
    op.create_table(
        "dashboards",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("nr", name="pk_dashboards"),
    )
    op.create_table(
        "duties",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_duties"),
    )
    op.create_table(
        "duty_daemons",
        sa.Column("run", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run", name="pk_duty_daemons"),
    )
    op.create_table(
        "job_daemons",
        sa.Column("run", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("beat", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run", name="pk_job_daemons"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("user", sa.Text()),
        sa.Column("roles", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("run", sa.BigInteger(), nullable=False),
        sa.Column("host_id", sa.BigInteger(), nullable=False),
        sa.Column("host_name", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("cmd", sa.Text(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("started", sa.Double()),
        sa.Column("ended", sa.Double()),
        sa.Column("percent", sa.Double(), nullable=False),
        sa.Column("remaining", sa.Double()),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("stdout", sa.Text(), nullable=False),
        sa.Column("stderr", sa.Text(), nullable=False),
        sa.Column("canceled_by", sa.Text()),
        sa.Column("status", sa.BigInteger()),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("disposition", sa.Text()),
        sa.Column("headers", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("failed_sites", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_ended", "jobs", ["ended"])
    op.create_index("ix_jobs_user", "jobs", ["user"])
    op.create_table(
        "logcache_days",
        sa.Column("site", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("day", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("missing", sa.BigInteger(), nullable=False),
        sa.Column("gone", sa.BigInteger(), nullable=False),
        sa.Column("compared", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("site", "day", name="pk_logcache_days"),
    )
    op.create_table(
        "logcache_lines",
        sa.Column("site", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("lineno", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("class", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("state", sa.BigInteger(), nullable=False),
        sa.Column("state_type", sa.Text(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("host_name", sa.Text(), nullable=False),
        sa.Column("service_description", sa.Text(), nullable=False),
        sa.Column("contact_name", sa.Text(), nullable=False),
        sa.Column("command_name", sa.Text(), nullable=False),
        sa.Column("plugin_output", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("options", sa.Text()),
        sa.PrimaryKeyConstraint("site", "time", "lineno", "number", name="pk_logcache_lines"),
        postgresql_partition_by="RANGE (time)",
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_logcache_lines_host_name", "logcache_lines", ["host_name"], postgresql_using="hash"
    )
    op.create_table(
        "logcache_sites",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("covered_from", sa.BigInteger()),
        sa.Column("covered_until", sa.BigInteger()),
        sa.Column("wanted_from", sa.BigInteger()),
        sa.Column("compacted_until", sa.BigInteger(), nullable=False),
        sa.Column("firsts_until", sa.BigInteger()),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("data_size", sa.BigInteger(), nullable=False),
        sa.Column("index_size", sa.BigInteger(), nullable=False),
        sa.Column("last_update", sa.BigInteger()),
        sa.Column("update_duration", sa.Double(), nullable=False),
        sa.Column("last_compact", sa.BigInteger()),
        sa.Column("compact_duration", sa.Double(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("mode_since", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("owned_until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_logcache_sites"),
        sa.UniqueConstraint("site", name="uq_logcache_sites_site"),
    )
    op.create_table(
        "node_logs",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("site", "name", name="pk_node_logs"),
    )
    op.create_table(
        "recurring_downtimes",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("sites", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("failure", sa.Text()),
        sa.Column("next_at", sa.BigInteger()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_recurring_downtimes"),
    )
    op.create_index("ix_recurring_downtimes_next_at", "recurring_downtimes", ["next_at"])
    op.create_table(
        "reports",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("sites", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("limit", sa.JSON(none_as_null=True)),
        sa.Column("failure", sa.Text()),
        sa.Column("unsent", sa.Text()),
        sa.Column("job", sa.BigInteger()),
        sa.Column("made", sa.Double()),
        sa.Column("next_at", sa.BigInteger()),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_reports"),
    )
    op.create_index("ix_reports_next_at", "reports", ["next_at"])
    op.create_table(
        "sessions",
        sa.Column("hashed_id", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("csrf_token", sa.Text(), nullable=False),
        sa.Column("roles", sa.JSON(none_as_null=True)),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("active", sa.BigInteger(), nullable=False),
        sa.Column("proof", sa.Text()),
        sa.PrimaryKeyConstraint("hashed_id", name="pk_sessions"),
    )
    op.create_index("ix_sessions_active", "sessions", ["active"])
    op.create_index("ix_sessions_username", "sessions", ["username"])
    op.create_table(
        "users",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("locked", sa.Boolean(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("last_failed", sa.JSON(none_as_null=True)),
        sa.Column("last_success", sa.JSON(none_as_null=True)),
        sa.Column("tz", sa.Text()),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_users"),
    )
    op.create_table(
        "bp_results",
        sa.Column("nr", sa.BigInteger(), nullable=False),
        sa.Column("stamp", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary()),
        sa.ForeignKeyConstraint(
            ["nr"], ["bp_processes.nr"], name="fk_bp_results_nr", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("nr", name="pk_bp_results"),
    )
    op.create_table(
        "dashboard_backups",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("record", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["nr"], ["dashboards.nr"], name="fk_dashboard_backups_nr", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("nr", "at", name="pk_dashboard_backups"),
    )
    op.create_table(
        "dashboard_runtime",
        sa.Column("nr", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["nr"], ["dashboards.nr"], name="fk_dashboard_runtime_nr", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("nr", "username", name="pk_dashboard_runtime"),
    )
    op.create_table(
        "downtime_occurrences",
        sa.Column("downtime", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("accepted", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["downtime"],
            ["recurring_downtimes.number"],
            name="fk_downtime_occurrences_downtime",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("downtime", "at", name="pk_downtime_occurrences"),
    )
    op.create_index("ix_downtime_occurrences_open", "downtime_occurrences", ["open"])
    op.create_table(
        "job_output",
        sa.Column("job", sa.BigInteger(), nullable=False),
        sa.Column("piece", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job"], ["jobs.id"], name="fk_job_output_job", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job", "piece", name="pk_job_output"),
    )
    op.create_table(
        "report_files",
        sa.Column("report", sa.BigInteger(), nullable=False),
        sa.Column("format", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["report"], ["reports.number"], name="fk_report_files_report", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report", "format", name="pk_report_files"),
    )
    op.create_table(
        "report_runs",
        sa.Column("report", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("again", sa.Double(), nullable=False),
        sa.Column("recipients", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("message", sa.LargeBinary()),
        sa.Column("error", sa.Text()),
        sa.ForeignKeyConstraint(
            ["report"], ["reports.number"], name="fk_report_runs_report", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("report", "at", "purpose", name="pk_report_runs"),
    )
    op.create_index("ix_report_runs_open", "report_runs", ["open"])
