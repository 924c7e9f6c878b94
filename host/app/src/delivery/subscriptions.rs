//! Subscriptions: the events of each consumer group, and their handlers.

use std::collections::HashSet;

use blockbase_query::Action;
use blockbase_query::topic::{Reach, TopicPattern};
use blockbase_schema::{Code, Error, Resource, Result};
use blockbase_store::{Connection, Maker, ReadCost, Service, SubscriptionRow, Suspension, Thing, ThingKind};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::App;
use crate::access::makers::{SendsEvents, declared_by_none, keep_maker};
use crate::base::answer::{AnyObject, SuspensionAnswer};
use crate::base::stored::Place;
use crate::caller::Caller;
use crate::delivery::retries::MAIL_KEPT_MS;
use crate::outbox::audit::{Act, AuditAction};
use crate::state::acts_later::{ActsLater, StoredThing, SuspensionCheck, suspension_checks};
use crate::state::persist_config::{PERSIST_EVENT, PersistConfig};
use crate::state::routing::{
    BUILT_IN_HANDLERS, MAIL_CONSUMER, PERSIST_PER_INSTANCE, WEBHOOK_CONSUMER, is_built_in, may_act_on, may_change_stored,
    may_subscribe,
};

/// The maximum length of a consumer group's name, in bytes.
pub const CONSUMER_BYTES_MAX: usize = 100;
/// The maximum number of subscriptions that can be created over the API.
const SUBSCRIPTIONS_MAX: usize = 1000;

/// The members of a new subscription.
#[derive(Clone, Debug)]
pub struct NewSubscription {
    /// The topic pattern.
    pub event: String,
    pub consumer: String,
    pub handler: String,
    pub config: Map<String, Value>,
    pub per_instance: bool,
}

/// The answer to a creation or a change, with warnings about possible mistakes.
#[derive(Clone, Debug, Serialize)]
pub struct WithWarnings<T> {
    pub data: T,
    /// Warnings as sentences. The list is empty if there is no warning.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The events that a consumer group gets, and their handler.
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
    /// `block:<name>` if a block declared it.
    source: Option<String>,
    suspended: Option<SuspensionAnswer>,
}

impl From<&SubscriptionRow> for SubscriptionAnswer {
    fn from(row: &SubscriptionRow) -> SubscriptionAnswer {
        SubscriptionAnswer {
            event: row.topic.clone(),
            consumer: row.consumer.clone(),
            handler: row.handler.clone(),
            config: Value::Object(Place::new("svc_subscriptions", "config", &row.consumer).read(&row.config)),
            per_instance: row.per_instance,
            source: row.source.clone(),
            suspended: row.suspension.map(SuspensionAnswer::from),
        }
    }
}

fn refused(field: &str, message: String) -> Error {
    Error::new(Code::InvalidValue, message).with_field(field)
}

/// Checks that a consumer group may have this name, and that it is not the name of a webhook's group.
///
/// # Errors
/// `invalid_value`, which explains the allowed names.
pub fn check_consumer(consumer: &str) -> Result<()> {
    let fits = consumer.starts_with(|first: char| first.is_ascii_lowercase())
        && consumer.len() <= CONSUMER_BYTES_MAX
        && consumer.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-:.".contains(&byte));
    if fits && !consumer.starts_with(WEBHOOK_CONSUMER) && consumer != MAIL_CONSUMER {
        return Ok(());
    }
    Err(refused(
        "consumer",
        format!(
            "`consumer` has to begin with a lowercase letter. It takes lowercase letters, digits, `_`, `-`, `.` and `:`, \
             {CONSUMER_BYTES_MAX} characters at most. It must not begin with `{WEBHOOK_CONSUMER}` or be `{MAIL_CONSUMER}`."
        ),
    ))
}

/// Requires the rights that a stored subscription needs: to read its events, and to create the records that it writes.
///
/// # Errors
/// `forbidden`, which names the right that the caller lacks.
pub(crate) fn may_act(caller: &Caller, row: &SubscriptionRow) -> Result<()> {
    // This server does not serve a pattern that it cannot read.
    if let Ok(pattern) = TopicPattern::parse(&row.topic) {
        may_act_on(caller, &pattern, &row.maker)?;
    }
    if row.handler != PERSIST_EVENT {
        return Ok(());
    }
    let config = Place::new("svc_subscriptions", "config", &row.consumer).found(&row.config);
    match config.and_then(|config| PersistConfig::read(&config).ok()) {
        Some(config) => caller.require(&config.object, Action::Create),
        // A newer server wrote this target, or it is damaged. The server does not know what it does, so the caller needs the
        // right to write anywhere.
        None => caller.require("*", Action::Create),
    }
}

impl StoredThing for SubscriptionRow {
    fn id(&self) -> &str {
        &self.consumer
    }

    fn maker(&self) -> Maker {
        self.maker.clone()
    }

    fn suspension(&self) -> Option<Suspension> {
        self.suspension
    }

    /// The rights that the maker needs.
    fn needs(&self, _app: &App, caller: &Caller) -> Result<()> {
        may_act(caller, &SubscriptionRow { maker: caller.maker(), ..self.clone() })
    }
}

impl SendsEvents for SubscriptionRow {
    fn may_change(&self, caller: &Caller) -> Result<()> {
        may_act(caller, self)?;
        may_change_stored(caller, &self.topic, &self.maker)
    }
}

/// Subscriptions, as a kind of things that act later.
pub(crate) struct MadeSubscriptions;

impl ActsLater for MadeSubscriptions {
    fn kind(&self) -> ThingKind {
        ThingKind::Subscription
    }

