//! Questions of streams that one statement answers.
//!
//! If a policy names its reader, the stream of each reader asks the database another question about a new event. The SQL of these
//! questions differs only in its values. While a statement answers some of them, the questions of other streams wait. The next
//! statement answers those. A question that is alone waits for nobody.
//!
//! This only saves statements. A statement that answers several questions never becomes a scan, and it uses the share of one
//! caller. So after any trouble, all streams ask by themselves, each in its caller's share: if the statement fails, costs more than
//! a few rows, or gets no connection soon. For a minute, further questions with the same SQL are not asked together at all, so that
//! not every event has the same trouble.
//!
//! A statement has no question that was asked after the statement began. So its answers are as new as those to a single question.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use blockbase_query::{Condition, Statement};
use blockbase_quota::QuotaOwner;
use blockbase_schema::Result;
use parking_lot::Mutex;
use tokio::sync::{SetOnce, oneshot};

use crate::state::event_decisions::{Answer, Asking, SharedDecision, TURNS_WAIT};

/// The maximum number of questions that one statement answers. It is a power of two.
const QUESTIONS_MAX: usize = 32;
/// The maximum number of values that one question binds. So a statement binds about 500 at most. Both engines take more than
/// 30,000.
const PARAMS_MAX: usize = 16;
/// The maximum number of bytes in the SQL of one question. SQLite takes a million for a statement.
const SQL_BYTES_MAX: usize = 4 * 1024;
/// How long streams ask by themselves after trouble.
const ALONE_FOR: Duration = Duration::from_secs(60);
/// The maximum number of texts that are remembered because of trouble. Before a further one, all are forgotten.
const ALONE_MAX: usize = 256;

/// What questions have in common if one statement can answer them.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    /// The number of the event.
    event: i64,
    /// The image's name in the payload.
    image: &'static str,
    /// The version of the schema by which the conditions were read.
    schema: i64,
    /// The text of a statement that asks one of the questions.
    sql: Arc<str>,
}

impl Kind {
    /// The kind of a question that `statement` asks. `None` if it is too large to be asked together with others.
    pub(crate) fn of(event: i64, image: &'static str, schema: i64, statement: Statement) -> Option<Kind> {
        let is_small = statement.sql.len() <= SQL_BYTES_MAX && statement.params.len() <= PARAMS_MAX;
        is_small.then(|| Kind { event, image, schema, sql: statement.sql.into() })
    }
}

/// The answer to a question. It is `None` if another stream asks for the same decision or knows it. It is an error if the stream
/// has to ask by itself.
pub(crate) type Reply = oneshot::Receiver<Option<Answer>>;

/// A stream's question: whether the image meets a condition.
struct Question {
    condition: Arc<Condition>,
    /// The owner of the share in which the stream reads.
    owner: QuotaOwner,
    /// The decision that the answer is for. Other streams may ask for it too.
    decision: Arc<SharedDecision>,
    /// The time from which the stream waits for nobody.
    alone_from: Instant,
    reply: oneshot::Sender<Option<Answer>>,
}

/// The questions that wait for a statement, and what had trouble.
pub(crate) struct AskedTogether {
    /// How long questions wait for a statement to begin while none of their kind runs, and for how long streams ask by themselves after that.
    wait: Duration,
    alone_for: Duration,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    /// The questions of each kind, oldest first. A kind is listed as long as its [`Asker`] runs.
    waiting: HashMap<Arc<Kind>, VecDeque<Question>>,
    /// The texts of questions that streams ask by themselves, each with the end of that.
    alone: HashMap<Arc<str>, Instant>,
    /// The version of the schema that these texts belong to.
    schema: i64,
}

impl Default for AskedTogether {
    fn default() -> AskedTogether {
        AskedTogether { wait: TURNS_WAIT, alone_for: ALONE_FOR, asked: Mutex::default() }
    }
}

impl AskedTogether {
    /// Adds a question of a stream that reads in the share of `owner`, and waits for nobody from `alone_from`. `None` if it has to
    /// ask by itself. If no asker has the questions of this kind answered, the result has one, which must run.
    pub(crate) fn add(
        self: &Arc<Self>,
        kind: Kind,
        owner: QuotaOwner,
        condition: Arc<Condition>,
        decision: Arc<SharedDecision>,
        alone_from: Instant,
    ) -> Option<(Reply, Option<Asker>)> {
        let (reply, answer) = oneshot::channel();
        let question = Question { condition, owner, decision, alone_from, reply };
        let mut asked = self.asked.lock();
        if asked.schema < kind.schema {
            asked.schema = kind.schema;
            asked.alone.clear();
        }
        if asked.alone.get(&kind.sql).is_some_and(|until| Instant::now() < *until) {
            return None;
        }
        if let Some(waiting) = asked.waiting.get_mut(&kind) {
            waiting.push_back(question);
            return Some((answer, None));
        }
        let kind = Arc::new(kind);
        asked.waiting.insert(Arc::clone(&kind), VecDeque::from([question]));
        drop(asked);
        Some((answer, Some(Asker { together: Arc::clone(self), kind, wait: self.wait, has_ended: false })))
    }

