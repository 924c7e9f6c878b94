//! Decisions about new events, which streams share.
//!
//! Many streams show one event under the same condition, for example those of all users of a role. If the condition is about
//! related rows, each decision reads the database. So one stream reads, and the others use its result. Every such read begins
//! after the commit of the event, so a related row that was deleted before the event does not count. If a condition names its
//! reader, only the streams of this reader share its decisions.
//!
//! The streams take turns. While the statement of one stream runs, the others wait for it. If there is no answer after
//! [`ASKED_MAX`], the next stream in the queue runs the statement too. The first answer counts for all. So if all callers have
//! free places in their shares of the server, the statement usually runs once.
//!
//! A stream reads within its caller's share, so it may have to wait for a connection or for a place for its scan. Others hardly
//! wait for that:
//!
//! - The turn of a stream that does not ask the database is short ([`TURN_MAX`]), and so is the wait for such turns, for all
//!   decisions about an event together ([`TURNS_WAIT`]).
//! - A read may begin without a place for a scan. If it takes long then, the store gives it up (`CHEAP_READ` on Postgres). Once
//!   this has happened, only reads with a place ask for this decision. So the streams of a caller without free places hold up the
//!   others by one such read for each decision, and by [`TURNS_WAIT`] for each event.
//! - Once [`ALONE_AFTER`] has passed, a stream waits for nobody, for example if the statements of others fail one after the other.
//!   It then asks the database although others ask too, and begins without a place.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_query::Condition;
use blockbase_query::condition::Audience;
use blockbase_schema::Result;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, SetOnce};

/// How long after an event its decisions are shared, in milliseconds. A stream that comes to the event later reads the present
/// rows by itself. So if the database needs longer for each event than passes between two events, the streams fall behind until
/// they no longer share.
const SHARED_MS: i64 = 2_000;
/// How long it is the turn of one stream while nobody asks the database, because the stream has no connection yet, or no place
/// for its scan. It is less than [`TURNS_WAIT`], so that one such stream does not use up the wait of all others.
const TURN_MAX: Duration = Duration::from_millis(25);
/// How long one stream waits while nobody asks the database, for all its decisions about one event. Then it reads without its
/// turn.
const TURNS_WAIT: Duration = Duration::from_millis(50);
/// How long others wait for a statement that runs. Then the next stream asks the database too.
const ASKED_MAX: Duration = Duration::from_secs(1);
/// How long after it came to an event a stream may still wait for others. Later, it reads within its caller's share, and only
/// takes the decision of others if that is known first.
const ALONE_AFTER: Duration = Duration::from_millis(SHARED_MS as u64);
/// The maximum number of events whose decisions are in memory. If there are more, those of the oldest event are dropped, and
/// streams that are further behind read by themselves.
const EVENTS_MAX: usize = 64;
/// The maximum number of decisions about one event that are shared by the streams of several readers. It is enough for a hundred
/// roles, each with a condition on rows and one on the cells of a field, and for both images of a change. If the list is full,
/// streams with other questions read by themselves.
const DECISIONS_MAX: usize = 512;
/// The maximum number of decisions about one event that are shared by the streams of a single reader. They have a list of their
/// own, so that many readers with a stream each do not fill the other list.
const PERSONAL_MAX: usize = 512;
/// The maximum number of decisions in memory about all events together. If there are more, the personal ones of the oldest events
/// are dropped, and then whole events.
const DECISIONS_OF_ALL_MAX: usize = 8 * (DECISIONS_MAX + PERSONAL_MAX);
/// The maximum number of values in a condition whose decisions are shared. The values need most of the memory.
const VALUES_MAX: usize = 64;

/// Whether streams share the decisions about an event from this time, in milliseconds since the epoch.
pub(crate) fn is_new(occurred_at: i64, now: i64) -> bool {
    (0..SHARED_MS).contains(&(now - occurred_at))
}

/// Whether another open stream may ask about a condition with this audience. `open` is the number of all open streams, and
/// `of_reader` that of the streams of the reader who asks.
pub(crate) fn others_may_ask(audience: Audience, open: usize, of_reader: impl FnOnce() -> usize) -> bool {
    match audience {
        Audience::ManyCallers => open > 1,
        Audience::OneCaller => of_reader() > 1,
        Audience::OneRequest => false,
    }
}

/// How long a stream still waits for others because of one event.
pub(crate) struct EventWait {
    /// The rest of [`TURNS_WAIT`].
    turns: Mutex<Duration>,
    /// The time from which the stream waits for nobody.
    pub(crate) alone_from: Instant,
}

impl Default for EventWait {
    fn default() -> EventWait {
        EventWait { turns: Mutex::new(TURNS_WAIT), alone_from: Instant::now() + ALONE_AFTER }
    }
}

