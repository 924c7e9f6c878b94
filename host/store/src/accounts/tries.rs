//! Attempts to sign in, counted by account and network over all instances.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;

/// The name of the network under which attempts from all networks together are counted.
pub const ALL_NETWORKS: &str = "";

/// The stored attempts for one account from one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignInTries {
    /// The number of failures since the last success.
    pub failures: i64,
    pub last_at: i64,
    /// The time of the last successful sign-in from this network.
    pub signed_in_at: Option<i64>,
}

impl Connection {
    /// The attempts for an account from a network. No other transaction counts an attempt until this one ends.
    pub async fn held_sign_in_tries(&mut self, account: &str, network: &str) -> Result<SignInTries, DbError> {
        // It has to be one statement, because it also has to lock a row that already exists. Between two statements the row could
        // be deleted.
        let rows = self
            .fetch(
                "INSERT INTO svc_sign_in_tries (account, network, failures, last_at) VALUES ($1, $2, 0, 0) \
                 ON CONFLICT (account, network) DO UPDATE SET failures = svc_sign_in_tries.failures \
                 RETURNING failures, last_at, signed_in_at",
                vec![account.into(), network.into()],
            )
            .await?;
        let row = rows.first().ok_or_else(|| DbError::Other("tries that were counted are gone".into()))?;
        Ok(SignInTries { failures: row.integer(0)?, last_at: row.integer(1)?, signed_in_at: row.optional_integer(2)? })
    }

    /// Stores the number of failures.
    pub async fn count_sign_in_try(&mut self, account: &str, network: &str, failures: i64, now: i64) -> Result<(), DbError> {
        self.run(
            "UPDATE svc_sign_in_tries SET failures = $3, last_at = $4 WHERE account = $1 AND network = $2",
            vec![account.into(), network.into(), failures.into(), now.into()],
        )
        .await
        .map(|_| ())
    }

    /// Resets the failures of an account from a network after a sign-in with the right password.
    pub async fn sign_in_succeeded(&mut self, account: &str, network: &str, now: i64) -> Result<(), DbError> {
        // The order is that of `held_sign_in_tries`, so that two concurrent sign-ins never deadlock.
        for (network, signed_in_at) in [(ALL_NETWORKS, None), (network, Some(now))] {
            self.run(
                "UPDATE svc_sign_in_tries SET failures = 0, last_at = $3, signed_in_at = $4 WHERE account = $1 AND network = $2",
                vec![account.into(), network.into(), now.into(), signed_in_at.into()],
            )
            .await?;
        }
        Ok(())
    }

    /// Deletes attempts before `before`, and networks without a sign-in since `signed_in_before`.
    pub async fn forget_sign_in_tries(&mut self, before: i64, signed_in_before: i64) -> Result<u64, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "DELETE FROM svc_sign_in_tries WHERE last_at < $1 AND (signed_in_at IS NULL OR signed_in_at < $2)",
            // It skips locked rows, because it reads rows in any order. If it waited, it could deadlock with an attempt that
            // locks two rows.
            Dialect::Postgres => {
                "DELETE FROM svc_sign_in_tries WHERE (account, network) IN (SELECT account, network FROM svc_sign_in_tries \
                 WHERE last_at < $1 AND (signed_in_at IS NULL OR signed_in_at < $2) FOR UPDATE SKIP LOCKED)"
            }
        };
        self.run(sql, vec![before.into(), signed_in_before.into()]).await
    }

    /// Deletes all attempts for an account.
    pub async fn forget_sign_in_tries_of(&mut self, account: &str) -> Result<u64, DbError> {
        // The row that every attempt locks first is deleted first, so that this statement and an attempt never deadlock.
        let all = "DELETE FROM svc_sign_in_tries WHERE account = $1 AND network = $2";
        let deleted = self.run(all, vec![account.into(), ALL_NETWORKS.into()]).await?;
        Ok(deleted + self.run("DELETE FROM svc_sign_in_tries WHERE account = $1", vec![account.into()]).await?)
    }
}
