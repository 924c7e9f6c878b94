//! Accounts: sign-up, sign-in, guests, sessions, the account made at boot.

mod bootstrap;
mod guests;
mod profile;
mod sessions;
mod sign_in;
mod sign_up;
mod tries;

use std::sync::Arc;

use blockbase_auth::{HashError, PasswordProblem, SessionToken};
use blockbase_schema::{Code, Error, is_email, time};
use blockbase_store::{NewSession, ReadCost, SessionRow, UserRow};
use serde_json::{Value, json};

pub use bootstrap::BootstrapAdmin;
pub use profile::ProfileChanges;
pub use sign_in::SignIn;
pub use sign_up::SignUp;
pub(crate) use tries::{TryLimits, account_of};

use crate::App;
use crate::caller::{Caller, Credentials};
use crate::identity::{Identity, Presented, SESSION_MS, SHORT_SESSION_MS, Shown};

/// The role that may do everything.
pub(crate) const ADMIN: &str = "admin";
/// The role that every guest has.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Where a session comes from, and whether the client keeps it.
#[derive(Clone, Debug, Default)]
pub struct Client {
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
    /// What the request presented: a guest's session is carried over.
    pub credentials: Credentials,
}

/// A new session.
pub struct SignedIn {
    /// Shown to the caller once.
    pub token: SessionToken,
    pub user: Value,
    pub remember: bool,
}

/// Why an authentication request was refused; the surface has the protocol's own codes for these.
#[derive(Debug)]
pub enum AuthProblem {
    UserExists,
    PasswordTooShort,
    PasswordTooLong,
    PasswordIsEmail,
    PasswordIsCommon,
    InvalidEmail,
    /// A member of the body is missing, or of another type, or too long.
    Validation(String),
    SignUpDisabled,
    InvalidEmailOrPassword,
    /// There is no session, and one is needed.
    NoSession,
    /// The current password is another.
    InvalidPassword,
    /// A guest has no password to change.
    NoCredential,
    EmailCannotChange,
    NothingToChange,
    /// A guest asked to become a guest.
    GuestAlready,
    NoGuest,
    /// Guest sign-in is off.
    GuestsOff,
    Other(Error),
}

impl From<Error> for AuthProblem {
    fn from(error: Error) -> Self {
        AuthProblem::Other(error)
    }
}

impl From<PasswordProblem> for AuthProblem {
    fn from(problem: PasswordProblem) -> Self {
        match problem {
            PasswordProblem::TooShort => AuthProblem::PasswordTooShort,
            PasswordProblem::TooLong => AuthProblem::PasswordTooLong,
            PasswordProblem::IsEmail => AuthProblem::PasswordIsEmail,
            PasswordProblem::IsCommon => AuthProblem::PasswordIsCommon,
        }
    }
}

/// Why a password is refused, as an error of the API beside `/api/auth`: `invalid_value` on `field`.
fn password_error(problem: PasswordProblem, field: &str) -> Error {
    let what = match problem {
        PasswordProblem::TooShort => "has 8 characters at least",
        PasswordProblem::TooLong => "has 128 characters at most",
        PasswordProblem::IsEmail => "is not the address itself",
        PasswordProblem::IsCommon => "is not one of the commonest passwords",
    };
    Error::new(Code::InvalidValue, format!("`{field}`: a password {what}.")).with_field(field)
}

/// Why a password could not be looked at.
pub(crate) fn hash_error(error: HashError) -> Error {
    match error {
        HashError::Busy => {
            Error::new(Code::Unavailable, "More passwords wait to be checked than this server takes. Try again shortly.")
        }
        HashError::Failed(cause) => Error::internal(cause),
    }
}

/// The user as every answer shows it.
pub(crate) fn render_user(user: &UserRow) -> Value {
    json!({
        "id": user.id,
        "name": user.name,
        "email": user.email,
        "emailVerified": user.email_verified,
        "image": user.image,
        "isAnonymous": user.is_anonymous,
        "createdAt": time::format_datetime(user.created_at),
        "updatedAt": time::format_datetime(user.updated_at),
    })
}

/// The session as its own user sees it.
fn render_session(session: &SessionRow, token: Option<&str>) -> Value {
    json!({
        "id": session.id,
        "token": token,
        "userId": session.user_id,
        "expiresAt": time::format_datetime(session.expires_at),
        "createdAt": time::format_datetime(session.created_at),
        "updatedAt": time::format_datetime(session.updated_at),
        "ipAddress": session.ip_address,
        "userAgent": session.user_agent,
    })
}

