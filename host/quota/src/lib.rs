//! Shares places, bytes and turns between the owners of work.
//!
//! [`QuotaOwner`] names the owner. [`Places`] shares a number of places, [`ByteQuota`] shares memory, and [`Turns`] is a queue
//! that serves its owners in turn. A busy owner slows down only itself. This crate must not know the purpose of a quota, nor
//! errors for clients. Each user of a quota has its own error for a quota that is used up.
#![forbid(unsafe_code)]

mod bytes;
mod owner;
mod places;
mod turns;

pub use bytes::{ByteQuota, BytesHeld, BytesRule};
pub use owner::{QuotaOwner, network_of};
pub use places::{Busy, Place, Places, PlacesRule};
pub use turns::Turns;
