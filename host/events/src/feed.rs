//! The feed of Postgres: the outbox read in the order of its numbers, up to where nothing is under way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use blockbase_app::App;
use blockbase_app::schema::Result;
use blockbase_store::{CommittedEvent, FEED_PAGE, FeedMark, ReadCost};

/// How often the outbox is looked at. Commits are seen within this time, on every instance.
const POLL: Duration = Duration::from_millis(20);
/// The same while there are more events than one page.
const BREATH: Duration = Duration::from_millis(5);
/// The same after a failure, so that a database that is away is not asked without pause.
const PAUSE: Duration = Duration::from_secs(1);
/// Marks kept while one transaction goes on and on.
const MARKS_MAX: usize = 1024;

/// Up to which number the outbox is settled.
///
/// A mark names a number and a transaction that began after the number was given: whoever drew it, or an earlier one, had begun
/// before. Once the oldest transaction under way is a later one, they have all ended, and no event with such a number is still to
/// come. So all instances see the events in the order of their numbers. Those of one record are numbered in the order of their
/// commits: a number is drawn while the record's lock is held.
#[derive(Default)]
struct Settled {
    marks: VecDeque<FeedMark>,
    up_to: i64,
}

impl Settled {
    /// Whether a number was given after the newest mark.
    fn is_behind(&self, last_seq: i64) -> bool {
        last_seq > self.marks.back().map_or(self.up_to, |mark| mark.last_seq)
    }

    fn mark(&mut self, mark: FeedMark) {
        let is_full = self.marks.len() == MARKS_MAX;
        match self.marks.back_mut() {
            Some(last) if is_full => *last = mark,
            _ => self.marks.push_back(mark),
        }
    }

    /// Takes the oldest transaction that is under way.
    fn settle(&mut self, oldest: u64) {
        while self.marks.front().is_some_and(|first| first.xid < oldest) {
            self.up_to = self.marks.pop_front().map_or(self.up_to, |first| first.last_seq.max(self.up_to));
        }
    }
}

/// Follows the outbox and hands what was committed to the feed of this instance. Never ends.
pub(crate) async fn follow(app: Arc<App>) {
    let mut settled = Settled::default();
    let mut after = None;
    loop {
        let pause = match next(&app, &mut settled, after).await {
            // What happened before the feed began is not its business.
            Ok(_) if after.is_none() => {
                if settled.marks.is_empty() {
                    app.feed().start_at(settled.up_to);
                    after = Some(settled.up_to);
                }
                POLL
            }
            Ok(events) => {
                let is_page = i64::try_from(events.len()) == Ok(FEED_PAGE);
                let last = events.last().map(|event| event.seq);
                if !events.is_empty() {
                    app.feed().publish(events);
                }
                after = if is_page { last } else { Some(settled.up_to) };
                if is_page { BREATH } else { POLL }
            }
            Err(error) => {
                tracing::warn!(error.cause = %error, "the outbox could not be read for the event stream");
                PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Brings what is settled up to this moment: the next events.
async fn next(app: &App, settled: &mut Settled, after: Option<i64>) -> Result<Vec<Arc<CommittedEvent>>> {
    let store = app.store();
    let last_seq =
        store.read(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.last_event_seq().await?) })).await?;
    if settled.is_behind(last_seq) {
        let mark = store.read(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.feed_mark().await?) })).await?;
        settled.mark(mark);
    }
    if !settled.marks.is_empty() {
        let oldest =
            store.read(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.oldest_transaction().await?) })).await?;
        settled.settle(oldest);
    }
    let up_to = settled.up_to;
    let Some(after) = after.filter(|after| *after < up_to) else { return Ok(Vec::new()) };
    store
        .read(ReadCost::Rows, move |connection| Box::pin(async move { Ok(connection.events_between(after, up_to).await?) }))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_settle_when_the_transactions_before_them_have_ended() {
        let mut settled = Settled::default();
        assert!(!settled.is_behind(0) && settled.is_behind(5));
        settled.mark(FeedMark { last_seq: 5, xid: 100 });
        settled.settle(100);
        assert_eq!(settled.up_to, 0, "the mark's own transaction is the oldest");
        settled.settle(101);
        assert_eq!(settled.up_to, 5);
        settled.mark(FeedMark { last_seq: 7, xid: 103 });
        settled.mark(FeedMark { last_seq: 9, xid: 106 });
        settled.settle(102);
        assert_eq!(settled.up_to, 5, "102 may have drawn 6 or 7");
        assert!(!settled.is_behind(9) && settled.is_behind(10));
        settled.settle(105);
        assert_eq!(settled.up_to, 7, "105 may have drawn 8 or 9");
        settled.settle(107);
        assert_eq!(settled.up_to, 9);
    }

    #[test]
    fn a_long_transaction_does_not_gather_marks_without_end() {
        let mut settled = Settled::default();
        for number in 1..5000_i64 {
            settled.mark(FeedMark { last_seq: number, xid: number.unsigned_abs() + 10 });
            settled.settle(1);
        }
        assert!(settled.marks.len() <= MARKS_MAX);
        settled.settle(1_000_000);
        assert_eq!(settled.up_to, 4999);
    }
}
