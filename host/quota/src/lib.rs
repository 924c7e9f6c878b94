//! Owners of work, and how they share places, bytes and turns.
//!
//! [`QuotaOwner`] names the owner. [`Places`] shares a number of places, [`ByteQuota`] shares memory, and [`Turns`] is a queue that serves
//! its owners in turn. A busy owner slows down only itself. This crate must not know what is shared, and it knows no errors for clients:
//! each user of a quota gives its own answer when the quota is used up.
#![forbid(unsafe_code)]

mod bytes;
mod owner;
mod places;
mod turns;

pub use bytes::{ByteQuota, BytesHeld, BytesRule};
pub use owner::{QuotaOwner, network_of};
pub use places::{Busy, Place, Places, PlacesRule};
pub use turns::Turns;
