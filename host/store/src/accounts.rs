//! Users, credentials, sessions, roles, keys.

mod keys;
mod mails;
mod preferences;
mod roles;
mod sessions;
mod stream_tickets;
mod tokens;
mod tries;
mod window_counts;

use blockbase_query::{Dialect, Param, Statement};

pub use keys::{ApiKeyRow, KeyHolder, NewApiKey};
pub use mails::{MailKind, MailRow};
pub use roles::RoleRow;
pub use sessions::{NewSession, SessionHolder, SessionRow};
pub use stream_tickets::{StreamTicketRow, TicketCredential, TicketStored};
pub use tokens::{AccountTokenRow, TokenKind};
pub use tries::{SignInTries, TriesOfAccount};

use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// A user as stored.
#[derive(Clone, Debug)]
pub struct UserRow {
    pub id: String,
    pub name: String,
    pub email: String,
    pub email_verified: bool,
    pub image: Option<String>,
    pub is_anonymous: bool,
    pub banned: bool,
    pub created_at: i64,
    pub updated_at: i64,
}

/// The state of a user that decides about a sign-in.
#[derive(Clone, Debug)]
pub struct SignInState {
    pub banned: bool,
    /// `None` if the user has no password, such as a guest.
    pub password_hash: Option<String>,
    /// The number of sessions that have not expired.
    pub sessions: i64,
    /// Whether the account was made at boot and still waits for its claim.
    pub awaits_claim: bool,
    pub is_admin: bool,
}

/// The columns of [`UserRow`], in its order, for a table with the alias `u`.
macro_rules! user_columns {
    () => {
        "u.id, u.name, u.email, u.email_verified, u.image, u.is_anonymous, u.banned, u.created_at, u.updated_at"
    };
}
pub(crate) use user_columns;

/// Reads a user from the columns that begin at `from`.
pub(crate) fn user(row: &Row, from: usize) -> Result<UserRow, DbError> {
    Ok(UserRow {
        id: row.text(from)?,
        name: row.text(from + 1)?,
        email: row.text(from + 2)?,
        email_verified: row.boolean(from + 3)?,
        image: row.optional_text(from + 4)?,
        is_anonymous: row.boolean(from + 5)?,
        banned: row.boolean(from + 6)?,
        created_at: row.integer(from + 7)?,
        updated_at: row.integer(from + 8)?,
    })
}

impl Connection {
    /// Locks the accounts until the transaction ends, because some decisions must not run at the same time: which user is the
    /// first one, which is the last admin, and whether a user has enough rights to act on another user. The lock has to be the
    /// transaction's first statement.
    pub async fn lock_accounts(&mut self) -> Result<(), DbError> {
        self.run("UPDATE svc_once SET value = value WHERE name = 'accounts'", Vec::new()).await.map(|_| ())
    }

    /// A value that is set only once. `None` if it is not set yet.
    pub async fn once(&mut self, name: &str) -> Result<Option<String>, DbError> {
        let rows = self.fetch("SELECT value FROM svc_once WHERE name = $1", vec![name.into()]).await?;
        rows.first().map(|row| row.text(0)).transpose()
    }

