//! The environment variables of the server: the meaning of each, its default, and the part of its value that may be shown.
//!
//! This is their only list. `config` takes the defaults from here, `--help` prints the list, and `GET /api/v1/settings` shows it
//! with the effective values. Each variable is made by one of four functions. So a new variable has to say whether it is a
//! secret.

use blockbase_app::{ListedSetting, SettingSource};
use url::Url;

use self::Fallback::{Is, Nothing, Told};

/// One variable.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    visibility: Visibility,
    default: Fallback,
    /// The smallest and the largest number that the variable accepts, if it is a whole number.
    range: Option<(u64, u64)>,
    /// The description, as one line for `--help`.
    description: &'static str,
}

/// The part of a value that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visibility {
    All,
    /// The value is a secret, so nothing is shown.
    Never,
    /// The value is an address that may contain a secret. Only the parts that are certainly not secret are shown.
    Address,
}

/// The value of a variable that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fallback {
    /// This value, as if the variable were set to it.
    Is(&'static str),
    /// The value depends on something else. This text describes it.
    Told(&'static str),
    Nothing,
}

const fn plain(name: &'static str, default: Fallback, description: &'static str) -> Variable {
    Variable { name, visibility: Visibility::All, default, range: None, description }
}

/// A whole number from `range.0` to `range.1`.
const fn number(name: &'static str, default: Fallback, range: (u64, u64), description: &'static str) -> Variable {
    Variable { name, visibility: Visibility::All, default, range: Some(range), description }
}

/// The range of a setting for the bytes of a body, a value or a response. Less than 1 KiB would not work, and more than 4 GiB
/// would not limit anything.
const BYTES: (u64, u64) = (1 << 10, 4 << 30);
/// The range of a setting for requests per minute. 0 means no limit.
const REQUESTS_PER_MINUTE: (u64, u64) = (0, u32::MAX as u64);
/// The range of a time limit for a long call, in milliseconds. The maximum is an hour.
const CALL_MS: (u64, u64) = (1, 3_600_000);

const fn secret(name: &'static str, default: Fallback, description: &'static str) -> Variable {
    Variable { name, visibility: Visibility::Never, default, range: None, description }
}

const fn address(name: &'static str, default: Fallback, description: &'static str) -> Variable {
    Variable { name, visibility: Visibility::Address, default, range: None, description }
}

/// All variables, in the order of `--help`.
pub(crate) const VARIABLES: &[Variable] = &[
    plain("SVC_LISTEN", Is("127.0.0.1:4000"), "address to listen on; port 0 picks a free one"),
    plain("SVC_PUBLIC_URL", Told("http://<listen>"), "external base address; https makes cookies Secure"),
    plain("SVC_DATA_DIR", Is("./svc-data"), "SQLite file, generated secret, compiled blocks"),
    address(
        "SVC_DATABASE_URL",
        Told("SQLite in the data directory"),
        "address of Postgres, as postgres://user:password@host/database",
    ),
    number(
        "SVC_DATABASE_MAX_CONNECTIONS",
        Told("8 on SQLite, 16 on Postgres"),
        (0, 10_000),
        "size of the connection pool; 0 is the default",
    ),
    secret("SVC_SECRET", Told("generated on SQLite; needed on Postgres"), "master secret, at least 32 characters"),
    plain("SVC_REQUIRE_AUTH", Is("true"), "whether permissions are enforced"),
    plain("SVC_ALLOW_INSECURE", Is("false"), "allows SVC_REQUIRE_AUTH=false on an address that is not loopback"),
    plain("SVC_ADMIN_EMAIL", Nothing, "address of the first admin, made at boot"),
    secret("SVC_ADMIN_PASSWORD", Nothing, "password of the first admin"),
    plain("SVC_ADMIN_PASSWORD_FILE", Nothing, "file that holds the password of the first admin"),
    secret(
        "SVC_SETUP_TOKEN",
        Nothing,
        "the token that the first sign-up of a fresh server sends as x-setup-token; auto makes one and logs it",
    ),
    plain("SVC_DISABLE_SIGNUP", Told("false; true with SVC_ADMIN_EMAIL"), "closes sign-up once the first admin exists"),
    plain("SVC_ANONYMOUS_AUTH", Is("false"), "guest sign-in"),
    plain("SVC_SIGNUP_ROLE", Nothing, "role given to every plain new sign-up"),
    plain(
        "SVC_REQUIRE_EMAIL_VERIFICATION",
        Is("false"),
        "whether an address is proved with a mailed link before its user signs in",
    ),
    plain("SVC_BREACHED_PASSWORDS", Nothing, "folder of prefix files of breached passwords, which nobody may choose"),
    plain("SVC_DELETE_USER", Is("false"), "whether users may delete their own accounts"),
    address(
        "SVC_SMTP_URL",
        Nothing,
        "mail server, as smtps://user:password@host:465 or smtp://user:password@host:587?tls=required; without it no mail is sent",
    ),
    plain("SVC_MAIL_FROM", Nothing, "sender of mail, as Example <mail@example.com>; needed with SVC_SMTP_URL"),
    plain("SVC_MAIL_TEMPLATES", Nothing, "folder of texts that replace those of mail: <name>.<language>.txt and .html"),
    number("SVC_MAILS_PER_NETWORK", Is("100"), (1, 1_000_000), "mails that one network may ask for within an hour"),
    plain("SVC_MAIL_LOG", Is("false"), "writes mail with its links into the log and sends none; for development"),
    plain("SVC_EVENTS_ENABLED", Is("true"), "whether writes emit events"),
    number(
        "SVC_EVENTS_POLL_INTERVAL_MS",
        Is("2000"),
        (10, 3_600_000),
        "how often the dispatcher looks for new work if no commit wakes it",
    ),
    number("SVC_EVENTS_RETENTION_DAYS", Is("30"), (0, 36_500), "age at which settled events are purged; 0 keeps all"),
    plain(
        "SVC_EVENTS_MAX_BYTES",
        Told("a fifth of the disk; 10 GiB on Postgres"),
        "bytes of the outbox past which settled events are purged; 0 means no bound",
    ),
    number("SVC_AUDIT_RETENTION_DAYS", Is("400"), (0, 36_500), "age at which rows of the audit log are deleted; 0 keeps all"),
    number("SVC_RETRY_BASE_MS", Is("5000"), (1, 3_600_000), "base of the delivery backoff"),
    number("SVC_WEBHOOK_TIMEOUT_MS", Is("10000"), (1, 600_000), "time of one webhook call"),
    number("SVC_ACTION_TIMEOUT_MS", Is("30000"), CALL_MS, "time of one action, hook or handler"),
    number("SVC_BLOCK_MEMORY_MB", Is("256"), (1, 4096), "linear memory of one block instance"),
    number("SVC_BLOCK_MEMORY_TOTAL_MB", Is("4096"), (1, 1 << 20), "linear memory of all block instances together"),
    number("SVC_BLOCK_RESIDENT_KB", Is("4096"), (0, 1 << 16), "memory that each place for an instance keeps between calls"),
    plain("SVC_ALLOW_PRIVATE_NETWORK", Is("false"), "whether webhooks and blocks may reach private addresses"),
    number("SVC_MAX_BODY_BYTES", Is("10485760"), BYTES, "largest request body"),
    number("SVC_MAX_BLOCK_BYTES", Is("67108864"), BYTES, "largest block upload"),
    number("SVC_MAX_TEXT_BYTES", Is("1048576"), BYTES, "largest text value, where the field has no max of its own"),
    number("SVC_MAX_ANSWER_BYTES", Is("67108864"), BYTES, "largest answer of a request that lists"),
    number("SVC_MAX_BULK", Is("1000"), (1, 100_000), "records of one bulk call"),
    number("SVC_MAX_STREAMS_PER_PRINCIPAL", Is("100"), (1, 10_000), "open event streams of one user, key or address"),
    number(
        "SVC_MAX_CONNECTIONS_PER_ADDRESS",
        Is("2000"),
        (1, 1_000_000),
        "open connections of one address; trusted proxies have any number",
    ),
    number("SVC_RATE_LIMIT_RPM", Is("6000"), REQUESTS_PER_MINUTE, "requests a minute and address; 0 is off"),
    number("SVC_AUTH_RATE_LIMIT_RPM", Is("60"), REQUESTS_PER_MINUTE, "the same for /api/auth"),
    plain("SVC_TRUSTED_PROXIES", Told("none"), "CIDRs whose X-Forwarded-For is believed"),
    plain("SVC_TRUSTED_ORIGINS", Nothing, "origins of cookie-authenticated writes and CORS, beside the public URL's"),
    number(
        "SVC_DRAIN_DELAY_MS",
        Is("0"),
        (0, 600_000),
        "how long requests are accepted after the signal to stop, while /readyz answers 503",
    ),
    plain("SVC_TELEMETRY", Is("false"), "mounts /metrics"),
    secret("SVC_METRICS_TOKEN", Nothing, "bearer token of /metrics; without one only this machine gets them"),
    plain("SVC_METRICS_LISTEN", Nothing, "address of a listener of its own for /metrics"),
    address(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        Nothing,
        "with telemetry: http(s) address of a collector of traces and metrics, as http/protobuf",
    ),
    plain("SVC_LOG", Is("info"), "log filter, as in RUST_LOG"),
    plain("SVC_LOG_FORMAT", Is("pretty"), "pretty or json"),
    plain("SVC_LOG_REQUESTS", Is("true"), "whether each request leaves a line in the log"),
];

/// The variable with this name.
pub(crate) fn named(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name)
}

