-- Compressed events, and their bytes. Version 8, for Postgres.

-- Bytes of a payload that is packed; `payload` is empty then.
ALTER TABLE svc_events ADD COLUMN payload_bytes BIGINT;
-- The payload, compressed: as it is, because Postgres would try to compress it once more.
ALTER TABLE svc_events ADD COLUMN packed BYTEA;
ALTER TABLE svc_events ALTER COLUMN packed SET STORAGE EXTERNAL;

-- One row: how many bytes the events up to a number take.
CREATE TABLE svc_outbox (
  counted_to BIGINT NOT NULL,
  bytes BIGINT NOT NULL
);
INSERT INTO svc_outbox VALUES (0, 0);

-- Roles, keys, sessions and users: raised with each change of them, so that other instances forget what they keep.
INSERT INTO svc_versions VALUES ('accounts', 0);
