//! Sign-up: makes a new user. The first user becomes admin. A guest who signs up keeps everything that the guest had.

use blockbase_auth::{check_password, hash_token};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, MailKind, Maker, NewSession, UserRow};

use super::guests::{Upgrade, carry_over};
use super::mail::{Asker, CheckedRequest, MailRequest, NewMail};
use super::types::{ADMIN, SignedIn, UserAnswer, check_image, check_name, normal_email};
use crate::App;
use crate::base::topic::{NewUserMembers, Topic, UpgradeMembers};
use crate::caller::Caller;
use crate::caller::client::{AuthProblem, Client};
use crate::outbox::audit::{Act, AuditAction, Auditor};
use crate::outbox::platform_event::Announcer;
use crate::outbox::record_events::WriteContext;

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
    /// The user has to prove their address first. If the address is taken, this shows an account that does not exist.
    ///
    /// The response of the sign-up is the same in both cases. But a sign-in with the same password then reveals whether the
    /// address was free: [`AuthProblem::EmailNotVerified`] shows that the account exists.
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

/// Whether an account may be made.
enum Admission {
    /// It is the first one, and becomes admin.
    First,
    /// There are others already.
    Further,
    Refused(Outcome),
}

/// The name under which attempts with the setup token are counted. It is not an address, so it cannot be equal to an account's
/// address.
const SETUP_TOKEN_TRIES: &str = "the setup token";

fn needs_setup_token() -> AuthProblem {
    let message = "This server is fresh, and its first sign-up needs the setup token. Send it as `x-setup-token`. The \
                   operator of the server finds it in SVC_SETUP_TOKEN or in the log.";
    Error::new(Code::SetupTokenRequired, message).into()
}

/// A new account, after the checks that need no transaction.
#[derive(Clone)]
struct NewAccount {
    user: UserRow,
    password_hash: String,
    session: NewSession,
    /// The guest whose session the credentials have.
    guest: Option<String>,
    /// Whether the account may be the first one.
    may_be_first: bool,
    /// The page to which the link of a mail leads, and the language of the mail.
    page: Option<String>,
    language: Option<String>,
    asker: Asker,
}

impl NewAccount {
    /// Writes the account. This is the transaction of a sign-up.
    async fn insert(
        &self,
        app: &App,
        connection: &mut Connection,
        context: &mut WriteContext,
        announcer: &Announcer,
        auditor: &Auditor,
    ) -> Result<Outcome> {
        let is_first = match self.admission(app, connection).await? {
            Admission::First => true,
            Admission::Further => false,
            Admission::Refused(outcome) => return Ok(outcome),
        };
        if app.settings.require_email_verification && !is_first {
            return self.insert_waiting(app, connection, announcer).await;
        }
        if !connection.insert_user(&self.user, Some(self.password_hash.clone())).await? {
            return Ok(Outcome::EmailTaken);
        }
        let guest = self.guest.as_deref();
        let carried = match guest {
            Some(guest) => {
                let way = (guest, self.user.id.as_str());
                carry_over(connection, context, announcer, way, Upgrade::SignUp, self.user.created_at).await?
            }
            None => false,
        };
        self.give_first_role(app, connection, is_first, carried).await?;
        connection.insert_session(self.session.clone()).await?;
        self.announce(connection, announcer).await?;
        if is_first {
            // This account administers the server.
            let act = Act::on_user(AuditAction::Create, &self.user.id);
            auditor.record(connection, act.after(&UserAnswer::from(&self.user))).await?;
        }
        if let Some(guest) = guest.filter(|_| carried) {
            let members = UpgradeMembers { user_id: &self.user.id, guest_id: guest };
            announcer.emit(connection, Topic::UserUpgraded(members)).await?;
        }
        Ok(Outcome::Done)
    }

    /// Writes an account whose address has to be proved, and stores the mail with which the user proves it.
    ///
    /// If the address is taken, the server writes an account with a placeholder as its address, and then undoes this. Without the
    /// placeholder, the time of the response would reveal that the address is taken. The mail is then for the account that has the
    /// address, and is sent only if that account still has to prove it.
    ///
    /// The mail is counted first. So parallel sign-ups with one address wait for each other at its count, whether or not the
    /// address is taken. The role is locked last: a change of it is short and made by somebody trusted, but sign-ups that wait
    /// for a count could keep it locked for as long as anybody makes new ones. While a change of the role runs, a sign-up holds the
    /// counts of its address and of its network, so other requests for mail from this network wait too.
    async fn insert_waiting(&self, app: &App, connection: &mut Connection, announcer: &Announcer) -> Result<Outcome> {
        let now = self.user.created_at;
        let mut mail = NewMail {
            kind: MailKind::Verify,
            address: &self.user.email,
            user_id: None,
            page: self.page.clone(),
            language: self.language.clone(),
            maker: Maker::default(),
            asker: self.asker.clone(),
        };
        let is_mailed = app.count_mail_of_sign_up(connection, &mail, now).await?;
        let is_taken = connection.user_of_email(&self.user.email).await?.is_some();
        let nested = connection.begin_nested().await?;
        let is_new = !is_taken && connection.insert_user(&self.user, Some(self.password_hash.clone())).await?;
        if !is_new {
            // Every address contains `@`, so nobody has the placeholder.
            let user = UserRow { email: format!("taken-{}", self.user.id), ..self.user.clone() };
            if !connection.insert_user(&user, Some(self.password_hash.clone())).await? {
                return Err(Error::internal("the placeholder of a taken address is taken"));
            }
        }
        // The roles of a guest move to the account when the address is proved.
        self.give_first_role(app, connection, false, self.guest.is_some()).await?;
        self.announce(connection, announcer).await?;
        match is_new {
            true => connection.commit_nested(nested).await?,
            false => connection.undo_nested(nested).await?,
        }
        if is_mailed {
            mail.user_id = is_new.then_some(self.user.id.as_str());
            // As for every mail that is asked for without a session, the event has no actor.
            let of_nobody = app.announcer(&Caller::nobody());
            app.store_mail(connection, &of_nobody, mail, now).await?;
        }
        Ok(Outcome::Waits)
    }

