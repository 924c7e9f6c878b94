//! Transactions on both engines: each is whole, whatever its first statement is, and leaves nothing behind on its connection.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use blockbase_query::Statement;
use blockbase_quota::QuotaOwner;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Commit, Connection, Location, NewDelivery, NewEvent, OnCommit, ReadCost, Reader, Service, Store, Writer};
use blockbase_tests::{Engine, on_both_engines, until};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use uuid::Uuid;

const INSERT: &str = "INSERT INTO written VALUES ($1)";

/// A caller who may do everything.
struct Caller;

impl Reader for Caller {
    fn owner(&self) -> QuotaOwner {
        QuotaOwner::User("ann".into())
    }

    fn check<'c>(&'c self, _connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        None
    }
}

impl Writer for Caller {
    fn check_before_commit<'c>(&'c self, _connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        None
    }
}

/// The one integer that a query of the service returns.
async fn integer(store: &Store, sql: impl Into<String>) -> i64 {
    let sql: String = sql.into();
    let statement = Statement { sql: sql.into(), params: Vec::new() };
    let read = store.read_as_service(ReadCost::Rows, move |connection| {
        Box::pin(async move { Ok(connection.fetch_integer(statement).await?) })
    });
    read.await.unwrap()
}

/// A store with a table `written`. On Postgres, it has one connection for callers. The directory has to outlive the store.
async fn store(engine: Engine) -> (Store, tempfile::TempDir) {
    store_with(engine, Arc::new(|_| ())).await
}

/// The same with a call after each commit that wrote to the outbox.
async fn store_with(engine: Engine, on_commit: OnCommit) -> (Store, tempfile::TempDir) {
    let (store, place) = support::store(engine, on_commit).await;
    let defined = store.write_schema(Service, |connection| {
        Box::pin(async move { Ok(connection.define("CREATE TABLE written (n BIGINT)".to_owned()).await?) })
    });
    defined.await.unwrap();
    (store, place)
}

/// The number of rows in `written`.
async fn count(store: &Store) -> i64 {
    integer(store, "SELECT count(*) FROM written").await
}

/// Writes a row with the number `n`, a power of two. It also emits an event with a delivery to a consumer group, and adds `n`
/// to the stored count of users. If `is_undone`, it also changes a search index of SQLite that does not exist. A commit would
/// fail with this change.
async fn write_with_effects(connection: &mut Connection, n: u32, is_undone: bool) -> Result<()> {
    connection.run(INSERT, vec![i64::from(n).into()]).await?;
    let delivery = NewDelivery { consumer: format!("group {n}"), handler: "test".to_owned(), dead: None };
    let event = NewEvent {
        id: Uuid::from_u128(u128::from(n)),
        topic: format!("topic.{n}"),
        payload: "{}".to_owned(),
        object: None,
        record_id: None,
        owner: None,
        depth: 0,
        occurred_at: 0,
        deliveries: Arc::new([delivery]),
    };
    connection.emit(event).await?;
    connection.count_rows(0, i64::from(n));
    if is_undone {
        connection.index_row(999_999, Some(1), Some("text".to_owned()));
    }
    Ok(())
}

/// A store, and what its commits reported.
struct Reporting {
    store: Store,
    commits: Arc<Mutex<Vec<Commit>>>,
    _place: tempfile::TempDir,
}

impl Reporting {
    async fn open(engine: Engine) -> Reporting {
        let commits = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&commits);
        let (store, place) = store_with(engine, Arc::new(move |commit| reported.lock().push(commit))).await;
        Reporting { store, commits, _place: place }
    }

    /// Checks that exactly these writes of [`write_with_effects`] have taken effect. `engine` is that of the store.
    async fn expect(&self, engine: Engine, numbers: &[u32]) {
        let sum = i64::from(numbers.iter().sum::<u32>());
        let written = integer(&self.store, "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM written").await;
        let counted = integer(&self.store, "SELECT CAST(sum(rows) AS BIGINT) FROM svc_counts WHERE object_id = 0").await;
        assert_eq!((written, counted), (sum, sum));
        let topics: BTreeSet<String> = numbers.iter().map(|n| format!("topic.{n}")).collect();
        let groups: BTreeSet<String> = numbers.iter().map(|n| format!("group {n}")).collect();
        assert_eq!(texts(&self.store, "SELECT topic FROM svc_events").await, topics);
        assert_eq!(texts(&self.store, "SELECT consumer FROM svc_deliveries").await, groups);
        let commits = self.commits.lock();
        assert_eq!(commits.iter().flat_map(|commit| commit.topics.clone()).collect::<BTreeSet<_>>(), topics);
        assert_eq!(commits.iter().flat_map(|commit| commit.consumers.clone()).collect::<BTreeSet<_>>(), groups);
        // On Postgres, the feed reads the events from the outbox.
        let fed = commits.iter().flat_map(|commit| &commit.events).map(|event| event.topic.clone());
        assert_eq!(fed.collect::<BTreeSet<_>>(), if engine == Engine::Sqlite { topics } else { BTreeSet::new() });
    }
}

