//! Links to set a password. Somebody who manages users makes a link and hands it over. It can be used once.
//!
//! A link has the rights of its maker ([`crate::access::makers`]): they are checked when it is used. Otherwise somebody could
//! keep a link to an account without rights, and take over the account after it has got more rights than they have. A link that
//! somebody hands over does not prove an address. A mailed link proves it ([`super::mail`]).

use blockbase_auth::{LinkToken, check_password, hash_token};
use blockbase_query::Action;
use blockbase_schema::time::{DAY_MS, HOUR_MS};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{AccountTokenRow, Connection, Maker, ReadCost, Service, TokenKind, UserRow};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::types::{ADMIN, password_error};
use crate::App;
use crate::base::answer::Timestamp;
use crate::caller::Caller;
use crate::caller::client::{AuthProblem, Client};
use crate::caller::maker_rights::MakerRights;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::sign_in_tries::{Try, account_of};

/// How long an invitation is valid, in milliseconds.
pub(super) const INVITATION_MS: i64 = 7 * DAY_MS;
/// How long a link to set a new password or to prove an address is valid, in milliseconds.
pub(super) const LINK_MS: i64 = HOUR_MS;
/// The name under which attempts with tokens are counted. It is not an address, so it cannot be equal to an account's address.
pub(super) const TOKEN_TRIES: &str = "the links to set a password";
/// Replaces the address in the check of a password as long as the account is unknown. No password can be equal to it.
const NO_ADDRESS: &str = "\0";
/// Replaces the network of a sign-in if nobody signs in. No network has this name.
const NO_NETWORK: &str = "";
/// How long an expired token is kept, so that its user learns that it has expired.
const EXPIRED_KEPT_MS: i64 = DAY_MS;

/// A link with which somebody sets their password once.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcPasswordLink", deny_unknown_fields)]
pub struct PasswordLinkAnswer {
    /// The page where the password is set. Only this response shows it.
    #[schemars(extend("format" = "uri"))]
    pub(super) link: String,
    pub(super) expires_at: Timestamp,
}

/// The data of a link that is checked again when the link is used, because it may have changed since the link was made.
struct Link {
    token: AccountTokenRow,
    user: UserRow,
}

/// The decision of a reset's transaction.
enum Outcome {
    Done {
        /// Whether it was a first proof of the address that ended what the account had.
        has_ended: bool,
    },
    Invalid,
    /// The reset would create the first account that can sign in.
    NeedsSetup,
}

/// The refusal of every way to get an account, except sign-up, as long as there is no admin.
pub(super) fn setup_required() -> Error {
    Error::new(
        Code::SetupRequired,
        "Nobody has signed up yet. The first account that signs up becomes admin, and it makes others.",
    )
}

fn refuse_guest(user: &UserRow) -> Result<()> {
    match user.is_anonymous {
        true => Err(Error::new(Code::Conflict, "A guest has no password. They get one when they sign up.")),
        false => Ok(()),
    }
}

/// Whether a user has the role `admin`.
pub(super) async fn is_admin(connection: &mut Connection, user_id: &str) -> Result<bool> {
    Ok(connection.has_role_named(user_id, ADMIN).await?)
}

/// Whether a user is the first of the admins who can sign in and are not banned. This admin need not prove the address.
pub(super) async fn is_first_admin(connection: &mut Connection, user_id: &str) -> Result<bool> {
    Ok(is_admin(connection, user_id).await? && connection.is_first_with_role(ADMIN, user_id).await?)
}

impl App {
    /// Makes a link for an account, and ends the account's earlier links of the same kind. The caller of this function has
    /// checked that the link is allowed.
    pub(super) async fn new_password_link(
        &self,
        connection: &mut Connection,
        user_id: &str,
        maker: Maker,
        kind: TokenKind,
        now: i64,
    ) -> Result<PasswordLinkAnswer> {
        let token = LinkToken::random().map_err(Error::internal)?;
        let expires_at = now + if kind == TokenKind::Invitation { INVITATION_MS } else { LINK_MS };
        let row = AccountTokenRow {
            token_hash: token.hash(),
            user_id: user_id.to_owned(),
            kind,
            maker,
            is_mailed: false,
            address: None,
            created_at: now,
            expires_at,
        };
        connection.insert_account_token(row, 0).await?;
        // Browsers do not send the part after `#`, so it does not appear in logs.
        let link = format!("{}#token={}", self.settings.set_password_url, token.as_str());
        Ok(PasswordLinkAnswer { link, expires_at: Timestamp(expires_at) })
    }

