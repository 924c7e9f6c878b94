//! Calls that are cancelled in the middle of their work, and blocks that are upgraded while a thousand calls run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use blockbase_tests::{WAIT_MAX, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{call, good, install, staying_ready};

/// Callers at a time. One block has fewer slots.
const CALLERS: usize = 120;
/// The minimum number of calls of each caller.
const CALLS: usize = 9;

on_both_engines! {
    async fn a_caller_who_hangs_up_leaves_whole_batches_and_no_more(server: Server) {
        let admin = server.admin().await;
        admin.make_task_object().await;
        install(&admin, "", json!({ "permissions": { "data": [{ "resource": "task", "actions": ["create"] }] } })).await;
        let count = async || server.sql("SELECT count(*) FROM task").await[0][0].parse::<usize>().unwrap();
        for hang_up_after in [150, 400] {
            let before = count().await;
            let writing = call(&admin, "keep_writing", json!({ "object": "task", "batch": 150 }));
            staying_ready(&server, async {
                // The action never ends by itself. Here the caller ends it as soon as a record exists.
                tokio::select! {
                    ended = writing => panic!("{} {}", ended.status, ended.text),
                    () = async {
                        while count().await == before {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                        tokio::time::sleep(Duration::from_millis(hang_up_after)).await;
                    } => {}
                }
            })
            .await;
            // The batch that was about to be committed may still be committed. A call that goes on never pauses for this long.
            let (mut last, mut since) = (count().await, Instant::now());
            let deadline = since + WAIT_MAX;
            while since.elapsed() < Duration::from_secs(2) {
                assert!(Instant::now() < deadline, "the call goes on");
                tokio::time::sleep(Duration::from_millis(50)).await;
                let now = count().await;
                if now != last {
                    (last, since) = (now, Instant::now());
                }
            }
            assert_eq!(last % 150, 0, "a part of a batch is there");
            assert!(last > before);
        }
        let events = "SELECT count(*) FROM svc_events WHERE topic = 'data.task.created'";
        let rows = server.sql(&format!("SELECT (SELECT count(*) FROM task), ({events})")).await;
        assert_eq!(rows[0][0], rows[0][1]);
        // Nothing is left locked, and the next call works.
        admin.make("task", json!({ "title": "afterwards" })).await;
        good(&admin).await;
    }

    async fn an_upgrade_waits_for_no_call_and_fails_none(server: Server) {
        let admin = server.admin().await;
        let of_version = |version: &str| {
            let schema = json!({ "type": "object", "properties": { "version": { "type": "string", "default": version } } });
            json!({ "version": version, "config": schema })
        };
        install(&admin, "", of_version("0.1.0")).await;
        let is_upgraded = AtomicBool::new(false);
        let callers = join_all((0..CALLERS).map(async |_| {
            let mut versions = Vec::new();
            let mut after = 0;
            while versions.len() < CALLS || after == 0 {
                after += usize::from(is_upgraded.load(Ordering::SeqCst));
                let configs = call(&admin, "two_configs", json!({ "ms": 100 })).await.data();
                assert_eq!(configs[0], configs[1], "a call changed its version");
                versions.push(configs[0]["version"].as_str().unwrap().to_owned());
            }
            versions
        }));
        let upgrade = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            install(&admin, "?upgrade=true", of_version("0.2.0")).await;
            is_upgraded.store(true, Ordering::SeqCst);
        };
        let (versions, ()) = staying_ready(&server, async { tokio::join!(callers, upgrade) }).await;
        assert!(versions.iter().map(Vec::len).sum::<usize>() >= 1000);
        for of_one in &versions {
            // First the old version answers, then the new one, and never the old one again.
            assert!(of_one.is_sorted() && of_one.first().is_some_and(|first| first == "0.1.0"), "{of_one:?}");
            assert!(of_one.last().is_some_and(|last| last == "0.2.0"), "{of_one:?}");
        }
        assert_eq!(admin.get("/api/v1/blocks/hostile").await.data()["version"], "0.2.0");
        assert_eq!(call(&admin, "two_configs", json!({ "ms": 0 })).await.data()[1]["version"], Value::from("0.2.0"));
        good(&admin).await;
    }
}