impl EventWait {
    /// The time for which the stream may still wait while nobody asks the database.
    fn left(&self) -> Duration {
        *self.turns.lock()
    }

    fn spend(&self, waited: Duration) {
        let mut left = self.turns.lock();
        *left = left.saturating_sub(waited);
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.alone_from
    }
}

/// Whether an image of an event meets a condition.
#[derive(Debug, PartialEq, Hash)]
pub(crate) struct ImageQuestion {
    /// The version of the schema by which the condition was read.
    schema: i64,
    /// The state of the accounts in which the question is asked. After a change of rights, the condition is read again.
    generation: u64,
    /// The image's name in the payload.
    image: &'static str,
    condition: Condition,
}

impl ImageQuestion {
    /// `None` if the condition has too many values to be kept.
    pub(crate) fn about(schema: i64, generation: u64, image: &'static str, condition: &Condition) -> Option<ImageQuestion> {
        let is_small = condition.values() <= VALUES_MAX;
        is_small.then(|| ImageQuestion { schema, generation, image, condition: condition.clone() })
    }

    fn hash_value(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// A decision. The streams that need it take turns, until one of them has read it.
pub(crate) struct SharedDecision {
    decided: SetOnce<bool>,
    /// The permit of the stream whose turn it is. It is closed when the decision is known.
    turn: Semaphore,
    asked: Mutex<Asked>,
    /// Wakes the streams that wait for an answer, when a stream stops asking without one.
    unanswered: Notify,
}

/// What was asked of the database for a decision.
#[derive(Default)]
struct Asked {
    /// The time since which a stream asks. `None` if nobody asks.
    since: Option<Instant>,
    /// Whether a read without a place for a scan was dropped before the database answered, probably because it took too long.
    needs_place: bool,
}

impl Asked {
    /// The time until which others wait for the stream that asks. `None` if they do not wait.
    fn until(&self, now: Instant) -> Option<Instant> {
        self.since.map(|since| since + ASKED_MAX).filter(|until| now < *until)
    }
}

impl Default for SharedDecision {
    fn default() -> SharedDecision {
        SharedDecision { decided: SetOnce::new(), turn: Semaphore::new(1), asked: Mutex::default(), unanswered: Notify::new() }
    }
}

/// A stream asks the database for a decision, until this is dropped.
pub(crate) struct Asking {
    decision: Arc<SharedDecision>,
    since: Instant,
    has_place: bool,
    is_answered: bool,
}

impl Asking {
    /// The database's answer: whether the image meets the condition. If it is an error, the read was not dropped for taking too
    /// long.
    ///
    /// # Errors
    /// That of the answer.
    pub(crate) fn answered(mut self, met: Result<bool>) -> Result<Answer> {
        self.is_answered = true;
        Ok(Answer { met: met?, _asking: self })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut asked = self.decision.asked.lock();
        if self.decision.decided.initialized() {
            return;
        }
        asked.needs_place |= !self.has_place && !self.is_answered;
        // After `ASKED_MAX`, another stream may ask too.
        if asked.since == Some(self.since) {
            asked.since = None;
        }
        drop(asked);
        self.decision.unanswered.notify_waiters();
    }
}

/// An answer of the database. Its stream counts as asking until this is dropped, when the decision is known.
pub(crate) struct Answer {
    met: bool,
    _asking: Asking,
}

impl SharedDecision {
    /// Whether a read needs a place for a scan before it asks the database. It does not from `alone_from`.
    pub(crate) fn needs_place(&self, alone_from: Instant) -> bool {
        self.asked.lock().needs_place && Instant::now() < alone_from
    }

    /// Begins to ask the database, for a read that has a connection. `has_place` says whether it has a place for a scan too.
    ///
    /// `None` if the decision is known, and before `alone_from` also if another stream asks or the read lacks a place.
    pub(crate) fn ask(self: &Arc<Self>, has_place: bool, alone_from: Instant) -> Option<Asking> {
        let mut asked = self.asked.lock();
        let since = Instant::now();
        let is_asked = asked.until(since).is_some();
        let waits = is_asked || (asked.needs_place && !has_place);
        if self.decided.initialized() || (waits && since < alone_from) {
            return None;
        }
        // Others do not wait longer because of a stream that asks beside another one.
        if !is_asked {
            asked.since = Some(since);
        }
        Some(Asking { decision: Arc::clone(self), since, has_place, is_answered: false })
    }

    /// The time until which others wait for the stream that asks the database. `None` if they do not wait.
    fn asked_until(&self) -> Option<Instant> {
        self.asked.lock().until(Instant::now())
    }

    /// The decision. If no stream knows it, the answer to `read` becomes the decision. `read` begins when it is the turn of this
    /// stream, or when its `wait` is spent. The result of `read` is `None` if it must not ask the database
    /// ([`SharedDecision::ask`]). If `read` fails, or if the stream is closed meanwhile, it is the turn of the next stream.
    ///
    /// # Errors
    /// Those of `read`.
    pub(crate) async fn get_or<R>(&self, wait: &EventWait, read: impl Fn() -> R) -> Result<bool>
    where
        R: Future<Output = Result<Option<Answer>>>,
    {
        let mut turn = None;
        loop {
            if let Some(decided) = self.decided.get() {
                return Ok(*decided);
            }
            if turn.is_none() {
                turn = self.take_turn(wait).await;
            }
            if self.decided.initialized() {
                continue;
            }
            let unanswered = self.unanswered.notified();
            if let Some(until) = self.asked_until().filter(|_| !wait.is_over()) {
                // A stream without the turn came first. If that one fails, this stream asks next, because it keeps the turn.
                tokio::select! {
                    _ = self.decided.wait() => {}
                    () = unanswered => {}
                    () = tokio::time::sleep_until(until.min(wait.alone_from).into()) => {}
                }
                continue;
            }
            let Some(Answer { met, _asking }) = self.read_in(&mut turn, wait, read()).await? else { continue };
            // If this fails, another stream has set it. All streams use the first answer.
            let _ = self.decided.set(met);
            self.turn.close();
        }
    }

    /// Waits for the turn of this stream. `None` if it reads without its turn, because it no longer waits for others, or if the
    /// decision is known.
    async fn take_turn(&self, wait: &EventWait) -> Option<SemaphorePermit<'_>> {
        if let Ok(turn) = self.turn.try_acquire() {
            return Some(turn);
        }
        // The stream keeps its place in the queue in all rounds of the loop.
        let mut turn = pin!(self.turn.acquire());
        loop {
            let unanswered = self.unanswered.notified();
            let (begun, asked_until) = (Instant::now(), self.asked_until());
            let until = asked_until.unwrap_or_else(|| begun + wait.left()).min(wait.alone_from);
            if until <= begun {
                return None;
            }
            let taken = tokio::select! {
                biased;
                taken = &mut turn => Some(taken),
                () = unanswered => None,
                () = tokio::time::sleep_until(until.into()) => None,
            };
            if asked_until.is_none() {
                // A stream may have begun to ask meanwhile. The wait for its answer does not count.
                let since = self.asked.lock().since;
                let ended = since.filter(|since| *since > begun).unwrap_or_else(Instant::now);
                wait.spend(ended.duration_since(begun));
            }
            if let Some(taken) = taken {
                return taken.ok();
            }
        }
    }

    /// The result of `read`. `None` if it must not ask the database, or if another stream has read the decision meanwhile. This
    /// stream loses its `turn` if it does not ask the database after [`TURN_MAX`], or has no answer after [`ASKED_MAX`].
    ///
    /// The result is also `None` if the read waits for a place when the stream's wait ends. The next one begins without a place.
    async fn read_in(
        &self,
        turn: &mut Option<SemaphorePermit<'_>>,
        wait: &EventWait,
        read: impl Future<Output = Result<Option<Answer>>>,
    ) -> Result<Option<Answer>> {
        let mut read = pin!(read);
        let mut may_wait_for_place = self.needs_place(wait.alone_from);
        loop {
            tokio::select! {
                biased;
                answer = &mut read => return answer,
                _ = self.decided.wait() => return Ok(None),
                () = tokio::time::sleep_until(wait.alone_from.into()), if may_wait_for_place => {
                    if self.asked_until().is_none() {
                        return Ok(None);
                    }
                    // This stream may be the one that asks.
                    may_wait_for_place = false;
                }
                () = tokio::time::sleep(TURN_MAX), if turn.is_some() => {
                    if self.asked_until().is_none() {
                        *turn = None;
                    }
                }
            }
        }
    }
}

/// The decisions about the newest events, by the events' numbers.
#[derive(Default)]
pub(crate) struct EventDecisions(Mutex<BTreeMap<i64, OfEvent>>);

struct OfEvent {
    occurred_at: i64,
    common: Vec<KnownDecision>,
    personal: Vec<KnownDecision>,
}

impl OfEvent {
    fn new(occurred_at: i64) -> OfEvent {
        OfEvent { occurred_at, common: Vec::new(), personal: Vec::new() }
    }

