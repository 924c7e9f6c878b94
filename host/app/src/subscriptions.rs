//! Subscriptions: which consumer groups get which events, and what handles them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use blockbase_query::Action;
use blockbase_query::topic::{Reach, TopicPattern};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{Connection, Made, Maker, NewDelivery, ReadCost, Service, SubscriptionRow, Thing};
use futures_util::future::BoxFuture;
use parking_lot::RwLock;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::App;
use crate::acts_later::{ActsLater, Kept};
use crate::answer::{AnyObject, SuspensionAnswer};
use crate::caller::Caller;
use crate::makers::{declared_by_none, keep_maker};
use crate::persist::{PERSIST_EVENT, PersistConfig};
use crate::stored::Place;
use crate::webhooks::Webhook;

/// The handler that logs what it gets.
pub(crate) const LOG_EVENT: &str = "log_event";
/// What the ledger says of a webhook's deliveries.
const WEBHOOK: &str = "webhook";
/// The groups of webhooks begin with it.
pub(crate) const WEBHOOK_CONSUMER: &str = "webhook:";
/// How many handlers' writes may lead to a write whose event still goes to blocks.
const CAUSATION_DEPTH_MAX: i64 = 8;
const PERSIST_PER_INSTANCE: &str = "`persist_event` is not for every instance: each would write the same record.";
const TOO_DEEP: &str = "causation depth";
/// Topics whose groups are remembered.
const TOPICS_REMEMBERED: usize = 10_000;
/// Longest name of a consumer group in bytes.
const CONSUMER_BYTES_MAX: usize = 100;
/// Most subscriptions that are made over the API.
const SUBSCRIPTIONS_MAX: usize = 1000;

/// Built-in handlers that `requires.handlers` and subscriptions may name.
pub(crate) const BUILT_IN_HANDLERS: [&str; 2] = [LOG_EVENT, PERSIST_EVENT];

/// Whether a subscription's handler is one of the service's own.
pub fn is_built_in(handler: &str) -> bool {
    BUILT_IN_HANDLERS.contains(&handler)
}

/// What gets the events of a subscription.
#[derive(Clone, Debug)]
pub enum Target {
    LogEvent,
    PersistEvent(Arc<PersistConfig>),
    Webhook(Arc<Webhook>),
    Block {
        block: String,
        handler: String,
        config: Value,
    },
    /// The stored subscription cannot be served; why.
    Broken(String),
}

/// A consumer group.
#[derive(Clone, Debug)]
pub struct Subscription {
    pub consumer: String,
    /// As the ledger names it.
    pub handler: String,
    pub target: Target,
    /// Every instance gets each event, not one of them.
    pub per_instance: bool,
    patterns: Vec<TopicPattern>,
    pub(crate) maker: Maker,
}

