//! The preferences of a user (`/api/v1/me/preferences`) and the permissions of the caller (`/api/v1/me/permissions`).
//!
//! Preferences are a JSON object that the service does not interpret: the console keeps its saved views in it. They belong to a
//! person. An API key acts for a program with the rights of one role, so it neither reads nor changes them.

use blockbase_query::{Action, Bounds, Clause, Grant, GrantContext, Reading, Variables, read_condition};
use blockbase_schema::json::{Members, compact, malformed, parse_members};
use blockbase_schema::{Code, Error, Registry, Resource, Result};
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::access::stored_grants::named_grants;
use crate::base::offload::run_offloaded;
use crate::caller::Caller;

/// The maximum number of bytes of one user's preferences, stored as JSON without spaces.
pub const PREFERENCES_BYTES_MAX: usize = 64 * 1024;
/// The maximum number of bytes of a guest's preferences. Anybody can become any number of guests, so each may store only a
/// little.
pub const GUEST_PREFERENCES_BYTES_MAX: usize = 4 * 1024;
/// The maximum number of keys at the top level.
pub const PREFERENCES_KEYS_MAX: usize = 1000;
/// What the caller sees instead of a condition that names something unknown to them. It is not a condition itself, because no
/// field has a name that begins with `_`. A client sees that there is a condition.
const HIDDEN_CONDITION: &str = r#"{"_hidden":true}"#;

/// What the caller may do.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct OwnPermissions {
    /// Whether permissions are enforced at all.
    enforced: bool,
    permissions: Vec<Grant>,
}

impl App {
    /// The id of the person who calls.
    ///
    /// # Errors
    /// `unauthorized` without a session, `forbidden` for an API key.
    pub fn require_person<'c>(&self, caller: &'c Caller) -> Result<&'c str> {
        let Some(identity) = caller.identity() else {
            return Err(Error::new(Code::Unauthorized, "Authentication required. Preferences belong to the user of a session."));
        };
        match identity.api_key() {
            None => Ok(&identity.user.id),
            Some(_) => Err(Error::new(
                Code::Forbidden,
                "Preferences belong to the user of a session. An API key has none; sign in instead.",
            )),
        }
    }

    /// The caller's preferences as the text of a JSON object.
    pub async fn preferences(&self, caller: &Caller) -> Result<String> {
        let user_id = self.require_person(caller)?.to_owned();
        let stored =
            self.look_up(caller, move |connection| Box::pin(async move { Ok(connection.preferences(&user_id).await?) })).await?;
        Ok(stored.unwrap_or_else(|| "{}".to_owned()))
    }

    /// Sets the keys of `changes`, removes those that are null, and answers with all preferences as JSON text.
    ///
    /// # Errors
    /// `payload_too_large` if they would have more than [`PREFERENCES_BYTES_MAX`] bytes ([`GUEST_PREFERENCES_BYTES_MAX`] of a
    /// guest) or too many keys; `invalid_request` for a value that nests too deeply.
    pub async fn change_preferences(&self, caller: &Caller, changes: Members) -> Result<String> {
        let user_id = self.require_person(caller)?.to_owned();
        let is_guest = caller.identity().is_some_and(|identity| identity.user.is_anonymous);
        let changes = run_offloaded(changes.bytes(), || read_changes(changes))?;
        let now = self.clock.now();
        self.until_uncontended(move || {
            let (user_id, changes) = (user_id.clone(), changes.clone());
            self.store.write(self.by(caller), move |connection| {
                Box::pin(async move {
                    // The user may have been deleted a moment ago. Or a guest may have signed up as another user.
                    if !connection.keep_user(&user_id).await? {
                        return Err(Error::new(Code::Unauthorized, "The session has ended. Sign in again."));
                    }
                    let stored = connection.held_preferences(&user_id, now).await?;
                    let merged = merged(&stored, changes, is_guest)?;
                    connection.store_preferences(&user_id, &merged, now).await?;
                    Ok(merged)
                })
            })
        })
        .await
    }

    /// The permissions of the caller.
    ///
    /// # Errors
    /// `unauthorized` for callers without a valid credential, under enforcement.
    pub fn own_permissions(&self, caller: &Caller) -> Result<OwnPermissions> {
        if self.settings.require_auth && !caller.is_known() {
            return Err(Error::unauthenticated());
        }
        let registry = self.registry();
        let grant_context = self.grant_context(&registry);
        let mut permissions = named_grants(&registry, caller.rights().effective(&grant_context));
        if !caller.holds(Resource::Roles, Action::Read) && !caller.holds(Resource::Objects, Action::Read) {
            // The caller does not know the names of the exceptions. A broken grant gives nothing, because it has no other lists
            // than those that limit its actions.
            for grant in &mut permissions {
                let Some(fields) = &mut grant.fields else { continue };
                *fields = match registry.object(&grant.resource).filter(|_| !grant.broken) {
                    Some(object) => fields.without_exceptions(&registry, object),
                    None => fields.emptied(),
                };
            }
            hide_unknown(caller, &grant_context, &self.known_to(caller, &registry), &mut permissions);
        }
        Ok(OwnPermissions { enforced: self.settings.require_auth, permissions })
    }
}

