//! The audit log: writes one row for each administrative act, in the transaction of the act. So an act that fails has no row.
//!
//! A row shows what the API shows, so values that the API hides do not get into it. In addition, URLs lose their query and their
//! user name and password, and configurations of blocks are shown by the names of their keys. `service/audit.rs` reads the log.

mod state;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use blockbase_auth::hash_token;
use blockbase_quota::network_of;
use blockbase_schema::time::{DAY_MS, MINUTE_MS};
use blockbase_schema::{Code, Error, Resource, Result, listed};
use blockbase_store::{AuditRow, Connection, ReadCost, Service};
use serde::Serialize;

use crate::App;
use crate::base::clock::Clock;
use crate::caller::Caller;
use crate::caller::origin::{Operator, Origin};
use state::{stored_state, without_address, without_person};

/// The maximum number of rows of each kind that one transaction changes when a user is deleted.
const FORGOTTEN_AT_ONCE: i64 = 100;
/// The number of rows that one query searches for the address of an erased person.
const SEARCHED_AT_ONCE: i64 = 200;

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
    address: Option<IpAddr>,
    request_id: Option<Arc<str>>,
    at: i64,
    clock: Clock,
}

/// `user:<id>`; `shell:<uid>`, or `shell` if the user of the operating system is unknown; `anonymous` for a request without a
/// credential; `service` for work without a request.
fn actor_of(caller: &Caller) -> String {
    // A key acts as its user, so every caller with a credential has a user.
    let user_id = caller.principal.actor().and_then(|actor| actor.user_id.as_deref());
    match (&caller.origin, user_id) {
        (Origin { operator: Some(Operator { uid: Some(uid) }), .. }, _) => format!("shell:{uid}"),
        (Origin { operator: Some(Operator { uid: None }), .. }, _) => "shell".to_owned(),
        (_, Some(user_id)) => user_actor(user_id),
        (Origin { request_id: None, .. }, None) if caller.basis.is_service() => "service".to_owned(),
        (_, None) => "anonymous".to_owned(),
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
            address: caller.origin.address.filter(|_| caller.origin.operator.is_none()),
            request_id: caller.origin.request_id.clone(),
            at: self.clock.now(),
            clock: self.clock.clone(),
        }
    }

    /// The writer of rows for a request without a caller: a sign-in.
    pub(crate) fn auditor_of(&self, origin: Origin) -> Auditor {
        self.auditor(&Caller::nobody().with_origin(origin))
    }

    /// Does what [`forget_user`] does, in several transactions. The caller of this function has checked that nothing refuses the
    /// deletion of the user.
    pub(crate) async fn forget_user_in_steps(&self, user_id: &str) -> Result<()> {
        loop {
            let user_id = user_id.to_owned();
            let has_rest = self
                .store
                .write_in_reserve(Service, move |connection| Box::pin(async move { forget_some(connection, &user_id).await }))
                .await?;
            if !has_rest {
                return Ok(());
            }
        }
    }

    /// Replaces an e-mail address wherever a state contains it, also inside other texts. This reads the whole log, in pages.
    pub(crate) async fn erase_address_from_audit(&self, email: &str) -> Result<()> {
        let mut after = String::new();
        loop {
            let (text, from) = (email.to_owned(), after);
            let page = self
                .store
                .read_as_service(ReadCost::Scan, move |connection| {
                    Box::pin(async move {
                        let Some(end) = connection.audit_page_end(&from, SEARCHED_AT_ONCE).await? else { return Ok(None) };
                        let found = !connection.audit_containing(&text, &from, &end).await?.is_empty();
                        Ok(Some((from, end, found)))
                    })
                })
                .await?;
            let Some((from, end, is_found)) = page else { return Ok(()) };
            after = end.clone();
            if is_found {
                let text = email.to_owned();
                self.store
                    .write_in_reserve(Service, move |connection| {
                        Box::pin(async move { replace_address(connection, &text, &from, &end).await })
                    })
                    .await?;
            }
        }
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
            address: self.address.map(|address| address.to_string()),
            action: action.name().to_owned(),
            resource: resource.name().to_owned(),
            target: Some(target.into_owned()),
            before,
            after,
            request_id: self.request_id.as_deref().map(str::to_owned),
            subject: about.map(str::to_owned),
            counted: None,
            times: 1,
        };
        Ok(connection.insert_audit(row).await?)
    }

    /// Counts a failed sign-in. `user_id` is the account with the address that was tried, if there is one.
    pub(crate) async fn count_failed_sign_in(&self, connection: &mut Connection, user_id: Option<&str>) -> Result<()> {
        // The account may have been deleted since the sign-in began. Then nothing about it comes into the log any more.
        // Without an account, this looks for one too, so that the answer does not show by its time whether there is one.
        let is_there = connection.keep_user(user_id.unwrap_or_default()).await?;
        Ok(connection.insert_audit(self.failed_sign_in(user_id.filter(|_| is_there))).await?)
    }

    /// The row of a failed sign-in. There is one row for each account, network and minute, with the first address of the network.
    /// The sign-ins with addresses that no account has are one row for each network and minute. So the number of rows does not
    /// grow with the addresses that somebody tries or has, and the log does not contain the e-mail addresses of strangers.
    fn failed_sign_in(&self, user_id: Option<&str>) -> AuditRow {
        let network = self.address.map(|address| network_of(address).to_string()).unwrap_or_default();
        let account = user_id.unwrap_or_default();
        let minute = self.at.div_euclid(MINUTE_MS);
        AuditRow {
            id: self.clock.id(self.at).to_string(),
            at: self.at,
            actor: "anonymous".to_owned(),
            credential: None,
            address: self.address.map(|address| address.to_string()),
            action: AuditAction::SignInFailed.name().to_owned(),
            resource: Resource::Users.name().to_owned(),
            target: user_id.map(str::to_owned),
            before: None,
            after: None,
            request_id: self.request_id.as_deref().map(str::to_owned),
            subject: user_id.map(str::to_owned),
            counted: Some(hash_token(&format!("failed sign-ins {minute} {network} {account}"))),
            times: 1,
        }
    }
}

