//! Describes sign-up, sign-in and sign-out, and what users do with their own account.

use blockbase_app::{CurrentSession, ListedSession};
use serde_json::{Value, json};

use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::components::{list_of, schema};
use crate::openapi::operation::{Caller, Operation, Paths, headers, path_parameter, query_parameter};
use crate::routes::auth::answers::{
    AddressProvedAnswer, DeletionAnswer, DoneAnswer, GuestAnswer, PasswordChangedAnswer, ResetRequestedAnswer, SessionGoneAnswer,
    SignedInAnswer, SignedUpAnswer,
};
use crate::routes::auth::own_account::{CheckedPasswordBody, DeletionBody, EmailBody};
use crate::routes::auth::profile::{PasswordBody, UserBody};
use crate::routes::auth::reset::{ResetBody, ResetRequestBody};
use crate::routes::auth::sessions::RevokeBody;
use crate::routes::auth::sign::{SignInBody, SignUpBody};
use crate::routes::auth::verify::VerificationBody;

pub(crate) fn schemas() -> Value {
    json!({ "SvcSignUp": body_of::<SignUpBody>(), "SvcSignIn": body_of::<SignInBody>() })
}

/// A response that gives a session to the client.
fn session_response(answer: Value) -> Value {
    json!({
        "description": "The session. Its token is in the body and in `set-auth-token`. The response also sets a signed cookie.",
        "headers": headers(&[("Set-Cookie", "SetCookie"), ("set-auth-token", "SetAuthToken")]),
        "content": { "application/json": { "schema": answer } },
    })
}

