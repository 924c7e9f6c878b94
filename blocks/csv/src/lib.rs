//! A block that imports and exports records as CSV.
//!
//! It acts with its caller's rights alone (`"as": "caller"` in `block.json`), so it opens nothing that was closed before.

mod cell;
mod export;
mod import;
mod record;
mod refusal;
mod table;

use blockbase_sdk::block;

block!(import::import, export::export);
