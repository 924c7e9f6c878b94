//! Decides whether an event may be delivered, at the moment of the delivery. The queue may contain events that the group no longer gets:
//! its topics were narrowed, it has another maker, or the maker may read less.
//!
//! If the maker lacks a right, the attempt fails and is retried. If the server held these deliveries back instead, their events would
//! stay in the outbox without a bound.

use std::borrow::Cow;
use std::sync::Arc;

use blockbase_schema::Result;
use blockbase_store::ClaimedEvent;

use crate::App;
use crate::access::suspension::{reason, stopped};
use crate::base::topic::Topic;
use crate::caller::maker_rights::MakerRights;
use crate::delivery::shown::{EventView, VisibleParts};
use crate::state::routing::{Subscription, WEBHOOK_CONSUMER};

const OTHER_TOPIC: &str = "Skipped: the group does not subscribe to this topic any more.";
const NOT_VISIBLE: &str = "Skipped: the maker of the group may not read this event.";
const NO_TOPICS: &str = "The topics of this group cannot be read by this version of the server.";

/// The events that a consumer group gets at this moment: those of its topics, limited by its maker's rights. Every kind of target
/// uses this check.
pub struct DeliveryCheck {
    subscription: Arc<Subscription>,
    rights: MakerRights,
}

impl App {
    /// The check for a group's deliveries, from the group's present state. It costs no query while the maker is cached.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn delivery_check(&self, subscription: &Subscription) -> Result<DeliveryCheck> {
        // The group may have changed since the caller read it.
        let current = self.subscription(&subscription.consumer).unwrap_or_else(|| Arc::new(subscription.clone()));
        let rights = self.rights_of_maker(&current.maker).await?;
        Ok(DeliveryCheck { subscription: current, rights })
    }

    /// The reason why nothing is delivered to a consumer group at this moment. `None` if deliveries are possible. It costs no query
    /// while the maker is cached.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn why_stopped(&self, subscription: &Subscription) -> Result<Option<String>> {
        Ok(self.delivery_check(subscription).await?.why_stopped())
    }
}

impl App {
    /// The event as a group gets it, or the reason why the group does not get it. In that case its delivery is settled without
    /// being handed over.
    ///
    /// # Errors
    /// If the database does not answer.
    pub async fn handed_over<'e>(
        &self,
        check: &DeliveryCheck,
        event: &'e ClaimedEvent,
    ) -> Result<Result<Cow<'e, ClaimedEvent>, String>> {
        if check.is_own_test(event) {
            return Ok(Ok(Cow::Borrowed(event)));
        }
        if !check.subscription.matches(&event.topic) {
            return Ok(Err(OTHER_TOPIC.to_owned()));
        }
        let shown = match &check.rights {
            MakerRights::Unlimited => VisibleParts::Whole,
            MakerRights::Held(maker) => self.shown_of(maker, EventView::of_claimed(event)).await?,
            MakerRights::Suspended(_) => VisibleParts::Nothing,
        };
        Ok(match shown {
            VisibleParts::Whole => Ok(Cow::Borrowed(event)),
            VisibleParts::Cut(payload) => Ok(Cow::Owned(ClaimedEvent { payload, ..event.clone() })),
            VisibleParts::Nothing => Err(NOT_VISIBLE.to_owned()),
        })
    }
}

impl DeliveryCheck {
    /// The reason why the group gets no deliveries at all. They then fail and wait for another attempt. This check comes first, so that
    /// no event is skipped because the maker lacks a right only for a moment.
    pub fn why_stopped(&self) -> Option<String> {
        if self.subscription.patterns().is_empty() {
            return Some(NO_TOPICS.to_owned());
        }
        let what = if self.subscription.is_webhook() { "webhook" } else { "subscription" };
        reason(&self.rights, |caller| self.subscription.require_needs(caller)).map(|reason| stopped(what, reason))
    }

    /// Whether this is the test event of this webhook. It is sent regardless of the webhook's topics, and names only the caller who
    /// asked.
    fn is_own_test(&self, event: &ClaimedEvent) -> bool {
        let id = self.subscription.consumer.strip_prefix(WEBHOOK_CONSUMER);
        id.is_some() && id == Topic::tested_webhook(&event.topic)
    }
}
