//! Questions of streams that one statement answers.
//!
//! If a policy names its reader, the stream of each reader asks the database another question about a new event. These questions
//! differ only in their values. While a statement answers some of them, the questions of other streams wait. The next statement
//! answers those, up to [`QUESTIONS_MAX`] of them. So the number of statements hardly grows with the number of readers, and a
//! question that is alone waits for nobody.
//!
//! These statements run on a task of their own ([`Asker`]), so a stream that ends takes no answer away from others. Each statement
//! uses the share of one caller, who is the one whose question has waited longest. If there is no answer after [`SHARE_WAIT`], one
//! more statement uses the share of the next caller. So a caller without free places hardly holds up others.
//!
//! If a statement fails, all its streams ask by themselves. So each of them gets the answer or the error that it would get alone. A
//! statement has no question that was asked after the statement began. So its answers are as new as those to a single question.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use blockbase_query::Condition;
use blockbase_quota::QuotaOwner;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The maximum number of questions that one statement answers.
const QUESTIONS_MAX: usize = 64;
/// The maximum number of values of one question. So a statement binds little more than a thousand values. Both engines take more
/// than 30,000.
const VALUES_MAX: usize = 16;
/// How long the share of one caller is waited for, until the share of another one is tried too.
const SHARE_WAIT: Duration = Duration::from_millis(25);

/// What questions have in common if one statement can answer them.
#[derive(Debug, PartialEq, Hash)]
pub(crate) struct Kind {
    /// The number of the event.
    event: i64,
    /// The image's name in the payload.
    image: &'static str,
    /// The version of the schema by which the condition was read.
    schema: i64,
    /// The object's number in the catalogue.
    object: i64,
    /// The condition without its values.
    form: Condition,
}

/// A form has no values, so every kind is equal to itself.
impl Eq for Kind {}

impl Kind {
    /// `None` if the condition has no form, or too many values.
    pub(crate) fn about(event: i64, image: &'static str, schema: i64, object: i64, condition: &Condition) -> Option<Kind> {
        let is_small = condition.values() <= VALUES_MAX;
        let form = if is_small { condition.form() } else { None };
        form.map(|form| Kind { event, image, schema, object, form })
    }
}

/// The questions that wait for a statement. An open stream has at most one of them, and takes it away when it ends.
#[derive(Default)]
pub(crate) struct AskedTogether(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// The number of the next question.
    next: u64,
    /// The questions of each kind, by their numbers. A kind is listed as long as its [`Asker`] takes questions.
    kinds: HashMap<Arc<Kind>, BTreeMap<u64, Question>>,
}

struct Question {
    condition: Arc<Condition>,
    /// The owner of the share in which the stream reads.
    owner: QuotaOwner,
    reply: oneshot::Sender<bool>,
}

impl AskedTogether {
    /// Adds a question of a stream that reads in the share of `owner`. If no other question of its kind is being answered, the
    /// result has an [`Asker`], which must run.
    pub(crate) fn add(self: &Arc<Self>, kind: Kind, condition: Arc<Condition>, owner: QuotaOwner) -> (Reply, Option<Asker>) {
        let (reply, answer) = oneshot::channel();
        let question = Question { condition, owner, reply };
        let mut waiting = self.0.lock();
        let number = waiting.next;
        waiting.next += 1;
        let (kind, is_first) = match waiting.kinds.entry(Arc::new(kind)) {
            Entry::Occupied(mut known) => {
                known.get_mut().insert(number, question);
                (Arc::clone(known.key()), false)
            }
            Entry::Vacant(new) => {
                let kind = Arc::clone(new.key());
                new.insert(BTreeMap::from([(number, question)]));
                (kind, true)
            }
        };
        drop(waiting);
        let asker = || Asker { together: Arc::clone(self), kind: Arc::clone(&kind), tried: 0, has_ended: false };
        let asker = is_first.then(asker);
        (Reply { together: Arc::clone(self), kind, number, answer }, asker)
    }

    /// Removes a question, if it still waits.
    fn remove(&self, kind: &Arc<Kind>, number: u64) -> Option<Question> {
        self.0.lock().kinds.get_mut(kind)?.remove(&number)
    }
}

