//! The rates of requests, by address.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::http::HeaderValue;
use axum::response::Response;
use blockbase_app::network_of;
use blockbase_app::schema::{Code, Error};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::answer::error::{is_auth, unhandled};
use crate::paths::{is_file, is_probe};
use crate::state::settings::Settings;

/// The lowest limit for pages and files, per minute and address. A low limit for requests must not prevent a page from loading.
const FILES_PER_MINUTE_MIN: u32 = 600;
/// The maximum number of addresses that a limiter remembers. If there are more, it forgets those without recent requests.
const ADDRESSES_MAX: usize = 50_000;

/// The rate limiters.
pub(crate) struct Limits {
    all: Option<Limiter>,
    auth: Option<Limiter>,
    /// The limiter for pages and files from the binary. They have their own limit, because a page loads dozens of files, and
    /// serving one costs little.
    files: Option<Limiter>,
    begun: Instant,
}

/// One of the limiters.
struct Limiter {
    by_network: DefaultKeyedRateLimiter<IpAddr>,
    /// The time at which its addresses were last counted, in seconds after [`Limits::begun`].
    swept_at: AtomicU64,
}

impl Limits {
    pub(crate) fn new(settings: &Settings) -> Limits {
        let limiter = |per_minute: u32| {
            let by_network = RateLimiter::dashmap(Quota::per_minute(NonZeroU32::new(per_minute)?));
            Some(Limiter { by_network, swept_at: AtomicU64::default() })
        };
        Limits {
            all: limiter(settings.requests_per_minute),
            auth: limiter(settings.auth_requests_per_minute),
            files: limiter(match settings.requests_per_minute {
                0 => 0,
                rate => rate.max(FILES_PER_MINUTE_MIN),
            }),
            begun: Instant::now(),
        }
    }

    /// Counts a request of `address`, or returns the refusal if there were too many requests.
    pub(crate) fn admit(&self, address: IpAddr, path: &str) -> Result<(), Box<Response>> {
        if is_probe(path) {
            return Ok(());
        }
        let limiters = match path {
            path if is_file(path) => [self.files.as_ref(), None],
            path if is_auth(path) => [self.all.as_ref(), self.auth.as_ref()],
            _ => [self.all.as_ref(), None],
        };
        for limiter in limiters.into_iter().flatten() {
            limiter.sweep(self.begun.elapsed().as_secs());
            let counted = limiter.by_network.check_key(&network_of(address));
            counted.map_err(|not_until| {
                let seconds = not_until.wait_time_from(DefaultClock::default().now()).as_secs() + 1;
                Box::new(too_many(path, seconds))
            })?;
        }
        Ok(())
    }
}

impl Limiter {
    /// If there are many addresses, drops those without recent requests. It counts them at most once a second, because that takes
    /// many locks. `now` is in seconds after [`Limits::begun`].
    fn sweep(&self, now: u64) {
        let is_swept = self.swept_at.load(Ordering::Relaxed) == now || self.swept_at.swap(now, Ordering::Relaxed) == now;
        if !is_swept && self.by_network.len() > ADDRESSES_MAX {
            self.by_network.retain_recent();
        }
    }
}

fn too_many(path: &str, seconds: u64) -> Response {
    let message = format!("Too many requests from this address. Try again in {seconds} s.");
    let mut response = unhandled(path, Error::new(Code::RateLimited, message));
    let seconds = HeaderValue::from(seconds);
    response.headers_mut().insert("x-retry-after", seconds.clone());
    response.headers_mut().insert("retry-after", seconds);
    response
}
