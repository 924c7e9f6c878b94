//! Passwords: their rules, and argon2id hashes, which do not run on the request threads.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// The minimum number of characters of a password.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// The maximum number of characters of a password.
pub const PASSWORD_CHARS_MAX: usize = 128;
/// The memory for one hash, in KiB. 19 MiB are the recommendation of OWASP for argon2id with two passes.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// The reason for refusing a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordProblem {
    TooShort,
    TooLong,
    /// The password is the email address of the account.
    IsEmail,
    /// The password is very common, so an attacker would try it early.
    IsCommon,
    /// According to the operator's list, the password was in a breach.
    IsBreached,
}

/// The 3,000 most common passwords of at least eight characters, in lower case. They are the beginning of the list that Django
/// contains (BSD license). Royce Williams made it from the list of Have I Been Pwned.
static COMMON: LazyLock<HashSet<&'static str>> = LazyLock::new(|| include_str!("common_passwords.txt").lines().collect());

/// Checks a new password against the rules.
pub fn check_password(password: &str, email: &str) -> Result<(), PasswordProblem> {
    match password.chars().count() {
        count if count < PASSWORD_CHARS_MIN => Err(PasswordProblem::TooShort),
        count if count > PASSWORD_CHARS_MAX => Err(PasswordProblem::TooLong),
        _ if password.trim().eq_ignore_ascii_case(email) => Err(PasswordProblem::IsEmail),
        _ if COMMON.contains(password.to_lowercase().as_str()) => Err(PasswordProblem::IsCommon),
        _ => Ok(()),
    }
}

/// The maximum number of hashes that wait for a thread.
const WAITING_MAX: usize = 512;
/// The number of hashes for each core that have a thread. One of them runs, and the next one begins as soon as it ends. Without a
/// thread of its own, the next one would have to wait until the runtime gives it one, and the core might be idle meanwhile.
const THREADS_PER_CORE: usize = 2;

/// The reason why a password was not hashed or verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashError {
    /// Too many other hashes are waiting.
    Busy,
    Failed(String),
}

/// Hashes and verifies passwords. At most one hash per core runs at a time.
#[derive(Clone)]
pub struct PasswordHasher {
    /// A permit for each hash that may have a thread.
    threads: Arc<Semaphore>,
    /// A permit for each hash that may run.
    cores: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    /// The hash of a random password. It is verified if the user does not exist, so that the answer takes the same time as for an
    /// existing user.
    decoy: Arc<str>,
}

fn argon2() -> Argon2<'static> {
    // The constants are valid parameters of the algorithm, so the default is never used.
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).unwrap_or_default();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

fn hash_now(password: &str) -> Result<String, String> {
    argon2().hash_password(password.as_bytes()).map(|hash| hash.to_string()).map_err(|error| error.to_string())
}

impl PasswordHasher {
    /// # Errors
    /// If the system cannot provide randomness.
    pub fn new() -> Result<PasswordHasher, String> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Ok(PasswordHasher {
            threads: Arc::new(Semaphore::new(cores * THREADS_PER_CORE)),
            cores: Arc::new(Semaphore::new(cores)),
            waiting: Arc::default(),
            decoy: hash_now("nobody's password")?.into(),
        })
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, HashError> {
        let thread = {
            let _place = Place::take(&self.waiting)?;
            Arc::clone(&self.threads).acquire_owned().await.map_err(|error| HashError::Failed(error.to_string()))?
        };
        let (cores, runtime) = (Arc::clone(&self.cores), Handle::current());
        let work = move || {
            // The work keeps its permits. So if the caller disconnects, the work counts until its end.
            let _thread = thread;
            let _core = runtime.block_on(cores.acquire_owned()).map_err(|error| error.to_string())?;
            work()
        };
        let done = tokio::task::spawn_blocking(work).await.map_err(|error| HashError::Failed(error.to_string()))?;
        done.map_err(HashError::Failed)
    }

