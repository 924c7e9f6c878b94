//! Mail by SMTP.
//!
//! The operator names the mail server, so it may be in a private network. A connection without TLS is only allowed to this
//! machine.

use std::error::Error as _;
use std::time::Duration;

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use url::{Host, Url};

/// The port for SMTP within TLS.
const SMTPS_PORT: u16 = 465;
/// The port for SMTP that begins without TLS.
const SUBMISSION_PORT: u16 = 587;
/// The longest wait for a connection. Without this limit, a mail server that does not respond would occupy a place for the time
/// limit of a complete mail.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// The maximum number of characters of a server's answer that are shown.
const ANSWER_CHARS_MAX: usize = 300;

/// The destination of mails.
pub struct Mailer {
    from: Mailbox,
    domain: String,
    way: Way,
}

enum Way {
    Smtp(Box<AsyncSmtpTransport<Tokio1Executor>>),
    /// The log, which is useful for development.
    Log,
}

/// A mail as it is sent.
#[derive(Clone)]
pub struct Mail {
    /// The id that is used in the mail's `Message-ID`.
    pub id: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    pub html: Option<String>,
}

/// The reason why a mail was not sent.
#[derive(Debug, thiserror::Error)]
pub enum MailFailure {
    #[error("the mail server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the mail server did not answer in time")]
    Timeout,
    /// The mail server answered, but did not accept the mail.
    #[error("the mail server refused the mail: {answer}")]
    Refused { answer: String, is_final: bool },
    #[error("the mail cannot be written: {0}")]
    Unsendable(String),
}

impl MailFailure {
    /// Whether another attempt would also fail.
    pub fn is_final(&self) -> bool {
        match self {
            MailFailure::Unreachable(_) | MailFailure::Timeout => false,
            MailFailure::Refused { is_final, .. } => *is_final,
            MailFailure::Unsendable(_) => true,
        }
    }

    fn of_smtp(error: &smtp::Error) -> MailFailure {
        if error.is_timeout() {
            return MailFailure::Timeout;
        }
        let answer: String = full(error).chars().take(ANSWER_CHARS_MAX).collect();
        match error.status() {
            Some(code) => {
                let text = error.source().map(ToString::to_string).unwrap_or_default();
                MailFailure::Refused { answer, is_final: is_final(code.into(), &text) }
            }
            // The server lacks something that is needed, such as TLS or a way to sign in.
            None if error.is_client() => MailFailure::Refused { answer, is_final: false },
            None => MailFailure::Unreachable(answer),
        }
    }
}

/// Whether an answer of a mail server means that it will never accept this mail, because of the receiver's mailbox or of the
/// content. It may accept the mail later if it is busy now, or if the operator can remove the cause: a wrong password, a sender
/// or a network that is not allowed, a quota. If the answer is not clear, the result is `false`, because it is worse to lose a
/// mail than to try it in vain.
fn is_final(code: u16, text: &str) -> bool {
    if !(500..600).contains(&code) {
        return false;
    }
    match enhanced_status(text) {
        // Subject 1: a mailbox that does not exist, without the statuses that are about the sender. Subject 2: the state of a
        // mailbox. Subject 6: the content.
        Some((1, detail)) => matches!(detail, 1..=4 | 6 | 10),
        Some((subject, _)) => matches!(subject, 2 | 6),
        None if matches!(code, 550 | 552) => {
            let text = text.to_ascii_lowercase();
            ["no such", "unknown", "mailbox", "does not exist", "user not"].iter().any(|words| text.contains(words))
        }
        None => matches!(code, 551 | 556),
    }
}

/// The subject and the detail of the enhanced status with which a permanent refusal may begin: RFC 3463.
fn enhanced_status(text: &str) -> Option<(u16, u16)> {
    let (subject, detail) = text.split_whitespace().next()?.strip_prefix("5.")?.split_once('.')?;
    Some((subject.parse().ok()?, detail.parse().ok()?))
}

