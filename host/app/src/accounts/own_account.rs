//! Operations of users on their own account with mailed links and passwords: another address, and the deletion of the account.

use blockbase_auth::{PASSWORD_CHARS_MAX, hash_token};
use blockbase_schema::time::{DAY_MS, MINUTE_MS};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{MailKind, ReadCost, Service, TokenKind};

use super::mail::{Asker, MailRequest};
use super::removal::remove_person;
use super::types::{hash_error, too_many};
use super::users::keep_an_admin;
use crate::App;
use crate::base::topic::{Topic, UserMembers};
use crate::caller::Caller;
use crate::caller::client::{AuthProblem, Client};
use crate::caller::identity::Identity;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::sign_in_tries::Try;

/// The maximum age of a session that may delete its account without a password or a link.
const FRESH_MS: i64 = DAY_MS;
/// The maximum number of wrong passwords for one account within [`WRONG_PASSWORDS_MS`]. Somebody at an unlocked computer has a
/// session, and may try passwords with it from many networks.
const WRONG_PASSWORDS_MAX: i64 = 10;
const WRONG_PASSWORDS_MS: i64 = 15 * MINUTE_MS;

/// How a user shows that they really want to delete the account.
#[derive(Clone, Debug, Default)]
pub struct DeletionRequest {
    pub password: Option<String>,
    /// The token of a mailed link.
    pub token: Option<String>,
    /// The page where a mailed link ends. The surface has checked that it is trusted.
    pub page: Option<String>,
}

/// The result of a request for a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    Deleted,
    /// The server mailed a link that deletes the account.
    Mailed,
}

impl App {
    /// Asks for a link that gives the account another address. The mail goes to the new address. If another account has this
    /// address, the answer is the same.
    ///
    /// # Errors
    /// [`AuthProblem::EmailIsTheSame`]; [`AuthProblem::EmailCannotChange`] for guests; `rate_limited` after too many mails.
    pub async fn request_email_change(&self, client: &Client, request: MailRequest) -> Result<(), AuthProblem> {
        self.mail_texts()?;
        let identity = self.session(&client.credentials).await?;
        if identity.user.is_anonymous {
            return Err(AuthProblem::EmailCannotChange);
        }
        let request = request.checked()?;
        if request.address == identity.user.email {
            return Err(AuthProblem::EmailIsTheSame);
        }
        let id = identity.user.id.clone();
        let asker = Asker::account(client, &id);
        self.ask_alone(MailKind::ChangeEmail, Some(id), request, asker).await
    }

    /// Checks the password of the caller's user.
    ///
    /// # Errors
    /// [`AuthProblem::InvalidPassword`], also for guests; `rate_limited` after too many wrong ones.
    pub async fn verify_password(&self, client: &Client, password: String) -> Result<(), AuthProblem> {
        let identity = self.session(&client.credentials).await?;
        let hash = self.password_hash(&identity.user.id).await?.ok_or(AuthProblem::InvalidPassword)?;
        if password.chars().count() > PASSWORD_CHARS_MAX {
            return Err(AuthProblem::PasswordTooLong);
        }
        let attempt = self.check_own_password(client, &identity, password, hash, "a check of the password").await?;
        Ok(self.try_succeeded(attempt).await?)
    }

