//! GitHub's webhooks. Each is stored once.

use blockbase_tests::{Admin, Answer, Server, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{install, log_line, records, send, set_secret, told};
use crate::events::webhooks::hmac;

const BLOCK: &str = "github-hooks";
/// The secret from GitHub's documentation, which also has the signature of [`TEST_BODY`].
const SECRET: &str = "It's a Secret to Everybody";
const TEST_BODY: &str = "Hello, World!";
const TEST_SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

const PING: &str = r#"{"zen":"Anything added dilutes everything else.","hook_id":109948940,"hook":{"type":"Repository","id":109948940,"name":"web","active":true,"events":["push"],"config":{"content_type":"json","insecure_ssl":"0","url":"https://example.com/api/v1/hooks/github-hooks/receive"}},"repository":{"id":1296269,"name":"Hello-World","full_name":"octocat/Hello-World"},"sender":{"login":"octocat","id":583231}}"#;

const PUSH: &str = r#"{"ref":"refs/heads/main","before":"6113728f27ae82c7b1a177c8d03f9e96e0adf246","after":"0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c","repository":{"id":1296269,"node_id":"MDEwOlJlcG9zaXRvcnkxMjk2MjY5","name":"Hello-World","full_name":"octocat/Hello-World","private":false,"owner":{"name":"octocat","login":"octocat","id":583231},"html_url":"https://github.com/octocat/Hello-World","default_branch":"main"},"pusher":{"name":"octocat","email":"octocat@github.com"},"sender":{"login":"octocat","id":583231,"type":"User"},"created":false,"deleted":false,"forced":false,"base_ref":null,"compare":"https://github.com/octocat/Hello-World/compare/6113728f27ae...0d1a26e67d8f","commits":[{"id":"0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c","tree_id":"f9d2a07e9488b91af2641b26b9407fe22a451433","distinct":true,"message":"Füge + & % hinzu","timestamp":"2026-11-21T12:00:00+01:00","author":{"name":"Zoë","email":"zoe@example.com","username":"octocat"},"added":["a+b.txt"],"removed":[],"modified":[]}],"head_commit":{"id":"0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c"}}"#;

const PULL_REQUEST: &str = r#"{"action":"opened","number":2,"pull_request":{"url":"https://api.github.com/repos/octocat/Hello-World/pulls/2","id":279147437,"number":2,"state":"open","locked":false,"title":"Update the README with new information.","user":{"login":"hubot","id":480938},"body":null,"created_at":"2026-11-21T15:20:33Z","head":{"label":"hubot:changes","ref":"changes","sha":"ec26c3e57ca3a959ca5aad62de7213c562f8c821"},"base":{"label":"octocat:main","ref":"main","sha":"f95f852bd8fca8fcc58a9a2d6c842781e32a215e"},"draft":false,"merged":false,"mergeable":null,"commits":1,"additions":1,"deletions":1,"changed_files":1},"repository":{"id":1296269,"name":"Hello-World","full_name":"octocat/Hello-World"},"sender":{"login":"hubot","id":480938}}"#;

async fn ready(server: &Server) -> Admin<'_> {
    let admin = server.admin().await;
    let object = serde_json::from_str(include_str!("../../../../../blocks/github-hooks/object.json")).unwrap();
    let made = admin.post("/api/v1/objects", object).await;
    assert_eq!(made.status, 201, "{}", made.text);
    install(&admin, BLOCK).await;
    set_secret(&admin, BLOCK, "GITHUB_WEBHOOK_SECRET", SECRET).await;
    admin
}

async fn deliver(server: &Server, event: &str, id: &str, kind: &str, body: &str) -> Answer {
    let signature = format!("sha256={}", hmac(SECRET, body.as_bytes()));
    let headers = [
        ("x-github-event", event),
        ("x-github-delivery", id),
        ("x-hub-signature-256", signature.as_str()),
        ("x-github-hook-id", "109948940"),
        ("content-type", kind),
        ("user-agent", "GitHub-Hookshot/044aadd"),
    ];
    send(server, BLOCK, &headers, body).await
}

