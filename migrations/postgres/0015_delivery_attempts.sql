-- What became of each attempt to deliver. Version 15, for Postgres.

-- The number of the last attempt in `svc_delivery_attempts`. It counts on when a delivery is tried again by hand, while `attempts` begins anew.
-- Null until an attempt fails, so that a delivery that succeeds at once stores nothing more than before.
ALTER TABLE svc_deliveries ADD COLUMN last_attempt BIGINT;
-- Without foreign keys: purging deliveries would look each of them up here, and most have no row. Whatever deletes deliveries deletes these by range.
CREATE TABLE svc_delivery_attempts (
  event_seq BIGINT NOT NULL,
  consumer TEXT COLLATE "C" NOT NULL,
  number BIGINT NOT NULL,
  -- By the database's clock.
  ended_at BIGINT NOT NULL,
  -- Null where no attempt was made.
  duration_ms BIGINT,
  -- Null where it succeeded.
  error TEXT,
  PRIMARY KEY (event_seq, consumer, number)
);
