//! Accounts: sign-up, sign-in, guests, sessions, links to set a password, the account made at boot.

pub(crate) mod api_keys;
mod bootstrap;
mod guests;
mod mail;
mod own_account;
mod password_links;
pub(crate) mod preferences;
mod profile;
pub(crate) mod removal;
pub(crate) mod roles;
mod sessions;
mod sign_in;
mod sign_up;
mod types;
pub(crate) mod users;
mod verification;

use std::sync::Arc;

use blockbase_auth::SessionToken;
use blockbase_schema::Error;
use blockbase_store::{NewSession, ReadCost};

pub use bootstrap::BootstrapAdmin;
pub use mail::{MailRequest, OutgoingMail, PAGE_CHARS_MAX};
pub use own_account::{Deletion, DeletionRequest};
pub use password_links::PasswordLinkAnswer;
pub use profile::ProfileChanges;
pub use sessions::SESSIONS_OF_USER_MAX;
pub use sign_in::SignIn;
pub use sign_up::{SignUp, SignedUp};
pub use types::{CurrentSession, IMAGE_CHARS_MAX, ListedSession, MeAnswer, NAME_CHARS_MAX, SessionAnswer, SignedIn, UserAnswer};
use types::{SessionFacts, USER_AGENT_CHARS_MAX};
pub use verification::AddressProof;

use crate::App;
use crate::access::identity::{Presented, SESSION_MS, SHORT_SESSION_MS};
use crate::base::answer::text_of;
use crate::caller::client::Client;
use crate::caller::{Caller, Credentials};

impl App {
    /// Makes a session that begins now, and its token.
    fn new_session(&self, user_id: &str, remember: bool, client: &Client) -> Result<(NewSession, SessionToken), Error> {
        let token = SessionToken::random().map_err(Error::internal)?;
        let now = self.clock.now();
        let agent = client.user_agent.as_ref();
        let session = NewSession {
            id: self.clock.id(now).to_string(),
            token_hash: token.hash(),
            user_id: user_id.to_owned(),
            expires_at: now + if remember { SESSION_MS } else { SHORT_SESSION_MS },
            now,
            ip_address: client.ip_address.clone(),
            user_agent: agent.map(|agent| agent.chars().take(USER_AGENT_CHARS_MAX).collect()),
            is_bootstrap: false,
        };
        Ok((session, token))
    }

    /// The service acting in the name of a user who has no session yet.
    fn as_user(user_id: &str) -> Caller {
        let actor =
            blockbase_auth::Actor { user_id: Some(user_id.to_owned()), api_key_id: None, via: blockbase_auth::Via::Session };
        Caller { principal: blockbase_auth::Principal::Known(actor), ..Caller::nobody() }
    }

    /// Whether somebody has signed up before. Guests do not count.
    async fn has_users(&self) -> Result<bool, Error> {
        self.store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.has_credentialed_user().await?) }))
            .await
    }

    /// The hash of a user's password. A guest has none.
    async fn password_hash(&self, user_id: &str) -> Result<Option<String>, Error> {
        let user_id = user_id.to_owned();
        self.store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(connection.password_hash(&user_id).await?) })
            })
            .await
    }

    /// The user who presents `credentials`, as the JSON of `/api/v1/me`. `None` if the credentials are not valid, which is not an
    /// error here.
    pub async fn me(&self, credentials: &Credentials) -> Result<Option<Arc<str>>, Error> {
        let found = self.identify(credentials).await?;
        Ok(found.map(|identity| Arc::clone(identity.me_answer.get_or_init(|| text_of(&MeAnswer::from(&*identity)).into()))))
    }

    /// Returns `{ session, user }` for the session that the credentials show. `None` if they show no session.
    pub async fn current_session(&self, credentials: &Credentials) -> Result<Option<CurrentSession>, Error> {
        let Some(identity) = self.identify(credentials).await? else { return Ok(None) };
        let (Presented::Bearer(Some(token)) | Presented::Cookie(token)) = self.presented(credentials) else { return Ok(None) };
        Ok(identity.session().map(|session| {
            let session = SessionAnswer { id: session.id.clone(), token, facts: SessionFacts::from(session) };
            CurrentSession { session, user: UserAnswer::from(&identity.user) }
        }))
    }
}
