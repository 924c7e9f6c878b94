//! Maps events to consumer groups, with data in memory. Writes need no other data about subscriptions and webhooks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use blockbase_auth::{Sealed, SecretBox, Unsealed};
use blockbase_query::topic::{Reach, TopicPattern};
use blockbase_query::{Action, Decision};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{Connection, Maker, NewDelivery, SubscriptionRow, WebhookRow};
use parking_lot::RwLock;
use serde_json::Value;
use url::Url;

use crate::base::webhook_headers::Headers;
use crate::caller::Caller;
use crate::state::persist_config::{PERSIST_EVENT, PersistConfig};

/// The handler that writes its events to the log.
pub(crate) const LOG_EVENT: &str = "log_event";
/// The handler that the ledger shows for a webhook's deliveries.
const WEBHOOK: &str = "webhook";
/// The group that sends mail, and the handler that the ledger shows for it. No subscription can have this name.
pub(crate) const MAIL_CONSUMER: &str = "svc:mail";
const SEND_MAIL: &str = "send_mail";
/// The topic of the events that lead to mail.
const MAIL_TOPIC: &str = "auth.mail.requested";
/// The prefix of the names of webhooks' consumer groups.
pub(crate) const WEBHOOK_CONSUMER: &str = "webhook:";
/// The longest chain of handlers' writes after which an event still goes to blocks.
const CAUSATION_DEPTH_MAX: i64 = 8;
pub(crate) const PERSIST_PER_INSTANCE: &str = "`persist_event` is not for every instance: each would write the same record.";
const TOO_DEEP: &str = "causation depth";
/// The maximum number of topics whose groups are kept in memory.
const TOPICS_REMEMBERED: usize = 10_000;

/// Built-in handlers that `requires.handlers` and subscriptions may name.
pub const BUILT_IN_HANDLERS: [&str; 2] = [LOG_EVENT, PERSIST_EVENT];

/// Whether a subscription's handler is one of the service's own.
pub fn is_built_in(handler: &str) -> bool {
    BUILT_IN_HANDLERS.contains(&handler)
}

/// The receiver of a subscription's events.
#[derive(Clone, Debug)]
pub enum Target {
    LogEvent,
    PersistEvent(Arc<PersistConfig>),
    Webhook(Arc<Webhook>),
    /// The server's own mail.
    Mail,
    Block {
        block: String,
        handler: String,
        config: Value,
    },
    /// The stored subscription cannot be used, with the reason.
    Broken(String),
}

/// A consumer group.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub consumer: String,
    /// The handler's name in the ledger.
    pub handler: String,
    pub target: Target,
    /// Whether every instance gets each event. Otherwise only one does.
    pub per_instance: bool,
    patterns: Vec<TopicPattern>,
    pub(crate) maker: Maker,
}

impl Subscription {
    fn of_row(row: SubscriptionRow) -> Subscription {
        // The pattern was checked when it was stored. But a newer server may store a pattern that this server cannot read. It
        // must not prevent the other subscriptions from loading.
        let pattern = TopicPattern::parse(&row.topic).map_err(|error| error.message);
        let config = serde_json::from_str::<Value>(&row.config).map_err(|error| error.to_string());
        let read = |config: Value| match row.handler.split_once('.') {
            None if row.handler == LOG_EVENT => Ok(Target::LogEvent),
            None if row.handler == PERSIST_EVENT => PersistConfig::read(&config).map(|read| Target::PersistEvent(Arc::new(read))),
            Some((block, handler)) => Ok(Target::Block { block: block.to_owned(), handler: handler.to_owned(), config }),
            None => Err(Error::invalid_request(format!("There is no handler `{}`.", row.handler))),
        };
        let read = |config: Value| match read(config)? {
            Target::PersistEvent(_) if row.per_instance => {
                Err(Error::new(Code::InvalidValue, PERSIST_PER_INSTANCE).with_field("perInstance"))
            }
            target => Ok(target),
        };
        let target = config.and_then(|config| read(config).map_err(|error| error.message)).unwrap_or_else(Target::Broken);
        Subscription {
            consumer: row.consumer,
            handler: row.handler,
            target,
            per_instance: row.per_instance,
            patterns: pattern.into_iter().collect(),
            maker: row.maker,
        }
    }

    /// The group that sends the server's mail. It always exists. If the server sends no mail, no event goes to it.
    fn of_mail() -> Subscription {
        Subscription {
            consumer: MAIL_CONSUMER.to_owned(),
            handler: SEND_MAIL.to_owned(),
            target: Target::Mail,
            per_instance: false,
            patterns: TopicPattern::parse(MAIL_TOPIC).into_iter().collect(),
            maker: Maker::default(),
        }
    }

