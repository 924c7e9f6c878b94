//! Sign-up: makes a new user. The first user becomes admin. A guest who signs up keeps everything that the guest had.

use blockbase_auth::{check_password, hash_token};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, MailKind, Maker, UserRow};

use super::guests::{Upgrade, carry_over};
use super::mail::{Asker, CheckedRequest, MailRequest, NewMail};
use super::types::{ADMIN, SignedIn, UserAnswer, check_image, check_name, normal_email};
use crate::App;
use crate::base::topic::{NewUserMembers, Topic, UpgradeMembers};
use crate::caller::Caller;
use crate::caller::client::{AuthProblem, Client};
use crate::outbox::platform_event::Announcer;

/// The parameters of a sign-up.
#[derive(Clone)]
pub struct SignUp {
    pub name: String,
    pub email: String,
    pub password: String,
    pub image: Option<String>,
    pub remember: bool,
    /// The request's header `x-setup-token`.
    pub setup_token: Option<String>,
    pub client: Client,
    /// The page to which the client goes afterwards. The surface has checked that it is trusted.
    pub callback: Option<String>,
}

/// The result of a sign-up.
pub enum SignedUp {
    SignedIn(SignedIn),
    /// The user has to prove their address first. If the address is taken, this shows an account that does not exist. The
    /// client cannot tell the two cases apart.
    Waits(UserAnswer),
}

/// The decision of the transaction.
enum Outcome {
    Done,
    /// The address has to be proved. Or it is taken, and the answer must not reveal that.
    Waits,
    EmailTaken,
    Closed,
    NeedsSetupToken,
}

/// The name under which attempts with the setup token are counted. It is not an address, so it cannot be equal to an account's
/// address.
const SETUP_TOKEN_TRIES: &str = "the setup token";

fn needs_setup_token() -> AuthProblem {
    let message = "This server is fresh, and its first sign-up needs the setup token. Send it as `x-setup-token`. The \
                   operator of the server finds it in SVC_SETUP_TOKEN or in the log.";
    Error::new(Code::SetupTokenRequired, message).into()
}

/// Asks for the mail with which a new user proves the address.
async fn ask_for_proof(app: &App, connection: &mut Connection, announcer: &Announcer, mail: NewMail<'_>, now: i64) -> Result<()> {
    match app.ask_for_mail(connection, announcer, mail, now).await {
        // A sign-in asks for another mail later.
        Err(error) if error.code == Code::RateLimited => Ok(()),
        asked => asked.map(drop),
    }
}

/// Gives a new user their first role. The configured role may not exist yet. The server logged a warning about this at boot.
async fn give_first_role(connection: &mut Connection, user_id: &str, role: &str, is_first: bool) -> Result<()> {
    match connection.kept_role_named(role).await? {
        Some(role) => connection.give_role(user_id, &role.id).await?,
        None if is_first => return Err(Error::internal("there is no role `admin`")),
        None => {}
    }
    Ok(())
}