/// The reply to a question. When this is dropped, the question no longer waits.
pub(crate) struct Reply {
    together: Arc<AskedTogether>,
    kind: Arc<Kind>,
    number: u64,
    answer: oneshot::Receiver<bool>,
}

impl Reply {
    /// Whether the image meets the condition. `None` if the stream has to ask by itself, because the statement failed or there is
    /// no answer until `end`.
    pub(crate) async fn until(mut self, end: Instant) -> Option<bool> {
        let answer = tokio::time::timeout_at(end.into(), &mut self.answer).await;
        answer.ok()?.ok()
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        drop(self.together.remove(&self.kind, self.number));
    }
}

/// Has the questions of one kind answered, until none waits. If this is dropped before, their streams ask by themselves.
pub(crate) struct Asker {
    together: Arc<AskedTogether>,
    kind: Arc<Kind>,
    /// Every question with a smaller number was answered or given up, or a statement uses the share of its owner.
    tried: u64,
    /// Whether the kind is no longer listed for this asker.
    has_ended: bool,
}

impl Asker {
    /// Answers all questions of the kind. `ask` runs a statement for a batch of them, and gives the answers to the batch.
    pub(crate) async fn run<F>(mut self, ask: impl Fn(Batch) -> F)
    where
        F: Future<Output = ()>,
    {
        let mut asking = FuturesUnordered::new();
        loop {
            // Other streams that are ready ask first, so that the statement answers their questions too.
            tokio::task::yield_now().await;
            match self.next_batch() {
                Some(batch) => asking.push(ask(batch)),
                None if asking.is_empty() => return,
                None => {}
            }
            tokio::select! {
                _ = asking.next() => {}
                () = tokio::time::sleep(SHARE_WAIT) => {}
            }
        }
    }

    /// A batch for the share of the owner who has waited longest, of those whose shares were not tried yet. `None` if there is no
    /// such owner.
    fn next_batch(&mut self) -> Option<Batch> {
        if self.has_ended {
            return None;
        }
        let mut waiting = self.together.0.lock();
        let questions = waiting.kinds.get(&self.kind)?;
        if questions.is_empty() {
            waiting.kinds.remove(&self.kind);
            self.has_ended = true;
            return None;
        }
        let (number, question) = questions.range(self.tried..).next()?;
        let (first, owner) = (*number, question.owner.clone());
        drop(waiting);
        self.tried = first + 1;
        let (together, kind) = (Arc::clone(&self.together), Arc::clone(&self.kind));
        Some(Batch { together, kind, first, owner, taken: Mutex::default() })
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        if !self.has_ended {
            let questions = self.together.0.lock().kinds.remove(&self.kind);
            drop(questions);
        }
    }
}

/// Questions for one statement. If this is dropped before they are answered, their streams ask by themselves.
pub(crate) struct Batch {
    together: Arc<AskedTogether>,
    kind: Arc<Kind>,
    /// The number of the question of `owner`.
    first: u64,
    /// The owner of the share in which the statement runs.
    owner: QuotaOwner,
    /// The questions that the statement answers.
    taken: Mutex<Vec<Question>>,
}

impl Batch {
    /// The owner of the share in which the statement runs.
    pub(crate) fn owner(&self) -> &QuotaOwner {
        &self.owner
    }

    /// The conditions of the questions. The statement takes those that wait when it begins. If it runs again, it has the same ones.
    /// There are none if other statements have answered them.
    pub(crate) fn conditions(&self) -> Vec<Arc<Condition>> {
        let mut taken = self.taken.lock();
        if taken.is_empty()
            && let Some(questions) = self.together.0.lock().kinds.get_mut(&self.kind)
        {
            taken.extend(questions.remove(&self.first));
            while taken.len() < QUESTIONS_MAX
                && let Some((_, question)) = questions.pop_first()
            {
                taken.push(question);
            }
        }
        taken.iter().map(|question| Arc::clone(&question.condition)).collect()
    }