    /// Takes questions for a statement that begins now. Their number is a power of two, so that there are few texts to prepare. The
    /// others wait for the next statement.
    fn take(&self, kind: &Kind) -> Vec<(Question, Asking)> {
        let (mut asked, mut taken) = (self.asked.lock(), Vec::new());
        let Some(waiting) = asked.waiting.get_mut(kind) else { return taken };
        while taken.len() < QUESTIONS_MAX
            && let Some(question) = waiting.pop_front()
        {
            if question.reply.is_closed() {
                continue;
            }
            match question.decision.ask(true, question.alone_from) {
                Some(asking) => taken.push((question, asking)),
                None => drop(question.reply.send(None)),
            }
        }
        let count = taken.len().checked_ilog2().map_or(0, |log| 1_usize << log);
        for (question, _asking) in taken.drain(count..).rev() {
            waiting.push_front(question);
        }
        taken
    }

    /// After trouble, streams ask the questions of a kind by themselves, also those that wait.
    fn leave_alone(&self, kind: &Kind) {
        let mut asked = self.asked.lock();
        let waiting = asked.waiting.remove(kind);
        // A statement of an older version may have failed because of the change of the schema.
        if asked.schema == kind.schema {
            if asked.alone.len() == ALONE_MAX {
                asked.alone.clear();
            }
            asked.alone.insert(Arc::clone(&kind.sql), Instant::now() + self.alone_for);
        }
        drop(asked);
        drop(waiting);
    }
}

/// Has the questions of one kind answered, by one statement after the other, until none waits. If this is dropped before, that is
/// trouble.
pub(crate) struct Asker {
    together: Arc<AskedTogether>,
    kind: Arc<Kind>,
    /// How long each of its statements may wait until it begins.
    wait: Duration,
    has_ended: bool,
}

impl Asker {
    /// Answers all questions of the kind. `ask` runs a statement, which begins with [`Batch::begin`]. Its result has whether each
    /// condition is met, in the same order.
    pub(crate) async fn run<F>(mut self, ask: impl Fn(Arc<Batch>) -> F)
    where
        F: Future<Output = Result<Vec<bool>>>,
    {
        loop {
            // Other streams that are ready ask first, so that the statement answers their questions too.
            tokio::task::yield_now().await;
            let Some(batch) = self.next_batch() else { return };
            let met = tokio::select! {
                biased;
                met = ask(Arc::clone(&batch)) => met,
                () = batch.is_late(self.wait) => return,
                () = batch.is_needless() => continue,
            };
            let Ok(met) = met else { return };
            batch.answer(&met);
        }
    }

    /// A batch in the share of the caller who has waited longest. `None` if no question waits, and the next question then has
    /// another asker. It is also `None` if a stream gave up because the statements took too long, which is trouble.
    fn next_batch(&mut self) -> Option<Arc<Batch>> {
        let mut asked = self.together.asked.lock();
        let waiting = asked.waiting.get_mut(&self.kind)?;
        let now = Instant::now();
        if waiting.iter().any(|question| question.alone_from <= now && question.reply.is_closed()) {
            return None;
        }
        waiting.retain(|question| !question.reply.is_closed());
        let Some(owner) = waiting.front().map(|question| question.owner.clone()) else {
            asked.waiting.remove(&self.kind);
            self.has_ended = true;
            return None;
        };
        let (together, kind) = (Arc::clone(&self.together), Arc::clone(&self.kind));
        Some(Arc::new(Batch { together, kind, owner, taken: Mutex::default(), begun: SetOnce::new() }))
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        if !self.has_ended {
            self.together.leave_alone(&self.kind);
        }
    }
}

