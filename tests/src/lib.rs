//! What end-to-end tests stand on: the real binary on either engine, a Postgres of their own, built blocks.
//!
//! Everything is started here, on free loopback ports, and ends with the test process.
#![forbid(unsafe_code)]

mod blocks;
mod exposition;
mod new_block;
mod npm;
mod postgres;
mod receiver;
mod registry;
mod server;

pub use blocks::{checkout, example_block, inspect, pack, shipped_block, test_block};
pub use exposition::Exposition;
pub use new_block::new_block;
pub use npm::npm_package;
pub use postgres::{Cluster, free_port, new_database};
pub use receiver::{Received, Receiver, Reply};
pub use registry::Registry;
pub use server::{
    Admin, Answer, Engine, Server, ServerBuilder, blockbase, finished, http_client, postgres_rows, target_directory,
};

/// How long a test waits for what has to come: far more than it takes, because a machine may have other things to do. What is promised in
/// a time of its own is measured beside it.
pub const WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(60);

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
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[$meta:meta])* async fn $name:ident($engine:ident: Engine) $body:block)+) => {$(
        mod $name {
            use super::*;

            async fn body($engine: $crate::Engine) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body($crate::Engine::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body($crate::Engine::Postgres).await;
            }
        }
    )+};
    ($($(#[$meta:meta])* async fn $name:ident($server:ident: Server) $body:block)+) => {$(
        mod $name {
            use super::*;

            async fn body($server: $crate::Server) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                body($crate::ServerBuilder::new($crate::Engine::Sqlite).start().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                body($crate::ServerBuilder::new($crate::Engine::Postgres).start().await).await;
            }
        }
    )+};
}
