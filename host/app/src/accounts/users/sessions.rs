//! Sessions of a user, as administrators see and end them.

use blockbase_query::{Action, Paging};
use blockbase_schema::{Error, Resource, Result};
use blockbase_store::SessionRow;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::within;
use crate::App;
use crate::base::answer::Timestamp;
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};
use crate::records::read::page_json;

/// A session of a user, without its token.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcUserSession", deny_unknown_fields)]
pub struct UserSessionAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    created_at: Timestamp,
    expires_at: Timestamp,
    /// When it was last used, to within five minutes; null if that is not known.
    last_seen_at: Option<Timestamp>,
    ip_address: Option<String>,
    user_agent: Option<String>,
    /// Whether it is the session of this request.
    current: bool,
}

impl UserSessionAnswer {
    fn of(session: SessionRow, current: Option<&str>) -> UserSessionAnswer {
        UserSessionAnswer {
            current: current == Some(session.id.as_str()),
            id: session.id,
            created_at: Timestamp(session.created_at),
            expires_at: Timestamp(session.expires_at),
            last_seen_at: session.last_seen_at.map(Timestamp),
            ip_address: session.ip_address,
            user_agent: session.user_agent,
        }
    }
}

impl App {
    /// A page of a user's sessions that have not expired, the newest first: `{ data, pagination }`. `current` marks the session
    /// of this request.
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
        // An earlier version of the server did not limit the number of a user's sessions.
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
        let sessions: Vec<_> = sessions.into_iter().map(|session| UserSessionAnswer::of(session, current)).collect();
        Ok(page_json(&sessions, paging, total))
    }

    /// Ends all sessions of a user, including the caller's own session if it is one of them. Returns how many it ended.
    ///
    /// # Errors
    /// `not_found`; `forbidden` if the user has rights that the caller lacks.
    pub async fn end_user_sessions(&self, caller: &Caller, id: &str) -> Result<u64> {
        let access = caller.access(Resource::Users, Action::Update)?;
        let (id, caller, app) = (id.to_owned(), caller.clone(), self.itself()?);
        let (auditor, now) = (self.auditor(&caller), self.clock.now());
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = within(connection, &access, &id).await?;
                app.require_rights_of_user(connection, &caller, &user).await?;
                // Expired sessions are deleted too, but they are not counted.
                let ended = connection.sessions_count(&id, now).await?;
                connection.delete_sessions_of(&id, None).await?;
                if ended > 0 {
                    let act = Act::new(AuditAction::EndSessions, Resource::Users, &id).after(&json!({ "ended": ended }));
                    auditor.record(connection, act).await?;
                }
                u64::try_from(ended).map_err(Error::internal)
            })
        })
        .await
    }

    /// Ends one session of a user.
    ///
    /// # Errors
    /// `not_found` for an unknown user or session. `forbidden` if the user has rights that the caller lacks.
    pub async fn end_user_session(&self, caller: &Caller, id: &str, session: &str) -> Result<()> {
        let access = caller.access(Resource::Users, Action::Update)?;
        let (id, session, caller, app) = (id.to_owned(), session.to_owned(), caller.clone(), self.itself()?);
        let auditor = self.auditor(&caller);
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                let user = within(connection, &access, &id).await?;
                app.require_rights_of_user(connection, &caller, &user).await?;
                if !connection.end_session(&id, &session).await? {
                    return Err(Error::not_found("session"));
                }
                let act = Act::new(AuditAction::EndSession, Resource::Users, &id).before(&json!({ "sessionId": session }));
                auditor.record(connection, act).await
            })
        })
        .await
    }
}
