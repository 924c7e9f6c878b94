-- The audit log: one row for each administrative act, and for the failed sign-ins of a minute. Version 22, for Postgres.

CREATE TABLE svc_audit (
  id TEXT COLLATE "C" PRIMARY KEY,
  acted_at BIGINT NOT NULL,
  -- 'user:<id>', 'shell:<uid>', 'shell' if the user of the operating system is unknown, 'anonymous' or 'service'.
  actor TEXT NOT NULL,
  -- 'session:<id>' or 'api_key:<id>'. Null if there was no credential.
  credential TEXT,
  -- The network address of the client.
  address TEXT,
  action TEXT NOT NULL,
  resource TEXT NOT NULL,
  -- Null for failed sign-ins without an account.
  target TEXT,
  -- JSON objects, for example the thing as answers show it. Null for a thing that did not exist.
  state_before TEXT,
  state_after TEXT,
  request_id TEXT,
  -- The id of the user whom the row is about. The deletion of the user finds the texts about them by it, and sets it to null.
  subject TEXT,
  -- SHA-256 of account, network and minute of failed sign-ins. Null for all other rows.
  counted TEXT UNIQUE,
  -- How often it happened. More than 1 only for failed sign-ins.
  times BIGINT NOT NULL
);
CREATE INDEX svc_audit_at ON svc_audit (acted_at, id);
CREATE INDEX svc_audit_actor ON svc_audit (actor, acted_at, id);
CREATE INDEX svc_audit_action ON svc_audit (action, acted_at, id);
CREATE INDEX svc_audit_resource ON svc_audit (resource, acted_at, id);
CREATE INDEX svc_audit_target ON svc_audit (target, acted_at, id);
CREATE INDEX svc_audit_subject ON svc_audit (subject, id) WHERE subject IS NOT NULL;
-- The deletion of a user replaces network addresses in steps, and each step has to find the rows that are left.
CREATE INDEX svc_audit_addresses ON svc_audit (actor, id) WHERE address <> 'deleted';
