-- The audit log: one row for each administrative act, and for the failed sign-ins of a minute. Version 22, for Postgres.

CREATE TABLE svc_audit (
  id TEXT COLLATE "C" PRIMARY KEY,
  acted_at BIGINT NOT NULL,
  -- 'user:<id>', 'shell:<uid>', 'anonymous' or 'service'.
  actor TEXT NOT NULL,
  -- 'session:<id>' or 'api_key:<id>'. Null if there was no credential.
  credential TEXT,
  -- The network address of the client.
  address TEXT,
  action TEXT NOT NULL,
  resource TEXT NOT NULL,
  target TEXT,
  -- JSON objects, for example the thing as answers show it. Null for a thing that did not exist.
  state_before TEXT,
  state_after TEXT,
  request_id TEXT,
  -- The id of the user whom the row is about, or for a failed sign-in without an account the SHA-256 of the address that was tried.
  -- The deletion of the user finds the texts about them by it.
  subject TEXT,
  -- SHA-256 of account, address and minute of failed sign-ins. Null for all other rows.
  counted TEXT UNIQUE,
  -- How often it happened. More than 1 only for failed sign-ins.
  times BIGINT NOT NULL
);
CREATE INDEX svc_audit_at ON svc_audit (acted_at, id);
CREATE INDEX svc_audit_actor ON svc_audit (actor, acted_at, id);
CREATE INDEX svc_audit_target ON svc_audit (target, acted_at, id);
CREATE INDEX svc_audit_subject ON svc_audit (subject, id) WHERE subject IS NOT NULL;