/// Questions for one statement. If this is dropped before they are answered, their streams ask by themselves.
pub(crate) struct Batch {
    together: Arc<AskedTogether>,
    kind: Arc<Kind>,
    /// The owner of the share in which the statement runs.
    pub(crate) owner: QuotaOwner,
    /// The questions that the statement answers. Their streams count as asking the database.
    taken: Mutex<Vec<(Question, Asking)>>,
    /// Is set when the statement begins.
    begun: SetOnce<()>,
}

impl Batch {
    /// Takes questions for the statement, which has a connection and begins now. Returns their conditions. There are none if no
    /// stream waits any more.
    pub(crate) fn begin(&self) -> Vec<Arc<Condition>> {
        let mut taken = self.taken.lock();
        taken.extend(self.together.take(&self.kind));
        let _ = self.begun.set(());
        taken.iter().map(|(question, _)| Arc::clone(&question.condition)).collect()
    }

    /// Resolves if the statement has not begun after `wait`.
    async fn is_late(&self, wait: Duration) {
        if tokio::time::timeout(wait, self.begun.wait()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    }

    /// Resolves if the statement has begun and no stream waits for its answers any more.
    async fn is_needless(&self) {
        self.begun.wait().await;
        poll_fn(|context| {
            let mut taken = self.taken.lock();
            let nobody_waits = taken.iter_mut().all(|(question, _)| question.reply.poll_closed(context).is_ready());
            if nobody_waits { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Answers the questions. A question without an answer is left to its stream.
    fn answer(&self, met: &[bool]) {
        let taken = std::mem::take(&mut *self.taken.lock());
        for ((question, asking), met) in taken.into_iter().zip(met) {
            if let Ok(answer) = asking.answered(Ok(*met)) {
                // The stream may have ended meanwhile.
                let _ = question.reply.send(Some(answer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use blockbase_query::Param;
    use blockbase_query::predicate::{Comparison, Predicate, Test};
    use blockbase_schema::{Error, Value};
    use tokio::sync::Semaphore;
    use tokio::task::JoinHandle;

    use super::*;

    /// Longer than any test runs.
    const LONG: Duration = Duration::from_secs(3600);
    const SQL: &str = "SELECT 1";

    /// A condition with one value.
    fn equal(value: &str) -> Condition {
        let test = Test::Compare(Comparison::Equal, Value::Text(value.to_owned()));
        Condition::Test(Predicate { column: 0, test })
    }

    /// The value of such a condition.
    fn value_of(condition: &Condition) -> String {
        match condition {
            Condition::Test(Predicate { test: Test::Compare(_, Value::Text(value)), .. }) => value.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn together() -> Arc<AskedTogether> {
        Arc::new(AskedTogether { wait: LONG, alone_for: LONG, asked: Mutex::default() })
    }

    fn kind(event: i64, sql: &str) -> Kind {
        Kind { event, image: "after", schema: 1, sql: sql.into() }
    }

    /// Asks a question of a kind, for a decision that nobody else needs.
    fn ask_in(together: &Arc<AskedTogether>, kind: Kind, value: &str) -> Option<(Reply, Option<Asker>)> {
        ask_for(together, kind, value, &Arc::default())
    }

    fn ask_for(
        together: &Arc<AskedTogether>,
        kind: Kind,
        value: &str,
        decision: &Arc<SharedDecision>,
    ) -> Option<(Reply, Option<Asker>)> {
        let owner = QuotaOwner::User(value.into());
        together.add(kind, owner, Arc::new(equal(value)), Arc::clone(decision), Instant::now() + LONG)
    }

    /// Asks a question about the first event.
    fn ask(together: &Arc<AskedTogether>, value: &str) -> (Reply, Option<Asker>) {
        ask_in(together, kind(1, SQL), value).expect("a kind without trouble")
    }

    /// Asks several questions about the first event. Returns the asker of the first one.
    fn ask_all(together: &Arc<AskedTogether>, values: &[&str]) -> (Vec<Reply>, Asker) {
        let (mut replies, mut first) = (Vec::new(), None);
        for value in values {
            let (reply, asker) = ask(together, value);
            assert_eq!(asker.is_some(), replies.is_empty(), "only the first one needs an asker");
            first = first.or(asker);
            replies.push(reply);
        }
        (replies, first.expect("an asker"))
    }

    /// The answers to several questions. `None` for a stream that has to ask by itself.
    async fn answers(replies: Vec<Reply>) -> Vec<Option<bool>> {
        let mut answers = Vec::new();
        for reply in replies {
            answers.push(reply.await.ok().map(|answer| answer.expect("no other stream asks").met));
        }
        answers
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    /// Asserts that nothing waits, and whether there was trouble.
    fn assert_ended(together: &AskedTogether, had_trouble: bool) {
        let asked = together.asked.lock();
        assert!(asked.waiting.is_empty());
        assert_eq!(asked.alone.contains_key(SQL), had_trouble);
    }

    /// A database. The answer to a question is whether its value begins with `yes`.
    struct Database {
        /// The values of each statement that has begun.
        statements: Mutex<Vec<Vec<String>>>,
        /// A permit for each statement that may end.
        ends: Semaphore,
    }

    impl Database {
        fn new(ends: usize) -> Arc<Database> {
            Arc::new(Database { statements: Mutex::default(), ends: Semaphore::new(ends) })
        }

        async fn answer(self: Arc<Self>, batch: Arc<Batch>) -> Result<Vec<bool>> {
            let values: Vec<String> = batch.begin().iter().map(|condition| value_of(condition)).collect();
            if values.is_empty() {
                return Ok(Vec::new());
            }
            self.statements.lock().push(values.clone());
            self.ends.acquire().await.map_err(Error::internal)?.forget();
            Ok(values.iter().map(|value| value.starts_with("yes")).collect())
        }

        /// Runs an asker that asks this database.
        fn run(self: &Arc<Self>, asker: Asker) -> JoinHandle<()> {
            let database = Arc::clone(self);
            tokio::spawn(asker.run(move |batch| Arc::clone(&database).answer(batch)))
        }

        fn statements(&self) -> Vec<Vec<String>> {
            self.statements.lock().clone()
        }
    }

    #[tokio::test]
    async fn questions_that_come_while_a_statement_runs_are_answered_by_the_next_one() {
        let (together, database) = (together(), Database::new(0));
        let (mut replies, asker) = ask_all(&together, &["yes 1"]);
        let run = database.run(asker);
        until(|| database.statements().len() == 1).await;
        for value in ["no 2", "yes 3", "no 4", "yes 5"] {
            let (reply, asker) = ask(&together, value);
            assert!(asker.is_none());
            replies.push(reply);
        }
        database.ends.add_permits(2);
        assert_eq!(answers(replies).await, [true, false, true, false, true].map(Some));
        run.await.expect("the end");
        assert_eq!(database.statements(), [vec!["yes 1"], vec!["no 2", "yes 3", "no 4", "yes 5"]]);
        assert_ended(&together, false);
    }

    #[tokio::test]
    async fn a_statement_answers_a_power_of_two_of_questions() {
        let (together, database) = (together(), Database::new(5));
        let values: Vec<String> = (0..2 * QUESTIONS_MAX + 7)
            .map(|number| if number % 3 == 0 { format!("yes {number}") } else { format!("no {number}") })
            .collect();
        let (replies, asker) = ask_all(&together, &values.iter().map(String::as_str).collect::<Vec<&str>>());
        database.run(asker).await.expect("the end");
        let expected: Vec<Option<bool>> = (0..values.len()).map(|number| Some(number % 3 == 0)).collect();
        assert_eq!(answers(replies).await, expected);
        let asked: Vec<usize> = database.statements().iter().map(Vec::len).collect();
        assert_eq!(asked, [QUESTIONS_MAX, QUESTIONS_MAX, 4, 2, 1]);
        assert_eq!(database.statements().concat(), values, "the oldest questions come first");
        assert_ended(&together, false);
    }

    #[tokio::test]
    async fn questions_of_different_kinds_have_statements_of_their_own() {
        let (together, database) = (together(), Database::new(3));
        let (mut replies, asker) = ask_all(&together, &["yes 1", "no 2"]);
        let mut askers = vec![asker];
        for (kind, value) in [(kind(2, SQL), "no 3"), (kind(1, "SELECT 2"), "yes 4")] {
            let (reply, asker) = ask_in(&together, kind, value).expect("a kind without trouble");
            replies.push(reply);
            askers.extend(asker);
        }
        for asker in askers {
            database.run(asker).await.expect("the end");
        }
        assert_eq!(answers(replies).await, [true, false, false, true].map(Some));
        assert_eq!(database.statements(), [vec!["yes 1", "no 2"], vec!["no 3"], vec!["yes 4"]]);
    }

    #[test]
    fn a_kind_has_one_image_and_one_text_and_is_small() {
        let statement = |sql: &str, params: usize| Statement { sql: sql.to_owned(), params: vec![Param::Text(None); params] };
        let about = |event, image, schema, sql| Kind::of(event, image, schema, statement(sql, 1));
        let known = about(1, "after", 1, "a");
        assert!(known.is_some());
        assert_eq!(known, Kind::of(1, "after", 1, statement("a", 2)), "the values do not matter");
        for (event, image, schema, sql) in
            [(2, "after", 1, "a"), (1, "before", 1, "a"), (1, "after", 2, "a"), (1, "after", 1, "b")]
        {
            let other = about(event, image, schema, sql);
            assert!(other.is_some() && other != known);
        }
        let of_size = |bytes: usize, params: usize| Kind::of(1, "after", 1, statement(&"a".repeat(bytes), params));
        assert!(of_size(SQL_BYTES_MAX, PARAMS_MAX).is_some());
        assert_eq!(of_size(SQL_BYTES_MAX + 1, 1), None);
        assert_eq!(of_size(1, PARAMS_MAX + 1), None);
    }

    #[tokio::test]
    async fn a_stream_that_ends_takes_no_answer_away_from_others() {
        // It ends before the statement begins.
        let (together, database) = (together(), Database::new(1));
        let (mut replies, asker) = ask_all(&together, &["no 1", "yes 2", "no 3", "yes 4"]);
        drop(replies.remove(2));
        drop(replies.remove(0));
        database.run(asker).await.expect("the end");
        assert_eq!(answers(replies).await, [Some(true), Some(true)]);
        assert_eq!(database.statements(), [vec!["yes 2", "yes 4"]]);

        // It ends while the statement runs in its share.
        let database = Database::new(0);
        let (mut replies, asker) = ask_all(&together, &["no 1", "yes 2"]);
        let run = database.run(asker);
        until(|| !database.statements().is_empty()).await;
        drop(replies.remove(0));
        database.ends.add_permits(1);
        assert_eq!(answers(replies).await, [Some(true)]);
        run.await.expect("the end");
        assert_ended(&together, false);
    }

    #[tokio::test]
    async fn a_statement_for_which_no_stream_waits_ends() {
        let (together, database) = (together(), Database::new(0));
        let (replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
        let run = database.run(asker);
        until(|| !database.statements().is_empty()).await;
        let (late, _) = ask(&together, "yes 3");
        drop(replies);
        // The database does not answer, so the next statement begins only if the first one has ended.
        until(|| database.statements().len() == 2).await;
        database.ends.add_permits(1);
        assert_eq!(answers(vec![late]).await, [Some(true)]);
        run.await.expect("the end");
        assert_eq!(database.statements(), [vec!["yes 1", "yes 2"], vec!["yes 3"]]);
        assert_ended(&together, false);

        // Without any stream, there is no statement.
        let (replies, asker) = ask_all(&together, &["yes 4"]);
        drop(replies);
        database.run(asker).await.expect("the end");
        assert_eq!(database.statements().len(), 2);
        assert_ended(&together, false);
    }

    #[tokio::test]
    async fn each_stream_asks_by_itself_after_a_statement_fails() {
        let together = together();
        let (replies, asker) = ask_all(&together, &["yes 1", "yes 2", "yes 3"]);
        asker
            .run(|batch| async move {
                assert_eq!(batch.begin().len(), 2);
                Err(Error::internal("no database"))
            })
            .await;
        // This is also so for the one that waits for the next statement.
        assert_eq!(answers(replies).await, [None; 3]);
        assert_ended(&together, true);
        // Streams do so for all events, but other questions are still asked together.
        assert!(ask_in(&together, kind(2, SQL), "a").is_none());
        assert!(ask_in(&together, kind(1, "SELECT 2"), "a").is_some());
    }

    #[tokio::test]
    async fn an_answer_that_is_missing_is_not_guessed() {
        let together = together();
        let (replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
        asker
            .run(|batch| async move {
                assert_eq!(batch.begin().len(), 2);
                Ok(vec![true])
            })
            .await;
        assert_eq!(answers(replies).await, [Some(true), None]);
    }

    #[tokio::test]
    async fn each_stream_asks_by_itself_if_a_statement_does_not_begin() {
        for alone_for in [LONG, Duration::ZERO] {
            let together = Arc::new(AskedTogether { wait: Duration::ZERO, alone_for, asked: Mutex::default() });
            let (replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
            asker.run(|_| std::future::pending()).await;
            assert_eq!(answers(replies).await, [None, None]);
            // After that time, questions are asked together again.
            assert_eq!(ask_in(&together, kind(2, SQL), "a").is_some(), alone_for.is_zero());
        }
        // A statement that has begun may take longer.
        let together = Arc::new(AskedTogether { wait: Duration::ZERO, ..AskedTogether::default() });
        let database = Database::new(0);
        let (replies, asker) = ask_all(&together, &["yes 1", "no 2"]);
        let run = database.run(asker);
        until(|| !database.statements().is_empty()).await;
        tokio::task::yield_now().await;
        database.ends.add_permits(1);
        assert_eq!(answers(replies).await, [Some(true), Some(false)]);
        run.await.expect("the end");
    }

    #[tokio::test]
    async fn each_stream_asks_by_itself_if_the_asker_is_dropped() {
        let (together, database) = (together(), Database::new(0));
        let (mut replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
        let run = database.run(asker);
        until(|| !database.statements().is_empty()).await;
        replies.push(ask(&together, "yes 3").0);
        run.abort();
        assert!(run.await.is_err());
        assert_eq!(answers(replies).await, [None; 3]);
        assert_ended(&together, true);
    }

    #[tokio::test]
    async fn each_stream_asks_by_itself_if_one_had_to_wait_too_long() {
        let together = together();
        let add = |value: &str, alone_from: Instant| {
            let owner = QuotaOwner::User(value.into());
            together.add(kind(1, SQL), owner, Arc::new(equal(value)), Arc::default(), alone_from).expect("a kind without trouble")
        };
        let (gone, asker) = add("yes 1", Instant::now());
        let (reply, _) = add("yes 2", Instant::now() + LONG);
        drop(gone);
        asker.expect("an asker").run(|_| std::future::pending()).await;
        assert_eq!(answers(vec![reply]).await, [None]);
        assert_ended(&together, true);
    }

    #[tokio::test]
    async fn another_schema_ends_what_had_trouble() {
        let together = together();
        let (_, asker) = ask_all(&together, &["yes 1"]);
        drop(asker);
        assert_ended(&together, true);
        let added = ask_in(&together, Kind { schema: 2, ..kind(1, SQL) }, "a");
        assert!(added.is_some());
        assert!(together.asked.lock().alone.is_empty());
    }

    #[tokio::test]
    async fn what_had_trouble_takes_little_memory() {
        let together = together();
        for number in 0..2 * ALONE_MAX {
            let sql = format!("SELECT {number}");
            let (_, asker) = ask_in(&together, kind(1, &sql), "a").expect("a kind without trouble");
            drop(asker);
            assert!(ask_in(&together, kind(1, &sql), "a").is_none());
            assert!(together.asked.lock().alone.len() <= ALONE_MAX);
        }
    }

    #[tokio::test]
    async fn the_streams_of_one_reader_ask_once() {
        let (together, database) = (together(), Database::new(2));
        let (own, other) = (Arc::default(), Arc::default());
        let mut added = Vec::new();
        for (value, decision) in [("yes 1", &own), ("yes 1", &own), ("no 2", &other)] {
            added.extend(ask_for(&together, kind(1, SQL), value, decision));
        }
        let (mut replies, askers): (Vec<Reply>, Vec<Option<Asker>>) = added.into_iter().unzip();
        database.run(askers.into_iter().flatten().next().expect("an asker")).await.expect("the end");
        let second = replies.remove(1).await.expect("another stream asks the same");
        assert!(second.is_none());
        assert_eq!(answers(replies).await, [Some(true), Some(false)]);
        assert_eq!(database.statements(), [vec!["yes 1", "no 2"]]);
    }

    #[tokio::test]
    async fn a_stream_asks_the_database_only_while_a_statement_has_its_question() {
        let (together, database) = (together(), Database::new(0));
        let decisions: [Arc<SharedDecision>; 3] = Default::default();
        let is_asked = |number: usize| decisions[number].ask(true, Instant::now() + LONG).is_none();
        let mut added = Vec::new();
        for (decision, value) in decisions.iter().zip(["yes 1", "yes 2", "yes 3"]) {
            added.extend(ask_for(&together, kind(1, SQL), value, decision));
        }
        let (replies, askers): (Vec<Reply>, Vec<Option<Asker>>) = added.into_iter().unzip();
        assert_eq!([0, 1, 2].map(is_asked), [false; 3]);
        let run = database.run(askers.into_iter().flatten().next().expect("an asker"));
        until(|| !database.statements().is_empty()).await;
        assert_eq!([0, 1, 2].map(is_asked), [true, true, false], "the third one waits for the next statement");
        database.ends.add_permits(2);
        assert_eq!(answers(replies).await, [Some(true); 3]);
        run.await.expect("the end");
    }
}