    /// Answers the questions. `met` has a value for each condition, in the same order.
    pub(crate) fn answer(&self, met: &[bool]) {
        let taken = std::mem::take(&mut *self.taken.lock());
        for (question, met) in taken.into_iter().zip(met) {
            // The stream may have ended meanwhile.
            let _ = question.reply.send(*met);
        }
    }
}

impl Drop for Batch {
    /// The question of this share may still wait, if the share had no place for the statement.
    fn drop(&mut self) {
        drop(self.together.remove(&self.kind, self.first));
    }
}

#[cfg(test)]
mod tests {
    use blockbase_query::predicate::{Comparison, Predicate, Test};
    use blockbase_schema::Value;
    use tokio::sync::Semaphore;

    use super::*;

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

    fn kind(event: i64) -> Kind {
        Kind::about(event, "after", 1, 1, &equal("")).expect("a kind")
    }

    /// Asks about an event, in the share of the user `owner`.
    fn ask_as(owner: &str, together: &Arc<AskedTogether>, event: i64, value: &str) -> (Reply, Option<Asker>) {
        together.add(kind(event), Arc::new(equal(value)), QuotaOwner::User(owner.into()))
    }

    fn ask(together: &Arc<AskedTogether>, event: i64, value: &str) -> (Reply, Option<Asker>) {
        ask_as("somebody", together, event, value)
    }

    /// Asks several questions about the first event. Returns the asker of the first one.
    fn ask_all(together: &Arc<AskedTogether>, values: &[&str]) -> (Vec<Reply>, Asker) {
        let (mut replies, mut first) = (Vec::new(), None);
        for value in values {
            let (reply, asker) = ask(together, 1, value);
            assert_eq!(asker.is_some(), replies.is_empty(), "only the first one needs an asker");
            first = first.or(asker);
            replies.push(reply);
        }
        (replies, first.expect("an asker"))
    }

    /// The answers to several questions.
    async fn answers(replies: Vec<Reply>) -> Vec<Option<bool>> {
        let mut answers = Vec::new();
        for reply in replies {
            answers.push(answer(reply).await);
        }
        answers
    }

    async fn answer(reply: Reply) -> Option<bool> {
        reply.until(Instant::now() + Duration::from_secs(60)).await
    }

    async fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    fn nothing_waits(together: &AskedTogether) -> bool {
        together.0.lock().kinds.is_empty()
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

        async fn answer(self: Arc<Self>, batch: Batch) {
            let values: Vec<String> = batch.conditions().iter().map(|condition| value_of(condition)).collect();
            self.statements.lock().push(values.clone());
            self.ends.acquire().await.expect("an open semaphore").forget();
            let met: Vec<bool> = values.iter().map(|value| value.starts_with("yes")).collect();
            batch.answer(&met);
        }

        /// Runs an asker that asks this database.
        fn run(self: &Arc<Self>, asker: Asker) -> tokio::task::JoinHandle<()> {
            let database = Arc::clone(self);
            tokio::spawn(asker.run(move |batch| Arc::clone(&database).answer(batch)))
        }

        fn statements(&self) -> Vec<Vec<String>> {
            self.statements.lock().clone()
        }
    }

    #[tokio::test]
    async fn questions_that_come_while_a_statement_runs_are_answered_by_the_next_one() {
        let (together, database) = (Arc::default(), Database::new(0));
        let (first, asker) = ask(&together, 1, "yes 1");
        let run = database.run(asker.expect("an asker"));
        until(|| database.statements().len() == 1).await;
        let others = ["no 2", "yes 3", "no 4"].map(|value| {
            let (reply, asker) = ask(&together, 1, value);
            assert!(asker.is_none());
            reply
        });
        database.ends.add_permits(2);
        assert_eq!(answer(first).await, Some(true));
        assert_eq!(answers(others.into()).await, [Some(false), Some(true), Some(false)]);
        run.await.expect("the end");
        assert_eq!(database.statements(), [vec!["yes 1"], vec!["no 2", "yes 3", "no 4"]]);
        assert!(nothing_waits(&together));
        // The next question has an asker again.
        assert!(ask(&together, 1, "yes").1.is_some());
    }