    fn of_webhook(webhook: Webhook) -> Subscription {
        Subscription {
            consumer: format!("{WEBHOOK_CONSUMER}{}", webhook.id),
            handler: WEBHOOK.to_owned(),
            patterns: webhook.topics.iter().filter_map(|topic| TopicPattern::parse(topic).ok()).collect(),
            maker: webhook.maker.clone(),
            target: Target::Webhook(Arc::new(webhook)),
            per_instance: false,
        }
    }

    /// Whether an event's causation depth is so large that a block no longer gets the event.
    pub fn is_too_deep(&self, depth: i64) -> bool {
        depth > CAUSATION_DEPTH_MAX && matches!(self.target, Target::Block { .. })
    }

    pub(crate) fn is_webhook(&self) -> bool {
        matches!(self.target, Target::Webhook(_))
    }

    /// Requires from the maker the rights that the subscription needs: read on its events, and create on the object that it
    /// writes.
    ///
    /// # Errors
    /// `forbidden`, which names the right that the maker lacks.
    pub(crate) fn require_needs(&self, maker: &Caller) -> Result<()> {
        self.patterns.iter().try_for_each(|pattern| may_subscribe(maker, pattern))?;
        match &self.target {
            Target::PersistEvent(config) => maker.require(&config.object, Action::Create),
            _ => Ok(()),
        }
    }

    pub fn patterns(&self) -> &[TopicPattern] {
        &self.patterns
    }

    pub fn matches(&self, topic: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(topic))
    }

    fn delivery(&self, depth: i64) -> NewDelivery {
        NewDelivery {
            consumer: self.consumer.clone(),
            handler: self.handler.clone(),
            dead: self.is_too_deep(depth).then_some(TOO_DEEP),
        }
    }
}

/// The subscriptions that get events, in one version.
#[derive(Debug)]
pub struct Subscriptions {
    pub(crate) version: i64,
    list: Vec<Arc<Subscription>>,
    places: HashMap<String, usize>,
    /// The deliveries of an event by its topic, if its causation depth is within the limit.
    by_topic: RwLock<HashMap<String, Arc<[NewDelivery]>>>,
}

/// The server's own groups. A server has these before the first load, and if its database has no other groups.
impl Default for Subscriptions {
    fn default() -> Subscriptions {
        Subscriptions::of(0, Vec::new())
    }
}

impl Subscriptions {
    /// The subscriptions at this moment. Disabled webhooks and subscriptions of disabled blocks get nothing.
    pub(crate) async fn load(connection: &mut Connection) -> Result<Subscriptions> {
        let version = connection.version("subscriptions").await?;
        let disabled: HashSet<String> =
            connection.disabled_blocks().await?.into_iter().map(|name| format!("block:{name}")).collect();
        let rows = connection.subscriptions().await?.into_iter();
        let stored = rows.filter(|row| !row.source.as_ref().is_some_and(|source| disabled.contains(source)));
        let mut list: Vec<Arc<Subscription>> = stored.map(Subscription::of_row).map(Arc::new).collect();
        let is_active = |source: &Option<String>| !source.as_ref().is_some_and(|source| disabled.contains(source));
        for row in connection.webhooks().await?.into_iter().filter(|row| row.enabled && is_active(&row.source)) {
            let id = row.id.clone();
            match Webhook::of_row(row) {
                Ok(webhook) => list.push(Arc::new(Subscription::of_webhook(webhook))),
                Err(error) => tracing::error!(webhook.id = id, error.cause = %error, "a stored webhook cannot be read"),
            }
        }
        Ok(Subscriptions::of(version, list))
    }

    fn of(version: i64, mut list: Vec<Arc<Subscription>>) -> Subscriptions {
        list.push(Arc::new(Subscription::of_mail()));
        let places = list.iter().enumerate().map(|(place, subscription)| (subscription.consumer.clone(), place)).collect();
        Subscriptions { version, list, places, by_topic: RwLock::default() }
    }

    /// The deliveries of an event with this topic and depth.
    pub(crate) fn deliveries(&self, topic: &str, depth: i64) -> Arc<[NewDelivery]> {
        if depth <= CAUSATION_DEPTH_MAX
            && let Some(known) = self.by_topic.read().get(topic)
        {
            return Arc::clone(known);
        }
        let matching = self.list.iter().filter(|subscription| !subscription.per_instance && subscription.matches(topic));
        let deliveries: Arc<[NewDelivery]> = matching.map(|subscription| subscription.delivery(depth)).collect();
        if depth <= CAUSATION_DEPTH_MAX {
            let mut by_topic = self.by_topic.write();
            if by_topic.len() < TOPICS_REMEMBERED {
                by_topic.insert(topic.to_owned(), Arc::clone(&deliveries));
            }
        }
        deliveries
    }

