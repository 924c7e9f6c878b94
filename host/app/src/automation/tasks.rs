//! Scheduled tasks: their definitions, their due times and their runs.

mod kind;
mod runner;
mod schedule;

use blockbase_query::{Action, Paging};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{Connection, Maker, Service, Suspension, TaskRow, TaskRunRow, Thing, ThingKind};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::App;
use crate::access::makers::keep_maker;
use crate::base::answer::{AnyObject, SuspensionAnswer, Timestamp, or_null};
use crate::base::stored::Place;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::records::read::page_json;
use crate::state::acts_later::{ActsLater, StoredThing, SuspensionCheck, suspension_checks};
use kind::Kind;
pub use kind::{ActionConfig, ErasureConfig, MADE as TASK_TYPES_MADE};
use schedule::next_run;

/// The maximum length of a name, in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// The maximum number of tasks, including those of the service.
const TASKS_MAX: i64 = 1000;
/// The maximum length of a configuration as JSON text, in bytes.
const CONFIG_BYTES_MAX: usize = 65_536;
/// The tasks that come with the service.
const EVENT_RETENTION: &str = "event-retention";
const ANONYMOUS_USER_CLEANUP: &str = "anonymous-user-cleanup";
const AUDIT_RETENTION: &str = "audit-retention";

/// Changes of a task. Members that are left out stay unchanged.
#[derive(Clone, Debug, Default)]
pub struct TaskChanges {
    pub enabled: Option<bool>,
    /// A cron expression of five fields, in UTC.
    pub schedule: Option<String>,
    pub config: Option<Value>,
}

/// The members of a new task.
#[derive(Clone, Debug)]
pub struct NewTask {
    pub name: String,
    pub kind: String,
    pub schedule: String,
    pub config: Value,
    pub enabled: bool,
}

/// A task, which the service runs on a schedule.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcTask", deny_unknown_fields)]
pub struct TaskAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    name: String,
    #[serde(rename = "type")]
    #[schemars(extend("enum" = kind::NAMES))]
    kind: String,
    enabled: bool,
    /// A cron expression of five fields, in UTC.
    schedule: String,
    #[schemars(with = "AnyObject")]
    config: Value,
    last_run_at: Option<Timestamp>,
    #[schemars(extend("enum" = or_null(&RUN_STATUSES)))]
    last_status: Option<String>,
    next_run_at: Option<Timestamp>,
    suspended: Option<SuspensionAnswer>,
}

impl From<&TaskRow> for TaskAnswer {
    fn from(task: &TaskRow) -> TaskAnswer {
        TaskAnswer {
            id: task.id.clone(),
            name: task.name.clone(),
            kind: task.kind.clone(),
            enabled: task.enabled,
            schedule: task.schedule.clone(),
            config: Value::Object(Place::new("svc_tasks", "config", &task.id).read(&task.config)),
            last_run_at: task.last_run_at.map(Timestamp),
            last_status: task.last_status.clone(),
            next_run_at: task.next_run_at.filter(|_| task.enabled).map(Timestamp),
            suspended: task.suspension.map(SuspensionAnswer::from),
        }
    }
}

impl TaskAnswer {
    /// The task in the audit log. Of the input of a block's action, it shows only the names of the keys.
    fn audited(task: &TaskRow) -> TaskAnswer {
        let mut answer = TaskAnswer::from(task);
        if let Some(input) = answer.config.get_mut("input") {
            *input = input.as_object().map(|input| input.keys().cloned().collect()).unwrap_or_default();
        }
        answer
    }
}

/// The states of a run, and of the last run of a task.
const RUN_STATUSES: [&str; 3] = ["running", "succeeded", "failed"];

/// A run of a task.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcTaskRun", deny_unknown_fields)]
pub struct TaskRunAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    #[schemars(extend("format" = "uuid"))]
    task_id: String,
    #[schemars(extend("enum" = ["schedule", "manual"]))]
    trigger: String,
    #[schemars(extend("enum" = RUN_STATUSES))]
    status: String,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
    /// The result of the run; null if it did not succeed.
    result: Value,
    error: Option<String>,
}

impl From<&TaskRunRow> for TaskRunAnswer {
    fn from(run: &TaskRunRow) -> TaskRunAnswer {
        TaskRunAnswer {
            id: run.id.clone(),
            task_id: run.task_id.clone(),
            trigger: run.trigger.clone(),
            status: run.status.clone(),
            started_at: Timestamp(run.started_at),
            finished_at: run.finished_at.map(Timestamp),
            result: result_of(run),
            error: run.error.clone(),
        }
    }
}

