-- Users as records that objects can refer to. Version 16, for Postgres.

-- The records that relationships lead to: a row for each user, with what may be shown of the user. Triggers follow each change of a user.
CREATE TABLE users (
  svc_version BIGINT NOT NULL DEFAULT 0,
  id UUID PRIMARY KEY,
  name TEXT COLLATE "C",
  image TEXT COLLATE "C",
  email TEXT COLLATE "C" UNIQUE
);
INSERT INTO users (id, name, image, email) SELECT id::uuid, name, image, email FROM svc_users;
INSERT INTO svc_counts (object_id, rows) SELECT 0, count(*) FROM svc_users;
CREATE FUNCTION svc_mirror_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO users (id, name, image, email) VALUES (NEW.id::uuid, NEW.name, NEW.image, NEW.email);
    INSERT INTO svc_counts (object_id, rows) VALUES (0, 1);
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE users SET name = NEW.name, image = NEW.image, email = NEW.email, svc_version = svc_version + 1
      WHERE id = NEW.id::uuid;
  ELSE
    DELETE FROM users WHERE id = OLD.id::uuid;
    INSERT INTO svc_counts (object_id, rows) VALUES (0, -1);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER svc_users_inserted AFTER INSERT ON svc_users FOR EACH ROW EXECUTE FUNCTION svc_mirror_user();
CREATE TRIGGER svc_users_updated AFTER UPDATE OF name, image, email ON svc_users FOR EACH ROW EXECUTE FUNCTION svc_mirror_user();
CREATE TRIGGER svc_users_deleted AFTER DELETE ON svc_users FOR EACH ROW EXECUTE FUNCTION svc_mirror_user();
