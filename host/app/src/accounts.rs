//! Accounts: sign-up, sign-in, sign-out, and who somebody is.

use blockbase_auth::{PasswordProblem, SessionToken, check_password, hash_token};
use blockbase_schema::{Code, Error, time};
use blockbase_store::{NewSession, NewUser, ReadCost, RoleRow, SessionRow, UserRow};
use serde_json::{Value, json};

use crate::App;
use crate::caller::{Caller, Credentials};
use crate::sessions::{SESSION_MS, SHORT_SESSION_MS, SessionCache};

/// What sign-up takes.
#[derive(Clone, Debug)]
pub struct SignUp {
    pub name: String,
    pub email: String,
    pub password: String,
    pub image: Option<String>,
    pub remember: bool,
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
}

/// What sign-in takes.
#[derive(Clone, Debug)]
pub struct SignIn {
    pub email: String,
    pub password: String,
    pub remember: bool,
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
}

/// A new session.
pub struct SignedIn {
    /// Shown to the caller once.
    pub token: SessionToken,
    pub user: Value,
    pub remember: bool,
}

/// Who a caller is.
#[derive(Debug)]
pub struct Identity {
    pub user: Value,
    pub user_id: String,
    pub roles: Vec<String>,
    pub session: Value,
}

/// Why an authentication request was refused; the surface has the protocol's own codes for these.
#[derive(Debug)]
pub enum AuthProblem {
    UserExists,
    PasswordTooShort,
    PasswordTooLong,
    PasswordIsEmail,
    InvalidEmail,
    /// A member of the body is missing or of another type.
    Validation(String),
    SignUpDisabled,
    InvalidEmailOrPassword,
    Other(Error),
}

impl From<Error> for AuthProblem {
    fn from(error: Error) -> Self {
        AuthProblem::Other(error)
    }
}

impl From<PasswordProblem> for AuthProblem {
    fn from(problem: PasswordProblem) -> Self {
        match problem {
            PasswordProblem::TooShort => AuthProblem::PasswordTooShort,
            PasswordProblem::TooLong => AuthProblem::PasswordTooLong,
            PasswordProblem::IsEmail => AuthProblem::PasswordIsEmail,
        }
    }
}

/// The user as every answer shows it.
pub fn render_user(user: &UserRow) -> Value {
    json!({
        "id": user.id,
        "name": user.name,
        "email": user.email,
        "emailVerified": user.email_verified,
        "image": user.image,
        "isAnonymous": user.is_anonymous,
        "createdAt": time::format_datetime(user.created_at),
        "updatedAt": time::format_datetime(user.updated_at),
    })
}

/// The session as its own user sees it.
pub fn render_session(session: &SessionRow, token: Option<&str>) -> Value {
    json!({
        "id": session.id,
        "token": token,
        "userId": session.user_id,
        "expiresAt": time::format_datetime(session.expires_at),
        "createdAt": time::format_datetime(session.created_at),
        "updatedAt": time::format_datetime(session.updated_at),
        "ipAddress": session.ip_address,
        "userAgent": session.user_agent,
    })
}

/// An address as it is stored and compared: lower case, with one `@` and a dot behind it.
fn normal_email(email: &str) -> Option<String> {
    let email = email.trim().to_lowercase();
    let (local, domain) = email.split_once('@')?;
    let fits = !local.is_empty()
        && email.len() <= 254
        && domain.contains('.')
        && !domain.starts_with('.')
        && !domain.ends_with('.')
        && !email
            .chars()
            .any(|character| character.is_whitespace() || character.is_control() || matches!(character, '<' | '>' | ','))
        && !domain.contains('@');
    fits.then_some(email)
}

/// Longest display name in characters.
const NAME_CHARS_MAX: usize = 200;
/// Longest image URL in characters.
const IMAGE_CHARS_MAX: usize = 2000;
/// Longest user agent kept, in characters.
const USER_AGENT_CHARS_MAX: usize = 500;

/// Forgets the sessions kept in memory when it is dropped.
struct ForgetOnDrop<'a>(&'a SessionCache);

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// What the sign-up transaction decided.
enum SignUpOutcome {
    Done,
    EmailTaken,
    Closed,
}