    /// Checks a password of the user of a session against its hash. `what` names the reason in the log.
    ///
    /// # Errors
    /// [`AuthProblem::InvalidPassword`]; `rate_limited` after too many wrong ones.
    pub(super) async fn check_own_password(
        &self,
        client: &Client,
        identity: &Identity,
        password: String,
        hash: String,
        what: &str,
    ) -> Result<Try, AuthProblem> {
        // Counted before it is known to be wrong, so that passwords tried at the same time are all counted.
        let counted = hash_token(&format!("wrong passwords of the account {}", identity.user.id));
        let (key, now) = (counted.clone(), self.clock.now());
        let (tried, since) = self
            .store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move { Ok(connection.count_in_window(&key, WRONG_PASSWORDS_MS, now).await?) })
            })
            .await?;
        if tried > WRONG_PASSWORDS_MAX {
            return Err(too_many("Too many wrong passwords", since + WRONG_PASSWORDS_MS - now).into());
        }
        let tried: Result<(Try, bool), AuthProblem> = match self.begin_try(&identity.user.email, client).await {
            Ok(attempt) => {
                let verified = self.hasher.verify(password, Some(hash)).await;
                verified.map(|is_right| (attempt, is_right)).map_err(|error| hash_error(error).into())
            }
            Err(problem) => Err(problem),
        };
        if let Ok((_, false)) = tried {
            self.log_failed_try(&identity.user.email, client, what);
            return Err(AuthProblem::InvalidPassword);
        }
        self.store
            .write_in_reserve(Service, move |connection| Box::pin(async move { Ok(connection.uncount(&counted).await?) }))
            .await?;
        tried.map(|(attempt, _)| attempt)
    }

    /// Deletes the account of the caller's session, if a password, a link or a new session shows that the user wants it.
    /// Otherwise it mails a link. The things that the user made are suspended.
    ///
    /// # Errors
    /// `not_found` if users may not delete themselves; `conflict` for the last admin.
    pub async fn delete_own_account(&self, client: &Client, request: DeletionRequest) -> Result<Deletion, AuthProblem> {
        if !self.settings.delete_user {
            return Err(Error::new(Code::NotFound, "Users cannot delete their accounts here (SVC_DELETE_USER).").into());
        }
        let identity = self.session(&client.credentials).await?;
        let DeletionRequest { password, token, page } = request;
        match (password, token) {
            (Some(_), _) if identity.user.is_anonymous => return Err(AuthProblem::NoCredential),
            (Some(password), _) => self.verify_password(client, password).await?,
            (None, Some(token)) => self.check_deletion_token(&identity, &token).await?,
            (None, None) => {
                let age = identity.session().map_or(i64::MAX, |session| self.clock.now() - session.created_at);
                if age >= FRESH_MS {
                    if !self.sends_mail() || identity.user.is_anonymous {
                        return Err(AuthProblem::SessionIsOld);
                    }
                    let request = MailRequest { email: identity.user.email.clone(), page, languages: client.languages.clone() };
                    let id = identity.user.id.clone();
                    let asker = Asker::account(client, &id);
                    self.ask_alone(MailKind::DeleteUser, Some(id), request.checked()?, asker).await?;
                    return Ok(Deletion::Mailed);
                }
            }
        }
        let id = identity.user.id.clone();
        let caller = Caller::of_identity(identity).with_origin(client.credentials.origin());
        self.removing(&caller, &id, || self.delete_own_account_at_once(&caller, &id)).await?;
        Ok(Deletion::Deleted)
    }

    /// # Errors
    /// [`AuthProblem::InvalidDeletion`] if the token is not valid, or is another user's.
    async fn check_deletion_token(&self, identity: &Identity, token: &str) -> Result<(), AuthProblem> {
        let (hash, now) = (hash_token(token), self.clock.now());
        let known = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(connection.account_token(&hash, &[TokenKind::Deletion], now).await?) })
            })
            .await?;
        match known.is_some_and(|known| known.user_id == identity.user.id) {
            true => Ok(()),
            false => Err(AuthProblem::InvalidDeletion),
        }
    }

    async fn delete_own_account_at_once(&self, caller: &Caller, id: &str) -> Result<()> {
        self.on_schema(caller, move |registry| async move {
            let (announcer, now, id) = (self.announcer(caller), self.clock.now(), id.to_owned());
            let auditor = self.auditor(caller);
            let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
            self.change_accounts_by(caller.basis.clone(), move |connection| {
                Box::pin(async move {
                    connection.lock_accounts().await?;
                    let user = connection.held_user(&id).await?.ok_or_else(|| Error::not_found("user"))?;
                    keep_an_admin(connection, &user).await?;
                    // The deletion then replaces the address of this row too.
                    auditor.record(connection, Act::on_user(AuditAction::Delete, &id)).await?;
                    remove_person(connection, &mut context, &announcer, &id, now).await?;
                    announcer.emit(connection, Topic::UserDeleted(UserMembers { user_id: &id })).await
                })
            })
            .await
        })
        .await
    }
}
