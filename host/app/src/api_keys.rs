//! API keys: they act as their user, with the rights of one role.

use blockbase_auth::ApiKey;
use blockbase_query::{Action, Grant};
use blockbase_schema::{Code, Error, Result, time};
use blockbase_store::{ApiKeyRow, NewApiKey, ReadCost};
use serde_json::{Value, json};

use crate::App;
use crate::caller::Caller;
use crate::identity::grants;
use crate::users::unknown_role;

const API_KEYS: &str = "api_keys";
/// Longest name of a key in characters.
const NAME_CHARS_MAX: usize = 200;

/// What making a key takes.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    /// The role's id or name.
    pub role: String,
    /// Whom it acts as; the caller where it is left out.
    pub user_id: Option<String>,
    /// Milliseconds since the epoch; never where it is left out.
    pub expires_at: Option<i64>,
}

/// `{ id, name, prefix, roleId, userId, expiresAt, lastUsedAt, createdAt }`.
fn render(key: &ApiKeyRow) -> Value {
    json!({
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "roleId": key.role_id,
        "userId": key.user_id,
        "expiresAt": key.expires_at.map(time::format_datetime),
        "lastUsedAt": key.last_used_at.map(time::format_datetime),
        "createdAt": time::format_datetime(key.created_at),
    })
}

impl App {
    /// Keys, the newest first.
    pub async fn list_api_keys(&self, caller: &Caller) -> Result<Vec<Value>> {
        let only = caller.access(API_KEYS, Action::Read)?.only().map(str::to_owned);
        let keys = self
            .store
            .read(ReadCost::Scan, move |connection| Box::pin(async move { Ok(connection.api_keys(only).await?) }))
            .await?;
        Ok(keys.iter().map(render).collect())
    }

    /// Makes a key: what lists show of it, and the key itself, which is shown this once.
    ///
    /// # Errors
    /// `forbidden` where the role gives more than the caller holds. A key of another user reaches that user's rows, so a grant
    /// for own rows has to be held for all.
    pub async fn create_api_key(&self, caller: &Caller, new: NewKey) -> Result<(Value, ApiKey)> {
        let access = caller.access(API_KEYS, Action::Create)?;
        let length = new.name.chars().count();
        if !(1..=NAME_CHARS_MAX).contains(&length) || new.name.contains('\0') {
            let message = format!("`name` holds 1 to {NAME_CHARS_MAX} characters, and no NUL.");
            return Err(Error::new(Code::InvalidValue, message).with_field("name"));
        }
        let now = self.clock.now();
        if new.expires_at.is_some_and(|expires_at| expires_at <= now) {
            return Err(Error::new(Code::InvalidValue, "`expiresAt` lies in the past.").with_field("expiresAt"));
        }
        let own = caller.actor_id().map(str::to_owned);
        let user_id = new.user_id.or_else(|| own.clone()).ok_or_else(|| {
            Error::new(Code::NotNullViolation, "`userId` is required: there is no user behind this request.").with_field("userId")
        })?;
        if access.only().is_some_and(|only| only != user_id) {
            return Err(Error::new(Code::Forbidden, "You may make keys of your own alone."));
        }
        let key = ApiKey::random().map_err(Error::internal)?;
        let (prefix, key_hash, id) = (key.prefix().to_owned(), key.hash(), self.clock.id(now).to_string());
        let (caller, is_own) = (caller.clone(), own.as_ref() == Some(&user_id));
        let row = self
            .store
            .write(move |connection| {
                Box::pin(async move {
                    if !connection.keep_user(&user_id).await? {
                        let message = "`userId`: there is no such user.";
                        return Err(Error::new(Code::ForeignKeyViolation, message).with_field("userId"));
                    }
                    let role = connection.held_role(&new.role).await?.ok_or_else(|| unknown_role(&caller))?;
                    let mut given = grants(&role.permissions)?;
                    if !is_own {
                        given = given.into_iter().map(|grant| Grant { row_policy: None, ..grant }).collect();
                    }
                    caller.covers(&given)?;
                    let row = ApiKeyRow {
                        id,
                        name: new.name,
                        prefix,
                        user_id,
                        role_id: role.id,
                        expires_at: new.expires_at,
                        last_used_at: None,
                        created_at: now,
                    };
                    connection.insert_api_key(NewApiKey { row: row.clone(), key_hash }).await?;
                    Ok(row)
                })
            })
            .await?;
        Ok((render(&row), key))
    }

    /// Deletes a key; it holds no more.
    pub async fn delete_api_key(&self, caller: &Caller, id: &str) -> Result<()> {
        let only = caller.access(API_KEYS, Action::Delete)?.only().map(str::to_owned);
        let id = id.to_owned();
        let deleted = self
            .change_accounts(move |connection| Box::pin(async move { Ok(connection.delete_api_key(&id, only).await?) }))
            .await?;
        if deleted { Ok(()) } else { Err(Error::not_found("API key")) }
    }
}
