//! Sign-up: a new user, the first of whom becomes admin; a guest who signs up takes along what is theirs.

use blockbase_auth::check_password;
use blockbase_schema::Error;
use blockbase_store::UserRow;
use serde_json::json;

use super::guests::carry_over;
use super::{ADMIN, AuthProblem, Client, SignedIn, check_image, check_name, hash_error, normal_email, render_user};
use crate::App;

/// What sign-up takes.
#[derive(Clone, Debug)]
pub struct SignUp {
    pub name: String,
    pub email: String,
    pub password: String,
    pub image: Option<String>,
    pub remember: bool,
    pub client: Client,
}

/// What the transaction decided.
enum Outcome {
    Done,
    EmailTaken,
    Closed,
}

impl App {
    /// Creates a user and signs them in. The first of all becomes admin.
    ///
    /// A guest's session among the credentials is ended, and what the guest had is the new user's; where the sign-up fails, the
    /// guest is as before.
    pub async fn sign_up(&self, request: SignUp) -> Result<SignedIn, AuthProblem> {
        let SignUp { name, email, password, image, remember, client } = request;
        let email = normal_email(&email).ok_or_else(|| AuthProblem::Validation("`email` is not an address.".to_owned()))?;
        check_name(&name)?;
        check_image(image.as_deref())?;
        check_password(&password, &email)?;
        if self.settings.disable_signup && self.has_users().await? {
            return Err(AuthProblem::SignUpDisabled);
        }
        let guest = self.guest_of(&client.credentials).await?;
        let password_hash = self.hasher.hash(password).await.map_err(hash_error)?;
        let now = self.clock.now();
        let user = UserRow {
            id: self.clock.id(now).to_string(),
            name,
            email,
            email_verified: false,
            image,
            is_anonymous: false,
            banned: false,
            created_at: now,
            updated_at: now,
        };
        let (session, token) = self.new_session(&user.id, remember, &client)?;
        let caller = App::as_user(&user.id);
        let (user, password_hash, session, guest, caller) = (&user, &password_hash, &session, &guest, &caller);
        let outcome = self
            .on_schema(move |registry| async move {
                let created = self.user_event(caller, "created", &user.id, json!({}));
                let upgraded =
                    guest.as_ref().and_then(|guest| self.user_event(caller, "upgraded", &user.id, json!({ "guestId": guest })));
                let (user, hash, session, guest) = (user.clone(), password_hash.clone(), session.clone(), guest.clone());
                let (closes, signup_role) = (self.settings.disable_signup, self.settings.signup_role.clone());
                self.add_to_accounts(guest.is_some(), move |connection| {
                    Box::pin(async move {
                        let mut is_first = !connection.has_credentialed_user().await?;
                        if is_first {
                            // Of any number of first sign-ups, on any number of instances, one gets here first.
                            connection.lock_accounts().await?;
                            is_first = !connection.has_credentialed_user().await?;
                        }
                        if !is_first && closes {
                            return Ok(Outcome::Closed);
                        }
                        if !connection.insert_user(&user, Some(hash)).await? {
                            return Ok(Outcome::EmailTaken);
                        }
                        let carried = match &guest {
                            Some(guest) => carry_over(connection, &registry, guest, &user.id).await?,
                            None => false,
                        };
                        let role = match (is_first, carried, signup_role) {
                            (true, _, _) => Some(ADMIN.to_owned()),
                            (false, false, name) => name,
                            // They keep what they had, and get nothing besides.
                            (false, true, _) => None,
                        };
                        if let Some(role) = role {
                            // The configured role may not be there yet; a warning at boot told so.
                            if let Some(role) = connection.kept_role_named(&role).await? {
                                connection.give_role(&user.id, &role.id).await?;
                            } else if is_first {
                                return Err(Error::internal("there is no role `admin`"));
                            }
                        }
                        connection.insert_session(session).await?;
                        for event in created.into_iter().chain(upgraded.filter(|_| carried)) {
                            event.emit(connection).await?;
                        }
                        Ok(Outcome::Done)
                    })
                })
                .await
            })
            .await?;
        match outcome {
            Outcome::Done => Ok(SignedIn { token, user: render_user(user), remember }),
            Outcome::EmailTaken => Err(AuthProblem::UserExists),
            Outcome::Closed => Err(AuthProblem::SignUpDisabled),
        }
    }
}
