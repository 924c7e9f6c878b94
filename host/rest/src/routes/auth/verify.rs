//! The proof of an address with a link.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use blockbase_app::{AddressProof, AuthProblem, MailRequest, PAGE_CHARS_MAX};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answers::{AddressProvedAnswer, DoneAnswer};
use super::confirm_page::confirm_page;
use super::mail_links::link_parameters;
use super::request::{AuthBody, client, operation};
use super::reset::{header_of, with_parameter};
use super::responses::{hand_out, leads_to};
use super::sign::callback;
use crate::AppState;
use crate::answer::auth::AuthError;
use crate::answer::error::ApiError;
use crate::openapi::answers::of;
use crate::openapi::bodies::body_of;
use crate::openapi::operation::{Caller, Paths, headers};
use crate::request::admission::Anyone;
use crate::request::extract::{QueryPairs, RequestInfo, languages};
use crate::routing::Routes;

pub(crate) fn routes() -> Routes {
    Routes::new()
        .post("/api/auth/send-verification-email", send_verification)
        .get("/api/auth/verify-email", verify_email)
        .post("/api/auth/verify-email", verify_email)
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct VerificationBody {
    #[schemars(extend("format" = "email"))]
    email: String,
    /// The page where the link of the mail ends: a path of this server, or a URL of a trusted origin. The default is `/`.
    #[serde(rename = "callbackURL")]
    #[schemars(length(max = PAGE_CHARS_MAX))]
    callback_url: Option<String>,
}

pub(crate) async fn send_verification(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    headers: HeaderMap,
    body: AuthBody,
) -> Result<Response, AuthError> {
    let body: VerificationBody = body.parse()?;
    let page = callback(&state, body.callback_url)?;
    let request = MailRequest { email: body.email, page, languages: languages(&headers) };
    state.app.request_verification(&client(credentials, &headers, &info), request).await?;
    Ok(axum::Json(DoneAnswer::DONE).into_response())
}

pub(crate) async fn verify_email(
    State(state): State<AppState>,
    Extension(info): Extension<RequestInfo>,
    Anyone(credentials): Anyone,
    method: Method,
    headers: HeaderMap,
    query: Result<QueryPairs, ApiError>,
) -> Result<Response, AuthError> {
    let query = query?;
    let page = callback(&state, query.get("callbackURL").map(str::to_owned))?;
    let token = query.get("token").ok_or_else(|| AuthProblem::Validation("`token` is missing.".to_owned()))?;
    // This comes before all effects, so that a page whose address cannot be sent does not use up the link.
    let location = page.as_deref().map(|page| header_of(page).ok_or(AuthError::InvalidCallbackUrl)).transpose()?;
    if method == Method::HEAD {
        // Programs that check the links of mails send such requests. They do not follow a link for a person.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let leads = if method == Method::POST { StatusCode::SEE_OTHER } else { StatusCode::FOUND };
    let failed = |page: &str, code: &str| {
        let location = with_parameter(page, ("error", code)).ok_or(AuthError::InvalidCallbackUrl)?;
        Ok(leads_to(leads, location))
    };
    let asks = method == Method::GET && page.is_some() && may_be_navigation(&headers);
    let (session, user) = match (state.app.verify_email(&client(credentials, &headers, &info), token, asks).await, &page) {
        (Ok(AddressProof::Asks(address)), _) => return Ok(confirm_page(&address)),
        (Ok(AddressProof::Proved(session)), _) => (session, None),
        (Ok(AddressProof::Changed(user)), _) => (None, Some(user)),
        (Err(AuthProblem::InvalidVerification), Some(page)) => return failed(page, "INVALID_TOKEN"),
        (Err(AuthProblem::ExpiredVerification), Some(page)) => return failed(page, "TOKEN_EXPIRED"),
        (Err(AuthProblem::LinkOfAnother), Some(page)) => return failed(page, "INVALID_USER"),
        (Err(problem), _) => return Err(problem.into()),
    };
    let mut response = match location {
        Some(location) => leads_to(leads, location),
        None => axum::Json(AddressProvedAnswer { status: true, user: user.as_ref() }).into_response(),
    };
    if let Some(session) = session {
        hand_out(&state, &mut response, session.token.as_str(), session.remember);
    }
    Ok(response)
}

/// Whether a browser may show the response as a page. Browsers say what the request is for. Other programs, such as those that
/// check the links of mails, do not.
fn may_be_navigation(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-mode").is_none_or(|mode| mode == "navigate")
}

pub(crate) fn describe(paths: &mut Paths) {
    let send = operation("sendVerificationEmail", "Ask for a link that proves an address", Caller::Unseen)
        .describe(
            "The server mails the link. With a session, the address has to be the user's (400 `EMAIL_MISMATCH`), and not be proved yet (400 \
            `EMAIL_ALREADY_VERIFIED`). Without one, the response is the same for every address. One address gets at most five mails in an \
            hour. The response is 404 if the server sends no mail (`SVC_SMTP_URL`).",
        )
        .json_body(body_of::<VerificationBody>())
        .without(&[401])
        .problems(&[404])
        .answers(200, "The link is mailed if an account has the address and has not proved it.", of::<DoneAnswer>());
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
            suspends what was made with it, unless the browser has a session of the account or signed up for it. The first admin \
            keeps API keys and what was made with the account. With `callbackURL`, the response leads there, with \
            `error=INVALID_TOKEN` or `error=TOKEN_EXPIRED` if the token is not valid, and `error=INVALID_USER` if it changes the \
            address of an account that is not signed in there. Without it, the response is 401 then. If addresses have to be \
            proved (`SVC_REQUIRE_EMAIL_VERIFICATION`), the browser that signed up gets a session.\n\n\
            If another browser opens a link with `callbackURL`, nothing happens yet: the response is a page with a button, which sends the same request with POST. So programs \
            that open links in mail prove nothing.",
        )
        .response(302, leads());
    paths.add("get", "/api/auth/verify-email", verify);
    let confirm = proof("confirmEmail", "Prove an address with a link at once", json!({}))
        .describe("The same as with GET, without the page that asks first.")
        .response(303, leads());
    paths.add("post", "/api/auth/verify-email", confirm);
}
