//! The configuration: environment variables, which are read once and checked all together.
//!
//! A malformed value stops the boot with one line that names the variable. A value that may be secret is never shown.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use blockbase_app::{BreachedPasswords, ListedSetting, MailTexts, SettingSource};
use blockbase_outbound::Mailer;
use blockbase_telemetry::Collector;
use ipnet::IpNet;
use url::Url;

use crate::variables::{self, VARIABLES, Variable};

/// All settings. A variable that is not set has its default.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    /// `None` means `http://` and the bound address.
    pub(crate) public_url: Option<Url>,
    pub(crate) data_dir: PathBuf,
    /// `None` means the SQLite file in the data directory.
    pub(crate) database_url: Option<String>,
    pub(crate) database_connections_max: Option<u32>,
    pub(crate) secret: Option<String>,
    /// The token that the first sign-up of a fresh server has to send.
    pub(crate) setup_token: Option<SetupToken>,
    pub(crate) require_auth: bool,
    /// The email address and the password of the first admin, who is created at boot.
    pub(crate) admin: Option<AdminPair>,
    pub(crate) disable_signup: bool,
    pub(crate) anonymous_auth: bool,
    pub(crate) signup_role: Option<String>,
    pub(crate) require_email_verification: bool,
    pub(crate) breached_passwords: Option<Arc<BreachedPasswords>>,
    pub(crate) mails_of_network_max: i64,
    pub(crate) delete_user: bool,
    pub(crate) mail: Option<Mail>,
    pub(crate) events_enabled: bool,
    /// The age in days at which settled events are deleted. 0 keeps all of them.
    pub(crate) events_retention_days: u32,
    pub(crate) audit_retention_days: u32,
    /// `None` if the variable is not set. Then the size depends on the disk.
    pub(crate) events_bytes_max: Option<i64>,
    /// How often the dispatcher looks for work without a hint.
    pub(crate) events_poll: Duration,
    pub(crate) retry_base_ms: i64,
    pub(crate) webhook_timeout: Duration,
    pub(crate) allow_private_network: bool,
    pub(crate) action_timeout: Duration,
    pub(crate) block_memory_bytes: usize,
    pub(crate) blocks_memory_bytes: usize,
    pub(crate) block_resident_bytes: usize,
    pub(crate) body_bytes_max: usize,
    pub(crate) block_bytes_max: usize,
    pub(crate) text_bytes_max: usize,
    pub(crate) answer_bytes_max: usize,
    pub(crate) bulk_records_max: usize,
    pub(crate) streams_of_one_max: usize,
    pub(crate) connections_of_an_address_max: usize,
    pub(crate) requests_per_minute: u32,
    pub(crate) auth_requests_per_minute: u32,
    pub(crate) trusted_proxies: Vec<IpNet>,
    pub(crate) trusted_origins: Vec<String>,
    /// For how long requests are still accepted after the signal to stop.
    pub(crate) drain_delay: Duration,
    pub(crate) telemetry: bool,
    /// The bearer token for `/metrics`.
    pub(crate) metrics_token: Option<String>,
    /// A separate listener for `/metrics`.
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) otlp: Otlp,
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
    /// Whether each request is logged.
    pub(crate) log_requests: bool,
    /// Unknown names that begin with `SVC_`.
    pub(crate) unknown: Vec<String>,
    listed: Vec<ListedSetting>,
}

/// The collectors of telemetry. The exporter reads their addresses and headers from the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Otlp {
    pub(crate) traces: Option<Collector>,
    pub(crate) metrics: Option<Collector>,
    /// Whether a collector is configured while telemetry is off.
    pub(crate) is_ignored: bool,
}

/// How mail is sent, and its texts.
#[derive(Clone)]
pub(crate) struct Mail {
    pub(crate) mailer: Arc<Mailer>,
    pub(crate) texts: Arc<MailTexts>,
}

/// The sender of mail that only the log shows.
const LOGGED_FROM: &str = "Blockbase <blockbase@localhost.localdomain>";

