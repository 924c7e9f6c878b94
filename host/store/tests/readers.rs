//! The store checks a reader's rights on the connection, after all waits of the read and before any other part of it runs.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use blockbase_quota::QuotaOwner;
use blockbase_schema::{Code, Error, Result};
use blockbase_store::{Connection, Cost, Read, ReadCost, Reader, Store};
use blockbase_tests::Engine;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::support::store;

/// A reader who can lose her rights while she waits.
#[derive(Clone, Default)]
struct Eve {
    is_banned: Arc<AtomicBool>,
    checks: Arc<AtomicUsize>,
    reads: Arc<AtomicUsize>,
}

impl Eve {
    fn ban(&self) {
        self.is_banned.store(true, Ordering::SeqCst);
    }

    fn checks(&self) -> usize {
        self.checks.load(Ordering::SeqCst)
    }

    /// The body of her read.
    fn body(&self) -> impl for<'c> Fn(&'c mut Connection) -> BoxFuture<'c, Result<&'static str>> + Send + Sync + 'static {
        let reads = Arc::clone(&self.reads);
        move |connection| {
            reads.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move { Ok(connection.versions().await.map(|_| "secret")?) })
        }
    }

    /// Checks that her read was refused, and that nothing of it ran.
    fn expect_refused(&self, answer: Result<&'static str>) {
        let error = answer.expect_err("she read what she may not read any more");
        assert_eq!(error.code, Code::Forbidden, "{error}");
        assert_eq!(self.reads.load(Ordering::SeqCst), 0, "she is refused, but the read ran");
    }
}

impl Reader for Eve {
    fn owner(&self) -> QuotaOwner {
        QuotaOwner::User("eve".into())
    }

    fn check<'c>(&'c self, connection: &'c mut Connection) -> Option<BoxFuture<'c, Result<()>>> {
        self.checks.fetch_add(1, Ordering::SeqCst);
        Some(Box::pin(async move {
            // The check runs on the connection of the read.
            connection.versions().await?;
            if self.is_banned.load(Ordering::SeqCst) { Err(Error::new(Code::Forbidden, "banned")) } else { Ok(()) }
        }))
    }
}

/// A read of records, planned on the schema of a new database.
async fn read(store: &Store) -> Read {
    let schema =
        store.read_as_service(ReadCost::Rows, |connection| Box::pin(async move { Ok(connection.version("schema").await?) }));
    Read { schema: schema.await.unwrap(), cost: Cost::Scan, tables_of_one_moment: None }
}

/// Polls a read once, so that it begins, and checks that it waits.
fn begin<F: Future<Output = Result<&'static str>> + ?Sized>(read: Pin<&mut F>) {
    assert!(read.now_or_never().is_none(), "it did not wait");
}

async fn a_reader_who_is_refused_reads_nothing(engine: Engine) {
    let (store, _place) = store(engine, Arc::new(|_| ())).await;
    let (eve, schema) = (Eve::default(), read(&store).await);
    assert_eq!(store.read_rows(eve.clone(), None, eve.body()).await.unwrap(), "secret", "she may, as yet");
    let eve = Eve::default();
    eve.ban();
    eve.expect_refused(store.read_rows(eve.clone(), None, eve.body()).await);
    eve.expect_refused(store.read_rows(eve.clone(), Some(schema.schema), eve.body()).await);
    eve.expect_refused(store.scan(eve.clone(), (), eve.body()).await);
    for cost in [Cost::Unknown, Cost::Scan] {
        let read = Read { cost, ..schema.clone() };
        eve.expect_refused(store.read_metered(eve.clone(), read, async { Ok(()) }, eve.body()).await);
    }
    assert_eq!(eve.checks(), 5);
    store.close().await;
}

async fn a_reader_is_asked_after_the_wait_for_a_permit(engine: Engine) {
    let (store, _place) = store(engine, Arc::new(|_| ())).await;
    let (eve, schema) = (Eve::default(), read(&store).await);
    let (give, permit) = oneshot::channel::<()>();
    let permit = async move { permit.await.map_err(Error::internal) };
    let mut waiting = Box::pin(store.read_metered(eve.clone(), schema, permit, eve.body()));
    begin(waiting.as_mut());
    eve.ban();
    give.send(()).unwrap();
    eve.expect_refused(waiting.await);
    assert_eq!(eve.checks(), 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_is_asked_after_the_wait_for_a_connection() {
    let (store, _place) = store(Engine::Postgres, Arc::new(|_| ())).await;
    for surface in ["rows", "scan", "metered"] {
        // Another caller has the only connection for callers.
        let (begun, has_begun) = oneshot::channel::<()>();
        let (end, may_end) = oneshot::channel::<()>();
        let holding = tokio::spawn({
            let store = store.clone();
            async move {
                let held = store.read_rows(Eve::default(), None, move |_| {
                    Box::pin(async move {
                        begun.send(()).unwrap();
                        may_end.await.map_err(Error::internal)
                    })
                });
                held.await
            }
        });
        has_begun.await.unwrap();
        let (eve, schema) = (Eve::default(), read(&store).await);
        let mut waiting: BoxFuture<'_, Result<&'static str>> = match surface {
            "rows" => Box::pin(store.read_rows(eve.clone(), None, eve.body())),
            "scan" => Box::pin(store.scan(eve.clone(), (), eve.body())),
            _ => Box::pin(store.read_metered(eve.clone(), schema, async { Ok(()) }, eve.body())),
        };
        begin(waiting.as_mut());
        assert_eq!(eve.checks(), 0, "{surface}: there is no connection yet to ask her on");
        eve.ban();
        end.send(()).unwrap();
        eve.expect_refused(tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap());
        holding.await.unwrap().unwrap();
    }
    store.close().await;
}

/// Runs a body on both engines.
macro_rules! on_both {
    ($($body:ident)+) => {$(
        mod $body {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$body(blockbase_tests::Engine::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$body(blockbase_tests::Engine::Postgres).await;
            }
        }
    )+};
}

on_both! { a_reader_who_is_refused_reads_nothing a_reader_is_asked_after_the_wait_for_a_permit }
