//! A block that imports and exports records as CSV.
//!
//! It acts only with its caller's rights (`"as": "caller"` in `block.json`), so it gives nobody new rights.

mod cell;
mod export;
mod import;
mod record;
mod refusal;
mod table;

use blockbase_sdk::block;

block!(import::import, export::export);