impl Subscription {
    fn of_row(row: SubscriptionRow) -> Subscription {
        // It was checked when it was stored; one that a newer server stored must not keep this one from the others.
        let pattern = TopicPattern::parse(&row.topic).map_err(|error| error.message);
        let config = serde_json::from_str::<Value>(&row.config).map_err(|error| error.to_string());
        let read = |config: Value| match row.handler.split_once('.') {
            None if row.handler == LOG_EVENT => Ok(Target::LogEvent),
            None if row.handler == PERSIST_EVENT => PersistConfig::read(&config).map(|read| Target::PersistEvent(Arc::new(read))),
            Some((block, handler)) => Ok(Target::Block { block: block.to_owned(), handler: handler.to_owned(), config }),
            None => Err(Error::invalid_request(format!("There is no handler `{}`.", row.handler))),
        };
        let read = |config: Value| match read(config)? {
            Target::PersistEvent(_) if row.per_instance => Err(refused("perInstance", PERSIST_PER_INSTANCE.to_owned())),
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

    /// Whether so many handlers' writes led to an event that a block does not get it any more.
    pub fn is_too_deep(&self, depth: i64) -> bool {
        depth > CAUSATION_DEPTH_MAX && matches!(self.target, Target::Block { .. })
    }

    pub(crate) fn is_webhook(&self) -> bool {
        matches!(self.target, Target::Webhook(_))
    }

    /// Demands what it needs of its maker: read on what it gets, create on what it writes.
    ///
    /// # Errors
    /// `forbidden`, naming what the maker does not hold.
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

/// The subscriptions that get events, at one version of them.
#[derive(Debug, Default)]
pub struct Subscriptions {
    pub(crate) version: i64,
    list: Vec<Arc<Subscription>>,
    places: HashMap<String, usize>,
    /// What an event of a topic is delivered to, as long as it is not too deep.
    by_topic: RwLock<HashMap<String, Arc<[NewDelivery]>>>,
}

impl Subscriptions {
    /// Those of this moment; disabled webhooks and those of disabled blocks get nothing.
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
        let places = list.iter().enumerate().map(|(place, subscription)| (subscription.consumer.clone(), place)).collect();
        Ok(Subscriptions { version, list, places, by_topic: RwLock::default() })
    }

    /// What an event is delivered to.
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

    /// The same with one group that gets the event whatever it subscribed to.
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

/// What making a subscription takes.
#[derive(Clone, Debug)]
pub struct NewSubscription {
    /// Topic pattern.
    pub event: String,
    pub consumer: String,
    pub handler: String,
    pub config: Map<String, Value>,
    pub per_instance: bool,
}

/// What making or changing something answers, with what may not be as it was meant.
#[derive(Clone, Debug, Serialize)]
pub struct Answered<T> {
    pub data: T,
    /// Sentences; empty where nothing is striking.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Which events a consumer group gets, and what handles them.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SvcSubscription", deny_unknown_fields)]
pub struct SubscriptionAnswer {
    /// Topic pattern.
    event: String,
    consumer: String,
    handler: String,
    #[schemars(with = "AnyObject")]
    config: Value,
    per_instance: bool,
    /// `block:<name>` where a block declared it.
    source: Option<String>,
    suspended: Option<SuspensionAnswer>,
}

impl From<&SubscriptionRow> for SubscriptionAnswer {
    fn from(row: &SubscriptionRow) -> SubscriptionAnswer {
        SubscriptionAnswer {
            event: row.topic.clone(),
            consumer: row.consumer.clone(),
            handler: row.handler.clone(),
            config: Place::new("svc_subscriptions", "config", &row.consumer).read(&row.config),
            per_instance: row.per_instance,
            source: row.source.clone(),
            suspended: row.suspension.map(SuspensionAnswer::from),
        }
    }
}

fn refused(field: &str, message: String) -> Error {
    Error::new(Code::InvalidValue, message).with_field(field)
}

/// Demands that a name can be a consumer group's, and is not one of a webhook.
///
/// # Errors
/// `invalid_value`, saying what names there are.
pub fn check_consumer(consumer: &str) -> Result<()> {
    let fits = consumer.starts_with(|first: char| first.is_ascii_lowercase())
        && consumer.len() <= CONSUMER_BYTES_MAX
        && consumer.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-:.".contains(&byte));
    if fits && !consumer.starts_with(WEBHOOK_CONSUMER) {
        return Ok(());
    }
    Err(refused(
        "consumer",
        format!(
            "`consumer` names a group: it begins with a small letter, holds small letters, digits, `_`, `-`, `.` and `:`, \
             {CONSUMER_BYTES_MAX} at most, and does not begin with `{WEBHOOK_CONSUMER}`."
        ),
    ))
}

/// Demands that the caller may read every event that `pattern` can match: nobody sends elsewhere what they may not see.
///
/// # Errors
/// `forbidden`, naming what they cannot read.
pub(crate) fn may_subscribe(caller: &Caller, pattern: &TopicPattern) -> Result<()> {
    match pattern.reach() {
        Reach::Object(object) => caller.require(object, Action::Read),
        Reach::Platform => caller.require(Resource::Events, Action::Read),
        // Objects that are still to come match as well.
        Reach::Everything => caller.require("*", Action::Read),
    }
}

/// Demands the rights that a stored subscription carries: read on what it gets, create on what it writes.
///
/// # Errors
/// `forbidden`, naming what the caller does not hold.
pub(crate) fn may_act(caller: &Caller, row: &SubscriptionRow) -> Result<()> {
    // What cannot be read here is not served here.
    if let Ok(pattern) = TopicPattern::parse(&row.topic) {
        may_subscribe(caller, &pattern)?;
    }
    match PersistConfig::read(&Place::new("svc_subscriptions", "config", &row.consumer).read(&row.config)) {
        Ok(config) if row.handler == PERSIST_EVENT => caller.require(&config.object, Action::Create),
        _ => Ok(()),
    }
}

/// Subscriptions as things that act later.
pub(crate) struct MadeSubscriptions;

impl ActsLater for MadeSubscriptions {
    fn kind(&self) -> Made {
        Made::Subscription
    }

    fn list<'a>(&'a self, connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<Kept>>> {
        Box::pin(async move {
            let rows = connection.subscriptions().await?.into_iter().filter(|row| !row.maker.is_nobody());
            let kept = rows.map(|row| Kept {
                id: row.consumer.clone(),
                maker: row.maker.clone(),
                stored: row.suspension.map(|suspension| suspension.reason),
                needs: Box::new(move |_, maker| may_act(maker, &row)),
            });
            Ok(kept.collect())
        })
    }

    fn carried<'a>(
        &'a self,
        _app: &'a App,
        connection: &'a mut Connection,
        caller: &'a Caller,
        id: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(row) = connection.subscription(id).await? else { return Ok(()) };
            may_act(caller, &row)
        })
    }

    fn adopted<'a>(&'a self, connection: &'a mut Connection, id: &'a str) -> BoxFuture<'a, Result<Vec<Thing>>> {
        Box::pin(async move {
            let row = connection.subscription(id).await?.ok_or_else(|| Error::not_found("subscription"))?;
            declared_by_none(row.source.as_ref())?;
            Ok(Vec::new())
        })
    }
}

