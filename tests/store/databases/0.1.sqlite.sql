CREATE TABLE monrest_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT monrest_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE api_keys (
    hashed_key TEXT NOT NULL,
    digest TEXT NOT NULL,
    user TEXT,
    superuser BOOLEAN NOT NULL,
    force_user TEXT,
    roles JSON,
    comment TEXT NOT NULL,
    created BIGINT NOT NULL,
    last_used BIGINT,
    last_from TEXT,
    CONSTRAINT pk_api_keys PRIMARY KEY (hashed_key)
);
CREATE INDEX ix_api_keys_user ON api_keys (user);
CREATE TABLE bp_figures (
    name TEXT NOT NULL,
    value DOUBLE NOT NULL,
    CONSTRAINT pk_bp_figures PRIMARY KEY (name)
);
CREATE TABLE bp_processes (
    nr BIGINT NOT NULL,
    name TEXT NOT NULL,
    draft BOOLEAN NOT NULL,
    definition JSON NOT NULL,
    version BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    CONSTRAINT pk_bp_processes PRIMARY KEY (nr),
    CONSTRAINT uq_bp_processes_name UNIQUE (name)
);
CREATE TABLE broadcasts (
    file TEXT NOT NULL,
    record JSON NOT NULL,
    changed BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_broadcasts PRIMARY KEY (file)
);
CREATE TABLE cluster_nodes (
    id BIGINT NOT NULL,
    run BIGINT NOT NULL,
    url TEXT NOT NULL,
    host TEXT NOT NULL,
    pid BIGINT NOT NULL,
    version TEXT NOT NULL,
    maintenance BIGINT NOT NULL,
    CONSTRAINT pk_cluster_nodes PRIMARY KEY (id)
);
CREATE TABLE cluster_restarts (
    position BIGINT NOT NULL,
    node BIGINT NOT NULL,
    run BIGINT NOT NULL,
    url TEXT NOT NULL,
    state TEXT NOT NULL,
    message TEXT NOT NULL,
    changed BIGINT NOT NULL,
    CONSTRAINT pk_cluster_restarts PRIMARY KEY (position)
);
CREATE TABLE config_ids (
    site TEXT NOT NULL,
    path TEXT NOT NULL,
    hash TEXT NOT NULL,
    objects BLOB NOT NULL,
    CONSTRAINT pk_config_ids PRIMARY KEY (site, path)
);
CREATE TABLE config_stash (
    site TEXT NOT NULL,
    username TEXT NOT NULL,
    path TEXT NOT NULL,
    base BLOB,
    base_hash TEXT,
    content BLOB,
    content_hash TEXT,
    objects BLOB NOT NULL,
    staged BIGINT NOT NULL,
    CONSTRAINT pk_config_stash PRIMARY KEY (site, username, path)
);
CREATE TABLE config_stashes (
    site TEXT NOT NULL,
    username TEXT NOT NULL,
    version TEXT NOT NULL,
    CONSTRAINT pk_config_stashes PRIMARY KEY (site, username)
);
CREATE TABLE controlled_nodes (
    site TEXT NOT NULL,
    data JSON NOT NULL,
    gathered BIGINT NOT NULL,
    facts_gathered BIGINT NOT NULL,
    gathering_until BIGINT NOT NULL,
    last_error TEXT NOT NULL,
    last_error_at BIGINT NOT NULL,
    operation TEXT NOT NULL,
    job BIGINT,
    claimed BIGINT NOT NULL,
    last_job BIGINT,
    CONSTRAINT pk_controlled_nodes PRIMARY KEY (site)
);
CREATE TABLE dashboard_maintenance (
    nr TEXT NOT NULL,
    text TEXT NOT NULL,
    CONSTRAINT pk_dashboard_maintenance PRIMARY KEY (nr)
);
CREATE TABLE dashboards (
    nr TEXT NOT NULL,
    record JSON NOT NULL,
    changed BIGINT NOT NULL,
    version BIGINT NOT NULL,
    CONSTRAINT pk_dashboards PRIMARY KEY (nr)
);
CREATE TABLE duties (
    name TEXT NOT NULL,
    run BIGINT NOT NULL,
    number BIGINT NOT NULL,
    CONSTRAINT pk_duties PRIMARY KEY (name)
);
CREATE TABLE duty_daemons (
    run BIGINT NOT NULL,
    owner TEXT NOT NULL,
    beat BIGINT NOT NULL,
    CONSTRAINT pk_duty_daemons PRIMARY KEY (run)
);
CREATE TABLE job_daemons (
    run BIGINT NOT NULL,
    beat BIGINT NOT NULL,
    CONSTRAINT pk_job_daemons PRIMARY KEY (run)
);
CREATE TABLE jobs (
    id BIGINT NOT NULL,
    user TEXT,
    roles JSON NOT NULL,
    run BIGINT NOT NULL,
    host_id BIGINT NOT NULL,
    host_name TEXT NOT NULL,
    pid BIGINT NOT NULL,
    cmd TEXT NOT NULL,
    created DOUBLE NOT NULL,
    started DOUBLE,
    ended DOUBLE,
    percent DOUBLE NOT NULL,
    remaining DOUBLE,
    message TEXT NOT NULL,
    stdout TEXT NOT NULL,
    stderr TEXT NOT NULL,
    canceled_by TEXT,
    status BIGINT,
    content_type TEXT NOT NULL,
    disposition TEXT,
    headers JSON NOT NULL,
    failed_sites JSON NOT NULL,
    size BIGINT NOT NULL,
    CONSTRAINT pk_jobs PRIMARY KEY (id)
);
CREATE INDEX ix_jobs_ended ON jobs (ended);
CREATE INDEX ix_jobs_user ON jobs (user);
CREATE TABLE logcache_days (
    site INTEGER NOT NULL,
    day BIGINT NOT NULL,
    lines BIGINT NOT NULL,
    missing BIGINT NOT NULL,
    gone BIGINT NOT NULL,
    compared BIGINT NOT NULL,
    since BIGINT NOT NULL,
    settled BOOLEAN NOT NULL,
    CONSTRAINT pk_logcache_days PRIMARY KEY (site, day)
);
CREATE TABLE logcache_lines (
    site INTEGER NOT NULL,
    time BIGINT NOT NULL,
    lineno BIGINT NOT NULL,
    number INTEGER NOT NULL,
    class BIGINT NOT NULL,
    type TEXT NOT NULL,
    state BIGINT NOT NULL,
    state_type TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    host_name TEXT NOT NULL,
    service_description TEXT NOT NULL,
    contact_name TEXT NOT NULL,
    command_name TEXT NOT NULL,
    plugin_output TEXT NOT NULL,
    comment TEXT NOT NULL,
    message TEXT NOT NULL,
    options TEXT,
    CONSTRAINT pk_logcache_lines PRIMARY KEY (site, time, lineno, number)
)
 WITHOUT ROWID;
