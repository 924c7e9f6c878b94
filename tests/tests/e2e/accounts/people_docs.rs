//! The examples of `docs/auth.md` that its tour does not run, because they need mail or the machine of the server.

use std::process::Command;

use blockbase_tests::{Engine, MailServer, ServerBuilder, on_both_engines, ran};
use serde_json::json;

use super::mail::{NEW_PASSWORD, sending_to, sign_in};
use super::roles::{role, user};

const PAGE: &str = include_str!("../../../../docs/auth.md");

/// The block of the page after a mark.
fn block(mark: &str) -> &'static str {
    let (_, after) = PAGE.split_once(&format!("<!-- {mark} -->\n```\n")).unwrap_or_else(|| panic!("no block {mark}"));
    after.split_once("\n```").unwrap().0
}

on_both_engines! {
    async fn the_commands_with_mail_work(engine: Engine) {
        let mails = MailServer::start(&[]).await;
        let server = sending_to(engine, &mails).start().await;
        let admin = server.admin().await;
        let mut shell = Command::new("bash");
        shell.args(["-e", "-u", "-o", "pipefail", "-c", &block("with mail").replace("curl -s", "curl -sf")]);
        shell.env("API", &server.base).env("JSON", "content-type: application/json");
        shell.env("ADMIN", format!("authorization: Bearer {}", admin.token));
        ran(shell, "").await.out();
        let sent = mails.mails(3).await;
        assert!(sent.iter().all(|mail| mail["to"] == json!(["dan@example.com"])), "{sent:?}");
        for link in ["/admin/set-password#token=", "/api/auth/verify-email?token="] {
            let named = format!("{}{link}", server.base);
            assert!(sent.iter().any(|mail| mail["text"].as_str().unwrap().contains(&named)), "{link}: {sent:?}");
        }
    }

    async fn the_commands_on_the_machine_of_the_server_work(engine: Engine) {
        let server = ServerBuilder::new(engine).start().await;
        let admin = server.admin().await;
        role(&admin, "writer", json!([])).await;
        user(&admin, "dan", None).await;
        let mut commands = 0;
        for line in block("on the machine of the server").lines() {
            let command = line.split('#').next().unwrap();
            let mut words = command.split_whitespace();
            assert_eq!(words.next(), Some("blockbase"), "{line}");
            let arguments: Vec<&str> = words.collect();
            assert!(!server.run(&arguments, NEW_PASSWORD).await.out().is_empty(), "{line}");
            commands += 1;
        }
        assert!(commands >= 4, "{commands}");
        assert_eq!(sign_in(&server, "eve", NEW_PASSWORD).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_takes_the_addresses_of_mail_servers() {
    let urls: Vec<&str> = PAGE.split('`').filter(|text| text.starts_with("smtp")).collect();
    assert!(urls.len() >= 7, "{urls:?}");
    for url in urls {
        let server =
            ServerBuilder::new(Engine::Sqlite).env("SVC_SMTP_URL", url).env("SVC_MAIL_FROM", "shop@example.com").start().await;
        assert_eq!(server.call("GET", "/api/v1/instance", None).await.json()["mail"], true, "{url}");
    }
}
