//! Users as somebody sees them whose grants on `users` have conditions or list fields.
//!
//! Such a caller sees the users that the grants reach. If grants list fields, the answer has `id` and, of `name`, `image` and `email`, the
//! listed ones.

use blockbase_query::{Decision, ListRequest, Paging};
use blockbase_schema::{Code, Error, Result, USERS};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{ManagedUserAnswer, UserSearch};
use crate::App;
use crate::caller::Caller;
use crate::records::read::page_json;

/// A user with the members that the caller may read.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum SeenUserAnswer {
    Whole(Box<ManagedUserAnswer>),
    Members(Box<RawValue>),
}

/// Whether conditions or fields of the caller's grants decide what they read of users. Else the error of the plain decision stands.
fn reads_some(caller: &Caller) -> bool {
    matches!(caller.reads(USERS), Some(Decision::Rules(_)))
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

impl App {
    /// The page of users for a caller without a right to all members of users, and why that right is refused.
    pub(super) async fn list_some_users(
        &self,
        caller: &Caller,
        search: UserSearch,
        paging: Paging,
        refused: Error,
    ) -> Result<String> {
        if !reads_some(caller) {
            return Err(refused);
        }
        if search.role.is_some() {
            let message = "Your permissions on users are limited, so you cannot look for the users of a role.";
            return Err(Error::new(Code::Forbidden, message).with_field("role"));
        }
        let registry = self.registry();
        let known = self.known_to(caller, &registry);
        let mut request = ListRequest { sort: vec![("id".to_owned(), true)], ..ListRequest::default() };
        if let Some(text) = search.text {
            let columns = known.object(USERS).into_iter().flat_map(|users| &users.columns);
            let contains = columns.map(|column| column.name.as_str()).filter(|name| matches!(*name, "name" | "email"));
            let tests: Vec<serde_json::Value> = contains.map(|name| serde_json::json!({ (name): { "ilike": text } })).collect();
            let asked = serde_json::json!({ "where": { "_or": tests } });
            request.wheres = ListRequest::from_json(&asked.to_string())?.wheres;
        }
        request.paging = paging;
        let page = self.list(caller, USERS, request).await?;
        if self.knows_some_members(caller) {
            return String::from_utf8(page.json()).map_err(Error::internal);
        }
        let rows: Vec<Id> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).map_err(Error::internal)?;
        let users = self
            .scan(caller, move |connection| {
                Box::pin(async move {
                    let mut users = Vec::with_capacity(rows.len());
                    for Id { id } in rows {
                        // Not those that were deleted a moment ago.
                        if let Some(user) = connection.user(&id).await? {
                            users.push(ManagedUserAnswer::of(&user, connection.roles_of(&id).await?));
                        }
                    }
                    Ok(users)
                })
            })
            .await?;
        Ok(page_json(&users, paging, page.total.and_then(|total| i64::try_from(total).ok()).unwrap_or_default()))
    }

    /// One user for a caller without a right to all members of users, and why that right is refused.
    pub(super) async fn some_user(&self, caller: &Caller, id: &str, refused: Error) -> Result<SeenUserAnswer> {
        if !reads_some(caller) {
            return Err(refused);
        }
        let missing = || Error::not_found("user");
        let record = self.get(caller, USERS, id, &[]).await?.ok_or_else(missing)?;
        if self.knows_some_members(caller) {
            let text = String::from_utf8(record.json).map_err(Error::internal)?;
            return RawValue::from_string(text).map(SeenUserAnswer::Members).map_err(Error::internal);
        }
        let Id { id } = serde_json::from_slice(&record.json).map_err(Error::internal)?;
        self.look_up(caller, move |connection| {
            Box::pin(async move {
                let user = connection.user(&id).await?.ok_or_else(missing)?;
                Ok(SeenUserAnswer::Whole(Box::new(ManagedUserAnswer::of(&user, connection.roles_of(&id).await?))))
            })
        })
        .await
    }

    /// Whether the caller does not read every member of each user whom they reach.
    fn knows_some_members(&self, caller: &Caller) -> bool {
        let registry = self.registry();
        let known = caller.known_objects(&self.ground(&registry));
        registry.users().is_some_and(|users| known.contains_key(&users.id))
    }
}