/// The texts that a query of the service returns.
async fn texts(store: &Store, sql: &'static str) -> BTreeSet<String> {
    let read = store.read_as_service(ReadCost::Rows, move |connection| {
        Box::pin(async move {
            let rows = connection.fetch(sql, Vec::new()).await?;
            let mut texts = BTreeSet::new();
            for row in &rows {
                texts.insert(row.text(0)?);
            }
            Ok(texts)
        })
    });
    read.await.unwrap()
}

/// Begins a nested transaction, writes, and fails, so the nested transaction stays open.
async fn fail_in_nested(connection: &mut Connection) -> Result<()> {
    let _left_open = connection.begin_nested().await?;
    write_with_effects(connection, 4, true).await?;
    Err(Error::invalid_request("left open"))
}

/// The first statement of a transaction.
#[derive(Clone, Copy, Debug)]
enum First {
    WithoutValues,
    WithValues,
    Query,
    Hold,
    Savepoint,
}

impl First {
    /// Runs the statement, and returns how many rows it writes.
    async fn run(self, connection: &mut Connection) -> Result<i64> {
        match self {
            First::WithoutValues => connection.run("INSERT INTO written VALUES (1)", Vec::new()).await?,
            First::WithValues => connection.run("INSERT INTO written VALUES ($1)", vec![1_i64.into()]).await?,
            First::Query => {
                connection.fetch("SELECT n FROM written", Vec::new()).await?;
                return Ok(0);
            }
            First::Hold => {
                assert!(connection.hold_object(999_999).await?.is_none(), "there is no such object");
                return Ok(0);
            }
            First::Savepoint => {
                connection.savepoint().await?;
                return Ok(0);
            }
        };
        Ok(1)
    }
}

