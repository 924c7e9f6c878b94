//! Shares places, bytes and turns between the owners of work. A place is the right to do one thing at a time, such as a scan.
//!
//! [`QuotaOwner`] names the owner. [`Places`] shares a number of places, [`ByteQuota`] shares memory, and [`Turns`] is a queue
//! that serves its owners in turn. A busy owner slows down only itself. This crate must know neither the purpose of a quota nor
//! errors for clients. The code that uses a quota has its own error for a quota that is used up.
#![forbid(unsafe_code)]

mod bytes;
mod owner;
mod places;
mod turns;

pub use bytes::{ByteQuota, BytesHeld, BytesRule};
pub use owner::{QuotaOwner, network_of};
pub use places::{Busy, Place, Places, PlacesRule};
pub use turns::Turns;
