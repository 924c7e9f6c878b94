//! Tries to sign in, counted by account and network, on all instances.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;

/// The network that stands for all networks together.
pub const ALL_NETWORKS: &str = "";

/// What is known of the tries for one account from one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignInTries {
    /// Since the last success.
    pub failures: i64,
    pub last_at: i64,
    /// When somebody last signed in from there.
    pub signed_in_at: Option<i64>,
}

impl Connection {
    /// The tries for an account from a network; nobody else counts one until the transaction ends.
    pub async fn held_sign_in_tries(&mut self, account: &str, network: &str) -> Result<SignInTries, DbError> {
        // One statement, which holds a row that was there too: between two of them the row could be deleted.
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

    /// Stores how many tries there were.
    pub async fn count_sign_in_try(&mut self, account: &str, network: &str, failures: i64, now: i64) -> Result<(), DbError> {
        self.run(
            "UPDATE svc_sign_in_tries SET failures = $3, last_at = $4 WHERE account = $1 AND network = $2",
            vec![account.into(), network.into(), failures.into(), now.into()],
        )
        .await
        .map(|_| ())
    }

    /// Forgets the failures of an account from a network, which somebody with the right password is in.
    pub async fn sign_in_succeeded(&mut self, account: &str, network: &str, now: i64) -> Result<(), DbError> {
        // In the order of `held_sign_in_tries`, so that two who sign in at once never wait for each other in a circle.
        for (network, signed_in_at) in [(ALL_NETWORKS, None), (network, Some(now))] {
            self.run(
                "UPDATE svc_sign_in_tries SET failures = 0, last_at = $3, signed_in_at = $4 WHERE account = $1 AND network = $2",
                vec![account.into(), network.into(), now.into(), signed_in_at.into()],
            )
            .await?;
        }
        Ok(())
    }

    /// Forgets tries before `before`, and networks from which nobody signed in since `signed_in_before`.
    pub async fn forget_sign_in_tries(&mut self, before: i64, signed_in_before: i64) -> Result<u64, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "DELETE FROM svc_sign_in_tries WHERE last_at < $1 AND (signed_in_at IS NULL OR signed_in_at < $2)",
            // It skips locked rows, because it takes rows in any order. If it waited, it could deadlock with a try that holds two
            // rows.
            Dialect::Postgres => {
                "DELETE FROM svc_sign_in_tries WHERE (account, network) IN (SELECT account, network FROM svc_sign_in_tries \
                 WHERE last_at < $1 AND (signed_in_at IS NULL OR signed_in_at < $2) FOR UPDATE SKIP LOCKED)"
            }
        };
        self.run(sql, vec![before.into(), signed_in_before.into()]).await
    }

    /// Forgets all tries for an account.
    pub async fn forget_sign_in_tries_of(&mut self, account: &str) -> Result<u64, DbError> {
        // First the row that every try takes first, so that this and a try never wait for each other in a circle.
        let all = "DELETE FROM svc_sign_in_tries WHERE account = $1 AND network = $2";
        let deleted = self.run(all, vec![account.into(), ALL_NETWORKS.into()]).await?;
        Ok(deleted + self.run("DELETE FROM svc_sign_in_tries WHERE account = $1", vec![account.into()]).await?)
    }
}
