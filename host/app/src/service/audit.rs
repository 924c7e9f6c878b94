//! Reads the audit log. `outbox/audit.rs` writes it.

use blockbase_query::{Action, Paging};
use blockbase_schema::{Error, Resource, Result, enumerated, is_email};
use blockbase_store::{AuditFilter, AuditRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::App;
use crate::accounts::users::access_to_whole;
use crate::base::answer::{AnyObject, Timestamp};
use crate::base::json_texts::{JsonText, replace_texts};
use crate::caller::Caller;
use crate::outbox::audit::AuditAction;
use crate::records::read::page_json;

/// The members of states whose values are shown only to callers who may read users.
const HIDDEN_MEMBERS: [&str; 3] = ["email", "ipAddress", "userAgent"];
/// The members of the state of a user that are shown only to them too. They are members of the state itself, because the roles in
/// it also have names.
const HIDDEN_OF_USERS: [&str; 2] = ["name", "image"];
/// Replaces these values for other callers.
const HIDDEN: &str = "hidden";

/// An administrative act, or the failed sign-ins to one account from one network within a minute.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcAuditEntry", deny_unknown_fields)]
pub struct AuditEntryAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    at: Timestamp,
    /// `user:<id>`; `shell:<uid>` for a command on the machine of the server, with the user of the operating system, or `shell`
    /// if that is unknown; `anonymous` for a request without a credential; `service` for the server itself.
    actor: String,
    /// `session:<id>` or `api_key:<id>`; null if there was none.
    credential: Option<String>,
    /// The client's network address; null if there was none, and for callers who may not read all users.
    address: Option<String>,
    #[schemars(extend("enum" = action_names()))]
    action: String,
    #[schemars(extend("enum" = resource_names()))]
    resource: String,
    /// The id or the name of the thing. For failed sign-ins the user's id; null if no account has the address that was tried.
    target: Option<String>,
    /// What the act changed, as it was before; null if there was nothing. `cut` names members that were too large, and has `*` if
    /// there are others.
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

/// Whether a text is an e-mail address, or contains one between other words.
fn has_address(text: &str) -> bool {
    let is_of_domain = |character: char| character.is_ascii_alphanumeric() || ".-".contains(character);
    let is_of_name = |character: char| is_of_domain(character) || "!#$%&'*+/=?^_`{|}~".contains(character);
    text.match_indices('@').any(|(place, at)| {
        let (before, from) = text.split_at(place);
        let after = from.get(at.len()..).unwrap_or_default();
        let domain = after.split(|character: char| !is_of_domain(character)).next().unwrap_or_default();
        // Only the domain decides, because characters of a longer text may belong to the name.
        before.ends_with(is_of_name) && is_email(&format!("name@{}", domain.trim_end_matches(['.', '-'])))
    })
}

/// Whether a text of a state is hidden from callers who may not read all users. `is_of_user` says whether the state is a user's.
fn is_hidden(text: JsonText<'_>, is_of_user: bool) -> bool {
    HIDDEN_MEMBERS.contains(&text.member)
        || (is_of_user && text.depth == 1 && HIDDEN_OF_USERS.contains(&text.member))
        || has_address(&text.value())
}

impl AuditEntryAnswer {
    /// `shows_people` says whether the caller sees names and addresses of people.
    fn of(row: AuditRow, shows_people: bool) -> AuditEntryAnswer {
        let is_counted = row.action == AuditAction::SignInFailed.name();
        let is_of_user = row.subject.is_some();
        let state = |text: Option<String>| {
            let text = match shows_people {
                true => text?,
                false => replace_texts(&text?, |text| is_hidden(text, is_of_user).then(|| HIDDEN.to_owned())),
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
            target: row.target,
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
    /// A page of the audit log as `{ data, pagination }`, the newest entry first. Callers who may not read all users with all
    /// their members do not see network addresses, e-mail addresses, and the names and images of users.
    ///
    /// # Errors
    /// `forbidden` without read on `settings`; `invalid_request` for an unknown action or resource.
    pub async fn audit_log(&self, caller: &Caller, filter: AuditFilter, paging: Paging) -> Result<String> {
        caller.require(Resource::Settings, Action::Read)?;
        check_named("action", filter.action.as_ref(), &action_names())?;
        check_named("resource", filter.resource.as_ref(), &resource_names())?;
        // A caller without the right to read users gets an error here.
        let shows_people = access_to_whole(caller).ok().flatten().is_some_and(|access| access.only().is_none());
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
    }

    #[test]
    fn texts_that_contain_an_address_and_names_of_users_are_hidden() {
        let hidden = |state: Value, subject: Option<&str>| {
            let row = AuditRow { before: Some(state.to_string()), subject: subject.map(str::to_owned), ..row() };
            let before = AuditEntryAnswer::of(row, false).before.expect("a state");
            serde_json::from_str::<Value>(before.get()).expect("JSON")
        };
        let role = |description: &str, email: &str| {
            let permissions = json!([{ "resource": "task", "if": { "email": { "eq": email } } }]);
            json!({ "name": "editors", "description": description, "permissions": permissions })
        };
        assert_eq!(hidden(role("Ask Ann (ann@x.y).", "ann@x.y"), None), role("hidden", "hidden"));
        let key = json!({ "name": "ann@x.y", "prefix": "svc_", "keys": ["'ann@x.y'!", "x/ann@x.y/y", "@x.y", "a@b"] });
        let wanted = json!({ "name": "hidden", "prefix": "svc_", "keys": ["hidden", "hidden", "@x.y", "a@b"] });
        assert_eq!(hidden(key, None), wanted);
        let user = json!({ "id": "u", "name": "Ann", "image": "https://x.y/ann.png", "roles": [{ "id": "r", "name": "admin" }] });
        assert_eq!(hidden(user.clone(), None), user);
        let wanted = json!({ "id": "u", "name": "hidden", "image": "hidden", "roles": [{ "id": "r", "name": "admin" }] });
        assert_eq!(hidden(user, Some("u")), wanted);
    }

    #[test]
    fn failed_sign_ins_show_their_number_also_after_the_deletion_of_the_user() {
        for counted in [Some("c".to_owned()), None] {
            let row = AuditRow { action: "sign_in_failed".to_owned(), target: None, counted, times: 3, ..row() };
            let shown = AuditEntryAnswer::of(row, true);
            let after: Value = serde_json::from_str(shown.after.expect("a count").get()).expect("JSON");
            assert_eq!((shown.target, after), (None, json!({ "failures": 3 })));
        }
    }
}
