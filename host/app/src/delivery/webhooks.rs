//! Outbound webhooks: their creation, changes and tests, and the data for sending one.
//!
//! A webhook sends events that match its topics. So acting on a webhook needs the same right as creating it: to read all of those
//! events.

use std::time::Duration;

use blockbase_auth::{Sealed, SecretBox, new_webhook_secret};
use blockbase_query::Action;
use blockbase_query::topic::TopicPattern;
use blockbase_schema::{Code, Error, Resource, Result, is_url};
use blockbase_store::{Connection, Maker, PreviousSecret, ReadCost, Service, Suspension, Thing, ThingKind, WebhookRow};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::App;
use crate::access::makers::{SendsEvents, declared_by_none, keep_maker};
use crate::base::answer::{AnyObject, SuspensionAnswer, Timestamp};
use crate::base::stored::Place;
use crate::base::topic::{Topic, WebhookTestMembers};
use crate::base::webhook_headers::HIDDEN;
use crate::base::webhook_headers::Headers;
use crate::caller::Caller;
use crate::delivery::subscriptions::WithWarnings;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::acts_later::{ActsLater, StoredThing, SuspensionCheck, suspension_checks};
use crate::state::block_types::manifest_place;
use crate::state::routing::{WEBHOOK_CONSUMER, may_act_on, may_change_stored, may_subscribe, purpose};

/// How long a replaced secret still signs together with the new one.
const ROTATION: Duration = Duration::from_secs(24 * 3600);
const WEBHOOKS_MAX: i64 = 1000;
/// The maximum length of a name, in characters.
pub const NAME_CHARS_MAX: usize = 200;
const URL_BYTES_MAX: usize = 2048;
/// The maximum number of topic patterns of one webhook.
pub const TOPICS_MAX: usize = 50;

/// The members of a new webhook.
#[derive(Clone, Debug)]
pub struct NewWebhook {
    pub name: Option<String>,
    pub url: String,
    pub topics: Vec<String>,
    pub headers: Map<String, Value>,
    pub enabled: bool,
}

/// The changes of a webhook. Members that are left out stay unchanged.
#[derive(Clone, Debug, Default)]
pub struct WebhookChanges {
    /// `Some(None)` removes the name.
    pub name: Option<Option<String>>,
    pub url: Option<String>,
    pub topics: Option<Vec<String>>,
    pub headers: Option<Map<String, Value>>,
    pub enabled: Option<bool>,
}

/// A webhook, which sends signed events to another service.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcWebhook", deny_unknown_fields)]
pub struct WebhookAnswer {
    #[schemars(extend("format" = "uuid"))]
    id: String,
    name: Option<String>,
    #[schemars(extend("format" = "uri"))]
    url: String,
    topics: Vec<String>,
    /// The names of the headers. Their values are stored encrypted and never shown.
    #[schemars(with = "AnyObject", extend("additionalProperties" = json!({ "type": "string", "const": HIDDEN })))]
    headers: Value,
    enabled: bool,
    /// `block:<name>` if a block declared it.
    source: Option<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    suspended: Option<SuspensionAnswer>,
}

impl From<&WebhookRow> for WebhookAnswer {
    fn from(row: &WebhookRow) -> WebhookAnswer {
        let headers = Headers::read(&row.headers)
            .unwrap_or_else(|_| Place::new("svc_webhooks", "headers", &row.id).damaged("it holds no headers by name"));
        WebhookAnswer {
            id: row.id.clone(),
            name: row.name.clone(),
            url: row.url.clone(),
            topics: Place::new("svc_webhooks", "topics", &row.id).read(&row.topics),
            headers: headers.shown(),
            enabled: row.enabled,
            source: row.source.clone(),
            created_at: Timestamp(row.created_at),
            updated_at: Timestamp(row.updated_at),
            suspended: row.suspension.map(SuspensionAnswer::from),
        }
    }
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

fn check_topics(caller: &Caller, topics: &[String]) -> Result<()> {
    if topics.is_empty() || topics.len() > TOPICS_MAX {
        return Err(refused("topics", format!("`topics` takes 1 to {TOPICS_MAX} patterns.")));
    }
    for topic in topics {
        let pattern = TopicPattern::parse(topic).map_err(|error| refused("topics", error.message))?;
        may_subscribe(caller, &pattern)?;
    }
    Ok(())
}

/// Requires the rights that a stored webhook needs: to read everything that it sends.
///
/// # Errors
/// `forbidden`, which names what the caller cannot read.
pub(crate) fn may_act(caller: &Caller, row: &WebhookRow) -> Result<()> {
    let Some(topics) = topics_place(row).found::<Vec<String>>(&row.topics) else {
        // The topics cannot be read, so the caller needs the right to read everything.
        return caller.require("*", Action::Read);
    };
    // A newer server may have stored a pattern that this one cannot read. Such a pattern sends nothing here.
    let mut patterns = topics.iter().filter_map(|topic| TopicPattern::parse(topic).ok());
    patterns.try_for_each(|pattern| may_act_on(caller, &pattern, &row.maker))
}

impl StoredThing for WebhookRow {
    fn id(&self) -> &str {
        &self.id
    }