impl App {
    /// The subscriptions that get events, as this instance knows them.
    pub fn subscriptions(&self) -> Arc<Subscriptions> {
        Arc::clone(&self.subscriptions.read())
    }

    /// Sentences about topic patterns that match nothing at this moment, each once.
    pub(crate) fn warnings_of_topics<'t>(&self, topics: impl IntoIterator<Item = &'t String>) -> Vec<String> {
        let registry = self.registry();
        let (mut warnings, mut seen) = (Vec::new(), HashSet::new());
        for topic in topics.into_iter().filter(|topic| seen.insert(topic.as_str())) {
            let Ok(pattern) = TopicPattern::parse(topic) else { continue };
            if let Reach::Object(object) = pattern.reach()
                && registry.object(object).is_none()
            {
                warnings.push(format!("There is no object `{object}`: `{topic}` matches nothing until there is one."));
            }
        }
        warnings
    }

    /// All stored subscriptions but those of webhooks.
    pub async fn list_subscriptions(&self, caller: &Caller) -> Result<Vec<SubscriptionAnswer>> {
        caller.require(Resource::Events, Action::Read)?;
        self.settle_rights_shown(caller).await;
        let rows = self.scan(caller, |connection| Box::pin(async move { Ok(connection.subscriptions().await?) })).await?;
        Ok(rows.iter().map(SubscriptionAnswer::from).collect())
    }

    /// Adopts a subscription: as it is then.
    ///
    /// # Errors
    /// `not_found`; `forbidden` where it carries more than the caller holds; `conflict` where a block declared it.
    pub async fn adopt_subscription(&self, caller: &Caller, consumer: &str) -> Result<SubscriptionAnswer> {
        caller.require(Resource::Events, Action::Update)?;
        self.adopt(caller, Made::Subscription, consumer).await?;
        self.shown_subscription(caller, consumer).await
    }

    async fn shown_subscription(&self, caller: &Caller, consumer: &str) -> Result<SubscriptionAnswer> {
        self.settle_rights_shown(caller).await;
        let consumer = consumer.to_owned();
        let row = self
            .look_up(caller, move |connection| Box::pin(async move { Ok(connection.subscription(&consumer).await?) }))
            .await?;
        row.as_ref().map(SubscriptionAnswer::from).ok_or_else(|| Error::not_found("subscription"))
    }

    /// Makes a subscription that a built-in handler serves.
    ///
    /// # Errors
    /// `invalid_value` naming what does not fit; `unique_violation` where the group exists; `forbidden` where the caller may not
    /// read what it would get, or not write where it would go.
    pub async fn create_subscription(&self, caller: &Caller, new: NewSubscription) -> Result<Answered<SubscriptionAnswer>> {
        caller.require(Resource::Events, Action::Create)?;
        let warnings = self.warnings_of_topics([&new.event]);
        check_consumer(&new.consumer)?;
        let pattern = TopicPattern::parse(&new.event).map_err(|error| refused("event", error.message))?;
        if !is_built_in(&new.handler) {
            let message =
                format!("`handler` is one of {}. Blocks declare subscriptions of their own.", BUILT_IN_HANDLERS.join(", "));
            return Err(refused("handler", message));
        }
        may_subscribe(caller, &pattern)?;
        let config = Value::Object(new.config);
        match new.handler.as_str() {
            PERSIST_EVENT => {
                let persist = PersistConfig::read(&config)?;
                caller.require(&persist.object, Action::Create)?;
                persist.check(&self.registry())?;
                if new.per_instance {
                    return Err(refused("perInstance", PERSIST_PER_INSTANCE.to_owned()));
                }
            }
            _ if config.as_object().is_some_and(|config| !config.is_empty()) => {
                return Err(refused("config", format!("`{}` takes no configuration.", new.handler)));
            }
            _ => {}
        }
        let row = SubscriptionRow {
            consumer: new.consumer,
            topic: new.event,
            handler: new.handler,
            config: config.to_string(),
            per_instance: new.per_instance,
            source: None,
            maker: caller.maker(),
            suspension: None,
        };
        let answer = Answered { data: SubscriptionAnswer::from(&row), warnings };
        self.store
            .write(self.by(caller), move |connection| {
                Box::pin(async move {
                    keep_maker(connection, &row.maker).await?;
                    connection.raise_version("subscriptions").await?;
                    if connection.subscriptions().await?.len() >= SUBSCRIPTIONS_MAX {
                        let message = format!("There are {SUBSCRIPTIONS_MAX} subscriptions, the most that there can be.");
                        return Err(Error::new(Code::Conflict, message));
                    }
                    let consumer = row.consumer.clone();
                    match connection.insert_subscription(row).await? {
                        true => Ok(()),
                        false => {
                            Err(Error::new(Code::UniqueViolation, format!("There is a consumer group `{consumer}` already."))
                                .with_field("consumer"))
                        }
                    }
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        Ok(answer)
    }

    /// Deletes a subscription that was made over the API; what it still had to get is dropped.
    ///
    /// # Errors
    /// `forbidden` where the caller does not hold the rights that it carries; `conflict` for one that a block declared.
    pub async fn delete_subscription(&self, caller: &Caller, consumer: &str) -> Result<()> {
        caller.require(Resource::Events, Action::Delete)?;
        let (consumer, caller) = (consumer.to_owned(), caller.clone());
        self.store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    let row = connection.subscription(&consumer).await?.ok_or_else(|| Error::not_found("subscription"))?;
                    may_act(&caller, &row)?;
                    match connection.delete_subscription(&consumer).await? {
                        true => Ok(()),
                        false => Err(Error::new(Code::Conflict, "A block declared this subscription; it goes with the block.")),
                    }
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        self.group_gone.notify_one();
        Ok(())
    }

    /// Brings what is kept of the subscriptions up to the database.
    pub(crate) async fn refresh_subscriptions(&self) -> Result<()> {
        let fresh = self
            .store
            .read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Subscriptions::load(connection).await }))
            .await?;
        let mut known = self.subscriptions.write();
        // Of two refreshes at the same time the older may come last.
        if fresh.version >= known.version {
            *known = Arc::new(fresh);
        }
        let version = known.version;
        drop(known);
        self.subscriptions_changed.send_replace(version);
        Ok(())
    }

    /// Drops what groups still had to get that are no more: how many deliveries. In small transactions, so that writes go on.
    pub async fn sweep_deliveries(&self) -> Result<u64> {
        let (gone, up_to) = self
            .store
            .read_as_service(ReadCost::Scan, |connection| {
                Box::pin(async move {
                    let unsettled = connection.groups_unsettled().await?;
                    let known: HashSet<String> = connection
                        .subscriptions()
                        .await?
                        .into_iter()
                        .map(|row| row.consumer)
                        .chain(connection.webhooks().await?.into_iter().map(|row| format!("{WEBHOOK_CONSUMER}{}", row.id)))
                        .collect();
                    let up_to = connection.last_event_seq().await?;
                    Ok((unsettled.into_iter().filter(|group| !known.contains(group)).collect::<Vec<_>>(), up_to))
                })
            })
            .await?;
        let mut dropped = 0;
        for consumer in gone {
            loop {
                let drop = || {
                    let group = consumer.clone();
                    self.store.write(Service, move |connection| {
                        Box::pin(async move { Ok(connection.drop_deliveries(&group, up_to, DROPPED_AT_ONCE).await?) })
                    })
                };
                match self.until_uncontended(drop).await? {
                    0 => break,
                    now => dropped += now,
                }
            }
        }
        Ok(dropped)
    }
}

/// Deliveries dropped in one transaction.
const DROPPED_AT_ONCE: i64 = 500;
