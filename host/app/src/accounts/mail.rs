//! Mails with links: requests for such a mail, and the effect of its link.
//!
//! A request for a mail does the same work for every address, whether or not an account has it: it counts the mail, stores it,
//! and writes an event. Everything that depends on the account happens later, when the event is delivered: the account is looked
//! up, the token of the link is made, and the text is written. So neither the answer nor the time it takes reveals whether an
//! account exists. A token that was not sent is stored nowhere. The event, the ledger and the log show no token.

use blockbase_auth::{LinkToken, hash_token};
use blockbase_schema::time::HOUR_MS;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{
    AccountTokenRow, ClaimedEvent, Connection, MailKind, MailRow, Maker, ReadCost, Service, TokenKind, UserRow,
};
use serde::Deserialize;

use super::password_links::{INVITATION_MS, LINK_MS, is_first_admin};
use super::types::{normal_email, too_many};
use crate::App;
use crate::base::topic::{MailMembers, Topic};
use crate::caller::Caller;
use crate::caller::client::{AuthProblem, Client};
use crate::delivery::retries::MAIL_KEPT_MS;
use crate::outbox::platform_event::Announcer;
use crate::state::mail_texts::{MailTexts, MailValues};

/// The maximum number of mails to one address that may be requested within an hour.
const MAILS_OF_ADDRESS_MAX: i64 = 5;
/// The maximum number of mails that one account may request within an hour, to any addresses.
const MAILS_OF_ACCOUNT_MAX: i64 = 20;
const LIMIT_MS: i64 = HOUR_MS;
/// The maximum number of mailed links of one kind that an account has at the same time.
const LINKS_MAX: i64 = 10;
/// The number of characters of a token's hash that distinguish two copies of a mail.
const COPY_CHARS: usize = 12;
/// The maximum length of a language's name, in characters.
const LANGUAGE_CHARS_MAX: usize = 35;
/// The maximum length of the address of a page where a link ends, in characters.
pub const PAGE_CHARS_MAX: usize = 2_000;

/// A mail to be sent.
#[derive(Clone, Debug)]
pub struct OutgoingMail {
    /// The id of the mail, for [`App::mail_was_sent`].
    pub id: String,
    /// The message id of this copy. A further attempt has another link, so it must not look like the same mail.
    pub message_id: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: Option<String>,
    /// The token in the text. Reports of a failure must leave it out.
    pub token: String,
}

/// A mail that somebody or the server requests.
pub(super) struct NewMail<'a> {
    pub(super) kind: MailKind,
    pub(super) address: &'a str,
    pub(super) user_id: Option<&'a str>,
    pub(super) page: Option<String>,
    pub(super) language: Option<String>,
    pub(super) maker: Maker,
    /// Who asks for the mail. Nobody, if the server sends it by itself, or if somebody who manages users requests it.
    pub(super) asker: Asker,
}

/// Who asks for a mail. The limit on their requests is the same whether or not the addresses have accounts, so it does not reveal
/// which accounts exist.
#[derive(Clone, Debug, Default)]
pub(super) struct Asker {
    /// The user of the session, or the user whose password the request showed.
    user_id: Option<String>,
    network: Option<String>,
}

impl Asker {
    /// The asker is the client of a request that has no session, or that needs none.
    pub(super) fn client(client: &Client) -> Asker {
        Asker { user_id: None, network: client.network() }
    }

    /// The asker is the client of a request, and the account in whose name it was made.
    pub(super) fn account(client: &Client, user_id: &str) -> Asker {
        Asker { user_id: Some(user_id.to_owned()), ..Asker::client(client) }
    }
}

/// A request for a mail, as a surface passes it on.
#[derive(Clone, Debug, Default)]
pub struct MailRequest {
    pub email: String,
    /// The page where the link ends. The surface has checked that it is trusted.
    pub page: Option<String>,
    /// The languages of the request, as `Accept-Language` lists them.
    pub languages: Option<String>,
}

/// A [`MailRequest`] after its check.
pub(super) struct CheckedRequest {
    /// The address in its normal form.
    pub(super) address: String,
    pub(super) page: Option<String>,
    pub(super) language: Option<String>,
}

/// The first language of an `Accept-Language` header.
pub(super) fn first_language(languages: &str) -> Option<String> {
    let first = languages.split([',', ';']).next().unwrap_or_default().trim();
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (!first.is_empty() && first.len() <= LANGUAGE_CHARS_MAX && is_name(first)).then(|| first.to_owned())
}

/// The payload of the event of a mail.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    mail_id: String,
}

