//! The changes that users make to their own account: the password, the name, the image.

use blockbase_auth::check_password;

use super::types::{SignedIn, UserAnswer, check_image, check_name};
use crate::App;
use crate::access::identity::is_remembered;
use crate::caller::Credentials;
use crate::caller::check_basis::CheckBasis;
use crate::caller::client::{AuthProblem, Client};

/// The changes of `update-user`. `Some(None)` removes the image.
#[derive(Clone, Debug, Default)]
pub struct ProfileChanges {
    pub name: Option<String>,
    pub image: Option<Option<String>>,
}

impl App {
    /// Changes the password of the caller's user. Returns the user, and a new session if `revokes_others` ends all existing ones.
    ///
    /// # Errors
    /// [`AuthProblem::InvalidPassword`] if `current` is wrong, `rate_limited` after too many wrong ones,
    /// [`AuthProblem::NoCredential`] for guests.
    pub async fn change_password(
        &self,
        client: Client,
        current: String,
        new: String,
        revokes_others: bool,
    ) -> Result<(UserAnswer, Option<SignedIn>), AuthProblem> {
        let identity = self.session(&client.credentials).await?;
        let user = identity.user.clone();
        if user.is_anonymous {
            return Err(AuthProblem::NoCredential);
        }
        check_password(&new, &user.email)?;
        let old_hash = self.password_hash(&user.id).await?.ok_or(AuthProblem::NoCredential)?;
        let attempt = self.check_own_password(&client, &identity, current, old_hash.clone(), "a change of the password").await?;
        let new_hash = self.hash_chosen(new).await??;
        let remember = identity.session().is_some_and(is_remembered);
        let session = revokes_others.then(|| self.new_session(&user.id, remember, &client)).transpose()?;
        let (session, token) = session.unzip();
        let (user_id, now) = (user.id.clone(), self.clock.now());
        let changed = self
            .change_accounts_by(CheckBasis::of(&identity), move |connection| {
                Box::pin(async move {
                    // A sign-in with the old password that runs meanwhile ends before this change, or fails.
                    if connection.held_user(&user_id).await?.is_none()
                        || !connection.change_password(&user_id, &old_hash, &new_hash, now).await?
                    {
                        return Ok(false);
                    }
                    // The password from the environment is no longer valid, so there is nothing left to claim.
                    connection.end_claim(&user_id).await?;
                    connection.sign_in_succeeded(&attempt.account, &attempt.network, now).await?;
                    if let Some(session) = session {
                        connection.delete_sessions_of(&user_id, None).await?;
                        connection.insert_session(session).await?;
                    }
                    Ok(true)
                })
            })
            .await?;
        if !changed {
            return Err(AuthProblem::InvalidPassword);
        }
        let user = UserAnswer::from(&user);
        let signed_in = token.map(|token| SignedIn { token, user: user.clone(), remember });
        Ok((user, signed_in))
    }

    /// Changes the name and the image of the caller's user.
    pub async fn update_profile(&self, credentials: &Credentials, changes: ProfileChanges) -> Result<(), AuthProblem> {
        let identity = self.session(credentials).await?;
        if changes.name.is_none() && changes.image.is_none() {
            return Err(AuthProblem::NothingToChange);
        }
        if let Some(name) = &changes.name {
            check_name(name)?;
        }
        check_image(changes.image.as_ref().and_then(Option::as_deref))?;
        let (id, now) = (identity.user.id.clone(), self.clock.now());
        let changed = self
            .change_accounts_by(CheckBasis::of(&identity), move |connection| {
                Box::pin(async move {
                    let Some(mut user) = connection.held_user(&id).await? else { return Ok(false) };
                    user.name = changes.name.unwrap_or(user.name);
                    user.image = changes.image.unwrap_or(user.image);
                    user.updated_at = now;
                    Ok(connection.update_user(&user).await?)
                })
            })
            .await?;
        if changed { Ok(()) } else { Err(AuthProblem::NoSession) }
    }
}
