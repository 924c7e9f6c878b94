//! The answers of `/api/auth`. A doc comment here becomes a description in the document.

use blockbase_app::UserAnswer;
use schemars::JsonSchema;
use serde::Serialize;

// The answer to a sign-up. It has no token if the address has to be proved first.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct SignedUpAnswer<'a> {
    pub(super) token: Option<&'a str>,
    pub(super) user: &'a UserAnswer,
}

// The answer to the sign-in of a guest.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct GuestAnswer<'a> {
    pub(super) token: &'a str,
    pub(super) user: &'a UserAnswer,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct SignedInAnswer<'a> {
    /// Whether the response has `url`.
    pub(super) redirect: bool,
    pub(super) token: &'a str,
    pub(super) user: &'a UserAnswer,
    /// The `callbackURL` of the request. Clients of the protocol open it by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub(super) url: Option<&'a str>,
}

// The answer to a change of the password.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct PasswordChangedAnswer<'a> {
    pub(super) token: Option<&'a str>,
    pub(super) user: &'a UserAnswer,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct DoneAnswer {
    status: bool,
}

impl DoneAnswer {
    pub(super) const DONE: DoneAnswer = DoneAnswer { status: true };
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct ResetRequestedAnswer {
    status: bool,
    message: &'static str,
}

impl ResetRequestedAnswer {
    pub(super) const REQUESTED: ResetRequestedAnswer =
        ResetRequestedAnswer { status: true, message: "If this email exists in our system, check your email for the reset link" };
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct AddressProvedAnswer<'a> {
    pub(super) status: bool,
    /// The user, if the link changed the address.
    pub(super) user: Option<&'a UserAnswer>,
}

// The answer to the deletion of the caller's own account.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct DeletionAnswer {
    success: bool,
    message: &'static str,
}

impl DeletionAnswer {
    pub(super) const DELETED: DeletionAnswer = DeletionAnswer { success: true, message: "User deleted" };
    pub(super) const MAILED: DeletionAnswer = DeletionAnswer { success: true, message: "Verification email sent" };
}

// The answer that removes the session's cookie.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct SessionGoneAnswer {
    success: bool,
}

impl SessionGoneAnswer {
    pub(super) const GONE: SessionGoneAnswer = SessionGoneAnswer { success: true };
}
