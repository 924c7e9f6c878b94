//! Runs of tasks: won, leased, done, told of.

use std::sync::Arc;
use std::time::Duration;

use blockbase_query::Action;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{ReadCost, TaskRow, TaskRunRow};
use serde_json::{Value, json};

use super::kind::Kind;
use super::{TASKS, next_run, render_run};
use crate::App;
use crate::caller::Caller;

/// How long a run is believed to be under way without a word of it.
const LEASE_MS: i64 = 60_000;
/// How often a run says that it is under way.
const RENEW: Duration = Duration::from_secs(20);
/// Runs of a task that are kept.
const RUNS_KEPT: i64 = 100;
/// Events looked at in one transaction of the retention.
const EVENTS_AT_ONCE: i64 = 500;
const DAY_MS: i64 = 24 * 3_600_000;
/// Longest error text kept, in characters.
const ERROR_CHARS_MAX: usize = 1000;

impl App {
    /// Begins the runs that are due; of several instances one begins each. Runs whose instance is gone count as failed.
    pub async fn run_due_tasks(self: &Arc<Self>) -> Result<()> {
        let now = self.clock.now();
        let due = self
            .store
            .read(ReadCost::Rows, move |connection| Box::pin(async move { Ok(connection.due_tasks(now).await?) }))
            .await?;
        for task in due {
            // A task that was due while no instance ran is run once, not once a time that it missed.
            let next = next_run(&task.schedule, now).ok();
            let run = self.new_run(&task, "schedule");
            let (id, seen, begun) = (task.id.clone(), task.next_run_at.unwrap_or(now), run.clone());
            let won = self
                .store
                .write(move |connection| {
                    Box::pin(async move {
                        Ok(connection.win_run(&id, seen, next).await? && connection.begin_run(&begun, LEASE_MS).await?)
                    })
                })
                .await?;
            if won {
                tokio::spawn(Arc::clone(self).finish_run(task, run));
            }
        }
        Ok(())
    }

