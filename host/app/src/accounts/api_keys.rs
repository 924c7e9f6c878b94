//! API keys: they act as their user, with the rights of one role, limited to the rights of their maker.

use blockbase_auth::ApiKey;
use blockbase_query::{Access, Action};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{ApiKeyRow, Connection, KeyHolder, MakerPart, NewApiKey, RoleRow, Thing, ThingKind};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::access::makers::{CHAIN_MAX, carried_by_role, chain_of, keep_maker, settle};
use crate::accounts::removal::keys_are_gone;
use crate::accounts::users::unknown_role;
use crate::base::answer::{MakerAnswer, SuspensionAnswer, Timestamp};
use crate::base::topic::Topic;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::acts_later::{ActsLater, SuspensionCheck};

/// The maximum length of a key's name, in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// The maximum number of keys that act as one user.
pub const KEYS_OF_USER_MAX: i64 = 1000;

/// The parameters of a new key.
#[derive(Clone, Debug)]
pub struct NewKey {
    pub name: String,
    /// The role's id or name.
    pub role: String,
    /// The user that the key acts as. The caller, if this is left out.
    pub user_id: Option<String>,
    /// Milliseconds since the epoch. If this is left out, the key does not expire.
    pub expires_at: Option<i64>,
}

/// A key for a program, with the rights of one role.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcApiKey", deny_unknown_fields)]
pub struct ApiKeyAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    name: String,
    /// The key's first characters.
    prefix: String,
    #[schemars(extend("format" = "uuid"))]
    role_id: String,
    #[schemars(extend("format" = "uuid"))]
    user_id: String,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    created_at: Timestamp,
    made_by: Option<MakerAnswer>,
    suspended: Option<SuspensionAnswer>,
}

impl From<&ApiKeyRow> for ApiKeyAnswer {
    fn from(key: &ApiKeyRow) -> ApiKeyAnswer {
        ApiKeyAnswer {
            id: key.id.clone(),
            name: key.name.clone(),
            prefix: key.prefix.clone(),
            role_id: key.role_id.clone(),
            user_id: key.user_id.clone(),
            expires_at: key.expires_at.map(Timestamp),
            last_used_at: key.last_used_at.map(Timestamp),
            created_at: Timestamp(key.created_at),
            made_by: MakerAnswer::of(&key.maker),
            suspended: key.suspension.map(SuspensionAnswer::from),
        }
    }
}

fn missing() -> Error {
    Error::not_found("API key")
}

/// Returns the key if the decision includes it, and locks it until the transaction ends.
async fn within(connection: &mut Connection, access: &Access, id: &str) -> Result<KeyHolder> {
    let holder = connection.held_api_key(id).await?.ok_or_else(missing)?;
    match access.only().is_some_and(|only| only != holder.user.id) {
        true => Err(missing()),
        false => Ok(holder),
    }
}

/// Requires from `caller` the rights that a key with this role needs. The key acts as the user with the id `user_id`.
///
/// # Errors
/// `forbidden`.
async fn require_carried_by_role(
    app: &App,
    connection: &mut Connection,
    caller: &Caller,
    user_id: &str,
    role: &RoleRow,
) -> Result<()> {
    let registry = app.registry_in(connection).await?;
    let grant_context = app.grant_context(&registry);
    let is_own = caller.actor_id() == Some(user_id);
    caller.covers(&grant_context, &carried_by_role(&grant_context, role, is_own)?)
}

/// API keys as a kind of things that act later.
pub(crate) struct MadeApiKeys;

impl ActsLater for MadeApiKeys {
    fn kind(&self) -> ThingKind {
        ThingKind::ApiKey
    }