/// Hides each condition that the caller could not send in a request, because it names fields or objects that they do not know.
/// `known` is the registry without the unknown fields.
fn hide_unknown(caller: &Caller, grant_context: &GrantContext<'_>, known: &Registry, grants: &mut [Grant]) {
    let reading = Reading {
        registry: known,
        decide: &|relation| caller.access_by(grant_context, relation, "where"),
        // A variable without a value hides nothing.
        variables: &|| Variables::of_somebody(grant_context.now),
        // A grant of a key or of a block has the conditions of several grants.
        bounds: Bounds::of_request(),
    };
    for grant in grants {
        let object = known.object(&grant.resource);
        for clause in [&mut grant.rows, &mut grant.check].into_iter().flatten() {
            let is_known = object.is_some_and(|object| read_condition(object, clause.text(), &reading).is_ok());
            if !is_known {
                *clause = Clause::new(HIDDEN_CONDITION);
            }
        }
    }
}

/// The changes with the values in their stored form. `None` for a key to remove.
fn read_changes(changes: Members) -> Result<Vec<(String, Option<String>)>> {
    let read = |(key, value): (String, Box<serde_json::value::RawValue>)| {
        let value = compact(value.get()).map_err(|error| malformed(&error))?;
        Ok((key, Some(value).filter(|value| value != "null")))
    };
    changes.0.into_iter().map(read).collect()
}

fn merged(stored: &str, changes: Vec<(String, Option<String>)>, is_guest: bool) -> Result<String> {
    let mut members = parse_members(stored).map_err(Error::internal)?.0;
    for (key, value) in changes {
        let place = members.iter().position(|(known, _)| *known == key);
        let Some(value) = value else {
            if let Some(place) = place {
                members.remove(place);
            }
            continue;
        };
        let value = serde_json::value::RawValue::from_string(value).map_err(Error::internal)?;
        match place.and_then(|place| members.get_mut(place)) {
            Some(member) => member.1 = value,
            None => members.push((key, value)),
        }
    }
    let too_large = |what: String| Err(Error::new(Code::PayloadTooLarge, what));
    if members.len() > PREFERENCES_KEYS_MAX {
        return too_large(format!("Preferences have {PREFERENCES_KEYS_MAX} keys at most. Remove some by setting them to null."));
    }
    let text = Members(members).text();
    let (whose, bytes_max) = match is_guest {
        true => ("Preferences of a guest", GUEST_PREFERENCES_BYTES_MAX),
        false => ("Preferences", PREFERENCES_BYTES_MAX),
    };
    match text.len() > bytes_max {
        true => too_large(format!(
            "{whose} have {bytes_max} bytes at most, and these would have {}. Remove some by setting them to null.",
            text.len()
        )),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(stored: &str, changes: &str) -> Result<String> {
        merged(stored, read_changes(parse_members(changes)?)?, false)
    }

    #[test]
    fn keys_are_set_in_their_places_and_null_removes() {
        let stored = change("{}", r#"{ "a": { "x": [1, 2] }, "b": "t", "none": null }"#).expect("small");
        assert_eq!(stored, r#"{"a":{"x":[1,2]},"b":"t"}"#);
        assert_eq!(change(&stored, r#"{"c":1,"a":{"y":null}}"#).expect("small"), r#"{"a":{"y":null},"b":"t","c":1}"#);
        assert_eq!(change(&stored, r#"{"a":null,"b":null}"#).expect("small"), "{}");
    }

    #[test]
    fn size_keys_and_depth_have_bounds() {
        let of_size = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
        let full = change("{}", &of_size(PREFERENCES_BYTES_MAX)).expect("it fits");
        assert_eq!(full.len(), PREFERENCES_BYTES_MAX);
        for more in [of_size(PREFERENCES_BYTES_MAX + 1), r#"{"b":1}"#.to_owned()] {
            assert_eq!(change(&full, &more).expect_err("too much").code, Code::PayloadTooLarge);
        }
        // A change may remove members and add others. The limit applies to the result.
        assert_eq!(change(&full, r#"{"a":null,"b":1}"#).expect("room"), r#"{"b":1}"#);
        let keys = |from: usize, to: usize| {
            let keys: Vec<String> = (from..to).map(|number| format!("\"k{number}\":0")).collect();
            format!("{{{}}}", keys.join(","))
        };
        let many = change("{}", &keys(0, PREFERENCES_KEYS_MAX)).expect("as many as there may be");
        assert_eq!(change(&many, r#"{"one":1}"#).expect_err("one more").code, Code::PayloadTooLarge);
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(1000), "]".repeat(1000));
        assert_eq!(change("{}", &deep).expect_err("too deep").code, Code::InvalidRequest);
    }
}
