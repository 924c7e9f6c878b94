//! Limits how fast passwords can be tried. The delay grows for each account, but nobody can use it to keep the owner from signing
//! in.
//!
//! Failures from one network (an IPv4 address or an IPv6 /64) make that network wait. Failures from all networks together only
//! slow an attempt down by a few seconds, except from a network where somebody has signed in to the account before. So an
//! attacker with many addresses cannot lock the owner out. The counts are in the database, so all instances share them. An
//! account that does not exist is counted in the same way.
//!
//! The database counts an attempt as failed from its beginning, so a process that ends in between gives nobody a free attempt.
//! Attempts in progress are also counted in memory, and the decision leaves them out, because they may still succeed. So many
//! correct sign-ins can arrive at the same time, and all succeed. They run
//! [`UNDER_WAY_MAX`](super::try_limits::UNDER_WAY_MAX) at a time, and parallel guessing gains at most that many attempts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use blockbase_auth::hash_token;
use blockbase_quota::Place;
use blockbase_schema::time::{DAY_MS, HOUR_MS, MINUTE_MS};
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, Service, SignInTries, TriesOfAccount};
use futures_util::future::BoxFuture;

use crate::App;
use crate::caller::client::{AuthProblem, Client};
use crate::state::try_limits::TryKey;

/// The number of failures from one network that cause no wait.
const FREE_FAILURES: i64 = 10;
/// The longest wait of one network. The wait begins with one second, and doubles up to this limit.
const WAIT_MAX_MS: i64 = MINUTE_MS;
/// The number of failures from all networks together after which an attempt takes longer.
const SLOW_AFTER: i64 = 30;
const SLOWER_BY_MS: i64 = 100;
const SLOW_MAX_MS: i64 = 3_000;
/// How long failures count.
const REMEMBERED_MS: i64 = HOUR_MS;
/// How long a network stays known after a sign-in from it.
const KNOWN_MS: i64 = 30 * DAY_MS;
/// How often the attempts that no longer count are deleted.
const CLEANED_EVERY_MS: i64 = 10 * MINUTE_MS;

/// An attempt that counts as failed until [`App::sign_in`] reports its success.
#[derive(Clone)]
pub(crate) struct Try {
    pub(crate) account: String,
    pub(crate) network: String,
    _turn: Arc<Place<TryKey>>,
}

/// The name under which attempts for an address are counted.
pub(crate) fn account_of(email: &str) -> String {
    hash_token(email)
}

fn failures(tries: SignInTries, now: i64) -> i64 {
    if now - tries.last_at > REMEMBERED_MS { 0 } else { tries.failures }
}

/// The time that a network has to wait after this many failures.
fn wait_ms(failures: i64) -> i64 {
    match failures - FREE_FAILURES {
        past if past < 0 => 0,
        past => (1000_i64 << past.min(6)).min(WAIT_MAX_MS),
    }
}

/// The additional time that an attempt takes after this many failures from all networks.
fn slow_ms(failures: i64) -> i64 {
    ((failures - SLOW_AFTER + 1).max(0) * SLOWER_BY_MS).min(SLOW_MAX_MS)
}

/// The decision about an attempt.
enum Decision<T> {
    Refused { wait_ms: i64 },
    Counted { slow_ms: i64, found: T },
}

impl App {
    /// Counts an attempt to sign in. It counts as failed until its success is reported.
    ///
    /// # Errors
    /// `rate_limited` if the network has to wait.
    pub(crate) async fn begin_try(&self, email: &str, client: &Client) -> Result<Try, AuthProblem> {
        let (attempt, ()) = self.begin_try_and_read(email, client, |_| Box::pin(async { Ok(()) })).await?;
        Ok(attempt)
    }

