//! Sign-up, sign-in, sign-out, and who the caller is.

use blockbase_app::{CurrentSession, ListedSession, MeAnswer, UserAnswer};
use serde_json::{Value, json};

use crate::openapi::answers::of;
use crate::openapi::components::{exact_object, list_of, schema};
use crate::openapi::operation::{Caller, Operation, Paths, headers};

pub(crate) fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let remember =
        json!({ "type": ["boolean", "null"], "description": "Whether the session outlives the browser; true by default." });
    let credentials = |more: Value, required: &[&str]| {
        let mut properties = json!({ "email": text, "password": text, "rememberMe": remember });
        for (key, value) in more.as_object().into_iter().flatten() {
            properties[key] = value.clone();
        }
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let callback = json!({
        "type": ["string", "null"],
        "description": "Where the client goes afterwards: a path here, or a URL of a trusted origin.",
    });
    json!({
        "SvcSignUp": credentials(json!({
            "name": { "type": "string", "maxLength": 200 },
            "email": { "type": "string", "format": "email" },
            "password": { "type": "string", "minLength": 8, "maxLength": 128 },
            "image": { "type": ["string", "null"], "maxLength": 2000, "description": "The URL of a picture." },
            "callbackURL": callback,
        }), &["name", "email", "password"]),
        "SvcSignIn": credentials(json!({ "callbackURL": callback }), &["email", "password"]),
    })
}

/// An answer that hands out a session.
fn session_response(more: Value) -> Value {
    let mut properties = json!({ "token": { "type": "string" }, "user": of::<UserAnswer>() });
    for (key, value) in more.as_object().into_iter().flatten() {
        properties[key] = value.clone();
    }
    json!({
        "description": "The session: its token in the body and in `set-auth-token`, and a signed cookie.",
        "headers": headers(&[("Set-Cookie", "SetCookie"), ("set-auth-token", "SetAuthToken")]),
        "content": { "application/json": { "schema": exact_object(properties) } },
    })
}

pub(crate) fn describe(paths: &mut Paths) {
    let sign_up = operation("signUp", "Sign up with an address and a password", Caller::Unseen)
        .describe("The first user to sign up becomes admin. Where `SVC_SETUP_TOKEN` is set, that sign-up needs the header `x-setup-token`: else it is 403 `setup_token_required`. Where sign-up is closed it is 400 `EMAIL_PASSWORD_SIGN_UP_DISABLED`.")
        .parameter(json!({
            "name": "x-setup-token",
            "in": "header",
            "required": false,
            "description": "Needed by the first sign-up of a server with a setup token.",
            "schema": { "type": "string" },
        }))
        .json_body(schema("SvcSignUp"))
        .without(&[401])
        .problems(&[409, 422])
        .response(200, session_response(json!({})));
    paths.add("post", "/api/auth/sign-up/email", sign_up);
    let sign_in = operation("signIn", "Sign in with an address and a password", Caller::Unseen)
        .describe("A wrong password and an unknown address answer alike: 401 `INVALID_EMAIL_OR_PASSWORD`. After ten failures from one network the account answers 429 there, for up to a minute at a time.")
        .json_body(schema("SvcSignIn"))
        .response(
            401,
            json!({
                "description": "The address or the password is wrong.",
                "headers": headers(&[]),
                "content": { "application/json": { "schema": schema("SvcError") } },
            }),
        )
        .response(200, session_response(json!({ "redirect": { "type": "boolean" } })));
    paths.add("post", "/api/auth/sign-in/email", sign_in);
    paths.add("post", "/api/auth/sign-in/anonymous", guest(operation("signInAnonymous", "Sign in as a guest", Caller::Anyone)));
    let sign_out = operation("signOut", "End the session", Caller::Anyone)
        .describe("Ends the session that the request shows; it holds nowhere any more.")
        .without(&[401])
        .problems(&[400, 413, 415])
        .response(200, cookie_taken_back("There is no session any more, whether there was one or not."));
    paths.add("post", "/api/auth/sign-out", sign_out);
    let get_session = operation("getSession", "Get the session and its user", Caller::Anyone)
        .describe("Null where no session holds; that is no error.")
        .without(&[401])
        .answers(200, "The session, or null.", json!({ "anyOf": [of::<CurrentSession>(), { "type": "null" }] }));
    paths.add("get", "/api/auth/get-session", get_session);
    sessions(paths);
    profile(paths);
    let me = operation("me", "Ask who the caller is", Caller::Anyone)
        .describe("Takes any credential. One that does not hold is an answer, not an error.")
        .without(&[401])
        .answers(200, "The verdict; the other members are there where it is true.", of::<MeAnswer>());
    paths.add("get", "/api/v1/me", me);
    let claim = operation("claim", "Claim the account that was made at boot", Caller::Session)
        .describe("By the session that signed in with the bootstrap password. Every other session of the account ends. Nothing to claim, or another was first: 409 `no_pending_claim`.")
        .json_body(exact_object(json!({
            "name": { "type": "string", "minLength": 1, "maxLength": 200 },
            "newPassword": { "type": "string", "minLength": 8, "maxLength": 128 },
        })))
        .problems(&[409])
        .answers_data(200, "It is claimed.", exact_object(json!({ "claimed": { "type": "boolean", "const": true } })));
    paths.add("post", "/api/v1/admin/claim", claim);
}

