-- Relationships, and the revision of each object. Version 2, for SQLite.

-- Goes up by one with each change of the object or of its relationships.
ALTER TABLE svc_objects ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
CREATE TABLE svc_relationships (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  definition TEXT NOT NULL
);
