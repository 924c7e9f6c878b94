//! Sends the server's own mail.

use std::time::Duration;

use blockbase_app::App;
use blockbase_outbound::{Mail, MailFailure, Mailer};
use blockbase_store::ClaimedEvent;

use crate::handler::Failed;

/// Sends the mail of an event. Each attempt makes a new link.
pub(crate) async fn send(app: &App, mailer: Option<&Mailer>, event: &ClaimedEvent, timeout: Duration) -> Result<(), Failed> {
    let internal = |problem: String| Failed::new("internal", problem);
    let mailer = mailer.ok_or_else(|| internal("this server sends no mail (SVC_SMTP_URL)".to_owned()))?;
    let mail = app.mail_of_event(event).await.map_err(|error| internal(error.message))?;
    let Some(mail) = mail else { return Ok(()) };
    let message = Mail { id: mail.message_id, to: mail.to, subject: mail.subject, text: mail.text, html: mail.html };
    mailer.send(&message, timeout).await.map_err(|failure| {
        let (kind, answered) = match failure {
            MailFailure::Unreachable(_) => ("unreachable", false),
            MailFailure::Timeout => ("timeout", false),
            MailFailure::Refused { .. } => ("refused", true),
            MailFailure::Unsendable(_) => ("unsendable", true),
        };
        let problem = without(&without(&failure.to_string(), &mail.token), &message.to);
        Failed { answered, is_final: failure.is_final(), ..Failed::new(kind, problem) }
    })?;
    app.mail_was_sent(&mail.id).await.map_err(|error| internal(error.message))
}

/// Removes a part from a text, in upper or lower case. A mail server may quote the address or the mail that it refuses.
fn without(text: &str, part: &str) -> String {
    let (lower, part) = (text.to_ascii_lowercase(), part.to_ascii_lowercase());
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(found) = lower[from..].find(&part) {
        kept.push_str(&text[from..from + found]);
        kept.push('…');
        from += found + part.len();
    }
    kept.push_str(&text[from..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn a_failure_names_neither_the_address_nor_the_token() {
        assert_eq!(without("550 <Ann@Example.com> unknown: é ann@example.com", "ann@example.com"), "550 <…> unknown: é …");
        assert_eq!(without("451 later", "ann@example.com"), "451 later");
    }
}
