//! Outbound webhooks: made, changed, tried out, and what sending one takes.

use std::time::Duration;

use blockbase_auth::{Sealed, SecretBox, Unsealed, new_webhook_secret};
use blockbase_query::Action;
use blockbase_schema::{Code, Error, Result, time};
use blockbase_store::{Connection, PreviousSecret, ReadCost, WebhookRow};
use serde_json::{Map, Value, json};
use url::Url;

use crate::App;
use crate::caller::Caller;
use crate::subscriptions::{WEBHOOK_CONSUMER, may_subscribe};
use crate::topic::TopicPattern;

/// Permission resource.
const WEBHOOKS: &str = "webhooks";
/// How long a secret signs beside the one that replaced it.
const ROTATION: Duration = Duration::from_secs(24 * 3600);
const WEBHOOKS_MAX: i64 = 1000;
/// Longest name in characters.
const NAME_CHARS_MAX: usize = 200;
const URL_BYTES_MAX: usize = 2048;
/// Most topic patterns of one webhook.
const TOPICS_MAX: usize = 50;
const HEADERS_MAX: usize = 50;
/// Names and values of all headers together.
const HEADERS_BYTES_MAX: usize = 8 * 1024;
/// Headers that the service sets itself, or that belong to the connection.
const HEADERS_RESERVED: [&str; 18] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "trailers",
    "upgrade",
    "expect",
    "accept-encoding",
    "range",
    "http2-settings",
];
/// Prefix of the service's own headers.
const HEADER_PREFIX: &str = "x-svc-";

/// A webhook as it is served.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: String,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub(crate) topics: Vec<String>,
    secret: Sealed,
    previous: Option<(Sealed, i64)>,
}

fn sealed((ciphertext, key_id): &(String, String)) -> Sealed {
    Sealed { key_id: key_id.clone(), ciphertext: ciphertext.clone() }
}

/// What a webhook's secrets are encrypted for.
fn purpose(id: &str) -> String {
    format!("webhook:{id}")
}

impl Webhook {
    pub(crate) fn of_row(row: WebhookRow) -> Result<Webhook> {
        let headers: Map<String, Value> = serde_json::from_str(&row.headers).map_err(Error::internal)?;
        let text = |(name, value): (String, Value)| (name, value.as_str().unwrap_or_default().to_owned());
        Ok(Webhook {
            url: Url::parse(&row.url).map_err(Error::internal)?,
            headers: headers.into_iter().map(text).collect(),
            topics: serde_json::from_str(&row.topics).map_err(Error::internal)?,
            secret: sealed(&row.secret),
            previous: row.previous.map(|previous| (sealed(&previous.secret), previous.until)),
            id: row.id,
        })
    }

    /// The secrets that sign at an instant: its own, and for a while the one before it.
    ///
    /// # Errors
    /// A sentence for whoever reads the ledger: the secret was stored under another master secret.
    pub fn secrets(&self, secrets: &SecretBox, now: i64) -> std::result::Result<Vec<String>, &'static str> {
        let purpose = purpose(&self.id);
        let open = |sealed: &Sealed| {
            secrets.open(&purpose, sealed).map_err(|problem| match problem {
                Unsealed::OtherKey => "the secret was stored under another SVC_SECRET; rotate it",
                Unsealed::Broken => "the stored secret cannot be read; rotate it",
            })
        };
        let mut opened = vec![open(&self.secret)?];
        if let Some((previous, _)) = self.previous.as_ref().filter(|(_, until)| *until > now) {
            // One that cannot be read any more has nothing to sign.
            opened.extend(open(previous).ok());
        }
        Ok(opened)
    }
}

/// What making a webhook takes.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    pub name: Option<String>,
    pub url: String,
    pub topics: Vec<String>,
    pub headers: Map<String, Value>,
    pub enabled: bool,
}

/// What changing a webhook takes; what is left out stays as it is.
#[derive(Clone, Debug, Default)]
pub struct WebhookChanges {
    /// `Some(None)` takes the name away.
    pub name: Option<Option<String>>,
    pub url: Option<String>,
    pub topics: Option<Vec<String>>,
    pub headers: Option<Map<String, Value>>,
    pub enabled: Option<bool>,
}

/// `{ id, name, url, topics, headers, enabled, source, createdAt, updatedAt }`.
fn render(row: &WebhookRow) -> Value {
    let document = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    json!({
        "id": row.id,
        "name": row.name,
        "url": row.url,
        "topics": document(&row.topics),
        "headers": document(&row.headers),
        "enabled": row.enabled,
        "source": row.source,
        "createdAt": time::format_datetime(row.created_at),
        "updatedAt": time::format_datetime(row.updated_at),
    })
}

fn refused(field: &str, message: impl Into<String>) -> Error {
    Error::new(Code::InvalidValue, message.into()).with_field(field)
}

fn check_name(name: Option<&String>) -> Result<()> {
    match name.is_some_and(|name| name.is_empty() || name.chars().count() > NAME_CHARS_MAX) {
        true => Err(refused("name", format!("`name` has 1 to {NAME_CHARS_MAX} characters, or is left out."))),
        false => Ok(()),
    }
}

