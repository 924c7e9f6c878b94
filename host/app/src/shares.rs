//! Who pays for a request, and the scans that each payer may run at a time, so that nobody uses the server up for all.
//!
//! Streams and bodies count by [`Payer`] where they are admitted.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use blockbase_schema::{Code, Error, Result};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::caller::Caller;

/// Scans of one payer, at a time.
const SCANS_EACH: usize = 2;
/// Scans of one payer that may wait for their turn.
const WAITING_EACH_MAX: usize = 100;
/// Scans that may wait in all.
const WAITING_MAX: usize = 1000;
/// How long a scan waits for its turn.
const SCAN_WAIT: Duration = Duration::from_secs(5);
/// When a caller whose scan had no turn may try again.
const RETRY_AFTER_S: u16 = 5;

/// The network whose requests count together: an IPv4 address, or a /64 of IPv6, because a single host may use all of it. An
/// IPv4 address that is written as IPv6 is the same one.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

/// Whose share a request uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Payer {
    /// The service itself: background work and reads of its own tables. It has places of its own.
    Service,
    /// A signed-in user, whatever the number of their sessions, and of the keys that they made for themselves.
    User(Arc<str>),
    /// An API key that somebody else made for its user, or that has no maker.
    Key(Arc<str>),
    /// A guest or a caller without a credential, by network address.
    Address(IpAddr),
    /// A block that runs without an invoker: it handles events.
    Block(Arc<str>),
}

impl Payer {
    /// The payer at a network address: its network.
    pub fn at(address: IpAddr) -> Payer {
        Payer::Address(network_of(address))
    }

    /// As [`Payer::at`]. Requests whose address is unknown share one place.
    pub fn of_address(address: Option<IpAddr>) -> Payer {
        Payer::at(address.unwrap_or(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED)))
    }

    pub fn is_service(&self) -> bool {
        *self == Payer::Service
    }
}

impl Caller {
    /// Whose share the caller's requests use.
    pub fn payer(&self) -> &Payer {
        &self.payer
    }
}

/// The places of callers' scans: a number in all, and two for each payer.
pub(crate) struct ScanShares {
    all: Arc<Semaphore>,
    /// Payers whose scans run or wait.
    payers: Mutex<Payers>,
    wait: Duration,
}

#[derive(Default)]
struct Payers {
    shares: HashMap<Payer, Share>,
    /// Scans that run or wait, of all.
    scans: usize,
}

struct Share {
    places: Arc<Semaphore>,
    /// Scans of the payer that run or wait.
    scans: usize,
}

/// A scan that may run, until this is dropped.
pub(crate) struct ScanPermit {
    _places: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    _entry: Entry,
}

/// A scan that is counted among those of its payer.
struct Entry {
    shares: Arc<ScanShares>,
    payer: Payer,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut payers = self.shares.payers.lock();
        payers.scans -= 1;
        if let Some(share) = payers.shares.get_mut(&self.payer) {
            share.scans -= 1;
            if share.scans == 0 {
                payers.shares.remove(&self.payer);
            }
        }
    }
}

impl ScanShares {
    pub(crate) fn new(scans_max: usize) -> ScanShares {
        ScanShares { all: Arc::new(Semaphore::new(scans_max)), payers: Mutex::default(), wait: SCAN_WAIT }
    }

    /// Waits for a place for a scan of `payer`. The service itself needs none.
    ///
    /// # Errors
    /// `unavailable` with `Retry-After`, where too many wait or the wait is too long.
    pub(crate) async fn scan(self: Arc<Self>, payer: Payer) -> Result<ScanPermit> {
        let most = self.all.available_permits();
        let (entry, places) = self.enter(payer, most)?;
        let wait = async {
            // The payer's own place first: whoever has used up their share must not hold a place of all.
            if entry.payer.is_service() {
                return Ok::<_, Error>(None);
            }
            let own = places.acquire_owned().await.map_err(Error::internal)?;
            let all = Arc::clone(&self.all).acquire_owned().await.map_err(Error::internal)?;
            Ok(Some((all, own)))
        };
        match tokio::time::timeout(self.wait, wait).await {
            Ok(places) => Ok(ScanPermit { _places: places?, _entry: entry }),
            Err(_) => Err(too_many_scans()),
        }
    }

