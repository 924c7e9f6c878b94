//! The proof of addresses: the link of a mail, and the effects of the first proof of an address.
//!
//! Somebody can sign up with another person's address and wait. So the first proof of an address removes everything that
//! the account had before. It removes nothing if it comes from the browser that made the account, which has a session of the
//! account, or the cookie of its sign-up.

use std::collections::BTreeSet;

use blockbase_auth::{LinkToken, hash_token};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{
    AccountTokenRow, Connection, DbError, MailKind, Maker, MakerPart, NewSession, ThingKind, TokenKind, UserRow,
};

use super::guests::{Upgrade, carry_over};
use super::mail::{Asker, NewMail, first_language};
use super::password_links::{TOKEN_TRIES, is_admin, is_first_admin, log_ended, log_invalid};
use super::removal::keys_are_gone;
use super::types::{SignedIn, UserAnswer, hash_error};
use crate::App;
use crate::access::makers::{raise_versions_of, settle};
use crate::base::topic::{Topic, UpgradeMembers};
use crate::caller::Caller;
use crate::caller::client::{AuthProblem, Client};
use crate::outbox::audit::{Act, AuditAction, Auditor};
use crate::outbox::platform_event::Announcer;
use crate::outbox::record_events::WriteContext;
use crate::state::sign_in_tries::Try;

/// The accounts that belong to a browser, by its cookies.
#[derive(Clone, Debug, Default)]
pub(super) struct Browser {
    /// The user of the browser's session.
    session: Option<String>,
    /// The users that signed up in it and have not proved their address yet.
    signed_up: BTreeSet<String>,
}

impl Browser {
    fn is_of(&self, user: &UserRow) -> bool {
        self.session.as_ref() == Some(&user.id) || self.signed_up.contains(&user.id)
    }
}

/// The use of a link that proves an address: everything that the transaction needs.
#[derive(Clone)]
struct Proof {
    token_hash: String,
    browser: Browser,
    /// Whether the user signed up in this browser, and sign-ups wait for the proof.
    signed_up: bool,
    /// The guest who signed up.
    guest: Option<String>,
    /// The session that the browser gets.
    session: NewSession,
    /// The hash of a password that nobody knows.
    unknown_password: String,
    attempt: Try,
    /// The language of the notice to the earlier address, if the link changes the address.
    language: Option<String>,
    /// The writer of the audit log for the session that the browser gets.
    auditor: Auditor,
}

impl Proof {
    /// Uses the link. This is the transaction of [`App::verify_email`].
    async fn apply(
        self,
        app: &App,
        connection: &mut Connection,
        context: &mut WriteContext,
        announcer: &Announcer,
    ) -> Result<Outcome> {
        let now = context.now;
        connection.lock_accounts().await?;
        let token = connection.account_token(&self.token_hash, &TokenKind::OF_ADDRESSES, now).await?;
        let Some(token) = token else { return Ok(Outcome::Invalid) };
        let user = connection.held_user(&token.user_id).await?.filter(|user| !user.banned);
        let Some(mut user) = user else { return Ok(Outcome::Invalid) };
        // A stranger may have asked for this mail. A reader of the mail must not give the address to the stranger's account.
        if token.kind == TokenKind::EmailChange && self.browser.session.as_ref() != Some(&user.id) {
            return Ok(Outcome::OfAnother);
        }
        if !connection.use_account_token(&token).await? {
            return Ok(Outcome::Invalid);
        }
        if let Some(address) = token.address {
            let changed = app.change_address(connection, announcer, &mut user, address, self.language, now).await?;
            connection.sign_in_succeeded(&self.attempt.account, &self.attempt.network, now).await?;
            return Ok(if changed { Outcome::Changed(Box::new(user)) } else { Outcome::Invalid });
        }
        let signs_in = self.signed_up && !user.email_verified;
        let has_ended = app.prove_address(connection, &mut user, &self.browser, &self.unknown_password, now).await?;
        connection.sign_in_succeeded(&self.attempt.account, &self.attempt.network, now).await?;
        if signs_in {
            if let Some(guest) = &self.guest {
                let way = (guest.as_str(), user.id.as_str());
                if carry_over(connection, context, announcer, way, Upgrade::SignUp, now).await? {
                    let members = UpgradeMembers { user_id: &user.id, guest_id: guest };
                    announcer.emit(connection, Topic::UserUpgraded(members)).await?;
                }
            }
            connection.insert_session(self.session).await?;
            if is_admin(connection, &user.id).await? {
                self.auditor.record(connection, Act::new(AuditAction::SignIn, Resource::Users, &user.id)).await?;
            }
        }
        Ok(Outcome::Proved { user: Box::new(user), signs_in, has_ended })
    }
}

