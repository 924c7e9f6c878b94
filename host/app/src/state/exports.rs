//! The exports of this process, and the order in which they read.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blockbase_quota::{Place, Places, PlacesRule, QuotaOwner};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::SpoolRoom;

/// The maximum number of open exports of one owner. An export is open until its client has received everything.
const OPEN_EACH_MAX: usize = 2;
/// The maximum number of open exports of all owners together.
const OPEN_MAX: usize = 64;
/// The longest time that an export waits until others have ended.
const TURN_WAIT: Duration = Duration::from_secs(5);
/// The number of seconds after which a caller whose export got no turn may retry.
const RETRY_AFTER_S: u16 = 10;

/// The exports of this process.
pub(crate) struct Exports {
    /// The open exports.
    open: Arc<Places>,
    /// The exports that have a snapshot. They get at most half of the permits for scans, so that lists and searches can continue.
    /// Each owner has at most one, so that a few owners with slow exports do not block the others.
    reading: Arc<Places>,
    pub(crate) room: Arc<SpoolRoom>,
}

impl Exports {
    pub(crate) fn new(scans_max: usize, spool_directory: PathBuf) -> Exports {
        Exports {
            open: Places::new(PlacesRule::without_wait(OPEN_MAX, OPEN_EACH_MAX)),
            reading: Places::new(PlacesRule {
                all: (scans_max / 2).max(1),
                each: 1,
                waiting_each: OPEN_EACH_MAX,
                waiting: OPEN_MAX,
                wait: TURN_WAIT,
            }),
            room: SpoolRoom::new(spool_directory),
        }
    }

    /// Takes a place for one more export.
    ///
    /// # Errors
    /// `rate_limited` if the owner has too many open exports, `unavailable` if the process has too many.
    pub(crate) fn open(&self, owner: &QuotaOwner) -> Result<Place> {
        self.open.try_take(owner).map_err(|_| match self.open.held(owner) >= OPEN_EACH_MAX {
            true => {
                let message = format!("A caller can have at most {OPEN_EACH_MAX} open exports. Wait until one has ended.");
                Error::new(Code::RateLimited, message).with_retry_after(RETRY_AFTER_S)
            }
            false => too_many(),
        })
    }

    /// Waits for a turn to read.
    ///
    /// # Errors
    /// `unavailable` if it gets no turn in time.
    pub(crate) async fn turn(&self, owner: &QuotaOwner) -> Result<Place> {
        self.reading.take(owner).await.map_err(|_| match self.reading.held(owner) {
            0 => too_many(),
            _ => {
                let message = "Your other export is still being read, and only one export of a caller is read at a time. Try \
                    again when it has ended.";
                Error::new(Code::Unavailable, message).with_retry_after(RETRY_AFTER_S)
            }
        })
    }
}

fn too_many() -> Error {
    Error::new(Code::Unavailable, "Too many exports are running. Try again later.").with_retry_after(RETRY_AFTER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_owner_has_two_exports_and_all_have_sixty_four() {
        let exports = Arc::new(Exports::new(8, std::env::temp_dir()));
        let user = |name: String| QuotaOwner::User(name.as_str().into());
        let one = user("a".to_owned());
        let first = exports.open(&one).expect("a place");
        let _second = exports.open(&one).expect("a second place");
        assert_eq!(exports.open(&one).expect_err("no third place").code, Code::RateLimited);
        drop(first);
        let _third = exports.open(&one).expect("the place that became free");
        let _others: Vec<_> = (0..62).map(|number| exports.open(&user(number.to_string())).expect("a place")).collect();
        assert_eq!(exports.open(&user("late".to_owned())).expect_err("no place").code, Code::Unavailable);
    }

    #[tokio::test]
    async fn half_of_the_scans_may_be_exports_and_one_of_each_owner_reads() {
        let exports = Exports::new(8, std::env::temp_dir());
        let user = |name: &str| QuotaOwner::User(name.into());
        let turn = exports.turn(&user("a")).await.expect("a turn");
        assert!(exports.reading.try_take(&user("a")).is_err(), "no second turn");
        let owners = ["b", "c", "d"].map(user);
        let turns = futures_util::future::join_all(owners.iter().map(|owner| exports.turn(owner))).await;
        assert!(turns.iter().all(Result::is_ok));
        assert!(exports.reading.try_take(&user("e")).is_err(), "four exports in total");
        drop(turn);
        assert!(exports.turn(&user("e")).await.is_ok());
        drop(turns);
        assert!(exports.turn(&user("a")).await.is_ok());
    }
}