impl Mailer {
    /// A mailer that sends through `url`: `smtps://user:password@host:465`, or `smtp://…?tls=required` for a connection that
    /// begins without TLS and then switches to it. `smtp://` without `tls` is only allowed for a loopback address.
    ///
    /// # Errors
    /// The fault of the URL or of the sender. The text never shows the URL, because it contains a password.
    pub fn smtp(url: &str, from: &str) -> Result<Mailer, String> {
        const FORM: &str = "an address like smtps://user:password@mail.example.com or smtp://mail.example.com?tls=required";
        let url = Url::parse(url).map_err(|_| format!("needs {FORM}."))?;
        let host = url.host().ok_or_else(|| format!("needs {FORM}."))?;
        let (name, is_loopback) = match &host {
            // URLs with this scheme are not normalized, so the host may be an address even if the parser calls it a name.
            Host::Domain(name) => match name.parse::<std::net::IpAddr>() {
                Ok(address) => (address.to_string(), address.is_loopback()),
                Err(_) => (name.to_ascii_lowercase(), name.eq_ignore_ascii_case("localhost")),
            },
            Host::Ipv4(address) => (address.to_string(), address.is_loopback()),
            Host::Ipv6(address) => (address.to_string(), address.is_loopback()),
        };
        let mut is_required = false;
        for (parameter, value) in url.query_pairs() {
            match (&*parameter, &*value) {
                ("tls", "required") => is_required = true,
                _ => return Err("takes the parameter tls=required and no other.".to_owned()),
            }
        }
        if !matches!(url.path(), "" | "/") || url.fragment().is_some() {
            return Err(format!("needs {FORM}, without a path."));
        }
        let (tls, port) = match url.scheme() {
            "smtps" => (Tls::Wrapper(tls(&name)?), SMTPS_PORT),
            "smtp" if is_required => (Tls::Required(tls(&name)?), SUBMISSION_PORT),
            "smtp" if is_loopback => (Tls::None, SUBMISSION_PORT),
            "smtp" => {
                return Err("needs smtps:// or ?tls=required: without TLS, mail goes to this machine alone.".to_owned());
            }
            _ => return Err(format!("needs {FORM}.")),
        };
        let mailer = Mailer::log(from)?;
        let mut transport = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&name)
            .port(url.port().unwrap_or(port))
            .tls(tls)
            .timeout(Some(CONNECT_MAX))
            .hello_name(ClientId::Domain(mailer.domain.clone()));
        if !url.username().is_empty() {
            let decoded = |text: &str| percent_decoded(text).ok_or("has a user or password that is not valid UTF-8.".to_owned());
            let password = decoded(url.password().unwrap_or_default())?;
            transport = transport.credentials(Credentials::new(decoded(url.username())?, password));
        }
        Ok(Mailer { way: Way::Smtp(Box::new(transport.build())), ..mailer })
    }

    /// A mailer that writes each mail to the log.
    ///
    /// # Errors
    /// The fault of the sender.
    pub fn log(from: &str) -> Result<Mailer, String> {
        let from: Mailbox = from.parse().map_err(|_| "needs an address like Example <mail@example.com>.".to_owned())?;
        Ok(Mailer { domain: from.email.domain().to_owned(), from, way: Way::Log })
    }

    /// Sends a mail within `timeout`.
    ///
    /// # Errors
    /// The reason for the failure. If the time ran out, the server may have accepted the mail anyway.
    pub async fn send(&self, mail: &Mail, timeout: Duration) -> Result<(), MailFailure> {
        match &self.way {
            Way::Log => {
                tracing::info!(mail.to = mail.to, mail.subject = mail.subject, "a mail (SVC_MAIL_LOG):\n{}", mail.text);
                Ok(())
            }
            Way::Smtp(transport) => {
                let message = self.message(mail).map_err(MailFailure::Unsendable)?;
                match tokio::time::timeout(timeout, transport.send(message)).await {
                    Err(_) => Err(MailFailure::Timeout),
                    Ok(Ok(_)) => Ok(()),
                    Ok(Err(error)) => Err(MailFailure::of_smtp(&error)),
                }
            }
        }
    }

    fn message(&self, mail: &Mail) -> Result<Message, String> {
        let to: lettre::Address = mail.to.parse().map_err(|_| "the address of the receiver is not valid".to_owned())?;
        let one_line: String = mail.subject.chars().filter(|character| !character.is_control()).collect();
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        let builder = Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(one_line)
            .message_id(Some(format!("<{}@{}>", mail.id, self.domain)))
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()));
        let message = match &mail.html {
            Some(html) => builder.multipart(MultiPart::alternative_plain_html(mail.text.clone(), html.clone())),
            None => builder.singlepart(lettre::message::SinglePart::plain(mail.text.clone())),
        };
        message.map_err(|error| error.to_string())
    }
}

/// The error with its causes.
fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    text
}

