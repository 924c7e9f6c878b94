//! Whether a delivery is handed over. It is judged at that moment: a queue may hold what its group does not get any more, because
//! its topics were narrowed, somebody else is its maker, or the maker may read less.

use std::sync::Arc;

use blockbase_schema::Result;
use blockbase_store::ClaimedEvent;

use crate::App;
use crate::access::suspension::{reason, stopped};
use crate::base::topic::Topic;
use crate::caller::maker_rights::MakerRights;
use crate::delivery::feed::may_see;
use crate::state::routing::{Subscription, WEBHOOK_CONSUMER};

const OTHER_TOPIC: &str = "Skipped: the group does not subscribe to this topic any more.";
const NOT_VISIBLE: &str = "Skipped: whoever made the group may not read this event.";
const NO_TOPICS: &str = "The topics of this group cannot be read by this version of the server.";

/// What a consumer group gets at this moment: its topics, and what its maker may do. Every target is asked of it.
pub struct DeliveryCheck {
    subscription: Arc<Subscription>,
    rights: MakerRights,
}

impl App {
    /// The check of a group's deliveries, by the group as it is now. It costs no query while the maker is known.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn delivery_check(&self, subscription: &Subscription) -> Result<DeliveryCheck> {
        // The group may have changed since the caller read it.
        let current = self.subscription(&subscription.consumer).unwrap_or_else(|| Arc::new(subscription.clone()));
        let rights = self.rights_of_maker(&current.maker).await?;
        Ok(DeliveryCheck { subscription: current, rights })
    }

    /// Why nothing is delivered to a consumer group at this moment; `None` if deliveries are possible. It costs no query while
    /// the maker is cached.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn why_stopped(&self, subscription: &Subscription) -> Result<Option<String>> {
        Ok(self.delivery_check(subscription).await?.why_stopped())
    }
}

impl DeliveryCheck {
    /// Why nothing at all is delivered to the group: its deliveries fail, and wait for another attempt. It is asked first, so that no
    /// event is skipped because the maker lacks a right for a moment.
    pub fn why_stopped(&self) -> Option<String> {
        if self.subscription.patterns().is_empty() {
            return Some(NO_TOPICS.to_owned());
        }
        let what = if self.subscription.is_webhook() { "webhook" } else { "subscription" };
        reason(&self.rights, |caller| self.subscription.require_needs(caller)).map(|reason| stopped(what, reason))
    }

    /// Why this event is not for the group: its delivery is settled without being handed over.
    pub fn why_skipped(&self, event: &ClaimedEvent) -> Option<String> {
        if self.is_own_test(event) {
            return None;
        }
        if !self.subscription.matches(&event.topic) {
            return Some(OTHER_TOPIC.to_owned());
        }
        let is_visible = match &self.rights {
            MakerRights::Unlimited => true,
            MakerRights::Held(maker) => may_see(maker, event.object.as_deref(), event.owner.as_deref()),
            MakerRights::Suspended(_) => false,
        };
        (!is_visible).then(|| NOT_VISIBLE.to_owned())
    }

    /// Whether it is the event by which somebody tests this webhook: it goes there whatever the webhook subscribed to, and says
    /// only who asked.
    fn is_own_test(&self, event: &ClaimedEvent) -> bool {
        let id = self.subscription.consumer.strip_prefix(WEBHOOK_CONSUMER);
        id.is_some() && id == Topic::tested_webhook(&event.topic)
    }
}
