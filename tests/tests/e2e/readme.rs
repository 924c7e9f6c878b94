//! The tours of the README and of the documents, word by word, on both engines.

use std::process::{Command, Stdio};

use blockbase_tests::{Server, ServerBuilder, blockbase, free_port, on_both_engines, target_directory};

/// The shell of the blocks that follow a `tour` mark.
fn tour(document: &str) -> String {
    let mut shell = String::new();
    let mut rest = document;
    while let Some((_, after)) = rest.split_once("<!-- tour -->\n```sh\n") {
        let (commands, behind) = after.split_once("\n```").unwrap();
        shell.push_str(commands);
        shell.push('\n');
        rest = behind;
    }
    shell
}

/// Runs a document's tour against a server: what it wrote to standard output, and that with its errors.
pub(crate) async fn run(document: &str, server: &Server) -> (String, String) {
    let script = tour(document)
        .replace("http://127.0.0.1:4000", &server.base)
        .replace("cargo run --release --", &blockbase().display().to_string());
    assert!(script.contains(&server.base), "{script}");
    let output = tokio::task::spawn_blocking(move || {
        // A tour waits for what happens in the background: not for ever.
        Command::new("timeout")
            .args([
                "--kill-after=5",
                "900",
                "bash",
                "-e",
                "-u",
                "-o",
                "pipefail",
                "-c",
                &format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}"),
            ])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
            .env("CARGO_TARGET_DIR", target_directory().join("guests"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    })
    .await
    .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{all}");
    (text, all)
}

on_both_engines! {
    async fn the_tour_of_the_readme_works(server: Server) {
        let (text, all) = run(include_str!("../../../README.md"), &server).await;
        for part in [
            r#"{"data":{"name":"task","fields""#,
            r#""title":"Buy cream for éclairs""#,
            r#""totalCount":2,"totalPages":2"#,
            r#""priority":8"#,
            r#""name":"bakery""#,
            r#""project":{"id":""#,
            r#""fn":"sum","field":"priority","value":10,"filteredCount":2"#,
            r#""name":"urgency","type":"integer""#,
            r#"{"report":{"permissions":{"data":[{"resource":"task""#,
            r#""installedAt""#,
            r#""message":"Well done!""#,
            r#""message":"completed a task""#,
            ": open",
            r#""topic":"data.task.created""#,
            r#""topic":"data.task.updated""#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#"{"error""#), "{all}");
    }
}

on_both_engines! {
    async fn the_tour_of_identity_works(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ANONYMOUS_AUTH", "true").start().await;
        let (text, all) = run(include_str!("../../../docs/auth.md"), &server).await;
        for part in [
            r#""name":"writer","description":null,"permissions":[{"resource":"note""#,
            r#"{"error":"forbidden","message":"#,
            r#""roles":[{"id":""#,
            r#""text":"hers""#,
            r#""text":"by the program""#,
            r#""roles":["writer"],"user":{"id":""#,
            r#""apiKeyId":""#,
            r#"{"authenticated":false}"#,
            r#""text":"before signing up""#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        // One refusal is part of it, and Ann's list has her own note alone.
        assert_eq!(text.matches(r#"{"error""#).count(), 1, "{all}");
        assert_eq!(text.matches(r#""text":"of the admin""#).count(), 1, "{all}");
    }

    async fn the_tour_of_mcp_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../docs/mcp.md"), &server).await;
        for part in [
            r#""name":"query_data","title""#,
            r#""name":"upsert_record","title""#,
            r#""structuredContent":{"data":{"id":""#,
            r#""structuredContent":{"data":[{"id":""#,
            r#""totalCount":1"#,
            r#"{\"error\":\"forbidden\""#,
            "notifications/tools/list_changed",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#""name":"delete_record","title""#) && !text.contains(r#"{"error""#), "{all}");
    }

    async fn the_tour_of_graphql_works(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let (text, all) = run(include_str!("../../../docs/graphql.md"), &server).await;
        for part in [
            r#""title":"Buy cream for éclairs","state":"open","project":{"name":"bakery"}"#,
            r#"{"created":false,"data":{"id":""#,
            r#""project":{"name":"bakery","task_by_project":[{"title":"Buy cream for éclairs"}]}}],"pagination":{"totalCount":1,"hasNextPage":false}}"#,
            r#""task_aggregate":{"value":7,"filteredCount":1}"#,
            r#"{"data":{"update_task":{"state":"done","priority":8}}}"#,
            "event: next",
            r#"{"data":{"events":{"topic":"data.task.updated""#,
            r#"{"data":{"delete_task":true}}"#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#""errors""#), "{all}");
    }

    async fn the_tour_of_webhooks_works(engine: Engine) {
        let server = ServerBuilder::new(engine).env("SVC_ALLOW_PRIVATE_NETWORK", "true").start().await;
        let port = free_port().to_string();
        let (text, all) = run(&include_str!("../../../docs/webhooks.md").replace("4100", &port), &server).await;
        for part in [
            r#""consumer":"audit","handler":"persist_event""#,
            "received data.order.created",
            "received webhook.test.",
            r#""topic":"data.order.created","record":{"id":""#,
            r#""handler":"webhook","status":"delivered","attempts":1"#,
            r#""handler":"persist_event","status":"delivered","attempts":1"#,
            r#"{"data":[{"id":""#,
        ] {
            assert!(text.contains(part), "{part} is missing in\n{all}");
        }
        assert!(!text.contains(r#"{"error""#), "{all}");
    }
}
