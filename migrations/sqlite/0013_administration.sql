-- Which objects a change of the schema touched, so that the history of one object costs no scan.
CREATE TABLE svc_schema_change_objects (
  object TEXT NOT NULL,
  version BIGINT NOT NULL REFERENCES svc_schema_changes (version) ON DELETE CASCADE,
  PRIMARY KEY (object, version)
) WITHOUT ROWID;
INSERT OR IGNORE INTO svc_schema_change_objects (object, version)
  SELECT named.object, named.version FROM (
    SELECT CASE json_type(change, '$.object')
      WHEN 'text' THEN json_extract(change, '$.object')
      ELSE json_extract(change, '$.object.name') END AS object, version FROM svc_schema_changes
    UNION ALL SELECT json_extract(change, '$.relationship.source'), version FROM svc_schema_changes
    UNION ALL SELECT json_extract(change, '$.relationship.target'), version FROM svc_schema_changes
  ) AS named WHERE named.object IS NOT NULL;
-- When a session was used last, to within some minutes.
ALTER TABLE svc_sessions ADD COLUMN last_seen_at BIGINT;