    fn enter(self: &Arc<Self>, payer: Payer, free: usize) -> Result<(Entry, Arc<Semaphore>)> {
        let mut payers = self.payers.lock();
        let known = payers.shares.get(&payer).map_or(0, |share| share.scans);
        if known >= SCANS_EACH + WAITING_EACH_MAX || (free == 0 && payers.scans >= WAITING_MAX) {
            return Err(too_many_scans());
        }
        payers.scans += 1;
        let share = payers
            .shares
            .entry(payer.clone())
            .or_insert_with(|| Share { places: Arc::new(Semaphore::new(SCANS_EACH)), scans: 0 });
        share.scans += 1;
        let places = Arc::clone(&share.places);
        drop(payers);
        Ok((Entry { shares: Arc::clone(self), payer }, places))
    }
}

fn too_many_scans() -> Error {
    let message = format!(
        "Too many searches and scans are running. A caller has {SCANS_EACH} at a time; filter by an indexed field, or try again later."
    );
    Error::new(Code::Unavailable, message).with_retry_after(RETRY_AFTER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Payer {
        Payer::User(name.into())
    }

    #[tokio::test]
    async fn a_payer_has_two_scans_and_others_theirs() {
        let shares = Arc::new(ScanShares { wait: Duration::from_millis(20), ..ScanShares::new(3) });
        let first = Arc::clone(&shares).scan(user("a")).await.expect("a place");
        let second = Arc::clone(&shares).scan(user("a")).await.expect("a second place");
        let refused = Arc::clone(&shares).scan(user("a")).await.err().expect("no third place");
        assert_eq!((refused.code, refused.retry_after_s.map(u16::from)), (Code::Unavailable, Some(RETRY_AFTER_S)));
        let other = Arc::clone(&shares).scan(user("b")).await.expect("a place of their own");
        assert!(Arc::clone(&shares).scan(user("c")).await.is_err(), "there are three in all");
        drop(first);
        Arc::clone(&shares).scan(user("a")).await.expect("the place that is free again");
        drop((second, other));
        assert!(shares.payers.lock().shares.is_empty(), "nobody is remembered");
        assert_eq!(shares.all.available_permits(), 3);
    }

    #[tokio::test]
    async fn the_queue_of_a_payer_is_bounded() {
        let shares = Arc::new(ScanShares::new(8));
        let _running: Vec<_> = [Arc::clone(&shares).scan(user("a")).await, Arc::clone(&shares).scan(user("a")).await].into();
        let mut waiting = Vec::new();
        for _ in 0..WAITING_EACH_MAX {
            let mut scan = Box::pin(Arc::clone(&shares).scan(user("a")));
            assert!(futures_util::poll!(scan.as_mut()).is_pending());
            waiting.push(scan);
        }
        let mut one_more = Box::pin(Arc::clone(&shares).scan(user("a")));
        assert!(matches!(futures_util::poll!(one_more.as_mut()), std::task::Poll::Ready(Err(_))));
        drop(waiting);
        assert_eq!(shares.payers.lock().scans, 2);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let network_of = |text: &str| network_of(text.parse().expect("an address")).to_string();
        assert_eq!(network_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network_of("2001:db8:1:2:ffff::1"), network_of("2001:db8:1:2::"));
        assert_ne!(network_of("2001:db8:1:3::1"), network_of("2001:db8:1:2::1"));
        assert_ne!(network_of("192.0.2.1"), network_of("192.0.2.2"));
        assert_eq!(network_of("::ffff:192.0.2.1"), "192.0.2.1");
    }
}