impl App {
    /// Creates a user and signs them in. The very first user becomes admin.
    ///
    /// If the credentials have a guest's session, it ends, and the new user gets everything that the guest had. If the sign-up
    /// fails, the guest does not change.
    ///
    /// If addresses have to be proved, only the first user is signed in. The others get a mail with the link that proves the
    /// address, and a guest stays a guest until the link is used.
    pub async fn sign_up(&self, request: SignUp) -> Result<SignedUp, AuthProblem> {
        let SignUp { name, email, password, image, remember, setup_token, client, callback } = request;
        let email = normal_email(&email).ok_or_else(|| AuthProblem::Validation("`email` is not an address.".to_owned()))?;
        check_name(&name)?;
        check_image(image.as_deref())?;
        check_password(&password, &email)?;
        let has_users = self.has_users().await?;
        if self.settings.disable_signup && has_users {
            return Err(AuthProblem::SignUpDisabled);
        }
        if !has_users && self.settings.setup_token.is_some() && setup_token.is_some() {
            // The limits make guessing the token as slow as guessing a password.
            self.begin_try(SETUP_TOKEN_TRIES, &client).await?;
        }
        let may_be_first = self.holds_setup_token(setup_token.as_deref());
        if !may_be_first && !has_users {
            return Err(needs_setup_token());
        }
        let guest = self.guest_of(&client.credentials).await?;
        let password_hash = self.hash_chosen(password).await??;
        let now = self.clock.now();
        let user = UserRow {
            id: self.clock.id(now).to_string(),
            name,
            email,
            email_verified: false,
            image,
            is_anonymous: false,
            banned: false,
            created_at: now,
            updated_at: now,
        };
        let (session, token) = self.new_session(&user.id, remember, &client)?;
        let caller = App::as_user(&user.id);
        let mail = MailRequest { email: user.email.clone(), page: callback, languages: client.languages.clone() };
        let CheckedRequest { page, language, .. } = mail.checked()?;
        let asker = Asker::client(&client);
        let (user, password_hash, session, guest, caller, page, language, asker) =
            (&user, &password_hash, &session, &guest, &caller, &page, &language, &asker);
        let outcome = self
            .on_schema(&Caller::system(), move |registry| async move {
                self.store.check_room()?;
                let (user, hash, session, guest) = (user.clone(), password_hash.clone(), session.clone(), guest.clone());
                let (app, page, language, asker) = (self.itself()?, page.clone(), language.clone(), asker.clone());
                let announcer = self.announcer(caller);
                let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
                let (closes, signup_role) = (self.settings.disable_signup, self.settings.signup_role.clone());
                // The first user changes the cached data about the service itself (`App::instance`).
                self.add_to_accounts(guest.is_some() || !has_users, move |connection| {
                    Box::pin(async move {
                        let mut is_first = !connection.has_credentialed_user().await?;
                        if is_first || guest.is_some() {
                            // If several first sign-ups run at the same time, also on several instances, only one of them passes
                            // this lock first. A guest's upgrade deletes the guest, and every deletion of a user locks the
                            // accounts before anything else.
                            connection.lock_accounts().await?;
                            is_first = !connection.has_credentialed_user().await?;
                        }
                        if is_first && !may_be_first {
                            return Ok(Outcome::NeedsSetupToken);
                        }
                        if !is_first && closes {
                            return Ok(Outcome::Closed);
                        }
                        let waits = app.settings.require_email_verification && !is_first;
                        let guest = guest.filter(|_| !waits);
                        let is_new = connection.insert_user(&user, Some(hash)).await?;
                        if waits {
                            // If the address is taken, the server does the same work. The account with this address gets a mail
                            // only if the address still has to be proved.
                            let mail = NewMail {
                                kind: MailKind::Verify,
                                address: &user.email,
                                user_id: is_new.then_some(user.id.as_str()),
                                page,
                                language,
                                maker: Maker::default(),
                                asker,
                            };
                            ask_for_proof(&app, connection, &announcer, mail, now).await?;
                        }
                        if !is_new {
                            return Ok(if waits { Outcome::Waits } else { Outcome::EmailTaken });
                        }
                        let carried = match &guest {
                            Some(guest) => {
                                let way = (guest.as_str(), user.id.as_str());
                                carry_over(connection, &mut context, &announcer, way, Upgrade::SignUp, now).await?
                            }
                            None => false,
                        };
                        let role = match (is_first, carried, signup_role) {
                            (true, _, _) => Some(ADMIN.to_owned()),
                            (false, false, name) => name,
                            // Former guests keep the roles that they had, and get no further role.
                            (false, true, _) => None,
                        };
                        if let Some(role) = role {
                            give_first_role(connection, &user.id, &role, is_first).await?;
                        }
                        if !waits {
                            connection.insert_session(session).await?;
                        }
                        let members = NewUserMembers { user_id: &user.id, is_anonymous: false };
                        announcer.emit(connection, Topic::UserCreated(members)).await?;
                        if let Some(guest) = guest.filter(|_| carried) {
                            let members = UpgradeMembers { user_id: &user.id, guest_id: &guest };
                            announcer.emit(connection, Topic::UserUpgraded(members)).await?;
                        }
                        Ok(if waits { Outcome::Waits } else { Outcome::Done })
                    })
                })
                .await
            })
            .await?;
        if guest.is_some() && matches!(outcome, Outcome::Done) {
            self.follow_carry_over(&user.id).await;
        }
        match outcome {
            Outcome::Waits => Ok(SignedUp::Waits(UserAnswer::from(user))),
            Outcome::Done => Ok(SignedUp::SignedIn(SignedIn { token, user: UserAnswer::from(user), remember })),
            Outcome::EmailTaken => Err(AuthProblem::UserExists),
            Outcome::Closed => Err(AuthProblem::SignUpDisabled),
            Outcome::NeedsSetupToken => Err(needs_setup_token()),
        }
    }

    /// Whether a sign-up may be the first one. It compares hashes, because the time of the comparison then reveals nothing about
    /// the token.
    fn holds_setup_token(&self, sent: Option<&str>) -> bool {
        let Some(wanted) = &self.settings.setup_token else { return true };
        sent.is_some_and(|sent| hash_token(sent.trim()) == hash_token(wanted))
    }
}
