//! Reads the audit log. `outbox/audit.rs` writes it.

use blockbase_query::{Action, Paging};
use blockbase_schema::{Error, Resource, Result, enumerated};
use blockbase_store::{AuditFilter, AuditRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::App;
use crate::accounts::users::access_to_whole;
use crate::base::answer::{AnyObject, Timestamp};
use crate::base::json_texts::replace_texts;
use crate::caller::Caller;
use crate::outbox::audit::AuditAction;
use crate::records::read::page_json;

/// The members of states whose values are shown only to callers who may read users.
const HIDDEN_MEMBERS: [&str; 3] = ["email", "ipAddress", "userAgent"];
/// Replaces these values for other callers.
const HIDDEN: &str = "hidden";

/// The requested entries of the audit log.
#[derive(Clone, Debug, Default)]
pub struct AuditRequest {
    pub actor: Option<String>,
    pub action: Option<String>,
    pub resource: Option<String>,
    pub target: Option<String>,
    /// The first instant, in milliseconds since the epoch.
    pub since: Option<i64>,
    /// The first instant after the period.
    pub until: Option<i64>,
}

/// An administrative act, or the failed sign-ins to one account from one address within a minute.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcAuditEntry", deny_unknown_fields)]
pub struct AuditEntryAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    at: Timestamp,
    /// `user:<id>`; `shell:<uid>` for a command on the machine of the server, with the user of the operating system; `anonymous`
    /// for a request without a credential; `service` for the server itself.
    actor: String,
    /// `session:<id>` or `api_key:<id>`; null if there was none.
    credential: Option<String>,
    /// The client's network address; null if there was none, and for callers who may not read all users.
    address: Option<String>,
    #[schemars(extend("enum" = action_names()))]
    action: String,
    #[schemars(extend("enum" = resource_names()))]
    resource: String,
    /// The id or the name of the thing. For a failed sign-in the user's id, or the e-mail address if no account has it.
    target: Option<String>,
    /// What the act changed, as it was before; null if there was nothing. `cut` names members that were too large.
    #[schemars(with = "Option<AnyObject>")]
    before: Option<Box<RawValue>>,
    /// The same after the act. For failed sign-ins it has `failures`, their number.
    #[schemars(with = "Option<AnyObject>")]
    after: Option<Box<RawValue>>,
    request_id: Option<String>,
}

fn action_names() -> Vec<&'static str> {
    AuditAction::ALL.iter().map(|action| action.name()).collect()
}

fn resource_names() -> Vec<&'static str> {
    Resource::ALL.iter().map(|resource| resource.name()).collect()
}

/// Whether a target is an e-mail address. Ids and names have no `@`.
fn is_address(target: &str) -> bool {
    target.contains('@')
}

impl AuditEntryAnswer {
    /// `shows_people` says whether the caller sees addresses.
    fn of(row: AuditRow, shows_people: bool) -> AuditEntryAnswer {
        let is_counted = row.counted.is_some();
        let state = |text: Option<String>| {
            let text = match shows_people {
                true => text?,
                false => replace_texts(&text?, |text| HIDDEN_MEMBERS.contains(&text.member).then(|| HIDDEN.to_owned())),
            };
            RawValue::from_string(text).ok()
        };
        let after = if is_counted { Some(json!({ "failures": row.times }).to_string()) } else { row.after };
        AuditEntryAnswer {
            id: row.id,
            at: Timestamp(row.at),
            actor: row.actor,
            credential: row.credential,
            address: row.address.filter(|_| shows_people),
            action: row.action,
            resource: row.resource,
            target: row.target.filter(|target| shows_people || !is_address(target)),
            before: state(row.before),
            after: state(after),
            request_id: row.request_id,
        }
    }
}

/// # Errors
/// `invalid_request` for a name that is not in the list.
fn check_named(parameter: &str, given: Option<&String>, known: &[&str]) -> Result<()> {
    match given.filter(|given| !known.contains(&given.as_str())) {
        None => Ok(()),
        Some(given) => {
            let names = enumerated(known, "or");
            Err(Error::invalid_request(format!("`{parameter}` takes {names}, not {given:?}.")))
        }
    }
}

impl App {
    /// A page of the audit log as `{ data, pagination }`, the newest entry first. Callers who may not read all users with all their
    /// members do not see network addresses and e-mail addresses.
    ///
    /// # Errors
    /// `forbidden` without read on `settings`; `invalid_request` for an unknown action or resource.
    pub async fn audit_log(&self, caller: &Caller, request: AuditRequest, paging: Paging) -> Result<String> {
        caller.require(Resource::Settings, Action::Read)?;
        let AuditRequest { actor, action, resource, target, since, until } = request;
        check_named("action", action.as_ref(), &action_names())?;
        check_named("resource", resource.as_ref(), &resource_names())?;
        // A caller without the right to read users gets an error here.
        let shows_people = access_to_whole(caller).ok().flatten().is_some_and(|access| access.only().is_none());
        if !shows_people && target.as_deref().is_some_and(is_address) {
            // Otherwise the caller could find out which addresses were tried.
            return Ok(page_json(&[] as &[AuditEntryAnswer], paging, 0));
        }
        let filter = AuditFilter { actor, action, resource, target, since, until };
        let bound = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let (limit, offset) = (bound(paging.limit), bound(paging.offset));
        let (rows, total) = self
            .scan(caller, move |connection| Box::pin(async move { Ok(connection.audit(&filter, limit, offset).await?) }))
            .await?;
        let entries: Vec<_> = rows.into_iter().map(|row| AuditEntryAnswer::of(row, shows_people)).collect();
        Ok(page_json(&entries, paging, total))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn row() -> AuditRow {
        AuditRow {
            id: "i".to_owned(),
            at: 0,
            actor: "user:u".to_owned(),
            credential: None,
            address: Some("203.0.113.1".to_owned()),
            action: "ban".to_owned(),
            resource: "users".to_owned(),
            target: Some("u".to_owned()),
            before: Some(r#"{"email":"a@x.y","n":1.10,"in":{"ipAddress":"203.0.113.1"}}"#.to_owned()),
            after: None,
            request_id: None,
            subject: None,
            counted: None,
            times: 1,
        }
    }

    #[test]
    fn addresses_are_shown_only_to_callers_who_may_read_users() {
        let shown = AuditEntryAnswer::of(row(), true);
        assert_eq!(shown.address.as_deref(), Some("203.0.113.1"));
        assert_eq!(shown.before.as_deref().map(RawValue::get), row().before.as_deref());
        let hidden = AuditEntryAnswer::of(row(), false);
        let wanted = r#"{"email":"hidden","n":1.10,"in":{"ipAddress":"hidden"}}"#;
        assert_eq!((hidden.address, hidden.before.as_deref().map(RawValue::get)), (None, Some(wanted)));
        let failed = || AuditRow { target: Some("a@x.y".to_owned()), counted: Some("c".to_owned()), times: 3, ..row() };
        assert_eq!(AuditEntryAnswer::of(failed(), false).target, None);
        let shown = AuditEntryAnswer::of(failed(), true);
        assert_eq!(shown.target.as_deref(), Some("a@x.y"));
        let after: Value = serde_json::from_str(shown.after.expect("a count").get()).expect("JSON");
        assert_eq!(after, json!({ "failures": 3 }));
    }
}
