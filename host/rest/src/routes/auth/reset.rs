//! Setting a password with a link.

use std::fmt::Write;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use blockbase_app::{AuthProblem, MailRequest, PAGE_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::answers::{DoneAnswer, ResetRequestedAnswer};
use super::request::{AuthBody, client, operation};
use super::responses::leads_to;
use super::sign::callback;
use crate::AppState;
use crate::answer::auth::AuthError;
use crate::answer::error::ApiError;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::operation::{Caller, Paths, headers, path_parameter, query_parameter};
use crate::request::admission::Anyone;
use crate::request::extract::{PathParts, QueryPairs, RequestInfo, languages};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/auth/request-password-reset", request_reset)
        .get("/api/auth/reset-password/{token}", reset_callback)
        .post("/api/auth/reset-password", reset_password)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResetBody {
    #[schemars(length(min = PASSWORD_CHARS_MIN, max = PASSWORD_CHARS_MAX))]
    new_password: String,
    /// The token of the link.
    token: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResetRequestBody {
    #[schemars(extend("format" = "email"))]
    email: String,
    /// The page where the link of the mail ends, with the token as a parameter: a path of this server, or a URL of a trusted origin. The
    /// default is the console's page.
    #[schemars(length(max = PAGE_CHARS_MAX))]
    redirect_to: Option<String>,
}

pub(crate) async fn request_reset(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: ResetRequestBody = body.parse()?;
    let page = callback(&state, body.redirect_to).map_err(|_| AuthError::InvalidRedirectUrl)?;
    let request = MailRequest { email: body.email, page, languages: languages(&headers) };
    state.app.request_password_reset(&client(credentials, &headers, &info), request).await?;
    Ok(axum::Json(ResetRequestedAnswer::REQUESTED).into_response())
}

pub(crate) async fn reset_callback(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    headers: HeaderMap,
    token: Result<PathParts<String>, ApiError>,
    query: Result<QueryPairs, ApiError>,
) -> Result<Response, AuthError> {
    let (PathParts(token), query) = (token?, query?);
    let page = callback(&state, query.get("callbackURL").map(str::to_owned))?;
    let page = page.ok_or_else(|| AuthProblem::Validation("`callbackURL` is missing. It names the page to go to.".to_owned()))?;
    let parameter = match state.app.password_link_holds(&client(credentials, &headers, &info), &token).await? {
        true => ("token", token.as_str()),
        false => ("error", "INVALID_TOKEN"),
    };
    let location = with_parameter(&page, parameter).ok_or(AuthError::InvalidCallbackUrl)?;
    Ok(leads_to(StatusCode::FOUND, location))
}

pub(crate) async fn reset_password(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    headers: HeaderMap,
    query: Result<QueryPairs, ApiError>,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let (query, body): (QueryPairs, ResetBody) = (query?, body.parse()?);
    let token = body.token.or_else(|| query.get("token").map(str::to_owned)).filter(|token| !token.is_empty());
    let token = token.ok_or(AuthProblem::InvalidToken)?;
    state.app.reset_password(&client(credentials, &headers, &info), &token, body.new_password).await?;
    Ok(axum::Json(DoneAnswer::DONE).into_response())
}

/// Sets a parameter in the query of a page's URL, and replaces an earlier value of it. `page` was checked: it is a path or a URL
/// of a trusted origin.
///
/// A path is not parsed, because its normal form could begin with `//`, which browsers take for another host.
pub(super) fn with_parameter(page: &str, (name, value): (&str, &str)) -> Option<HeaderValue> {
    let page = match page.starts_with('/') {
        true => page.to_owned(),
        false => Url::parse(page).ok()?.into(),
    };
    let (rest, fragment) = page.split_once('#').map_or((page.as_str(), None), |(rest, fragment)| (rest, Some(fragment)));
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let kept = form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known != name);
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).append_pair(name, value).finish();
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    header_of(&format!("{path}?{query}{fragment}"))
}

/// A page's address as a header: characters that a header cannot have are percent-encoded.
pub(super) fn header_of(page: &str) -> Option<HeaderValue> {
    let mut location = String::new();
    for byte in page.bytes() {
        match byte {
            0x21..=0x7e => location.push(char::from(byte)),
            _ => write!(location, "%{byte:02X}").ok()?,
        }
    }
    HeaderValue::from_str(&location).ok()
}

pub(crate) fn describe(paths: &mut Paths) {
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
        .answers(200, "The password is set.", of::<DoneAnswer>());
    paths.add("post", "/api/auth/reset-password", set);
}

/// The request of a link. If the server sends no mail, it answers 404.
pub(crate) fn describe_request(paths: &mut Paths) {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_host_and_gets_the_parameter() {
        for (page, location) in [
            ("/welcome", "/welcome?token=t"),
            ("/welcome?a=1&token=old&b=%26#x", "/welcome?a=1&b=%26&token=t#x"),
            ("https://app.example", "https://app.example/?token=t"),
            ("https://app.example/a b?c=d#e", "https://app.example/a%20b?c=d&token=t#e"),
            ("/Straße", "/Stra%C3%9Fe?token=t"),
            // The parser's normal form of this path is `//evil.example`.
            ("/.//evil.example", "/.//evil.example?token=t"),
            ("/x/..//evil.example", "/x/..//evil.example?token=t"),
        ] {
            assert_eq!(with_parameter(page, ("token", "t")).expect("a header"), location, "{page}");
        }
    }
}