    /// Sets a value if its name has no value yet.
    pub async fn set_once(&mut self, name: &str, value: &str) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_once (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
            vec![name.into(), value.into()],
        )
        .await
        .map(|_| ())
    }

    /// The ids of the keys that stored secrets were sealed with, without duplicates.
    pub async fn key_ids_of_secrets(&mut self) -> Result<Vec<String>, DbError> {
        let sql = "SELECT secret_key_id FROM svc_webhooks UNION SELECT key_id FROM svc_block_secrets";
        self.fetch(sql, Vec::new()).await?.iter().map(|row| row.text(0)).collect()
    }

    /// Creates a user. A guest or an invited user has no password. Other passwords are hashed with argon2id, in the PHC string
    /// form. `false` if the address is taken.
    pub async fn insert_user(&mut self, user: &UserRow, password_hash: Option<String>) -> Result<bool, DbError> {
        let inserted = self
            .run(
                "INSERT INTO svc_users (id, name, email, email_verified, image, is_anonymous, banned, created_at, updated_at) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (email) DO NOTHING",
                vec![
                    user.id.clone().into(),
                    user.name.clone().into(),
                    user.email.clone().into(),
                    user.email_verified.into(),
                    user.image.clone().into(),
                    user.is_anonymous.into(),
                    user.banned.into(),
                    user.created_at.into(),
                    user.updated_at.into(),
                ],
            )
            .await?;
        if inserted == 0 {
            return Ok(false);
        }
        if let Some(hash) = password_hash {
            self.run(
                "INSERT INTO svc_credentials (user_id, password_hash, updated_at) VALUES ($1, $2, $3)",
                vec![user.id.clone().into(), hash.into(), user.created_at.into()],
            )
            .await?;
        }
        Ok(true)
    }

    /// The user of an address with the hash of the password. `None` if no user has the address and a password.
    pub async fn credential(&mut self, email: &str) -> Result<Option<(UserRow, String)>, DbError> {
        let rows = self
            .fetch(
                concat!(
                    "SELECT ",
                    user_columns!(),
                    ", c.password_hash FROM svc_users u JOIN svc_credentials c ON c.user_id = u.id WHERE u.email = $1"
                ),
                vec![email.into()],
            )
            .await?;
        rows.first().map(|row| Ok((user(row, 0)?, row.text(9)?))).transpose()
    }

    /// The state of a user that decides about a sign-in. `None` if the user does not exist.
    ///
    /// The transaction has to lock the user before ([`Connection::keep_user_alone`]), in a statement of its own. On Postgres, a
    /// statement that waits for a lock still reads the other tables as they were before it waited. So it could return a password
    /// that was replaced meanwhile.
    ///
    /// `admin` is the name of the role of admins.
    pub async fn sign_in_state(&mut self, user_id: &str, admin: &str, now: i64) -> Result<Option<SignInState>, DbError> {
        let rows = self
            .fetch(
                "SELECT u.banned, c.password_hash, \
                 (SELECT count(*) FROM svc_sessions s WHERE s.user_id = u.id AND s.expires_at > $2), \
                 EXISTS (SELECT 1 FROM svc_pending_claims p WHERE p.user_id = u.id), \
                 EXISTS (SELECT 1 FROM svc_user_roles ur JOIN svc_roles r ON r.id = ur.role_id WHERE ur.user_id = u.id AND r.name = $3) \
                 FROM svc_users u LEFT JOIN svc_credentials c ON c.user_id = u.id WHERE u.id = $1",
                vec![user_id.into(), now.into(), admin.into()],
            )
            .await?;
        let state = |row: &Row| {
            Ok(SignInState {
                banned: row.boolean(0)?,
                password_hash: row.optional_text(1)?,
                sessions: row.integer(2)?,
                awaits_claim: row.boolean(3)?,
                is_admin: row.boolean(4)?,
            })
        };
        rows.first().map(state).transpose()
    }

    /// The hash of a user's password. A guest has none, and an invited user has none yet.
    pub async fn password_hash(&mut self, user_id: &str) -> Result<Option<String>, DbError> {
        let rows = self.fetch("SELECT password_hash FROM svc_credentials WHERE user_id = $1", vec![user_id.into()]).await?;
        rows.first().map(|row| row.text(0)).transpose()
    }

    /// Replaces a password if it is still `old`. If two callers try at the same time, one succeeds. The account's tokens end.
    pub async fn change_password(&mut self, user_id: &str, old: &str, new: &str, now: i64) -> Result<bool, DbError> {
        let changed = self
            .run(
                "UPDATE svc_credentials SET password_hash = $3, updated_at = $4 WHERE user_id = $1 AND password_hash = $2",
                vec![user_id.into(), old.into(), new.into(), now.into()],
            )
            .await?;
        if changed == 1 {
            self.end_account_tokens(user_id).await?;
        }
        Ok(changed == 1)
    }

    /// Sets a password, whatever the old one was. The account's tokens end.
    pub async fn set_password(&mut self, user_id: &str, new: &str, now: i64) -> Result<(), DbError> {
        self.run(
            "INSERT INTO svc_credentials (user_id, password_hash, updated_at) VALUES ($1, $2, $3) \
             ON CONFLICT (user_id) DO UPDATE SET password_hash = excluded.password_hash, updated_at = excluded.updated_at",
            vec![user_id.into(), new.into(), now.into()],
        )
        .await?;
        self.end_account_tokens(user_id).await
    }

    pub async fn has_credentialed_user(&mut self) -> Result<bool, DbError> {
        Ok(!self.fetch("SELECT user_id FROM svc_credentials LIMIT 1", Vec::new()).await?.is_empty())
    }

    /// The user with this address, in its normal form.
    pub async fn user_of_email(&mut self, email: &str) -> Result<Option<UserRow>, DbError> {
        let sql = concat!("SELECT ", user_columns!(), " FROM svc_users u WHERE u.email = $1");
        let rows = self.fetch(sql, vec![email.into()]).await?;
        rows.first().map(|row| user(row, 0)).transpose()
    }

    pub async fn user(&mut self, id: &str) -> Result<Option<UserRow>, DbError> {
        let rows = self.fetch(concat!("SELECT ", user_columns!(), " FROM svc_users u WHERE u.id = $1"), vec![id.into()]).await?;
        rows.first().map(|row| user(row, 0)).transpose()
    }

    /// A user. No other transaction changes or deletes the user until this one ends.
    pub async fn held_user(&mut self, id: &str) -> Result<Option<UserRow>, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => concat!("SELECT ", user_columns!(), " FROM svc_users u WHERE u.id = $1"),
            Dialect::Postgres => concat!("SELECT ", user_columns!(), " FROM svc_users u WHERE u.id = $1 FOR UPDATE"),
        };
        let rows = self.fetch(sql, vec![id.into()]).await?;
        rows.first().map(|row| user(row, 0)).transpose()
    }

    /// Whether a user exists. The user is not deleted until the transaction ends. Several transactions may hold this lock at a time.
    pub async fn keep_user(&mut self, id: &str) -> Result<bool, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT id FROM svc_users WHERE id = $1",
            Dialect::Postgres => "SELECT id FROM svc_users WHERE id = $1 FOR KEY SHARE",
        };
        Ok(!self.fetch(sql, vec![id.into()]).await?.is_empty())
    }

    /// Does the same as [`Connection::keep_user`], but only one transaction at a time can hold this lock. The user's writes do
    /// not wait for it.
    pub async fn keep_user_alone(&mut self, id: &str) -> Result<bool, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT id FROM svc_users WHERE id = $1",
            Dialect::Postgres => "SELECT id FROM svc_users WHERE id = $1 FOR NO KEY UPDATE",
        };
        Ok(!self.fetch(sql, vec![id.into()]).await?.is_empty())
    }

    /// Stores the name, the image, the ban and the time of the change.
    pub async fn update_user(&mut self, user: &UserRow) -> Result<bool, DbError> {
        let changed = self
            .run(
                "UPDATE svc_users SET name = $2, image = $3, banned = $4, updated_at = $5 WHERE id = $1",
                vec![
                    user.id.clone().into(),
                    user.name.clone().into(),
                    user.image.clone().into(),
                    user.banned.into(),
                    user.updated_at.into(),
                ],
            )
            .await?;
        Ok(changed == 1)
    }

    /// Stores the address that a user has proved. The error is [`DbError::Unique`] if somebody has got the address in the
    /// meantime.
    pub async fn set_proved_email(&mut self, user_id: &str, email: &str, now: i64) -> Result<bool, DbError> {
        let sql = "UPDATE svc_users SET email = $2, email_verified = $3, updated_at = $4 WHERE id = $1";
        Ok(self.run(sql, vec![user_id.into(), email.into(), true.into(), now.into()]).await? == 1)
    }

    /// Deletes a user with their credentials, sessions, roles, keys and tokens, and the tokens that they made for others.
    pub async fn delete_user(&mut self, id: &str) -> Result<bool, DbError> {
        self.run("DELETE FROM svc_account_tokens WHERE made_by_user = $1", vec![id.into()]).await?;
        let mails = "DELETE FROM svc_mails WHERE user_id = $1 OR address = (SELECT email FROM svc_users WHERE id = $1)";
        self.run(mails, vec![id.into()]).await?;
        Ok(self.run("DELETE FROM svc_users WHERE id = $1", vec![id.into()]).await? == 1)
    }

    /// Users, the newest first, and their number. If `search` is given, the address or the name has to contain it, ignoring case.
    /// If `role` is given, the users have to have the role with this id or name.
    pub async fn users(
        &mut self,
        search: Option<String>,
        role: Option<String>,
        only: Option<String>,
        limit: i64,
        offset: i64,
    ) -> Result<(Vec<UserRow>, i64), DbError> {
        let mut tests = Vec::new();
        let mut params: Vec<Param> = Vec::new();
        if let Some(search) = search {
            params.push(search.into());
            let holds = |text: &str| self.dialect().contains(text, "$1", true);
            tests.push(format!("({} OR {})", holds("u.email"), holds("u.name")));
        }
        if let Some(role) = role {
            params.push(role.into());
            tests.push(format!(
                "u.id IN (SELECT ur.user_id FROM svc_user_roles ur JOIN svc_roles r ON r.id = ur.role_id \
                 WHERE r.id = ${0} OR r.name = ${0})",
                params.len()
            ));
        }
        if let Some(id) = only {
            params.push(id.into());
            tests.push(format!("u.id = ${}", params.len()));
        }
        let tests = if tests.is_empty() { String::new() } else { format!(" WHERE {}", tests.join(" AND ")) };
        let total = self
            .fetch_integer(Statement {
                sql: self.placeholders(format!("SELECT count(*) FROM svc_users u{tests}")),
                params: params.clone(),
            })
            .await?;
        let (first, second) = (params.len() + 1, params.len() + 2);
        params.extend([limit.into(), offset.into()]);
        let sql = format!(
            concat!("SELECT ", user_columns!(), " FROM svc_users u{} ORDER BY u.created_at DESC, u.id DESC LIMIT ${} OFFSET ${}"),
            tests, first, second
        );
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params }).await?;
        Ok((rows.iter().map(|row| user(row, 0)).collect::<Result<_, _>>()?, total))
    }

    /// The number of users other than `user_id` who have the role, can sign in and are not banned.
    pub async fn others_with_role(&mut self, role_id: &str, user_id: &str) -> Result<i64, DbError> {
        self.fetch_integer(Statement {
            sql: self.placeholders(
                "SELECT count(*) FROM svc_user_roles ur JOIN svc_users u ON u.id = ur.user_id \
                 JOIN svc_credentials c ON c.user_id = u.id WHERE ur.role_id = $1 AND u.id <> $2 AND NOT u.banned",
            ),
            params: vec![role_id.into(), user_id.into()],
        })
        .await
    }

    /// Ids of at most `limit` guests who were created before `before`.
    pub async fn old_guests(&mut self, before: i64, limit: i64) -> Result<Vec<String>, DbError> {
        let rows = self
            .fetch(
                "SELECT id FROM svc_users WHERE is_anonymous AND created_at < $1 ORDER BY created_at LIMIT $2",
                vec![before.into(), limit.into()],
            )
            .await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// Ids of the rows that a user created. `sql` is the statement for one object.
    pub async fn ids_created_by(&mut self, sql: String, user_id: &str) -> Result<Vec<String>, DbError> {
        let rows = self.fetch_rows(Statement { sql: sql.into(), params: vec![user_id.into()] }).await?;
        rows.iter().map(|row| row.text(0)).collect()
    }

    /// Removes a user's id from the history of the schema.
    pub async fn forget_schema_author(&mut self, user_id: &str) -> Result<u64, DbError> {
        self.run("UPDATE svc_schema_changes SET applied_by = NULL WHERE applied_by = $1", vec![user_id.into()]).await
    }

    /// Marks an account as made at boot and not yet claimed.
    pub async fn await_claim(&mut self, user_id: &str, now: i64) -> Result<(), DbError> {
        self.run("INSERT INTO svc_pending_claims (user_id, created_at) VALUES ($1, $2)", vec![user_id.into(), now.into()])
            .await
            .map(|_| ())
    }

    /// Whether an account still waits for its claim.
    pub async fn awaits_claim(&mut self, user_id: &str) -> Result<bool, DbError> {
        let rows = self.fetch("SELECT user_id FROM svc_pending_claims WHERE user_id = $1", vec![user_id.into()]).await?;
        Ok(!rows.is_empty())
    }

    /// Ends an account's wait for its claim. Returns `true` if this call ended it.
    pub async fn end_claim(&mut self, user_id: &str) -> Result<bool, DbError> {
        Ok(self.run("DELETE FROM svc_pending_claims WHERE user_id = $1", vec![user_id.into()]).await? == 1)
    }

    /// Replaces `from` by `to`, or by nobody, in the stamps of an object's rows. This does not count as an update: it changes no times
    /// and writes no events.
    pub async fn restamp(&mut self, sql: [String; 2], from: &str, to: Option<&str>) -> Result<u64, DbError> {
        let mut changed = 0;
        for sql in sql {
            let params = vec![from.into(), to.map(str::to_owned).into()];
            changed += self.execute(Statement { sql: sql.into(), params }).await?;
        }
        Ok(changed)
    }

    /// Stores that the guest's records still have to be moved to the user.
    pub async fn insert_carry_over(&mut self, guest_id: &str, user_id: &str) -> Result<(), DbError> {
        let sql = "INSERT INTO svc_carry_overs (guest_id, user_id) VALUES ($1, $2)";
        self.run(sql, vec![guest_id.into(), user_id.into()]).await?;
        Ok(())
    }

    /// At most `limit` pairs of a guest and the user to whom the guest's records still have to be moved. With `user_id`, only
    /// pairs with this user or guest.
    pub async fn carry_overs(&mut self, user_id: Option<&str>, limit: i64) -> Result<Vec<(String, String)>, DbError> {
        let rows = match user_id {
            Some(user_id) => {
                let sql = "SELECT guest_id, user_id FROM svc_carry_overs WHERE user_id = $1 OR guest_id = $1 ORDER BY guest_id LIMIT $2";
                self.fetch(sql, vec![user_id.into(), limit.into()]).await?
            }
            None => {
                let sql = "SELECT guest_id, user_id FROM svc_carry_overs ORDER BY guest_id LIMIT $1";
                self.fetch(sql, vec![limit.into()]).await?
            }
        };
        rows.iter().map(|row| Ok((row.text(0)?, row.text(1)?))).collect()
    }

    /// Whether the guest's records still have to be moved to a user. No other transaction changes that until this one ends.
    pub async fn held_carry_over(&mut self, guest_id: &str) -> Result<bool, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT guest_id FROM svc_carry_overs WHERE guest_id = $1",
            Dialect::Postgres => "SELECT guest_id FROM svc_carry_overs WHERE guest_id = $1 FOR UPDATE",
        };
        Ok(!self.fetch(sql, vec![guest_id.into()]).await?.is_empty())
    }

    /// Forgets a guest when all records belong to the user.
    pub async fn delete_carry_over(&mut self, guest_id: &str) -> Result<(), DbError> {
        self.run("DELETE FROM svc_carry_overs WHERE guest_id = $1", vec![guest_id.into()]).await?;
        Ok(())
    }
}