fn mail_is_off() -> AuthProblem {
    Error::new(Code::NotFound, "This server sends no mail (SVC_SMTP_URL).").into()
}

impl MailRequest {
    pub(super) fn checked(self) -> Result<CheckedRequest, AuthProblem> {
        let address =
            normal_email(&self.email).ok_or_else(|| AuthProblem::Validation("`email` is not an address.".to_owned()))?;
        if self.page.as_ref().is_some_and(|page| page.chars().count() > PAGE_CHARS_MAX) {
            return Err(AuthProblem::Validation(format!("The page's address has {PAGE_CHARS_MAX} characters at most.")));
        }
        Ok(CheckedRequest { address, page: self.page, language: self.languages.as_deref().and_then(first_language) })
    }
}

impl App {
    /// The texts of mail.
    ///
    /// # Errors
    /// `not_found` if the server sends no mail.
    pub(super) fn mail_texts(&self) -> Result<&MailTexts, AuthProblem> {
        self.settings.mail.as_deref().ok_or_else(mail_is_off)
    }

    /// Whether the server sends mail.
    pub fn sends_mail(&self) -> bool {
        self.settings.mail.is_some()
    }

    /// Counts a mail and stores it. Returns whether the address may still get it.
    ///
    /// # Errors
    /// `rate_limited` if the asker has asked for too many.
    pub(super) async fn ask_for_mail(
        &self,
        connection: &mut Connection,
        announcer: &Announcer,
        mail: NewMail<'_>,
        now: i64,
    ) -> Result<bool> {
        let may_be_sent = self.count_mail(connection, &mail, now).await?;
        if may_be_sent {
            self.store_mail(connection, announcer, mail, now).await?;
        }
        Ok(may_be_sent)
    }

    /// Counts a mail for its asker and its address. Returns whether the address may still get it.
    ///
    /// The counts stay locked until the transaction ends. A transaction that also makes an account counts the mail first, then
    /// makes the account, and then locks its roles. If it locks the accounts, it does that before. If some of these transactions
    /// had another order, two with one address or one role could wait for each other.
    ///
    /// # Errors
    /// `rate_limited` if the asker has asked for too many.
    pub(super) async fn count_mail(&self, connection: &mut Connection, mail: &NewMail<'_>, now: i64) -> Result<bool> {
        let Asker { user_id, network } = &mail.asker;
        // These names cannot be equal to an address.
        let of_account = user_id.as_ref().map(|id| (format!("mail of the account {id}"), MAILS_OF_ACCOUNT_MAX));
        let of_network = network.as_ref().map(|name| (format!("mail of the network {name}"), self.settings.mails_of_network_max));
        for (counted, most) in [of_account, of_network].into_iter().flatten() {
            let (asked, since) = connection.count_in_window(&hash_token(&counted), LIMIT_MS, now).await?;
            if asked > most {
                tracing::warn!(mail.kind = mail.kind.as_str(), "too many mails: {counted}");
                return Err(too_many("Too many mails were asked for", since + LIMIT_MS - now));
            }
        }
        // A notice does not count, so nobody can prevent it by using up the limit.
        let asked = match mail.kind {
            MailKind::EmailChanged => 0,
            _ => connection.count_in_window(&hash_token(mail.address), LIMIT_MS, now).await?.0,
        };
        if asked > MAILS_OF_ADDRESS_MAX {
            tracing::warn!(
                mail.kind = mail.kind.as_str(),
                "an address has had as many mails as it may have in an hour; another one is not sent"
            );
            return Ok(false);
        }
        Ok(true)
    }

    /// Counts the mail of a sign-up. If the asker has asked for too many mails, the sign-up goes on without one, and the count of
    /// the address stays what it was. It is only locked, because every sign-up with the address has to wait there.
    pub(super) async fn count_mail_of_sign_up(&self, connection: &mut Connection, mail: &NewMail<'_>, now: i64) -> Result<bool> {
        match self.count_mail(connection, mail, now).await {
            Err(error) if error.code == Code::RateLimited => {
                let counted = hash_token(mail.address);
                connection.count_in_window(&counted, LIMIT_MS, now).await?;
                connection.uncount(&counted).await?;
                Ok(false)
            }
            counted => counted,
        }
    }

