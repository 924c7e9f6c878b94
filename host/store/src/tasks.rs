//! Scheduled tasks and their runs.
//!
//! If a task is due, the instance that sets the time of its next run begins the run. A run has a lease, whose time is measured by
//! the database's clock. So a run whose instance died can be distinguished from a run that takes long.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::dialect_sql::database_now;
use crate::error::DbError;
use crate::makers::{Maker, Suspension, suspension};
use crate::row::Row;

/// A task as stored. `config` is JSON text.
#[derive(Clone, Debug)]
pub struct TaskRow {
    pub id: String,
    pub name: String,
    pub kind: String,
    pub enabled: bool,
    pub schedule: String,
    pub config: String,
    /// The user who made the task. It runs with their rights. The service's own tasks have no user.
    pub user_id: Option<String>,
    /// The API key that made the task, if the request used one.
    pub api_key_id: Option<String>,
    pub last_run_at: Option<i64>,
    pub last_status: Option<String>,
    pub next_run_at: Option<i64>,
    pub created_at: i64,
    pub updated_at: i64,
    pub suspension: Option<Suspension>,
}

impl TaskRow {
    /// The maker, whose rights the task runs with.
    pub fn maker(&self) -> Maker {
        Maker { user_id: self.user_id.clone(), api_key_id: self.api_key_id.clone() }
    }
}

/// A run of a task. `result` is JSON text.
#[derive(Clone, Debug)]
pub struct TaskRunRow {
    pub id: String,
    pub task_id: String,
    /// The value is `schedule` or `manual`.
    pub trigger: String,
    /// The value is `running`, `succeeded` or `failed`.
    pub status: String,
    pub started_at: i64,
    pub finished_at: Option<i64>,
    pub result: Option<String>,
    pub error: Option<String>,
}

macro_rules! task_columns {
    () => {
        "id, name, type, enabled, schedule, config, user_id, api_key_id, last_run_at, last_status, next_run_at, created_at, updated_at, \
         suspended_reason, suspended_at"
    };
}

fn task(row: &Row) -> Result<TaskRow, DbError> {
    Ok(TaskRow {
        id: row.text(0)?,
        name: row.text(1)?,
        kind: row.text(2)?,
        enabled: row.boolean(3)?,
        schedule: row.text(4)?,
        config: row.text(5)?,
        user_id: row.optional_text(6)?,
        api_key_id: row.optional_text(7)?,
        last_run_at: row.optional_integer(8)?,
        last_status: row.optional_text(9)?,
        next_run_at: row.optional_integer(10)?,
        created_at: row.integer(11)?,
        updated_at: row.integer(12)?,
        suspension: suspension(row, 13)?,
    })
}

fn task_run(row: &Row) -> Result<TaskRunRow, DbError> {
    Ok(TaskRunRow {
        id: row.text(0)?,
        task_id: row.text(1)?,
        trigger: row.text(2)?,
        status: row.text(3)?,
        started_at: row.integer(4)?,
        finished_at: row.optional_integer(5)?,
        result: row.optional_text(6)?,
        error: row.optional_text(7)?,
    })
}

impl Connection {
    /// All tasks, the oldest first.
    pub async fn tasks(&mut self) -> Result<Vec<TaskRow>, DbError> {
        let rows = self.fetch(concat!("SELECT ", task_columns!(), " FROM svc_tasks ORDER BY created_at, id"), Vec::new()).await?;
        rows.iter().map(task).collect()
    }

    /// A task by its id or its name.
    pub async fn task(&mut self, id_or_name: &str) -> Result<Option<TaskRow>, DbError> {
        let sql = concat!("SELECT ", task_columns!(), " FROM svc_tasks WHERE id = $1 OR name = $1");
        let rows = self.fetch(sql, vec![id_or_name.into()]).await?;
        rows.first().map(task).transpose()
    }

