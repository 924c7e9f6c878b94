-- System tables, version 1, for SQLite. Instants are milliseconds since the Unix epoch; documents are JSON text.

-- Accounts.
CREATE TABLE svc_users (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  email_verified BOOLEAN NOT NULL,
  image TEXT,
  is_anonymous BOOLEAN NOT NULL,
  banned BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
-- argon2id hashes in the PHC string form. A guest has none.
CREATE TABLE svc_credentials (
  user_id TEXT PRIMARY KEY REFERENCES svc_users (id) ON DELETE CASCADE,
  password_hash TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);
-- Only the SHA-256 of a token is kept.
CREATE TABLE svc_sessions (
  id TEXT PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL REFERENCES svc_users (id) ON DELETE CASCADE,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  ip_address TEXT,
  user_agent TEXT
);
CREATE INDEX svc_sessions_user ON svc_sessions (user_id);
CREATE TABLE svc_roles (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  description TEXT,
  permissions TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE svc_user_roles (
  user_id TEXT NOT NULL REFERENCES svc_users (id) ON DELETE CASCADE,
  role_id TEXT NOT NULL REFERENCES svc_roles (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, role_id)
);
-- Things that happen once: whoever inserts the row has won.
CREATE TABLE svc_once (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
INSERT INTO svc_roles VALUES
  ('00000000-0000-7000-8000-000000000001', 'admin', 'May do everything.', '[{"resource":"*","actions":["manage"]}]', 0, 0),
  ('00000000-0000-7000-8000-000000000002', 'public', 'What callers without a credential may do.', '[]', 0, 0),
  ('00000000-0000-7000-8000-000000000003', 'anonymous', 'What every guest may do.', '[]', 0, 0);

-- The catalogue. `version` goes up by one with each change of its kind.
CREATE TABLE svc_versions (
  name TEXT PRIMARY KEY,
  version BIGINT NOT NULL
);
INSERT INTO svc_versions VALUES ('schema', 0), ('blocks', 0);
CREATE TABLE svc_objects (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  definition TEXT NOT NULL,
  -- One number a field, in the definition's order; never given twice within an object.
  field_keys TEXT NOT NULL,
  next_field_key BIGINT NOT NULL
);
CREATE TABLE svc_schema_changes (
  version BIGINT PRIMARY KEY,
  change TEXT NOT NULL,
  applied_by TEXT,
  applied_at BIGINT NOT NULL
);
-- How many rows each object has, kept by the writer in the transaction that changes it.
CREATE TABLE svc_counts (
  object_id INTEGER PRIMARY KEY,
  rows INTEGER NOT NULL
);

-- The outbox, and what each consumer group has of it.
CREATE TABLE svc_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  topic TEXT NOT NULL,
  payload TEXT NOT NULL,
  -- For the check of streams: the object, the record, and who created it.
  object TEXT,
  record_id TEXT,
  owner TEXT,
  -- How many handlers' writes led to it.
  depth BIGINT NOT NULL,
  occurred_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX svc_events_id ON svc_events (id);
CREATE TABLE svc_subscriptions (
  consumer TEXT PRIMARY KEY,
  topic TEXT NOT NULL,
  handler TEXT NOT NULL,
  config TEXT NOT NULL,
  per_instance BOOLEAN NOT NULL,
  -- The block that declared it.
  source TEXT
);
CREATE TABLE svc_deliveries (
  event_seq BIGINT NOT NULL REFERENCES svc_events (seq) ON DELETE CASCADE,
  consumer TEXT NOT NULL,
  handler TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
  dead BOOLEAN NOT NULL,
  attempts BIGINT NOT NULL,
  error TEXT,
  next_attempt_at BIGINT,
  -- A claim: who holds it and until when, by the database's clock.
  lease_token TEXT,
  lease_until BIGINT,
  delivered_at BIGINT,
  PRIMARY KEY (consumer, event_seq)
);
CREATE INDEX svc_deliveries_event ON svc_deliveries (event_seq);
CREATE INDEX svc_deliveries_due ON svc_deliveries (consumer, next_attempt_at, event_seq) WHERE status <> 'delivered' AND NOT dead;

-- Blocks.
CREATE TABLE svc_blocks (
  name TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  config TEXT NOT NULL,
  installed_at BIGINT NOT NULL,
  installed_by TEXT
);
CREATE TABLE svc_block_versions (
  block TEXT NOT NULL REFERENCES svc_blocks (name) ON DELETE CASCADE,
  version TEXT NOT NULL,
  digest TEXT NOT NULL,
  manifest TEXT NOT NULL,
  component BLOB NOT NULL,
  installed_at BIGINT NOT NULL,
  PRIMARY KEY (block, version)
);
CREATE TABLE svc_block_logs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  block TEXT NOT NULL,
  call_id TEXT NOT NULL,
  level TEXT NOT NULL,
  message TEXT NOT NULL,
  fields TEXT,
  logged_at BIGINT NOT NULL
);
CREATE INDEX svc_block_logs_block ON svc_block_logs (block, seq);
