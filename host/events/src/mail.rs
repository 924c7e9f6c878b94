//! Sending the server's own mail.

use std::time::Duration;

use blockbase_app::App;
use blockbase_outbound::{Mail, MailFailure, Mailer};
use blockbase_store::ClaimedEvent;

use crate::group::Failed;

/// Sends the mail of an event. An attempt makes a new link, and the link of an earlier attempt ends.
pub(crate) async fn send(app: &App, mailer: Option<&Mailer>, event: &ClaimedEvent, timeout: Duration) -> Result<(), Failed> {
    let internal = |problem: String| Failed { kind: "internal", problem, answered: true };
    let mailer = mailer.ok_or_else(|| internal("this server sends no mail (SVC_SMTP_URL)".to_owned()))?;
    let mail = app.mail_of_event(event).await.map_err(|error| internal(error.message))?;
    let Some(mail) = mail else { return Ok(()) };
    let message = Mail { id: mail.id.clone(), to: mail.to, subject: mail.subject, text: mail.text, html: mail.html };
    mailer.send(&message, timeout).await.map_err(|failure| Failed {
        kind: match failure {
            MailFailure::Unreachable(_) => "unreachable",
            MailFailure::Timeout => "timeout",
            MailFailure::Refused(_) => "refused",
            MailFailure::Unsendable(_) => "unsendable",
        },
        // A mail server may quote the mail that it refuses.
        problem: failure.to_string().replace(&mail.token, "…"),
        answered: matches!(failure, MailFailure::Refused(_) | MailFailure::Unsendable(_)),
    })?;
    app.mail_was_sent(&mail.id).await.map_err(|error| internal(error.message))
}
