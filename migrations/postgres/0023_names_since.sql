-- Since when objects and fields have their names. Version 23, for Postgres.

-- The last events in which a name may mean something else, a JSON object: for the object's own name, and for fields by their keys
-- in the catalogue. A name without an entry is as old as its object, or was given before this column existed.
ALTER TABLE svc_objects ADD COLUMN names_since TEXT NOT NULL DEFAULT '{}';
