//! The sessions of a user: listing and ending them.

use std::sync::Arc;

use blockbase_auth::hash_token;
use blockbase_schema::Error;
use blockbase_store::{Service, SessionRow};

use super::types::{ListedSession, SessionFacts};
use crate::App;
use crate::caller::check_basis::CheckBasis;
use crate::caller::client::AuthProblem;
use crate::caller::identity::Identity;
use crate::caller::{Caller, Credentials};

/// The maximum number of sessions of one user. A further sign-in ends those that were used least recently.
pub const SESSIONS_OF_USER_MAX: i64 = 100;

impl App {
    /// The identity behind a session. An API key is not a session.
    ///
    /// # Errors
    /// [`AuthProblem::NoSession`].
    pub(crate) async fn session(&self, credentials: &Credentials) -> Result<Arc<Identity>, AuthProblem> {
        let found = self.identify(credentials).await?;
        found.filter(|identity| identity.session().is_some()).ok_or(AuthProblem::NoSession)
    }

    /// Ends the sessions that the credentials show: the session of the token, and the session of the cookie, which the client
    /// then drops.
    pub async fn sign_out(&self, credentials: &Credentials) -> Result<(), Error> {
        let bearer = credentials.bearer.as_deref().and_then(|value| self.cookies.token_of_bearer(value));
        let cookie = credentials.cookies.as_deref().and_then(|header| self.cookies.token_of_cookies(header));
        let hashes: Vec<String> = bearer.iter().chain(&cookie).map(|token| hash_token(token)).collect();
        if hashes.is_empty() {
            return Ok(());
        }
        self.change_accounts(Service, move |connection| {
            Box::pin(async move {
                for hash in hashes {
                    connection.delete_session(&hash).await?;
                }
                Ok(())
            })
        })
        .await
    }

    /// The newest sessions of the caller's user, at most [`SESSIONS_OF_USER_MAX`]. Each has `current`, and none shows its token.
    pub async fn list_sessions(&self, credentials: &Credentials) -> Result<Vec<ListedSession>, AuthProblem> {
        let identity = self.session(credentials).await?;
        let (user_id, now) = (identity.user.id.clone(), self.clock.now());
        let caller = Caller::at(Arc::clone(&identity), credentials.address);
        // An earlier version of the server did not limit the number of a user's sessions.
        let sessions = self
            .scan(&caller, move |connection| {
                Box::pin(async move { Ok(connection.sessions_of(&user_id, now, SESSIONS_OF_USER_MAX, 0).await?) })
            })
            .await?;
        let current = identity.session().map(|session| session.id.as_str());
        let listed = |session: SessionRow| ListedSession {
            current: current == Some(session.id.as_str()),
            facts: SessionFacts::from(&session),
            id: session.id,
            token: (),
        };
        Ok(sessions.into_iter().map(listed).collect())
    }

    /// Ends one session of the caller's user, by its id or its token. Ending a session that does not exist succeeds.
    pub async fn revoke_session(
        &self,
        credentials: &Credentials,
        id: Option<&str>,
        token: Option<&str>,
    ) -> Result<(), AuthProblem> {
        let identity = self.session(credentials).await?;
        let key = match (id, token) {
            (Some(id), _) => id.to_owned(),
            (None, Some(token)) => hash_token(token),
            (None, None) => return Err(AuthProblem::Validation("`id` or `token` names the session to end.".to_owned())),
        };
        let user_id = identity.user.id.clone();
        self.change_accounts_by(CheckBasis::of(&identity), move |connection| {
            Box::pin(async move { Ok(connection.delete_session_of(&user_id, &key).await?) })
        })
        .await?;
        Ok(())
    }

    /// Ends all sessions of the caller's user, including the current one unless `keeps_current` is set.
    pub async fn revoke_sessions(&self, credentials: &Credentials, keeps_current: bool) -> Result<(), AuthProblem> {
        let identity = self.session(credentials).await?;
        let user_id = identity.user.id.clone();
        let kept = identity.session().filter(|_| keeps_current).map(|session| session.id.clone());
        self.change_accounts_by(CheckBasis::of(&identity), move |connection| {
            Box::pin(async move { Ok(connection.delete_sessions_of(&user_id, kept.as_deref()).await?) })
        })
        .await?;
        Ok(())
    }

    /// Deletes the sessions that have expired.
    pub async fn purge_sessions(&self) -> Result<u64, Error> {
        self.purge(|connection, now, most| Box::pin(connection.purge_sessions(now, most))).await
    }
}
