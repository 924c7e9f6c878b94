//! The feed of Postgres: it reads the outbox in the order of its numbers, and stops before the first number that an open
//! transaction may still use.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_app::App;
use blockbase_app::schema::Result;
use blockbase_store::{EventPage, FeedMark};

/// The interval between two reads of the outbox. Every instance sees commits within this time.
const POLL: Duration = Duration::from_millis(20);
/// The interval while more events wait than fit on one page.
const BREATH: Duration = Duration::from_millis(5);
/// The interval after a failure, so that a failing database does not get constant queries.
const PAUSE: Duration = Duration::from_secs(1);
/// The maximum number of marks that are kept while one transaction stays open.
const MARKS_MAX: usize = 1024;
/// How long a mark may wait before the log warns about it. The next constant is the interval between two warnings.
const STALLED: Duration = Duration::from_secs(10);
const WARNED_EVERY: Duration = Duration::from_secs(60);

/// The number up to which the outbox is settled.
///
/// A mark names a number and a transaction that began after the number was given. So every transaction that got this number, or
/// an earlier one, began before the mark's transaction. When the oldest open transaction is later than the mark's, all of them
/// have ended, and no event with one of these numbers can still appear. So all instances see the events in the order of their
/// numbers. The events of one record have numbers in the order of their commits, because a transaction gets its number while it
/// holds the record's lock.
#[derive(Default)]
struct Settled {
    marks: VecDeque<(FeedMark, Instant)>,
    /// `None` until the first mark is settled.
    up_to: Option<i64>,
}

impl Settled {
    /// Whether a number was given after the newest mark, or no mark exists yet.
    fn is_behind(&self, last_seq: i64) -> bool {
        let known = self.marks.back().map(|(mark, _)| mark.last_seq).or(self.up_to);
        known.is_none_or(|known| last_seq > known)
    }

    fn mark(&mut self, mark: FeedMark) {
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_back();
        }
        self.marks.push_back((mark, Instant::now()));
    }

    /// Settles the marks that are earlier than the oldest open transaction.
    fn settle(&mut self, oldest: u64) {
        while let Some((mark, _)) = self.marks.front().filter(|(mark, _)| mark.xid < oldest) {
            self.up_to = self.up_to.max(Some(mark.last_seq));
            self.marks.pop_front();
        }
    }

    /// How long the oldest mark has waited.
    fn waits_since(&self) -> Duration {
        self.marks.front().map_or(Duration::ZERO, |(_, since)| since.elapsed())
    }
}

/// Follows the outbox and gives committed events to the feed of this instance. It never ends.
pub(crate) async fn follow(app: Arc<App>) {
    let mut settled = Settled::default();
    let (mut after, mut warned) = (None, Instant::now());
    loop {
        let pause = match next(&app, &mut settled, after).await {
            Ok(page) => {
                if let (None, Some(up_to)) = (after, settled.up_to) {
                    // Events from before the feed began are skipped.
                    app.feed().start_at(up_to);
                }
                after = page.last.or(settled.up_to);
                let is_behind = after < settled.up_to;
                if !page.events.is_empty() {
                    app.feed().publish(page.events).await;
                }
                if settled.waits_since() > STALLED && warned.elapsed() > WARNED_EVERY {
                    warned = Instant::now();
                    tracing::warn!(
                        event.stalled_ms = settled.waits_since().as_millis(),
                        "the event stream waits for a transaction of the Postgres cluster that does not end; see pg_stat_activity and pg_prepared_xacts"
                    );
                }
                if is_behind { BREATH } else { POLL }
            }
            Err(error) => {
                // After a crash, Postgres may use the same transaction numbers again.
                settled.marks.clear();
                tracing::warn!(error.cause = %error, "the outbox could not be read for the event stream");
                PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Brings the settled number up to date, and returns the next events.
async fn next(app: &App, settled: &mut Settled, after: Option<i64>) -> Result<EventPage> {
    let last_seq = app.last_event_seq().await?;
    if settled.is_behind(last_seq) {
        settled.mark(app.feed_mark().await?);
    }
    if !settled.marks.is_empty() {
        settled.settle(app.oldest_transaction().await?);
    }
    let (Some(after), Some(up_to)) = (after, settled.up_to) else { return Ok(EventPage::default()) };
    if after >= up_to {
        return Ok(EventPage::default());
    }
    app.events_between(after, up_to).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_settle_when_the_transactions_before_them_have_ended() {
        let mut settled = Settled::default();
        assert!(settled.is_behind(0), "without a mark, the first one is always taken");
        settled.mark(FeedMark { last_seq: 5, xid: 100 });
        settled.settle(100);
        assert_eq!(settled.up_to, None, "the mark's own transaction is the oldest");
        settled.mark(FeedMark { last_seq: 6, xid: 102 });
        settled.settle(101);
        assert_eq!(settled.up_to, Some(5), "the oldest mark is settled, although there are younger ones");
        settled.mark(FeedMark { last_seq: 9, xid: 106 });
        settled.settle(102);
        assert_eq!(settled.up_to, Some(5), "102 may have drawn 6");
        assert!(!settled.is_behind(9) && settled.is_behind(10));
        settled.settle(105);
        assert_eq!(settled.up_to, Some(6), "105 may have drawn 7 to 9");
        settled.settle(107);
        assert_eq!(settled.up_to, Some(9));
        assert!(!settled.is_behind(9) && settled.is_behind(10));
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
        assert_eq!(settled.up_to, Some(4999));
    }
}
