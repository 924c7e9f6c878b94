-- The version of each row: a number that goes up with each change. Conditional writes compare it.
-- This runs once for each object; `{object}` is its name.
ALTER TABLE "{object}" ADD COLUMN svc_version INTEGER NOT NULL DEFAULT 0;