impl Variable {
    /// The default, as text.
    pub(crate) fn default_text(&self) -> Option<&'static str> {
        match self.default {
            Is(text) => Some(text),
            Told(_) | Nothing => None,
        }
    }

    /// The smallest and the largest number that it accepts. `None` if it is not a whole number.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        self.range
    }

    /// The description, with the range of numbers that it accepts.
    fn described(&self) -> String {
        match self.range {
            Some((least, most)) => format!("{}; {least} to {most}", self.description),
            None => self.description.to_owned(),
        }
    }

    /// The description with the default in brackets.
    pub(crate) fn help(&self) -> String {
        match self.default {
            Is(default) | Told(default) => format!("{} [{default}]", self.described()),
            Nothing => self.described(),
        }
    }

    /// The part of the value `text` that may be shown.
    fn shown(&self, text: &str) -> Option<String> {
        match self.visibility {
            Visibility::All => Some(text.to_owned()),
            Visibility::Never => None,
            Visibility::Address => shown_address(text),
        }
    }

    /// The setting for the list. `text` is the value of the variable.
    pub(crate) fn listed(&self, text: Option<&str>) -> ListedSetting {
        ListedSetting {
            name: self.name,
            value: text.or(self.default_text()).and_then(|text| self.shown(text)),
            secret: self.visibility == Visibility::Never,
            is_set: text.is_some(),
            source: if text.is_some() { SettingSource::Environment } else { SettingSource::Default },
            description: match self.default {
                // The default is not a plain value, so the description says what it is.
                Told(_) => self.help(),
                Is(_) | Nothing => self.described(),
            },
        }
    }
}

