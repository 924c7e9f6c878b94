-- Keys, the claim of the bootstrap account, tasks. Version 3, for SQLite.

-- Whether the session began with the bootstrap password.
ALTER TABLE svc_sessions ADD COLUMN is_bootstrap BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX svc_sessions_expiry ON svc_sessions (expires_at);
CREATE INDEX svc_users_created ON svc_users (created_at, id);
CREATE INDEX svc_users_guests ON svc_users (created_at) WHERE is_anonymous;
CREATE INDEX svc_user_roles_role ON svc_user_roles (role_id);
-- The account that was made at boot, until somebody has claimed it.
CREATE TABLE svc_pending_claims (
  user_id TEXT PRIMARY KEY REFERENCES svc_users (id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL
);
-- Only the SHA-256 of a key is kept.
CREATE TABLE svc_api_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  prefix TEXT NOT NULL,
  key_hash TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL REFERENCES svc_users (id) ON DELETE CASCADE,
  role_id TEXT NOT NULL REFERENCES svc_roles (id) ON DELETE CASCADE,
  expires_at BIGINT,
  last_used_at BIGINT,
  created_at BIGINT NOT NULL
);
CREATE INDEX svc_api_keys_user ON svc_api_keys (user_id);
CREATE INDEX svc_api_keys_role ON svc_api_keys (role_id);
-- The row that decisions about accounts wait for one another on: who is first, who is the last admin. Who is first is told by
-- the accounts themselves, so that a wiped table of users counts as fresh.
INSERT INTO svc_once VALUES ('accounts', '');

CREATE TABLE svc_tasks (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  type TEXT NOT NULL,
  enabled BOOLEAN NOT NULL,
  schedule TEXT NOT NULL,
  config TEXT NOT NULL,
  -- With whose rights a block's action runs: a user, by one of their keys or not.
  user_id TEXT,
  api_key_id TEXT,
  last_run_at BIGINT,
  last_status TEXT,
  -- When it is due. Whoever moves it on has won that run.
  next_run_at BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE TABLE svc_task_runs (
  id TEXT PRIMARY KEY,
  task_id TEXT NOT NULL REFERENCES svc_tasks (id) ON DELETE CASCADE,
  -- 'schedule' or 'manual'.
  trigger_kind TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('running', 'succeeded', 'failed')),
  -- Until when the instance that runs it has to have ended or said that it lives, by the database's clock.
  lease_until BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT,
  result TEXT,
  error TEXT
);
CREATE INDEX svc_tasks_due ON svc_tasks (next_run_at) WHERE enabled;
CREATE INDEX svc_task_runs_task ON svc_task_runs (task_id, started_at, id);
CREATE UNIQUE INDEX svc_task_runs_running ON svc_task_runs (task_id) WHERE status = 'running';
