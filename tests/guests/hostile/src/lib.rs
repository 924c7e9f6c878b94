//! A block that misbehaves in the way that its caller requests.

mod answers;
mod bombs;
mod records;
mod requests;
mod state;

use blockbase_sdk::{Context, Error, action, block};
use serde_json::Value;

/// Answers with its input, as good blocks do.
#[action]
fn good(_context: &Context, input: Value) -> Result<Value, Error> {
    Ok(input)
}

block!(
    good,
    bombs::spin,
    bombs::nap,
    bombs::descend,
    bombs::hoard,
    bombs::fill,
    bombs::flood,
    bombs::result,
    bombs::argue,
    bombs::hold,
    bombs::log,
    records::keep_writing,
    records::secret,
    records::two_configs,
    requests::send,
    requests::wasi_send,
    answers::mirror,
    answers::answer,
    answers::silent,
    answers::refuse,
    answers::panic,
    answers::slow,
    state::allocate,
    state::count,
    state::count_slowly,
    state::count_request,
    state::count_event,
);
