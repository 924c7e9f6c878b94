//! The answers of `/api/auth`. A doc comment here becomes a description in the document.

use blockbase_app::UserAnswer;
use schemars::JsonSchema;
use serde::Serialize;

// The answer to a sign-up, and to the sign-in of a guest.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct SignedUpAnswer<'a> {
    pub(super) token: &'a str,
    pub(super) user: &'a UserAnswer,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct SignedInAnswer<'a> {
    /// Whether the answer has `url`.
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

// The answer with which the session's cookie is taken back.
#[derive(Serialize, JsonSchema)]
#[schemars(inline, deny_unknown_fields)]
pub(super) struct SessionGoneAnswer {
    success: bool,
}

impl SessionGoneAnswer {
    pub(super) const GONE: SessionGoneAnswer = SessionGoneAnswer { success: true };
}