/// The result of a run. Null if the run did not succeed, or if the caller does not get the result.
fn result_of(run: &TaskRunRow) -> Value {
    run.result.as_deref().map(|result| Place::new("svc_task_runs", "result", &run.id).read(result)).unwrap_or_default()
}

fn check_name(name: &str) -> Result<()> {
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || "_-".contains(character))
        && name.parse::<uuid::Uuid>().is_err();
    if [EVENT_RETENTION, ANONYMOUS_USER_CLEANUP, AUDIT_RETENTION].contains(&name) {
        let message = format!("`{name}` is the name of a task that comes with the service.");
        return Err(Error::new(Code::UniqueViolation, message).with_field("name"));
    }
    match fits {
        true => Ok(()),
        false => Err(Error::new(
            Code::InvalidValue,
            format!("`name` has at most {NAME_CHARS_MAX} lowercase letters, digits, `_` and `-`, and begins with a letter."),
        )
        .with_field("name")),
    }
}

impl StoredThing for TaskRow {
    fn id(&self) -> &str {
        &self.id
    }

    fn maker(&self) -> Maker {
        TaskRow::maker(self)
    }

    fn suspension(&self) -> Option<Suspension> {
        self.suspension
    }

    fn needs(&self, app: &App, caller: &Caller) -> Result<()> {
        app.may_act_on_task(caller, self)
    }
}

/// Tasks as a kind of things that act later.
pub(crate) struct MadeTasks;

impl ActsLater for MadeTasks {
    fn kind(&self) -> ThingKind {
        ThingKind::Task
    }

    fn list<'a>(&'a self, connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<SuspensionCheck>>> {
        Box::pin(async move { Ok(suspension_checks(connection.tasks().await?)) })
    }

    fn carried<'a>(
        &'a self,
        app: &'a App,
        connection: &'a mut Connection,
        caller: &'a Caller,
        id: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match connection.task(id).await? {
                Some(task) => app.require_task(connection, caller, &task).await,
                None => Ok(()),
            }
        })
    }

    fn adopted<'a>(&'a self, connection: &'a mut Connection, id: &'a str) -> BoxFuture<'a, Result<Vec<Thing>>> {
        Box::pin(async move {
            let row = connection.held_task(id).await?.ok_or_else(|| Error::not_found("task"))?;
            made_by_somebody(&row)?;
            Ok(Vec::new())
        })
    }
}

/// The kind of a task's work. `None` if its stored configuration cannot be read.
fn kind_of(task: &TaskRow) -> Option<Kind> {
    let config: Value = Place::new("svc_tasks", "config", &task.id).found(&task.config)?;
    Kind::read(&task.kind, &config).ok()
}

impl App {
    pub async fn list_tasks(&self, caller: &Caller) -> Result<Vec<TaskAnswer>> {
        caller.require(Resource::Tasks, Action::Read)?;
        self.settle_rights_shown(caller).await;
        let tasks = self.scan(caller, |connection| Box::pin(async move { Ok(connection.tasks().await?) })).await?;
        Ok(tasks.iter().map(|task| self.answer_to(caller, task)).collect())
    }

    /// A task by its id or its name.
    pub async fn task(&self, caller: &Caller, id_or_name: &str) -> Result<TaskAnswer> {
        caller.require(Resource::Tasks, Action::Read)?;
        self.shown_task(caller, id_or_name).await
    }

    async fn shown_task(&self, caller: &Caller, id_or_name: &str) -> Result<TaskAnswer> {
        let mut task = self.find_task(caller, id_or_name).await?;
        if self.settle_rights_shown(caller).await {
            task = self.find_task(caller, &task.id).await?;
        }
        Ok(self.answer_to(caller, &task))
    }

    /// The task with the members that the caller may see. The input of a block's action is shown only to callers who may call the
    /// action.
    fn answer_to(&self, caller: &Caller, task: &TaskRow) -> TaskAnswer {
        let mut answer = TaskAnswer::from(task);
        if self.may_act_on_task(caller, task).is_err()
            && let Some(input) = answer.config.get_mut("input")
        {
            *input = Value::Null;
        }
        answer
    }