/// The cause of the error that one transaction may not change all rows about a user.
#[derive(Debug)]
struct TooManyRows;

impl fmt::Display for TooManyRows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the audit log has too many rows about the user")
    }
}

impl std::error::Error for TooManyRows {}

/// Whether [`forget_user`] has refused a deletion, and [`App::forget_user_in_steps`] has to come first.
pub(crate) fn has_too_many_rows(error: &Error) -> bool {
    error.cause.as_deref().is_some_and(|cause| cause.is::<TooManyRows>())
}

/// Replaces the name, the image, the e-mail address and the network addresses of a user who is about to be deleted.
///
/// # Errors
/// `answer_too_large` if these are more rows than one transaction may change: see [`has_too_many_rows`].
pub(crate) async fn forget_user(connection: &mut Connection, user_id: &str) -> Result<()> {
    match forget_some(connection, user_id).await? {
        false => Ok(()),
        true => {
            let refused = Error::new(Code::AnswerTooLarge, "The audit log has too many rows about the user. Try again.");
            Err(Error { cause: Some(Box::new(TooManyRows)), ..refused })
        }
    }
}

/// Does this for some of the rows. Returns whether there may be more.
async fn forget_some(connection: &mut Connection, user_id: &str) -> Result<bool> {
    let is_page = |rows: u64| i64::try_from(rows).is_ok_and(|rows| rows == FORGOTTEN_AT_ONCE);
    let acts = connection.replace_audit_addresses(&user_actor(user_id), FORGOTTEN_AT_ONCE).await?;
    let failed = connection.replace_audit_counted(user_id, FORGOTTEN_AT_ONCE).await?;
    if is_page(acts) || is_page(failed) {
        return Ok(true);
    }
    let rows = connection.audit_about(user_id, FORGOTTEN_AT_ONCE).await?;
    let has_rest = is_page(rows.len() as u64);
    for row in rows {
        let (before, after) = (row.before.as_deref().map(without_person), row.after.as_deref().map(without_person));
        connection.forget_audit_states(&row.id, before, after).await?;
    }
    Ok(has_rest)
}

/// Replaces an e-mail address in the states of the rows with ids in `(from, up_to]`.
async fn replace_address(connection: &mut Connection, email: &str, from: &str, up_to: &str) -> Result<()> {
    for row in connection.audit_containing(email, from, up_to).await? {
        let without = |state: Option<String>| state.map(|state| without_address(&state, email));
        connection.set_audit_states(&row.id, without(row.before), without(row.after)).await?;
    }
    Ok(())
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
    fn failed_sign_ins_are_counted_by_account_network_and_minute() {
        let auditor = |network: &str, at: i64| Auditor {
            actor: "anonymous".to_owned(),
            credential: None,
            address: network.parse().ok(),
            request_id: None,
            at,
            clock: Clock::new(move || at),
        };
        let counted = |network: &str, at: i64, user_id: Option<&str>| {
            auditor(network, at).failed_sign_in(user_id).counted.expect("failed sign-ins are counted")
        };
        let first = counted("192.0.2.1", MINUTE_MS, Some("ann"));
        assert_eq!(counted("192.0.2.1", 2 * MINUTE_MS - 1, Some("ann")), first, "the same minute");
        let [one, two] = ["2001:db8::1", "2001:db8::2"].map(|address| counted(address, 0, None));
        assert_eq!(one, two, "one host may have all addresses of a /64");
        let others = [
            counted("192.0.2.1", 2 * MINUTE_MS, Some("ann")),
            counted("192.0.2.2", MINUTE_MS, Some("ann")),
            counted("192.0.2.1", MINUTE_MS, Some("bob")),
            counted("192.0.2.1", MINUTE_MS, None),
        ];
        let distinct: BTreeSet<&String> = others.iter().chain([&first]).collect();
        assert_eq!(distinct.len(), 5);
        let stranger = auditor("192.0.2.1", MINUTE_MS).failed_sign_in(None);
        assert_eq!((stranger.target, stranger.subject), (None, None));
    }
}
