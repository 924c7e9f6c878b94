//! Blocks written in C.

use blockbase_tests::{inspect, new_block, on_both_engines, on_sqlite_first, pack};
use serde_json::{Value, json};

use crate::cli_sdk::promises;

const KEEPER: &str = r#"
#include "blockbase.h"

static int64_t calls;
static const char *last;

static bb_result keep(const bb_context *context, bb_json input) {
    (void)context;
    bb_json answer = bb_set_text(bb_set_int(bb_object(), "calls", ++calls), "last", last);
    last = bb_get_text(input, "text");
    return bb_ok(answer);
}

BB_BLOCK(
    BB_ACTION(keep, "Answers with the text of the instance's previous call.", BB_JSON({
        "type": "object",
        "properties": { "text": { "type": "string" } },
        "required": ["text"]
    }))
);
"#;
const KEEPER_MANIFEST: &str = r#"{ "name": "keeper", "version": "0.1.0", "description": "Keeps what one call gives it." }"#;

on_sqlite_first! {
    async fn the_template_is_a_block(server: Server) {
        let file = new_block("c", "hello-c", &[]).await;
        promises::template(&server, "hello-c", file).await;
    }

    async fn the_handler_of_the_template_takes_any_record(server: Server) {
        let file = new_block("c", "hello-c", &[]).await;
        promises::any_record(&server, "hello-c:tasks", file, 7).await;
    }
}

on_sqlite_first! {
    #[ignore = "long: a toolchain"]
    async fn what_the_sdk_offers_works(engine: Engine) {
        let files = [("block.json", promises::PROBE_MANIFEST), ("block.c", include_str!("probe/block.c"))];
        let crash = promises::promises(engine, new_block("c", "probe", &files).await, &["random"]).await;
        assert!(crash.starts_with("The block trapped"), "{crash}");
    }
}

on_both_engines! {
    #[ignore = "long: a toolchain"]
    async fn state_passes_between_calls_only_by_consent(server: Server) {
        let file = new_block("c", "keeper", &[("block.json", KEEPER_MANIFEST), ("block.c", KEEPER)]).await;
        let admin = server.admin().await;
        let keep = async |text: &str| admin.post("/api/v1/blocks/keeper/actions/keep", json!({ "text": text })).await.data();
        let answer = |calls: u64, last: Value| json!({ "calls": calls, "last": last });
        assert_eq!(admin.install("", file.clone()).await.status, 201);
        for text in ["one", "two"] {
            assert_eq!(keep(text).await, answer(1, Value::Null), "without reuse");
        }

        let asked = json!({ "reuse": { "calls": 3, "seconds": 300 } });
        let mut manifest = inspect(file.clone()).await;
        manifest["version"] = json!("0.2.0");
        manifest["instances"] = asked.clone();
        let asking = pack(file, manifest).await.unwrap();
        let refused = admin.install("?upgrade=true", asking.clone()).await.expect_error(409, "new_permissions");
        assert_eq!(refused["newPermissions"]["instances"], json!([asked["reuse"]]));
        for text in ["three", "four"] {
            assert_eq!(keep(text).await, answer(1, Value::Null), "nobody has consented");
        }

        let upgraded = admin.install("?upgrade=true&allowNewPermissions=true", asking).await;
        assert_eq!((upgraded.status, &upgraded.data()["instances"]), (200, &asked));
        // The SDK frees no text of an earlier call, so a variable may keep it.
        assert_eq!(keep("five").await, answer(1, Value::Null));
        assert_eq!(keep("six").await, answer(2, json!("five")));
        assert_eq!(keep("seven").await, answer(3, json!("six")));
        assert_eq!(keep("eight").await, answer(1, Value::Null), "as many calls as agreed");
    }
}
