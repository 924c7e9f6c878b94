//! Runs the commands in the READMEs of the shipped blocks.

use blockbase_tests::{Server, ServerBuilder, free_port, on_both_engines};

/// Runs a README's commands. Their output has to contain these parts.
async fn tour(server: &Server, document: &str, parts: &[&str]) {
    // In a checkout, `blockbase` is not installed.
    let (text, all) =
        crate::cli_sdk::readme::run(&document.replace("blockbase block", "cargo run --release -- block"), server).await;
    for part in parts {
        assert!(text.contains(part), "{part} is missing in\n{all}");
    }
}

on_both_engines! {
    #[ignore = "long: a tour of a shipped block"]
    async fn the_readme_of_stripe_hooks_works(server: Server) {
        let parts = [
            r#"{"received":true}{"error":"invalid_signature","#, r#""stripe_id":"evt_1","type":"payment_intent.succeeded","created":"2026-09-21T14:13:20.000Z""#,
            r#""totalCount":1"#, "charge.refunded", r#""name":"money","#,
        ];
        tour(&server, include_str!("../../../../../blocks/stripe-hooks/README.md"), &parts).await;
    }

    #[ignore = "long: a tour of a shipped block"]
    async fn the_readme_of_github_hooks_works(server: Server) {
        let parts = [
            r#"{"received":true}{"error":"invalid_signature","#, r#""delivery_id":"72d3162e-cc78-11e3-81ab-4c9367dc0958","event":"push""#,
            r#""ref":"refs/heads/main","payload":{"#, r#""totalCount":1"#, r#""name":"ci_event","#,
        ];
        tour(&server, include_str!("../../../../../blocks/github-hooks/README.md"), &parts).await;
    }

    #[ignore = "long: a tour of a shipped block"]
    async fn the_readme_of_csv_works(server: Server) {
        let parts = [
            r#""inserted":2"#, r#""updated":1"#, "exit code 1",
            r#"sku,name,price\r\na-1,\"Table, round\",199.9\r\na-2,Chair,59\r\na-3,,9.5\r\n"#,
            "b-1,\"'=HYPERLINK(\"\"x\"\")\"\r\n", r#""name":"stock""#,
        ];
        tour(&server, include_str!("../../../../../blocks/csv/README.md"), &parts).await;
    }
}

on_both_engines! {
    #[ignore = "long: a tour of a shipped block"]
    async fn the_readme_of_slack_notify_works(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true").start().await;
        let document = include_str!("../../../../../blocks/slack-notify/README.md").replace("4100", &free_port().to_string());
        let parts = [
            r#"Slack would show {"text":"Hello!"}"#,
            r#"Slack would show {"text":"New order A-1 &lt;!here&gt; over 19.9\n:warning: A-1 &lt;!here&gt; failed"}"#,
            r#""status":"delivered","attempts":1"#,
        ];
        tour(&server, &document, &parts).await;
    }
}