/// An address as it is stored and compared: lower case.
fn normal_email(email: &str) -> Option<String> {
    let email = email.trim().to_lowercase();
    is_email(&email).then_some(email)
}

/// Longest display name in characters.
const NAME_CHARS_MAX: usize = 200;
/// Longest reference to an image in characters.
const IMAGE_CHARS_MAX: usize = 2000;
/// Longest user agent kept, in characters.
const USER_AGENT_CHARS_MAX: usize = 500;

/// Checks what a user may be called.
pub(crate) fn check_name(name: &str) -> Result<(), AuthProblem> {
    match name.chars().count() <= NAME_CHARS_MAX && !name.contains('\0') {
        true => Ok(()),
        false => Err(AuthProblem::Validation(format!("`name` holds {NAME_CHARS_MAX} characters at most, and no NUL."))),
    }
}

fn check_image(image: Option<&str>) -> Result<(), AuthProblem> {
    match image.is_none_or(|image| image.chars().count() <= IMAGE_CHARS_MAX && !image.contains('\0')) {
        true => Ok(()),
        false => Err(AuthProblem::Validation(format!("`image` is a URL of {IMAGE_CHARS_MAX} characters at most, without NUL."))),
    }
}

impl App {
    /// A session that begins now, and its token.
    fn new_session(&self, user_id: &str, remember: bool, client: &Client) -> Result<(NewSession, SessionToken), Error> {
        let token = SessionToken::random().map_err(Error::internal)?;
        let now = self.clock.now();
        let agent = client.user_agent.as_ref();
        let session = NewSession {
            id: self.clock.id(now).to_string(),
            token_hash: token.hash(),
            user_id: user_id.to_owned(),
            expires_at: now + if remember { SESSION_MS } else { SHORT_SESSION_MS },
            now,
            ip_address: client.ip_address.clone(),
            user_agent: agent.map(|agent| agent.chars().take(USER_AGENT_CHARS_MAX).collect()),
            is_bootstrap: false,
        };
        Ok((session, token))
    }

    /// The service acting in the name of a user who has no session yet.
    fn as_user(user_id: &str) -> Caller {
        let actor =
            blockbase_auth::Actor { user_id: Some(user_id.to_owned()), api_key_id: None, via: blockbase_auth::Via::Session };
        Caller { principal: blockbase_auth::Principal::Known(actor), ..Caller::nobody() }
    }

    /// Whether somebody has signed up before. Guests do not count.
    async fn has_users(&self) -> Result<bool, Error> {
        self.store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.has_credentialed_user().await?) }))
            .await
    }

    /// The hash of a user's password; a guest has none.
    async fn password_hash(&self, user_id: &str) -> Result<Option<String>, Error> {
        let user_id = user_id.to_owned();
        self.store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(connection.password_hash(&user_id).await?) })
            })
            .await
    }

    /// Who presents `credentials`, as the JSON of `/api/v1/me`; `None` where they do not hold, which is an answer and no error.
    pub async fn me(&self, credentials: &Credentials) -> Result<Option<Arc<str>>, Error> {
        let found = self.identify(credentials).await?;
        Ok(found.map(|identity| Arc::clone(identity.verdict.get_or_init(|| render_verdict(&identity).to_string().into()))))
    }

    /// `{ session, user }` of the session that the credentials show, if they show one.
    pub async fn current_session(&self, credentials: &Credentials) -> Result<Option<Value>, Error> {
        let Some(identity) = self.identify(credentials).await? else { return Ok(None) };
        let (Presented::Bearer(Some(token)) | Presented::Cookie(token)) = self.presented(credentials) else { return Ok(None) };
        let render = |session| json!({ "session": render_session(session, Some(&token)), "user": render_user(&identity.user) });
        Ok(identity.session().map(render))
    }
}

/// `{ authenticated, userId, roles, user, apiKeyId?, suspended?, pendingClaim? }`.
fn render_verdict(identity: &Identity) -> Value {
    let mut verdict = json!({
        "authenticated": true,
        "userId": identity.user.id,
        "roles": identity.roles,
        "user": render_user(&identity.user),
    });
    if let Some(key) = identity.api_key() {
        verdict["apiKeyId"] = json!(key.id);
    }
    if identity.suspended.is_some() {
        verdict["suspended"] = json!(true);
    }
    if matches!(identity.shown, Shown::Session { pending_claim: true, .. }) {
        verdict["pendingClaim"] = json!(true);
    }
    verdict
}