    /// A key's rights are limited to those of its maker. The key itself needs no right, so it is suspended only together with its
    /// maker (`makers::settle`).
    fn list<'a>(&'a self, _connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<SuspensionCheck>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn carried<'a>(
        &'a self,
        app: &'a App,
        connection: &'a mut Connection,
        caller: &'a Caller,
        id: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(holder) = connection.api_key_of_id(id).await? else { return Ok(()) };
            require_carried_by_role(app, connection, caller, &holder.user.id, &holder.role).await
        })
    }

    fn adopted<'a>(&'a self, _connection: &'a mut Connection, _id: &'a str) -> BoxFuture<'a, Result<Vec<Thing>>> {
        Box::pin(async { Err(Error::internal("an API key is adopted by its own operation")) })
    }
}

impl App {
    /// Lists keys, the newest first.
    ///
    /// # Errors
    /// `forbidden`; `answer_too_large`.
    pub async fn list_api_keys(&self, caller: &Caller) -> Result<Vec<ApiKeyAnswer>> {
        let only = caller.access(Resource::ApiKeys, Action::Read)?.only().map(str::to_owned);
        let bytes_max = i64::try_from(self.answer_bytes_left(caller)).unwrap_or(i64::MAX);
        let keys = self
            .scan(caller, move |connection| {
                Box::pin(async move {
                    // One user's keys are always few.
                    if only.is_none() && connection.api_keys_length().await? > bytes_max {
                        let message = "The API keys together have more bytes than the server sends (`SVC_MAX_ANSWER_BYTES`). \
                                       Delete some that nobody uses, or raise that limit.";
                        return Err(Error::new(Code::AnswerTooLarge, message));
                    }
                    Ok(connection.api_keys(only).await?)
                })
            })
            .await?;
        Ok(keys.iter().map(ApiKeyAnswer::from).collect())
    }

