//! Decisions about new events, which streams share.
//!
//! Many streams show one event under the same condition, for example those of all users of a role. If the condition is about
//! related rows, each decision reads the database. So the first stream that needs a decision reads, and the others use its
//! result. All of these reads begin after the event's commit, so an event never meets a condition by a row that was gone before
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockbase_query::Condition;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// How long after an event its decisions are shared, in milliseconds. A stream that is later reads the present rows by itself.
pub(crate) const SHARED_MS: i64 = 2_000;
/// The maximum number of events whose decisions are in memory. If there are more, those of the oldest event are dropped, and
/// streams that are further behind read by themselves.
const EVENTS_MAX: usize = 64;
/// The maximum number of shared decisions about one event. If the condition names the reader, each reader has another one. Then
/// it costs more to look for a shared decision than it saves.
const DECISIONS_MAX: usize = 256;

/// Whether an image of an event meets a condition.
#[derive(Debug, PartialEq)]
pub(crate) struct ImageQuestion {
    /// The version of the schema by which the condition was read.
    pub(crate) schema: i64,
    /// The image's name in the payload.
    pub(crate) image: &'static str,
    pub(crate) condition: Condition,
}

/// A decision. The first stream that waits for it reads it. If that read fails or is dropped, the next one reads.
pub(crate) type SharedDecision = Arc<OnceCell<bool>>;

/// The decisions about the newest events, by the events' numbers.
#[derive(Default)]
pub(crate) struct EventDecisions(Mutex<BTreeMap<i64, Vec<Asked>>>);

struct Asked {
    question: ImageQuestion,
    decision: SharedDecision,
}

impl EventDecisions {
    /// The decision about the event with this number. `None` if the event has too many of them.
    pub(crate) fn of(&self, seq: i64, question: ImageQuestion) -> Option<SharedDecision> {
        let mut events = self.0.lock();
        let asked = events.entry(seq).or_default();
        if let Some(known) = asked.iter().find(|known| known.question == question) {
            return Some(Arc::clone(&known.decision));
        }
        if asked.len() >= DECISIONS_MAX {
            return None;
        }
        let decision = SharedDecision::default();
        asked.push(Asked { question, decision: Arc::clone(&decision) });
        if events.len() > EVENTS_MAX {
            events.pop_first();
        }
        Some(decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(condition: Condition) -> ImageQuestion {
        ImageQuestion { schema: 1, image: "after", condition }
    }

    #[test]
    fn only_the_same_question_about_the_same_event_has_the_same_decision() {
        let decisions = EventDecisions::default();
        let of = |seq, question| decisions.of(seq, question).expect("a decision");
        let first = of(7, question(Condition::TRUE));
        assert!(Arc::ptr_eq(&first, &of(7, question(Condition::TRUE))));
        for (seq, other) in [
            (8, question(Condition::TRUE)),
            (7, question(Condition::FALSE)),
            (7, ImageQuestion { image: "before", ..question(Condition::TRUE) }),
            (7, ImageQuestion { schema: 2, ..question(Condition::TRUE) }),
        ] {
            assert!(!Arc::ptr_eq(&first, &of(seq, other)));
        }
    }

    #[test]
    fn old_events_and_further_questions_take_no_memory() {
        let decisions = EventDecisions::default();
        let of = |seq, schema| decisions.of(seq, ImageQuestion { schema, ..question(Condition::TRUE) });
        let first = of(0, 0).expect("a decision");
        for schema in 1..DECISIONS_MAX as i64 {
            assert!(of(0, schema).is_some());
        }
        assert!(of(0, -1).is_none());
        for seq in 1..=EVENTS_MAX as i64 {
            assert!(of(seq, 0).is_some());
        }
        assert_eq!(decisions.0.lock().len(), EVENTS_MAX);
        assert!(!Arc::ptr_eq(&first, &of(0, 0).expect("another decision")));
    }
}