impl App {
    /// Creates a user and signs them in. The first of all becomes admin.
    pub async fn sign_up(&self, request: SignUp) -> Result<SignedIn, AuthProblem> {
        let email =
            normal_email(&request.email).ok_or_else(|| AuthProblem::Validation("`email` is not an address.".to_owned()))?;
        if request.name.chars().count() > NAME_CHARS_MAX || request.name.contains('\0') {
            return Err(Error::invalid_request(format!("`name` holds {NAME_CHARS_MAX} characters at most.")).into());
        }
        let image_is_fit = |image: &String| image.chars().count() <= IMAGE_CHARS_MAX && !image.contains('\0');
        if !request.image.as_ref().is_none_or(image_is_fit) {
            return Err(Error::invalid_request(format!("`image` is a URL of {IMAGE_CHARS_MAX} characters at most.")).into());
        }
        check_password(&request.password, &email)?;
        if self.settings.disable_signup && self.has_admin().await? {
            return Err(AuthProblem::SignUpDisabled);
        }
        let password_hash = self.hasher.hash(request.password).await.map_err(Error::internal)?;
        let now = self.clock.now();
        let user = UserRow {
            id: self.clock.id(now).to_string(),
            name: request.name,
            email,
            email_verified: false,
            image: request.image,
            is_anonymous: false,
            banned: false,
            created_at: now,
            updated_at: now,
        };
        let (session, token) = self.new_session(&user.id, request.remember, request.ip_address, request.user_agent)?;
        let new_user = NewUser {
            id: user.id.clone(),
            name: user.name.clone(),
            email: user.email.clone(),
            image: user.image.clone(),
            password_hash,
            now,
        };
        let payload = json!({ "userId": user.id, "actor": { "userId": user.id, "apiKeyId": null, "via": "session" } });
        let event = self.platform_event(&Caller::system(), "auth.user.created".to_owned(), payload.to_string());
        let (closes, signup_role) = (self.settings.disable_signup, self.settings.signup_role.clone());
        let outcome = self
            .store
            .write(move |connection| {
                Box::pin(async move {
                    let id = new_user.id.clone();
                    // Of any number of first sign-ups, on any number of instances, one inserts this row.
                    let is_first = connection.win_once("first_admin", &id).await?;
                    if !is_first && closes {
                        return Ok(SignUpOutcome::Closed);
                    }
                    if !connection.insert_user(new_user).await? {
                        // An error undoes a first admin that would not be there.
                        return match is_first {
                            true => Err(Error::new(Code::UniqueViolation, "A user with this address exists already.")),
                            false => Ok(SignUpOutcome::EmailTaken),
                        };
                    }
                    let role: Option<RoleRow> = match (is_first, signup_role) {
                        (true, _) => connection.role_named("admin").await?,
                        (false, Some(name)) => connection.role_named(&name).await?,
                        (false, None) => None,
                    };
                    if let Some(role) = role {
                        connection.give_role(&id, &role.id).await?;
                    }
                    connection.insert_session(session).await?;
                    if let Some(event) = event {
                        connection.emit(event).await?;
                    }
                    Ok(SignUpOutcome::Done)
                })
            })
            .await?;
        match outcome {
            SignUpOutcome::Done => Ok(SignedIn { token, user: render_user(&user), remember: request.remember }),
            SignUpOutcome::EmailTaken => Err(AuthProblem::UserExists),
            SignUpOutcome::Closed => Err(AuthProblem::SignUpDisabled),
        }
    }

    async fn has_admin(&self) -> Result<bool, Error> {
        self.store.read(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.has_credentialed_user().await?) })).await
    }

    fn new_session(
        &self,
        user_id: &str,
        remember: bool,
        ip_address: Option<String>,
        user_agent: Option<String>,
    ) -> Result<(NewSession, SessionToken), Error> {
        let token = SessionToken::random().map_err(Error::internal)?;
        let now = self.clock.now();
        let session = NewSession {
            id: self.clock.id(now).to_string(),
            token_hash: token.hash(),
            user_id: user_id.to_owned(),
            expires_at: now + if remember { SESSION_MS } else { SHORT_SESSION_MS },
            now,
            ip_address,
            user_agent: user_agent.map(|agent| agent.chars().take(USER_AGENT_CHARS_MAX).collect()),
        };
        Ok((session, token))
    }

    /// Signs in with a password. A wrong one and an unknown user look alike and take the same time.
    pub async fn sign_in(&self, request: SignIn) -> Result<SignedIn, AuthProblem> {
        let email = normal_email(&request.email).ok_or(AuthProblem::InvalidEmail)?;
        let found = self
            .store
            .read(ReadCost::Rows, move |connection| Box::pin(async move { Ok(connection.credential(&email).await?) }))
            .await?;
        let (user, hash) = found.unzip();
        let holds = self.hasher.verify(request.password, hash).await.map_err(Error::internal)?;
        let Some(user) = user.filter(|user| holds && !user.banned) else {
            return Err(AuthProblem::InvalidEmailOrPassword);
        };
        let (session, token) = self.new_session(&user.id, request.remember, request.ip_address, request.user_agent)?;
        self.store.write(move |connection| Box::pin(async move { Ok(connection.insert_session(session).await?) })).await?;
        Ok(SignedIn { token, user: render_user(&user), remember: request.remember })
    }

    /// Ends the session that the credentials show, if there is one.
    pub async fn sign_out(&self, credentials: &Credentials) -> Result<(), Error> {
        let Some(token) = self.presented_token(credentials) else { return Ok(()) };
        let hash = hash_token(&token);
        // Also where the client goes away before the answer.
        let _forget = ForgetOnDrop(&self.sessions);
        self.store.write(move |connection| Box::pin(async move { Ok(connection.delete_session(&hash).await?) })).await?;
        Ok(())
    }

    fn presented_token(&self, credentials: &Credentials) -> Option<String> {
        match &credentials.bearer {
            Some(bearer) => self.cookies.token_of_bearer(bearer),
            None => credentials.cookies.as_deref().and_then(|header| self.cookies.token_of_cookies(header)),
        }
    }

    /// Who presents `credentials`; `None` where no session holds.
    pub async fn identity(&self, credentials: &Credentials) -> Result<Option<Identity>, Error> {
        let Some(token) = self.presented_token(credentials) else { return Ok(None) };
        let Some(session) = self.session_of_hash(hash_token(&token)).await? else { return Ok(None) };
        Ok(Some(Identity {
            user: render_user(&session.user),
            user_id: session.user.id.clone(),
            roles: session.roles.clone(),
            session: render_session(&session.session, Some(&token)),
        }))
    }
}
