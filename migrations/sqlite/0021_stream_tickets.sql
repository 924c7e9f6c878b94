-- Tickets that open one event stream each, and the limit from which streams can resume. Version 21, for SQLite.

-- Only the SHA-256 of a ticket is kept. A row ends when its ticket is used or expires.
CREATE TABLE svc_stream_tickets (
  ticket_hash TEXT PRIMARY KEY,
  -- A user, an API key or a network, for example 'user <id>'. An owner has a limited number of tickets.
  owner TEXT NOT NULL,
  -- 'session' or 'api_key', with the SHA-256 of its token or key. Null if permissions were not enforced and there was no credential.
  credential_kind TEXT,
  credential_hash TEXT,
  expires_at BIGINT NOT NULL
);
CREATE INDEX svc_stream_tickets_owner ON svc_stream_tickets (owner, expires_at);
CREATE INDEX svc_stream_tickets_expiry ON svc_stream_tickets (expires_at);

-- The greatest number of an event that was deleted because of its age or the outbox's size. A stream cannot resume before it.
ALTER TABLE svc_outbox ADD COLUMN purged_to BIGINT NOT NULL DEFAULT 0;