on_both_engines! {
    async fn a_transaction_is_whole_whatever_its_first_statement_is(engine: Engine) {
        let (store, _place) = store(engine).await;
        for first in [First::WithoutValues, First::WithValues, First::Query, First::Hold, First::Savepoint] {
            let before = count(&store).await;
            let undone = store.write(Service, move |connection| {
                Box::pin(async move {
                    first.run(connection).await?;
                    connection.run("INSERT INTO written VALUES ($1)", vec![2_i64.into()]).await?;
                    Err::<(), _>(Error::invalid_request("undone"))
                })
            });
            assert_eq!(undone.await.unwrap_err().message, "undone", "{first:?}");
            assert_eq!(count(&store).await, before, "{first:?}");
            let written = store.write(Service, move |connection| {
                Box::pin(async move {
                    let written = first.run(connection).await?;
                    connection.run("INSERT INTO written VALUES ($1)", vec![2_i64.into()]).await?;
                    Ok(written + 1)
                })
            });
            let written = written.await.unwrap();
            assert_eq!(count(&store).await, before + written, "{first:?}");
        }
        store.close().await;
    }

    async fn a_nested_transaction_is_undone_with_its_effects_and_the_rest_stays(engine: Engine) {
        let reporting = Reporting::open(engine).await;
        let written = reporting.store.write(Service, |connection| {
            Box::pin(async move {
                write_with_effects(connection, 1, false).await?;
                let outer = connection.begin_nested().await?;
                write_with_effects(connection, 2, false).await?;
                let inner = connection.begin_nested().await?;
                write_with_effects(connection, 4, true).await?;
                connection.undo_nested(inner).await?;
                write_with_effects(connection, 8, false).await?;
                connection.commit_nested(outer).await?;
                let outer = connection.begin_nested().await?;
                write_with_effects(connection, 16, true).await?;
                let inner = connection.begin_nested().await?;
                write_with_effects(connection, 32, true).await?;
                connection.commit_nested(inner).await?;
                connection.undo_nested(outer).await?;
                let failed = connection.begin_nested().await?;
                connection.run("INSERT INTO missing VALUES (1)", Vec::new()).await.unwrap_err();
                connection.undo_nested(failed).await?;
                write_with_effects(connection, 64, false).await
            })
        });
        written.await.unwrap();
        reporting.expect(engine, &[1, 2, 8, 64]).await;
        reporting.store.close().await;
    }

    async fn undoing_a_nested_transaction_ends_those_that_an_error_left_open(engine: Engine) {
        let reporting = Reporting::open(engine).await;
        let written = reporting.store.write(Service, |connection| {
            Box::pin(async move {
                write_with_effects(connection, 1, false).await?;
                let outer = connection.begin_nested().await?;
                write_with_effects(connection, 2, true).await?;
                fail_in_nested(connection).await.unwrap_err();
                connection.undo_nested(outer).await?;
                write_with_effects(connection, 8, false).await
            })
        });
        written.await.unwrap();
        reporting.expect(engine, &[1, 8]).await;
        reporting.store.close().await;
    }

    async fn a_transaction_does_not_commit_while_a_nested_one_is_open(engine: Engine) {
        let reporting = Reporting::open(engine).await;
        let left_open = reporting.store.write(Service, |connection| {
            Box::pin(async move {
                write_with_effects(connection, 1, false).await?;
                fail_in_nested(connection).await.unwrap_err();
                Ok(())
            })
        });
        assert_eq!(left_open.await.unwrap_err().code, Code::Internal);
        reporting.expect(engine, &[]).await;
        let committed_around_it = reporting.store.write(Service, |connection| {
            Box::pin(async move {
                let outer = connection.begin_nested().await?;
                fail_in_nested(connection).await.unwrap_err();
                connection.commit_nested(outer).await.unwrap_err();
                Ok(())
            })
        });
        assert_eq!(committed_around_it.await.unwrap_err().code, Code::Internal);
        reporting.expect(engine, &[]).await;
        // The next transaction, which has the same connection on SQLite, begins without them.
        let next = reporting.store.write(Service, |connection| {
            Box::pin(async move {
                let nested = connection.begin_nested().await?;
                write_with_effects(connection, 8, false).await?;
                connection.commit_nested(nested).await?;
                Ok(())
            })
        });
        next.await.unwrap();
        reporting.expect(engine, &[8]).await;
        reporting.store.close().await;
    }

    async fn a_transaction_may_have_no_statement_or_fail_with_its_first_one(engine: Engine) {
        let (store, _place) = store(engine).await;
        // There are more rounds than connections.
        for round in 0..5 {
            store.write(Service, |_| Box::pin(async { Ok(()) })).await.unwrap();
            let nothing = store.write(Service, |_| Box::pin(async { Err::<(), _>(Error::invalid_request("nothing")) }));
            assert_eq!(nothing.await.unwrap_err().message, "nothing");
            let without_values = store.write(Service, |connection| {
                Box::pin(async move { Ok(connection.run("INSERT INTO missing VALUES (1)", Vec::new()).await?) })
            });
            without_values.await.unwrap_err();
            let with_values = store.write(Service, |connection| {
                Box::pin(async move { Ok(connection.run("INSERT INTO missing VALUES ($1)", vec![1_i64.into()]).await?) })
            });
            with_values.await.unwrap_err();
            let written = store.write(Service, |connection| {
                Box::pin(async move { Ok(connection.run("INSERT INTO written VALUES ($1)", vec![1_i64.into()]).await?) })
            });
            assert_eq!((written.await.unwrap(), count(&store).await), (1, round + 1));
        }
        store.close().await;
    }
}