/// An address without the parts that may contain a secret: the user, the password, the fragment, the query parameters, and a path
/// that does not name a database. `None` if the address cannot be parsed.
fn shown_address(text: &str) -> Option<String> {
    let url = Url::parse(text.trim()).ok()?;
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let is_database = matches!(url.scheme(), "postgres" | "postgresql");
    if url.path().contains('@') {
        // The password contains a slash, so the parser has split the address in the wrong place.
        return None;
    }
    let path = if is_database { url.path() } else { "" };
    let tls = url.query_pairs().find(|(name, _)| is_database && name == "sslmode");
    let tls = tls.filter(|(_, mode)| mode.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
    let tls = tls.map(|(_, mode)| format!("?sslmode={mode}")).unwrap_or_default();
    Some(format!("{}://{host}{port}{path}{tls}", url.scheme()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_what_may_be_a_secret() {
        for (address, shown) in [
            ("postgres://ann:hunter2@db.internal:5433/shop", "postgres://db.internal:5433/shop"),
            ("postgresql://ann@db/shop?sslmode=verify-full&password=hunter2", "postgresql://db/shop?sslmode=verify-full"),
            ("postgres://db/shop?sslmode=hunter2", "postgres://db/shop"),
            ("postgres:///shop?host=/run/hunter2&user=ann", "postgres:///shop"),
            ("postgres://[::1]:5432/shop#hunter2", "postgres://[::1]:5432/shop"),
            ("https://key:hunter2@otlp.example/v1/hunter2?api-key=hunter2", "https://otlp.example"),
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318"),
        ] {
            assert_eq!(shown_address(address).as_deref(), Some(shown), "{address}");
        }
        for unreadable in ["postgres://ann:hunter2/x@db/shop", "postgres://ann:12/hunter2@db/shop", "hunter2", ""] {
            assert_eq!(shown_address(unreadable), None, "{unreadable}");
        }
    }

    #[test]
    fn a_secret_is_listed_without_its_value() {
        for variable in VARIABLES {
            let listed = variable.listed(Some("hunter2-is-the-password"));
            let may_show = variable.visibility == Visibility::All;
            assert_eq!(listed.value.is_some(), may_show, "{}", variable.name);
            // A new variable that contains a secret has to be marked as one.
            let sounds_secret = ["SECRET", "TOKEN", "PASSWORD"].iter().any(|word| variable.name.ends_with(word));
            assert_eq!(listed.secret, sounds_secret, "{}", variable.name);
        }
        let listen = named("SVC_LISTEN").expect("a variable");
        let unset = listen.listed(None);
        assert_eq!((unset.value.as_deref(), unset.source), (Some("127.0.0.1:4000"), SettingSource::Default));
        assert_eq!(listen.listed(Some("[::]:80")).value.as_deref(), Some("[::]:80"));
    }

    #[test]
    fn the_documentation_has_every_variable_with_its_default_and_its_range() {
        let documentation = include_str!("../../../docs/configuration.md");
        for variable in VARIABLES {
            let of_variable = |line: &&str| line.starts_with("| ") && line.contains(&format!("`{}`", variable.name));
            let line = documentation.lines().find(of_variable).unwrap_or_else(|| panic!("{} is missing", variable.name));
            if let Is(default) = variable.default {
                assert!(line.contains(&format!("`{default}`")), "{}: {default} is not in {line:?}", variable.name);
            }
            if let Some((least, most)) = variable.range {
                assert!(
                    line.ends_with(&format!("; {least} to {most} |")),
                    "{}: {least} to {most} is not in {line:?}",
                    variable.name
                );
            }
        }
    }
}
