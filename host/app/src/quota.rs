//! What callers have a share of in this crate: scans, so that nobody uses the server up for all.
//!
//! Streams, exports and tries of passwords have their places where they begin; bodies and responses are counted by the surface.

use std::sync::Arc;
use std::time::Duration;

use blockbase_quota::{Place, Places, PlacesRule, QuotaOwner};
use blockbase_schema::{Code, Error, Result};

use crate::App;
use crate::caller::Caller;

/// Scans of one owner, at a time.
const SCANS_EACH: usize = 2;
/// Scans of one owner that may wait for their turn.
const WAITING_EACH_MAX: usize = 100;
/// Scans that may wait in all.
const WAITING_MAX: usize = 1000;
/// How long a scan waits for its turn.
const SCAN_WAIT: Duration = Duration::from_secs(5);
/// When a caller whose scan had no turn may try again.
const RETRY_AFTER_S: u16 = 5;

impl Caller {
    /// Whose share the caller's requests use.
    pub fn quota_owner(&self) -> &QuotaOwner {
        &self.quota_owner
    }
}

/// A scan that may run, until this is dropped. The service itself needs no place.
pub(crate) struct ScanPermit(#[expect(dead_code, reason = "it is held")] Option<Place>);

/// Places for the scans of callers.
pub(crate) fn scan_places(scans_max: usize) -> Arc<Places> {
    Places::new(PlacesRule {
        all: scans_max,
        each: SCANS_EACH,
        waiting_each: WAITING_EACH_MAX,
        waiting: WAITING_MAX,
        wait: SCAN_WAIT,
    })
}

impl App {
    /// Waits for a place for a scan of the caller's.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After`, where too many wait or the wait is too long.
    pub(crate) fn scan_permit(&self, caller: &Caller) -> impl Future<Output = Result<ScanPermit>> + Send + use<> {
        let (places, owner) = (Arc::clone(&self.scans), caller.quota_owner.clone());
        async move {
            if owner.is_service() {
                return Ok(ScanPermit(None));
            }
            places.take(&owner).await.map(|place| ScanPermit(Some(place))).map_err(|_| too_many_scans())
        }
    }
}

fn too_many_scans() -> Error {
    let message = format!(
        "Too many searches and scans are running. A caller has {SCANS_EACH} at a time; filter by an indexed field, or try again later."
    );
    Error::new(Code::Unavailable, message).with_retry_after(RETRY_AFTER_S)
}