pub(crate) fn describe(paths: &mut Paths) {
    let sign_up = operation("signUp", "Sign up with an address and a password", Caller::Unseen)
        .describe(
            "The first user to sign up becomes admin. If `SVC_SETUP_TOKEN` is set, that sign-up needs the header \
            `x-setup-token`. Otherwise the response is 403 `setup_token_required`. If sign-up is closed, the response is 400 \
            `EMAIL_PASSWORD_SIGN_UP_DISABLED`. If addresses have to be proved (`SVC_REQUIRE_EMAIL_VERIFICATION`), `token` is null, the \
            server mails a link, and the response for an address that is taken looks the same.",
        )
        .parameter(json!({
            "name": "x-setup-token",
            "in": "header",
            "required": false,
            "description": "The first sign-up on a server with a setup token needs this header.",
            "schema": { "type": "string" },
        }))
        .json_body(schema("SvcSignUp"))
        .without(&[401])
        .problems(&[409, 422])
        .response(200, session_response(of::<SignedUpAnswer<'_>>()));
    paths.add("post", "/api/auth/sign-up/email", sign_up);
    let sign_in = operation("signIn", "Sign in with an address and a password", Caller::Unseen)
        .describe(
            "A wrong password and an unknown address get the same response: 401 `INVALID_EMAIL_OR_PASSWORD`. After ten \
            failures from one network, sign-in to the account from there gets 429 for up to a minute at a time. If the address has to be \
            proved first (`SVC_REQUIRE_EMAIL_VERIFICATION`), the response is 403 `EMAIL_NOT_VERIFIED`, and the server mails a link.",
        )
        .json_body(schema("SvcSignIn"))
        .response(
            401,
            json!({
                "description": "The address or the password is wrong.",
                "headers": headers(&[]),
                "content": { "application/json": { "schema": schema("SvcError") } },
            }),
        )
        .response(200, session_response(of::<SignedInAnswer<'_>>()));
    paths.add("post", "/api/auth/sign-in/email", sign_in);
    paths.add("post", "/api/auth/sign-in/anonymous", guest(operation("signInAnonymous", "Sign in as a guest", Caller::Anyone)));
    let sign_out = operation("signOut", "End the session", Caller::Anyone)
        .describe("Ends the session that the request presents. The session is then invalid everywhere.")
        .without(&[401])
        .problems(&[400, 413, 415])
        .response(200, cookie_taken_back("The session has ended. The response is the same if there was no session."));
    paths.add("post", "/api/auth/sign-out", sign_out);
    let get_session = operation("getSession", "Get the session and its user", Caller::Anyone)
        .describe("The response is null, not an error, if the request has no valid session.")
        .without(&[401])
        .answers(200, "The session, or null.", json!({ "anyOf": [of::<CurrentSession>(), { "type": "null" }] }));
    paths.add("get", "/api/auth/get-session", get_session);
    sessions(paths);
    profile(paths);
    own_account(paths);
    mail(paths);
}

fn operation(verb: &str, summary: &str, caller: Caller) -> Operation {
    Operation::new(format!("auth.{verb}"), "auth", summary).called_by(caller)
}

fn guest(operation: Operation) -> Operation {
    operation
        .describe(
            "The response is 404 if guests are disabled (`SVC_ANONYMOUS_AUTH`). A guest who signs up or signs in with this \
            session keeps the things that they made.",
        )
        .without(&[401])
        .problems(&[400, 404, 413, 415])
        .response(200, session_response(of::<GuestAnswer<'_>>()))
}

/// A response `{ "success": true }` that removes the cookie.
fn cookie_taken_back(description: &str) -> Value {
    json!({
        "description": description,
        "headers": headers(&[("Set-Cookie", "SetCookie")]),
        "content": { "application/json": { "schema": of::<SessionGoneAnswer>() } },
    })
}

fn status() -> Value {
    of::<DoneAnswer>()
}

fn sessions(paths: &mut Paths) {
    let list = operation("listSessions", "List the sessions of the caller's user", Caller::Session)
        .describe("Each session has `current`. Tokens are not shown.");
    paths.add(
        "get",
        "/api/auth/list-sessions",
        list.answers(200, "The sessions, newest first. There are at most 100.", list_of(of::<ListedSession>())),
    );
    let revoke = operation("revokeSession", "End one session of the caller's user", Caller::Session)
        .describe("The body names the session by its id or its token. An unknown session counts as ended.")
        .json_body(body_of::<RevokeBody>())
        .answers(200, "The session has ended.", status());
    paths.add("post", "/api/auth/revoke-session", revoke);
    for (path, verb, summary) in [
        ("/api/auth/revoke-sessions", "revokeSessions", "End all sessions of the caller's user, including this one"),
        ("/api/auth/revoke-other-sessions", "revokeOtherSessions", "End all other sessions of the caller's user"),
    ] {
        let revoke = operation(verb, summary, Caller::Session)
            .describe("The sessions are then invalid everywhere, and the streams that they opened end.")
            .problems(&[400, 413, 415]);
        paths.add("post", path, revoke.answers(200, "The sessions have ended.", status()));
    }
}

fn reset(paths: &mut Paths) {
    let open = operation("openResetLink", "Follow a link to set a password", Caller::Unseen)
        .describe(
            "Redirects to `callbackURL` with `token` in its query, or with `error=INVALID_TOKEN` if the token is not valid. The \
            link stays valid. The response is 403 `INVALID_CALLBACK_URL` if the page does not belong to a trusted origin.",
        )
        .parameter(path_parameter("token", "The token of the link.", json!({ "type": "string" })))
        .parameter(json!({
            "name": "callbackURL",
            "in": "query",
            "required": true,
            "description": "The page where the password is set: a path of this server, or a URL of a trusted origin.",
            "schema": { "type": "string" },
        }))
        .without(&[401])
        .problems(&[400, 507])
        .response(
            302,
            json!({ "description": "The page where the password is set.", "headers": headers(&[("Location", "Location")]) }),
        );
    paths.add("get", "/api/auth/reset-password/{token}", open);
    let set = operation("resetPassword", "Set a password with a link", Caller::Unseen)
        .describe(
            "The token can be used once. All sessions and links of the account end. The response is 400 `INVALID_TOKEN` if the \
            token is unknown, used, expired or no longer valid. A refused password (400 `PASSWORD_TOO_SHORT`, \
            `PASSWORD_TOO_LONG`, `PASSWORD_COMPROMISED`) leaves the token valid. Wrong tokens count like wrong passwords: too \
            many of them get 429.",
        )
        .parameter(query_parameter("token", "The token, if the body has none.", json!({ "type": "string" })))
        .json_body(body_of::<ResetBody>())
        .without(&[401])
        .answers(200, "The password is set.", status());
    paths.add("post", "/api/auth/reset-password", set);
}

fn own_account(paths: &mut Paths) {
    let change = operation("changeEmail", "Ask for a link that changes the caller's address", Caller::Session)
        .describe(
            "The server mails the link to the new address. Opening it changes the address, ends all links of the account, and the earlier \
            address is told. The response is the same if another account has the new address. It is 404 if the server sends no mail \
            (`SVC_SMTP_URL`), and 400 `EMAIL_IS_THE_SAME` for the present address.",
        )
        .json_body(body_of::<EmailBody>())
        .problems(&[404])
        .answers(200, "The link is mailed if the address is free.", status());
    paths.add("post", "/api/auth/change-email", change);
    let verify = operation("verifyPassword", "Check the caller's password", Caller::Session)
        .describe(
            "A wrong password gets 400 `INVALID_PASSWORD`, and counts as a wrong password of a sign-in does. After ten wrong ones in a \
            quarter of an hour, the response is 429.",
        )
        .json_body(body_of::<CheckedPasswordBody>())
        .answers(200, "The password is right.", status());
    paths.add("post", "/api/auth/verify-password", verify);
    let delete = operation("deleteUser", "Delete the caller's account", Caller::Session)
        .describe(
            "The password, the token of a mailed link, or a session that is younger than a day shows that the deletion is meant. Otherwise \
            the server mails a link, or the response is 400 `SESSION_EXPIRED` if it sends no mail. What the user made is suspended. The \
            response is 404 unless users may delete themselves (`SVC_DELETE_USER`), and 409 for the last admin.",
        )
        .json_body(body_of::<DeletionBody>())
        .problems(&[404, 409])
        .answers(200, "The account is deleted, or the link is mailed; `message` says which.", of::<DeletionAnswer>());
    paths.add("post", "/api/auth/delete-user", delete);
    let callback = operation("deleteUserCallback", "Delete the caller's account with a mailed link", Caller::Session)
        .describe(
            "The browser has to have a session of the account, or the response is 404 `FAILED_TO_GET_USER_INFO`. It is 404 `INVALID_TOKEN` \
            if the token is not valid or is another user's.",
        )
        .without(&[401])
        .parameters(link_parameters())
        .problems(&[400, 404, 409, 507])
        .answers(200, "The account is deleted.", of::<DeletionAnswer>())
        .response(302, json!({ "description": "The page to go to.", "headers": headers(&[("Location", "Location")]) }));
    paths.add("get", "/api/auth/delete-user/callback", callback);
}

/// The parameters of a route that a mailed link leads to.
fn link_parameters() -> [Value; 2] {
    let token = json!({
        "name": "token",
        "in": "query",
        "required": true,
        "description": "The token of the link.",
        "schema": { "type": "string" },
    });
    let page = "The page to go to: a path of this server, or a URL of a trusted origin.";
    [token, query_parameter("callbackURL", page, json!({ "type": "string" }))]
}

/// The routes for mail. If the server sends no mail, they answer 404.
fn mail(paths: &mut Paths) {
    let request = operation("requestPasswordReset", "Ask for a link to set another password", Caller::Unseen)
        .describe(
            "The server mails the link. The response is the same, in the same time, whether or not an account has the address. One address \
            gets at most five mails in an hour. The response is 404 if the server sends no mail (`SVC_SMTP_URL`), and 403 \
            `INVALID_REDIRECT_URL` if the page is not of a trusted origin.",
        )
        .json_body(body_of::<ResetRequestBody>())
        .without(&[401])
        .problems(&[404])
        .answers(200, "The link is mailed if an account has the address.", of::<ResetRequestedAnswer>());
    paths.add("post", "/api/auth/request-password-reset", request);
    let send = operation("sendVerificationEmail", "Ask for a link that proves an address", Caller::Unseen)
        .describe(
            "The server mails the link. With a session, the address has to be the user's (400 `EMAIL_MISMATCH`), and not be proved yet (400 \
            `EMAIL_ALREADY_VERIFIED`). Without one, the response is the same for every address. One address gets at most five mails in an \
            hour. The response is 404 if the server sends no mail (`SVC_SMTP_URL`).",
        )
        .json_body(body_of::<VerificationBody>())
        .without(&[401])
        .problems(&[404])
        .answers(200, "The link is mailed if an account has the address and has not proved it.", status());
    paths.add("post", "/api/auth/send-verification-email", send);
    let proof = |id: &str, summary: &str, html: Value| {
        let mut content = json!({ "application/json": { "schema": of::<AddressProvedAnswer<'_>>() } });
        for (kind, page) in html.as_object().into_iter().flatten() {
            content[kind] = page.clone();
        }
        operation(id, summary, Caller::Unseen)
            .parameters(link_parameters())
            .problems(&[400, 507])
            .response(200, json!({ "description": "The address is proved.", "content": content }))
    };
    let leads = || json!({ "description": "The page to go to.", "headers": headers(&[("Location", "Location")]) });
    let page = json!({ "text/html": { "schema": { "type": "string", "description": "The page that asks first." } } });
    let verify = proof("verifyEmail", "Prove an address with a link", page)
        .describe(
            "The link works once. The first proof of an address ends the sessions and the API keys of the account, replaces its password and \
            suspends what was made with it, unless the browser has a session of the account or signed up for it. With `callbackURL`, the response leads there, with \
            `error=INVALID_TOKEN` or `error=TOKEN_EXPIRED` if the token is not valid, and `error=INVALID_USER` if it changes the address of \
            an account that is not signed in there. Without it, the response is 401 then. If addresses have to be \
            proved (`SVC_REQUIRE_EMAIL_VERIFICATION`), the browser that signed up gets a session.\n\nIf another browser opens a link with \
            `callbackURL`, nothing happens yet: the response is a page with a button, which sends the same request with POST. So programs \
            that open links in mail prove nothing.",
        )
        .response(302, leads());
    paths.add("get", "/api/auth/verify-email", verify);
    let confirm = proof("confirmEmail", "Prove an address with a link at once", json!({}))
        .describe("The same as with GET, without the page that asks first.")
        .response(303, leads());
    paths.add("post", "/api/auth/verify-email", confirm);
}

fn profile(paths: &mut Paths) {
    let mut changed = session_response(of::<PasswordChangedAnswer<'_>>());
    changed["description"] = json!("The password is changed. `token` is null unless a new session began.");
    let change = operation("changePassword", "Change the caller's password", Caller::Session)
        .describe(
            "The response is 400 `INVALID_PASSWORD` if `currentPassword` is wrong, and 400 `CREDENTIAL_ACCOUNT_NOT_FOUND` \
            for guests. Wrong passwords count as failed sign-ins: too many of them get 429.",
        )
        .json_body(body_of::<PasswordBody>())
        .response(200, changed);
    paths.add("post", "/api/auth/change-password", change);
    reset(paths);
    let update = operation("updateUser", "Change the caller's name or image", Caller::Session)
        .describe("An address in the body gets 400 `EMAIL_CAN_NOT_BE_UPDATED`. Unknown members are ignored.")
        .json_body(body_of::<UserBody>())
        .answers(200, "The user is changed.", status());
    paths.add("post", "/api/auth/update-user", update);
    let delete = operation("deleteAnonymousUser", "Delete the caller's guest account", Caller::Session)
        .describe("The response is 403 `USER_IS_NOT_ANONYMOUS` if the caller is not a guest, and 404 if guests are disabled.")
        .problems(&[400, 404, 413, 415])
        .response(200, cookie_taken_back("The guest and their sessions are deleted."));
    paths.add("post", "/api/auth/delete-anonymous-user", delete);
}
