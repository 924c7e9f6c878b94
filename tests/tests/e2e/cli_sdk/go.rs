//! Blocks written in Go.

use blockbase_tests::{new_block, on_both_engines};

use crate::cli_sdk::promises;

on_both_engines! {
    #[ignore = "long: a toolchain"]
    async fn the_template_is_a_block(server: Server) {
        let file = new_block("go", "hello-go", &[]).await;
        promises::template(&server, "hello-go", file).await;
    }

    #[ignore = "long: a toolchain"]
    async fn the_handler_of_the_template_takes_any_record(server: Server) {
        let file = new_block("go", "hello-go", &[]).await;
        promises::any_record(&server, "hello-go:tasks", file, 7).await;
    }
}

on_both_engines! {
    #[ignore = "long: a toolchain"]
    async fn what_the_sdk_offers_works(engine: Engine) {
        let files = [("block.json", promises::PROBE_MANIFEST), ("main.go", include_str!("probe/main.go"))];
        let file = new_block("go", "probe", &files).await;
        // A panic is an ordinary error, and not a trap.
        let crash = promises::promises(engine, file, &["random", "old", "new", "own"]).await;
        assert!(crash.starts_with("panic: runtime error: "), "{crash}");
    }
}
