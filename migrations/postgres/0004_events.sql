-- Deliveries in order, webhooks, subscriptions with a version of their own. Version 4, for Postgres.

-- The record that the event is of: a group gets one record's events in their order.
ALTER TABLE svc_deliveries ADD COLUMN record_id TEXT;
-- How often the delivery was claimed since its last outcome: a process that ends in the middle leaves none.
ALTER TABLE svc_deliveries ADD COLUMN claims BIGINT NOT NULL DEFAULT 0;
-- A claim changes no indexed column, so that it fits beside the row where there is room.
ALTER TABLE svc_deliveries SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
DROP INDEX svc_deliveries_due;
-- By an expression that no other index has: else the planner takes one of those, and walks through all that was delivered before.
CREATE INDEX svc_deliveries_pending ON svc_deliveries (consumer, (event_seq + 0)) WHERE status = 'pending';
CREATE INDEX svc_deliveries_retries ON svc_deliveries (consumer, next_attempt_at, event_seq) WHERE status = 'failed' AND NOT dead;
CREATE INDEX svc_deliveries_failed ON svc_deliveries (event_seq) WHERE status = 'failed';

-- The feed reads by number; up to which number nothing is under way, svc_feed_mark tells.
DROP INDEX svc_events_xid;
ALTER TABLE svc_events DROP COLUMN xid;

-- The last number that was given to an event, and a transaction that began after it was: whoever drew a number up to that one had
-- begun before. A number of its own, because the snapshot's `xmax` is below transactions that are under way.
CREATE FUNCTION svc_feed_mark(OUT last_seq BIGINT, OUT xid TEXT) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  last_seq := coalesce(pg_sequence_last_value(pg_get_serial_sequence('svc_events', 'seq')::regclass), 0);
  xid := pg_current_xact_id()::text;
END $$;

INSERT INTO svc_versions VALUES ('subscriptions', 0);

-- As svc_hold, which servers of an earlier version use while this one is rolled out.
CREATE FUNCTION svc_hold_object(object_id BIGINT, OUT revision BIGINT, OUT subscriptions_version BIGINT) RETURNS SETOF record
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1651469411, object_id::integer);
  RETURN QUERY
    SELECT o.revision, v.version FROM svc_objects o CROSS JOIN svc_versions v WHERE o.id = object_id AND v.name = 'subscriptions';
END $$;

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
