//! Hooks: one returns its request, and the others return responses that are not allowed, or fail.

use blockbase_sdk::{Context, Error, hook, hooks};
use serde::Deserialize;
use serde_json::{Value, json};

/// Shows the request, its bytes as numbers.
#[hook]
pub(crate) fn mirror(context: &Context, request: hooks::Request) -> Result<hooks::Response, Error> {
    hooks::Response::json(&json!({
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "headers": request.headers,
        "body": request.body,
        "remoteAddress": request.remote_address,
        "isAnonymous": context.actor.is_none(),
    }))
}

#[derive(Deserialize)]
struct Wanted {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: String,
}

/// Answers what the body says.
#[hook]
pub(crate) fn answer(_context: &Context, request: hooks::Request) -> Result<hooks::Response, Error> {
    let Wanted { status, headers, body } = request.json()?;
    Ok(hooks::Response { status, headers, body: body.into_bytes() })
}

/// Answers nothing.
#[hook]
pub(crate) fn silent(_context: &Context, _request: hooks::Request) -> Result<Option<hooks::Response>, Error> {
    Ok(None)
}

/// Fails with a reason that only the author of the block may see.
#[hook]
pub(crate) fn refuse(_context: &Context, _request: hooks::Request) -> Result<(), Error> {
    Err(Error::forbidden("the \u{1b}[2Jsignature is 4 bytes short").with_details(Value::from("inside")))
}

/// Traps.
#[hook]
pub(crate) fn panic(_context: &Context, _request: hooks::Request) -> Result<(), Error> {
    panic!("the author's mistake")
}

/// Never ends.
#[hook]
pub(crate) fn slow(_context: &Context, _request: hooks::Request) -> Result<(), Error> {
    crate::bombs::sleep(u32::MAX.into());
    Ok(())
}