/// The outcome of a proof.
enum Outcome {
    Invalid,
    /// The link changes an address, and the browser has no session of that account.
    OfAnother,
    Proved {
        user: Box<UserRow>,
        /// Whether the browser that signed up gets a session now.
        signs_in: bool,
        /// Whether the account lost its sessions, its keys and its password.
        has_ended: bool,
    },
    /// The user with the new address.
    Changed(Box<UserRow>),
}

/// The effect of a link that proves an address.
pub enum AddressProof {
    /// Nothing has happened yet, because the link was opened outside of the account's browser. The person with this address is asked first.
    Asks(String),
    /// The address is proved. If the browser signed up with it, it has a session now.
    Proved(Option<SignedIn>),
    /// The account has another address now.
    Changed(UserAnswer),
}

impl App {
    pub(super) async fn browser_of(&self, client: &Client) -> Result<Browser> {
        let identity = self.identify(&client.credentials).await?.filter(|identity| identity.session().is_some());
        let cookies = client.credentials.cookies.as_deref().unwrap_or_default();
        Ok(Browser {
            session: identity.map(|identity| identity.user.id.clone()),
            signed_up: self.cookies.sign_ups_of_cookies(cookies).into_iter().collect(),
        })
    }

    /// Notes that an address is proved. If the first proof comes from another browser than that of the account, it ends the
    /// account's sessions, and replaces the password with that of `password_hash`. Unless the user is the first admin, it also ends
    /// the account's keys and suspends what was made with the account. The accounts are locked. Returns whether it ended these.
    ///
    /// The password is replaced and not removed: if nobody on a server has a password, the next sign-up gets the role `admin`.
    pub(super) async fn prove_address(
        &self,
        connection: &mut Connection,
        user: &mut UserRow,
        browser: &Browser,
        password_hash: &str,
        now: i64,
    ) -> Result<bool> {
        if user.email_verified {
            return Ok(false);
        }
        user.email_verified = true;
        user.updated_at = now;
        connection.set_proved_email(&user.id, &user.email, now).await?;
        let announcer = self.announcer(&App::as_user(&user.id));
        // Nobody can have used an account without a password, so it cannot contain anything of a stranger.
        let is_used = connection.password_hash(&user.id).await?.is_some();
        let ends = is_used && !browser.is_of(user);
        if ends {
            connection.delete_sessions_of(&user.id, None).await?;
            connection.set_password(&user.id, password_hash, now).await?;
            connection.end_claim(&user.id).await?;
        }
        // The first admin need not prove the address, so the first proof may be a reset of a forgotten password after years. A
        // stranger with this account could have made everything under another account, so this would protect nobody.
        if ends && !is_first_admin(connection, &user.id).await? {
            // Webhooks, tasks and the like were made by somebody else. From now on their maker is a user who does not exist.
            let things = connection.things_made_by(&user.id).await?;
            raise_versions_of(connection, &things).await?;
            let stranger = self.clock.id(now).to_string();
            for kind in ThingKind::ALL {
                connection.move_makership(kind, &user.id, &stranger).await?;
            }
            let keys = connection.api_keys_of_user(&user.id).await?;
            for holder in &keys {
                connection.delete_api_key(&holder.key.id).await?;
            }
            connection.end_links_made_by(&user.id).await?;
            settle(connection, &announcer, MakerPart::User(stranger), now).await?;
            keys_are_gone(connection, &announcer, keys, now).await?;
        }
        // Conditions with `$user.email` have a value from now on.
        settle(connection, &announcer, MakerPart::User(user.id.clone()), now).await?;
        Ok(ends)
    }

