-- Users as records that objects can refer to. Version 16, for SQLite.

-- The records that relationships lead to: a row for each user, with what may be shown of the user. Triggers follow each change of a user.
CREATE TABLE users (
  svc_rowid INTEGER PRIMARY KEY,
  svc_version INTEGER NOT NULL DEFAULT 0,
  id TEXT NOT NULL UNIQUE,
  name TEXT,
  image TEXT,
  email TEXT UNIQUE
);
INSERT INTO users (id, name, image, email) SELECT id, name, image, email FROM svc_users;
INSERT INTO svc_counts (object_id, rows) SELECT 0, count(*) FROM svc_users;
CREATE TRIGGER svc_users_inserted AFTER INSERT ON svc_users BEGIN
  INSERT INTO users (id, name, image, email) VALUES (new.id, new.name, new.image, new.email);
  UPDATE svc_counts SET rows = rows + 1 WHERE object_id = 0;
END;
CREATE TRIGGER svc_users_updated AFTER UPDATE OF name, image, email ON svc_users BEGIN
  UPDATE users SET name = new.name, image = new.image, email = new.email, svc_version = svc_version + 1 WHERE id = new.id;
END;
CREATE TRIGGER svc_users_deleted AFTER DELETE ON svc_users BEGIN
  DELETE FROM users WHERE id = old.id;
  UPDATE svc_counts SET rows = rows - 1 WHERE object_id = 0;
END;
