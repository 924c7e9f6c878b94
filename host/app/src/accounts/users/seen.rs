//! How callers whose grants on `users` have conditions or list fields see users under `/api/v1/users`.
//!
//! They see the users that the grants include. If a grant without a list of fields includes a user, the caller sees all members
//! of that user. For other users, the answer has `id`, and those of `name`, `image` and `email` that the grants list.

use std::borrow::Cow;
use std::sync::Arc;

use blockbase_query::{Access, Action, Decision, ListRequest, Paging, Scope};
use blockbase_schema::{Code, Error, Object, Resource, Result, USERS};
use blockbase_store::Connection;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{ManagedUserAnswer, UserSearch};
use crate::App;
use crate::caller::Caller;
use crate::outbox::checks::within;
use crate::records::read::{page_json, record_id};

/// The members that grants can list. Where a caller may read one of them for some users only, it is null for the others.
const LISTABLE: [&str; 3] = ["name", "email", "image"];
/// The description of the schema of [`SeenUserAnswer`].
const DESCRIPTION: &str = "A user with the members that the caller may read. If the caller's grants on `users` have conditions or \
    fields, a user whom no grant without fields includes has `id`, and those of `name`, `email` and `image` that the grants list. \
    Such a member is null if no grant that lists it includes this user. All other users have all members.";

/// A user with the members that the caller may read.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum SeenUserAnswer {
    Whole(Box<ManagedUserAnswer>),
    Members(Box<RawValue>),
}

/// The members of [`ManagedUserAnswer`], of which only `id` is always there.
impl JsonSchema for SeenUserAnswer {
    fn schema_name() -> Cow<'static, str> {
        "SvcSeenUser".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ManagedUserAnswer::json_schema(generator);
        schema.insert("description".to_owned(), DESCRIPTION.into());
        schema.insert("required".to_owned(), json!(["id"]));
        for name in LISTABLE {
            if let Some(ty) = schema.pointer_mut(&format!("/properties/{name}/type")) {
                *ty = json!(["string", "null"]);
            }
        }
        schema
    }
}

/// The access to all members of users. `None` if conditions or lists of fields decide which users and members the caller may
/// read.
///
/// # Errors
/// `unauthorized`; `forbidden`.
pub(crate) fn access_to_whole(caller: &Caller) -> Result<Option<Access>> {
    let plain = caller.access(Resource::Users, Action::Read);
    match (caller.reads(USERS), plain) {
        (_, Ok(access)) if access.only().is_none() => Ok(Some(access)),
        (Some(Decision::Rules(_)), _) => Ok(None),
        (_, plain) => plain.map(Some),
    }
}

/// The id of a user whom the caller reads as a record.
#[derive(Deserialize)]
struct Id {
    id: String,
}

/// The users of these records. The answer has all members of the users that `full` includes.
async fn shown(
    connection: &mut Connection,
    users: &Object,
    full: &Scope,
    records: Vec<Box<RawValue>>,
) -> Result<Vec<SeenUserAnswer>> {
    let id_of = |record: &RawValue| {
        let Id { id } = serde_json::from_str(record.get()).map_err(Error::internal)?;
        record_id(&id).ok_or_else(|| Error::internal("a user without an id"))
    };
    let ids = records.iter().map(|record| id_of(record)).collect::<Result<Vec<Uuid>>>()?;
    let whole = within(connection, users, full, ids.clone()).await?;
    let mut answers = Vec::with_capacity(records.len());
    for (id, record) in ids.into_iter().zip(records) {
        let user = match whole.contains(&id) {
            true => connection.user(&id.to_string()).await?,
            false => None,
        };
        answers.push(match user {
            Some(user) => SeenUserAnswer::Whole(Box::new(ManagedUserAnswer::of(&user, connection.roles_of(&user.id).await?))),
            None => SeenUserAnswer::Members(record),
        });
    }
    Ok(answers)
}

/// The `id` of a user, and those of the user's members that a caller sent.
fn sent_only(user: &ManagedUserAnswer, sent: &[&str]) -> Result<Box<RawValue>> {
    let members = serde_json::to_string(user).map_err(Error::internal)?;
    let mut members: Map<String, Value> = serde_json::from_str(&members).map_err(Error::internal)?;
    members.retain(|name, _| name == "id" || sent.contains(&name.as_str()));
    to_raw_value(&members).map_err(Error::internal)
}