/// Encodes a form. Each byte that is not a letter or a digit becomes `%` and its number, and a space becomes `+`.
fn form(payload: &str) -> String {
    let encoded = payload.bytes().map(|byte| match byte {
        b' ' => "+".to_owned(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    format!("payload={}", encoded.collect::<String>())
}

fn received() -> (u16, Value) {
    (200, json!({ "received": true }))
}

fn code(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json()["error"].clone())
}

const AS_JSON: &str = "application/json";
const AS_FORM: &str = "application/x-www-form-urlencoded";

on_both_engines! {
    async fn a_delivery_of_githubs_is_kept_once_however_often_it_comes(server: Server) {
        let admin = ready(&server).await;
        let (first, second) = ("72d3162e-cc78-11e3-81ab-4c9367dc0958", "0b989ba4-242f-11e5-81e1-c7b6966d2516");
        assert_eq!(told(&deliver(&server, "push", first, AS_JSON, PUSH).await), received());
        assert_eq!(told(&deliver(&server, "pull_request", second, AS_JSON, PULL_REQUEST).await), received());
        // The same deliveries again, one of them as a form.
        assert_eq!(told(&deliver(&server, "push", first, AS_FORM, &form(PUSH)).await), received());
        assert_eq!(told(&deliver(&server, "pull_request", second, AS_JSON, PULL_REQUEST).await), received());
        // A delivery that comes only as a form.
        assert_eq!(told(&deliver(&server, "push", "third", AS_FORM, &form(PUSH)).await), received());
        let kept = records(&admin, "github_event").await;
        assert_eq!(kept.len(), 3);
        for (record, id, event, action, sender, reference, body) in [
            (&kept[0], first, "push", Value::Null, "octocat", "refs/heads/main", PUSH),
            (&kept[1], second, "pull_request", json!("opened"), "hubot", "changes", PULL_REQUEST),
            (&kept[2], "third", "push", Value::Null, "octocat", "refs/heads/main", PUSH),
        ] {
            for (field, expected) in [
                ("delivery_id", json!(id)), ("event", json!(event)), ("action", action), ("sender", json!(sender)), ("ref", json!(reference)),
                ("repository", json!("octocat/Hello-World")), ("payload", serde_json::from_str(body).unwrap()),
            ] {
                assert_eq!(record[field], expected, "{field} of {id}");
            }
        }
        let topics: Vec<String> = admin.outbox("github_event").await.into_iter().map(|(topic, _)| topic).collect();
        assert_eq!(topics, ["data.github_event.created"; 3]);
        let answers = join_all((0..16).map(|_| deliver(&server, "push", "at-the-same-time", AS_JSON, PUSH))).await;
        assert!(answers.iter().all(|answer| told(answer) == received()), "{answers:?}");
        assert_eq!(records(&admin, "github_event").await.len(), 4);
    }

    async fn a_ping_is_answered_and_not_kept(server: Server) {
        let admin = ready(&server).await;
        for (kind, body) in [(AS_JSON, PING.to_owned()), (AS_FORM, form(PING))] {
            let answer = deliver(&server, "ping", "ping-1", kind, &body).await;
            assert_eq!(told(&answer), (200, json!({ "pong": true, "zen": "Anything added dilutes everything else." })));
        }
        assert_eq!(records(&admin, "github_event").await.len(), 0);
    }

    async fn what_github_did_not_sign_is_refused(server: Server) {
        let admin = ready(&server).await;
        let good = format!("sha256={}", hmac(SECRET, PUSH.as_bytes()));
        let other = format!("sha256={}", hmac("another secret", PUSH.as_bytes()));
        for (what, header, body) in [
            ("another secret", other.as_str(), PUSH),
            ("no scheme", &good[7..], PUSH),
            ("SHA-1's scheme", "sha1=d03207e4b030cf234e3447bac4d93add4c6643d8", PUSH),
            ("half a signature", &good[..40], PUSH),
            ("another body", good.as_str(), PULL_REQUEST),
            ("GitHub's test, changed", TEST_SIGNATURE, "Hello, world!"),
            ("nothing", "", PUSH),
        ] {
            let headers = [("x-github-event", "push"), ("x-github-delivery", "d"), ("x-hub-signature-256", header), ("content-type", AS_JSON)];
            let answer = send(&server, BLOCK, &headers, body).await;
            assert_eq!(code(&answer), (400, json!("invalid_signature")), "{what}: {}", answer.text);
        }
        let unsigned = send(&server, BLOCK, &[("x-github-event", "ping")], PING).await;
        assert_eq!(code(&unsigned), (400, json!("invalid_signature")));
        // The signature from GitHub's documentation is valid, but the text that it signs is not a payload.
        let documented = send(&server, BLOCK, &[("x-github-event", "push"), ("x-hub-signature-256", TEST_SIGNATURE)], TEST_BODY).await;
        assert_eq!(code(&documented), (400, json!("invalid_payload")));
        for (event, id) in [("", "d"), ("push", ""), ("push", "a b"), ("push", "x".repeat(101).as_str())] {
            assert_eq!(code(&deliver(&server, event, id, AS_JSON, PUSH).await), (400, json!("invalid_headers")), "{event:?} {id:?}");
        }
        assert_eq!(code(&deliver(&server, "push", "d", AS_FORM, PUSH).await), (400, json!("invalid_payload")));
        let by_put = server.call("PUT", "/api/v1/hooks/github-hooks/receive", Some(json!({}))).await;
        assert_eq!(code(&by_put), (405, json!("method_not_allowed")));
        assert_eq!(records(&admin, "github_event").await, Vec::<Value>::new());
    }

    async fn without_its_secret_it_takes_nothing(server: Server) {
        let admin = server.admin().await;
        install(&admin, BLOCK).await;
        deliver(&server, "ping", "d", AS_JSON, PING).await.expect_error(500, "action_failed");
        log_line(&admin, BLOCK, "GITHUB_WEBHOOK_SECRET").await;
    }
}
