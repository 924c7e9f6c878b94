-- Deliveries in order, webhooks, subscriptions with a version of their own. Version 4, for SQLite.

-- The record that the event is of: a group gets one record's events in their order.
ALTER TABLE svc_deliveries ADD COLUMN record_id TEXT;
-- How often the delivery was claimed since its last outcome: a process that ends in the middle leaves none.
ALTER TABLE svc_deliveries ADD COLUMN claims BIGINT NOT NULL DEFAULT 0;
DROP INDEX svc_deliveries_due;
CREATE INDEX svc_deliveries_pending ON svc_deliveries (consumer, event_seq) WHERE status = 'pending';
CREATE INDEX svc_deliveries_retries ON svc_deliveries (consumer, next_attempt_at, event_seq) WHERE status = 'failed' AND NOT dead;
CREATE INDEX svc_deliveries_failed ON svc_deliveries (event_seq) WHERE status = 'failed';

INSERT INTO svc_versions VALUES ('subscriptions', 0);

CREATE TABLE svc_webhooks (
  id TEXT PRIMARY KEY,
  name TEXT,
  url TEXT NOT NULL,
  -- Topic patterns, a JSON list.
  topics TEXT NOT NULL,
  -- A JSON object.
  headers TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  -- The block that declared it.
  source TEXT,
  -- Encrypted, with the id of the key.
  secret TEXT NOT NULL,
  secret_key_id TEXT NOT NULL,
  -- The secret before it, which signs as well until then.
  previous_secret TEXT,
  previous_key_id TEXT,
  previous_until BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
