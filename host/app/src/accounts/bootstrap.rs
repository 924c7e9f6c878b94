//! The account that the server makes at boot from its configuration, and the claim of this account.

use std::sync::Arc;

use blockbase_auth::check_password;
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{Service, UserRow};

use super::types::{ADMIN, UserAnswer, check_name, hash_error, normal_email, password_error};
use crate::App;
use crate::base::topic::{NewUserMembers, Topic};
use crate::caller::check_basis::CheckBasis;
use crate::caller::client::AuthProblem;
use crate::caller::identity::{Credential, Identity};
use crate::caller::{Caller, Credentials};
use crate::outbox::audit::{Act, AuditAction};

/// The account's name until somebody claims it.
const BOOTSTRAP_NAME: &str = "Administrator";

/// `SVC_ADMIN_EMAIL` and the password that is configured with it.
#[derive(Clone)]
pub struct BootstrapAdmin {
    pub email: String,
    pub password: String,
    /// The variable that the password came from. Messages name it.
    pub password_variable: &'static str,
}

impl App {
    /// Whether nobody has signed up yet. Guests do not count.
    pub async fn is_fresh(&self) -> Result<bool> {
        Ok(!self.has_users().await?)
    }

    /// Creates the account if nobody has signed up yet. If several instances boot at once, one of them creates it. Returns
    /// `false` if somebody has signed up.
    ///
    /// # Errors
    /// A sentence without the password: the address is not valid, or the password is too weak.
    pub async fn bootstrap(&self, admin: BootstrapAdmin) -> Result<bool> {
        let wrong = |what: String| Error::new(Code::InvalidValue, what);
        let email = normal_email(&admin.email).ok_or_else(|| wrong("SVC_ADMIN_EMAIL is not an e-mail address.".to_owned()))?;
        let refused = |problem| wrong(password_error(problem, admin.password_variable).message);
        check_password(&admin.password, &email).map_err(refused)?;
        let hash = self.hash_chosen(admin.password).await?.map_err(refused)?;
        let now = self.clock.now();
        let user = UserRow {
            id: self.clock.id(now).to_string(),
            name: BOOTSTRAP_NAME.to_owned(),
            email,
            email_verified: false,
            image: None,
            is_anonymous: false,
            banned: false,
            created_at: now,
            updated_at: now,
        };
        let (announcer, auditor) = (self.announcer(&Caller::system()), self.auditor(&Caller::system()));
        // Other instances may already run.
        self.change_accounts(Service, move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                if connection.has_credentialed_user().await? {
                    return Ok(false);
                }
                if !connection.insert_user(&user, Some(hash)).await? {
                    return Err(Error::new(Code::UniqueViolation, "SVC_ADMIN_EMAIL is the address of a guest."));
                }
                if !connection.give_role_named(&user.id, ADMIN).await? {
                    return Err(Error::internal("there is no role `admin`"));
                }
                connection.await_claim(&user.id, now).await?;
                auditor.record(connection, Act::on_user(AuditAction::Create, &user.id).after(&UserAnswer::from(&user))).await?;
                let members = NewUserMembers { user_id: &user.id, is_anonymous: false };
                announcer.emit(connection, Topic::UserCreated(members)).await?;
                Ok(true)
            })
        })
        .await
    }

    /// The session whose user has a claim.
    ///
    /// # Errors
    /// `unauthorized` without a session.
    pub(crate) async fn claiming_session(&self, credentials: &Credentials) -> Result<Arc<Identity>> {
        self.session(credentials).await.map_err(|problem| match problem {
            AuthProblem::Other(error) => error,
            _ => Error::new(Code::Unauthorized, "The claim needs the session that signed in with the bootstrap password."),
        })
    }

    /// Claims the account that was made at boot: its user chooses a name and a password. All other sessions of the account end.
    ///
    /// # Errors
    /// `no_pending_claim` if this session has no claim, or another session claimed first; `unauthorized` without a session.
    pub async fn claim(&self, credentials: &Credentials, name: String, new_password: String) -> Result<()> {
        let identity = self.claiming_session(credentials).await?;
        let nothing = || {
            Error::new(
                Code::NoPendingClaim,
                "There is nothing to claim: the account is claimed, or this session may not claim it.",
            )
        };
        let user = &identity.user;
        let (Credential::Session { pending_claim: true, .. }, Some(session)) = (&identity.credential, identity.session()) else {
            return Err(nothing());
        };
        if check_name(&name).is_err() || name.trim().is_empty() {
            return Err(Error::new(Code::InvalidValue, "`name` holds 1 to 200 characters.").with_field("name"));
        }
        let refused = |problem| password_error(problem, "newPassword");
        check_password(&new_password, &user.email).map_err(refused)?;
        let old_hash = self.password_hash(&user.id).await?.ok_or_else(nothing)?;
        if self.hasher.verify(new_password.clone(), Some(old_hash.clone())).await.map_err(hash_error)? {
            let user_id = user.id.clone();
            let still_waits = self
                .store
                .read_as_service(blockbase_store::ReadCost::Rows, move |connection| {
                    Box::pin(async move { Ok(connection.awaits_claim(&user_id).await?) })
                })
                .await?;
            if !still_waits {
                // Another request made the same claim in between.
                return Err(nothing());
            }
            let message = "`newPassword` is the bootstrap password itself; the claim replaces it.";
            return Err(Error::new(Code::InvalidValue, message).with_field("newPassword"));
        }
        let new_hash = self.hash_chosen(new_password).await?.map_err(refused)?;
        let (user_id, session_id, now) = (user.id.clone(), session.id.clone(), self.clock.now());
        let auditor = self.auditor(&Caller::of_identity(Arc::clone(&identity)).with_origin(credentials.origin()));
        let claimed = self
            .change_accounts_by(CheckBasis::of(&identity), move |connection| {
                Box::pin(async move {
                    let Some(mut user) = connection.held_user(&user_id).await? else { return Ok(false) };
                    if !connection.end_claim(&user_id).await? {
                        return Ok(false);
                    }
                    if !connection.change_password(&user_id, &old_hash, &new_hash, now).await? {
                        // The error rolls back the transaction, and so also the end of the claim.
                        return Err(Error::new(Code::Conflict, "The password was changed meanwhile. Sign in again."));
                    }
                    (user.name, user.updated_at) = (name, now);
                    connection.update_user(&user).await?;
                    connection.delete_sessions_of(&user_id, Some(&session_id)).await?;
                    auditor.record(connection, Act::new(AuditAction::Claim, Resource::Users, &user_id)).await?;
                    Ok(true)
                })
            })
            .await?;
        if claimed { Ok(()) } else { Err(nothing()) }
    }
}
