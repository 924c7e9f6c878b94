//! Random numbers that can be repeated after a failure.

use fastrand::Rng;

/// The seed of a test's random numbers. If the test fails, its output contains the seed.
pub(super) struct Seed(u64);

impl Seed {
    /// The value of `BLOCKBASE_SEED`. If it is not set, a new seed.
    pub(super) fn new() -> Seed {
        let seed = number("BLOCKBASE_SEED").unwrap_or_else(|| fastrand::u64(..));
        // Printed at the beginning, because a killed process prints nothing at its end.
        eprintln!("BLOCKBASE_SEED={seed}");
        Seed(seed)
    }

    /// The random numbers for one part of the test. Each part has different ones.
    pub(super) fn rng(&self, part: u64) -> Rng {
        Rng::with_seed(self.0.wrapping_add(part.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("Repeat it with BLOCKBASE_SEED={}.", self.0);
        }
    }
}

/// A number from the environment.
pub(super) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number; it is {text:?}")))
}