fn mail(source: &Source<impl Fn(&str) -> Option<String>>) -> Result<Option<Mail>, String> {
    let (url, from) = (source.text("SVC_SMTP_URL"), source.text("SVC_MAIL_FROM"));
    let is_logged = source.flag("SVC_MAIL_LOG")?;
    let mailer = match (url, is_logged) {
        (None, false) => {
            for name in ["SVC_MAIL_FROM", "SVC_MAIL_TEMPLATES"] {
                if source.text(name).is_some() {
                    return Err(format!("{name} is set, but the server sends no mail: set SVC_SMTP_URL, or SVC_MAIL_LOG=true."));
                }
            }
            if source.flag("SVC_REQUIRE_EMAIL_VERIFICATION")? {
                return Err("SVC_REQUIRE_EMAIL_VERIFICATION needs mail: set SVC_SMTP_URL, or SVC_MAIL_LOG=true.".to_owned());
            }
            return Ok(None);
        }
        (Some(_), true) => return Err("SVC_MAIL_LOG=true sends no mail: leave it or SVC_SMTP_URL out.".to_owned()),
        (None, true) => Mailer::log(from.as_deref().unwrap_or(LOGGED_FROM)).map_err(|why| format!("SVC_MAIL_FROM {why}"))?,
        (Some(url), false) => {
            let from = from.ok_or("SVC_MAIL_FROM is needed with SVC_SMTP_URL: it is the sender of mail.")?;
            Mailer::log(&from).map_err(|why| format!("SVC_MAIL_FROM {why}"))?;
            Mailer::smtp(&url, &from).map_err(|why| format!("SVC_SMTP_URL {why}"))?
        }
    };
    if !source.flag("SVC_EVENTS_ENABLED")? {
        return Err("Mail goes through the outbox: SVC_EVENTS_ENABLED=false leaves no way to send it.".to_owned());
    }
    let folder = source.text("SVC_MAIL_TEMPLATES").map(PathBuf::from);
    let texts = MailTexts::read(folder.as_deref()).map_err(|why| format!("SVC_MAIL_TEMPLATES: {why}"))?;
    Ok(Some(Mail { mailer: Arc::new(mailer), texts: Arc::new(texts) }))
}

fn breached_passwords(source: &Source<impl Fn(&str) -> Option<String>>) -> Result<Option<Arc<BreachedPasswords>>, String> {
    let folder = source.text("SVC_BREACHED_PASSWORDS").map(PathBuf::from);
    let opened = folder.map(|folder| BreachedPasswords::open(&folder)).transpose();
    Ok(opened.map_err(|why| format!("SVC_BREACHED_PASSWORDS: {why}"))?.map(Arc::new))
}

/// The minimum number of characters of a setup token that is not `auto`. A person who guesses it becomes admin.
const SETUP_TOKEN_CHARS_MIN: usize = 16;

/// The value of `SVC_SETUP_TOKEN`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum SetupToken {
    /// The token is derived from the master secret and the database's id.
    Auto,
    Value(String),
}

/// The email address of the first admin, and the source of the password.
#[derive(Clone)]
pub(crate) struct AdminPair {
    pub(crate) email: String,
    source: PasswordSource,
}

#[derive(Clone)]
enum PasswordSource {
    Value(String),
    File(PathBuf),
}