    fn maker(&self) -> Maker {
        self.maker.clone()
    }

    fn suspension(&self) -> Option<Suspension> {
        self.suspension
    }

    /// The rights that the maker needs.
    fn needs(&self, _app: &App, caller: &Caller) -> Result<()> {
        may_act(caller, &WebhookRow { maker: caller.maker(), ..self.clone() })
    }
}

impl SendsEvents for WebhookRow {
    fn may_change(&self, caller: &Caller) -> Result<()> {
        match topics_place(self).found::<Vec<String>>(&self.topics) {
            Some(topics) => topics.iter().try_for_each(|topic| may_change_stored(caller, topic, &self.maker)),
            // The topics cannot be read, so the caller needs the right to read everything.
            None => caller.require("*", Action::Read),
        }
    }
}

/// Webhooks, as a kind of things that act later.
pub(crate) struct MadeWebhooks;

impl ActsLater for MadeWebhooks {
    fn kind(&self) -> ThingKind {
        ThingKind::Webhook
    }

    fn list<'a>(&'a self, connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<SuspensionCheck>>> {
        Box::pin(async move { Ok(suspension_checks(connection.webhooks().await?)) })
    }

    fn carried<'a>(
        &'a self,
        app: &'a App,
        connection: &'a mut Connection,
        caller: &'a Caller,
        id: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match connection.held_webhook(id).await? {
                Some(row) => row.may_adopt(app, connection, caller).await,
                None => Ok(()),
            }
        })
    }

    fn adopted<'a>(&'a self, connection: &'a mut Connection, id: &'a str) -> BoxFuture<'a, Result<Vec<Thing>>> {
        Box::pin(async move {
            declared_by_none(held(connection, id).await?.source.as_ref())?;
            Ok(Vec::new())
        })
    }
}

impl App {
    fn check_url(&self, text: &str) -> Result<()> {
        let url = Url::parse(text).map_err(|error| refused("url", format!("`url` is not an absolute URL: {error}.")))?;
        if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
            return Err(refused("url", "`url` has whitespace or a control character. Percent-encode it."));
        }
        if text.len() > URL_BYTES_MAX {
            return Err(refused("url", format!("`url` is longer than {URL_BYTES_MAX} bytes.")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("url", "`url` has a user name or a password. Send an `authorization` header instead."));
        }
        self.settings
            .addresses
            .check_url(&url)
            .map_err(|refusal| refused("url", format!("`url` cannot be called: {refusal}.")))?;
        // Like browsers, the URL parser repairs mistakes such as `http:a.b` or backslashes. So the text itself is checked too.
        match is_url(text) {
            true => Ok(()),
            false => Err(refused("url", "`url` is not an absolute URL. It has to begin with http:// or https:// and a host.")),
        }
    }

    fn new_secret(&self, id: &str) -> Result<(String, (String, String))> {
        let secret = new_webhook_secret().map_err(Error::internal)?;
        let Sealed { key_id, ciphertext } = self.secrets.seal(&purpose(id), &secret).map_err(Error::internal)?;
        Ok((secret, (ciphertext, key_id)))
    }

    /// The box that opens stored secrets.
    pub fn secrets(&self) -> &SecretBox {
        &self.secrets
    }

    /// All webhooks, the newest first.
    pub async fn list_webhooks(&self, caller: &Caller) -> Result<Vec<WebhookAnswer>> {
        caller.require(Resource::Webhooks, Action::Read)?;
        self.settle_rights_shown(caller).await;
        let rows = self.scan(caller, |connection| Box::pin(async move { Ok(connection.webhooks().await?) })).await?;
        Ok(rows.iter().map(WebhookAnswer::from).collect())
    }

