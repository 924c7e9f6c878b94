//! Makers: API keys, webhooks, subscriptions, tasks and blocks store who made them.
//!
//! The table of each kind has four columns: the user who made the thing, the API key that they used, `suspended_reason` and
//! `suspended_at`. User and key are both null if no maker is stored. The statements here are the same for every kind.
//! [`ThingKind::ALL`] lists the kinds whose tables have the columns. `app` decides what a maker may do.

use std::collections::HashMap;

use blockbase_query::{Dialect, Param, Statement};

use crate::connection::Connection;
use crate::error::DbError;
use crate::row::Row;

/// The user and the key that made something. If both are missing, there is no maker, and the thing keeps its rights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Maker {
    pub user_id: Option<String>,
    /// The key that the user's request presented, if any.
    pub api_key_id: Option<String>,
}

impl Maker {
    /// This replaces the user if the request had no credential. No user has this id.
    pub const PUBLIC: &'static str = "public";

    /// The maker of things that a request without a credential made.
    pub fn public() -> Maker {
        Maker { user_id: Some(Maker::PUBLIC.to_owned()), api_key_id: None }
    }

    pub fn is_nobody(&self) -> bool {
        self.user_id.is_none() && self.api_key_id.is_none()
    }
}

/// The reason why a thing has no rights at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SuspensionReason {
    /// The user who made the thing was deleted.
    MakerGone,
    /// The user who made the thing is banned.
    MakerBanned,
    /// The API key with which the thing was made was deleted.
    KeyGone,
    /// The API key with which the thing was made has expired.
    KeyExpired,
    /// The API key with which the thing was made is itself suspended.
    KeySuspended,
    /// The maker has lost rights that the thing needs.
    RightsLost,
}

/// The reasons that depend only on the maker, as a list for SQL. `rights_lost` also depends on the thing's needs.
const OF_MAKER: &str = "'maker_gone', 'maker_banned', 'key_gone', 'key_expired', 'key_suspended'";

impl SuspensionReason {
    pub const ALL: [SuspensionReason; 6] = [
        SuspensionReason::MakerGone,
        SuspensionReason::MakerBanned,
        SuspensionReason::KeyGone,
        SuspensionReason::KeyExpired,
        SuspensionReason::KeySuspended,
        SuspensionReason::RightsLost,
    ];

    /// The name that is stored, shown and written into events.
    pub fn as_str(self) -> &'static str {
        match self {
            SuspensionReason::MakerGone => "maker_gone",
            SuspensionReason::MakerBanned => "maker_banned",
            SuspensionReason::KeyGone => "key_gone",
            SuspensionReason::KeyExpired => "key_expired",
            SuspensionReason::KeySuspended => "key_suspended",
            SuspensionReason::RightsLost => "rights_lost",
        }
    }

    fn read(text: &str) -> Result<SuspensionReason, DbError> {
        SuspensionReason::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| DbError::Other(format!("there is no reason {text:?} for a suspension").into()))
    }
}

/// The time and the reason since when a thing has no rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspension {
    pub reason: SuspensionReason,
    /// Milliseconds since the epoch.
    pub since: i64,
}

/// Reads `suspended_reason` and `suspended_at` from the columns that begin at `from`.
pub(crate) fn suspension(row: &Row, from: usize) -> Result<Option<Suspension>, DbError> {
    match (row.optional_text(from)?, row.optional_integer(from + 1)?) {
        (Some(reason), Some(since)) => Ok(Some(Suspension { reason: SuspensionReason::read(&reason)?, since })),
        _ => Ok(None),
    }
}

/// Reads `made_by_user` and `made_by_key` from the columns that begin at `from`.
pub(crate) fn maker(row: &Row, from: usize) -> Result<Maker, DbError> {
    Ok(Maker { user_id: row.optional_text(from)?, api_key_id: row.optional_text(from + 1)? })
}

/// A kind of thing that keeps its maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThingKind {
    ApiKey,
    Webhook,
    Subscription,
    Task,
    Block,
}

/// The table and the columns of a kind.
struct Place {
    table: &'static str,
    id: &'static str,
    name: &'static str,
    user: &'static str,
    key: &'static str,
}

impl ThingKind {
    /// The kinds whose tables have the four columns. A migration that adds the columns to another table adds its kind here.
    pub const ALL: [ThingKind; 5] =
        [ThingKind::ApiKey, ThingKind::Webhook, ThingKind::Subscription, ThingKind::Task, ThingKind::Block];

    /// The value of `resource` in lists of things. Topics of suspensions begin with it.
    pub fn name(self) -> &'static str {
        match self {
            ThingKind::ApiKey => "api_keys",
            ThingKind::Webhook => "webhooks",
            ThingKind::Subscription => "subscriptions",
            ThingKind::Task => "tasks",
            ThingKind::Block => "blocks",
        }
    }

    fn place(self) -> Place {
        let (table, id, name) = match self {
            ThingKind::ApiKey => ("svc_api_keys", "id", "name"),
            ThingKind::Webhook => ("svc_webhooks", "id", "name"),
            ThingKind::Subscription => ("svc_subscriptions", "consumer", "consumer"),
            ThingKind::Task => ("svc_tasks", "id", "name"),
            ThingKind::Block => ("svc_blocks", "name", "name"),
        };
        let (user, key) = match self {
            ThingKind::Task => ("user_id", "api_key_id"),
            _ => ("made_by_user", "made_by_key"),
        };
        Place { table, id, name, user, key }
    }
}

