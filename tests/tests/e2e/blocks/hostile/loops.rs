//! Loops: the server stops any code of a guest at the call's deadline, and nothing else waits for it.
//!
//! These tests run only on SQLite, because the blocks use no data.

use blockbase_tests::Engine;
use futures_util::future::join_all;
use serde_json::json;

use super::hand_made::HandMade;
use super::{call, good, impatient, install, staying_ready};

const FOREVER: &str = "(loop $again (br $again)) (unreachable)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_that_loops_while_it_is_installed_is_refused() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let start = "(func $forever (loop $again (br $again))) (start $forever)".to_owned();
    let in_start = HandMade { fields: start, ..HandMade::default() }.packed("starts").await;
    let in_registry = HandMade { handlers: FOREVER, ..HandMade::default() }.packed("reports").await;
    let refused = staying_ready(&server, async {
        let both = async { tokio::join!(admin.install("", in_start), admin.install("", in_registry)) };
        let (refused, ()) = tokio::join!(both, good(&admin));
        [refused.0, refused.1]
    });
    for refused in refused.await {
        let error = refused.expect_error(400, "invalid_block");
        assert!(error["message"].as_str().unwrap().contains("did not end within 5000 ms"), "{error}");
    }
    assert_eq!(admin.get("/api/v1/blocks").await.data().as_array().unwrap().len(), 1);
    good(&admin).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_is_stopped_wherever_it_is() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    // During an install, five seconds are left. In a call of this block, less than two are left. So the block behaves well only
    // during the install.
    let remaining = r#"(import "blockbase:block/deadline@0.1.0" "remaining-ms" (func $remaining (result i64)))"#;
    let sometimes = "
        (func $start (if (i64.lt_u (call $remaining) (i64.const 2000)) (then (loop $again (br $again)))))
        (start $start)";
    for (name, block) in [
        ("in-start", HandMade { imports: remaining, fields: sometimes.to_owned(), ..HandMade::default() }),
        ("in-realloc", HandMade { realloc: FOREVER, ..HandMade::default() }),
        ("in-handler", HandMade { call: FOREVER, receive: FOREVER, ..HandMade::default() }),
    ] {
        let installed = admin.install("", block.packed(name).await).await;
        assert_eq!(installed.status, 201, "{name}: {}", installed.text);
        let path = |what: &str| format!("/api/v1/{what}");
        let (action, hook) = staying_ready(&server, async {
            let action = admin.post(&path(&format!("blocks/{name}/actions/go")), json!({})).await;
            (action, server.call("POST", &path(&format!("hooks/{name}/go")), Some(json!({}))).await)
        })
        .await;
        let error = action.expect_error(504, "action_timeout");
        assert_eq!(error["message"], "The call did not end within 1500 ms and was stopped.");
        hook.expect_error(504, "action_timeout");
        good(&admin).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_loops_leave_the_server_quick() {
    let server = impatient(Engine::Sqlite).start().await;
    let admin = server.admin().await;
    install(&admin, "", json!({})).await;
    let loops = join_all((0..12).map(|_| call(&admin, "spin", json!({}))));
    let goods = async {
        let mut answered = 0;
        loop {
            good(&admin).await;
            answered += 1;
            if answered == 20 {
                return;
            }
        }
    };
    let (ended, ()) = staying_ready(&server, async { tokio::join!(loops, goods) }).await;
    for answer in ended {
        answer.expect_error(504, "action_timeout");
    }
    good(&admin).await;
}
