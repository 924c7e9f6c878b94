-- Who made each API key. Version 6, for SQLite.

-- The user who made the key, and the key that they used for it. A key with neither (made before this version, or from the shell)
-- has no maker. They are no foreign keys: a key has to remember a maker who is gone.
ALTER TABLE svc_api_keys ADD COLUMN made_by_user TEXT;
ALTER TABLE svc_api_keys ADD COLUMN made_by_key TEXT;
-- Since when and why the key has no power; both are null while its maker is there.
ALTER TABLE svc_api_keys ADD COLUMN suspended_reason TEXT;
ALTER TABLE svc_api_keys ADD COLUMN suspended_at BIGINT;
CREATE INDEX svc_api_keys_made_by_user ON svc_api_keys (made_by_user) WHERE made_by_user IS NOT NULL;
CREATE INDEX svc_api_keys_made_by_key ON svc_api_keys (made_by_key) WHERE made_by_key IS NOT NULL;
CREATE INDEX svc_api_keys_expiry ON svc_api_keys (expires_at) WHERE expires_at IS NOT NULL;
