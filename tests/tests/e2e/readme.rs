//! The README's tour, word by word, on both engines.

use std::process::{Command, Stdio};

use blockbase_tests::{blockbase, on_both_engines, target_directory};

/// The shell of the blocks that follow a `tour` mark.
fn tour() -> String {
    let readme = include_str!("../../../README.md");
    let mut shell = String::new();
    for part in readme.split("<!-- tour -->\n```sh\n").skip(1) {
        shell.push_str(part.split("\n```").next().unwrap());
        shell.push('\n');
    }
    shell
}

on_both_engines! {
    async fn the_tour_of_the_readme_works(server: Server) {
        let script = tour()
            .replace("http://127.0.0.1:4000", &server.base)
            .replace("cargo run --release --", &blockbase().display().to_string());
        assert!(script.contains("/actions/complete"), "{script}");
        let output = tokio::task::spawn_blocking(move || {
            Command::new("bash")
                .args(["-e", "-u", "-o", "pipefail", "-c", &format!("trap 'kill $(jobs -p)' EXIT\n{script}")])
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
