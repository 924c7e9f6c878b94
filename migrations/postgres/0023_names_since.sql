-- Since when objects and fields have their names. Version 23, for Postgres.

-- The last events in which a name may mean something else, a JSON object: for the object's own name, and for fields by their keys
-- in the catalogue. A name without an entry never meant anything else, or the database is older than this column.
ALTER TABLE svc_objects ADD COLUMN names_since TEXT NOT NULL DEFAULT '{}';