    /// Makes a link with which a user sets a new password. An invited user sets the first one.
    ///
    /// # Errors
    /// `forbidden` if the user has rights that the caller lacks; `conflict` for guests and for banned users.
    pub async fn make_password_link(&self, caller: &Caller, user_id: &str) -> Result<PasswordLinkAnswer> {
        caller.require(Resource::Users, Action::Update)?;
        let (user_id, caller, app) = (user_id.to_owned(), caller.clone(), self.itself()?);
        let auditor = self.auditor(&caller);
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = connection.held_user(&user_id).await?.ok_or_else(|| Error::not_found("user"))?;
                app.require_rights_of_user(connection, &caller, &user).await?;
                refuse_guest(&user)?;
                if user.banned {
                    return Err(Error::new(Code::Conflict, "This user is banned. Lift the ban first."));
                }
                let kind = match connection.password_hash(&user_id).await? {
                    None => TokenKind::Invitation,
                    Some(_) => TokenKind::Reset,
                };
                let made = app.new_password_link(connection, &user_id, caller.maker(), kind, app.clock.now()).await?;
                let act = Act::new(AuditAction::MakePasswordLink, Resource::Users, &user_id);
                auditor.record(connection, act.after(&json!({ "expiresAt": made.expires_at }))).await?;
                Ok(made)
            })
        })
        .await
    }

    /// Whether a token of a link can still be used.
    ///
    /// # Errors
    /// `rate_limited` after too many wrong tokens.
    pub async fn password_link_holds(&self, client: &Client, token: &str) -> Result<bool, AuthProblem> {
        let attempt = self.begin_try(TOKEN_TRIES, client).await?;
        if self.known_link(token).await?.is_none() {
            log_invalid(client);
            return Ok(false);
        }
        self.try_succeeded(attempt).await?;
        Ok(true)
    }

    /// Sets the password of the account that a link was made for. All sessions and links of the account end.
    ///
    /// A password that is refused does not use up the link.
    ///
    /// # Errors
    /// [`AuthProblem::InvalidToken`] for any fault of the token; `setup_required`; `rate_limited` after too many wrong tokens.
    pub async fn reset_password(&self, client: &Client, token: &str, password: String) -> Result<(), AuthProblem> {
        check_password(&password, NO_ADDRESS)?;
        let attempt = self.begin_try(TOKEN_TRIES, client).await?;
        // The server hashes no password without a valid token, so that strangers cannot make it work hard.
        let Some(link) = self.known_link(token).await? else {
            log_invalid(client);
            return Err(AuthProblem::InvalidToken);
        };
        check_password(&password, &link.user.email)?;
        let password_hash = self.hash_chosen(password).await??;
        match self.use_link(client, link.token.token_hash, password_hash, attempt).await? {
            Outcome::Done { has_ended } => {
                if has_ended {
                    log_ended(&link.user.id);
                }
                Ok(())
            }
            Outcome::NeedsSetup => Err(setup_required().into()),
            Outcome::Invalid => {
                log_invalid(client);
                Err(AuthProblem::InvalidToken)
            }
        }
    }

    async fn use_link(&self, client: &Client, token_hash: String, password_hash: String, attempt: Try) -> Result<Outcome> {
        let (app, now, browser) = (self.itself()?, self.clock.now(), self.browser_of(client).await?);
        self.change_accounts(Service, move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                // If several requests use this token, the first one deletes it. The others find that it is gone.
                let Some(Link { mut user, token }) = app.link(connection, &token_hash, now).await? else {
                    return Ok(Outcome::Invalid);
                };
                // A sign-in with the old password that runs meanwhile ends before this change, or fails.
                connection.held_user(&user.id).await?;
                // Only the operator of the server makes an admin before anybody has signed up.
                if !connection.has_credentialed_user().await? && !is_admin(connection, &user.id).await? {
                    return Ok(Outcome::NeedsSetup);
                }
                if !connection.use_account_token(&token).await? {
                    return Ok(Outcome::Invalid);
                }
                let has_ended =
                    token.is_mailed && app.prove_address(connection, &mut user, &browser, &password_hash, now).await?;
                replace_password(connection, &user.id, &password_hash, now).await?;
                // Somebody who failed to sign in with the old password does not have to wait with the new one.
                for account in [&attempt.account, &account_of(&user.email)] {
                    connection.sign_in_succeeded(account, &attempt.network, now).await?;
                }
                Ok(Outcome::Done { has_ended })
            })
        })
        .await
    }

    /// Sets a user's password. Their sessions and links end. The operator of the server uses this when nobody can sign in.
    ///
    /// # Errors
    /// `not_found`; `invalid_value` for a weak password; `conflict` for guests; `forbidden` if the user has rights that the
    /// caller lacks.
    pub async fn set_password(&self, caller: &Caller, user_id: &str, password: String) -> Result<()> {
        caller.require(Resource::Users, Action::Update)?;
        let refused = |problem| password_error(problem, "password");
        check_password(&password, NO_ADDRESS).map_err(refused)?;
        let given = password.clone();
        let password_hash = self.hash_chosen(password).await?.map_err(refused)?;
        let (user_id, caller, app, now) = (user_id.to_owned(), caller.clone(), self.itself()?, self.clock.now());
        let auditor = self.auditor(&caller);
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = connection.held_user(&user_id).await?.ok_or_else(|| Error::not_found("user"))?;
                app.require_rights_of_user(connection, &caller, &user).await?;
                refuse_guest(&user)?;
                if !connection.has_credentialed_user().await? && !is_admin(connection, &user_id).await? {
                    return Err(setup_required());
                }
                check_password(&given, &user.email).map_err(refused)?;
                replace_password(connection, &user_id, &password_hash, now).await?;
                // Failed attempts of others no longer delay the user's sign-in.
                connection.sign_in_succeeded(&account_of(&user.email), NO_NETWORK, now).await?;
                auditor.record(connection, Act::new(AuditAction::SetPassword, Resource::Users, &user_id)).await
            })
        })
        .await
    }

    async fn known_link(&self, token: &str) -> Result<Option<Link>> {
        let (app, hash, now) = (self.itself()?, hash_token(token), self.clock.now());
        self.store
            .read_as_service(ReadCost::Rows, move |connection| Box::pin(async move { app.link(connection, &hash, now).await }))
            .await
    }

    /// The link of a token, if it can be used: it has not expired, its user is not banned, and its maker still has the rights to
    /// make it.
    async fn link(&self, connection: &mut Connection, token_hash: &str, now: i64) -> Result<Option<Link>> {
        let token = connection.account_token(token_hash, &TokenKind::OF_PASSWORDS, now).await?;
        let Some(token) = token else { return Ok(None) };
        let user = connection.user(&token.user_id).await?.filter(|user| !user.banned);
        let Some(user) = user else { return Ok(None) };
        let may_be_made = match self.rights_of_maker_in(connection, &token.maker).await? {
            MakerRights::Unlimited => true,
            MakerRights::Suspended(_) => false,
            MakerRights::Held(maker) => self.may_make_link(connection, &maker, &user, token.kind).await?,
        };
        Ok(may_be_made.then_some(Link { token, user }))
    }

    async fn may_make_link(&self, connection: &mut Connection, maker: &Caller, user: &UserRow, kind: TokenKind) -> Result<bool> {
        let may_invite = kind == TokenKind::Invitation && maker.holds(Resource::Users, Action::Create);
        if !may_invite && !maker.holds(Resource::Users, Action::Update) {
            return Ok(false);
        }
        match self.require_rights_of_user(connection, maker, user).await {
            Ok(()) => Ok(true),
            Err(error) if error.code == Code::Forbidden => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Deletes the tokens that expired a day ago.
    pub async fn purge_account_tokens(&self) -> Result<u64> {
        self.purge(|connection, now, most| Box::pin(connection.purge_account_tokens(now - EXPIRED_KEPT_MS, most))).await
    }
}

/// Replaces a password. All sessions of the user end.
async fn replace_password(connection: &mut Connection, user_id: &str, password_hash: &str, now: i64) -> Result<()> {
    connection.set_password(user_id, password_hash, now).await?;
    // The password from the environment is no longer valid, so there is nothing left to claim.
    connection.end_claim(user_id).await?;
    connection.delete_sessions_of(user_id, None).await?;
    Ok(())
}

/// Logs a line that explains why somebody cannot sign in any more. It has no address.
pub(super) fn log_ended(user_id: &str) {
    tracing::info!(
        user.id = user_id,
        "the first proof of an address came from another browser than its account's: the account's sessions and keys have ended, and its \
         password is replaced"
    );
}

/// Logs a line for operators who watch the log for attacks. It does not have the token.
pub(super) fn log_invalid(client: &Client) {
    tracing::warn!(client.address = client.ip_address, "a link of an account was not valid");
}
