//! The shipped blocks are built, installed and used as their READMEs describe.

mod csv;
mod github_hooks;
mod slack_notify;
mod stripe_hooks;
mod tours;

use blockbase_tests::{Admin, Answer, Server, shipped_block};
use serde_json::{Value, json};

/// Installs a block, and returns its description.
async fn install(admin: &Admin<'_>, name: &'static str) -> Value {
    let installed = admin.install("", shipped_block(name).await).await;
    assert_eq!(installed.status, 201, "{}", installed.text);
    installed.data()
}

async fn set_secret(admin: &Admin<'_>, block: &str, name: &str, value: &str) {
    let set = admin.post(&format!("/api/v1/blocks/{block}/secrets"), json!({ "name": name, "value": value })).await;
    assert!((200..300).contains(&set.status), "{}", set.text);
}

async fn configure(admin: &Admin<'_>, block: &str, config: Value) {
    let configured = admin.patch(&format!("/api/v1/blocks/{block}"), json!({ "config": config })).await;
    assert_eq!(configured.status, 200, "{}", configured.text);
}

/// Sends a request in the same way as a third party.
async fn send(server: &Server, block: &str, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
    let mut request = server.request("POST", &format!("/api/v1/hooks/{block}/receive")).body(body.into());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request).await
}

/// The status and the JSON of a response.
fn told(answer: &Answer) -> (u16, Value) {
    (answer.status, answer.json())
}

/// All records of an object.
async fn records(admin: &Admin<'_>, object: &str) -> Vec<Value> {
    admin.get(&format!("/api/v1/data/{object}?pageSize=100&sort=id")).await.data().as_array().unwrap().clone()
}

/// Waits until a block's log has a line with this text.
async fn log_line(admin: &Admin<'_>, block: &str, part: &str) -> Value {
    let deadline = std::time::Instant::now() + blockbase_tests::WAIT_MAX;
    loop {
        let lines = admin.get(&format!("/api/v1/blocks/{block}/logs")).await.data();
        let found = lines.as_array().unwrap().iter().find(|line| line["message"].as_str().unwrap().contains(part));
        if let Some(line) = found {
            return line.clone();
        }
        assert!(std::time::Instant::now() < deadline, "no line with {part:?} in the log of {block}");
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
}

/// Signs up a user with a role that has these grants. Returns the user's client.
async fn user_with<'a>(server: &'a Server, admin: &Admin<'_>, name: &str, grants: Value) -> Admin<'a> {
    let user = server.with_token(server.sign_up(name).await);
    let role = admin.post("/api/v1/roles", json!({ "name": format!("role-of-{name}"), "permissions": grants })).await;
    assert_eq!(role.status, 201, "{}", role.text);
    let id = user.get("/api/v1/me").await.json()["userId"].clone();
    let given = admin
        .post(&format!("/api/v1/users/{}/roles", id.as_str().unwrap()), json!({ "roleId": format!("role-of-{name}") }))
        .await;
    assert_eq!(given.status, 200, "{}", given.text);
    user
}

fn now_seconds() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()
}
