//! The audit log: writes one row for each administrative act, in the transaction of the act. So an act that fails has no row.
//!
//! A row shows what the API shows, so values that the API hides do not get into it. In addition, URLs lose their query and their
//! user name and password, and configurations of blocks are shown by the names of their keys. `service/audit.rs` reads the log.

mod state;

use std::borrow::Cow;
use std::sync::Arc;

use blockbase_auth::hash_token;
use blockbase_schema::time::{DAY_MS, MINUTE_MS};
use blockbase_schema::{Resource, Result, listed};
use blockbase_store::{AuditRow, Connection};
use serde::Serialize;

use crate::App;
use crate::base::clock::Clock;
use crate::caller::Caller;
use crate::caller::origin::{Operator, Origin};
use state::{stored_state, without_person};

/// Replaces the texts about a deleted user.
pub(crate) const REPLACED: &str = "deleted";
/// The maximum length of a target, in characters. Only the address of a failed sign-in can be longer.
const TARGET_CHARS_MAX: usize = 400;
/// The number of rows about a deleted user that are read at once.
const ROWS_AT_ONCE: i64 = 100;

listed! {
    /// The kind of an act.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum AuditAction {
        Create,
        Update,
        Delete,
        Adopt,
        AddField,
        AlterField,
        DropField,
        CreateRelationship,
        DeleteRelationship,
        Invite,
        Ban,
        Unban,
        GiveRole,
        TakeRole,
        MakePasswordLink,
        SetPassword,
        Claim,
        EndSession,
        EndSessions,
        Erase,
        SignIn,
        SignInFailed,
        Install,
        Upgrade,
        RollBack,
        Enable,
        Disable,
        Configure,
        SetSecret,
        DeleteSecret,
        Uninstall,
        Replay,
        Subscribe,
        Unsubscribe,
        Retry,
        RotateSecret,
        Test,
        Run,
    }
}

impl AuditAction {
    /// The name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            AuditAction::Create => "create",
            AuditAction::Update => "update",
            AuditAction::Delete => "delete",
            AuditAction::Adopt => "adopt",
            AuditAction::AddField => "add_field",
            AuditAction::AlterField => "alter_field",
            AuditAction::DropField => "drop_field",
            AuditAction::CreateRelationship => "create_relationship",
            AuditAction::DeleteRelationship => "delete_relationship",
            AuditAction::Invite => "invite",
            AuditAction::Ban => "ban",
            AuditAction::Unban => "unban",
            AuditAction::GiveRole => "give_role",
            AuditAction::TakeRole => "take_role",
            AuditAction::MakePasswordLink => "make_password_link",
            AuditAction::SetPassword => "set_password",
            AuditAction::Claim => "claim",
            AuditAction::EndSession => "end_session",
            AuditAction::EndSessions => "end_sessions",
            AuditAction::Erase => "erase",
            AuditAction::SignIn => "sign_in",
            AuditAction::SignInFailed => "sign_in_failed",
            AuditAction::Install => "install",
            AuditAction::Upgrade => "upgrade",
            AuditAction::RollBack => "roll_back",
            AuditAction::Enable => "enable",
            AuditAction::Disable => "disable",
            AuditAction::Configure => "configure",
            AuditAction::SetSecret => "set_secret",
            AuditAction::DeleteSecret => "delete_secret",
            AuditAction::Uninstall => "uninstall",
            AuditAction::Replay => "replay",
            AuditAction::Subscribe => "subscribe",
            AuditAction::Unsubscribe => "unsubscribe",
            AuditAction::Retry => "retry",
            AuditAction::RotateSecret => "rotate_secret",
            AuditAction::Test => "test",
            AuditAction::Run => "run",
        }
    }
}

/// An administrative act, for its row.
#[derive(Clone, Debug)]
pub(crate) struct Act<'a> {
    action: AuditAction,
    resource: Resource,
    target: Cow<'a, str>,
    before: Option<String>,
    after: Option<String>,
    about: Option<&'a str>,
}

