//! Runs tasks. One instance begins a run with a lease, does the work, and stores the outcome.
//!
//! The transaction that begins a run also sets the task's next run. A failed run is not repeated, because an action may have done half
//! of its work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_query::Action;
use blockbase_schema::time::DAY_MS;
use blockbase_schema::{Code, Error, Resource, Result, Retry};
use blockbase_store::{ReadCost, Service, TaskRow, TaskRunRow};
use serde_json::{Value, json};

use super::kind::{ANONYMOUS_CLEANUP, BLOCK_ACTION, Kind};
use super::{TaskRunAnswer, may_delete_guests, next_run};
use crate::App;
use crate::base::topic::Topic;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};

/// The time for which a run counts as in progress without a renewal.
const LEASE: Duration = Duration::from_secs(60);
const LEASE_MS: i64 = LEASE.as_millis() as i64;
/// How often a run renews its lease.
const RENEW: Duration = Duration::from_secs(20);
/// The maximum number of runs of a task that are kept.
const RUNS_KEPT: i64 = 100;
/// The maximum length of the stored error text, in characters.
const ERROR_CHARS_MAX: usize = 1000;

/// The text of events about a failed action of a block.
const ACTION_FAILED: &str = "The action failed. Callers who may call it see the reason in the runs of the task.";

/// The result of renewing a run's lease.
enum Renewal {
    Held,
    Lost,
    /// The database did not answer, so the state of the lease is unknown.
    Unknown,
}