impl AdminPair {
    /// The variable that names the password.
    pub(crate) fn password_variable(&self) -> &'static str {
        match self.source {
            PasswordSource::Value(_) => "SVC_ADMIN_PASSWORD",
            PasswordSource::File(_) => "SVC_ADMIN_PASSWORD_FILE",
        }
    }

    /// The password. White space around the contents of a file is removed.
    ///
    /// # Errors
    /// A line that names the variable, if the file cannot be read.
    pub(crate) fn password(&self) -> Result<String, String> {
        match &self.source {
            PasswordSource::Value(password) => Ok(password.clone()),
            PasswordSource::File(path) => match std::fs::read_to_string(path) {
                Ok(text) => Ok(text.trim().to_owned()),
                Err(error) => Err(format!("SVC_ADMIN_PASSWORD_FILE: {} cannot be read: {error}.", path.display())),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Pretty,
    Json,
}

/// Variables of the commands. The server does not use them, and does not report them as unknown.
const COMMAND_VARIABLES: [&str; 4] = ["SVC_URL", "SVC_API_KEY", "SVC_REGISTRY_USER", "SVC_REGISTRY_PASSWORD"];

/// The default time limit of one export to a collector, as in OpenTelemetry.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(10);
/// The range of the collector's own variables for the timeout, in milliseconds.
const COLLECTOR_TIMEOUT_MS: (u64, u64) = (1, 600_000);
/// The minimum number of characters of a master secret.
const SECRET_CHARS_MIN: usize = 32;

struct Source<F>(F);

/// The need that messages state for a URL setting. They never show the value, because people write passwords into URLs.
const URL_NEED: &str = "an absolute http or https URL without a user, a query or a fragment";

impl<F: Fn(&str) -> Option<String>> Source<F> {
    /// An empty variable counts as unset.
    fn text(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// The value of the variable. If it is not set, its default in the table of variables.
    fn effective(&self, name: &str) -> Option<String> {
        let default = || variables::named(name).and_then(Variable::default_text).map(str::to_owned);
        self.text(name).or_else(default)
    }

    fn text_or_default(&self, name: &str) -> String {
        self.effective(name).unwrap_or_default()
    }

    fn parsed<T>(&self, name: &str, need: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, String> {
        let text = self.effective(name);
        text.map(|text| parse(text.trim()).ok_or_else(|| format!("{name} needs {need}; it is {text:?}."))).transpose()
    }

    /// Does the same for a variable that has a default.
    fn due<T>(&self, name: &str, need: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        self.parsed(name, need, parse)?.ok_or_else(|| format!("{name} needs {need}."))
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        self.due(name, FLAG_NEED, flag)
    }

    /// A whole number within the range in the table of variables.
    fn number(&self, name: &str) -> Result<u64, String> {
        self.optional_number(name)?.ok_or_else(|| format!("{name} needs a whole number."))
    }

    /// Does the same for a variable without a default.
    fn optional_number(&self, name: &str) -> Result<Option<u64>, String> {
        let range = variables::named(name).and_then(Variable::range);
        self.number_within(name, range.unwrap_or((0, u64::MAX)))
    }

    fn number_within(&self, name: &str, (least, most): (u64, u64)) -> Result<Option<u64>, String> {
        self.parsed(name, &format!("a whole number from {least} to {most}"), |text| {
            text.parse().ok().filter(|number| (least..=most).contains(number))
        })
    }

    /// Does the same as [`Source::parsed`] for a value that may be secret. The message does not show the value.
    fn secretive<T>(&self, name: &str, need: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, String> {
        let text = self.text(name);
        text.map(|text| parse(text.trim()).ok_or_else(|| format!("{name} needs {need}."))).transpose()
    }

    fn list<T>(&self, name: &str, need: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
        let text = self.text(name).unwrap_or_default();
        text.split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
            .enumerate()
            .map(|(place, item)| {
                parse(item).ok_or_else(|| format!("{name} needs {need}, comma-separated; item {} is not valid.", place + 1))
            })
            .collect()
    }
}

const FLAG_NEED: &str = "true or false";

fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn base_url(text: &str) -> Option<Url> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some())
}

/// A URL that is shown to others. It has no credential, and no part that would be lost when a path is added.
fn public_base_url(text: &str) -> Option<Url> {
    let is_plain =
        |url: &Url| url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    base_url(text).filter(is_plain)
}

/// A token that has only characters that are allowed in a header.
fn header_token(text: &str) -> Option<String> {
    text.bytes().all(|byte| byte.is_ascii_graphic()).then(|| text.to_owned())
}

impl Config {
    /// Reads the process's environment.
    pub(crate) fn from_env() -> Result<Config, String> {
        for (name, value) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("SVC_") && value.to_str().is_none() {
                return Err(format!("{name} is not valid UTF-8."));
            }
        }
        let names = std::env::vars().map(|(name, _)| name).filter(|name| name.starts_with("SVC_"));
        Config::read(|name| std::env::var(name).ok(), names)
    }

    fn read(lookup: impl Fn(&str) -> Option<String>, names: impl Iterator<Item = String>) -> Result<Config, String> {
        let source = Source(lookup);
        let listen: SocketAddr = source.due("SVC_LISTEN", "an address like 127.0.0.1:4000", |text| text.parse().ok())?;
        let database_url = source.text("SVC_DATABASE_URL");
        if database_url.as_ref().is_some_and(|url| !url.starts_with("postgres://") && !url.starts_with("postgresql://")) {
            return Err("SVC_DATABASE_URL needs a postgres:// URL; leave it out for SQLite in SVC_DATA_DIR.".to_owned());
        }
        let secret = source.text("SVC_SECRET");
        if secret.as_ref().is_some_and(|secret| secret.chars().count() < SECRET_CHARS_MIN) {
            return Err(format!("SVC_SECRET needs at least {SECRET_CHARS_MIN} characters."));
        }
        if secret.is_none() && database_url.is_some() {
            return Err("SVC_SECRET is needed with Postgres: every instance has to know the same one. `openssl rand -base64 32` makes one.".to_owned());
        }
        let require_auth = source.flag("SVC_REQUIRE_AUTH")?;
        let allow_insecure = source.flag("SVC_ALLOW_INSECURE")?;
        if !require_auth && !listen.ip().is_loopback() && !allow_insecure {
            return Err(format!(
                "SVC_REQUIRE_AUTH=false lets everybody who reaches {listen} do everything. Listen on 127.0.0.1, or set SVC_ALLOW_INSECURE=true if you mean it."
            ));
        }
        let admin = admin_pair(&source)?;
        let telemetry = source.flag("SVC_TELEMETRY")?;
        let megabytes = source.number("SVC_BLOCK_MEMORY_MB")?;
        let all_megabytes = source.number("SVC_BLOCK_MEMORY_TOTAL_MB")?;
        let resident_kilobytes = source.number("SVC_BLOCK_RESIDENT_KB")?;
        let size = |name: &str| source.number(name).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let rate = |name: &str| source.number(name).map(|rate| u32::try_from(rate).unwrap_or(u32::MAX));
        let connections = source.optional_number("SVC_DATABASE_MAX_CONNECTIONS")?;
        let connections = connections.and_then(|connections| u32::try_from(connections).ok());
        Ok(Config {
            listen,
            public_url: source.secretive("SVC_PUBLIC_URL", URL_NEED, public_base_url)?,
            data_dir: source.text_or_default("SVC_DATA_DIR").into(),
            database_url,
            database_connections_max: connections.filter(|connections| *connections > 0),
            secret,
            setup_token: source.secretive(
                "SVC_SETUP_TOKEN",
                "at least 16 visible ASCII characters, or auto",
                |text| match text {
                    "auto" => Some(SetupToken::Auto),
                    _ => header_token(text).filter(|text| text.len() >= SETUP_TOKEN_CHARS_MIN).map(SetupToken::Value),
                },
            )?,
            require_auth,
            disable_signup: source.parsed("SVC_DISABLE_SIGNUP", FLAG_NEED, flag)?.unwrap_or(admin.is_some()),
            admin,
            anonymous_auth: source.flag("SVC_ANONYMOUS_AUTH")?,
            signup_role: source.text("SVC_SIGNUP_ROLE"),
            require_email_verification: source.flag("SVC_REQUIRE_EMAIL_VERIFICATION")?,
            breached_passwords: breached_passwords(&source)?,
            mails_of_network_max: i64::try_from(source.number("SVC_MAILS_PER_NETWORK")?).unwrap_or(i64::MAX),
            delete_user: source.flag("SVC_DELETE_USER")?,
            mail: mail(&source)?,
            events_enabled: source.flag("SVC_EVENTS_ENABLED")?,
            events_retention_days: u32::try_from(source.number("SVC_EVENTS_RETENTION_DAYS")?).unwrap_or(30),
            audit_retention_days: u32::try_from(source.number("SVC_AUDIT_RETENTION_DAYS")?).unwrap_or(400),
            events_bytes_max: source.parsed("SVC_EVENTS_MAX_BYTES", "a whole number of bytes", |text| {
                text.parse().ok().filter(|bytes: &i64| *bytes >= 0 && !text.starts_with('+'))
            })?,
            events_poll: Duration::from_millis(source.number("SVC_EVENTS_POLL_INTERVAL_MS")?),
            retry_base_ms: i64::try_from(source.number("SVC_RETRY_BASE_MS")?).unwrap_or(5000),
            webhook_timeout: Duration::from_millis(source.number("SVC_WEBHOOK_TIMEOUT_MS")?),
            allow_private_network: source.flag("SVC_ALLOW_PRIVATE_NETWORK")?,
            action_timeout: Duration::from_millis(source.number("SVC_ACTION_TIMEOUT_MS")?),
            block_memory_bytes: usize::try_from(megabytes << 20).unwrap_or(usize::MAX),
            blocks_memory_bytes: usize::try_from(all_megabytes << 20).unwrap_or(usize::MAX),
            block_resident_bytes: usize::try_from(resident_kilobytes << 10).unwrap_or(usize::MAX),
            body_bytes_max: size("SVC_MAX_BODY_BYTES")?,
            block_bytes_max: size("SVC_MAX_BLOCK_BYTES")?,
            text_bytes_max: size("SVC_MAX_TEXT_BYTES")?,
            answer_bytes_max: size("SVC_MAX_ANSWER_BYTES")?,
            bulk_records_max: usize::try_from(source.number("SVC_MAX_BULK")?).unwrap_or(1000),
            streams_of_one_max: usize::try_from(source.number("SVC_MAX_STREAMS_PER_PRINCIPAL")?).unwrap_or(100),
            connections_of_an_address_max: usize::try_from(source.number("SVC_MAX_CONNECTIONS_PER_ADDRESS")?).unwrap_or(2000),
            requests_per_minute: rate("SVC_RATE_LIMIT_RPM")?,
            auth_requests_per_minute: rate("SVC_AUTH_RATE_LIMIT_RPM")?,
            trusted_proxies: source.list("SVC_TRUSTED_PROXIES", "networks like 10.0.0.0/8", |text| {
                text.parse::<IpNet>().ok().or_else(|| text.parse::<std::net::IpAddr>().ok().map(IpNet::from))
            })?,
            trusted_origins: source.list("SVC_TRUSTED_ORIGINS", "origins like https://app.example.com", |text| {
                public_base_url(text).map(|url| url.origin().ascii_serialization())
            })?,
            drain_delay: Duration::from_millis(source.number("SVC_DRAIN_DELAY_MS")?),
            metrics_token: source.secretive("SVC_METRICS_TOKEN", "visible ASCII characters", header_token)?,
            metrics_listen: source.parsed("SVC_METRICS_LISTEN", "an address like 127.0.0.1:9464", |text| text.parse().ok())?,
            otlp: otlp(&source, telemetry)?,
            telemetry,
            log: source.text_or_default("SVC_LOG"),
            log_format: source.due("SVC_LOG_FORMAT", "pretty or json", |text| match text {
                "pretty" => Some(LogFormat::Pretty),
                "json" => Some(LogFormat::Json),
                _ => None,
            })?,
            log_requests: source.flag("SVC_LOG_REQUESTS")?,
            unknown: names
                .filter(|name| variables::named(name).is_none() && !COMMAND_VARIABLES.contains(&name.as_str()))
                .collect(),
            listed: listed(&source),
        })
    }

    /// All settings, without secrets. `effective` has the values of unset variables that only the caller knows.
    pub(crate) fn listed(&self, effective: &[(&str, String)]) -> Vec<ListedSetting> {
        let mut settings = self.listed.clone();
        for setting in settings.iter_mut().filter(|setting| !setting.is_set && !setting.secret) {
            let known = effective.iter().find(|(name, _)| *name == setting.name);
            setting.value = known.map(|(_, value)| value.clone()).or(setting.value.take());
        }
        settings
    }
}

/// All variables, without secrets. Two of the values can come from files.
fn listed(source: &Source<impl Fn(&str) -> Option<String>>) -> Vec<ListedSetting> {
    let mut settings: Vec<ListedSetting> =
        VARIABLES.iter().map(|variable| variable.listed(source.text(variable.name).as_deref())).collect();
    let has_password_file = source.text("SVC_ADMIN_PASSWORD_FILE").is_some();
    for setting in settings.iter_mut().filter(|setting| !setting.is_set) {
        // If `SVC_SECRET` is not set, the secret is in a file of the data directory.
        if setting.name == "SVC_SECRET" || (setting.name == "SVC_ADMIN_PASSWORD" && has_password_file) {
            (setting.is_set, setting.source) = (true, SettingSource::File);
        }
    }
    settings
}

/// The collectors. While telemetry is off, their variables are not checked.
fn otlp(source: &Source<impl Fn(&str) -> Option<String>>, telemetry: bool) -> Result<Otlp, String> {
    if !telemetry {
        let is_ignored = source.text("OTEL_EXPORTER_OTLP_ENDPOINT").is_some();
        return Ok(Otlp { traces: None, metrics: None, is_ignored });
    }
    Ok(Otlp { traces: collector(source, "TRACES_")?, metrics: collector(source, "METRICS_")?, is_ignored: false })
}

/// The collector of one signal: its settings come from the signal's own variables. If these are not set, they come from the
/// variables for all signals.
fn collector(source: &Source<impl Fn(&str) -> Option<String>>, signal: &str) -> Result<Option<Collector>, String> {
    let variable = |setting: &str| {
        let names = [format!("OTEL_EXPORTER_OTLP_{signal}{setting}"), format!("OTEL_EXPORTER_OTLP_{setting}")];
        names.into_iter().find_map(|name| source.text(&name).map(|text| (name, text)))
    };
    let Some((name, address)) = variable("ENDPOINT") else { return Ok(None) };
    // The address may contain a key, so it is not shown.
    let url = base_url(&address).ok_or_else(|| format!("{name} needs an absolute http or https URL."))?;
    if let Some((name, _)) = variable("PROTOCOL") {
        // With another protocol, the exporter would use its own default, and fail at each export.
        let is_spoken = |text: &str| (text == "http/protobuf").then_some(());
        source.parsed(&name, "http/protobuf, the one protocol that is spoken here", is_spoken)?;
    }
    let timeout = match variable("TIMEOUT") {
        Some((name, _)) => source.number_within(&name, COLLECTOR_TIMEOUT_MS)?.map_or(COLLECTOR_TIMEOUT, Duration::from_millis),
        None => COLLECTOR_TIMEOUT,
    };
    Ok(Some(Collector { is_https: url.scheme() == "https", timeout }))
}

/// The first admin's email address and password. Either both are set or neither.
fn admin_pair(source: &Source<impl Fn(&str) -> Option<String>>) -> Result<Option<AdminPair>, String> {
    let password = source.text("SVC_ADMIN_PASSWORD").map(PasswordSource::Value);
    let file = source.text("SVC_ADMIN_PASSWORD_FILE").map(|path| PasswordSource::File(path.into()));
    if password.is_some() && file.is_some() {
        return Err("SVC_ADMIN_PASSWORD and SVC_ADMIN_PASSWORD_FILE are both set; leave one of them out.".to_owned());
    }
    match (source.text("SVC_ADMIN_EMAIL"), password.or(file)) {
        (Some(email), Some(source)) => Ok(Some(AdminPair { email: email.trim().to_owned(), source })),
        (None, None) => Ok(None),
        (Some(_), None) => Err("SVC_ADMIN_EMAIL needs SVC_ADMIN_PASSWORD or SVC_ADMIN_PASSWORD_FILE beside it.".to_owned()),
        (None, Some(PasswordSource::Value(_))) => Err("SVC_ADMIN_PASSWORD needs SVC_ADMIN_EMAIL beside it.".to_owned()),
        (None, Some(PasswordSource::File(_))) => Err("SVC_ADMIN_PASSWORD_FILE needs SVC_ADMIN_EMAIL beside it.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Config, String> {
        let names: Vec<String> = pairs.iter().map(|(name, _)| (*name).to_owned()).collect();
        Config::read(
            |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()),
            names.into_iter(),
        )
    }

    #[test]
    fn nothing_set_is_a_working_configuration() {
        let config = read(&[]).expect("defaults");
        assert_eq!(config.listen.to_string(), "127.0.0.1:4000");
        assert!(config.require_auth && config.events_enabled && config.database_url.is_none());
    }

    #[test]
    fn a_malformed_value_names_its_variable_and_shows_no_secret() {
        for (name, value) in [
            ("SVC_LISTEN", "here"),
            ("SVC_PUBLIC_URL", "example.com"),
            ("SVC_REQUIRE_AUTH", "maybe"),
            ("SVC_MAX_BULK", "0"),
            ("SVC_MAX_STREAMS_PER_PRINCIPAL", "0"),
            ("SVC_MAX_CONNECTIONS_PER_ADDRESS", "0"),
            ("SVC_RATE_LIMIT_RPM", "-1"),
            ("SVC_TRUSTED_PROXIES", "10.0.0.0/99"),
            ("SVC_TRUSTED_ORIGINS", "app"),
            ("SVC_LOG_FORMAT", "xml"),
            ("SVC_RETRY_BASE_MS", "soon"),
            ("SVC_EVENTS_RETENTION_DAYS", "x"),
            ("SVC_LOG_REQUESTS", "often"),
            ("SVC_METRICS_LISTEN", "9464"),
        ] {
            let problem = read(&[(name, value)]).err().expect(name);
            assert!(problem.starts_with(name) && !problem.contains('\n'), "{problem}");
        }
        for variable in VARIABLES {
            let Some((least, most)) = variable.range() else { continue };
            let outside = [least.checked_sub(1), most.checked_add(1)].into_iter().flatten();
            for number in outside {
                let text: &'static str = number.to_string().leak();
                let problem = read(&[(variable.name, text)]).err().expect(variable.name);
                assert!(problem.contains(&format!("from {least} to {most}")), "{problem}");
            }
            for number in [least, most] {
                let text: &'static str = number.to_string().leak();
                assert!(read(&[(variable.name, text)]).is_ok(), "{}={number}", variable.name);
            }
        }
        for (name, value) in [
            ("SVC_SECRET", "hunter2"),
            ("SVC_PUBLIC_URL", "https://admin:hunter2@api.example.com"),
            ("SVC_PUBLIC_URL", "admin:hunter2@api.example.com"),
            ("SVC_PUBLIC_URL", "https://api.example.com?key=hunter2"),
            ("SVC_TRUSTED_ORIGINS", "https://a.example, https://admin:hunter2@api.example.com"),
            ("SVC_SETUP_TOKEN", "hunter2 and more"),
            ("SVC_METRICS_TOKEN", "hunter2 and more"),
        ] {
            let problem = read(&[(name, value)]).err().expect(name);
            assert!(problem.starts_with(name) && !problem.contains("hunter2"), "{problem}");
        }
        let problem = read(&[("SVC_DATABASE_URL", "mysql://u:hunter2@h/d")]).err().expect("not Postgres");
        assert!(!problem.contains("hunter2"), "{problem}");
    }

    #[test]
    fn combinations_that_are_unsafe_or_halves_are_refused() {
        assert!(read(&[("SVC_DATABASE_URL", "postgres://h/d")]).err().expect("no secret").contains("SVC_SECRET"));
        assert!(read(&[("SVC_REQUIRE_AUTH", "false"), ("SVC_LISTEN", "0.0.0.0:80")]).is_err());
        assert!(read(&[("SVC_REQUIRE_AUTH", "false"), ("SVC_LISTEN", "0.0.0.0:80"), ("SVC_ALLOW_INSECURE", "true")]).is_ok());
        assert!(read(&[("SVC_ADMIN_EMAIL", "a@b.c")]).is_err());
        assert!(read(&[("SVC_ADMIN_PASSWORD", "x")]).is_err());
        assert!(read(&[("SVC_ADMIN_PASSWORD_FILE", "x")]).is_err());
        assert!(read(&[("SVC_ADMIN_EMAIL", "a@b.c"), ("SVC_ADMIN_PASSWORD", "x"), ("SVC_ADMIN_PASSWORD_FILE", "y")]).is_err());
        let config = read(&[("SVC_ADMIN_EMAIL", "a@b.c"), ("SVC_ADMIN_PASSWORD", "x")]).expect("a pair");
        assert!(config.disable_signup);
    }

    #[test]
    fn a_collector_counts_with_telemetry_and_its_address_is_not_shown() {
        const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        const ON: (&str, &str) = ("SVC_TELEMETRY", "true");
        let plain = Collector { is_https: false, timeout: COLLECTOR_TIMEOUT };
        assert_eq!(
            read(&[ON, ALL]).expect("an address").otlp,
            Otlp { traces: Some(plain), metrics: Some(plain), is_ignored: false }
        );
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://h/v1/traces");
        let patient = Collector { is_https: true, timeout: Duration::from_secs(30) };
        let traces = read(&[ON, own, ("OTEL_EXPORTER_OTLP_TIMEOUT", "30000")]).expect("an address");
        assert_eq!(traces.otlp, Otlp { traces: Some(patient), metrics: None, is_ignored: false });
        let problem = read(&[ON, ("OTEL_EXPORTER_OTLP_ENDPOINT", "hunter2:4317")]).err().expect("no http");
        assert!(problem.starts_with("OTEL_EXPORTER_OTLP_ENDPOINT") && !problem.contains("hunter2"), "{problem}");
        for malformed in [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"), ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "soon")] {
            let problem = read(&[ON, ALL, malformed]).err().expect(malformed.0);
            assert!(problem.starts_with(malformed.0), "{problem}");
        }
        assert!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "x")]).expect("not looked at").otlp.is_ignored);
    }

    #[test]
    fn settings_are_listed_with_their_sources_and_without_secrets() {
        let config = read(&[
            ("SVC_DATABASE_URL", "postgres://ann:hunter2@db/shop"),
            ("SVC_SECRET", "hunter2 and enough characters for it"),
            ("SVC_METRICS_TOKEN", "hunter2"),
            ("SVC_SETUP_TOKEN", "hunter2-hunter2-hunter2"),
            ("SVC_ADMIN_EMAIL", "ann@example.com"),
            ("SVC_ADMIN_PASSWORD_FILE", "/run/password"),
            ("SVC_MAX_BULK", "7"),
        ]);
        let settings =
            config.expect("settings").listed(&[("SVC_PUBLIC_URL", "http://h".to_owned()), ("SVC_MAX_BULK", "9".to_owned())]);
        assert_eq!(settings.len(), VARIABLES.len());
        assert!(!format!("{settings:?}").contains("hunter2"), "{settings:?}");
        let of = |name: &str| settings.iter().find(|setting| setting.name == name).expect("listed");
        let short = |name: &str| (of(name).value.as_deref(), of(name).is_set, of(name).source);
        assert_eq!(short("SVC_DATABASE_URL"), (Some("postgres://db/shop"), true, SettingSource::Environment));
        assert_eq!(short("SVC_SECRET"), (None, true, SettingSource::Environment));
        assert_eq!(short("SVC_ADMIN_PASSWORD"), (None, true, SettingSource::File));
        assert_eq!(short("SVC_ADMIN_PASSWORD_FILE"), (Some("/run/password"), true, SettingSource::Environment));
        assert_eq!(short("SVC_PUBLIC_URL"), (Some("http://h"), false, SettingSource::Default));
        assert_eq!(short("SVC_MAX_BULK"), (Some("7"), true, SettingSource::Environment));
        assert_eq!(short("SVC_LOG"), (Some("info"), false, SettingSource::Default));
        let generated = read(&[]).expect("defaults").listed(&[]);
        let secret = generated.iter().find(|setting| setting.name == "SVC_SECRET").expect("listed");
        assert_eq!((secret.is_set, secret.source), (true, SettingSource::File));
    }

    #[test]
    fn unknown_names_are_found() {
        let config = read(&[("SVC_LISTNE", "x")]).expect("only a warning");
        assert_eq!(config.unknown, ["SVC_LISTNE"]);
        let config = read(&[("SVC_URL", "http://127.0.0.1:4000"), ("SVC_API_KEY", "svc_x")]).expect("for commands");
        assert_eq!(config.unknown, Vec::<String>::new());
    }
}