/// One thing that somebody made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    pub kind: ThingKind,
    /// The name of the thing in routes: a subscription's consumer group, a block's name, or the id of other things.
    pub id: String,
    pub name: Option<String>,
}

/// A part of a maker that has changed.
#[derive(Clone, Debug)]
pub enum MakerPart {
    User(String),
    ApiKey(String),
    /// Several keys, at most [`MakerPart::KEYS_MAX`].
    ApiKeys(Vec<String>),
}

impl MakerPart {
    /// The maximum number of keys in one [`MakerPart::ApiKeys`]. Each is a parameter of a statement.
    pub const KEYS_MAX: usize = 500;
}

/// A thing whose stored suspension does not match its maker's state.
#[derive(Clone, Debug)]
pub struct Unsettled {
    pub thing: Thing,
    pub stored: Option<SuspensionReason>,
    pub actual: Option<SuspensionReason>,
    /// The time when the maker's key expired, if that is the reason.
    pub expired_at: Option<i64>,
}

impl Connection {
    /// The things that a user made, with a session or with any API key.
    pub async fn things_made_by(&mut self, user_id: &str) -> Result<Vec<Thing>, DbError> {
        let mut things = Vec::new();
        for kind in ThingKind::ALL {
            let Place { table, id, name, user, .. } = kind.place();
            let sql = self.placeholders(format!("SELECT {id}, {name} FROM {table} WHERE {user} = $1 ORDER BY {id}"));
            let rows = self.fetch_rows(Statement { sql, params: vec![user_id.into()] }).await?;
            for row in &rows {
                things.push(Thing { kind, id: row.text(0)?, name: row.optional_text(1)? });
            }
        }
        Ok(things)
    }

    /// The things of `kind` that `part` made and whose stored suspension has to change. `now` decides which keys have expired.
    pub async fn unsettled(&mut self, kind: ThingKind, part: &MakerPart, now: i64) -> Result<Vec<Unsettled>, DbError> {
        let Place { table, id, name, user, key } = kind.place();
        let (column, ids) = match part {
            MakerPart::User(id) => (user, std::slice::from_ref(id)),
            MakerPart::ApiKey(id) => (key, std::slice::from_ref(id)),
            MakerPart::ApiKeys(ids) => (key, ids.as_slice()),
        };
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        // `$1` is the time, so the placeholders of the ids begin at `$2`.
        let places: Vec<String> = (0..ids.len()).map(|index| format!("${}", index + 2)).collect();
        let places = places.join(", ");
        let params: Vec<Param> = std::iter::once(Param::from(now)).chain(ids.iter().map(|id| id.as_str().into())).collect();
        let sql = self.placeholders(format!(
            "SELECT s.id, s.name, s.stored, s.actual, s.expired_at FROM ( \
               SELECT t.{id} AS id, t.{name} AS name, t.suspended_reason AS stored, \
                 CASE WHEN t.{user} <> '{public}' AND u.id IS NULL THEN 'maker_gone' \
                      WHEN u.banned THEN 'maker_banned' \
                      WHEN t.{key} IS NOT NULL AND k.id IS NULL THEN 'key_gone' \
                      WHEN k.expires_at <= $1 THEN 'key_expired' \
                      WHEN k.suspended_at IS NOT NULL THEN 'key_suspended' END AS actual, \
                 CASE WHEN k.expires_at <= $1 THEN k.expires_at END AS expired_at \
               FROM {table} t LEFT JOIN svc_users u ON u.id = t.{user} LEFT JOIN svc_api_keys k ON k.id = t.{key} \
               WHERE t.{column} IN ({places})) s \
             WHERE s.actual IS DISTINCT FROM s.stored AND (s.stored IS NULL OR s.stored IN ({OF_MAKER})) ORDER BY s.id",
            public = Maker::PUBLIC,
        ));
        let rows = self.fetch_rows(Statement { sql, params }).await?;
        let reason = |text: Option<String>| text.map(|text| SuspensionReason::read(&text)).transpose();
        rows.iter()
            .map(|row| {
                Ok(Unsettled {
                    thing: Thing { kind, id: row.text(0)?, name: row.optional_text(1)? },
                    stored: reason(row.optional_text(2)?)?,
                    actual: reason(row.optional_text(3)?)?,
                    expired_at: row.optional_integer(4)?,
                })
            })
            .collect()
    }