impl App {
    /// Begins the runs of tasks that are due. If there are several instances, only one of them begins a run. A task whose last
    /// run is still in progress stays due.
    pub async fn run_due_tasks(self: &Arc<Self>) -> Result<()> {
        let now = self.clock.now();
        let due = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| Box::pin(async move { Ok(connection.due_tasks(now).await?) }))
            .await?;
        for task in due {
            let Some(under_way) = self.task_runs_under_way.enter() else { return Ok(()) };
            // If no instance ran for a while, a task that missed several runs is run only once.
            let next = next_run(&task.schedule, now).ok();
            let run = self.new_run(&task, "schedule");
            let (id, seen, begun) = (task.id.clone(), task.next_run_at.unwrap_or(now), run.clone());
            let won = self
                .store
                .write_in_reserve(Service, move |connection| {
                    Box::pin(async move {
                        // The run begins first. If another run is in progress, nothing has changed yet, and the task stays due.
                        if !connection.begin_run(&begun, LEASE_MS).await? {
                            return Ok(false);
                        }
                        match connection.win_run(&id, seen, next).await? {
                            true => Ok(true),
                            // Another instance was faster. The error rolls back the beginning of this run.
                            false => Err(Error::retry(Retry::Contended, "another instance was first")),
                        }
                    })
                })
                .await;
            match won {
                Ok(true) => {
                    let finish = Arc::clone(self).finish_run(task, run, Caller::system());
                    tokio::spawn(async move {
                        finish.await;
                        drop(under_way);
                    });
                }
                Ok(false) => {}
                Err(error) if error.retry.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Marks runs as failed whose leases have expired, and emits an event for each. With `at_boot`, and if no other process uses
    /// the database, this concerns all runs that are in progress.
    pub async fn fail_abandoned_runs(&self, at_boot: bool) -> Result<()> {
        let (now, all) = (self.clock.now(), at_boot && !self.is_shared());
        let announcer = self.announcer(&Caller::system());
        self.store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move {
                    let error = "The instance ended before the run had finished.";
                    for (run, name) in connection.fail_abandoned_runs(now, error, all).await? {
                        announcer.emit(connection, Topic::run_ended(&name, &run, &Value::Null)).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Stops new runs from beginning, and waits for the runs in progress here.
    pub async fn drain_tasks(&self) {
        self.task_runs_under_way.drain().await;
    }

    /// Runs a task now, even if it is disabled, and returns the run when it has ended. The run continues if the caller disconnects.
    ///
    /// # Errors
    /// `forbidden` in three cases: the caller may not call the task's action, the user to erase has rights that the caller lacks, or the
    /// task deletes guests and the caller may not delete users. (A run has the effect of a call and shows its result.) `conflict` if a
    /// run of the task is in progress.
    pub async fn run_task(self: &Arc<Self>, caller: &Caller, id_or_name: &str) -> Result<TaskRunAnswer> {
        caller.require(Resource::Tasks, Action::Update)?;
        let task = self.find_task(caller, id_or_name).await?;
        self.may_act_on_task(caller, &task)?;
        if task.kind == ANONYMOUS_CLEANUP {
            may_delete_guests(caller)?;
        }
        let under_way = self.task_runs_under_way.enter();
        let under_way = under_way.ok_or_else(|| Error::new(Code::Unavailable, "The server is about to stop."))?;
        let run = self.new_run(&task, "manual");
        let (app, acting, known, begun) = (Arc::clone(self), caller.clone(), task.clone(), run.clone());
        let auditor = self.auditor(caller);
        let is_begun = self
            .store
            .write_in_reserve(self.by(caller), move |connection| {
                Box::pin(async move {
                    app.require_rights_of_erased(connection, &acting, &known).await?;
                    if !connection.begin_run(&begun, LEASE_MS).await? {
                        return Ok(false);
                    }
                    let act = Act::new(AuditAction::Run, Resource::Tasks, &known.id).after(&json!({ "runId": begun.id }));
                    auditor.record(connection, act).await?;
                    Ok(true)
                })
            })
            .await?;
        if !is_begun {
            return Err(Error::new(Code::Conflict, format!("A run of `{}` is already in progress.", task.name)));
        }
        let finish = Arc::clone(self).finish_run(task, run, caller.clone());
        let ended = tokio::spawn(async move {
            let ended = finish.await;
            drop(under_way);
            ended
        });
        let ended = ended.await.map_err(Error::internal)?;
        self.recheck(caller).await?;
        Ok(TaskRunAnswer::from(&ended))
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

    /// Does the work of the task, and stores the outcome together with its event.
    async fn finish_run(self: Arc<Self>, task: TaskRow, mut run: TaskRunRow, caller: Caller) -> TaskRunRow {
        let mut work = tokio::spawn({
            let (app, task, run_id) = (Arc::clone(&self), task.clone(), run.id.clone());
            async move { app.perform(&task, run_id).await }
        });
        let mut heard_of = Instant::now();
        let outcome = loop {
            tokio::select! {
                ended = &mut work => break ended.unwrap_or_else(|_| Err(Error::internal("a task panicked"))),
                () = tokio::time::sleep(RENEW) => {
                    match self.renew(&run.id).await {
                        Renewal::Held => heard_of = Instant::now(),
                        Renewal::Unknown if heard_of.elapsed() < LEASE => {}
                        // Another instance may have begun the next run meanwhile.
                        Renewal::Lost | Renewal::Unknown => {
                            work.abort();
                            break Err(Error::new(Code::Unavailable, "The run lost its lease: the database did not answer."));
                        }
                    }
                }
            }
        };
        run.finished_at = Some(self.clock.now());
        let mut result = Value::Null;
        match outcome {
            Ok(answer) => {
                (run.status, run.result) = ("succeeded".to_owned(), Some(answer.to_string()));
                result = answer;
            }
            Err(error) => {
                if let Some(cause) = &error.cause {
                    tracing::error!(task.name, error.cause = %cause, "a task failed");
                }
                // Postgres cannot store NUL in text.
                let message = error.message.replace('\0', "\u{fffd}").chars().take(ERROR_CHARS_MAX).collect();
                (run.status, run.error) = ("failed".to_owned(), Some(message));
            }
        }
        // Only callers who may call the action may see the block's results and errors. So the runs contain them, but the event
        // does not.
        let mut shown_run = run.clone();
        if task.kind == BLOCK_ACTION {
            result = Value::Null;
            shown_run.error = shown_run.error.map(|_| ACTION_FAILED.to_owned());
        }
        let (announcer, name, ended) = (self.announcer(&caller), task.name.clone(), run.clone());
        let stored = self
            .store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move {
                    let is_ended = connection.end_run(&ended).await?;
                    if is_ended {
                        announcer.emit(connection, Topic::run_ended(&name, &shown_run, &result)).await?;
                    }
                    connection.trim_task_runs(&ended.task_id, RUNS_KEPT).await?;
                    Ok(is_ended)
                })
            })
            .await;
        match stored {
            Ok(true) => {}
            Ok(false) => (run.status, run.error) = ("failed".to_owned(), Some("The run lost its lease.".to_owned())),
            Err(error) => tracing::error!(task.name, error.cause = %error, "the end of a task's run could not be stored"),
        }
        run
    }

    async fn renew(&self, run_id: &str) -> Renewal {
        let id = run_id.to_owned();
        let renew = self
            .store
            .write_in_reserve(Service, move |connection| Box::pin(async move { Ok(connection.renew_run(&id, LEASE_MS).await?) }));
        match renew.await {
            Ok(true) => Renewal::Held,
            Ok(false) => Renewal::Lost,
            Err(error) => {
                tracing::warn!(run.id = run_id, error.cause = %error, "the lease of a task's run could not be renewed");
                Renewal::Unknown
            }
        }
    }

    async fn perform(self: &Arc<Self>, task: &TaskRow, run_id: String) -> Result<Value> {
        let config: Value = serde_json::from_str(&task.config).map_err(Error::internal)?;
        match Kind::read(&task.kind, &config)? {
            Kind::AnonymousCleanup { max_age_days } => {
                let before = self.clock.now() - i64::from(max_age_days) * DAY_MS;
                Ok(json!({ "deleted": self.delete_old_guests(before).await? }))
            }
            Kind::EventRetention => Ok(json!({ "deleted": self.keep_outbox_bounded().await? })),
            Kind::AuditRetention => Ok(json!({ "deleted": self.purge_audit().await? })),
            Kind::BlockAction { block, action, input } => {
                let caller = self.task_caller(task).await?;
                let answer = self.call_action(&caller, &block, &action, input.to_string(), run_id).await?;
                serde_json::from_str(&answer).map_err(Error::internal)
            }
            Kind::EraseUser(erasure) => {
                let caller = self.task_caller(task).await?;
                self.erase_user(&caller, &erasure).await
            }
        }
    }

    /// A caller with the current rights of the task's maker.
    async fn task_caller(&self, task: &TaskRow) -> Result<Caller> {
        match self.rights_of_maker(&task.maker()).await?.caller() {
            Some(caller) => Ok(caller),
            None if !self.settings.require_auth => Ok(Caller::system()),
            None => Err(Error::new(
                Code::Forbidden,
                "The maker of this task, or the API key that made it, is no longer valid. Adopt the task to run it with your \
                rights.",
            )),
        }
    }
}
