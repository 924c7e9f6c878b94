//! A stream while writers write: it misses no event, regardless of the moments at which the server reads the outbox.

use std::time::Duration;

use blockbase_tests::{Cluster, Engine, Server, ServerBuilder, Transaction, on_both_engines};
use serde_json::json;

use super::seed::Seed;
use crate::accounts::roles::{role, user};
use crate::events::Stream;

const WRITES: usize = 300;

on_both_engines! {
    async fn the_stream_leaves_out_nothing_whenever_a_write_meets_a_look_at_the_outbox(server: Server) {
        let seed = Seed::new();
        let mut random = seed.rng(0);
        let admin = server.admin().await;
        admin.make_task_object().await;
        let mut stream = Stream::open(&admin, "").await;
        let write = async {
            for number in 0..WRITES {
                admin.make("task", json!({ "title": number.to_string() })).await;
                // Writes run one at a time, so that no later transaction ends before an earlier one.
                tokio::time::sleep(Duration::from_millis(random.u64(0..30))).await;
            }
        };
        let read = async {
            for number in 0..WRITES {
                assert_eq!(stream.event().await["payload"]["after"]["title"], number.to_string());
            }
        };
        tokio::join!(write, read);
    }
}

/// A server whose feed begins when the transaction ends. The server has a cluster of its own, because the transaction delays the
/// feeds of every database in the cluster.
async fn waiting_server() -> (Server, Transaction, Cluster) {
    let cluster = tokio::task::spawn_blocking(Cluster::start).await.unwrap();
    let transaction = Transaction::begin(&cluster.new_database("other").await).await;
    let server = ServerBuilder::new(Engine::Postgres).database(cluster.new_database("served").await).start().await;
    (server, transaction, cluster)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_opens_before_the_feed_begins_leaves_nothing_out() {
    let (server, transaction, _cluster) = waiting_server().await;
    let admin = server.admin().await;
    admin.make_task_object().await;
    let mut stream = Stream::open(&admin, "").await;
    for number in 0..3 {
        admin.make("task", json!({ "title": number.to_string() })).await;
    }
    transaction.end().await;
    for number in 0..3 {
        assert_eq!(stream.event().await["payload"]["after"]["title"], number.to_string());
    }
    admin.make("task", json!({ "title": "live" })).await;
    assert_eq!(stream.event().await["payload"]["after"]["title"], "live");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_from_before_the_feed_begins_counts_for_its_first_events() {
    let (server, transaction, _cluster) = waiting_server().await;
    let admin = server.admin().await;
    admin.define("note", json!([{ "name": "text", "type": "text" }])).await;
    role(&admin, "reader", json!([])).await;
    let (reader, _) = user(&admin, "reader", Some("reader")).await;
    let mut stream = Stream::open(&reader, "?topics=data.note.created").await;
    // The stream looks at its reader again each second. If this test takes longer until the feed begins, it tests nothing.
    let grants = json!([{ "resource": "note", "actions": ["read"] }]);
    assert_eq!(admin.patch("/api/v1/roles/reader", json!({ "permissions": grants })).await.status, 200);
    admin.make("note", json!({ "text": "early" })).await;
    transaction.end().await;
    admin.make("note", json!({ "text": "live" })).await;
    for text in ["early", "live"] {
        assert_eq!(stream.event().await["payload"]["after"]["text"], text);
    }
}