    /// The password's hash as a PHC string.
    pub async fn hash(&self, password: String) -> Result<String, HashError> {
        self.run(move || hash_now(&password)).await
    }

    /// The same, unless `is_refused` refuses the password. It runs like a hash: it may read a file.
    pub async fn hash_unless(
        &self,
        password: String,
        is_refused: impl FnOnce(&str) -> Result<bool, String> + Send + 'static,
    ) -> Result<Option<String>, HashError> {
        self.run(move || if is_refused(&password)? { Ok(None) } else { hash_now(&password).map(Some) }).await
    }

    /// Whether the password is that of `hash`. Without a hash, returns `false` after the same work.
    pub async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, HashError> {
        let decoy = Arc::clone(&self.decoy);
        self.run(move || {
            let known = hash.is_some();
            let text = hash.unwrap_or_else(|| decoy.to_string());
            let parsed = PasswordHash::new(&text).map_err(|error| error.to_string())?;
            Ok(argon2().verify_password(password.as_bytes(), &parsed).is_ok() && known)
        })
        .await
    }
}

/// A place in the queue. Dropping it frees the place.
struct Place<'a>(&'a AtomicUsize);

impl Place<'_> {
    fn take(waiting: &AtomicUsize) -> Result<Place<'_>, HashError> {
        let place = Place(waiting);
        match waiting.fetch_add(1, Ordering::Relaxed) < WAITING_MAX {
            true => Ok(place),
            false => Err(HashError::Busy),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hash_verifies_its_password_alone() {
        let hasher = PasswordHasher::new().expect("randomness");
        let hash = hasher.hash("correct horse".to_owned()).await.expect("a hash");
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_eq!(hasher.verify("correct horse".to_owned(), Some(hash.clone())).await, Ok(true));
        assert_eq!(hasher.verify("wrong horse".to_owned(), Some(hash)).await, Ok(false));
        assert_eq!(hasher.verify("nobody's password".to_owned(), None).await, Ok(false));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn at_most_one_hash_per_core_runs() {
        let hasher = PasswordHasher::new().expect("randomness");
        let cores = hasher.cores.available_permits();
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let runs: Vec<_> = (0..cores * 4)
            .map(|_| {
                let (hasher, running, most) = (hasher.clone(), Arc::clone(&running), Arc::clone(&most));
                tokio::spawn(async move {
                    let work = move || {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        let hash = hash_now("correct horse");
                        running.fetch_sub(1, Ordering::SeqCst);
                        hash
                    };
                    hasher.run(work).await
                })
            })
            .collect();
        for run in runs {
            assert!(run.await.expect("no panic").is_ok());
        }
        assert!((1..=cores).contains(&most.load(Ordering::SeqCst)), "{most:?} on {cores} cores");
        assert_eq!(hasher.cores.available_permits(), cores);
    }

    #[tokio::test]
    async fn more_than_may_wait_are_told_so() {
        let hasher = PasswordHasher::new().expect("randomness");
        hasher.waiting.store(WAITING_MAX, Ordering::Relaxed);
        assert_eq!(hasher.hash("correct horse".to_owned()).await, Err(HashError::Busy));
        assert_eq!(hasher.waiting.load(Ordering::Relaxed), WAITING_MAX);
    }

    #[test]
    fn passwords_have_bounds_in_characters() {
        assert_eq!(check_password("1234567", "a@b.c"), Err(PasswordProblem::TooShort));
        assert_eq!(check_password(&"é".repeat(128), "a@b.c"), Ok(()));
        assert_eq!(check_password(&"é".repeat(129), "a@b.c"), Err(PasswordProblem::TooLong));
        assert_eq!(check_password("ann@example.com", "Ann@example.com"), Err(PasswordProblem::IsEmail));
        assert_eq!(check_password("Password1", "a@b.c"), Err(PasswordProblem::IsCommon));
        assert_eq!(COMMON.len(), 3000);
    }
}