    async fn find_task(&self, caller: &Caller, id_or_name: &str) -> Result<TaskRow> {
        let key = id_or_name.to_owned();
        let found = self.look_up(caller, move |connection| Box::pin(async move { Ok(connection.task(&key).await?) })).await?;
        found.ok_or_else(|| Error::not_found("task"))
    }

    /// Creates a task that calls a block's action or erases a user. Each run has the rights that the maker has at that time.
    ///
    /// # Errors
    /// `forbidden` if the caller lacks the rights for the task's work, or rights that the user to erase has. `unique_violation`
    /// if the name is taken.
    pub async fn create_task(&self, caller: &Caller, new: NewTask) -> Result<TaskAnswer> {
        caller.require(Resource::Tasks, Action::Create)?;
        check_name(&new.name)?;
        if !kind::MADE.contains(&new.kind.as_str()) {
            let message =
                format!("`type`: only {} can be created; the other types come with the service.", kind::MADE.join(" and "));
            return Err(Error::new(Code::InvalidValue, message).with_field("type"));
        }
        let config = self.task_config(caller, &new.kind, &new.config)?;
        let now = self.clock.now();
        let next = next_run(&new.schedule, now)?;
        let maker = caller.maker();
        let (user_id, api_key_id) = (maker.user_id.clone(), maker.api_key_id.clone());
        let task = TaskRow {
            id: self.clock.id(now).to_string(),
            name: new.name,
            kind: new.kind,
            enabled: new.enabled,
            schedule: new.schedule,
            config: config.to_string(),
            user_id,
            api_key_id,
            last_run_at: None,
            last_status: None,
            next_run_at: Some(next),
            created_at: now,
            updated_at: now,
            suspension: None,
        };
        let answer = TaskAnswer::from(&task);
        let (app, acting, auditor) = (self.itself()?, caller.clone(), self.auditor(caller));
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    keep_maker(connection, &maker).await?;
                    app.require_rights_of_erased(connection, &acting, &task).await?;
                    if connection.count_tasks().await? >= TASKS_MAX {
                        return Err(Error::new(
                            Code::Conflict,
                            format!("There are already {TASKS_MAX} tasks, which is the maximum."),
                        ));
                    }
                    if !connection.insert_task(&task).await? {
                        let message = format!("A task with the name `{}` already exists.", task.name);
                        return Err(Error::new(Code::UniqueViolation, message).with_field("name"));
                    }
                    let act = Act::new(AuditAction::Create, Resource::Tasks, &task.id).after(&TaskAnswer::audited(&task));
                    auditor.record(connection, act).await
                })
            })
            .await?;
        Ok(answer)
    }

    /// Enables, disables or changes a task. A caller who changes the action of a task becomes its maker, so later runs have the
    /// caller's rights.
    ///
    /// # Errors
    /// `forbidden` in three cases: the caller may not call the task's old or new action, the old or new user to erase has rights that
    /// the caller lacks, or the caller changes how guests are deleted and may not delete users.
    pub async fn update_task(&self, caller: &Caller, id_or_name: &str, changes: TaskChanges) -> Result<TaskAnswer> {
        caller.require(Resource::Tasks, Action::Update)?;
        let known = self.find_task(caller, id_or_name).await?;
        self.may_act_on_task(caller, &known)?;
        let config = changes.config.as_ref().map(|config| self.task_config(caller, &known.kind, config)).transpose()?;
        let now = self.clock.now();
        if let Some(schedule) = &changes.schedule {
            next_run(schedule, now)?;
        }
        let maker = match &config {
            Some(_) if kind::MADE.contains(&known.kind.as_str()) => Some(caller.maker()),
            _ => None,
        };
        let (app, acting, auditor) = (self.itself()?, caller.clone(), self.auditor(caller));
        let task = self
            .store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    if let Some(maker) = &maker {
                        keep_maker(connection, maker).await?;
                    }
                    let mut task = connection.held_task(&known.id).await?.ok_or_else(|| Error::not_found("task"))?;
                    // Somebody else may have changed the task's action meanwhile.
                    app.require_task(connection, &acting, &task).await?;
                    let before = TaskAnswer::audited(&task);
                    let was_enabled = task.enabled;
                    task.enabled = changes.enabled.unwrap_or(task.enabled);
                    if let Some(config) = config {
                        task.config = config.to_string();
                        app.require_rights_of_erased(connection, &acting, &task).await?;
                    }
                    if let Some(maker) = maker {
                        connection.set_maker(ThingKind::Task, &task.id, &maker).await?;
                        (task.user_id, task.api_key_id, task.suspension) = (maker.user_id, maker.api_key_id, None);
                    }
                    let moves = changes.schedule.is_some() || (task.enabled && !was_enabled);
                    task.schedule = changes.schedule.unwrap_or(task.schedule);
                    if moves || task.next_run_at.is_none() {
                        task.next_run_at = Some(next_run(&task.schedule, now)?);
                    }
                    task.updated_at = now;
                    connection.update_task(&task).await?;
                    let act = Act::new(AuditAction::Update, Resource::Tasks, &task.id).before(&before);
                    auditor.record(connection, act.after(&TaskAnswer::audited(&task))).await?;
                    Ok(task)
                })
            })
            .await?;
        Ok(TaskAnswer::from(&task))
    }

    /// Deletes a task that a user created, with its runs.
    ///
    /// # Errors
    /// `forbidden` if the caller may not call its action, or lacks rights that the user to erase has. `conflict` for a task of the
    /// service, which can only be disabled.
    pub async fn delete_task(&self, caller: &Caller, id_or_name: &str) -> Result<()> {
        caller.require(Resource::Tasks, Action::Delete)?;
        let task = self.find_task(caller, id_or_name).await?;
        if !kind::MADE.contains(&task.kind.as_str()) {
            return Err(Error::new(Code::Conflict, "This task comes with the service. Disable it instead."));
        }
        let (app, auditor, caller) = (self.itself()?, self.auditor(caller), caller.clone());
        self.store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    let task = connection.held_task(&task.id).await?.ok_or_else(|| Error::not_found("task"))?;
                    app.require_task(connection, &caller, &task).await?;
                    if !connection.delete_task(&task.id).await? {
                        return Err(Error::not_found("task"));
                    }
                    let act = Act::new(AuditAction::Delete, Resource::Tasks, &task.id).before(&TaskAnswer::audited(&task));
                    auditor.record(connection, act).await
                })
            })
            .await
    }

    /// Lists the runs of a task, the newest first: `{ data, pagination }`. The result of a block's action is shown only to
    /// callers who may call it.
    pub async fn task_runs(&self, caller: &Caller, id_or_name: &str, paging: Paging) -> Result<String> {
        caller.require(Resource::Tasks, Action::Read)?;
        let task = self.find_task(caller, id_or_name).await?;
        let shows_outcome = self.may_act_on_task(caller, &task).is_ok();
        let (limit, offset) = (paging.limit as i64, paging.offset as i64);
        let (mut runs, total) = self
            .scan(caller, move |connection| Box::pin(async move { Ok(connection.task_runs(&task.id, limit, offset).await?) }))
            .await?;
        if !shows_outcome {
            runs.iter_mut().for_each(|run| (run.result, run.error) = (None, None));
        }
        Ok(page_json(&runs.iter().map(TaskRunAnswer::from).collect::<Vec<_>>(), paging, total))
    }

    /// Adopts the task with this id or name.
    ///
    /// # Errors
    /// `not_found`. `forbidden` if the task needs rights that the caller lacks. `conflict` if it is a task of the service.
    pub async fn adopt_task(&self, caller: &Caller, id_or_name: &str) -> Result<TaskAnswer> {
        caller.require(Resource::Tasks, Action::Update)?;
        let id = self.find_task(caller, id_or_name).await?.id;
        self.adopt(caller, ThingKind::Task, &id).await?;
        self.shown_task(caller, &id).await
    }

    /// Requires the rights that a task needs: those to call its action, or every right if its configuration cannot be read. The
    /// service's own tasks need no rights besides those on `tasks`.
    ///
    /// # Errors
    /// `forbidden` if the caller may not call the action.
    pub(crate) fn may_act_on_task(&self, caller: &Caller, task: &TaskRow) -> Result<()> {
        if !kind::MADE.contains(&task.kind.as_str()) {
            return Ok(());
        }
        let Some(kind) = kind_of(task) else {
            // The stored task is damaged, or a newer server wrote it. Its effect is unknown, so the caller needs every right.
            return caller.require("*", Action::Manage);
        };
        match kind {
            Kind::BlockAction { block, action, .. } if !self.may_call_declared(caller, &block, &action) => {
                Err(Error::new(Code::Forbidden, "The task calls an action that you may not call."))
            }
            Kind::EraseUser(_) => self.require_erasure(caller),
            Kind::BlockAction { .. } | Kind::AnonymousCleanup { .. } | Kind::EventRetention | Kind::AuditRetention => Ok(()),
        }
    }

    /// Requires the same as [`App::may_act_on_task`], and also every right that the user to erase has. A run has the rights of
    /// the task's maker, so without this check the caller could use the rights of the maker.
    ///
    /// # Errors
    /// `forbidden`.
    pub(crate) async fn require_task(&self, connection: &mut Connection, caller: &Caller, task: &TaskRow) -> Result<()> {
        self.may_act_on_task(caller, task)?;
        self.require_rights_of_erased(connection, caller, task).await
    }

    /// Requires the rights of the user whom the task erases. A deleted user has none.
    async fn require_rights_of_erased(&self, connection: &mut Connection, caller: &Caller, task: &TaskRow) -> Result<()> {
        if !kind::MADE.contains(&task.kind.as_str()) {
            return Ok(());
        }
        let Some(Kind::EraseUser(erasure)) = kind_of(task) else { return Ok(()) };
        match connection.user(&erasure.user_id).await? {
            Some(user) => self.require_rights_of_user(connection, caller, &user).await,
            None => Ok(()),
        }
    }

    /// Creates the service's own tasks that do not exist yet.
    pub(crate) async fn seed_tasks(&self) -> Result<()> {
        let now = self.clock.now();
        let mut seeded = vec![(EVENT_RETENTION, Kind::EventRetention, "30 3 * * *", true)];
        if self.settings.anonymous_auth {
            let cleanup = Kind::AnonymousCleanup { max_age_days: kind::MAX_AGE_DAYS_DEFAULT };
            seeded.push((ANONYMOUS_USER_CLEANUP, cleanup, "0 3 * * *", true));
        }
        seeded.push((AUDIT_RETENTION, Kind::AuditRetention, "45 3 * * *", true));
        let mut tasks = Vec::with_capacity(seeded.len());
        for (name, kind, schedule, enabled) in seeded {
            tasks.push(TaskRow {
                id: self.clock.id(now).to_string(),
                name: name.to_owned(),
                kind: kind.name().to_owned(),
                enabled,
                schedule: schedule.to_owned(),
                config: kind.config().to_string(),
                user_id: None,
                api_key_id: None,
                last_run_at: None,
                last_status: None,
                next_run_at: Some(next_run(schedule, now)?),
                created_at: now,
                updated_at: now,
                suspension: None,
            });
        }
        self.store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move {
                    for task in &tasks {
                        connection.insert_task(task).await?;
                    }
                    Ok(())
                })
            })
            .await
    }

    /// Checks a configuration, adds its defaults, and requires the caller's rights for the task's work.
    fn task_config(&self, caller: &Caller, kind: &str, config: &Value) -> Result<Value> {
        let kind = Kind::read(kind, config)?;
        if let Kind::BlockAction { block, action, input } = &kind {
            let (installed, place) = self.callable(caller, block, action)?;
            let declared = &installed.manifest.actions[place];
            self.runtime()?.validate_input(&installed, declared, input)?;
        }
        match &kind {
            Kind::EraseUser(_) => self.require_erasure(caller)?,
            Kind::AnonymousCleanup { .. } => may_delete_guests(caller)?,
            Kind::BlockAction { .. } | Kind::EventRetention | Kind::AuditRetention => {}
        }
        let config = kind.config();
        match config.to_string().len() <= CONFIG_BYTES_MAX {
            true => Ok(config),
            false => {
                let message = format!("`config` is larger than {CONFIG_BYTES_MAX} bytes.");
                Err(Error::new(Code::InvalidValue, message).with_field("config"))
            }
        }
    }
}

/// Requires the right to delete users. It applies to callers who make a task delete guests, or change which guests it deletes.
///
/// # Errors
/// `forbidden`.
fn may_delete_guests(caller: &Caller) -> Result<()> {
    caller.require(Resource::Users, Action::Delete).map_err(|error| error.within("The task deletes guests"))
}

/// Checks that a user created the task.
///
/// # Errors
/// `conflict` for a task of the service.
fn made_by_somebody(task: &TaskRow) -> Result<()> {
    match kind::MADE.contains(&task.kind.as_str()) {
        true => Ok(()),
        false => Err(Error::new(Code::Conflict, "This task belongs to the service and cannot be adopted.")),
    }
}
