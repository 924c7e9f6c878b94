-- Which objects a change of the schema touched, so that the history of one object costs no scan.
CREATE TABLE svc_schema_change_objects (
  object TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL REFERENCES svc_schema_changes (version) ON DELETE CASCADE,
  PRIMARY KEY (object, version)
);
INSERT INTO svc_schema_change_objects (object, version)
  SELECT named.object, named.version FROM (
    SELECT CASE json_typeof(change::json -> 'object')
      WHEN 'string' THEN change::json ->> 'object'
      ELSE change::json -> 'object' ->> 'name' END AS object, version FROM svc_schema_changes
    UNION ALL SELECT change::json -> 'relationship' ->> 'source', version FROM svc_schema_changes
    UNION ALL SELECT change::json -> 'relationship' ->> 'target', version FROM svc_schema_changes
  ) AS named WHERE named.object IS NOT NULL
  ON CONFLICT DO NOTHING;
-- When a session was used last, to within some minutes.
ALTER TABLE svc_sessions ADD COLUMN last_seen_at BIGINT;
