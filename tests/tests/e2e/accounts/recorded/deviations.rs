//! The intended differences of this server from better-auth.

/// One difference between an answer and the recording.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) flow: String,
    pub(super) step: String,
    /// The field, such as `status`, `location`, `mails`, `cookie <name>` or a member like `body.user.email`.
    pub(super) field: String,
    pub(super) theirs: String,
    pub(super) ours: String,
}

/// An intended difference: its flow, its step, its field, the answer of this server, and the reason. `*` means every flow or
/// every step.
type Deviation = (&'static str, &'static str, &'static str, &'static str, &'static str);

const USED: &str = "A link works once, and using it ends the account's other links of its kind.";
const FOREIGN_PROOF: &str =
    "The first proof of an address outside of the account's browser ends the account's sessions and its password.";
const RESET_PROVES: &str = "The link of a reset was mailed, so it proves the address.";
const SESSION_NEEDED: &str =
    "A change of the address needs a session of the account, because the owner of the new address may know nothing of it.";
const NEW_CONFIRMS: &str = "The new address confirms a change, and the earlier one is told.";
const SESSION_STAYS: &str = "A change of the address leaves the session as it is, so no cookie is needed.";
const GONE_WITH_ACCOUNT: &str = "The links of an account are deleted with it, so they are unknown.";
const OFF: &str = "What is off does not exist.";
const TOO_MUCH_MAIL: &str = "An address gets five mails an hour.";
const CODED: &str = "Every error has a body with a code.";
const NO_OPTION: &str = "This server has no option for it.";
const HOUR: &str = "The link of a deletion lives an hour.";
const SETTING_NAMED: &str = "The message names the setting that lists the origins.";

const INVALID_CALLBACK_URL: &str =
    "Invalid callbackURL: it needs a path of this server, or a URL of a trusted origin (SVC_TRUSTED_ORIGINS).";
const INVALID_REDIRECT_URL: &str =
    "Invalid redirectURL: it needs a path of this server, or a URL of a trusted origin (SVC_TRUSTED_ORIGINS).";
const SESSION_COOKIE: &str = "a value; Max-Age=604800; Path=/; HttpOnly; SameSite=Lax";
const CLEARED: &str = "no value; Max-Age=0; Path=/; HttpOnly; SameSite=Lax";
const INVALID: &str = "401 INVALID_TOKEN: Invalid token";
const NO_MAIL: &str = "404 not_found: This server sends no mail (SVC_SMTP_URL).";
const NOTICE: &str = "ada@{domain} without a link";
const VERIFICATION: &str = "ada@{domain} {base}/api/auth/verify-email?token={token}&callbackURL=%2F";

const DEVIATIONS: &[Deviation] = &[
    // These apply to all flows.
    ("*", "*", "body.error", "the code", "Errors have the code twice, as everywhere in this API."),
    ("*", "*", "body.message", "a sentence of its own", "The message says what is wrong in this server's words."),
    ("*", "*", "body.message", "Password too short: 8 characters at least.", "The message says the bound."),
    ("*", "*", "body.message", "Password too long: 128 characters at most.", "The message says the bound."),
    ("*", "*", "body.message", "Unauthorized: a session is needed.", "The message says what is missing."),
    ("*", "*", "body.message", INVALID_CALLBACK_URL, SETTING_NAMED),
    ("*", "*", "body.message", INVALID_REDIRECT_URL, SETTING_NAMED),
    ("*", "*", "body.session.ipAddress", "{address}", "The recording server does not know addresses."),
    ("*", "*", "set-auth-token", "without the signature", "The token alone is accepted as well as the signed one."),
    (
        "*",
        "*",
        "cookie svc.signed_up",
        SESSION_COOKIE,
        "It shows later that the browser made the account, until the address is proved.",
    ),
    ("*", "*", "cookie svc.session_data", "nothing", "This server has no cookie of this name to remove."),
    ("*", "*", "cookie svc.dont_remember", "nothing", "This server has no cookie of this name to remove."),
    (
        "*",
        "*",
        "mails",
        "ada@{domain} {base}/admin/set-password#token={token}",
        "Without `redirectTo`, a reset ends on the console's page.",
    ),
    // Verification.
    ("send-verification", "a number as callbackURL", "body.code", "VALIDATION_ERROR", CODED),
    ("send-verification-off", "a link to verify the address", "status", NO_MAIL, OFF),
    ("verify-email", "a used link", "status", INVALID, USED),
    ("verify-email", "with POST", "status", INVALID, "The page that asks first posts to this address."),
    (
        "verify-email-callback",
        "a good link",
        "question",
        "a page asks first",
        "Outside of the account's browser a person confirms, because programs open the links of mail.",
    ),
    ("verify-email-callback", "a good link", "status", "303 /welcome?step=2", "The answer to the form of that page is 303."),
    ("verify-email-callback", "the address is verified", "body", "200 null", FOREIGN_PROOF),
    ("verify-email-callback", "the address is verified", "cookie svc.session_token", CLEARED, FOREIGN_PROOF),
    ("verify-email-callback", "a used link", "location", "/welcome?step=2&error=INVALID_TOKEN", USED),
    ("verify-email-two-links", "the newer link", "status", INVALID, USED),
    ("verify-email-deleted", "without callbackURL", "body.code", "INVALID_TOKEN", GONE_WITH_ACCOUNT),
    ("verify-email-deleted", "without callbackURL", "body.message", "Invalid token", GONE_WITH_ACCOUNT),
    ("verify-email-deleted", "with callbackURL", "location", "/welcome?error=INVALID_TOKEN", GONE_WITH_ACCOUNT),
    // Verification is required.
    ("required", "a used link, in another browser", "location", "/welcome?error=INVALID_TOKEN", USED),
    ("required", "the link of the first sign-in", "status", INVALID, USED),
    ("required-json", "a good link, in another browser", "cookie svc.session_token", "nothing", FOREIGN_PROOF),
    ("required-json", "a good link, in another browser", "set-auth-token", "nothing", FOREIGN_PROOF),
    ("required-json", "the browser with the link has a session", "body", "200 null", FOREIGN_PROOF),
    ("required-taken", "the address again", "mails", VERIFICATION, "Who signs up once more may have lost the first mail."),
    ("required-reset", "the reset does not verify the address", "status", "200 { redirect, token, user }", RESET_PROVES),
    ("required-reset", "the reset does not verify the address", "cookie svc.session_token", SESSION_COOKIE, RESET_PROVES),
    ("required-reset", "the reset does not verify the address", "set-auth-token", "a token", RESET_PROVES),
    ("required-reset", "the reset does not verify the address", "mails", "nothing", RESET_PROVES),
    ("required-without-sign-in", "ada signs in before", "mails", VERIFICATION, NO_OPTION),
    ("required-without-sign-in", "a good link", "cookie svc.session_token", SESSION_COOKIE, NO_OPTION),
    ("required-without-sign-in", "a good link", "set-auth-token", "a token", NO_OPTION),
    ("required-without-sign-in", "there is no session", "body", "200 { session, user }", NO_OPTION),
    // Reset of a password.
    ("request-reset", "an empty redirectTo", "mails", "nothing", TOO_MUCH_MAIL),
    ("request-reset", "with a session", "mails", "nothing", TOO_MUCH_MAIL),
    ("request-reset", "a number as redirectTo", "body.code", "VALIDATION_ERROR", CODED),
    ("request-reset", "the address of a guest", "mails", "nothing", "Nobody reads the address of a guest."),
    (
        "request-reset",
        "the name of older versions",
        "body",
        "404 not_found: There is nothing at `/api/auth/forget-password`.",
        CODED,
    ),
    ("request-reset-off", "a known address", "status", NO_MAIL, OFF),
    ("request-reset-off", "an unknown address", "status", NO_MAIL, OFF),
    (
        "reset-link",
        "an empty callbackURL",
        "status",
        "400 VALIDATION_ERROR: `callbackURL` is missing. It names the page to go to.",
        "An empty page counts as none, as everywhere.",
    ),
    ("reset-password", "the new password", "body.user.emailVerified", "true", RESET_PROVES),
    ("reset-password", "the reset does not verify the address", "body.user.emailVerified", "true", RESET_PROVES),
    ("reset-password-query", "the new password", "body.user.emailVerified", "true", RESET_PROVES),
    (
        "reset-password-query",
        "the new password",
        "cookie svc.session_token",
        SESSION_COOKIE,
        "better-auth removes the cookie that it has just set, because the old one was not valid.",
    ),
    ("reset-password-query", "the new password", "set-auth-token", "a token", "The header goes with the cookie."),
    ("reset-password-two-links", "the newer token", "status", "400 INVALID_TOKEN: Invalid token", USED),
    ("reset-password-deleted", "the link", "location", "/reset?error=INVALID_TOKEN", GONE_WITH_ACCOUNT),
    ("reset-password-deleted", "the token", "body.code", "INVALID_TOKEN", GONE_WITH_ACCOUNT),
    ("reset-password-deleted", "the token", "body.message", "Invalid token", GONE_WITH_ACCOUNT),
    // Change of the address.
    ("change-email", "the same address", "body.code", "EMAIL_IS_THE_SAME", CODED),
    ("change-email", "the same address in other letters", "body.code", "EMAIL_IS_THE_SAME", CODED),
    ("change-email", "a good link", "cookie svc.session_token", "nothing", SESSION_STAYS),
    ("change-email", "a good link", "set-auth-token", "nothing", SESSION_STAYS),
    ("change-email", "a good link", "mails", NOTICE, NEW_CONFIRMS),
    ("change-email", "a used link", "location", "/account?error=INVALID_TOKEN", USED),
    ("change-email", "a used link without callbackURL", "body.code", "INVALID_TOKEN", USED),
    ("change-email", "a used link without callbackURL", "body.message", "Invalid token", USED),
    ("change-email-json", "a good link", "status", "401 INVALID_USER: Invalid user", SESSION_NEEDED),
    ("change-email-json", "a good link", "cookie svc.session_token", "nothing", SESSION_NEEDED),
    ("change-email-json", "a good link", "set-auth-token", "nothing", SESSION_NEEDED),
    ("change-email-json", "the link signs in", "body", "200 null", SESSION_NEEDED),
    ("change-email-json", "the session stays", "body.user.email", "ada@{domain}", SESSION_NEEDED),
    ("change-email-unverified", "a good link", "cookie svc.session_token", "nothing", SESSION_STAYS),
    ("change-email-unverified", "a good link", "set-auth-token", "nothing", SESSION_STAYS),
    ("change-email-unverified", "a good link", "mails", NOTICE, NEW_CONFIRMS),
    ("change-email-two-links", "the newer link", "cookie svc.session_token", "nothing", SESSION_STAYS),
    ("change-email-two-links", "the newer link", "set-auth-token", "nothing", SESSION_STAYS),
    ("change-email-two-links", "the newer link", "mails", NOTICE, NEW_CONFIRMS),
    ("change-email-two-links", "the older link", "body.code", "INVALID_TOKEN", USED),
    ("change-email-two-links", "the older link", "body.message", "Invalid token", USED),
    (
        "change-email-confirmation",
        "a new address",
        "mails",
        "new@{domain} {base}/api/auth/verify-email?token={token}&callbackURL=%2Faccount",
        NEW_CONFIRMS,
    ),
    ("change-email-confirmation", "the old address confirms", "mails", NOTICE, NEW_CONFIRMS),
    ("change-email-confirmation", "the old address stays until then", "body.user.email", "new@{domain}", NEW_CONFIRMS),
    ("change-email-confirmation", "the new address confirms", "request", "nothing has the name {mail3.token}", NEW_CONFIRMS),
    ("change-email-at-once", "a new address", "cookie svc.session_token", "nothing", SESSION_STAYS),
    ("change-email-at-once", "a new address", "set-auth-token", "nothing", SESSION_STAYS),
    ("change-email-at-once", "the new address", "body.user.email", "ada@{domain}", NEW_CONFIRMS),
    ("change-email-at-once", "a good link", "body.user", "an object", NEW_CONFIRMS),
    ("change-email-at-once", "a good link", "mails", NOTICE, NEW_CONFIRMS),
    (
        "change-email-guest",
        "a new address",
        "status",
        "400 EMAIL_CAN_NOT_BE_UPDATED: Email can not be updated",
        "A guest gets an address by signing up.",
    ),
    ("change-email-guest", "a new address", "mails", "nothing", "A guest gets an address by signing up."),
    ("change-email-off", "a new address", "status", NO_MAIL, OFF),
    ("change-email-disabled", "a new address", "status", NO_MAIL, OFF),
    // The user's own password, and the deletion of the account.
    (
        "verify-password",
        "no session and no password",
        "status",
        "401 UNAUTHORIZED: Unauthorized: a session is needed.",
        "The session is checked before the body is read.",
    ),
    (
        "delete-user-link-foreign",
        "the link, which was used up",
        "status",
        "200 User deleted",
        "The browser of somebody else uses up no link.",
    ),
    (
        "delete-user-link-foreign",
        "the link, which was used up",
        "cookie svc.session_token",
        CLEARED,
        "The browser of somebody else uses up no link.",
    ),
    ("delete-user-token", "a good token", "cookie svc.session_token", CLEARED, "Every deletion removes the cookie."),
    ("delete-user-token", "the session has ended", "cookie svc.session_token", "nothing", "The deletion has removed the cookie."),
    ("delete-user-link-after-an-hour", "after an hour", "status", "404 INVALID_TOKEN: Invalid token", HOUR),
    ("delete-user-link-after-an-hour", "after an hour", "cookie svc.session_token", "nothing", HOUR),
    (
        "delete-user-disabled",
        "the right password",
        "body",
        "404 not_found: Users cannot delete their accounts here (SVC_DELETE_USER).",
        CODED,
    ),
    ("delete-user-disabled", "a link", "body.code", "not_found", OFF),
    ("delete-user-disabled", "a link", "body.message", "Users cannot delete their accounts here (SVC_DELETE_USER).", OFF),
];

fn covers(&(flow, step, field, ours, _): &Deviation, difference: &Difference) -> bool {
    (flow == "*" || flow == difference.flow)
        && (step == "*" || step == difference.step)
        && field == difference.field
        && ours == difference.ours
}

/// The number of mails that a step leads to, if it differs from the recording.
pub(super) fn mails_expected(flow: &str, step: &str) -> Option<usize> {
    let (.., ours, _) = DEVIATIONS.iter().find(|known| (known.0, known.1, known.2) == (flow, step, "mails"))?;
    Some(if *ours == "nothing" { 0 } else { ours.split(", ").count() })
}

/// Fails for each difference that is not in the table, and for each line of the table that matches no difference.
#[track_caller]
pub(super) fn expect_deviations(differences: &[Difference]) {
    let unknown = differences.iter().filter(|difference| !DEVIATIONS.iter().any(|known| covers(known, difference)));
    let unknown: Vec<String> = unknown
        .map(|Difference { flow, step, field, theirs, ours }| {
            format!("({flow:?}, {step:?}, {field:?}, {ours:?}) instead of {theirs:?}")
        })
        .collect();
    let gone: Vec<&Deviation> =
        DEVIATIONS.iter().filter(|known| !differences.iter().any(|difference| covers(known, difference))).collect();
    assert!(
        unknown.is_empty() && gone.is_empty(),
        "{} differences that the table does not name:\n{}\n{} lines of the table that name no difference:\n{gone:#?}",
        unknown.len(),
        unknown.join("\n"),
        gone.len()
    );
}
