//! Sign-in with a password.

use blockbase_schema::{Code, Resource, Result};
use blockbase_store::{Service, SignInState};

use super::guests::{Upgrade, carry_over};
use super::mail::MailRequest;
use super::password_links::is_admin;
use super::sessions::SESSIONS_OF_USER_MAX;
use super::types::{ADMIN, SignedIn, UserAnswer, hash_error, normal_email};
use crate::App;
use crate::base::topic::{Topic, UpgradeMembers};
use crate::caller::Caller;
use crate::caller::client::{AuthProblem, Client};
use crate::outbox::audit::{Act, AuditAction};

/// The parameters of a sign-in.
#[derive(Clone, Debug)]
pub struct SignIn {
    pub email: String,
    pub password: String,
    pub remember: bool,
    pub client: Client,
    /// The page to which the client goes afterwards. The surface has checked that it is trusted.
    pub callback: Option<String>,
}

/// The decision of the transaction.
enum Outcome {
    SignedIn,
    Refused,
    /// The sign-in has to end other sessions, but the transaction did not begin as one that ends sessions.
    EndsOthers,
}

impl App {
    /// Signs in with a password. A wrong password and an unknown user get the same answer after the same time.
    ///
    /// If the credentials show a guest's session, it ends, and the user gets everything that the guest had. If the user has the
    /// maximum number of sessions, those that were used least recently end.
    pub async fn sign_in(&self, request: SignIn) -> Result<SignedIn, AuthProblem> {
        let SignIn { email, password, remember, client, callback } = request;
        let email = normal_email(&email).ok_or(AuthProblem::InvalidEmail)?;
        // The hash is read here, before the delay of the attempt and before the password is checked. Meanwhile the password may
        // change, or the user may be banned. So the transaction that stores the session compares the hash and the ban again.
        let sought = email.clone();
        let (attempt, found) = self
            .begin_try_and_read(&email, &client, move |connection| {
                Box::pin(async move { Ok(connection.credential(&sought).await?) })
            })
            .await?;
        let (user, hash) = found.unzip();
        let account = user.as_ref().map(|user| user.id.clone());
        let holds = self.hasher.verify(password, hash.clone()).await.map_err(hash_error)?;
        let (Some(user), Some(hash)) = (user.filter(|user| holds && !user.banned), hash) else {
            self.log_failed_try(&email, &client, "a sign-in");
            self.note_failed_sign_in(account, &client).await;
            return Err(AuthProblem::InvalidEmailOrPassword);
        };
        if self.waits_for_proof(&user).await? {
            let request = MailRequest { email: user.email.clone(), page: callback, languages: client.languages.clone() };
            self.try_succeeded(attempt).await?;
            match self.request_verification_of(&client, &user, request).await {
                // The answer is the same without a mail.
                Err(AuthProblem::Other(error)) if error.code == Code::RateLimited => {}
                asked => asked?,
            }
            return Err(AuthProblem::EmailNotVerified { user_id: user.id });
        }
        let guest = self.guest_of(&client.credentials).await?;
        let (session, token) = self.new_session(&user.id, remember, &client)?;
        let caller = App::as_user(&user.id).with_origin(client.credentials.origin());
        let now = self.clock.now();
        let (user, session, guest, hash, caller, attempt) = (&user, &session, &guest, &hash, &caller, &attempt);
        let system = Caller::system();
        let sign_in = |ends_others: bool| {
            self.on_schema(&system, move |registry| async move {
                let (user_id, mut session, guest, hash) = (user.id.clone(), session.clone(), guest.clone(), hash.clone());
                let attempt = attempt.clone();
                let (announcer, auditor) = (self.announcer(caller), self.auditor(caller).of_session(&session.id));
                let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
                self.add_to_accounts(ends_others, move |connection| {
                    Box::pin(async move {
                        if guest.is_some() {
                            // The accounts are locked first, as in every other change that deletes a user.
                            connection.lock_accounts().await?;
                        }
                        // The sign-in fails if the user was banned or the password changed in between. Neither can happen before
                        // the end of this transaction.
                        if !connection.keep_user_alone(&user_id).await? {
                            return Ok(Outcome::Refused);
                        }
                        let state = connection.sign_in_state(&user_id, ADMIN, now).await?;
                        let holds = |state: &SignInState| !state.banned && state.password_hash.as_ref() == Some(&hash);
                        let Some(state) = state.filter(holds) else { return Ok(Outcome::Refused) };
                        if state.sessions >= SESSIONS_OF_USER_MAX {
                            if !ends_others {
                                return Ok(Outcome::EndsOthers);
                            }
                            connection.delete_oldest_sessions(&user_id, now, SESSIONS_OF_USER_MAX - 1).await?;
                        }
                        session.is_bootstrap = state.awaits_claim;
                        let mut as_admin = state.is_admin;
                        if let Some(guest) = &guest
                            && carry_over(connection, &mut context, &announcer, (guest, &user_id), Upgrade::SignIn, now).await?
                        {
                            let members = UpgradeMembers { user_id: &user_id, guest_id: guest };
                            announcer.emit(connection, Topic::UserUpgraded(members)).await?;
                            // The user got the roles of the guest.
                            as_admin = is_admin(connection, &user_id).await?;
                        }
                        connection.insert_session(session).await?;
                        if as_admin {
                            auditor.record(connection, Act::new(AuditAction::SignIn, Resource::Users, &user_id)).await?;
                        }
                        connection.sign_in_succeeded(&attempt.account, &attempt.network, now).await?;
                        Ok(Outcome::SignedIn)
                    })
                })
                .await
            })
        };
        // With a guest, the transaction deletes a user, so it ends sessions anyway.
        let mut ends_others = guest.is_some();
        let is_signed_in = loop {
            match sign_in(ends_others).await? {
                Outcome::SignedIn => break true,
                Outcome::Refused => break false,
                Outcome::EndsOthers => ends_others = true,
            }
        };
        if guest.is_some() {
            self.follow_carry_over(&user.id).await;
        }
        match is_signed_in {
            true => Ok(SignedIn { token, user: UserAnswer::from(user), remember }),
            false => {
                self.note_failed_sign_in(account, &client).await;
                Err(AuthProblem::InvalidEmailOrPassword)
            }
        }
    }

    /// Counts a failed sign-in in the audit log. If that is not possible, the client gets the same answer.
    async fn note_failed_sign_in(&self, user_id: Option<String>, client: &Client) {
        let auditor = self.auditor_of(client.credentials.origin());
        let noted = self.store.write(Service, move |connection| {
            Box::pin(async move { auditor.count_failed_sign_in(connection, user_id.as_deref()).await })
        });
        if let Err(error) = noted.await {
            tracing::warn!(error.cause = %error, "a failed sign-in is missing in the audit log");
        }
    }
}