    /// Writes the event of the new account.
    async fn announce(&self, connection: &mut Connection, announcer: &Announcer) -> Result<()> {
        let members = NewUserMembers { user_id: &self.user.id, is_anonymous: false };
        announcer.emit(connection, Topic::UserCreated(members)).await
    }

    /// Whether the account may be made, and whether it is the first one.
    async fn admission(&self, app: &App, connection: &mut Connection) -> Result<Admission> {
        let mut is_first = !connection.has_credentialed_user().await?;
        if is_first || self.guest.is_some() {
            // If several first sign-ups run at the same time, also on several instances, only one of them passes this lock first. A
            // guest's upgrade deletes the guest, and every deletion of a user locks the accounts before anything else.
            connection.lock_accounts().await?;
            is_first = !connection.has_credentialed_user().await?;
        }
        Ok(match is_first {
            true if !self.may_be_first => Admission::Refused(Outcome::NeedsSetupToken),
            true => Admission::First,
            false if app.settings.disable_signup => Admission::Refused(Outcome::Closed),
            false => Admission::Further,
        })
    }

    /// Gives the user their first role. Guests who sign up keep the roles that they had, and get no further role. The configured
    /// role may not exist yet. The server logged a warning about this at boot.
    async fn give_first_role(&self, app: &App, connection: &mut Connection, is_first: bool, is_of_guest: bool) -> Result<()> {
        let role = match (is_first, is_of_guest) {
            (true, _) => Some(ADMIN),
            (false, false) => app.settings.signup_role.as_deref(),
            (false, true) => None,
        };
        let Some(role) = role else { return Ok(()) };
        match connection.give_role_named(&self.user.id, role).await? {
            false if is_first => Err(Error::internal("there is no role `admin`")),
            _ => Ok(()),
        }
    }
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
        let may_be_first = self.check_open(has_users, setup_token.as_deref(), &client).await?;
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
        let caller = App::as_user(&user.id).with_origin(client.credentials.origin());
        let mail = MailRequest { email: user.email.clone(), page: callback, languages: client.languages.clone() };
        let CheckedRequest { page, language, .. } = mail.checked()?;
        let asker = Asker::client(&client);
        let account = NewAccount { user, password_hash, session, guest, may_be_first, page, language, asker };
        let (new, caller) = (&account, &caller);
        let outcome = self
            .on_schema(&Caller::system(), move |registry| async move {
                self.store.check_room()?;
                let (new, app, announcer) = (new.clone(), self.itself()?, self.announcer(caller));
                let auditor = self.auditor(caller).of_session(&new.session.id);
                let mut context = self.context_of(caller, &registry, self.settings.events_enabled);
                // The first user changes the cached data about the service itself (`App::instance`).
                self.add_to_accounts(new.guest.is_some() || !has_users, move |connection| {
                    Box::pin(async move { new.insert(&app, connection, &mut context, &announcer, &auditor).await })
                })
                .await
            })
            .await?;
        let NewAccount { user, guest, .. } = account;
        if guest.is_some() && matches!(outcome, Outcome::Done) {
            self.follow_carry_over(&user.id).await;
        }
        match outcome {
            Outcome::Waits => Ok(SignedUp::Waits(UserAnswer::from(&user))),
            Outcome::Done => Ok(SignedUp::SignedIn(SignedIn { token, user: UserAnswer::from(&user), remember })),
            Outcome::EmailTaken => Err(AuthProblem::UserExists),
            Outcome::Closed => Err(AuthProblem::SignUpDisabled),
            Outcome::NeedsSetupToken => Err(needs_setup_token()),
        }
    }

    /// Checks that the server takes sign-ups, and returns whether this one may be the first.
    ///
    /// # Errors
    /// [`AuthProblem::SignUpDisabled`]; `setup_token_required` without the token of a fresh server; `rate_limited` after too many
    /// tokens.
    async fn check_open(&self, has_users: bool, setup_token: Option<&str>, client: &Client) -> Result<bool, AuthProblem> {
        if self.settings.disable_signup && has_users {
            return Err(AuthProblem::SignUpDisabled);
        }
        if !has_users && self.settings.setup_token.is_some() && setup_token.is_some() {
            // The limits make guessing the token as slow as guessing a password.
            self.begin_try(SETUP_TOKEN_TRIES, client).await?;
        }
        match self.holds_setup_token(setup_token) {
            false if !has_users => Err(needs_setup_token()),
            may_be_first => Ok(may_be_first),
        }
    }

    /// Whether a sign-up may be the first one. It compares hashes, because the time of the comparison then reveals nothing about
    /// the token.
    fn holds_setup_token(&self, sent: Option<&str>) -> bool {
        let Some(wanted) = &self.settings.setup_token else { return true };
        sent.is_some_and(|sent| hash_token(sent.trim()) == hash_token(wanted))
    }
}
