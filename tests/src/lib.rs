//! The base of the end-to-end tests: the real binary on both engines, a private Postgres, built blocks.
//!
//! Everything listens on free loopback ports, and ends with the test process.
#![forbid(unsafe_code)]

mod blocks;
mod command;
mod exposition;
#[cfg(test)]
mod faults;
pub mod fuzz;
mod mail_server;
mod new_block;
mod npm;
mod packages;
mod postgres;
mod receiver;
mod registry;
mod run;
mod server;
#[cfg(test)]
mod walls;

pub use blocks::{checkout, example_block, guests_directory, inspect, pack, shipped_block, test_block};
pub use command::{COMMAND_TIME_MAX, Ran, ran};
pub use exposition::Exposition;
pub use mail_server::MailServer;
pub use new_block::{new_block, path_with_go};
pub use npm::npm_package;
pub use packages::{PIP_STEPS, command_in, installed};
pub use postgres::{Cluster, Transaction, free_port, new_database};
pub use receiver::{Received, Receiver, Reply};
pub use registry::Registry;
pub use run::{Fixtures, is_long, lock, made_once};
pub use server::{
    Admin, Answer, Engine, HELD, Server, ServerBuilder, TableLock, blockbase, finished, http_client, postgres_rows,
    target_directory,
};

/// How long a test waits for something. That is much longer than necessary, because the machine may be busy. The test of a
/// promised time checks that time separately.
pub const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(60);

/// The time limit for something that is promised within `promise`. The long command runs such a test while no other test runs, so
/// it checks the promised time. In the gate, other tests use the machine too. So there, it only has to happen at some time.
pub fn within(promise: std::time::Duration) -> std::time::Duration {
    if is_long() { promise } else { WAIT_MAX }
}

/// Waits until a condition is true.
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

/// Runs one test body on both engines. The body gets a server with default settings, or only the engine if its server needs settings.
///
/// Attributes of the body apply to both tests: with `#[ignore = "long: …"]`, only the long command runs them.
#[macro_export]
macro_rules! on_both_engines {
    ($($tests:tt)+) => { $crate::engine_tests! { [cfg(all())] $($tests)+ } };
}

/// Does the same for a test that shows little more on Postgres than on SQLite. Only the long command runs it on Postgres.
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
