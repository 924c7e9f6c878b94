//! Sessions of a user as those see and end them who look after users.

use blockbase_query::{Action, Paging};
use blockbase_schema::{Error, Resource, Result, time};
use blockbase_store::SessionRow;
use serde_json::{Value, json};

use super::within;
use crate::App;
use crate::caller::Caller;
use crate::records::page_json;

/// `{ id, createdAt, expiresAt, lastSeenAt, ipAddress, userAgent, current }`: never the token, nor its hash.
fn render(session: &SessionRow, current: Option<&str>) -> Value {
    json!({
        "id": session.id,
        "createdAt": time::format_datetime(session.created_at),
        "expiresAt": time::format_datetime(session.expires_at),
        "lastSeenAt": session.last_seen_at.map(time::format_datetime),
        "ipAddress": session.ip_address,
        "userAgent": session.user_agent,
        "current": current == Some(session.id.as_str()),
    })
}

impl App {
    /// A page of a user's sessions that have not expired, the newest first: `{ data, pagination }`. `current` marks the one that asks.
    ///
    /// # Errors
    /// `not_found` for a user whom the caller may not see.
    pub async fn user_sessions(&self, caller: &Caller, id: &str, paging: Paging) -> Result<String> {
        let access = caller.access(Resource::Users, Action::Read)?;
        let missing = || Error::not_found("user");
        if access.only().is_some_and(|only| only != id) {
            return Err(missing());
        }
        let (id, now) = (id.to_owned(), self.clock.now());
        let (limit, offset) = (paging.limit as i64, paging.offset as i64);
        // An earlier version of the server let a user have any number of sessions.
        let (sessions, total) = self
            .scan(caller, move |connection| {
                Box::pin(async move {
                    connection.user(&id).await?.ok_or_else(missing)?;
                    let total = connection.sessions_count(&id, now).await?;
                    Ok((connection.sessions_of(&id, now, limit, offset).await?, total))
                })
            })
            .await?;
        let identity = caller.identity();
        let current = identity.and_then(|identity| identity.session()).map(|session| session.id.as_str());
        let sessions = Value::Array(sessions.iter().map(|session| render(session, current)).collect());
        Ok(page_json(&sessions, paging, total))
    }

    /// Ends all sessions of a user, the caller's own too where it is one of them: how many.
    ///
    /// # Errors
    /// `not_found`; `forbidden` where the user holds more than the caller.
    pub async fn end_user_sessions(&self, caller: &Caller, id: &str) -> Result<u64> {
        let access = caller.access(Resource::Users, Action::Update)?;
        let (id, caller, app) = (id.to_owned(), caller.clone(), self.itself()?);
        let now = self.clock.now();
        self.change_accounts_by(caller.judged.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = within(connection, &access, &id).await?;
                app.require_strength_over_user(connection, &caller, &user).await?;
                // Those that have expired are no sessions any more; they go along, and are not counted.
                let ended = connection.sessions_count(&id, now).await?;
                connection.delete_sessions_of(&id, None).await?;
                u64::try_from(ended).map_err(Error::internal)
            })
        })
        .await
    }

    /// Ends one session of a user.
    ///
    /// # Errors
    /// `not_found` for a user or a session that is not there; `forbidden` where the user holds more than the caller.
    pub async fn end_user_session(&self, caller: &Caller, id: &str, session: &str) -> Result<()> {
        let access = caller.access(Resource::Users, Action::Update)?;
        let (id, session, caller, app) = (id.to_owned(), session.to_owned(), caller.clone(), self.itself()?);
        self.change_accounts_by(caller.judged.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = within(connection, &access, &id).await?;
                app.require_strength_over_user(connection, &caller, &user).await?;
                match connection.end_session(&id, &session).await? {
                    true => Ok(()),
                    false => Err(Error::not_found("session")),
                }
            })
        })
        .await
    }
}
