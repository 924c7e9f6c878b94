-- What people keep of the console, the running instances, the number of events. Version 11, for Postgres.

CREATE TABLE svc_preferences (
  user_id TEXT PRIMARY KEY REFERENCES svc_users (id) ON DELETE CASCADE,
  -- A JSON object without spaces, 64 KiB at most.
  preferences TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- How many events the counted bytes belong to. Everything is counted anew, a page at a time.
ALTER TABLE svc_outbox ADD COLUMN events BIGINT NOT NULL DEFAULT 0;
UPDATE svc_outbox SET counted_to = 0, bytes = 0;

-- The processes that serve this database. Unlogged, because each of them writes its row every few seconds: after a crash of the
-- database the rows are back as soon as the processes are.
CREATE UNLOGGED TABLE svc_instances (
  id TEXT PRIMARY KEY,
  version TEXT NOT NULL,
  -- Both by the database's clock, in milliseconds since the epoch.
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL
);