fn check_headers(headers: &Map<String, Value>) -> Result<()> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let mut bytes = 0;
    let mut seen = std::collections::HashSet::new();
    for (name, value) in headers {
        let lower = name.to_ascii_lowercase();
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(refused("headers", format!("{name:?} is no name of a header.")));
        }
        if HEADERS_RESERVED.contains(&lower.as_str()) || lower.starts_with(HEADER_PREFIX) {
            return Err(refused("headers", format!("The header `{name}` is set by the service and cannot be given.")));
        }
        if !seen.insert(lower) {
            return Err(refused("headers", format!("The header `{name}` is there twice; names differ by more than case.")));
        }
        let is_value = |text: &&str| text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 127));
        let Some(value) = value.as_str().filter(is_value) else {
            return Err(refused("headers", format!("The value of the header `{name}` is no text without control characters.")));
        };
        bytes += name.len() + value.len();
    }
    match headers.len() <= HEADERS_MAX && bytes <= HEADERS_BYTES_MAX {
        true => Ok(()),
        false => Err(refused("headers", format!("There are {HEADERS_MAX} headers of {HEADERS_BYTES_MAX} bytes in all at most."))),
    }
}

fn check_topics(caller: &Caller, topics: &[String]) -> Result<()> {
    if topics.is_empty() || topics.len() > TOPICS_MAX {
        return Err(refused("topics", format!("`topics` holds 1 to {TOPICS_MAX} patterns.")));
    }
    for topic in topics {
        let pattern = TopicPattern::parse(topic).map_err(|error| refused("topics", error.message))?;
        may_subscribe(caller, &pattern)?;
    }
    Ok(())
}

impl App {
    fn check_url(&self, text: &str) -> Result<()> {
        let url = Url::parse(text).map_err(|error| refused("url", format!("`url` is no absolute URL: {error}.")))?;
        if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(refused("url", "`url` holds a blank or a control character; percent-encode it."));
        }
        if text.len() > URL_BYTES_MAX {
            return Err(refused("url", format!("`url` is longer than {URL_BYTES_MAX} bytes.")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("url", "`url` holds a user or a password. Send an `authorization` header instead."));
        }
        self.settings.addresses.check_url(&url).map_err(|refusal| refused("url", format!("`url` cannot be called: {refusal}.")))
    }

    fn new_secret(&self, id: &str) -> Result<(String, (String, String))> {
        let secret = new_webhook_secret().map_err(Error::internal)?;
        let Sealed { key_id, ciphertext } = self.secrets.seal(&purpose(id), &secret).map_err(Error::internal)?;
        Ok((secret, (ciphertext, key_id)))
    }

    /// What stored secrets are opened with.
    pub fn secrets(&self) -> &SecretBox {
        &self.secrets
    }

    /// All webhooks, the newest first.
    pub async fn list_webhooks(&self, caller: &Caller) -> Result<Vec<Value>> {
        caller.require(WEBHOOKS, Action::Read)?;
        let rows =
            self.store.read(ReadCost::Scan, |connection| Box::pin(async move { Ok(connection.webhooks().await?) })).await?;
        Ok(rows.iter().map(render).collect())
    }

    pub async fn webhook(&self, caller: &Caller, id: &str) -> Result<Value> {
        caller.require(WEBHOOKS, Action::Read)?;
        let id = id.to_owned();
        let found =
            self.store.read(ReadCost::Rows, move |connection| Box::pin(async move { held(connection, &id).await })).await?;
        Ok(render(&found))
    }

    /// Makes a webhook: the webhook, and its secret, which is shown this once.
    ///
    /// # Errors
    /// `invalid_value` naming what does not fit; `forbidden` where the caller may not read what it would send.
    pub async fn create_webhook(&self, caller: &Caller, new: NewWebhook) -> Result<(Value, String)> {
        caller.require(WEBHOOKS, Action::Create)?;
        let (row, secret) = self.new_webhook(caller, new, None)?;
        let answer = render(&row);
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    insert(connection, &row).await
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        Ok((answer, secret))
    }

    /// A webhook that passed every check, ready to be stored, and its secret. `source` is `block:<name>` where a block declares it.
    ///
    /// # Errors
    /// As [`App::create_webhook`].
    pub(crate) fn new_webhook(&self, caller: &Caller, new: NewWebhook, source: Option<String>) -> Result<(WebhookRow, String)> {
        check_name(new.name.as_ref())?;
        self.check_url(&new.url)?;
        check_headers(&new.headers)?;
        check_topics(caller, &new.topics)?;
        let now = self.clock.now();
        let id = self.clock.id(now).to_string();
        let (secret, stored) = self.new_secret(&id)?;
        let row = WebhookRow {
            id,
            name: new.name,
            url: new.url,
            topics: json!(new.topics).to_string(),
            headers: Value::Object(new.headers).to_string(),
            enabled: new.enabled,
            source,
            secret: stored,
            previous: None,
            created_at: now,
            updated_at: now,
        };
        Ok((row, secret))
    }