    /// Proves an address with the token of a mail. If sign-ups wait for this, the browser that signed up gets its session, and
    /// a guest who signed up in it keeps everything that the guest had.
    ///
    /// With `asks`, a first proof outside of the account's browser changes nothing, and needs a second call without
    /// `asks`. Programs that check mail open the links in it. Without this rule, they would end the password of the person who
    /// signed up.
    ///
    /// # Errors
    /// [`AuthProblem::ExpiredVerification`]; [`AuthProblem::InvalidVerification`] for any other fault of the token;
    /// `rate_limited` after too many wrong tokens.
    pub async fn verify_email(&self, client: &Client, token: &str, asks: bool) -> Result<AddressProof, AuthProblem> {
        let attempt = self.begin_try(TOKEN_TRIES, client).await?;
        let (token_hash, browser) = (hash_token(token), self.browser_of(client).await?);
        let (sought, now) = (token_hash.clone(), self.clock.now());
        let known = self
            .store
            .read_as_service(blockbase_store::ReadCost::Rows, move |connection| {
                // Expired tokens are kept for a while, so that their users learn why they do not work.
                Box::pin(async move { Ok(connection.account_token(&sought, &TokenKind::OF_ADDRESSES, 0).await?) })
            })
            .await?;
        let Some(known) = known else {
            log_invalid(client);
            return Err(AuthProblem::InvalidVerification);
        };
        if known.expires_at <= now {
            // Nobody guesses an expired token.
            self.try_succeeded(attempt).await?;
            return Err(AuthProblem::ExpiredVerification);
        }
        if asks && let Some(user) = self.ended_by_proof(&known, &browser).await? {
            self.try_succeeded(attempt).await?;
            return Ok(AddressProof::Asks(user.email));
        }
        let signed_up = browser.signed_up.contains(&known.user_id) && self.settings.require_email_verification;
        let guest = match signed_up {
            true => self.guest_of(&client.credentials).await?,
            false => None,
        };
        // Nobody knows this password.
        let random = LinkToken::random().map_err(Error::internal)?;
        let unknown_password = self.hasher.hash(random.as_str().to_owned()).await.map_err(hash_error)?;
        let (session, session_token) = self.new_session(&known.user_id, true, client)?;
        let caller = App::as_user(&known.user_id).with_origin(client.credentials.origin());
        let auditor = self.auditor(&caller).of_session(&session.id);
        let language = client.languages.as_deref().and_then(first_language);
        let proof = Proof { token_hash, browser, signed_up, guest, session, unknown_password, attempt, language, auditor };
        let (proof, caller) = (&proof, &caller);
        let outcome = self
            .on_schema(&Caller::system(), move |registry| async move {
                let (proof, app, announcer) = (proof.clone(), self.itself()?, self.announcer(caller));
                let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
                self.change_accounts(blockbase_store::Service, move |connection| {
                    Box::pin(async move { proof.apply(&app, connection, &mut context, &announcer).await })
                })
                .await
            })
            .await;
        let outcome = match outcome {
            Err(error) if error.code == Code::UniqueViolation => Outcome::Invalid,
            other => other?,
        };
        match outcome {
            Outcome::Invalid => {
                log_invalid(client);
                Err(AuthProblem::InvalidVerification)
            }
            Outcome::Proved { user, signs_in, has_ended } => {
                if has_ended {
                    log_ended(&user.id);
                }
                if proof.guest.is_some() && signs_in {
                    self.follow_carry_over(&user.id).await;
                }
                let session = signs_in.then(|| SignedIn { token: session_token, user: UserAnswer::from(&*user), remember: true });
                Ok(AddressProof::Proved(session))
            }
            Outcome::Changed(user) => Ok(AddressProof::Changed(UserAnswer::from(&*user))),
            Outcome::OfAnother => Err(AuthProblem::LinkOfAnother),
        }
    }

    /// The user of a token, if its use would end what the account has.
    async fn ended_by_proof(&self, token: &AccountTokenRow, browser: &Browser) -> Result<Option<UserRow>> {
        if token.kind != TokenKind::Verification {
            return Ok(None);
        }
        let id = token.user_id.clone();
        let found = self
            .store
            .read_as_service(blockbase_store::ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    let has_password = connection.password_hash(&id).await?.is_some();
                    Ok(connection.user(&id).await?.filter(|_| has_password))
                })
            })
            .await?;
        Ok(found.filter(|user| !user.email_verified && !user.banned && !browser.is_of(user)))
    }

    /// Gives a user another address, which they have proved. All links of the account end, and the earlier address is told, in
    /// `language`. Returns whether the address was free.
    async fn change_address(
        &self,
        connection: &mut Connection,
        announcer: &Announcer,
        user: &mut UserRow,
        address: String,
        language: Option<String>,
        now: i64,
    ) -> Result<bool> {
        if connection.user_of_email(&address).await?.is_some() {
            return Ok(false);
        }
        // On Postgres, a sign-up with the same address may commit at the same time.
        let stored = connection.set_proved_email(&user.id, &address, now).await;
        stored.map_err(|error| match error {
            DbError::Unique { .. } => Error::new(Code::UniqueViolation, "Another account has the address."),
            other => other.into(),
        })?;
        connection.end_account_tokens(&user.id).await?;
        let earlier = std::mem::replace(&mut user.email, address);
        user.email_verified = true;
        user.updated_at = now;
        let notice = NewMail {
            kind: MailKind::EmailChanged,
            address: &earlier,
            user_id: Some(&user.id),
            page: None,
            language,
            maker: Maker::default(),
            asker: Asker::default(),
        };
        self.ask_for_mail(connection, announcer, notice, now).await?;
        settle(connection, announcer, MakerPart::User(user.id.clone()), now).await?;
        Ok(true)
    }
}