    fn list<'a>(&'a self, connection: &'a mut Connection) -> BoxFuture<'a, Result<Vec<SuspensionCheck>>> {
        Box::pin(async move { Ok(suspension_checks(connection.subscriptions().await?)) })
    }

    fn carried<'a>(
        &'a self,
        app: &'a App,
        connection: &'a mut Connection,
        caller: &'a Caller,
        id: &'a str,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            match connection.subscription(id).await? {
                Some(row) => row.may_adopt(app, connection, caller).await,
                None => Ok(()),
            }
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
    /// Warnings about topic patterns that match nothing at this moment, without duplicates.
    pub(crate) fn warnings_of_topics<'t>(&self, topics: impl IntoIterator<Item = &'t String>) -> Vec<String> {
        let registry = self.registry();
        let (mut warnings, mut seen) = (Vec::new(), HashSet::new());
        for topic in topics.into_iter().filter(|topic| seen.insert(topic.as_str())) {
            let Ok(pattern) = TopicPattern::parse(topic) else { continue };
            if let Reach::Object(object) = pattern.reach()
                && registry.object(object).is_none_or(|object| object.is_users())
            {
                warnings.push(format!("There is no object `{object}`: `{topic}` matches nothing until there is one."));
            }
        }
        warnings
    }

    /// All stored subscriptions except those of webhooks.
    pub async fn list_subscriptions(&self, caller: &Caller) -> Result<Vec<SubscriptionAnswer>> {
        caller.require(Resource::Events, Action::Read)?;
        self.settle_rights_shown(caller).await;
        let rows = self.scan(caller, |connection| Box::pin(async move { Ok(connection.subscriptions().await?) })).await?;
        Ok(rows.iter().map(SubscriptionAnswer::from).collect())
    }

    /// Adopts a subscription as it is now.
    ///
    /// # Errors
    /// `not_found`. `forbidden` if the subscription needs rights that the caller lacks, or if somebody else made it and the caller
    /// reads only a part of its object. `conflict` if a block declared it.
    pub async fn adopt_subscription(&self, caller: &Caller, consumer: &str) -> Result<SubscriptionAnswer> {
        caller.require(Resource::Events, Action::Update)?;
        self.adopt(caller, ThingKind::Subscription, consumer).await?;
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

    /// Creates a subscription with a built-in handler.
    ///
    /// # Errors
    /// `invalid_value`, which names the wrong member. `unique_violation` if the group exists. `forbidden` if the caller may not read the
    /// events, or may not write to the target.
    pub async fn create_subscription(&self, caller: &Caller, new: NewSubscription) -> Result<WithWarnings<SubscriptionAnswer>> {
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
        let answer = WithWarnings { data: SubscriptionAnswer::from(&row), warnings };
        let (auditor, made) = (self.auditor(caller), answer.data.clone());
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
                    if !connection.insert_subscription(row).await? {
                        let message = format!("There is a consumer group `{consumer}` already.");
                        return Err(Error::new(Code::UniqueViolation, message).with_field("consumer"));
                    }
                    let act = Act::new(AuditAction::Subscribe, Resource::Events, &consumer).after(&made);
                    auditor.record(connection, act).await
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        Ok(answer)
    }

    /// Deletes a subscription that was made over the API. Its pending deliveries are dropped.
    ///
    /// # Errors
    /// `forbidden` if the subscription needs rights that the caller lacks. `conflict` if a block declared it.
    pub async fn delete_subscription(&self, caller: &Caller, consumer: &str) -> Result<()> {
        caller.require(Resource::Events, Action::Delete)?;
        let (consumer, auditor, caller) = (consumer.to_owned(), self.auditor(caller), caller.clone());
        self.store
            .write(self.by(&caller), move |connection| {
                Box::pin(async move {
                    connection.raise_version("subscriptions").await?;
                    let row = connection.subscription(&consumer).await?.ok_or_else(|| Error::not_found("subscription"))?;
                    row.may_change(&caller)?;
                    if !connection.delete_subscription(&consumer).await? {
                        return Err(Error::new(Code::Conflict, "This subscription is deleted with the block that declared it."));
                    }
                    let act = Act::new(AuditAction::Unsubscribe, Resource::Events, &consumer);
                    auditor.record(connection, act.before(&SubscriptionAnswer::from(&row))).await
                })
            })
            .await?;
        self.refresh_subscriptions().await?;
        self.group_gone.notify_one();
        Ok(())
    }

    /// Drops the waiting deliveries of deleted groups, and the deliveries of mails that were not sent in time. It uses small
    /// transactions, so that writes continue. Returns their number.
    pub async fn sweep_deliveries(&self) -> Result<u64> {
        let too_late = self.clock.now() - MAIL_KEPT_MS;
        let gone = self
            .store
            .read_as_service(ReadCost::Scan, move |connection| {
                Box::pin(async move {
                    let unsettled = connection.groups_unsettled().await?;
                    let known: HashSet<String> = connection
                        .subscriptions()
                        .await?
                        .into_iter()
                        .map(|row| row.consumer)
                        .chain(connection.webhooks().await?.into_iter().map(|row| format!("{WEBHOOK_CONSUMER}{}", row.id)))
                        .collect();
                    let (last, last_too_late) =
                        (connection.last_event_seq().await?, connection.last_event_before(too_late).await?);
                    let mut gone = Vec::new();
                    for group in unsettled.into_iter().filter(|group| !known.contains(group)) {
                        let up_to = if group == MAIL_CONSUMER { last_too_late } else { last };
                        gone.push((group, up_to));
                    }
                    Ok(gone)
                })
            })
            .await?;
        let mut dropped = 0;
        for (consumer, up_to) in gone {
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

/// The number of deliveries that one transaction drops.
const DROPPED_AT_ONCE: i64 = 500;