    /// Changes a webhook. Enabling one does not send what happened while it was disabled.
    ///
    /// # Errors
    /// As [`App::create_webhook`]; `conflict` for anything but `enabled` of one that a block declared.
    pub async fn update_webhook(&self, caller: &Caller, id: &str, changes: WebhookChanges) -> Result<Value> {
        caller.require(WEBHOOKS, Action::Update)?;
        check_name(changes.name.as_ref().and_then(Option::as_ref))?;
        if let Some(url) = &changes.url {
            self.check_url(url)?;
        }
        if let Some(headers) = &changes.headers {
            check_headers(headers)?;
        }
        if let Some(topics) = &changes.topics {
            check_topics(caller, topics)?;
        }
        // Whoever sends it elsewhere sees what it sends.
        let is_redirected = changes.url.is_some() && changes.topics.is_none();
        let now = self.clock.now();
        let (id, caller) = (id.to_owned(), caller.clone());
        let answer = self
            .store
            .write(move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    let mut row = held(connection, &id).await?;
                    let WebhookChanges { name, url, topics, headers, enabled } = changes;
                    let is_only_switched = name.is_none() && url.is_none() && topics.is_none() && headers.is_none();
                    if row.source.is_some() && !is_only_switched {
                        let message = "A block declared this webhook: it can be enabled and disabled, and goes with the block.";
                        return Err(Error::new(Code::Conflict, message));
                    }
                    if is_redirected {
                        check_topics(&caller, &serde_json::from_str::<Vec<String>>(&row.topics).map_err(Error::internal)?)?;
                    }
                    row.name = name.unwrap_or(row.name);
                    row.url = url.unwrap_or(row.url);
                    row.topics = topics.map_or(row.topics, |topics| json!(topics).to_string());
                    row.headers = headers.map_or(row.headers, |headers| Value::Object(headers).to_string());
                    row.enabled = enabled.unwrap_or(row.enabled);
                    row.updated_at = now;
                    connection.update_webhook(&row).await?;
                    Ok(render(&row))
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        Ok(answer)
    }

    /// Deletes a webhook; what it still had to send is dropped.
    ///
    /// # Errors
    /// `conflict` for one that a block declared.
    pub async fn delete_webhook(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(WEBHOOKS, Action::Delete)?;
        let id = id.to_owned();
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    if held(connection, &id).await?.source.is_some() {
                        return Err(Error::new(Code::Conflict, "A block declared this webhook; it goes with the block."));
                    }
                    connection.delete_webhook(&id).await?;
                    Ok(())
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        self.group_gone.notify_one();
        Ok(())
    }

    /// Gives a webhook a new secret, which is shown this once. The one before it signs as well for 24 hours.
    pub async fn rotate_webhook_secret(&self, caller: &Caller, id: &str) -> Result<String> {
        caller.require(WEBHOOKS, Action::Update)?;
        let id = id.to_owned();
        let (secret, stored) = self.new_secret(&id)?;
        let now = self.clock.now();
        let until = now + i64::try_from(ROTATION.as_millis()).unwrap_or(i64::MAX);
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    let mut row = held(connection, &id).await?;
                    row.previous = Some(PreviousSecret { secret: std::mem::replace(&mut row.secret, stored), until });
                    row.updated_at = now;
                    Ok(connection.update_webhook(&row).await?)
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        Ok(secret)
    }

    /// Sends a `webhook.test.<id>` event through the whole pipeline, whatever the webhook subscribed to: the event's id.
    ///
    /// # Errors
    /// `conflict` where it is disabled, or events are off.
    pub async fn test_webhook(&self, caller: &Caller, id: &str) -> Result<String> {
        caller.require(WEBHOOKS, Action::Update)?;
        let actor = caller.actor_json();
        let event = self.platform_event(caller, format!("webhook.test.{id}"), format!(r#"{{"actor":{actor}}}"#));
        let id = id.to_owned();
        self.store
            .write(move |connection| {
                Box::pin(async move {
                    if !held(connection, &id).await?.enabled {
                        return Err(Error::new(Code::Conflict, "The webhook is disabled. Enable it to test it."));
                    }
                    let event = event.ok_or_else(|| {
                        Error::new(Code::Conflict, "Events are off on this server (SVC_EVENTS_ENABLED=false); nothing is sent.")
                    })?;
                    event.emit_also_to(connection, &format!("{WEBHOOK_CONSUMER}{id}")).await
                })
            })
            .await
    }
}

async fn held(connection: &mut Connection, id: &str) -> Result<WebhookRow> {
    connection.held_webhook(id).await?.ok_or_else(|| Error::not_found("webhook"))
}

/// Stores a new webhook, where there is room for one.
pub(crate) async fn insert(connection: &mut Connection, row: &WebhookRow) -> Result<()> {
    if connection.count_webhooks().await? >= WEBHOOKS_MAX {
        let message = format!("There are {WEBHOOKS_MAX} webhooks, the most that there can be.");
        return Err(Error::new(Code::Conflict, message));
    }
    Ok(connection.insert_webhook(row).await?)
}
