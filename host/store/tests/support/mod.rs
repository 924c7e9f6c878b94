//! What the tests of the store share.

use std::sync::Arc;

use blockbase_store::{Location, Store};
use blockbase_tests::Engine;

/// A store on an engine. On Postgres it has one connection for callers. The directory has to outlive the store.
pub(crate) async fn store(engine: Engine) -> (Store, tempfile::TempDir) {
    let place = tempfile::tempdir().unwrap();
    let location = match engine {
        Engine::Sqlite => Location::Sqlite { file: place.path().join("svc.db") },
        Engine::Postgres => Location::Postgres { url: blockbase_tests::new_database().await },
    };
    (Store::open(location, Some(2), Arc::new(|_| ())).await.unwrap(), place)
}
