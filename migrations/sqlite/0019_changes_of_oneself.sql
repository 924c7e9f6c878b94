-- Changes of an address, and deletions of one's own account, with mailed links. Version 19, for SQLite.

-- The new address, for a token that confirms it.
ALTER TABLE svc_account_tokens ADD COLUMN address TEXT;
