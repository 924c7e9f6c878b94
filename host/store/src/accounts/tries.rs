//! Attempts to sign in, counted by account and network over all instances.

use blockbase_query::Dialect;

use crate::connection::Connection;
use crate::error::DbError;

/// The name of the network under which attempts from all networks together are counted.
const ALL_NETWORKS: &str = "";

/// The stored attempts for one account from one network, or from all networks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignInTries {
    /// The number of failures since the last success.
    pub failures: i64,
    /// The time of the last attempt.
    pub last_at: i64,
    /// The time of the last successful sign-in from this network.
    pub signed_in_at: Option<i64>,
}

/// The stored attempts for one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TriesOfAccount {
    /// Those from all networks together.
    pub all: SignInTries,
    /// Those from one network.
    pub own: SignInTries,
}

impl Connection {
    /// The attempts for an account from all networks, and those from one network. No other transaction counts an attempt until
    /// this one ends.
    pub async fn held_sign_in_tries(&mut self, account: &str, network: &str) -> Result<TriesOfAccount, DbError> {
        // It has to be one statement, because it also has to lock rows that already exist. Between two statements a row could be
        // deleted. A statement inserts its rows in their order. So every attempt locks the row of all networks first, and two
        // attempts never deadlock.
        let rows = self
            .fetch(
                "INSERT INTO svc_sign_in_tries (account, network, failures, last_at) VALUES ($1, $2, 0, 0), ($1, $3, 0, 0) \
                 ON CONFLICT (account, network) DO UPDATE SET failures = svc_sign_in_tries.failures \
                 RETURNING network, failures, last_at, signed_in_at",
                vec![account.into(), ALL_NETWORKS.into(), network.into()],
            )
            .await?;
        let (mut all, mut own) = (None, None);
        for row in &rows {
            let tries =
                SignInTries { failures: row.integer(1)?, last_at: row.integer(2)?, signed_in_at: row.optional_integer(3)? };
            let place = if row.text(0)? == ALL_NETWORKS { &mut all } else { &mut own };
            *place = Some(tries);
        }
        match (all, own) {
            (Some(all), Some(own)) => Ok(TriesOfAccount { all, own }),
            _ => Err(DbError::Other("tries that were counted are gone".into())),
        }
    }

    /// Stores the numbers of failures from all networks, and from one network. This transaction holds their rows
    /// ([`Connection::held_sign_in_tries`]).
    pub async fn count_sign_in_try(
        &mut self,
        account: &str,
        network: &str,
        of_all: i64,
        of_own: i64,
        now: i64,
    ) -> Result<(), DbError> {
        self.run(
            "UPDATE svc_sign_in_tries SET failures = CASE WHEN network = $2 THEN $4 ELSE $5 END, last_at = $6 \
             WHERE account = $1 AND network IN ($2, $3)",
            vec![account.into(), ALL_NETWORKS.into(), network.into(), of_all.into(), of_own.into(), now.into()],
        )
        .await
        .map(|_| ())
    }

    /// Resets the failures of an account from a network after a sign-in with the right password. It does not change `last_at`: the
    /// column is indexed, so a change would also write the index.
    pub async fn sign_in_succeeded(&mut self, account: &str, network: &str, now: i64) -> Result<(), DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => {
                "UPDATE svc_sign_in_tries SET failures = 0, \
                 signed_in_at = CASE WHEN network = $2 THEN NULL ELSE $4 END WHERE account = $1 AND network IN ($2, $3)"
            }
            // An update locks rows in any order. So the rows are locked before it, in the order of `held_sign_in_tries`. Then two
            // concurrent sign-ins never deadlock.
            Dialect::Postgres => {
                "UPDATE svc_sign_in_tries AS tries SET failures = 0, \
                 signed_in_at = CASE WHEN tries.network = $2 THEN NULL ELSE $4 END \
                 FROM (SELECT account, network FROM svc_sign_in_tries WHERE account = $1 AND network IN ($2, $3) \
                 ORDER BY network FOR UPDATE) AS held WHERE tries.account = held.account AND tries.network = held.network"
            }
        };
        self.run(sql, vec![account.into(), ALL_NETWORKS.into(), network.into(), now.into()]).await.map(|_| ())
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