impl<'a> Act<'a> {
    /// `target` is the id or the name of the thing in the routes of the resource.
    pub(crate) fn new(action: AuditAction, resource: Resource, target: impl Into<Cow<'a, str>>) -> Act<'a> {
        Act { action, resource, target: target.into(), before: None, after: None, about: None }
    }

    /// The act on an account. The states before and after it show the user's name and address, so the deletion of the user
    /// replaces them.
    pub(crate) fn on_user(action: AuditAction, user_id: &'a str) -> Act<'a> {
        Act { about: Some(user_id), ..Act::new(action, Resource::Users, user_id) }
    }

    /// The state before the act, usually the answer that shows the thing. It has to become a JSON object, or null.
    pub(crate) fn before(self, state: &impl Serialize) -> Act<'a> {
        Act { before: stored_state(state), ..self }
    }

    /// The state after the act.
    pub(crate) fn after(self, state: &impl Serialize) -> Act<'a> {
        Act { after: stored_state(state), ..self }
    }
}

/// Writes the rows of one call. All of them have the actor, the request and the instant of the call.
#[derive(Clone)]
pub(crate) struct Auditor {
    actor: String,
    credential: Option<String>,
    address: Option<String>,
    request_id: Option<Arc<str>>,
    at: i64,
    clock: Clock,
}

/// `user:<id>`, `shell:<uid>`, `anonymous` for a request without a credential, or `service` for work without a request.
fn actor_of(caller: &Caller) -> String {
    let user_id = caller.principal.actor().and_then(|actor| actor.user_id.as_deref());
    match (&caller.origin, user_id, caller.actor_id()) {
        (Origin { operator: Some(Operator { uid: Some(uid) }), .. }, ..) => format!("shell:{uid}"),
        (Origin { operator: Some(Operator { uid: None }), .. }, ..) => "shell".to_owned(),
        (_, Some(user_id), _) => user_actor(user_id),
        (_, None, Some(key_id)) => format!("api_key:{key_id}"),
        (Origin { request_id: None, .. }, None, None) if caller.basis.is_service() => "service".to_owned(),
        (_, None, None) => "anonymous".to_owned(),
    }
}

fn user_actor(user_id: &str) -> String {
    format!("user:{user_id}")
}

impl App {
    /// The writer of rows for a call that `caller` makes now.
    pub(crate) fn auditor(&self, caller: &Caller) -> Auditor {
        let session = caller.identity().and_then(|identity| identity.session()).filter(|session| !session.id.is_empty());
        let key_id = caller.principal.actor().and_then(|actor| actor.api_key_id.as_deref());
        let credential = match (key_id, session) {
            (Some(id), _) => Some(format!("api_key:{id}")),
            (None, Some(session)) => Some(format!("session:{}", session.id)),
            (None, None) => None,
        };
        Auditor {
            actor: actor_of(caller),
            credential,
            address: caller.origin.address.map(|address| address.to_string()).filter(|_| caller.origin.operator.is_none()),
            request_id: caller.origin.request_id.clone(),
            at: self.clock.now(),
            clock: self.clock.clone(),
        }
    }

    /// The writer of rows for a request without a caller: a sign-in.
    pub(crate) fn auditor_of(&self, origin: Origin) -> Auditor {
        self.auditor(&Caller::nobody().with_origin(origin))
    }

    /// Deletes the rows that are older than `SVC_AUDIT_RETENTION_DAYS`. Returns their number.
    pub(crate) async fn purge_audit(&self) -> Result<u64> {
        match i64::from(self.settings.audit_retention_days) {
            0 => Ok(0),
            days => self.purge(move |connection, now, most| Box::pin(connection.purge_audit(now - days * DAY_MS, most))).await,
        }
    }
}

impl Auditor {
    /// The same writer for the session that begins.
    pub(crate) fn of_session(self, session_id: &str) -> Auditor {
        Auditor { credential: Some(format!("session:{session_id}")), ..self }
    }

