-- Tokens that are sent to people: links to set a password. Version 17, for Postgres.

-- Only the SHA-256 of a token is kept. A row ends when its token is used or expires, and when the account gets another password.
CREATE TABLE svc_account_tokens (
  token_hash TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES svc_users (id) ON DELETE CASCADE,
  -- 'invitation' or 'reset'.
  kind TEXT NOT NULL,
  -- With whose rights it was made, as in svc_api_keys: a user, by one of their keys or not; neither is the service itself.
  made_by_user TEXT,
  made_by_key TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX svc_account_tokens_user ON svc_account_tokens (user_id, kind);
CREATE INDEX svc_account_tokens_maker ON svc_account_tokens (made_by_user);
CREATE INDEX svc_account_tokens_expiry ON svc_account_tokens (expires_at);