/// Postgres' process of the connection on which a caller's read runs.
async fn process(store: &Store) -> i64 {
    let read = store.read_rows(Caller, None, |connection| {
        Box::pin(async move { Ok(connection.fetch("SELECT pg_backend_pid()", Vec::new()).await?[0].integer(0)?) })
    });
    read.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_use_a_connection_one_after_the_other() {
    let (store, _place) = store(Engine::Postgres).await;
    let first = process(&store).await;
    for round in 0..5 {
        let written = store.write(Caller, |connection| {
            Box::pin(async move { Ok(connection.run("INSERT INTO written VALUES ($1)", vec![1_i64.into()]).await?) })
        });
        assert_eq!(written.await.unwrap(), 1);
        let undone = store.write(Caller, |connection| {
            Box::pin(async move {
                connection.run("INSERT INTO written VALUES ($1)", vec![1_i64.into()]).await?;
                Err::<(), _>(Error::invalid_request("undone"))
            })
        });
        undone.await.unwrap_err();
        let failed = store.read_rows(Caller, None, |connection| {
            Box::pin(async move { Ok(connection.fetch("SELECT n FROM missing", Vec::new()).await?.len()) })
        });
        failed.await.unwrap_err();
        let scanned = store.scan(Caller, (), |connection| {
            Box::pin(async move { Ok(connection.fetch("SELECT n FROM written", Vec::new()).await?.len()) })
        });
        assert_eq!(i64::try_from(scanned.await.unwrap()).unwrap(), round + 1);
        assert_eq!((process(&store).await, count(&store).await), (first, round + 1));
    }
    store.close().await;
}

/// Two processes whose connections callers use at the same time.
async fn two_processes(store: &Store) -> [i64; 2] {
    let meet = Arc::new(tokio::sync::Barrier::new(2));
    let process = || {
        let meet = Arc::clone(&meet);
        store.read_rows(Caller, None, move |connection| {
            let meet = Arc::clone(&meet);
            Box::pin(async move {
                let rows = connection.fetch("SELECT pg_backend_pid()", Vec::new()).await?;
                meet.wait().await;
                Ok(rows[0].integer(0)?)
            })
        })
    };
    let (one, other) = tokio::join!(process(), process());
    [one.unwrap(), other.unwrap()]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_that_was_used_last_is_used_next() {
    let url = blockbase_tests::new_database().await;
    let store = Store::open(Location::Postgres { url }, Some(8), Arc::new(|_| ())).await.unwrap();
    let two = two_processes(&store).await;
    assert_ne!(two[0], two[1]);
    // A pool would give its connections in turns.
    let last = process(&store).await;
    assert!(two.contains(&last), "{last} {two:?}");
    for _ in 0..5 {
        assert_eq!(process(&store).await, last);
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_caller_notices_that_the_connections_are_broken() {
    let url = blockbase_tests::new_database().await;
    let store = Store::open(Location::Postgres { url }, Some(8), Arc::new(|_| ())).await.unwrap();
    let two = two_processes(&store).await;
    for process in two {
        integer(&store, format!("SELECT count(pg_terminate_backend({process})) FROM pg_stat_activity")).await;
    }
    let alive = format!("SELECT count(*) FROM pg_stat_activity WHERE pid IN ({}, {})", two[0], two[1]);
    until("the connections are broken", async || integer(&store, alive.clone()).await == 0).await;
    let read = || {
        store.read_rows(Caller, None, |connection| {
            Box::pin(async move { Ok(connection.fetch("SELECT 1", Vec::new()).await?.len()) })
        })
    };
    assert_eq!(read().await.unwrap_err().code, Code::Unavailable);
    assert!(!two.contains(&process(&store).await));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_of_an_abandoned_statement_is_closed() {
    let (store, _place) = store(Engine::Postgres).await;
    let first = process(&store).await;
    let mut sleep = Box::pin(store.read_rows(Caller, None, |connection| {
        Box::pin(async move { Ok(connection.fetch("SELECT 1::bigint FROM pg_sleep(60)", Vec::new()).await?.len()) })
    }));
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    tokio::select! {
        slept = &mut sleep => panic!("it did not wait: {slept:?}"),
        () = until("the statement runs", async || integer(&store, sleeping).await == 1) => {}
    }
    drop(sleep);
    assert_ne!(process(&store).await, first);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_has_no_connections() {
    let url = blockbase_tests::new_database().await;
    let open = async || Store::open(Location::Postgres { url: url.clone() }, Some(2), Arc::new(|_| ())).await.unwrap();
    let (closed, other) = (open().await, open().await);
    process(&closed).await;
    process(&other).await;
    closed.close().await;
    let reading = closed
        .read_rows(Caller, None, |connection| Box::pin(async move { Ok(connection.fetch("SELECT 1", Vec::new()).await?.len()) }));
    reading.await.unwrap_err();
    // Each store has one connection for callers and one of its own.
    let connections =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'blockbase'";
    until("two connections are left", async || integer(&other, connections).await == 2).await;
    other.close().await;
}
