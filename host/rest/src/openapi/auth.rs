//! Sign-up, sign-in, sign-out, and who the caller is.

use serde_json::{Value, json};

use super::components::{exact_object, instant, schema};
use super::operation::{Caller, Operation, Paths, headers};

pub(super) fn schemas() -> Value {
    let text = json!({ "type": "string" });
    let maybe = json!({ "type": ["string", "null"] });
    let flag = json!({ "type": "boolean" });
    let remember =
        json!({ "type": ["boolean", "null"], "description": "Whether the session outlives the browser; true by default." });
    let credentials = |more: Value, required: &[&str]| {
        let mut properties = json!({ "email": text, "password": text, "rememberMe": remember });
        for (key, value) in more.as_object().into_iter().flatten() {
            properties[key] = value.clone();
        }
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let user = exact_object(json!({
        "id": { "type": "string", "format": "uuid" },
        "name": text,
        "email": text,
        "emailVerified": flag,
        "image": maybe,
        "isAnonymous": flag,
        "createdAt": instant(),
        "updatedAt": instant(),
    }));
    let session = exact_object(json!({
        "id": { "type": "string", "format": "uuid" },
        "token": text,
        "userId": { "type": "string", "format": "uuid" },
        "expiresAt": instant(),
        "createdAt": instant(),
        "updatedAt": instant(),
        "ipAddress": maybe,
        "userAgent": maybe,
    }));
    json!({
        "SvcSignUp": credentials(json!({
            "name": { "type": "string", "maxLength": 200 },
            "email": { "type": "string", "format": "email" },
            "password": { "type": "string", "minLength": 8, "maxLength": 128 },
            "image": { "type": ["string", "null"], "maxLength": 2000, "description": "The URL of a picture." },
        }), &["name", "email", "password"]),
        "SvcSignIn": credentials(json!({}), &["email", "password"]),
        "SvcUser": user,
        "SvcSession": session,
        "SvcMe": {
            "type": "object",
            "properties": {
                "authenticated": flag,
                "userId": { "type": "string", "format": "uuid" },
                "roles": { "type": "array", "items": text },
                "user": schema("SvcUser"),
            },
            "required": ["authenticated"],
            "additionalProperties": false,
        },
    })
}

/// An answer that hands out a session.
fn session_response(more: Value) -> Value {
    let mut properties = json!({ "token": { "type": "string" }, "user": schema("SvcUser") });
    for (key, value) in more.as_object().into_iter().flatten() {
        properties[key] = value.clone();
    }
    json!({
        "description": "The session: its token in the body and in `set-auth-token`, and a signed cookie.",
        "headers": headers(&[("Set-Cookie", "SetCookie"), ("set-auth-token", "SetAuthToken")]),
        "content": { "application/json": { "schema": exact_object(properties) } },
    })
}

pub(super) fn describe(paths: &mut Paths) {
    let operation = |verb: &str, summary: &str, caller| Operation::new(format!("auth.{verb}"), "auth", summary).called_by(caller);
    let sign_up = operation("signUp", "Sign up with an address and a password", Caller::Unseen)
        .describe("The first user to sign up becomes admin. Where sign-up is closed it is 400 `EMAIL_PASSWORD_SIGN_UP_DISABLED`.")
        .json_body(schema("SvcSignUp"))
        .without(&[401])
        .problems(&[409, 422])
        .response(200, session_response(json!({})));
    paths.add("post", "/api/auth/sign-up/email", sign_up);
    let sign_in = operation("signIn", "Sign in with an address and a password", Caller::Unseen)
        .describe("A wrong password and an unknown address answer alike: 401 `INVALID_EMAIL_OR_PASSWORD`.")
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
    let mut done = json!({ "description": "There is no session any more, whether there was one or not." });
    done["headers"] = headers(&[("Set-Cookie", "SetCookie")]);
    done["content"] = json!({ "application/json": { "schema": exact_object(json!({ "success": { "type": "boolean" } })) } });
    let sign_out = operation("signOut", "End the session", Caller::Anyone)
        .describe("Ends the session that the request shows; it holds nowhere any more.")
        .without(&[401])
        .response(200, done);
    paths.add("post", "/api/auth/sign-out", sign_out);
    let both = exact_object(json!({ "session": schema("SvcSession"), "user": schema("SvcUser") }));
    let get_session = operation("getSession", "Get the session and its user", Caller::Anyone)
        .describe("Null where no session holds; that is no error.")
        .without(&[401, 403])
        .answers(200, "The session, or null.", json!({ "anyOf": [both, { "type": "null" }] }));
    paths.add("get", "/api/auth/get-session", get_session);
    let me = operation("me", "Ask who the caller is", Caller::Anyone)
        .describe("Takes a session's cookie or token. A credential that does not hold is an answer, not an error.")
        .without(&[401, 403])
        .answers(200, "The verdict; the other members are there where it is true.", schema("SvcMe"));
    paths.add("get", "/api/v1/me", me);
}
