//! Randomness that a failure can be repeated with.

use fastrand::Rng;

/// Where the random numbers of a test begin. It is printed where the test fails.
pub(super) struct Seed(u64);

impl Seed {
    /// That of `BLOCKBASE_SEED`, else a new one.
    pub(super) fn new() -> Seed {
        let seed = number("BLOCKBASE_SEED").unwrap_or_else(|| fastrand::u64(..));
        // A process that is killed prints nothing at its end.
        eprintln!("BLOCKBASE_SEED={seed}");
        Seed(seed)
    }

    /// The numbers of one part of the test; each part has others.
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

/// A number of the environment.
pub(super) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number; it is {text:?}")))
}