    pub async fn webhook(&self, caller: &Caller, id: &str) -> Result<WebhookAnswer> {
        caller.require(Resource::Webhooks, Action::Read)?;
        self.shown_webhook(caller, id).await
    }

    async fn shown_webhook(&self, caller: &Caller, id: &str) -> Result<WebhookAnswer> {
        let found = self.find_webhook(caller, id).await?;
        match self.settle_rights_shown(caller).await {
            true => Ok(WebhookAnswer::from(&self.find_webhook(caller, id).await?)),
            false => Ok(WebhookAnswer::from(&found)),
        }
    }

    async fn find_webhook(&self, caller: &Caller, id: &str) -> Result<WebhookRow> {
        let id = id.to_owned();
        let find = self.look_up(caller, move |connection| Box::pin(async move { Ok(connection.webhook(&id).await?) }));
        find.await?.ok_or_else(|| Error::not_found("webhook"))
    }

    /// Creates a webhook. Returns it with its secret, which is shown only this once.
    ///
    /// # Errors
    /// `invalid_value`, which names the wrong member. `forbidden` if the caller may not read what the webhook would send.
    pub async fn create_webhook(&self, caller: &Caller, new: NewWebhook) -> Result<(WithWarnings<WebhookAnswer>, String)> {
        caller.require(Resource::Webhooks, Action::Create)?;
        let warnings = self.warnings_of_topics(&new.topics);
        let (row, secret) = self.new_webhook(caller, new, None)?;
        let answer = WithWarnings { data: WebhookAnswer::from(&row), warnings };
        let auditor = self.auditor(caller);
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    keep_maker(connection, &row.maker).await?;
                    connection.raise_version("subscriptions").await?;
                    insert(connection, &row).await?;
                    let act = Act::new(AuditAction::Create, Resource::Webhooks, &row.id);
                    auditor.record(connection, act.after(&WebhookAnswer::from(&row))).await
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        Ok((answer, secret))
    }

    /// A webhook that passed every check, ready to be stored, and its secret. `source` is `block:<name>` if a block declares it.
    ///
    /// # Errors
    /// The errors of [`App::create_webhook`].
    pub(crate) fn new_webhook(&self, caller: &Caller, new: NewWebhook, source: Option<String>) -> Result<(WebhookRow, String)> {
        check_name(new.name.as_ref())?;
        self.check_url(&new.url)?;
        let headers = Headers::seal(&self.secrets, &new.headers, &Headers::default())?;
        check_topics(caller, &new.topics)?;
        let now = self.clock.now();
        let id = self.clock.id(now).to_string();
        let (secret, stored) = self.new_secret(&id)?;
        let row = WebhookRow {
            id,
            name: new.name,
            url: new.url,
            topics: json!(new.topics).to_string(),
            headers: headers.text(),
            enabled: new.enabled,
            source,
            secret: stored,
            previous: None,
            created_at: now,
            updated_at: now,
            maker: caller.maker(),
            suspension: None,
        };
        Ok((row, secret))
    }

