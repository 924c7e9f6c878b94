//! The cost of reads: reads of one caller do not block others, and memory is limited. After a client has disconnected, its reads
//! use no resources.

mod answers;
mod cost;
mod moments;
mod pages;
mod room;
mod texts;

use blockbase_tests::{Admin, Server};
use serde_json::json;

/// A user who may only read and write the records of one object.
async fn weak_user<'a>(admin: &Admin<'a>, name: &str, object: &str) -> Admin<'a> {
    let grants = json!([{ "resource": object, "actions": ["read", "create", "update", "delete"] }]);
    let role = json!({ "name": format!("role_{name}"), "permissions": grants });
    let made = admin.post("/api/v1/roles", role).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let role = made.json()["data"]["id"].as_str().unwrap().to_owned();
    let token = admin.server.sign_up(name).await;
    let user = admin.server.with_token(token);
    let id = user.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    let given = admin.post(&format!("/api/v1/users/{id}/roles"), json!({ "roleId": role })).await;
    assert_eq!(given.status, 200, "{}", given.text);
    user
}

/// A line of `/proc/<pid>/status` in kilobytes.
pub(crate) fn kilobytes(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// The processor time that the process has used, in hundredths of a second.
fn processor_ticks(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.process_id())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