    /// Suspends a thing and stores the reason. Returns whether it was active before. A thing that is already suspended gets the new
    /// reason and keeps its time.
    pub async fn suspend(&mut self, kind: ThingKind, id: &str, suspension: Suspension) -> Result<bool, DbError> {
        let Place { table, id: column, .. } = kind.place();
        let params = vec![id.into(), suspension.reason.as_str().into(), suspension.since.into()];
        let sql =
            format!("UPDATE {table} SET suspended_reason = $2, suspended_at = $3 WHERE {column} = $1 AND suspended_at IS NULL");
        if self.execute(Statement { sql: self.placeholders(sql), params }).await? == 1 {
            return Ok(true);
        }
        let sql = self.placeholders(format!("UPDATE {table} SET suspended_reason = $2 WHERE {column} = $1"));
        self.execute(Statement { sql, params: vec![id.into(), suspension.reason.as_str().into()] }).await?;
        Ok(false)
    }

    /// Ends the suspension of a thing. Returns whether it was suspended.
    pub async fn end_suspension(&mut self, kind: ThingKind, id: &str) -> Result<bool, DbError> {
        let Place { table, id: column, .. } = kind.place();
        let sql = self.placeholders(format!(
            "UPDATE {table} SET suspended_reason = NULL, suspended_at = NULL WHERE {column} = $1 AND suspended_at IS NOT NULL"
        ));
        Ok(self.execute(Statement { sql, params: vec![id.into()] }).await? == 1)
    }

    /// The suspended things of a kind, by their id in routes.
    pub async fn suspensions(&mut self, kind: ThingKind) -> Result<HashMap<String, Suspension>, DbError> {
        let Place { table, id, .. } = kind.place();
        let sql = format!("SELECT {id}, suspended_reason, suspended_at FROM {table} WHERE suspended_at IS NOT NULL");
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params: Vec::new() }).await?;
        let mut suspensions = HashMap::new();
        for row in &rows {
            suspensions.extend(suspension(row, 1)?.map(|found| row.text(0).map(|id| (id, found))).transpose()?);
        }
        Ok(suspensions)
    }

    /// The suspension of a thing. `None` if it is not suspended or does not exist.
    pub async fn suspension_of(&mut self, kind: ThingKind, id: &str) -> Result<Option<Suspension>, DbError> {
        let Place { table, id: column, .. } = kind.place();
        let sql = format!("SELECT suspended_reason, suspended_at FROM {table} WHERE {column} = $1");
        let rows = self.fetch_rows(Statement { sql: self.placeholders(sql), params: vec![id.into()] }).await?;
        rows.first().map_or(Ok(None), |row| suspension(row, 0))
    }

    /// The maker of a thing. `None` if the thing does not exist.
    pub async fn maker_of(&mut self, kind: ThingKind, id: &str) -> Result<Option<Maker>, DbError> {
        let Place { table, id: column, user, key, .. } = kind.place();
        let sql = self.placeholders(format!("SELECT {user}, {key} FROM {table} WHERE {column} = $1"));
        let rows = self.fetch_rows(Statement { sql, params: vec![id.into()] }).await?;
        rows.first().map(|row| maker(row, 0)).transpose()
    }

    /// Gives a thing another maker, which ends its suspension. Returns `false` if the thing does not exist.
    pub async fn set_maker(&mut self, kind: ThingKind, id: &str, maker: &Maker) -> Result<bool, DbError> {
        let Place { table, id: column, user, key, .. } = kind.place();
        let sql = self.placeholders(format!(
            "UPDATE {table} SET {user} = $2, {key} = $3, suspended_reason = NULL, suspended_at = NULL WHERE {column} = $1"
        ));
        let params = vec![id.into(), maker.user_id.clone().into(), maker.api_key_id.clone().into()];
        Ok(self.execute(Statement { sql, params }).await? == 1)
    }

    /// Makes `to` the maker of all things of a kind that `from` made.
    pub async fn move_makership(&mut self, kind: ThingKind, from: &str, to: &str) -> Result<u64, DbError> {
        let Place { table, user, .. } = kind.place();
        let sql = self.placeholders(format!("UPDATE {table} SET {user} = $2 WHERE {user} = $1"));
        self.execute(Statement { sql, params: vec![from.into(), to.into()] }).await
    }

    /// At most `limit` expired API keys that made something that is not suspended yet.
    pub async fn expired_makers(&mut self, now: i64, limit: i64) -> Result<Vec<String>, DbError> {
        let mut keys = Vec::new();
        for kind in ThingKind::ALL {
            let Place { table, key, .. } = kind.place();
            let sql = self.placeholders(format!(
                "SELECT DISTINCT k.id FROM svc_api_keys k JOIN {table} t ON t.{key} = k.id \
                 WHERE k.expires_at <= $1 AND t.suspended_at IS NULL LIMIT $2"
            ));
            let rows = self.fetch_rows(Statement { sql, params: vec![now.into(), limit.into()] }).await?;
            for row in &rows {
                keys.push(row.text(0)?);
            }
        }
        Ok(keys)
    }

    /// Whether a key exists. Neither the key nor its suspension changes until the transaction ends.
    pub async fn keep_api_key(&mut self, id: &str) -> Result<bool, DbError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT id FROM svc_api_keys WHERE id = $1",
            Dialect::Postgres => "SELECT id FROM svc_api_keys WHERE id = $1 FOR SHARE",
        };
        Ok(!self.fetch(sql, vec![id.into()]).await?.is_empty())
    }
}