    /// Counts runs as failed whose instance has not been heard of for longer than a lease.
    pub async fn fail_abandoned_runs(&self) -> Result<u64> {
        let now = self.clock.now();
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    let error = "The instance that ran it ended before the run did.";
                    Ok(connection.fail_abandoned_runs(now, error).await?)
                })
            })
            .await
    }

    /// Runs a task now, enabled or not, and answers with the run when it has ended. It goes on where the caller goes away.
    ///
    /// # Errors
    /// `conflict` where a run of it is under way.
    pub async fn run_task(self: &Arc<Self>, caller: &Caller, id_or_name: &str) -> Result<Value> {
        caller.require(TASKS, Action::Update)?;
        let task = self.find_task(id_or_name).await?;
        let run = self.new_run(&task, "manual");
        let begun = run.clone();
        let is_begun = self
            .store
            .write(move |connection| Box::pin(async move { Ok(connection.begin_run(&begun, LEASE_MS).await?) }))
            .await?;
        if !is_begun {
            return Err(Error::new(Code::Conflict, format!("A run of `{}` is under way.", task.name)));
        }
        let ended = tokio::spawn(Arc::clone(self).finish_run(task, run)).await.map_err(Error::internal)?;
        Ok(render_run(&ended))
    }

    fn new_run(&self, task: &TaskRow, trigger: &str) -> TaskRunRow {
        let now = self.clock.now();
        TaskRunRow {
            id: self.clock.id(now).to_string(),
            task_id: task.id.clone(),
            trigger: trigger.to_owned(),
            status: "running".to_owned(),
            started_at: now,
            finished_at: None,
            result: None,
            error: None,
        }
    }

    /// Does what the task is for, and stores how it ended with the event that tells of it.
    async fn finish_run(self: Arc<Self>, task: TaskRow, mut run: TaskRunRow) -> TaskRunRow {
        let mut work = tokio::spawn({
            let (app, task, run_id) = (Arc::clone(&self), task.clone(), run.id.clone());
            async move { app.perform(&task, run_id).await }
        });
        let outcome = loop {
            tokio::select! {
                ended = &mut work => break ended.unwrap_or_else(|_| Err(Error::internal("a task panicked"))),
                () = tokio::time::sleep(RENEW) => self.renew(&run.id).await,
            }
        };
        run.finished_at = Some(self.clock.now());
        match outcome {
            Ok(result) => (run.status, run.result) = ("succeeded".to_owned(), Some(result.to_string())),
            Err(error) => {
                if let Some(cause) = &error.cause {
                    tracing::error!(task.name, error.cause = %cause, "a task failed");
                }
                let message = error.message.chars().take(ERROR_CHARS_MAX).collect();
                (run.status, run.error) = ("failed".to_owned(), Some(message));
            }
        }
        let payload = json!({
            "task": task.name,
            "taskId": task.id,
            "runId": run.id,
            "trigger": run.trigger,
            "status": run.status,
            "result": render_run(&run)["result"],
            "error": run.error,
            "actor": null,
        });
        let event = self.platform_event(&Caller::system(), format!("task.run.{}", run.status), payload.to_string());
        let ended = run.clone();
        let stored = self
            .store
            .write(move |connection| {
                Box::pin(async move {
                    if connection.end_run(&ended).await?
                        && let Some(event) = event
                    {
                        connection.emit(event).await?;
                    }
                    Ok(connection.trim_task_runs(&ended.task_id, RUNS_KEPT).await?)
                })
            })
            .await;
        if let Err(error) = stored {
            tracing::error!(task.name, error.cause = %error, "the end of a task's run could not be stored");
        }
        run
    }

    async fn renew(&self, run_id: &str) {
        let id = run_id.to_owned();
        let renewed =
            self.store.write(move |connection| Box::pin(async move { Ok(connection.renew_run(&id, LEASE_MS).await?) })).await;
        if !renewed.unwrap_or(false) {
            tracing::warn!(run.id = run_id, "the lease of a task's run could not be renewed");
        }
    }

    async fn perform(self: &Arc<Self>, task: &TaskRow, run_id: String) -> Result<Value> {
        let config: Value = serde_json::from_str(&task.config).map_err(Error::internal)?;
        match Kind::read(&task.kind, &config)? {
            Kind::AnonymousCleanup { max_age_days } => {
                let before = self.clock.now() - i64::from(max_age_days) * DAY_MS;
                Ok(json!({ "deleted": self.delete_old_guests(before).await? }))
            }
            Kind::EventRetention => Ok(json!({ "deleted": self.purge_events().await? })),
            Kind::BlockAction { block, action, input } => {
                let caller = self.task_caller(task).await?;
                let answer = self.call_action(&caller, &block, &action, input.to_string(), run_id).await?;
                serde_json::from_str(&answer).map_err(Error::internal)
            }
        }
    }

    /// Whoever made the task, with what they may do at this moment.
    async fn task_caller(&self, task: &TaskRow) -> Result<Caller> {
        let identity = match &task.user_id {
            Some(user_id) => self.identity_of_actor(user_id, task.api_key_id.as_deref()).await?,
            None => None,
        };
        match identity {
            Some(identity) => Ok(Caller::of_identity(Arc::new(identity))),
            None if !self.settings.require_auth => Ok(Caller::system()),
            None => Err(Error::new(
                Code::Forbidden,
                "Whoever made this task is gone or banned, or their key is. Change its `config` to run it with your rights.",
            )),
        }
    }

    /// Deletes the events that are older than the configuration keeps them and that nobody still has to get: how many.
    async fn purge_events(&self) -> Result<u64> {
        if self.settings.events_retention_days == 0 {
            return Ok(0);
        }
        let before = self.clock.now() - i64::from(self.settings.events_retention_days) * DAY_MS;
        let (mut after, mut deleted) = (0, 0);
        loop {
            let page = self
                .store
                .read(ReadCost::Rows, move |connection| {
                    Box::pin(async move { Ok(connection.events_page(after, EVENTS_AT_ONCE).await?) })
                })
                .await?;
            // Events are numbered about in the order in which they happened.
            let Some((up_to, _)) = page.filter(|(_, first_at)| *first_at < before) else { return Ok(deleted) };
            deleted += self
                .store
                .write(move |connection| Box::pin(async move { Ok(connection.purge_events(after, up_to, before).await?) }))
                .await?;
            after = up_to;
        }
    }
}