    /// Writes the row of an act in its transaction.
    pub(crate) async fn record(&self, connection: &mut Connection, act: Act<'_>) -> Result<()> {
        let Act { action, resource, target, before, after, about } = act;
        let row = AuditRow {
            id: self.clock.id(self.at).to_string(),
            at: self.at,
            actor: self.actor.clone(),
            credential: self.credential.clone(),
            address: self.address.clone(),
            action: action.name().to_owned(),
            resource: resource.name().to_owned(),
            target: Some(stored_target(&target)),
            before,
            after,
            request_id: self.request_id.as_deref().map(str::to_owned),
            subject: about.map(str::to_owned),
            counted: None,
            times: 1,
        };
        Ok(connection.insert_audit(row).await?)
    }

    /// Counts a failed sign-in. There is one row for each account, network address and minute. `user_id` is the account with the
    /// address `email`, if there is one.
    pub(crate) async fn count_failed_sign_in(
        &self,
        connection: &mut Connection,
        email: &str,
        user_id: Option<&str>,
    ) -> Result<()> {
        let address = self.address.as_deref().unwrap_or_default();
        let minute = self.at.div_euclid(MINUTE_MS);
        let row = AuditRow {
            id: self.clock.id(self.at).to_string(),
            at: self.at,
            actor: "anonymous".to_owned(),
            credential: None,
            address: self.address.clone(),
            action: AuditAction::SignInFailed.name().to_owned(),
            resource: Resource::Users.name().to_owned(),
            target: Some(stored_target(user_id.unwrap_or(email))),
            before: None,
            after: None,
            request_id: self.request_id.as_deref().map(str::to_owned),
            subject: Some(user_id.map_or_else(|| subject_of(email), str::to_owned)),
            counted: Some(hash_token(&format!("failed sign-ins {minute} {address} {email}"))),
            times: 1,
        };
        Ok(connection.insert_audit(row).await?)
    }
}

/// The subject of failed sign-ins without an account.
fn subject_of(email: &str) -> String {
    hash_token(email)
}

/// Postgres cannot store NUL in text, and its indexes have no room for long texts.
fn stored_target(target: &str) -> String {
    target.replace('\0', "\u{fffd}").chars().take(TARGET_CHARS_MAX).collect()
}

/// Replaces the name, the e-mail address and the network addresses of a user who is about to be deleted.
pub(crate) async fn forget_user(connection: &mut Connection, user_id: &str, email: &str) -> Result<()> {
    connection.replace_audit_addresses(&user_actor(user_id), REPLACED).await?;
    connection.replace_audit_counted(user_id, REPLACED).await?;
    connection.replace_audit_counted(&subject_of(email), REPLACED).await?;
    let mut last = String::new();
    loop {
        let rows = connection.audit_about(user_id, &last, ROWS_AT_ONCE).await?;
        let Some(end) = rows.last() else { return Ok(()) };
        last.clone_from(&end.id);
        for row in rows {
            let (before, after) = (row.before.as_deref().map(without_person), row.after.as_deref().map(without_person));
            connection.set_audit_states(&row.id, before, after).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use blockbase_schema::table_rows;

    use super::*;

    #[test]
    fn each_name_is_one_action() {
        let names: BTreeSet<&str> = AuditAction::ALL.iter().map(|action| action.name()).collect();
        assert_eq!(names.len(), AuditAction::ALL.len());
    }

    #[test]
    fn the_documentation_lists_every_action() {
        let rows = table_rows(include_str!("../../../../docs/security.md"), "| action | resource | the act |");
        let name = |row: &&str| row.split('`').nth(1).expect("a name").to_owned();
        let documented: Vec<String> = rows.iter().map(name).collect();
        let written: Vec<&str> = AuditAction::ALL.iter().map(|action| action.name()).collect();
        assert_eq!(documented, written, "the table of actions in docs/security.md");
    }

    #[test]
    fn targets_fit_the_database() {
        assert_eq!(stored_target("a\0b"), "a\u{fffd}b");
        assert_eq!(stored_target(&"é".repeat(1000)).chars().count(), TARGET_CHARS_MAX);
    }
}