    fn known(&self, hash: u64, question: &ImageQuestion) -> Option<&Arc<SharedDecision>> {
        let list = if question.condition.is_personal() { &self.personal } else { &self.common };
        let known = list.iter().find(|known| known.hash == hash && known.question == *question)?;
        Some(&known.decision)
    }

    fn len(&self) -> usize {
        self.common.len() + self.personal.len()
    }

    /// Adds a decision that nobody knows yet. `None` if there is no room for it.
    fn add(&mut self, hash: u64, question: ImageQuestion) -> Option<Arc<SharedDecision>> {
        let (list, most) = match question.condition.is_personal() {
            true => (&mut self.personal, PERSONAL_MAX),
            false => (&mut self.common, DECISIONS_MAX),
        };
        if list.len() >= most {
            return None;
        }
        let decision = Arc::<SharedDecision>::default();
        list.push(KnownDecision { hash, question, decision: Arc::clone(&decision) });
        Some(decision)
    }
}

/// A decision with its question.
struct KnownDecision {
    /// The hash of the question. All streams search the list, and comparing two hashes takes less time than two conditions.
    hash: u64,
    question: ImageQuestion,
    decision: Arc<SharedDecision>,
}

impl EventDecisions {
    /// The decision about the event with the number `seq`, if a stream has asked the question before.
    pub(crate) fn known(&self, seq: i64, question: &ImageQuestion) -> Option<Arc<SharedDecision>> {
        let hash = question.hash_value();
        self.0.lock().get(&seq)?.known(hash, question).cloned()
    }

