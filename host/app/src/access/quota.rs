//! The shares of callers: scans, and bytes of responses that wait for their reader. So no caller can use up the whole server.
//!
//! The files of streams, exports and password attempts take the places for these. The surface counts the bodies of requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blockbase_quota::{ByteQuota, BytesRule, Place, Places, PlacesRule, QuotaOwner};
use blockbase_schema::{Error, Result};
use blockbase_store::{Connection, Read, Reader, Writer};
use futures_util::future::BoxFuture;

use crate::App;
use crate::base::frames::{FrameSender, Frames, frames};
use crate::caller::Caller;

/// The maximum number of scans that one owner may run at a time.
const SCANS_EACH: usize = 2;
/// The maximum number of scans of one owner that may wait for their turn.
const WAITING_EACH_MAX: usize = 100;
/// The maximum number of scans of all owners that may wait.
const WAITING_MAX: usize = 1000;
/// How long a scan waits for its turn.
const SCAN_WAIT: Duration = Duration::from_secs(5);

/// The maximum number of bytes of all responses that wait for their reader.
const RESPONSE_BYTES_MAX: usize = 512 * 1024 * 1024;
/// The maximum number of bytes of the waiting responses of one owner.
const RESPONSE_BYTES_EACH: usize = RESPONSE_BYTES_MAX / 8;

/// The permit to run a scan, until this is dropped. The service's own scans need no place.
pub(crate) struct ScanPermit(#[expect(dead_code, reason = "it is held")] Option<Place>);

/// Reads and writes of the service on behalf of a caller. They wait for the caller's turn, but are not checked against the caller's
/// rights.
pub(crate) struct InTurnOf(pub(crate) QuotaOwner);

impl Reader for InTurnOf {
    fn owner(&self) -> QuotaOwner {
        self.0.clone()
    }

    fn check<'c>(&'c self, _connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        None
    }
}

impl Writer for InTurnOf {
    fn check_before_commit<'c>(&'c self, _connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        None
    }
}

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

/// The quota for bytes of responses that wait for their reader.
pub(crate) fn response_bytes() -> Arc<ByteQuota> {
    ByteQuota::new(BytesRule {
        all: RESPONSE_BYTES_MAX,
        each: RESPONSE_BYTES_EACH,
        waiting_each: WAITING_EACH_MAX,
        waiting: WAITING_MAX,
        wait: SCAN_WAIT,
    })
}

impl App {
    /// The quota for bytes of responses that wait for their reader. A surface counts each response here until it is sent.
    pub fn response_bytes(&self) -> &Arc<ByteQuota> {
        &self.response_bytes
    }

    /// Returns how many bytes the rows of one more list may have.
    pub(crate) fn answer_bytes_left(&self, caller: &Caller) -> usize {
        caller.answer_left.as_ref().map_or(self.settings.answer_bytes_max, |left| left.load(Ordering::Relaxed))
    }

    /// A queue of at most `frames_max` frames, whose bytes count among those of the owner's responses.
    pub fn frames(&self, frames_max: usize, owner: &QuotaOwner) -> (FrameSender, Frames) {
        frames(frames_max, Some((Arc::clone(&self.response_bytes), owner.clone())))
    }

    /// Waits until an owner may have a further response. While the owner does not read the waiting responses, the server makes no
    /// new one.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After`, if too many wait or the wait is too long.
    pub async fn response_room(&self, owner: &QuotaOwner) -> Result<()> {
        response_room(&self.response_bytes, owner).await
    }

    /// Checks the same without a wait, for a request that has already waited for its turn.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After`.
    pub(crate) fn check_response_room(&self, owner: &QuotaOwner) -> Result<()> {
        match owner.is_service() || self.response_bytes.has_room(owner) {
            true => Ok(()),
            false => Err(no_response_room()),
        }
    }

    /// Waits for a place for a scan of the caller. The result of a scan may be large, so there has to be room for a response too.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After`, if too many wait or the wait is too long.
    pub(crate) fn scan_permit(&self, caller: &Caller) -> impl Future<Output = Result<ScanPermit>> + Send + use<> {
        let (places, bytes, owner) = (Arc::clone(&self.scans), Arc::clone(&self.response_bytes), caller.quota_owner.clone());
        async move {
            if owner.is_service() {
                return Ok(ScanPermit(None));
            }
            let place = places.take(&owner).await.map_err(|_| too_many_scans())?;
            response_room(&bytes, &owner).await?;
            Ok(ScanPermit(Some(place)))
        }
    }
}

