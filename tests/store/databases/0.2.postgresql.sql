CREATE TABLE webhooks (
    number BIGINT NOT NULL,
    record JSON NOT NULL,
    secrets JSON NOT NULL,
    "limit" JSON,
    token TEXT NOT NULL,
    position TEXT,
    last_seq BIGINT NOT NULL,
    paused TEXT,
    paused_at DOUBLE PRECISION,
    failures BIGINT NOT NULL,
    rests DOUBLE PRECISION NOT NULL,
    delivered DOUBLE PRECISION,
    error TEXT,
    error_at DOUBLE PRECISION,
    version BIGINT NOT NULL,
    CONSTRAINT pk_webhooks PRIMARY KEY (number)
);
CREATE TABLE webhook_deliveries (
    webhook BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    message TEXT NOT NULL,
    event TEXT NOT NULL,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    made DOUBLE PRECISION NOT NULL,
    content_type TEXT NOT NULL,
    body BYTEA NOT NULL,
    phase TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    again DOUBLE PRECISION NOT NULL,
    status BIGINT,
    error TEXT,
    ended DOUBLE PRECISION,
    CONSTRAINT pk_webhook_deliveries PRIMARY KEY (webhook, seq),
    CONSTRAINT fk_webhook_deliveries_webhook FOREIGN KEY(webhook) REFERENCES webhooks (number) ON DELETE CASCADE
);
CREATE INDEX ix_webhook_deliveries_open ON webhook_deliveries (webhook, phase, subject, seq);
CREATE INDEX ix_webhook_deliveries_event ON webhook_deliveries (webhook, event);
CREATE TABLE webhook_alerts (
    webhook BIGINT NOT NULL,
    subject TEXT NOT NULL,
    alert JSON NOT NULL,
    starts DOUBLE PRECISION NOT NULL,
    ends DOUBLE PRECISION,
    told BOOLEAN NOT NULL,
    CONSTRAINT pk_webhook_alerts PRIMARY KEY (webhook, subject),
    CONSTRAINT fk_webhook_alerts_webhook FOREIGN KEY(webhook) REFERENCES webhooks (number) ON DELETE CASCADE
);
CREATE TABLE own_events (
    number BIGINT NOT NULL,
    time DOUBLE PRECISION NOT NULL,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    data JSON NOT NULL,
    owner TEXT,
    roles JSON NOT NULL,
    site TEXT,
    name TEXT,
    CONSTRAINT pk_own_events PRIMARY KEY (number),
    CONSTRAINT uq_own_events_name UNIQUE (name)
);
CREATE INDEX ix_own_events_time ON own_events (time);
UPDATE monrest_version SET version_num = '0013';
INSERT INTO own_events ("number", "time", "type", "subject", "data", "owner", "roles", "site", "name") VALUES (1, 1795526922.1071794, 'job', 'jobs/1795526922057771', '{"job": "1795526922057771", "action": "ended", "percent": 100.0, "comment": "", "command_name": "GET /hosts?columns=name,state"}', 'admin', '["authorized_for_admin"]', NULL, NULL);
INSERT INTO webhooks ("number", "record", "secrets", "limit", "token", "position", "last_seq", "paused", "paused_at", "failures", "rests", "delivered", "error", "error_at", "version") VALUES (1, '{"name": "to chat", "url": "http://127.0.0.1:9/x", "enabled": 1, "filter": "", "body": "cloudevents", "template": null, "headers": {}, "roles": [], "owner": "admin"}', '[{"key": "whsec_90VaBUHQ35EnNqfJEQ/wMh4MJIE2cl5MhwmmsheMFP0=", "until": null}]', NULL, '0b20c81088c2068d862b73600cdc95c1', '@1,demo@1795526922', 1, NULL, NULL, 2, 0.0, NULL, 'connection refused', 1795526927.501437, 2347401565260742656);
INSERT INTO webhook_deliveries ("webhook", "seq", "message", "event", "type", "subject", "made", "content_type", "body", "phase", "attempts", "again", "status", "error", "ended") VALUES (1, 1, 'msg_308a66596f10d72760adbffc31f3e494', '@1', 'job', ':jobs/1795526922057771', 1795526922.6952589, 'application/cloudevents+json; charset=utf-8', '\x7b227370656376657273696f6e223a22312e30222c226964223a224031222c22736f75726365223a222f6d6f6e222c2274797065223a226a6f62222c2274696d65223a22323032362d31312d32345431333a32383a34322e3130375a222c227375626a656374223a226a6f62732f31373935353236393232303537373731222c2264617461636f6e74656e7474797065223a226170706c69636174696f6e2f6a736f6e222c2264617461223a7b226a6f62223a2231373935353236393232303537373731222c22616374696f6e223a22656e646564222c2270657263656e74223a3130302e302c22636f6d6d656e74223a22222c22636f6d6d616e645f6e616d65223a22474554202f686f7374733f636f6c756d6e733d6e616d652c7374617465222c2274696d65223a313739353532363932327d7d', 'waiting', 2, 1795526938.2493718, NULL, 'connection refused', NULL);