    /// Changes a webhook. Enabling it does not send earlier events. A caller who changes its topics or its URL becomes its maker.
    ///
    /// # Errors
    /// The errors of [`App::create_webhook`]. `invalid_value` if header values are stored and the URL changes without `headers`.
    /// `forbidden` if the caller may not read what it sends. `conflict` for any change except `enabled` if a block declared it.
    pub async fn update_webhook(
        &self,
        caller: &Caller,
        id: &str,
        changes: WebhookChanges,
    ) -> Result<WithWarnings<WebhookAnswer>> {
        caller.require(Resource::Webhooks, Action::Update)?;
        check_name(changes.name.as_ref().and_then(Option::as_ref))?;
        if let Some(url) = &changes.url {
            self.check_url(url)?;
        }
        if let Some(topics) = &changes.topics {
            check_topics(caller, topics)?;
        }
        let (now, secrets, auditor) = (self.clock.now(), self.secrets.clone(), self.auditor(caller));
        let (id, acting) = (id.to_owned(), caller.clone());
        let maker = match changes.url.is_some() || changes.topics.is_some() {
            true => Some(caller.maker()),
            false => None,
        };
        let row = self
            .store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    if let Some(maker) = &maker {
                        keep_maker(connection, maker).await?;
                    }
                    connection.raise_version("subscriptions").await?;
                    let mut row = held(connection, &id).await?;
                    row.may_change(&acting)?;
                    let before = WebhookAnswer::from(&row);
                    let WebhookChanges { name, url, topics, headers, enabled } = changes;
                    let is_only_switched = name.is_none() && url.is_none() && topics.is_none() && headers.is_none();
                    if row.source.is_some() && !is_only_switched {
                        let message = "You can only enable or disable a webhook of a block. It is deleted with the block.";
                        return Err(Error::new(Code::Conflict, message));
                    }
                    let known = Headers::read(&row.headers)?;
                    let is_moved = url.as_ref().is_some_and(|url| *url != row.url);
                    // If the URL changes, the old receiver's credentials must not be sent to the new receiver.
                    let kept = if is_moved { Headers::default() } else { known.clone() };
                    let changed = match headers {
                        Some(headers) => Headers::seal(&secrets, &headers, &kept)?,
                        None if is_moved && !known.is_empty() => {
                            let message =
                                "The stored headers are not sent to another `url`: send `headers` again, or `{}` to drop them.";
                            return Err(Error::new(Code::InvalidValue, message).with_field("headers"));
                        }
                        None => kept,
                    };
                    if let Some(maker) = &maker {
                        connection.set_maker(ThingKind::Webhook, &row.id, maker).await?;
                        row.suspension = None;
                    }
                    row.headers = changed.text();
                    row.name = name.unwrap_or(row.name);
                    row.url = url.unwrap_or(row.url);
                    row.topics = topics.map_or(row.topics, |topics| json!(topics).to_string());
                    row.enabled = enabled.unwrap_or(row.enabled);
                    row.updated_at = now;
                    connection.update_webhook(&row).await?;
                    let act = Act::new(AuditAction::Update, Resource::Webhooks, &row.id).before(&before);
                    auditor.record(connection, act.after(&WebhookAnswer::from(&row))).await?;
                    Ok(row)
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        let warnings = self.warnings_of_topics(&topics_place(&row).read::<Vec<String>>(&row.topics));
        Ok(WithWarnings { data: WebhookAnswer::from(&row), warnings })
    }

    /// Deletes a webhook. Its pending deliveries are dropped.
    ///
    /// # Errors
    /// `forbidden` if the caller may not read what it sends. `conflict` if a block declared it.
    pub async fn delete_webhook(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(Resource::Webhooks, Action::Delete)?;
        let (id, auditor, caller) = (id.to_owned(), self.auditor(caller), caller.clone());
        self.store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    let row = held(connection, &id).await?;
                    row.may_change(&caller)?;
                    if row.source.is_some() {
                        return Err(Error::new(Code::Conflict, "This webhook is deleted with the block that declared it."));
                    }
                    connection.delete_webhook(&id).await?;
                    let act = Act::new(AuditAction::Delete, Resource::Webhooks, &id);
                    auditor.record(connection, act.before(&WebhookAnswer::from(&row))).await
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        self.group_gone.notify_one();
        Ok(())
    }

    /// Adopts a webhook as it is now.
    ///
    /// # Errors
    /// `not_found`. `forbidden` if the webhook needs rights that the caller lacks, or if somebody else made it and the caller reads
    /// only a part of its objects. `conflict` if a block declared it.
    pub async fn adopt_webhook(&self, caller: &Caller, id: &str) -> Result<WebhookAnswer> {
        caller.require(Resource::Webhooks, Action::Update)?;
        self.adopt(caller, ThingKind::Webhook, id).await?;
        self.shown_webhook(caller, id).await
    }

    /// Gives a webhook a new secret, which is shown only this once. The old secret also signs for 24 hours.
    ///
    /// # Errors
    /// `forbidden` if the caller may not read what it sends, because the secret lets its owner pretend to be the service.
    pub async fn rotate_webhook_secret(&self, caller: &Caller, id: &str) -> Result<String> {
        caller.require(Resource::Webhooks, Action::Update)?;
        let (id, auditor, caller) = (id.to_owned(), self.auditor(caller), caller.clone());
        let (secret, stored) = self.new_secret(&id)?;
        let now = self.clock.now();
        let until = now + i64::try_from(ROTATION.as_millis()).unwrap_or(i64::MAX);
        self.store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    let mut row = held(connection, &id).await?;
                    row.may_change(&caller)?;
                    row.previous = Some(PreviousSecret { secret: std::mem::replace(&mut row.secret, stored), until });
                    row.updated_at = now;
                    connection.update_webhook(&row).await?;
                    auditor.record(connection, Act::new(AuditAction::RotateSecret, Resource::Webhooks, &id)).await
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        Ok(secret)
    }