/// TLS with the machine's trusted certificates.
fn tls(host: &str) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::None);
    for certificate in crate::tls::machine_certificates() {
        if let Ok(certificate) = Certificate::from_der(certificate.to_vec()) {
            builder = builder.add_root_certificate(certificate);
        }
    }
    builder.build_rustls().map_err(|error| format!("TLS cannot be set up: {error}"))
}

/// Decodes percent-encoded text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = after;
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: &str = "Example <mail@example.com>";

    #[test]
    fn an_address_of_a_mail_server_says_how_it_is_reached() {
        for good in [
            "smtps://mail.example.com",
            "smtps://user:p%40ss@mail.example.com:4650",
            "smtp://user:pass@mail.example.com?tls=required",
            "smtp://127.0.0.1:2525",
            "smtp://localhost",
            "smtp://[::1]:25",
        ] {
            assert!(Mailer::smtp(good, FROM).is_ok(), "{good}");
        }
        for bad in [
            "mail.example.com",
            "http://mail.example.com",
            "smtp://mail.example.com",
            "smtp://user:hunter2@10.0.0.1",
            "smtp://mail.example.com?tls=opportunistic",
            "smtp://127.0.0.1?tls=none",
            "smtps://mail.example.com/path",
            "smtps://user:hunter2%FF@mail.example.com",
            "smtps://",
        ] {
            let Err(why) = Mailer::smtp(bad, FROM) else { panic!("{bad}") };
            assert!(!why.contains("hunter2") && !why.contains("example.com/"), "{why}");
        }
        assert!(Mailer::smtp("smtps://mail.example.com", "nobody").is_err());
    }

    #[test]
    fn a_refusal_is_final_if_the_receiver_or_the_content_is_its_reason() {
        for (code, text) in [
            (550, "5.1.1 <ann@example.com>: Recipient address rejected: User unknown"),
            (550, "No such user here"),
            (550, "Unknown user"),
            (552, "Mailbox is full"),
            (551, "User not local"),
            (552, "5.2.2 Mailbox full"),
            (554, "5.1.10 Recipient address has a null MX"),
            (554, "5.6.0 The content was not accepted"),
            (556, "Domain does not accept mail"),
        ] {
            assert!(is_final(code, text), "{code} {text}");
        }
        for (code, text) in [
            (421, "4.3.2 Service shutting down"),
            (450, "4.2.1 Greylisted"),
            (451, "5.1.1 a contradiction"),
            (500, "Syntax error"),
            (530, "5.7.0 Authentication required"),
            (530, "Must issue a STARTTLS command first"),
            (535, "5.7.8 Authentication credentials invalid"),
            (535, "Incorrect authentication data"),
            (550, "5.1.8 Sender address rejected: Domain not found"),
            (550, "5.4.5 Daily user sending limit exceeded"),
            (550, "5.7.1 Relaying denied"),
            (550, ""),
            (550, "relay not permitted"),
            (550, "authentication required"),
            (550, "Sender verify failed"),
            (550, "Administrative prohibition"),
            (552, "Message size exceeds the limit of your account"),
            (553, "The sender is not allowed"),
            (554, "No SMTP service here"),
            (554, "5.7.1 <ann@example.com>: Relay access denied"),
        ] {
            assert!(!is_final(code, text), "{code} {text}");
        }
        assert_eq!(enhanced_status("5.1.10 text"), Some((1, 10)));
        for none in ["", "5", "5.1", "5.1.x", "4.1.1", "15.1.1", "5.1.1.1", "the 5.1.1"] {
            assert_eq!(enhanced_status(none), None, "{none}");
        }
    }

    #[test]
    fn no_text_adds_a_header() {
        let mailer = Mailer::log(FROM).expect("a sender");
        let mail = Mail {
            id: "1".to_owned(),
            to: "ann@example.com".to_owned(),
            subject: "Hello\r\nBcc: eve@example.com".to_owned(),
            text: "Grüße\r\n.\r\nRCPT TO:<eve@example.com>".to_owned(),
            html: None,
        };
        let text = String::from_utf8(mailer.message(&mail).expect("a message").formatted()).expect("text");
        assert!(!text.contains("\nBcc"), "{text}");
        assert!(
            text.contains("Message-ID: <1@example.com>\r\n") && text.contains("Auto-Submitted: auto-generated\r\n"),
            "{text}"
        );
        assert_eq!(text.matches("To: ").count(), 1, "{text}");
        let wrong = Mail { to: "ann@example.com\r\nBcc: eve@example.com".to_owned(), ..mail };
        assert!(mailer.message(&wrong).is_err());
    }
}