    /// Stores a mail that is counted, and writes the event that leads to it.
    pub(super) async fn store_mail(
        &self,
        connection: &mut Connection,
        announcer: &Announcer,
        mail: NewMail<'_>,
        now: i64,
    ) -> Result<()> {
        let id = self.clock.id(now).to_string();
        let row = MailRow {
            id: id.clone(),
            kind: mail.kind,
            address: mail.address.to_owned(),
            user_id: mail.user_id.map(str::to_owned),
            language: mail.language,
            page: mail.page,
            maker: mail.maker,
            created_at: now,
        };
        connection.insert_mail(row).await?;
        let members = MailMembers { mail_id: &id, kind: mail.kind.as_str() };
        announcer.emit(connection, Topic::MailRequested(members)).await
    }

    /// Asks for a link to set a new password. The answer is the same whether or not an account has the address.
    ///
    /// # Errors
    /// `rate_limited` if the client's network asks for too much mail.
    pub async fn request_password_reset(&self, client: &Client, request: MailRequest) -> Result<(), AuthProblem> {
        self.mail_texts()?;
        self.ask_alone(MailKind::Reset, None, request.checked()?, Asker::client(client)).await
    }

    /// Asks for a link that proves an address. With a session, the address has to be that of the session's user.
    ///
    /// # Errors
    /// [`AuthProblem::EmailMismatch`] and [`AuthProblem::EmailAlreadyVerified`] for a session; `rate_limited`.
    pub async fn request_verification(&self, client: &Client, request: MailRequest) -> Result<(), AuthProblem> {
        self.mail_texts()?;
        let request = request.checked()?;
        let identity = self.identify(&client.credentials).await?.filter(|identity| identity.session().is_some());
        if let Some(identity) = &identity {
            if identity.user.email != request.address {
                return Err(AuthProblem::EmailMismatch);
            }
            if identity.user.email_verified {
                return Err(AuthProblem::EmailAlreadyVerified);
            }
        }
        let user_id = identity.map(|identity| identity.user.id.clone());
        let asker = user_id.as_deref().map_or_else(|| Asker::client(client), |id| Asker::account(client, id));
        self.ask_alone(MailKind::Verify, user_id, request, asker).await
    }

    /// Whether a user has to prove their address before they can sign in. The first of the admins need not, so that a wrong mail
    /// server does not lock out everybody. If this admin is deleted, banned or loses the role, the next one is the first.
    pub(super) async fn waits_for_proof(&self, user: &UserRow) -> Result<bool> {
        if !self.settings.require_email_verification || user.email_verified {
            return Ok(false);
        }
        let id = user.id.clone();
        self.store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move { Ok(!is_first_admin(connection, &id).await?) })
            })
            .await
    }

    /// Asks for a link that proves the address of a user who has shown the password.
    pub(super) async fn request_verification_of(
        &self,
        client: &Client,
        user: &UserRow,
        request: MailRequest,
    ) -> Result<(), AuthProblem> {
        let asker = Asker::account(client, &user.id);
        self.ask_alone(MailKind::Verify, Some(user.id.clone()), request.checked()?, asker).await
    }

    /// Asks for a mail in a transaction of its own.
    pub(super) async fn ask_alone(
        &self,
        kind: MailKind,
        user_id: Option<String>,
        request: CheckedRequest,
        asker: Asker,
    ) -> Result<(), AuthProblem> {
        let CheckedRequest { address, page, language } = request;
        let (app, announcer, now) = (self.itself()?, self.announcer(&Caller::nobody()), self.clock.now());
        self.store
            .write(Service, move |connection| {
                Box::pin(async move {
                    let (user_id, maker) = (user_id.as_deref(), Maker::default());
                    let mail = NewMail { kind, address: &address, user_id, page, language, maker, asker };
                    app.ask_for_mail(connection, &announcer, mail, now).await
                })
            })
            .await?;
        Ok(())
    }

    /// The mail that an event leads to, with a new link; `None` if there is nothing to send: no account has the address, it was sent
    /// before, or it is no longer needed.
    ///
    /// # Errors
    /// If the database does not answer, or if the event cannot be read.
    pub async fn mail_of_event(&self, event: &ClaimedEvent) -> Result<Option<OutgoingMail>> {
        let Some(texts) = self.settings.mail.clone() else {
            return Err(Error::internal("the server sends no mail (SVC_SMTP_URL)"));
        };
        let Payload { mail_id } = serde_json::from_str(&event.payload).map_err(Error::internal)?;
        let (app, now) = (self.itself()?, self.clock.now());
        self.store
            .write_in_reserve(Service, move |connection| {
                Box::pin(async move {
                    let Some(mail) = connection.mail(&mail_id).await? else { return Ok(None) };
                    let Some(user) = recipient(connection, &mail).await? else {
                        connection.delete_mail(&mail_id).await?;
                        return Ok(None);
                    };
                    let token = LinkToken::random().map_err(Error::internal)?;
                    let (kind, lives_ms) = link_in(mail.kind);
                    if let Some(kind) = kind {
                        let row = AccountTokenRow {
                            token_hash: token.hash(),
                            user_id: user.id.clone(),
                            kind,
                            maker: mail.maker.clone(),
                            is_mailed: true,
                            address: (kind == TokenKind::EmailChange).then(|| mail.address.clone()),
                            created_at: now,
                            expires_at: now + lives_ms,
                        };
                        // Earlier links stay valid, because a mail with such a link may be on its way.
                        connection.insert_account_token(row, LINKS_MAX - 1).await?;
                    }
                    let values = MailValues {
                        link: &(app.settings.mail_link)(mail.kind, token.as_str(), mail.page.as_deref()),
                        email: &mail.address,
                        server: &app.settings.public_host,
                        hours: lives_ms / HOUR_MS,
                    };
                    let written = texts.write(mail.kind, mail.language.as_deref(), &values);
                    let copy: String = token.hash().chars().take(COPY_CHARS).collect();
                    Ok(Some(OutgoingMail {
                        message_id: format!("{}.{copy}", mail.id),
                        id: mail.id,
                        to: mail.address,
                        subject: written.subject,
                        text: written.text,
                        html: written.html,
                        token: token.as_str().to_owned(),
                    }))
                })
            })
            .await
    }

    /// Forgets a mail that the mail server has taken.
    pub async fn mail_was_sent(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.store
            .write_in_reserve(Service, move |connection| Box::pin(async move { Ok(connection.delete_mail(&id).await?) }))
            .await
    }

    /// Deletes mails that were not sent in time, and counts that no longer matter.
    pub async fn purge_mails(&self) -> Result<u64> {
        self.purge(|connection, now, most| {
            Box::pin(async move {
                let mails = connection.purge_mails(now - MAIL_KEPT_MS, most).await?;
                Ok(mails + connection.purge_window_counts(now - LIMIT_MS, most).await?)
            })
        })
        .await
    }
}

