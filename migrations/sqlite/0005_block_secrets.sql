-- Secrets of blocks. Version 5, for SQLite.

CREATE TABLE svc_block_secrets (
  block TEXT NOT NULL REFERENCES svc_blocks (name) ON DELETE CASCADE,
  name TEXT NOT NULL,
  -- Encrypted, with the id of the key.
  ciphertext TEXT NOT NULL,
  key_id TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  PRIMARY KEY (block, name)
);
