//! Blocks written in C.

use blockbase_tests::{new_block, on_sqlite_first};

use crate::cli_sdk::promises;

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