CREATE INDEX ix_logcache_lines_host_name ON logcache_lines (host_name);
CREATE TABLE logcache_sites (
    id INTEGER NOT NULL,
    site TEXT NOT NULL,
    covered_from BIGINT,
    covered_until BIGINT,
    wanted_from BIGINT,
    compacted_until BIGINT NOT NULL,
    firsts_until BIGINT,
    items BIGINT NOT NULL,
    data_size BIGINT NOT NULL,
    index_size BIGINT NOT NULL,
    last_update BIGINT,
    update_duration DOUBLE NOT NULL,
    last_compact BIGINT,
    compact_duration DOUBLE NOT NULL,
    mode TEXT NOT NULL,
    mode_since BIGINT NOT NULL,
    owner TEXT NOT NULL,
    owned_until DOUBLE NOT NULL,
    CONSTRAINT pk_logcache_sites PRIMARY KEY (id),
    CONSTRAINT uq_logcache_sites_site UNIQUE (site)
);
CREATE TABLE node_logs (
    site TEXT NOT NULL,
    name TEXT NOT NULL,
    failed BIGINT NOT NULL,
    at BIGINT NOT NULL,
    output TEXT NOT NULL,
    CONSTRAINT pk_node_logs PRIMARY KEY (site, name)
);
CREATE TABLE recurring_downtimes (
    number BIGINT NOT NULL,
    record JSON NOT NULL,
    sites JSON NOT NULL,
    error TEXT,
    failure TEXT,
    next_at BIGINT,
    version BIGINT NOT NULL,
    CONSTRAINT pk_recurring_downtimes PRIMARY KEY (number)
);
CREATE INDEX ix_recurring_downtimes_next_at ON recurring_downtimes (next_at);
CREATE TABLE reports (
    number BIGINT NOT NULL,
    record JSON NOT NULL,
    sites JSON NOT NULL,
    "limit" JSON,
    failure TEXT,
    unsent TEXT,
    job BIGINT,
    made DOUBLE,
    next_at BIGINT,
    version BIGINT NOT NULL,
    CONSTRAINT pk_reports PRIMARY KEY (number)
);
CREATE INDEX ix_reports_next_at ON reports (next_at);
CREATE TABLE sessions (
    hashed_id TEXT NOT NULL,
    username TEXT NOT NULL,
    address TEXT NOT NULL,
    csrf_token TEXT NOT NULL,
    roles JSON,
    created BIGINT NOT NULL,
    active BIGINT NOT NULL,
    proof TEXT,
    CONSTRAINT pk_sessions PRIMARY KEY (hashed_id)
);
CREATE INDEX ix_sessions_active ON sessions (active);
CREATE INDEX ix_sessions_username ON sessions (username);
CREATE TABLE users (
    name TEXT NOT NULL,
    locked BOOLEAN NOT NULL,
    failed BIGINT NOT NULL,
    last_failed JSON,
    last_success JSON,
    tz TEXT,
    created BIGINT NOT NULL,
    CONSTRAINT pk_users PRIMARY KEY (name)
);
CREATE TABLE bp_results (
    nr BIGINT NOT NULL,
    stamp BIGINT NOT NULL,
    data BLOB,
    CONSTRAINT pk_bp_results PRIMARY KEY (nr),
    CONSTRAINT fk_bp_results_nr FOREIGN KEY(nr) REFERENCES bp_processes (nr) ON DELETE CASCADE
);
CREATE TABLE dashboard_backups (
    nr TEXT NOT NULL,
    at BIGINT NOT NULL,
    record JSON NOT NULL,
    CONSTRAINT pk_dashboard_backups PRIMARY KEY (nr, at),
    CONSTRAINT fk_dashboard_backups_nr FOREIGN KEY(nr) REFERENCES dashboards (nr) ON DELETE CASCADE
);
CREATE TABLE dashboard_runtime (
    nr TEXT NOT NULL,
    username TEXT NOT NULL,
    data JSON NOT NULL,
    CONSTRAINT pk_dashboard_runtime PRIMARY KEY (nr, username),
    CONSTRAINT fk_dashboard_runtime_nr FOREIGN KEY(nr) REFERENCES dashboards (nr) ON DELETE CASCADE
);
CREATE TABLE downtime_occurrences (
    downtime BIGINT NOT NULL,
    at BIGINT NOT NULL,
    until BIGINT NOT NULL,
    open BOOLEAN NOT NULL,
    number BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    accepted JSON NOT NULL,
    CONSTRAINT pk_downtime_occurrences PRIMARY KEY (downtime, at),
    CONSTRAINT fk_downtime_occurrences_downtime FOREIGN KEY(downtime) REFERENCES recurring_downtimes (number) ON DELETE CASCADE
);
CREATE INDEX ix_downtime_occurrences_open ON downtime_occurrences (open);
CREATE TABLE job_output (
    job BIGINT NOT NULL,
    piece BIGINT NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT pk_job_output PRIMARY KEY (job, piece),
    CONSTRAINT fk_job_output_job FOREIGN KEY(job) REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE TABLE report_files (
    report BIGINT NOT NULL,
    format TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT pk_report_files PRIMARY KEY (report, format),
    CONSTRAINT fk_report_files_report FOREIGN KEY(report) REFERENCES reports (number) ON DELETE CASCADE
);
CREATE TABLE report_runs (
    report BIGINT NOT NULL,
    at BIGINT NOT NULL,
    purpose TEXT NOT NULL,
    open BOOLEAN NOT NULL,
    phase TEXT NOT NULL,
    number BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    again DOUBLE NOT NULL,
    recipients JSON NOT NULL,
    message BLOB,
    error TEXT,
    CONSTRAINT pk_report_runs PRIMARY KEY (report, at, purpose),
    CONSTRAINT fk_report_runs_report FOREIGN KEY(report) REFERENCES reports (number) ON DELETE CASCADE
);
CREATE INDEX ix_report_runs_open ON report_runs (open);
INSERT INTO monrest_version VALUES ('0011');
INSERT INTO api_keys ("hashed_key", "digest", "user", "superuser", "force_user", "roles", "comment", "created", "last_used", "last_from") VALUES ('526614e8587164f4eb0e43fb0bf1cad82e51a9fd3d23ddbf9552d8216d12bf79', 'SHA-256', 'admin', 0, NULL, NULL, 'of before', 1795526921, NULL, NULL);
INSERT INTO bp_processes ("nr", "name", "draft", "definition", "version", "changed") VALUES (1, 'Shop', 1, '{"name": "Shop", "template": "", "rankDir": "TB", "state_type": "both", "filter": [], "create_host_object": 1, "nodes": [{"id": "node1", "label": "Shop", "depends": ["node2"], "create_obj": 1, "function": "worst"}, {"id": "node2", "label": "web", "function": "status", "function_args": ["host-00000", "disk 01"]}]}', 42412332206539, 1795526921);
INSERT INTO broadcasts ("file", "record", "changed", "version") VALUES ('works', '{"name": "Works", "text": "Today **works** on the network", "annotation": "", "contacts": [], "contactgroups": [], "expires": "", "hide_before": "", "loginpage": 0, "panorama": 0, "template": 0, "author": "admin", "authoremail": "admin@example.org"}', 1795526921, 3269038760781676544);
INSERT INTO dashboards ("nr", "record", "changed", "version") VALUES ('1', '{"user": "admin", "tab": {"xdata": {"title": "Wall", "state_type": "soft", "groups": [], "users": []}}}', 1795526921, 4326485197688143872);
INSERT INTO duties ("name", "run", "number") VALUES ('business processes', 0, 2);
INSERT INTO duties ("name", "run", "number") VALUES ('nodecontrol', 0, 2);
INSERT INTO duties ("name", "run", "number") VALUES ('recurring downtimes', 0, 2);
INSERT INTO duties ("name", "run", "number") VALUES ('reports', 0, 2);
INSERT INTO duties ("name", "run", "number") VALUES ('webhooks', 0, 2);
INSERT INTO jobs ("id", "user", "roles", "run", "host_id", "host_name", "pid", "cmd", "created", "started", "ended", "percent", "remaining", "message", "stdout", "stderr", "canceled_by", "status", "content_type", "disposition", "headers", "failed_sites", "size") VALUES (1795526922057771, 'admin', '["authorized_for_admin"]', 4024286729456376, 3990770232309238, 'vm', 27856, 'GET /hosts?columns=name,state', 1795526922.0573692, 1795526922.0615034, 1795526922.1014552, 100.0, NULL, '', '[{"name":"host-00000","state":0},{"name":"host-00001","state":0},{"name":"host-00002","state":0}]
', '', NULL, 200, 'application/json; charset=utf-8', NULL, '[]', '[]', 98);
INSERT INTO logcache_days ("site", "day", "lines", "missing", "gone", "compared", "since", "settled") VALUES (1, 1763942400, 0, 0, 0, 1795526919, 1795526913, 0);
INSERT INTO logcache_days ("site", "day", "lines", "missing", "gone", "compared", "since", "settled") VALUES (1, 1764028800, 0, 0, 0, 1795526919, 1795526913, 0);
INSERT INTO logcache_lines ("site", "time", "lineno", "number", "class", "type", "state", "state_type", "attempt", "host_name", "service_description", "contact_name", "command_name", "plugin_output", "comment", "message", "options") VALUES (1, 1795440513, 1, 0, 0, 'LOG ROTATION: DAILY', 0, '', 0, '', '', '', '', '', '', '[1795440513] LOG ROTATION: DAILY', NULL);
INSERT INTO logcache_lines ("site", "time", "lineno", "number", "class", "type", "state", "state_type", "attempt", "host_name", "service_description", "contact_name", "command_name", "plugin_output", "comment", "message", "options") VALUES (1, 1795440513, 2, 1, 2, 'LOG VERSION: 2.0', 0, '', 0, '', '', '', '', '', '', '[1795440513] LOG VERSION: 2.0', NULL);
INSERT INTO logcache_lines ("site", "time", "lineno", "number", "class", "type", "state", "state_type", "attempt", "host_name", "service_description", "contact_name", "command_name", "plugin_output", "comment", "message", "options") VALUES (1, 1795440513, 3, 2, 6, 'CURRENT HOST STATE', 0, 'HARD', 1, 'host-00000', '', '', '', 'OK - rta 19.525ms, lost 0%', '', '[1795440513] CURRENT HOST STATE: host-00000;UP;HARD;1;OK - rta 19.525ms, lost 0%', NULL);
INSERT INTO logcache_lines ("site", "time", "lineno", "number", "class", "type", "state", "state_type", "attempt", "host_name", "service_description", "contact_name", "command_name", "plugin_output", "comment", "message", "options") VALUES (1, 1795440513, 4, 3, 6, 'CURRENT HOST STATE', 0, 'HARD', 1, 'host-00001', '', '', '', 'OK - rta 30.496ms, lost 0%', '', '[1795440513] CURRENT HOST STATE: host-00001;UP;HARD;1;OK - rta 30.496ms, lost 0%', NULL);
INSERT INTO logcache_lines ("site", "time", "lineno", "number", "class", "type", "state", "state_type", "attempt", "host_name", "service_description", "contact_name", "command_name", "plugin_output", "comment", "message", "options") VALUES (1, 1795440513, 5, 4, 6, 'CURRENT HOST STATE', 0, 'HARD', 1, 'host-00002', '', '', '', 'OK - rta 21.666ms, lost 0%', '', '[1795440513] CURRENT HOST STATE: host-00002;UP;HARD;1;OK - rta 21.666ms, lost 0%', NULL);
INSERT INTO logcache_lines ("site", "time", "lineno", "number", "class", "type", "state", "state_type", "attempt", "host_name", "service_description", "contact_name", "command_name", "plugin_output", "comment", "message", "options") VALUES (1, 1795440513, 6, 5, 6, 'CURRENT SERVICE STATE', 0, 'HARD', 1, 'host-00000', 'ping 00', '', '', 'PING OK - Packet loss = 0%, RTA = 68.07 ms', '', '[1795440513] CURRENT SERVICE STATE: host-00000;ping 00;OK;HARD;1;PING OK - Packet loss = 0%, RTA = 68.07 ms', NULL);
INSERT INTO logcache_sites ("id", "site", "covered_from", "covered_until", "wanted_from", "compacted_until", "firsts_until", "items", "data_size", "index_size", "last_update", "update_duration", "last_compact", "compact_duration", "mode", "mode_since", "owner", "owned_until") VALUES (1, 'demo', 1763990918, 1795526913, 1763990918, 0, NULL, 59, 12701, 1464, 1795526918, 0.96714383699873, NULL, 0.0, '', 1795526918, '', 0.0);
INSERT INTO recurring_downtimes ("number", "record", "sites", "error", "failure", "next_at", "version") VALUES (1, '{"target": "host", "host": ["host-00000"], "comment": "weekly", "duration": 60, "schedule": [{"type": "week", "week_day": "0", "hour": 3, "minute": 0}], "service": [], "hostgroup": [], "servicegroup": [], "flex_range": 720, "fixed": 1, "childoptions": 0, "created_by": "admin", "edited_by": "admin", "last_changed": 1795526921}', '{"demo": "Demo"}', NULL, NULL, 1795921200, 208047069945921536);
INSERT INTO reports ("number", "record", "sites", "limit", "failure", "unsent", "job", "made", "next_at", "version") VALUES (1, '{"desc": "Description", "name": "Week", "template": "sla_host.tt", "params": {"host": ["host-00000"], "language": "en", "timeperiod": "last12months", "breakdown": "months", "sla": 98, "graph_min_sla": 90, "decimals": 2, "unavailable": ["down", "unreachable"], "details_max_level": 100, "mail_max_level": -1, "max_outages_pages": -1, "max_worst_pages": 1, "max_pnp_sources": 1}, "permissions": [], "is_public": 0, "to": "", "cc": "", "failed_backends": "cancel", "send_types": [], "user": "admin"}', '{}', NULL, NULL, NULL, NULL, NULL, NULL, 1914280138417111040);
INSERT INTO users ("name", "locked", "failed", "last_failed", "last_success", "tz", "created") VALUES ('alice', 1, 0, NULL, NULL, NULL, 1795526922);
INSERT INTO bp_results ("nr", "stamp", "data") VALUES (1, 0, NULL);
INSERT INTO job_output ("job", "piece", "data") VALUES (1795526922057771, 0, X'5b7b226e616d65223a22686f73742d3030303030222c227374617465223a307d2c7b226e616d65223a22686f73742d3030303031222c227374617465223a307d2c7b226e616d65223a22686f73742d3030303032222c227374617465223a307d5d0a');
