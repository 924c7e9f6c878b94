//! The client that requests a session, and the reasons for refusing one.

use blockbase_auth::PasswordProblem;
use blockbase_quota::network_of;
use blockbase_schema::Error;

use crate::caller::Credentials;

/// The origin of a session.
#[derive(Clone, Debug, Default)]
pub struct Client {
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
    /// The languages that the client named, as `Accept-Language` lists them.
    pub languages: Option<String>,
    /// The credentials of the request. If they are a guest's session, the new session's user gets the guest's data.
    pub credentials: Credentials,
}

impl Client {
    /// The network of its address, under which requests are counted: an IPv4 address, or the /64 of an IPv6 address.
    pub(crate) fn network(&self) -> Option<String> {
        let address = self.ip_address.as_deref()?.parse().ok()?;
        Some(network_of(address).to_string())
    }
}

/// The reason why an authentication request was refused. The surface maps the reasons to the protocol's codes.
#[derive(Debug)]
pub enum AuthProblem {
    UserExists,
    PasswordTooShort,
    PasswordTooLong,
    PasswordIsEmail,
    PasswordIsCommon,
    PasswordIsBreached,
    InvalidEmail,
    /// A member of the body is missing, has the wrong type, or is too long.
    Validation(String),
    SignUpDisabled,
    InvalidEmailOrPassword,
    /// The request needs a session and has none.
    NoSession,
    /// The given current password is wrong.
    InvalidPassword,
    /// A guest has no password to change.
    NoCredential,
    /// A link's token is unknown, used, expired or withdrawn. The caller does not learn which.
    InvalidToken,
    /// The requested verification was for another address than that of the session's user.
    EmailMismatch,
    EmailAlreadyVerified,
    /// The password is correct, but the user has to prove the address before a sign-in.
    EmailNotVerified {
        user_id: String,
    },
    /// The token of a link that proves an address is unknown, used or ended.
    InvalidVerification,
    /// The token of a link that proves an address has expired.
    ExpiredVerification,
    /// The requested new address is the same as the present one.
    EmailIsTheSame,
    /// The link changes the address of an account, but the request has no session of that account.
    LinkOfAnother,
    /// The token of a link that deletes an account is not valid.
    InvalidDeletion,
    /// The session is too old to delete its account without a password.
    SessionIsOld,
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
            PasswordProblem::IsBreached => AuthProblem::PasswordIsBreached,
        }
    }
}
