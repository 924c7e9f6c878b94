//! Who pays for work, and how places, bytes and turns are shared among those who pay.
//!
//! [`QuotaOwner`] names who pays. [`Places`] shares a number of places, [`ByteQuota`] shares memory, and [`Turns`] is a queue that serves
//! its owners in turn. A busy owner slows itself down and nobody else. This crate must not know what is shared, nor of errors that a
//! client sees: each user of it gives its own answer where a quota is used up.
#![forbid(unsafe_code)]

mod bytes;
mod owner;
mod places;
mod turns;

pub use bytes::{ByteQuota, BytesHeld, BytesRule};
pub use owner::{QuotaOwner, network_of};
pub use places::{Busy, Place, Places, PlacesRule};
pub use turns::Turns;