    /// Sends a `webhook.test.<id>` event through the whole pipeline, regardless of the webhook's topics. Returns the event's id.
    ///
    /// # Errors
    /// `forbidden` if the caller may not read what it sends. `conflict` if it is disabled, or events are off.
    pub async fn test_webhook(&self, caller: &Caller, id: &str) -> Result<String> {
        caller.require(Resource::Webhooks, Action::Update)?;
        if let Some(subscription) = self.subscription(&format!("{WEBHOOK_CONSUMER}{id}"))
            && let Some(why) = self.why_stopped(&subscription).await?
        {
            return Err(Error::new(Code::Conflict, why));
        }
        let (announcer, auditor) = (self.announcer(caller), self.auditor(caller));
        let (id, caller) = (id.to_owned(), caller.clone());
        self.store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    let row = held(connection, &id).await?;
                    row.may_change(&caller)?;
                    if !row.enabled {
                        return Err(Error::new(Code::Conflict, "The webhook is disabled. Enable it to test it."));
                    }
                    let test = Topic::WebhookTest(WebhookTestMembers { id: &id });
                    let sent = announcer.emit_also_to(connection, test, &format!("{WEBHOOK_CONSUMER}{id}")).await?;
                    let sent = sent.ok_or_else(|| {
                        Error::new(Code::Conflict, "Events are off on this server (SVC_EVENTS_ENABLED=false); nothing is sent.")
                    })?;
                    let act = Act::new(AuditAction::Test, Resource::Webhooks, &id).after(&json!({ "eventId": sent }));
                    auditor.record(connection, act).await?;
                    Ok(sent)
                })
            })
            .await
    }
}

fn topics_place(row: &WebhookRow) -> Place<'_> {
    Place::new("svc_webhooks", "topics", &row.id)
}

async fn held(connection: &mut Connection, id: &str) -> Result<WebhookRow> {
    connection.held_webhook(id).await?.ok_or_else(|| Error::not_found("webhook"))
}

/// Stores a new webhook, unless the maximum number exists.
pub(crate) async fn insert(connection: &mut Connection, row: &WebhookRow) -> Result<()> {
    if connection.count_webhooks().await? >= WEBHOOKS_MAX {
        let message = format!("There are {WEBHOOKS_MAX} webhooks, the most that there can be.");
        return Err(Error::new(Code::Conflict, message));
    }
    Ok(connection.insert_webhook(row).await?)
}

impl App {
    /// Seals header values that an earlier version of the server stored unsealed, and removes them from the stored manifests of
    /// blocks. Does nothing if all are sealed already.
    pub(crate) async fn seal_stored_headers(&self) -> Result<()> {
        let secrets = self.secrets.clone();
        let (plain, manifests) = self
            .store
            .read_as_service(ReadCost::Rows, move |connection| {
                Box::pin(async move {
                    let mut plain = Vec::new();
                    for row in connection.webhooks().await? {
                        if Headers::read(&row.headers).is_ok_and(|headers| headers.has_plain()) {
                            plain.push(row.id);
                        }
                    }
                    Ok((plain, connection.block_manifests().await?))
                })
            })
            .await?;
        let manifests: Vec<_> = manifests
            .into_iter()
            .filter_map(|(block, version, manifest)| {
                let manifest = without_header_values(&block, &manifest)?;
                Some((block, version, manifest))
            })
            .collect();
        if plain.is_empty() && manifests.is_empty() {
            return Ok(());
        }
        self.store
            .write(Service, move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    for id in &plain {
                        // Another instance may have changed the webhook meanwhile.
                        let Some(mut row) = connection.held_webhook(id).await? else { continue };
                        if let Some(sealed) = Headers::read(&row.headers)?.sealed_anew(&secrets)? {
                            row.headers = sealed.text();
                            connection.update_webhook(&row).await?;
                        }
                    }
                    for (block, version, manifest) in manifests {
                        connection.set_block_manifest(&block, &version, manifest).await?;
                    }
                    Ok(())
                })
            })
            .await
    }
}

/// The JSON text of a block's manifest with [`HIDDEN`] in place of header values. `None` if it contains none.
fn without_header_values(block: &str, manifest: &str) -> Option<String> {
    let mut manifest: Value = manifest_place(block).found(manifest)?;
    let mut has_values = false;
    for webhook in manifest.get_mut("webhooks")?.as_array_mut()? {
        for value in webhook.get_mut("headers").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            has_values |= value != HIDDEN;
            *value = json!(HIDDEN);
        }
    }
    has_values.then(|| manifest.to_string())
}
