//! The base of the end-to-end tests: the real binary on either engine, a private Postgres, built blocks.
//!
//! Everything is started here, on free loopback ports, and ends with the test process.
#![forbid(unsafe_code)]

mod blocks;
mod exposition;
pub mod fuzz;
mod new_block;
mod npm;
mod postgres;
mod receiver;
mod registry;
mod run;
mod server;

pub use blocks::{checkout, example_block, guests_directory, inspect, pack, shipped_block, test_block};
pub use exposition::Exposition;
pub use new_block::new_block;
pub use npm::npm_package;
pub use postgres::{Cluster, Transaction, free_port, new_database};
pub use receiver::{Received, Receiver, Reply};
pub use registry::Registry;
pub use run::{Fixtures, is_long, lock, made_once};
pub use server::{
    Admin, Answer, Engine, HELD, Server, ServerBuilder, TableLock, blockbase, finished, http_client, postgres_rows,
    target_directory,
};

/// How long a test waits for what has to come: far more than it takes, because a machine may have other things to do. What is promised in
/// a time of its own is measured beside it.
pub const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// How long something may take that is promised within `promise`. The long command runs the tests that ask for it alone, and holds the
/// server to the promise. In the gate, where other tests share the machine, it only has to come.
pub fn within(promise: std::time::Duration) -> std::time::Duration {
    if is_long() { promise } else { WAIT_MAX }
}

/// Waits until something is so.
#[track_caller]
pub fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = std::time::Instant::now() + WAIT_MAX;
        while !is_so().await {
            assert!(std::time::Instant::now() < deadline, "{caller}: not so in time: {what}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

/// Runs one test body on both engines: with a server as it is by itself, or with the engine alone where the server needs settings.
///
/// Attributes of the body are those of both tests: `#[ignore = "long: …"]` leaves them to the long command.
#[macro_export]
macro_rules! on_both_engines {
    ($($tests:tt)+) => { $crate::engine_tests! { [cfg(all())] $($tests)+ } };
}

/// The same, where Postgres proves little that SQLite does not: its half runs by the long command alone.
#[macro_export]
macro_rules! on_sqlite_first {
    ($($tests:tt)+) => { $crate::engine_tests! { [ignore = "long: SQLite's twin proves the same"] $($tests)+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! engine_tests {
    ($on_postgres:tt $($(#[$meta:meta])* async fn $name:ident($engine:ident: Engine) $body:block)+) => {$(
        mod $name {
            use super::*;

            async fn body($engine: $crate::Engine) $body

            $(#[$meta])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body($crate::Engine::Sqlite).await;
            }

            $(#[$meta])*
            #$on_postgres
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body($crate::Engine::Postgres).await;
            }
        }
    )+};
    ($on_postgres:tt $($(#[$meta:meta])* async fn $name:ident($server:ident: Server) $body:block)+) => {$(
        mod $name {
            use super::*;

            async fn body($server: $crate::Server) $body

            $(#[$meta])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body($crate::ServerBuilder::new($crate::Engine::Sqlite).start().await).await;
            }

            $(#[$meta])*
            #$on_postgres
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body($crate::ServerBuilder::new($crate::Engine::Postgres).start().await).await;
            }
        }
    )+};
}
