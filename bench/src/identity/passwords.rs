//! The floor for a sign-in: argon2id with the server's parameters on every core, without a server.

use std::time::{Duration, Instant};

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use hdrhistogram::Histogram;

use crate::load::Measured;

/// The parameters of `host/auth`: 19 MiB, 2 passes, 1 lane.
fn argon2() -> Argon2<'static> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(19 * 1024, 2, 1, None).unwrap())
}

/// Verifies `password` repeatedly on one thread for each core, after a short warm-up.
pub(crate) fn run(password: &str, time: Duration) -> Measured {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let hash = argon2().hash_password(password.as_bytes()).unwrap().to_string();
    let warm = Instant::now() + time / 8;
    let end = warm + time;
    let verify = || {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        loop {
            let begun = Instant::now();
            if begun >= end {
                return histogram;
            }
            argon2().verify_password(password.as_bytes(), &PasswordHash::new(&hash).unwrap()).unwrap();
            if begun >= warm {
                histogram.record(begun.elapsed().as_micros() as u64).unwrap();
            }
        }
    };
    let mut all = Histogram::<u64>::new(3).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(verify)).collect();
        for thread in threads {
            all.add(thread.join().unwrap()).unwrap();
        }
    });
    Measured {
        a_second: all.len() as f64 / time.as_secs_f64(),
        p50_us: all.value_at_quantile(0.5),
        p99_us: all.value_at_quantile(0.99),
    }
}
