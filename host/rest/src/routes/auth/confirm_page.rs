//! The page that asks whether to confirm an address, for a link that was opened outside of the browser of its account.

use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use blockbase_app::escaped_html;

/// The page runs no script and loads nothing. Its form leads to the page that the link names, so the policy does not limit
/// `form-action`.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    // The address of the page contains the token, so other servers must not get it. The server itself needs the origin of the
    // form.
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:0;color:#1a1a1a;background:#fff;color-scheme:light dark}\
    main{max-width:32rem;margin:15vh auto;padding:0 1.5rem}h1{font-size:1.5rem}b{overflow-wrap:anywhere}\
    button{font:inherit;font-weight:600;padding:.6rem 1.2rem;border:0;border-radius:.4rem;color:#fff;background:#2457d6}\
    button:focus-visible{outline:3px solid #8fb0ff}@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}}";

/// The page for an address. Its form posts to the address of the page, which contains the token.
pub(super) fn confirm_page(address: &str) -> Response {
    let address = escaped_html(address);
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>Confirm your address</title>\
         <style>{STYLE}</style></head><body><main><h1>Confirm your address</h1>\
         <p>Somebody signed up with <b>{address}</b>, in another browser than this one.</p>\
         <p>If it was you, open the link in that browser, or sign in here first and open it again.</p>\
         <p>If you confirm without that, what may be somebody else's ends: the account's password and sessions, and (unless it \
         is the first admin's) its API keys and the webhooks, tasks and blocks that were made with it. Then choose a new \
         password on the sign-in page under “Forgot password”.</p>\
         <form method=\"post\"><button>Confirm {address}</button></form>\
         <p>If it was not you, close this page.</p></main></body></html>"
    );
    (StatusCode::OK, HEADERS, page).into_response()
}