impl App {
    /// A page of the users that the grants include.
    ///
    /// # Errors
    /// `forbidden` with `field` for a search by role; those of [`App::list`].
    pub(super) async fn list_some_users(&self, caller: &Caller, search: UserSearch, paging: Paging) -> Result<String> {
        if search.role.is_some() {
            let message = "Your permissions on users are limited, so you cannot search for the users of a role.";
            return Err(Error::new(Code::Forbidden, message).with_field("role"));
        }
        let registry = self.registry();
        let mut request = ListRequest { sort: vec![("id".to_owned(), true)], ..ListRequest::default() };
        if let Some(text) = search.text {
            let known = self.known_to(caller, &registry);
            let columns = known.object(USERS).into_iter().flat_map(|users| &users.columns);
            let searched = columns.map(|column| column.name.as_str()).filter(|name| matches!(*name, "name" | "email"));
            // A text that begins with `$` is not a variable here.
            let text = if text.starts_with('$') { format!("${text}") } else { text };
            let tests: Vec<Value> = searched.map(|name| json!({ (name): { "ilike": text } })).collect();
            let asked = json!({ "where": { "_or": tests } });
            request.wheres = ListRequest::from_json(&asked.to_string())?.wheres;
        }
        request.paging = paging;
        let page = self.list(caller, USERS, request).await?;
        let rows = [b"[", &page.rows[..], b"]"].concat();
        let records: Vec<Box<RawValue>> = serde_json::from_slice(&rows).map_err(Error::internal)?;
        let (users, full) = self.full_users(caller)?;
        let shown =
            self.scan(caller, move |connection| Box::pin(async move { shown(connection, &users, &full, records).await })).await?;
        Ok(page_json(&shown, paging, page.total.and_then(|total| i64::try_from(total).ok()).unwrap_or_default()))
    }

    /// One of the users that the grants include.
    ///
    /// # Errors
    /// `not_found`; those of [`App::get`].
    pub(super) async fn some_user(&self, caller: &Caller, id: &str) -> Result<SeenUserAnswer> {
        let missing = || Error::not_found("user");
        let record = self.get(caller, USERS, id, &[]).await?.ok_or_else(missing)?;
        let record = String::from_utf8(record.json).map_err(Error::internal)?;
        let record = RawValue::from_string(record).map_err(Error::internal)?;
        let (users, full) = self.full_users(caller)?;
        let shown = self
            .scan(caller, move |connection| Box::pin(async move { shown(connection, &users, &full, vec![record]).await }))
            .await?;
        shown.into_iter().next().ok_or_else(missing)
    }

    /// A user who has just been made or changed, with the members that the caller may read. A caller who may not read the user
    /// gets the `id` and the members of `sent`, which are those that they sent. So does a caller for whom the user cannot be read
    /// again, because an error would suggest that nothing changed.
    ///
    /// # Errors
    /// `internal`.
    pub(super) async fn seen_after(&self, caller: &Caller, changed: ManagedUserAnswer, sent: &[&str]) -> Result<SeenUserAnswer> {
        let id = changed.user.id().to_owned();
        let seen = match access_to_whole(caller) {
            Ok(Some(access)) if access.only().is_none_or(|only| only == id) => {
                return Ok(SeenUserAnswer::Whole(Box::new(changed)));
            }
            Ok(Some(_)) => Err(Error::not_found("user")),
            Ok(None) => self.some_user(caller, &id).await,
            Err(error) => Err(error),
        };
        seen.or_else(|error| {
            if !matches!(error.code, Code::NotFound | Code::Forbidden | Code::Unauthorized) {
                tracing::warn!(error = %error, "a changed user is answered with what was sent");
            }
            // What they sent is shown as this call stored it.
            Ok(SeenUserAnswer::Members(sent_only(&changed, sent)?))
        })
    }

    /// The object `users`, and the scope of those users of whom the caller may see all members.
    fn full_users(&self, caller: &Caller) -> Result<(Arc<Object>, Scope)> {
        let registry = self.registry();
        let users = registry.users().ok_or_else(|| Error::internal("there is no object for users"))?;
        let access = caller.access_to(&self.grant_context(&registry), USERS, Action::Read)?;
        let full = access.seen().map_or_else(|| access.scope().clone(), |seen| seen.full_rows.clone());
        Ok((Arc::clone(users), full))
    }
}
