//! The resources that a request uses before and after its admission: bodies and their memory, shares, streams.

mod bodies;
mod documents;
mod memory;
mod scans;
mod scratch;
mod shares;
mod streams;
mod turns;

use blockbase_tests::{Admin, Server};
use serde_json::{Value, json};

/// A user with their own role.
async fn user_with<'a>(admin: &Admin<'a>, name: &str, permissions: Value) -> Admin<'a> {
    let role = admin.post("/api/v1/roles", json!({ "name": format!("of {name}"), "permissions": permissions })).await.data();
    let user = admin.server.with_token(admin.server.sign_up(name).await);
    let id = id_of(&user).await;
    let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role["id"] })).await;
    assert_eq!(given.status, 200, "{}", given.text);
    user
}

async fn id_of(user: &Admin<'_>) -> String {
    user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned()
}

/// JSON of about `bytes` bytes that needs many times as much memory when it is parsed into a tree.
fn array(bytes: usize) -> String {
    format!("[{}[]]", "[],".repeat(bytes / 3 - 1))
}

/// Memory of the server in kilobytes. `what` is the kernel's name for it.
fn memory(server: &Server, what: &str) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Resets the peak of the server's memory, and returns its current memory.
fn reset_peak(server: &Server) -> i64 {
    std::fs::write(format!("/proc/{}/clear_refs", server.process_id()), "5").unwrap();
    memory(server, "VmRSS")
}