    /// Makes a key. Returns the key as lists show it, and the key itself, which is shown only this once.
    ///
    /// # Errors
    /// `forbidden` if the role gives more rights than the caller has. A key of another user acts in that user's name. So it needs
    /// the rights that a change of that user needs. A grant for own rows means that user's rows, so the caller needs this grant
    /// for all rows. `conflict` if the user has the maximum number of keys.
    pub async fn create_api_key(&self, caller: &Caller, new: NewKey) -> Result<(ApiKeyAnswer, ApiKey)> {
        let access = caller.access(Resource::ApiKeys, Action::Create)?;
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
        let is_own = own.as_ref() == Some(&user_id);
        if !is_own {
            caller.require(Resource::Users, Action::Update)?;
        }
        let (maker, announcer, app) = (caller.maker(), self.announcer(caller), self.itself()?);
        let auditor = self.auditor(caller);
        let key = ApiKey::random().map_err(Error::internal)?;
        let (prefix, key_hash, id) = (key.prefix().to_owned(), key.hash(), self.clock.id(now).to_string());
        let caller = caller.clone();
        let row = self
            .store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    keep_maker(connection, &maker).await?;
                    if chain_of(connection, &maker).await?.len() >= CHAIN_MAX {
                        let message =
                            format!("Keys make keys {CHAIN_MAX} deep at most. Use a session, or a key that a user made.");
                        return Err(Error::new(Code::Conflict, message));
                    }
                    let user = connection.held_user(&user_id).await?.ok_or_else(|| {
                        let message = "`userId`: there is no such user.";
                        Error::new(Code::ForeignKeyViolation, message).with_field("userId")
                    })?;
                    if !is_own {
                        app.require_rights_of_user(connection, &caller, &user).await?;
                    }
                    let role = connection.held_role(&new.role).await?.ok_or_else(|| unknown_role(&caller, &new.role))?;
                    require_carried_by_role(&app, connection, &caller, &user_id, &role).await?;
                    if connection.api_keys_count(&user_id).await? >= KEYS_OF_USER_MAX {
                        let message = format!("A user has {KEYS_OF_USER_MAX} API keys at most. Delete one that nobody uses.");
                        return Err(Error::new(Code::Conflict, message));
                    }
                    let row = ApiKeyRow {
                        id,
                        name: new.name,
                        prefix,
                        user_id,
                        role_id: role.id,
                        expires_at: new.expires_at,
                        last_used_at: None,
                        created_at: now,
                        maker,
                        suspension: None,
                    };
                    connection.insert_api_key(NewApiKey { row: row.clone(), key_hash }).await?;
                    announcer.emit(connection, Topic::KeyCreated((&row).into())).await?;
                    let act = Act::new(AuditAction::Create, Resource::ApiKeys, &row.id).after(&ApiKeyAnswer::from(&row));
                    auditor.record(connection, act).await?;
                    Ok(row)
                })
            })
            .await?;
        Ok((ApiKeyAnswer::from(&row), key))
    }

    /// Makes the caller the maker of a key. From then on its rights are cut to the caller's rights, and it is not suspended any
    /// more.
    ///
    /// # Errors
    /// `forbidden` if the key gives more rights than the caller has. Then nothing changes.
    pub async fn adopt_api_key(&self, caller: &Caller, id: &str) -> Result<ApiKeyAnswer> {
        let access = caller.access(Resource::ApiKeys, Action::Update)?;
        let (maker, announcer, app) = (caller.maker(), self.announcer(caller), self.itself()?);
        let auditor = self.auditor(caller);
        let (id, caller, now) = (id.to_owned(), caller.clone(), self.clock.now());
        let row = self
            .change_accounts_by(caller.basis.clone(), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    keep_maker(connection, &maker).await?;
                    let holder = within(connection, &access, &id).await?;
                    if caller.actor_id() != Some(holder.user.id.as_str()) {
                        // This needs the same right as making a key for another user.
                        caller.require(Resource::Users, Action::Update)?;
                        app.require_rights_of_user(connection, &caller, &holder.user).await?;
                    }
                    require_carried_by_role(&app, connection, &caller, &holder.user.id, &holder.role).await?;
                    let chain = chain_of(connection, &maker).await?;
                    if chain.contains(&id) {
                        let message = "The key of this request has its rights from the key that it would adopt. Use a session.";
                        return Err(Error::new(Code::Conflict, message));
                    }
                    if chain.len() >= CHAIN_MAX {
                        let message = format!("Keys make keys {CHAIN_MAX} deep at most. Adopt it with a session.");
                        return Err(Error::new(Code::Conflict, message));
                    }
                    connection.set_maker(ThingKind::ApiKey, &id, &maker).await?;
                    settle(connection, &announcer, MakerPart::ApiKey(id), now).await?;
                    let before = ApiKeyAnswer::from(&holder.key);
                    let row = ApiKeyRow { maker, suspension: None, ..holder.key };
                    announcer.emit(connection, Topic::KeyAdopted((&row).into())).await?;
                    let act = Act::new(AuditAction::Adopt, Resource::ApiKeys, &row.id).before(&before);
                    auditor.record(connection, act.after(&ApiKeyAnswer::from(&row))).await?;
                    Ok(row)
                })
            })
            .await?;
        Ok(ApiKeyAnswer::from(&row))
    }

    /// Deletes a key. It stops working at once.
    ///
    /// # Errors
    /// `forbidden` if the key has rights that the caller lacks.
    pub async fn delete_api_key(&self, caller: &Caller, id: &str) -> Result<()> {
        let access = caller.access(Resource::ApiKeys, Action::Delete)?;
        let (announcer, auditor, app) = (self.announcer(caller), self.auditor(caller), self.itself()?);
        let (id, caller, now) = (id.to_owned(), caller.clone(), self.clock.now());
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let holder = within(connection, &access, &id).await?;
                app.require_rights_of_key(connection, &caller, &holder).await?;
                connection.delete_api_key(&id).await?;
                let act = Act::new(AuditAction::Delete, Resource::ApiKeys, &id).before(&ApiKeyAnswer::from(&holder.key));
                auditor.record(connection, act).await?;
                keys_are_gone(connection, &announcer, vec![holder], now).await
            })
        })
        .await
    }
}