fn operation(verb: &str, summary: &str, caller: Caller) -> Operation {
    Operation::new(format!("auth.{verb}"), "auth", summary).called_by(caller)
}

fn guest(operation: Operation) -> Operation {
    operation
        .describe("404 where guests are off (`SVC_ANONYMOUS_AUTH`). What the guest makes goes along when they sign up or in with this session.")
        .without(&[401])
        .problems(&[400, 404, 413, 415])
        .response(200, session_response(json!({})))
}

/// An answer `{ "success": true }` that takes the cookie back.
fn cookie_taken_back(description: &str) -> Value {
    json!({
        "description": description,
        "headers": headers(&[("Set-Cookie", "SetCookie")]),
        "content": { "application/json": { "schema": exact_object(json!({ "success": { "type": "boolean" } })) } },
    })
}

fn status() -> Value {
    exact_object(json!({ "status": { "type": "boolean" } }))
}

fn sessions(paths: &mut Paths) {
    let list = operation("listSessions", "List the sessions of one's user", Caller::Session)
        .describe("Each has `current`; tokens are not shown.");
    paths.add(
        "get",
        "/api/auth/list-sessions",
        list.answers(200, "The sessions, newest first, 100 at most.", list_of(of::<ListedSession>())),
    );
    let maybe = json!({ "type": ["string", "null"] });
    let revoke = operation("revokeSession", "End one session of one's user", Caller::Session)
        .describe("By its id or its token. One that there is not is ended already.")
        .json_body(json!({ "type": "object", "properties": { "id": maybe, "token": maybe } }))
        .answers(200, "It is ended.", status());
    paths.add("post", "/api/auth/revoke-session", revoke);
    for (path, verb, summary) in [
        ("/api/auth/revoke-sessions", "revokeSessions", "End all sessions of one's user, this one too"),
        ("/api/auth/revoke-other-sessions", "revokeOtherSessions", "End all other sessions of one's user"),
    ] {
        let revoke = operation(verb, summary, Caller::Session)
            .describe("They hold nowhere any more, and the streams that they opened end.")
            .problems(&[400, 413, 415]);
        paths.add("post", path, revoke.answers(200, "They are ended.", status()));
    }
}

fn profile(paths: &mut Paths) {
    let password = json!({
        "type": "object",
        "properties": {
            "currentPassword": { "type": "string" },
            "newPassword": { "type": "string", "minLength": 8, "maxLength": 128 },
            "revokeOtherSessions": { "type": ["boolean", "null"], "description": "Whether all sessions end and a new one begins." },
        },
        "required": ["currentPassword", "newPassword"],
    });
    let mut changed = session_response(json!({}));
    changed["description"] = json!("The password is changed. `token` is null unless a new session began.");
    changed["content"]["application/json"]["schema"]["properties"]["token"] = json!({ "type": ["string", "null"] });
    let change = operation("changePassword", "Change one's password", Caller::Session)
        .describe("400 `INVALID_PASSWORD` where the current one is another, `CREDENTIAL_ACCOUNT_NOT_FOUND` for guests. Wrong ones count as failed sign-ins do: 429.")
        .json_body(password)
        .response(200, changed);
    paths.add("post", "/api/auth/change-password", change);
    let user = json!({
        "type": "object",
        "properties": {
            "name": { "type": ["string", "null"], "maxLength": 200 },
            "image": { "type": ["string", "null"], "maxLength": 2000 },
        },
    });
    let update = operation("updateUser", "Change one's name or image", Caller::Session)
        .describe("An address in the body is 400 `EMAIL_CAN_NOT_BE_UPDATED`; members that are not known do nothing.")
        .json_body(user)
        .answers(200, "It is changed.", status());
    paths.add("post", "/api/auth/update-user", update);
    let delete = operation("deleteAnonymousUser", "Delete the guest that one is", Caller::Session)
        .describe("403 `USER_IS_NOT_ANONYMOUS` for others; 404 where guests are off.")
        .problems(&[400, 404, 413, 415])
        .response(200, cookie_taken_back("The guest is gone, with their sessions."));
    paths.add("post", "/api/auth/delete-anonymous-user", delete);
}
