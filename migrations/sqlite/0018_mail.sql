-- Mail that the server sends. Version 18, for SQLite.

-- A mail that waits to be sent. The event that leads to it has the id of this row alone, so it shows neither the address nor a token. The
-- token of a link is made when the mail is sent.
CREATE TABLE svc_mails (
  id TEXT PRIMARY KEY,
  -- 'invite', 'reset' or 'verify'.
  kind TEXT NOT NULL,
  address TEXT NOT NULL,
  -- The account, if an account asked. Otherwise it is the account that has the address when the mail is sent.
  user_id TEXT,
  -- What a browser said about its user's language.
  language TEXT,
  -- The page where the link ends, if it was named.
  page TEXT,
  -- With whose rights it was asked for, as in svc_account_tokens.
  made_by_user TEXT,
  made_by_key TEXT,
  created_at BIGINT NOT NULL
);
CREATE INDEX svc_mails_age ON svc_mails (created_at);

-- How many mails to one address were asked for since an instant, whether or not an account has it. The address is kept as its SHA-256.
CREATE TABLE svc_mail_limits (
  address_hash TEXT PRIMARY KEY,
  since BIGINT NOT NULL,
  mails BIGINT NOT NULL
);
CREATE INDEX svc_mail_limits_age ON svc_mail_limits (since);

-- Whether a token was mailed to the account's address. Then using it proves the address.
ALTER TABLE svc_account_tokens ADD COLUMN is_mailed BIGINT NOT NULL DEFAULT 0;