    /// Does the same as [`Connection::task`], but no other transaction changes the task until this one ends.
    pub async fn held_task(&mut self, id_or_name: &str) -> Result<Option<TaskRow>, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => return self.task(id_or_name).await,
            Dialect::Postgres => concat!("SELECT ", task_columns!(), " FROM svc_tasks WHERE id = $1 OR name = $1 FOR UPDATE"),
        };
        let rows = self.fetch(sql, vec![id_or_name.into()]).await?;
        rows.first().map(task).transpose()
    }

    /// Creates a task. Returns `false` if the name is taken.
    pub async fn insert_task(&mut self, task: &TaskRow) -> Result<bool, DbError> {
        let inserted = self
            .run(
                "INSERT INTO svc_tasks (id, name, type, enabled, schedule, config, user_id, api_key_id, next_run_at, created_at, \
                 updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10) ON CONFLICT (name) DO NOTHING",
                vec![
                    task.id.clone().into(),
                    task.name.clone().into(),
                    task.kind.clone().into(),
                    task.enabled.into(),
                    task.schedule.clone().into(),
                    task.config.clone().into(),
                    task.user_id.clone().into(),
                    task.api_key_id.clone().into(),
                    task.next_run_at.into(),
                    task.created_at.into(),
                ],
            )
            .await?;
        Ok(inserted == 1)
    }

    /// Stores the columns of a task that can change.
    pub async fn update_task(&mut self, task: &TaskRow) -> Result<(), DbError> {
        self.run(
            "UPDATE svc_tasks SET enabled = $2, schedule = $3, config = $4, user_id = $5, api_key_id = $6, next_run_at = $7, \
             updated_at = $8 WHERE id = $1",
            vec![
                task.id.clone().into(),
                task.enabled.into(),
                task.schedule.clone().into(),
                task.config.clone().into(),
                task.user_id.clone().into(),
                task.api_key_id.clone().into(),
                task.next_run_at.into(),
                task.updated_at.into(),
            ],
        )
        .await
        .map(|_| ())
    }

    /// Deletes a task with its runs.
    pub async fn delete_task(&mut self, id: &str) -> Result<bool, DbError> {
        Ok(self.run("DELETE FROM svc_tasks WHERE id = $1", vec![id.into()]).await? == 1)
    }

    pub async fn count_tasks(&mut self) -> Result<i64, DbError> {
        let sql = self.placeholders("SELECT count(*) FROM svc_tasks");
        self.fetch_integer(blockbase_query::Statement { sql, params: Vec::new() }).await
    }

    /// Tasks that are due.
    pub async fn due_tasks(&mut self, now: i64) -> Result<Vec<TaskRow>, DbError> {
        let sql =
            concat!("SELECT ", task_columns!(), " FROM svc_tasks WHERE enabled AND next_run_at <= $1 ORDER BY next_run_at, id");
        let rows = self.fetch(sql, vec![now.into()]).await?;
        rows.iter().map(task).collect()
    }

    /// Moves a task's next run from `due` to `next`. If several callers or instances try this, one succeeds.
    pub async fn win_run(&mut self, id: &str, due: i64, next: Option<i64>) -> Result<bool, DbError> {
        let won = self
            .run(
                "UPDATE svc_tasks SET next_run_at = $3 WHERE id = $1 AND enabled AND next_run_at = $2",
                vec![id.into(), due.into(), next.into()],
            )
            .await?;
        Ok(won == 1)
    }

    /// Begins a run with a lease of `lease_ms`. Returns `false` if a run is in progress.
    pub async fn begin_run(&mut self, run: &TaskRunRow, lease_ms: i64) -> Result<bool, DbError> {
        let sql = format!(
            "INSERT INTO svc_task_runs (id, task_id, trigger_kind, status, lease_until, started_at) \
             VALUES ($1, $2, $3, 'running', {} + $4, $5) ON CONFLICT DO NOTHING",
            database_now(self.dialect())
        );
        let params = vec![
            run.id.clone().into(),
            run.task_id.clone().into(),
            run.trigger.clone().into(),
            lease_ms.into(),
            run.started_at.into(),
        ];
        let sql = self.placeholders(sql);
        let begun = self.execute(blockbase_query::Statement { sql, params }).await? == 1;
        if begun {
            self.run(
                "UPDATE svc_tasks SET last_run_at = $2, last_status = 'running' WHERE id = $1",
                vec![run.task_id.clone().into(), run.started_at.into()],
            )
            .await?;
        }
        Ok(begun)
    }

    /// Renews the lease of a run in progress. Returns `false` if the lease was lost.
    pub async fn renew_run(&mut self, id: &str, lease_ms: i64) -> Result<bool, DbError> {
        let sql = format!(
            "UPDATE svc_task_runs SET lease_until = {} + $2 WHERE id = $1 AND status = 'running'",
            database_now(self.dialect())
        );
        let sql = self.placeholders(sql);
        Ok(self.execute(blockbase_query::Statement { sql, params: vec![id.into(), lease_ms.into()] }).await? == 1)
    }

    /// Ends a run. Returns `false` if it has already ended.
    pub async fn end_run(&mut self, run: &TaskRunRow) -> Result<bool, DbError> {
        let ended = self
            .run(
                "UPDATE svc_task_runs SET status = $2, finished_at = $3, result = $4, error = $5 \
                 WHERE id = $1 AND status = 'running'",
                vec![
                    run.id.clone().into(),
                    run.status.clone().into(),
                    run.finished_at.into(),
                    run.result.clone().into(),
                    run.error.clone().into(),
                ],
            )
            .await?;
        if ended == 1 {
            self.run(
                "UPDATE svc_tasks SET last_status = $2 WHERE id = $1",
                vec![run.task_id.clone().into(), run.status.clone().into()],
            )
            .await?;
        }
        Ok(ended == 1)
    }

    /// Ends the runs whose lease has expired, or all runs in progress if `all` is set. Returns the runs, each with its task's name.
    pub async fn fail_abandoned_runs(&mut self, now: i64, error: &str, all: bool) -> Result<Vec<(TaskRunRow, String)>, DbError> {
        let sql = format!(
            "UPDATE svc_task_runs SET status = 'failed', finished_at = $1, error = $2 WHERE status = 'running' \
             AND ($3 OR lease_until < {}) \
             RETURNING id, task_id, trigger_kind, status, started_at, finished_at, result, error",
            database_now(self.dialect())
        );
        let params = vec![now.into(), error.into(), all.into()];
        let statement = blockbase_query::Statement { sql: self.placeholders(sql), params };
        let mut failed = Vec::new();
        for row in self.fetch_rows(statement).await? {
            let run = task_run(&row)?;
            self.run("UPDATE svc_tasks SET last_status = 'failed' WHERE id = $1", vec![run.task_id.clone().into()]).await?;
            let name = self.task(&run.task_id).await?.map(|task| task.name).unwrap_or_default();
            failed.push((run, name));
        }
        Ok(failed)
    }

    /// Runs of a task, the newest first.
    pub async fn task_runs(&mut self, task_id: &str, limit: i64, offset: i64) -> Result<(Vec<TaskRunRow>, i64), DbError> {
        let rows = self
            .fetch(
                "SELECT id, task_id, trigger_kind, status, started_at, finished_at, result, error FROM svc_task_runs \
                 WHERE task_id = $1 ORDER BY started_at DESC, id DESC LIMIT $2 OFFSET $3",
                vec![task_id.into(), limit.into(), offset.into()],
            )
            .await?;
        let runs = rows.iter().map(task_run).collect::<Result<_, DbError>>()?;
        let sql = self.placeholders("SELECT count(*) FROM svc_task_runs WHERE task_id = $1");
        let total = self.fetch_integer(blockbase_query::Statement { sql, params: vec![task_id.into()] }).await?;
        Ok((runs, total))
    }

    /// Clears the stored results of ended runs that contain a text, ignoring case. Returns the number of runs.
    pub async fn clear_task_runs_with(&mut self, text: &str) -> Result<u64, DbError> {
        let dialect = self.dialect();
        let holds = |column: &str| dialect.contains(column, "$1", true);
        let sql = format!(
            "UPDATE svc_task_runs SET result = NULL, error = NULL WHERE {} OR {}",
            holds("coalesce(result, '')"),
            holds("coalesce(error, '')")
        );
        let sql = self.placeholders(sql);
        self.execute(blockbase_query::Statement { sql, params: vec![text.into()] }).await
    }

    /// Deletes all runs of a task except the newest `kept`.
    pub async fn trim_task_runs(&mut self, task_id: &str, kept: i64) -> Result<u64, DbError> {
        self.run(
            "DELETE FROM svc_task_runs WHERE task_id = $1 AND status <> 'running' AND id NOT IN \
             (SELECT id FROM svc_task_runs WHERE task_id = $1 ORDER BY started_at DESC, id DESC LIMIT $2)",
            vec![task_id.into(), kept.into()],
        )
        .await
    }
}
