//! The answers of the operations on accounts, and their checks of names and addresses.

use std::ops::Not;

use blockbase_auth::{HashError, PasswordProblem, SessionToken};
use blockbase_schema::{Code, Error, Result, is_email};
use blockbase_store::{SessionRow, UserRow};
use schemars::JsonSchema;
use serde::Serialize;

use crate::App;
use crate::base::answer::Timestamp;
use crate::caller::client::AuthProblem;
use crate::caller::identity::{Credential, Identity};

/// The role that may do everything.
pub(crate) const ADMIN: &str = "admin";
/// The role that every guest has.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// A new session.
pub struct SignedIn {
    /// The token, which the caller sees only this once.
    pub token: SessionToken,
    pub user: UserAnswer,
    pub remember: bool,
}

/// The error for a refused password in the API outside of `/api/auth`: `invalid_value` on `field`.
pub(crate) fn password_error(problem: PasswordProblem, field: &str) -> Error {
    let what = match problem {
        PasswordProblem::TooShort => "has 8 characters at least",
        PasswordProblem::TooLong => "has 128 characters at most",
        PasswordProblem::IsEmail => "is not the address itself",
        PasswordProblem::IsCommon => "is not one of the commonest passwords",
        PasswordProblem::IsBreached => "is not one that was in a data breach",
    };
    Error::new(Code::InvalidValue, format!("`{field}`: a password {what}.")).with_field(field)
}

/// The error for a password that could not be hashed or checked.
pub(crate) fn hash_error(error: HashError) -> Error {
    match error {
        HashError::Busy => {
            Error::new(Code::Unavailable, "More passwords wait to be checked than this server takes. Try again shortly.")
        }
        HashError::Failed(cause) => Error::internal(cause),
    }
}

/// The error for something that was done too often in a window of time. It ends in `left_ms` milliseconds.
pub(super) fn too_many(what: &str, left_ms: i64) -> Error {
    let seconds = u16::try_from(left_ms / 1000 + 1).unwrap_or(u16::MAX);
    Error::new(Code::RateLimited, format!("{what}. Try again in {seconds} s.")).with_retry_after(seconds)
}

impl App {
    /// The hash of a password that somebody chooses, unless the password was in a breach.
    pub(super) async fn hash_chosen(&self, password: String) -> Result<Result<String, PasswordProblem>> {
        let breached = self.settings.breached_passwords.clone();
        let is_refused = move |password: &str| breached.map_or(Ok(false), |breached| breached.has(password));
        let hash = self.hasher.hash_unless(password, is_refused).await.map_err(hash_error)?;
        Ok(hash.ok_or(PasswordProblem::IsBreached))
    }
}

/// A user.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcUser", deny_unknown_fields)]
pub struct UserAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    name: String,
    email: String,
    email_verified: bool,
    image: Option<String>,
    is_anonymous: bool,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl UserAnswer {
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl From<&UserRow> for UserAnswer {
    fn from(user: &UserRow) -> UserAnswer {
        UserAnswer {
            id: user.id.clone(),
            name: user.name.clone(),
            email: user.email.clone(),
            email_verified: user.email_verified,
            image: user.image.clone(),
            is_anonymous: user.is_anonymous,
            created_at: Timestamp(user.created_at),
            updated_at: Timestamp(user.updated_at),
        }
    }
}

/// The session of a request, as its user sees it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcSession", deny_unknown_fields)]
pub struct SessionAnswer {
    #[schemars(extend("format" = "uuid"))]
    pub(super) id: String,
    pub(super) token: String,
    #[serde(flatten)]
    pub(super) facts: SessionFacts,
}

/// One of the caller's sessions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SvcListedSession", deny_unknown_fields)]
pub struct ListedSession {
    #[schemars(extend("format" = "uuid"))]
    pub(super) id: String,
    /// Always null, because tokens are not shown.
    pub(super) token: (),
    #[serde(flatten)]
    pub(super) facts: SessionFacts,
    /// Whether it is the session of this request.
    pub(super) current: bool,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionFacts {
    #[schemars(extend("format" = "uuid"))]
    pub(crate) user_id: String,
    pub(crate) expires_at: Timestamp,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) ip_address: Option<String>,
    pub(crate) user_agent: Option<String>,
}

impl From<&SessionRow> for SessionFacts {
    fn from(session: &SessionRow) -> SessionFacts {
        SessionFacts {
            user_id: session.user_id.clone(),
            expires_at: Timestamp(session.expires_at),
            created_at: Timestamp(session.created_at),
            updated_at: Timestamp(session.updated_at),
            ip_address: session.ip_address.clone(),
            user_agent: session.user_agent.clone(),
        }
    }
}

/// The session of a request, and its user.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub struct CurrentSession {
    pub(super) session: SessionAnswer,
    pub(super) user: UserAnswer,
}

/// The caller. The other members are only there if `authenticated` is true.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcMe", deny_unknown_fields)]
pub struct MeAnswer<'i> {
    authenticated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    user_id: Option<&'i str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    roles: Option<&'i [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UserAnswer")]
    user: Option<UserAnswer>,
    /// The API key of the request, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "uuid"))]
    api_key_id: Option<&'i str>,
    /// Whether the key is suspended, because its maker was deleted or banned.
    #[serde(skip_serializing_if = "Not::not")]
    suspended: bool,
    /// Whether this session may claim the account that was made at boot.
    #[serde(skip_serializing_if = "Not::not")]
    pending_claim: bool,
}

impl<'i> From<&'i Identity> for MeAnswer<'i> {
    fn from(identity: &'i Identity) -> MeAnswer<'i> {
        MeAnswer {
            authenticated: true,
            user_id: Some(&identity.user.id),
            roles: Some(&identity.roles),
            user: Some(UserAnswer::from(&identity.user)),
            api_key_id: identity.api_key().map(|key| key.id.as_str()),
            suspended: identity.suspended.is_some(),
            pending_claim: matches!(identity.credential, Credential::Session { pending_claim: true, .. }),
        }
    }
}

/// The form in which an address is stored and compared, in lower case.
pub(crate) fn normal_email(email: &str) -> Option<String> {
    let email = email.trim().to_lowercase();
    is_email(&email).then_some(email)
}

/// The maximum length of a display name, in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// The maximum length of a reference to an image, in characters.
pub const IMAGE_CHARS_MAX: usize = 2000;
/// The maximum number of characters of a user agent that the server keeps.
pub(crate) const USER_AGENT_CHARS_MAX: usize = 500;

/// Checks a user's name.
pub(crate) fn check_name(name: &str) -> Result<(), AuthProblem> {
    match name.chars().count() <= NAME_CHARS_MAX && !name.contains('\0') {
        true => Ok(()),
        false => Err(AuthProblem::Validation(format!("`name` holds {NAME_CHARS_MAX} characters at most, and no NUL."))),
    }
}

pub(crate) fn check_image(image: Option<&str>) -> Result<(), AuthProblem> {
    match image.is_none_or(|image| image.chars().count() <= IMAGE_CHARS_MAX && !image.contains('\0')) {
        true => Ok(()),
        false => Err(AuthProblem::Validation(format!("`image` is a URL of {IMAGE_CHARS_MAX} characters at most, without NUL."))),
    }
}