    #[tokio::test]
    async fn a_statement_answers_a_limited_number_of_questions() {
        let (together, database) = (Arc::default(), Database::new(3));
        let values: Vec<String> =
            (0..2 * QUESTIONS_MAX + 2).map(|number| format!("{} {number}", if number % 3 == 0 { "yes" } else { "no" })).collect();
        let (replies, asker) = ask_all(&together, &values.iter().map(String::as_str).collect::<Vec<&str>>());
        database.run(asker).await.expect("the end");
        let expected: Vec<Option<bool>> = (0..values.len()).map(|number| Some(number % 3 == 0)).collect();
        assert_eq!(answers(replies).await, expected);
        let asked: Vec<usize> = database.statements().iter().map(Vec::len).collect();
        assert_eq!(asked, [QUESTIONS_MAX, QUESTIONS_MAX, 2]);
        assert!(nothing_waits(&together));
    }

    #[tokio::test]
    async fn questions_of_different_kinds_have_statements_of_their_own() {
        let (together, database) = (Arc::default(), Database::new(2));
        let (one, of_one) = ask(&together, 1, "yes 1");
        let (other, of_other) = ask(&together, 2, "no 2");
        let (third, of_third) = ask(&together, 1, "no 3");
        assert!(of_third.is_none());
        database.run(of_one.expect("an asker")).await.expect("the end");
        database.run(of_other.expect("an asker")).await.expect("the end");
        assert_eq!(answers(vec![one, other, third]).await, [Some(true), Some(false), Some(false)]);
        assert_eq!(database.statements(), [vec!["yes 1", "no 3"], vec!["no 2"]]);
    }

    #[test]
    fn a_kind_has_one_image_one_form_and_few_values() {
        let about = |image, schema, object, condition: &Condition| Kind::about(1, image, schema, object, condition);
        let known = about("after", 1, 1, &equal("a"));
        assert!(known.is_some());
        assert_eq!(known, about("after", 1, 1, &equal("b")));
        assert_ne!(known, Kind::about(2, "after", 1, 1, &equal("a")));
        assert_ne!(known, about("before", 1, 1, &equal("a")));
        assert_ne!(known, about("after", 2, 1, &equal("a")));
        assert_ne!(known, about("after", 1, 2, &equal("a")));
        assert_ne!(known, about("after", 1, 1, &equal("a").complement()));
        let values = |count: usize| Condition::Any((0..count).map(|number| equal(&number.to_string())).collect());
        assert_ne!(about("after", 1, 1, &values(VALUES_MAX - 1)), about("after", 1, 1, &values(VALUES_MAX)));
        assert!(about("after", 1, 1, &values(VALUES_MAX)).is_some());
        assert_eq!(about("after", 1, 1, &values(VALUES_MAX + 1)), None);
        let list = Test::In { values: vec![Value::Text("a".to_owned())], negated: false };
        assert_eq!(about("after", 1, 1, &Condition::Test(Predicate { column: 0, test: list })), None);
    }

    #[tokio::test]
    async fn a_stream_that_ends_takes_no_answer_away_from_others() {
        // It ends before the statement begins.
        let (together, database) = (Arc::default(), Database::new(1));
        let (mut replies, asker) = ask_all(&together, &["no 1", "yes 2", "no 3", "yes 4"]);
        drop(replies.remove(2));
        drop(replies.remove(0));
        database.run(asker).await.expect("the end");
        assert_eq!(answers(replies).await, [Some(true), Some(true)]);
        assert_eq!(database.statements(), [vec!["yes 2", "yes 4"]]);

        // It ends while the statement runs, and its share is the one that the statement uses.
        let database = Database::new(0);
        let (mut replies, asker) = ask_all(&together, &["no 1", "yes 2", "no 3"]);
        let run = database.run(asker);
        until(|| !database.statements().is_empty()).await;
        drop(replies.remove(0));
        database.ends.add_permits(1);
        assert_eq!(answers(replies).await, [Some(true), Some(false)]);
        run.await.expect("the end");

        // All of them end.
        let (replies, asker) = ask_all(&together, &["no 1", "yes 2"]);
        drop(replies);
        let statements = database.statements().len();
        database.run(asker).await.expect("the end");
        assert_eq!(database.statements().len(), statements);
        assert!(nothing_waits(&together));
    }