impl App {
    /// Runs a caller's read of records. If the read becomes a scan, it takes one of the caller's places for scans. If accounts
    /// have changed meanwhile, it checks the caller again: after the wait for a turn, and before it returns the answer.
    ///
    /// # Errors
    /// `unavailable` if the caller has no place for a scan left, the errors of [`App::recheck`], and those of `body`.
    pub(crate) async fn read_metered<T, F>(&self, caller: &Caller, read: Read, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
    {
        self.read_metered_in(caller, None, read, body).await
    }

    /// Does the same for a caller who may already have a permit. The read then uses this permit. If several requests each kept a
    /// permit and waited for a second one, they would wait for each other forever.
    pub(crate) async fn read_metered_in<T, F>(
        &self,
        caller: &Caller,
        permit: Option<&Arc<ScanPermit>>,
        read: Read,
        body: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
    {
        let answer = self.read_metered_unchecked(caller, permit, read, body).await?;
        self.recheck(caller).await?;
        Ok(answer)
    }

    /// Does the same without the last check, for an answer that depends on nobody's rights. Others can then use it even if the
    /// caller has lost a right. Before the caller gets it, [`App::recheck`] has to check the caller.
    ///
    /// # Errors
    /// `unavailable` if the caller has no place for a scan left, those of the check before `body`, and those of `body`.
    pub(crate) async fn read_metered_unchecked<T, F>(
        &self,
        caller: &Caller,
        permit: Option<&Arc<ScanPermit>>,
        read: Read,
        body: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + Sync + 'static,
    {
        let (held, place) = (permit.cloned(), self.scan_permit(caller));
        let place = async move {
            match held {
                Some(permit) => Ok(permit),
                None => place.await.map(Arc::new),
            }
        };
        self.store.read_metered(self.by(caller), read, place, body).await
    }

    /// Looks up a few rows of the service's own tables for a caller, by an index. It uses one of the callers' connections, in the
    /// caller's turn, and checks the caller again like [`App::read_metered`]. [`Store::read_as_service`] does none of that.
    ///
    /// # Errors
    /// `unavailable` if too many requests wait for a connection, the errors of [`App::recheck`], and those of `body`.
    ///
    /// [`Store::read_as_service`]: blockbase_store::Store::read_as_service
    pub(crate) async fn look_up<T, F>(&self, caller: &Caller, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let answer = self.store.read_rows(self.by(caller), None, body).await?;
        self.recheck(caller).await?;
        Ok(answer)
    }

    /// Waits for a place, and then runs a caller's scan of the service's own tables, like [`App::read_metered`].
    ///
    /// # Errors
    /// `unavailable` if the caller has no place for a scan left, the errors of [`App::recheck`], and those of `body`.
    pub(crate) async fn scan<T, F>(&self, caller: &Caller, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let permit = self.scan_permit(caller).await?;
        self.scan_in(caller, permit, body).await
    }

    /// Runs a scan like [`App::scan`], in a place that the caller already has.
    pub(crate) async fn scan_in<T, F, P>(&self, caller: &Caller, permit: P, body: F) -> Result<T>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
        P: Send + 'static,
    {
        let answer = self.store.scan(self.by(caller), permit, body).await?;
        self.recheck(caller).await?;
        Ok(answer)
    }
}

async fn response_room(bytes: &ByteQuota, owner: &QuotaOwner) -> Result<()> {
    bytes.room(owner).await.map_err(|_| no_response_room())
}

fn no_response_room() -> Error {
    let message = "Too many responses wait in memory until their clients read them. Read the responses to your requests, or try again later.";
    Error::busy(message)
}

fn too_many_scans() -> Error {
    let message = format!(
        "Too many searches and scans are running. A caller has {SCANS_EACH} at a time; filter by an indexed field, or try again later."
    );
    Error::busy(message)
}
