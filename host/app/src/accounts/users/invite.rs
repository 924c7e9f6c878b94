//! Invitations: somebody makes an account for another person, who then sets the password with a link.

use blockbase_query::Action;
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{Connection, MailKind, TokenKind, UserRow};
use schemars::JsonSchema;
use serde::Serialize;

use super::{ManagedUserAnswer, ROLES_OF_USER_MAX, SeenUserAnswer, checked_name, give};
use crate::App;
use crate::accounts::mail::{Asker, NewMail, first_language};
use crate::accounts::password_links::{PasswordLinkAnswer, is_admin, setup_required};
use crate::accounts::types::normal_email;
use crate::base::answer::Timestamp;
use crate::base::topic::{NewUserMembers, Topic};
use crate::caller::Caller;
use crate::outbox::audit::{Act, AuditAction};

/// The parameters of an invitation.
#[derive(Clone, Debug)]
pub struct NewUser {
    pub email: String,
    /// The name of the user. It may be empty, and is empty if it is left out.
    pub name: Option<String>,
    /// The roles that the user gets, each by its id or name.
    pub roles: Vec<String>,
    /// Whether this may be the first account of the server. Only the operator of the server makes the first account in this way,
    /// and it has to be an admin.
    pub may_be_first: bool,
    /// Whether the answer has the link even if the server sends mail. The operator then hands the link over.
    pub wants_link: bool,
    /// The languages of the request, as `Accept-Language` lists them. The mail is written in the first one.
    pub languages: Option<String>,
}

/// An account that was made for somebody, and the link to its first password.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, deny_unknown_fields)]
pub struct InvitationAnswer {
    data: SeenUserAnswer,
    /// The page where the user sets their password. Only this response shows it. If the link is mailed, the response does not
    /// show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "uri"))]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    link_expires_at: Option<Timestamp>,
}

fn invalid(field: &str, message: String) -> Error {
    Error::new(Code::InvalidValue, message).with_field(field)
}

/// Gives a new user the roles of an invitation.
///
/// # Errors
/// The errors of [`give`], with the role's index.
async fn give_all(app: &App, connection: &mut Connection, caller: &Caller, user_id: &str, roles: &[String]) -> Result<()> {
    for (index, role) in roles.iter().enumerate() {
        let given = give(app, connection, caller, user_id, role).await;
        given.map_err(|error| match error.code {
            Code::ForeignKeyViolation => invalid("roles", format!("`roles` at index {index}: there is no role `{role}`.")),
            Code::Forbidden | Code::Conflict => error.within(format_args!("`roles` at index {index}")).with_field("roles"),
            _ => error,
        })?;
    }
    Ok(())
}

/// The mail with the link, in the first of `languages`.
fn invitation<'u>(user: &'u UserRow, caller: &Caller, languages: Option<&str>) -> NewMail<'u> {
    NewMail {
        kind: MailKind::Invite,
        address: &user.email,
        user_id: Some(&user.id),
        page: None,
        language: languages.and_then(first_language),
        maker: caller.maker(),
        asker: Asker::default(),
    }
}

impl App {
    /// Makes an account that has no password until somebody sets one with the link. It works while sign-up is closed. Returns
    /// what the caller may read of the new user, or the `id` and what they sent.
    ///
    /// # Errors
    /// `unique_violation` if the address is taken; `forbidden` if a role gives a right that the caller lacks; `setup_required`
    /// while there is no admin.
    pub async fn invite_user(&self, caller: &Caller, new: NewUser) -> Result<InvitationAnswer> {
        let sent: &[&str] = if new.name.is_some() { &["email", "name"] } else { &["email"] };
        let (made, link) = self.write_invitation(caller, new).await?;
        let data = self.seen_after(caller, made, sent).await?;
        let (link, link_expires_at) = link.map(|made| (made.link, made.expires_at)).unzip();
        Ok(InvitationAnswer { data, link, link_expires_at })
    }

    /// Returns the new user, and the link if it is not mailed.
    async fn write_invitation(&self, caller: &Caller, new: NewUser) -> Result<(ManagedUserAnswer, Option<PasswordLinkAnswer>)> {
        caller.require(Resource::Users, Action::Create)?;
        let email = normal_email(&new.email).ok_or_else(|| invalid("email", "`email` is not an address.".to_owned()))?;
        let name = checked_name(new.name.unwrap_or_default())?;
        if usize::try_from(ROLES_OF_USER_MAX).is_ok_and(|most| new.roles.len() > most) {
            return Err(invalid("roles", format!("A user has {ROLES_OF_USER_MAX} roles at most.")));
        }
        self.store.check_room()?;
        let now = self.clock.now();
        let user = UserRow {
            id: self.clock.id(now).to_string(),
            name,
            email,
            email_verified: false,
            image: None,
            is_anonymous: false,
            banned: false,
            created_at: now,
            updated_at: now,
        };
        let (announcer, auditor) = (self.announcer(caller), self.auditor(caller));
        let (app, caller) = (self.itself()?, caller.clone());
        let signup_role = self.settings.signup_role.clone();
        self.change_accounts_by(caller.basis.clone(), move |connection| {
            Box::pin(async move {
                connection.lock_accounts().await?;
                // Without this check, an invitation could make the first admin, without the setup token.
                let is_first = !connection.has_credentialed_user().await?;
                if is_first && !new.may_be_first {
                    return Err(setup_required());
                }
                let mail = invitation(&user, &caller, new.languages.as_deref());
                let is_mailed = app.sends_mail() && !new.wants_link && app.count_mail(connection, &mail, now).await?;
                if !connection.insert_user(&user, None).await? {
                    let message = format!("Another account has the address `{}`.", user.email);
                    return Err(Error::new(Code::UniqueViolation, message).with_field("email"));
                }
                if let Some(role) = signup_role {
                    // The configured role may not exist yet. The server logged a warning about this at boot.
                    connection.give_role_named(&user.id, &role).await?;
                }
                give_all(&app, connection, &caller, &user.id, &new.roles).await?;
                if is_first && !is_admin(connection, &user.id).await? {
                    return Err(Error::new(
                        Code::SetupRequired,
                        "Nobody has signed up yet. The first account needs the role `admin`.",
                    ));
                }
                let members = NewUserMembers { user_id: &user.id, is_anonymous: false };
                announcer.emit(connection, Topic::UserCreated(members)).await?;
                let made = match is_mailed {
                    true => {
                        app.store_mail(connection, &announcer, mail, now).await?;
                        None
                    }
                    false => {
                        let kind = TokenKind::Invitation;
                        Some(app.new_password_link(connection, &user.id, caller.maker(), kind, now).await?)
                    }
                };
                let data = ManagedUserAnswer::of(&user, connection.roles_of(&user.id).await?);
                auditor.record(connection, Act::on_user(AuditAction::Invite, &user.id).after(&data)).await?;
                Ok((data, made))
            })
        })
        .await
    }
}