/// The user who gets a mail, if they still need it. The user is locked. So a change of the address or the password, or another
/// mail of the account, happens before or after this transaction.
async fn recipient(connection: &mut Connection, mail: &MailRow) -> Result<Option<UserRow>> {
    let user = match (&mail.user_id, mail.kind) {
        // These mails go to an address that is not yet the account's address, or no longer.
        (Some(id), MailKind::ChangeEmail | MailKind::EmailChanged) => connection.user(id).await?,
        (Some(id), _) => connection.user(id).await?.filter(|user| user.email == mail.address),
        (None, _) => connection.user_of_email(&mail.address).await?,
    };
    let user = match user {
        Some(user) => connection.held_user(&user.id).await?.filter(|held| held.email == user.email),
        None => None,
    };
    let is_taken = mail.kind == MailKind::ChangeEmail && connection.user_of_email(&mail.address).await?.is_some();
    Ok(user.filter(|user| is_needed(mail, user) && !is_taken))
}

/// The kind of the link in a mail, and how long the link is valid, in milliseconds.
const fn link_in(kind: MailKind) -> (Option<TokenKind>, i64) {
    match kind {
        MailKind::Invite => (Some(TokenKind::Invitation), INVITATION_MS),
        MailKind::Reset => (Some(TokenKind::Reset), LINK_MS),
        MailKind::Verify => (Some(TokenKind::Verification), LINK_MS),
        MailKind::ChangeEmail => (Some(TokenKind::EmailChange), LINK_MS),
        MailKind::DeleteUser => (Some(TokenKind::Deletion), LINK_MS),
        MailKind::EmailChanged => (None, LINK_MS),
    }
}

/// Whether the user still needs a mail.
fn is_needed(mail: &MailRow, user: &UserRow) -> bool {
    let wants = match mail.kind {
        MailKind::Verify => !user.email_verified,
        MailKind::Invite | MailKind::Reset | MailKind::ChangeEmail | MailKind::EmailChanged | MailKind::DeleteUser => true,
    };
    wants && !user.banned && !user.is_anonymous
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_first_language() {
        for (header, language) in [
            ("de-CH,de;q=0.9,en;q=0.8", Some("de-CH")),
            ("fr", Some("fr")),
            (" en ; q=0.1", Some("en")),
            ("*", None),
            ("", None),
            ("../../etc/passwd", None),
            ("a\u{e4}", None),
        ] {
            assert_eq!(first_language(header).as_deref(), language, "{header}");
        }
        assert_eq!(first_language(&"x".repeat(36)), None);
    }
}