    /// Like `begin_try`, but also runs `read` in the same transaction. That saves a connection and a round trip. An attempt that
    /// has to wait reads nothing.
    ///
    /// # Errors
    /// Those of `read`, in addition to those of [`App::begin_try`].
    pub(crate) async fn begin_try_and_read<T, F>(&self, email: &str, client: &Client, read: F) -> Result<(Try, T), AuthProblem>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut Connection) -> BoxFuture<'c, Result<T>> + Send + 'static,
    {
        let network = client.network().unwrap_or_else(|| "unknown".to_owned());
        let account = account_of(email);
        let turn = Arc::new(self.tries.turn(&(account.clone(), network.clone())).await?);
        let attempt = Try { account, network, _turn: turn };
        let now = self.clock.now();
        self.clean_tries(now).await;
        let (counted, app) = (attempt.clone(), self.itself()?);
        let decision = self
            .store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move {
                    let Try { account, network, _turn: turn } = &counted;
                    let others = app.tries.others_under_way(turn.owner());
                    let TriesOfAccount { all, own } = connection.held_sign_in_tries(account, network).await?;
                    let (of_all, of_own) = (failures(all, now), failures(own, now));
                    // Attempts in progress are already counted, but may still succeed.
                    let failed = (of_own - others).max(0);
                    let wait_ms = own.last_at + wait_ms(failed) - now;
                    if failed >= FREE_FAILURES && wait_ms > 0 {
                        return Ok(Decision::Refused { wait_ms });
                    }
                    connection.count_sign_in_try(account, network, of_all + 1, of_own + 1, now).await?;
                    let is_known = own.signed_in_at.is_some_and(|at| now - at < KNOWN_MS);
                    let slow_ms = if is_known { 0 } else { slow_ms(of_all) };
                    Ok(Decision::Counted { slow_ms, found: read(connection).await? })
                })
            })
            .await?;
        match decision {
            Decision::Refused { wait_ms } => {
                let seconds = u16::try_from(wait_ms / 1000 + 1).unwrap_or(u16::MAX);
                tracing::warn!(auth.account = email, client.address = client.ip_address, "a sign-in attempt came too early");
                let message = format!("Too many failed sign-ins for this account from your network. Try again in {seconds} s.");
                Err(Error::new(Code::RateLimited, message).with_retry_after(seconds).into())
            }
            Decision::Counted { slow_ms, found } => {
                if slow_ms > 0
                    && let Ok(_permit) = self.tries.slowed.try_acquire()
                {
                    tokio::time::sleep(Duration::from_millis(slow_ms.unsigned_abs())).await;
                }
                Ok((attempt, found))
            }
        }
    }

    /// Reports that an attempt succeeded. An attempt that changes something in the database reports its success in its own
    /// transaction instead.
    pub(crate) async fn try_succeeded(&self, attempt: Try) -> Result<(), Error> {
        let now = self.clock.now();
        self.store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move { Ok(connection.sign_in_succeeded(&attempt.account, &attempt.network, now).await?) })
            })
            .await
    }

    /// Logs a line for operators who watch the log for attacks.
    pub(crate) fn log_failed_try(&self, email: &str, client: &Client, what: &str) {
        tracing::warn!(auth.account = email, client.address = client.ip_address, "{what} failed: the password is wrong");
    }

    /// Deletes attempts that no longer count, from time to time and in a separate transaction. The sign-in continues if this
    /// fails.
    async fn clean_tries(&self, now: i64) {
        let cleaned_at = self.tries.cleaned_at.load(Ordering::Relaxed);
        let is_due = now - cleaned_at > CLEANED_EVERY_MS;
        if !is_due || self.tries.cleaned_at.compare_exchange(cleaned_at, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let cleaned = self
            .store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move { Ok(connection.forget_sign_in_tries(now - REMEMBERED_MS, now - KNOWN_MS).await?) })
            })
            .await;
        if let Err(error) = cleaned {
            tracing::warn!(error.cause = %error, "old sign-in attempts could not be deleted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_waits_longer_with_each_failure_and_an_account_never_long() {
        assert_eq!([9, 10, 11, 15, 16, 1000].map(wait_ms), [0, 1000, 2000, 32_000, 60_000, 60_000]);
        assert_eq!([29, 30, 31, 1000].map(slow_ms), [0, 100, 200, 3000]);
        let old = SignInTries { failures: 50, last_at: 1, signed_in_at: None };
        assert_eq!((failures(old, REMEMBERED_MS), failures(old, REMEMBERED_MS + 2)), (50, 0));
    }
}