    #[tokio::test]
    async fn each_stream_asks_by_itself_after_a_statement_fails() {
        let (together, database) = (Arc::default(), Database::new(0));
        let (replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
        let run = tokio::spawn(asker.run(|batch: Batch| async move {
            assert_eq!(batch.conditions().len(), 2);
        }));
        assert_eq!(answers(replies).await, [None, None]);
        run.await.expect("the end");
        assert!(nothing_waits(&together));

        // Answers that are missing are not guessed.
        let (replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
        asker
            .run(|batch| async move {
                assert_eq!(batch.conditions().len(), 2);
                batch.answer(&[true]);
            })
            .await;
        assert_eq!(answers(replies).await, [Some(true), None]);

        // The asker itself ends.
        let (replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
        let run = database.run(asker);
        until(|| !database.statements().is_empty()).await;
        let (late, asker) = ask(&together, 1, "yes 3");
        assert!(asker.is_none());
        run.abort();
        assert!(run.await.is_err());
        assert_eq!(answers(replies).await, [None, None]);
        assert_eq!(answer(late).await, None);
        assert!(nothing_waits(&together));
    }

    #[tokio::test]
    async fn a_statement_that_runs_again_has_the_same_questions() {
        let together = Arc::default();
        let (replies, asker) = ask_all(&together, &["yes 1", "yes 2"]);
        let late = Mutex::new(None);
        asker
            .run(|batch| async {
                let batch = batch;
                let first = batch.conditions();
                if first.len() == 1 {
                    return batch.answer(&[true]);
                }
                *late.lock() = Some(ask(&together, 1, "yes 3").0);
                assert_eq!(batch.conditions(), first);
                batch.answer(&[true, false]);
            })
            .await;
        assert_eq!(answers(replies).await, [Some(true), Some(false)]);
        let late = late.lock().take().expect("a third question");
        assert_eq!(answer(late).await, Some(true));
    }

    #[tokio::test]
    async fn a_caller_without_a_place_does_not_hold_up_others() {
        let together = Arc::default();
        let (busy, asker) = ask_as("busy", &together, 1, "yes 1");
        let (other, _) = ask_as("other", &together, 1, "no 2");
        let database = Database::new(usize::MAX >> 4);
        let of_run = Arc::clone(&database);
        let run = tokio::spawn(asker.expect("an asker").run(move |batch| {
            let database = Arc::clone(&of_run);
            async move {
                if *batch.owner() == QuotaOwner::User("busy".into()) {
                    std::future::pending::<()>().await;
                }
                database.answer(batch).await;
            }
        }));
        // The share of the other one is enough for both.
        assert_eq!(answers(vec![busy, other]).await, [Some(true), Some(false)]);
        assert_eq!(database.statements(), [vec!["no 2", "yes 1"]]);
        until(|| nothing_waits(&together)).await;
        run.abort();

        // If the share refuses, only its own stream asks by itself.
        let (refused, asker) = ask_as("refused", &together, 1, "yes 1");
        let (other, _) = ask_as("other", &together, 1, "yes 2");
        let of_run = Arc::clone(&database);
        let run = asker.expect("an asker").run(move |batch| {
            let database = Arc::clone(&of_run);
            async move {
                if *batch.owner() != QuotaOwner::User("refused".into()) {
                    database.answer(batch).await;
                }
            }
        });
        run.await;
        assert_eq!(answers(vec![refused, other]).await, [None, Some(true)]);
        assert!(nothing_waits(&together));
    }

    #[tokio::test]
    async fn a_stream_waits_no_longer_than_it_may() {
        let together = Arc::default();
        let (reply, _asker) = ask(&together, 1, "yes");
        assert_eq!(reply.until(Instant::now()).await, None);
        let questions = |together: &AskedTogether| together.0.lock().kinds.values().map(BTreeMap::len).sum::<usize>();
        assert_eq!(questions(&together), 0);
    }
}
