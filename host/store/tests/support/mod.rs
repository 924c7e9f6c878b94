//! What the tests of the store share.

use blockbase_store::{Location, OnCommit, Store};
use blockbase_tests::Engine;

/// A store on an engine, with a call after each commit that wrote to the outbox. On Postgres it has one connection for callers. The
/// directory has to outlive the store.
pub(crate) async fn store(engine: Engine, on_commit: OnCommit) -> (Store, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    let location = match engine {
        Engine::Sqlite => Location::Sqlite { file: place.path().join("svc.db") },
        Engine::Postgres => Location::Postgres { url: blockbase_tests::new_database().await },
    };
    (Store::open(location, Some(2), on_commit).await.unwrap(), place)
}