    /// The decision about the event with the number `seq`, which occurred a moment before `now`. `None` if the event has too many
    /// of them.
    pub(crate) fn of(&self, seq: i64, occurred_at: i64, now: i64, question: ImageQuestion) -> Option<Arc<SharedDecision>> {
        // Decisions that left the lists. They are dropped after the lock is released.
        let (mut removed, mut removed_personal) = (Vec::new(), Vec::new());
        let hash = question.hash_value();
        let mut events = self.0.lock();
        let event = events.entry(seq).or_insert_with(|| OfEvent::new(occurred_at));
        if let Some(known) = event.known(hash, &question) {
            return Some(Arc::clone(known));
        }
        let decision = event.add(hash, question)?;
        while events.len() > EVENTS_MAX
            || events.first_key_value().is_some_and(|(first, event)| *first != seq && !is_new(event.occurred_at, now))
        {
            removed.extend(events.pop_first());
        }
        let count = |events: &BTreeMap<i64, OfEvent>| events.values().map(OfEvent::len).sum::<usize>();
        // Fewer streams need the personal decisions. So readers with such conditions do not displace what many streams share.
        let mut excess = count(&events).saturating_sub(DECISIONS_OF_ALL_MAX);
        for event in events.values_mut() {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(event.personal.len());
            removed_personal.append(&mut event.personal);
        }
        while count(&events) > DECISIONS_OF_ALL_MAX {
            removed.extend(events.pop_first());
        }
        Some(decision)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use blockbase_query::{Action, Bounds, Decision, Permissions, Reading, Variables, read_condition};
    use blockbase_schema::{Error, Registry, Relation, Relationship, StoredObject};
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;

    fn question(condition: Condition) -> ImageQuestion {
        ImageQuestion { schema: 1, generation: 1, image: "after", condition }
    }

    /// A condition on the tasks of a team.
    fn of_team(text: &str) -> Condition {
        let object = |id: i64, name: &str| StoredObject {
            id,
            revision: 1,
            keys: vec![1],
            definition: serde_json::from_value(json!({ "name": name, "fields": [{ "name": "name", "type": "text" }] }))
                .expect("a definition"),
            since: Default::default(),
        };
        let team = json!({ "name": "team", "kind": "many_to_one", "source": "task", "target": "team" });
        let team = Relationship { id: 1, definition: serde_json::from_value(team).expect("a definition") };
        let registry = Registry::new(1, vec![object(1, "task"), object(2, "team")], vec![team]).expect("a registry");
        let all = |_: &Relation| {
            let every = Permissions::unrestricted().decide("team", Action::Read).and_then(Decision::plain);
            every.ok_or_else(|| Error::internal("no right"))
        };
        let variables = || Variables::of_somebody(0);
        let reading = Reading { registry: &registry, decide: &all, variables: &variables, bounds: Bounds::of_policy() };
        read_condition(registry.object("task").expect("an object"), text, &reading).expect("a condition")
    }

    #[test]
    fn many_readers_with_a_stream_each_keep_no_decisions() {
        let audience = |text: &str| of_team(text).audience();
        let (common, mine) = (audience(r#"{"team":{"name":"a"}}"#), audience(r#"{"team":{"name":"$user.id"}}"#));
        let now = audience(r#"{"team":{"created_at":{"gt":"$now"}}}"#);
        assert!(others_may_ask(common, 2, || panic!("the reader does not matter")));
        assert!(!others_may_ask(common, 1, || 1));
        assert!(!others_may_ask(mine, 1_000, || 1));
        assert!(others_may_ask(mine, 1_000, || 2));
        assert!(!others_may_ask(now, 1_000, || 1_000));
    }

    #[test]
    fn personal_decisions_take_no_place_of_common_ones() {
        let mine = of_team(r#"{"team":{"name":"$user.id"}}"#);
        let decisions = EventDecisions::default();
        let of =
            |seq, schema, condition: &Condition| decisions.of(seq, 0, 0, ImageQuestion { schema, ..question(condition.clone()) });
        for schema in 0..PERSONAL_MAX as i64 {
            assert!(of(0, schema, &mine).is_some());
        }
        assert!(of(0, -1, &mine).is_none(), "the list of personal decisions is full");
        for schema in 0..DECISIONS_MAX as i64 {
            assert!(of(0, schema, &Condition::TRUE).is_some());
        }
        assert!(of(0, -1, &Condition::TRUE).is_none(), "the list of common decisions is full");
        assert!(decisions.known(0, &ImageQuestion { schema: 0, ..question(mine.clone()) }).is_some());
        // If there are too many decisions about all events, the personal ones of the oldest event go first.
        for seq in 1..EVENTS_MAX as i64 {
            for schema in 0..PERSONAL_MAX as i64 {
                assert!(of(seq, schema, &mine).is_some());
            }
        }
        let events = decisions.0.lock();
        assert_eq!(events.len(), EVENTS_MAX);
        assert_eq!((events[&0].common.len(), events[&0].personal.len()), (DECISIONS_MAX, 0));
        assert_eq!(events[&(EVENTS_MAX as i64 - 1)].personal.len(), PERSONAL_MAX);
        assert!(events.values().map(OfEvent::len).sum::<usize>() <= DECISIONS_OF_ALL_MAX);
    }

    #[test]
    fn a_condition_with_many_values_is_not_kept() {
        let about = |values: usize| {
            let names: Vec<String> = (1..values).map(|number| format!("team {number}")).collect();
            let text = json!({ "name": "b", "team": { "name": { "in": names } } }).to_string();
            ImageQuestion::about(1, 1, "after", &of_team(&text))
        };
        assert!(about(VALUES_MAX).is_some());
        assert!(about(VALUES_MAX + 1).is_none());
    }

    #[test]
    fn only_the_same_question_about_the_same_event_has_the_same_decision() {
        let decisions = EventDecisions::default();
        let of = |seq, question| decisions.of(seq, 0, 0, question).expect("a decision");
        let first = of(7, question(Condition::TRUE));
        assert!(Arc::ptr_eq(&first, &of(7, question(Condition::TRUE))));
        for (seq, other) in [
            (8, question(Condition::TRUE)),
            (7, question(Condition::FALSE)),
            (7, ImageQuestion { image: "before", ..question(Condition::TRUE) }),
            (7, ImageQuestion { schema: 2, ..question(Condition::TRUE) }),
            (7, ImageQuestion { generation: 2, ..question(Condition::TRUE) }),
        ] {
            assert!(decisions.known(seq, &other).is_none());
            assert!(!Arc::ptr_eq(&first, &of(seq, other)));
        }
        assert!(Arc::ptr_eq(&first, &decisions.known(7, &question(Condition::TRUE)).expect("the decision")));
    }

    #[test]
    fn streams_of_a_hundred_roles_share_their_decisions() {
        const ROLES: usize = 100;
        // Each role asks about its rows and about the cells of a field, in both images.
        let questions = || {
            let conditions = (0..2 * ROLES).map(|number| Condition::All(vec![Condition::FALSE; number]));
            let of_images =
                |condition: Condition| ["before", "after"].map(|image| ImageQuestion { image, ..question(condition.clone()) });
            conditions.flat_map(of_images)
        };
        let decisions = EventDecisions::default();
        let first: Vec<_> = questions().map(|question| decisions.of(7, 0, 0, question).expect("a decision")).collect();
        for (first, question) in first.iter().zip(questions()) {
            assert!(Arc::ptr_eq(first, &decisions.known(7, &question).expect("a decision")));
            assert!(Arc::ptr_eq(first, &decisions.of(7, 0, 0, question).expect("a decision")));
        }
        assert_eq!(decisions.0.lock()[&7].common.len(), 4 * ROLES);
    }

    #[test]
    fn old_events_and_further_questions_take_no_memory() {
        let decisions = EventDecisions::default();
        let of = |seq, schema| decisions.of(seq, 0, 0, ImageQuestion { schema, ..question(Condition::TRUE) });
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
        // A new event drops those that are no longer shared.
        let later = decisions.of(1_000, SHARED_MS, SHARED_MS, question(Condition::TRUE));
        assert!(later.is_some());
        assert_eq!(decisions.0.lock().keys().copied().collect::<Vec<i64>>(), [1_000]);
        // Many events with many questions are too much, too.
        for seq in 2_000..2_000 + EVENTS_MAX as i64 {
            for schema in 0..DECISIONS_MAX as i64 {
                let question = ImageQuestion { schema, ..question(Condition::TRUE) };
                assert!(decisions.of(seq, SHARED_MS, SHARED_MS, question).is_some());
            }
        }
        let kept: Vec<usize> = decisions.0.lock().values().map(OfEvent::len).collect();
        assert_eq!(kept, vec![DECISIONS_MAX; DECISIONS_OF_ALL_MAX / DECISIONS_MAX]);
    }

    /// The decision for a stream that has not waited yet. Its read has a connection at once.
    async fn get_or(decision: &Arc<SharedDecision>, read: impl Future<Output = Result<bool>>) -> Result<bool> {
        get_or_in(decision, &EventWait::default(), read).await
    }

    /// The same for a stream that may wait as long as `wait`. It asks the database at most once.
    async fn get_or_in(
        decision: &Arc<SharedDecision>,
        wait: &EventWait,
        read: impl Future<Output = Result<bool>>,
    ) -> Result<bool> {
        let read = &Mutex::new(Some(read));
        let ask = || async move {
            let Some(asking) = decision.ask(true, wait.alone_from) else { return Ok(None) };
            let read = read.lock().take();
            let read = read.ok_or_else(|| Error::internal("this stream has asked before"))?;
            asking.answered(read.await).map(Some)
        };
        decision.get_or(wait, ask).await
    }

    /// The decision for a stream whose read gets no connection.
    async fn get_or_wait(decision: &SharedDecision) -> Result<bool> {
        decision.get_or(&EventWait::default(), std::future::pending::<Result<Option<Answer>>>).await
    }

    /// The decision for a stream of a caller without free places. Its read is given up soon, and then waits for a place.
    async fn get_or_without_place(decision: &Arc<SharedDecision>, wait: &EventWait, asked: &AtomicUsize) -> Result<bool> {
        let read = || async move {
            if !decision.needs_place(wait.alone_from)
                && let Some(_asking) = decision.ask(false, wait.alone_from)
            {
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
            std::future::pending::<Result<Option<Answer>>>().await
        };
        decision.get_or(wait, read).await
    }

    /// The wait of a stream that has waited long enough for the turns of others.
    fn spent() -> EventWait {
        let wait = EventWait::default();
        wait.spend(TURNS_WAIT);
        wait
    }

    /// A read that ends with what the test sends.
    async fn sent(answer: oneshot::Receiver<Result<bool>>) -> Result<bool> {
        answer.await.unwrap_or_else(|_| Err(Error::internal("no answer")))
    }

    /// A read that must not begin.
    async fn never() -> Result<bool> {
        panic!("another stream has read the decision")
    }

    /// A read that counts itself.
    async fn counted(reads: &AtomicUsize) -> Result<bool> {
        reads.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    #[tokio::test]
    async fn one_stream_reads_and_the_others_use_its_decision() {
        let decision = Arc::<SharedDecision>::default();
        let (answer, answered) = oneshot::channel();
        let mut first = pin!(get_or(&decision, sent(answered)));
        assert!(first.as_mut().now_or_never().is_none());
        // The second one waits for a statement that runs, so it may still wait for other streams.
        let wait = EventWait::default();
        let mut second = pin!(get_or_in(&decision, &wait, never()));
        assert!(second.as_mut().now_or_never().is_none());
        answer.send(Ok(true)).expect("the first stream reads");
        assert!(first.await.expect("a decision"));
        assert!(second.await.expect("a decision"));
        assert_eq!(wait.left(), TURNS_WAIT);
        assert!(get_or(&decision, never()).await.expect("a decision"));
    }

    #[tokio::test]
    async fn the_next_stream_reads_if_the_first_one_is_closed_or_fails() {
        let decision = Arc::<SharedDecision>::default();
        let (_answer, answered) = oneshot::channel();
        let mut closed = Box::pin(get_or(&decision, sent(answered)));
        assert!(closed.as_mut().now_or_never().is_none());
        let mut failing = pin!(get_or(&decision, async { Err(Error::internal("no database")) }));
        assert!(failing.as_mut().now_or_never().is_none());
        drop(closed);
        assert!(failing.await.is_err());
        assert!(get_or(&decision, async { Ok(true) }).await.expect("a decision"));
        assert!(get_or(&decision, never()).await.expect("a decision"));
    }

    #[tokio::test]
    async fn no_stream_asks_what_another_one_is_asking() {
        let decision = Arc::<SharedDecision>::default();
        let (answer, answered) = oneshot::channel();
        let mut first = pin!(get_or(&decision, sent(answered)));
        assert!(first.as_mut().now_or_never().is_none());
        let wait = spent();
        let mut impatient: Vec<_> = (0..3).map(|_| Box::pin(get_or_in(&decision, &wait, never()))).collect();
        for stream in &mut impatient {
            assert!(stream.as_mut().now_or_never().is_none());
        }
        // A read that waited for its connection meanwhile does not ask either.
        assert!(decision.ask(true, wait.alone_from).is_none());
        answer.send(Ok(true)).expect("the first stream reads");
        assert!(first.await.expect("a decision"));
        for stream in impatient {
            assert!(stream.await.expect("a decision"));
        }
        assert!(decision.ask(true, wait.alone_from).is_none());
    }

    #[tokio::test]
    async fn one_of_many_impatient_streams_asks_if_the_one_that_asked_fails_or_is_closed() {
        for is_closed in [false, true] {
            let decision = Arc::<SharedDecision>::default();
            let (answer, answered) = oneshot::channel();
            let mut first = Box::pin(get_or(&decision, sent(answered)));
            assert!(first.as_mut().now_or_never().is_none());
            let (wait, reads) = (spent(), AtomicUsize::new(0));
            let mut others = [0; 3].map(|_| Box::pin(get_or_in(&decision, &wait, counted(&reads))));
            for stream in &mut others {
                assert!(stream.as_mut().now_or_never().is_none());
            }
            if is_closed {
                drop(first);
            } else {
                answer.send(Err(Error::internal("no database"))).expect("the first stream reads");
                assert!(first.await.is_err());
            }
            let [second, third, fourth] = others;
            let decided = tokio::join!(second, third, fourth);
            assert!(decided.0.expect("a decision") && decided.1.expect("a decision") && decided.2.expect("a decision"));
            assert_eq!(reads.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test]
    async fn one_of_many_impatient_streams_asks_next_although_another_one_has_the_turn() {
        let decision = Arc::<SharedDecision>::default();
        let mut slow = Box::pin(get_or_wait(&decision));
        assert!(slow.as_mut().now_or_never().is_none());
        // This one does not wait for the turn. It gets a connection first.
        let (wait, reads) = (spent(), AtomicUsize::new(0));
        let mut asking = Box::pin(get_or_in(&decision, &wait, std::future::pending()));
        assert!(asking.as_mut().now_or_never().is_none());
        let mut others = [0; 3].map(|_| Box::pin(get_or_in(&decision, &wait, counted(&reads))));
        for stream in &mut others {
            assert!(stream.as_mut().now_or_never().is_none());
        }
        drop(asking);
        let [second, third, fourth] = others;
        let decided = tokio::join!(slow, second, third, fourth);
        assert!(decided.0.expect("a decision") && decided.1.expect("a decision"));
        assert!(decided.2.expect("a decision") && decided.3.expect("a decision"));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn one_more_stream_asks_if_an_answer_takes_too_long() {
        let decision = Arc::<SharedDecision>::default();
        let mut slow = Box::pin(get_or(&decision, std::future::pending()));
        assert!(slow.as_mut().now_or_never().is_none());
        let reads = AtomicUsize::new(0);
        let [second, third, fourth] = [0; 3].map(|_| get_or(&decision, counted(&reads)));
        // The slow one gives up its own read for the decision of another one.
        let decided = tokio::join!(slow, second, third, fourth);
        assert!(decided.0.expect("a decision") && decided.1.expect("a decision"));
        assert!(decided.2.expect("a decision") && decided.3.expect("a decision"));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn the_streams_of_a_caller_without_places_ask_only_once_for_all() {
        let decision = Arc::<SharedDecision>::default();
        let (wait, asked) = (EventWait::default(), AtomicUsize::new(0));
        let mut without_place: Vec<_> = (0..100).map(|_| Box::pin(get_or_without_place(&decision, &wait, &asked))).collect();
        for stream in &mut without_place {
            assert!(stream.as_mut().now_or_never().is_none());
        }
        // This one comes last in the queue. It does not wait until each of the others has had its turn.
        let (last, others) = tokio::join!(get_or(&decision, async { Ok(true) }), join_all(without_place));
        assert!(last.expect("a decision"));
        assert!(others.into_iter().all(|decided| decided.expect("a decision")));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_stream_with_a_place_asks_as_soon_as_a_read_without_one_is_given_up() {
        let (decision, wait) = (Arc::<SharedDecision>::default(), EventWait::default());
        let without_place = decision.ask(false, wait.alone_from).expect("nobody else asks");
        let mut stream = pin!(get_or_in(&decision, &wait, async { Ok(true) }));
        assert!(stream.as_mut().now_or_never().is_none());
        drop(without_place);
        // No further read without a place comes first.
        assert!(decision.needs_place(wait.alone_from));
        assert!(decision.ask(false, wait.alone_from).is_none());
        assert!(stream.now_or_never().expect("no further wait").expect("a decision"));
    }

    #[tokio::test]
    async fn a_read_whose_answer_is_an_error_did_not_take_too_long() {
        let (decision, wait) = (Arc::<SharedDecision>::default(), EventWait::default());
        let without_place = decision.ask(false, wait.alone_from).expect("nobody else asks");
        assert!(without_place.answered(Err(Error::internal("no database"))).is_err());
        assert!(!decision.needs_place(wait.alone_from));
        assert!(decision.ask(false, wait.alone_from).is_some());
    }

    #[tokio::test]
    async fn a_stream_that_has_waited_for_long_asks_without_a_place() {
        let decision = Arc::<SharedDecision>::default();
        drop(decision.ask(false, EventWait::default().alone_from));
        let wait = EventWait { alone_from: Instant::now() + TURN_MAX, ..EventWait::default() };
        let decision = &decision;
        // A read that needs a place gets none.
        let read = || async move {
            match decision.needs_place(wait.alone_from) {
                true => std::future::pending().await,
                false => decision.ask(false, wait.alone_from).map(|asking| asking.answered(Ok(true))).transpose(),
            }
        };
        assert!(decision.get_or(&wait, read).await.expect("a decision"));
    }

    #[tokio::test]
    async fn a_stream_that_asks_beside_another_one_prolongs_no_wait() {
        let (decision, wait) = (Arc::<SharedDecision>::default(), EventWait::default());
        let asking = decision.ask(true, wait.alone_from).expect("nobody else asks");
        let until = decision.asked_until();
        let beside = decision.ask(true, Instant::now()).expect("this stream waits for nobody");
        assert_eq!(decision.asked_until(), until);
        drop(beside);
        assert_eq!(decision.asked_until(), until);
        drop(asking);
        assert_eq!(decision.asked_until(), None);
    }

    #[tokio::test]
    async fn a_stream_that_has_waited_for_long_asks_beside_others() {
        let decision = Arc::<SharedDecision>::default();
        let mut asking = pin!(get_or(&decision, std::future::pending()));
        assert!(asking.as_mut().now_or_never().is_none());
        let alone = EventWait { alone_from: Instant::now(), ..EventWait::default() };
        let failing = get_or_in(&decision, &alone, async { Err(Error::internal("no database")) });
        assert!(failing.now_or_never().expect("no wait").is_err());
        assert!(get_or_in(&decision, &alone, async { Ok(true) }).now_or_never().expect("no wait").expect("a decision"));
        assert!(asking.await.expect("a decision"));
    }

    #[tokio::test]
    async fn a_stream_that_waits_for_a_connection_does_not_hold_up_the_others() {
        let decision = Arc::<SharedDecision>::default();
        // The first one has the turn until it has waited for too long. In the end both have the decision of the second one.
        let (first, second) = tokio::join!(get_or_wait(&decision), get_or(&decision, async { Ok(true) }));
        assert!(first.expect("a decision") && second.expect("a decision"));
    }

    #[tokio::test]
    async fn one_stream_waits_only_once_for_streams_without_a_connection() {
        let slow = [0; 3].map(|_| Arc::<SharedDecision>::default());
        let mut reads: Vec<_> = slow.iter().map(|decision| Box::pin(get_or_wait(decision))).collect();
        for read in &mut reads {
            assert!(read.as_mut().now_or_never().is_none());
        }
        let wait = EventWait::default();
        let [first, others @ ..] = &slow;
        assert!(get_or_in(first, &wait, async { Ok(true) }).await.expect("a decision"));
        assert!(wait.left().is_zero());
        for decision in others {
            let read = get_or_in(decision, &wait, async { Ok(true) });
            assert!(read.now_or_never().expect("no wait").expect("a decision"));
        }
        // A free turn is still taken.
        let free = Arc::<SharedDecision>::default();
        assert!(get_or_in(&free, &wait, async { Ok(true) }).now_or_never().expect("no wait").expect("a decision"));
        assert!(get_or_in(&free, &wait, never()).await.expect("a decision"));
    }
}