    /// Does the same as [`Subscriptions::deliveries`] at depth 0, with one more group that gets the event even if it did not
    /// subscribe to it.
    pub(crate) fn deliveries_and(&self, topic: &str, consumer: &str) -> Arc<[NewDelivery]> {
        let asked = self.get(consumer).map(|subscription| subscription.delivery(0));
        let others = self.deliveries(topic, 0);
        others.iter().filter(|delivery| delivery.consumer != consumer).cloned().chain(asked).collect()
    }

    pub fn get(&self, consumer: &str) -> Option<&Arc<Subscription>> {
        self.places.get(consumer).and_then(|place| self.list.get(*place))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.list.iter()
    }
}

/// A webhook in the form that the delivery uses.
#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: String,
    pub url: Url,
    headers: Headers,
    pub(crate) topics: Vec<String>,
    secret: Sealed,
    previous: Option<(Sealed, i64)>,
    pub(crate) maker: Maker,
}

fn sealed((ciphertext, key_id): &(String, String)) -> Sealed {
    Sealed { key_id: key_id.clone(), ciphertext: ciphertext.clone() }
}

/// The purpose for which a webhook's secrets are encrypted.
pub(crate) fn purpose(id: &str) -> String {
    format!("webhook:{id}")
}

impl Webhook {
    pub(crate) fn of_row(row: WebhookRow) -> Result<Webhook> {
        Ok(Webhook {
            url: Url::parse(&row.url).map_err(Error::internal)?,
            headers: Headers::read(&row.headers)?,
            topics: serde_json::from_str(&row.topics).map_err(Error::internal)?,
            secret: sealed(&row.secret),
            previous: row.previous.map(|previous| (sealed(&previous.secret), previous.until)),
            maker: row.maker,
            id: row.id,
        })
    }

    /// The webhook's custom headers, as they are sent.
    ///
    /// # Errors
    /// A sentence for readers of the ledger, if a value was stored under another master secret.
    pub fn headers(&self, secrets: &SecretBox) -> std::result::Result<Vec<(String, String)>, String> {
        self.headers.open(secrets)
    }

    /// The secrets that sign at an instant: the current one, and for some time also the previous one.
    ///
    /// # Errors
    /// A sentence for readers of the ledger, if the secret was stored under another master secret.
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
            // A previous secret that cannot be opened is left out.
            opened.extend(open(previous).ok());
        }
        Ok(opened)
    }
}

/// Requires from the caller read on every event that `pattern` can match. Nobody may send events that they may not see.
///
/// # Errors
/// `forbidden`, which names the resource that the caller may not read.
pub(crate) fn may_subscribe(caller: &Caller, pattern: &TopicPattern) -> Result<()> {
    match pattern.reach() {
        // Conditions of grants are allowed, because they are checked at each delivery. A grant for own rows alone is not
        // sufficient.
        Reach::Object(object) => match caller.reads(object) {
            Some(Decision::Rules(_)) => Ok(()),
            _ => caller.require(object, Action::Read),
        },
        Reach::Platform => caller.require(Resource::Events, Action::Read),
        // The pattern also matches future objects.
        Reach::Everything => caller.require("*", Action::Read),
    }
}

/// Requires the same from a caller who acts on a thing that `maker` made. The rights of the maker decide about its deliveries, so
/// other callers need read on every record, with all fields.
///
/// # Errors
/// `forbidden`.
pub(crate) fn may_act_on(caller: &Caller, pattern: &TopicPattern, maker: &Maker) -> Result<()> {
    match pattern.reach() {
        Reach::Object(object) if caller.maker() != *maker => match caller.reads(object) {
            Some(decision) if !decision.is_all() && caller.is_known() => Err(reads_a_part(object)),
            _ => caller.require(object, Action::Read),
        },
        _ => may_subscribe(caller, pattern),
    }
}

/// The refusal to act on what somebody else made, for a caller who reads only a part of the object.
fn reads_a_part(object: &str) -> Error {
    let message = format!(
        "You may read only some records or fields of `{object}`. You did not make this, so you need the permission to read all \
         records of `{object}`, with all fields."
    );
    Error::new(Code::Forbidden, message)
}

/// Requires read on the events of a stored pattern from a caller who changes its webhook or subscription. If this server cannot
/// read the pattern, it requires read on everything, because a newer server could read the pattern and apply the change.
///
/// # Errors
/// `forbidden`.
pub(crate) fn may_change_stored(caller: &Caller, topic: &str, maker: &Maker) -> Result<()> {
    match TopicPattern::parse(topic) {
        Ok(pattern) => may_act_on(caller, &pattern, maker),
        Err(_) => caller.require("*", Action::Read),
    }
}
