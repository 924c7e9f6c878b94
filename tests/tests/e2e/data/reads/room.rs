//! Little space for SQLite's files: writes are refused before the disk is full.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Engine, ServerBuilder};
use serde_json::{Value, json};

const MEBIBYTE: u64 = 1024 * 1024;

/// A separate file system in memory.
struct Disk(tempfile::TempDir);

impl Disk {
    /// Mounts the file system. `None` if this user may not mount.
    fn mount(mebibytes: u64) -> Option<Disk> {
        let place = tempfile::tempdir().unwrap();
        let options = format!("size={mebibytes}m,mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(place.path()).status();
        mounted.is_ok_and(|status| status.success()).then(|| Disk(place))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes a file that takes all free space except this many bytes.
    fn leave(&self, mebibytes: u64) {
        let ballast = self.path().join("ballast");
        let _ = std::fs::remove_file(&ballast);
        let listed = Command::new("df").args(["--output=avail", "-B1"]).arg(self.path()).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let free: u64 = listed.lines().last().unwrap().trim().parse().unwrap();
        let bytes = free.saturating_sub(mebibytes * MEBIBYTE);
        let mut source = std::io::Read::take(std::io::repeat(1), bytes);
        std::io::copy(&mut source, &mut File::create(ballast).unwrap()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

async fn until_status(admin: &Admin<'_>, status: u16, body: &Value) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while admin.post("/api/v1/data/doc", body.clone()).await.status != status {
        assert!(Instant::now() < deadline, "no write answers {status}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_room_writes_are_refused_and_reads_and_deletions_go_on() {
    let Some(disk) = Disk::mount(256) else {
        eprintln!(
            "NO LACK OF ROOM IS TESTED: this user may not mount a file system (root may). \
             What is tested is the rule itself, in the tests of drivers/sqlite/space.rs and sqlite/writer.rs of the store, \
             and the bound on the size of files, in delivery_faults/disk.rs."
        );
        return;
    };
    let builder = ServerBuilder::new(Engine::Sqlite).env("SVC_DATA_DIR", disk.path().to_str().unwrap());
    // The event of a deletion contains the deleted record until the event is deleted.
    let server = builder.env("SVC_EVENTS_ENABLED", "false").start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "t", "type": "text" }])).await;
    let id = admin.make("doc", json!({ "t": "a" })).await;
    let other = admin.make("doc", json!({ "t": "b" })).await;
    let grants = json!([{ "resource": "webhooks", "actions": ["manage"] }, { "resource": "doc", "actions": ["read"] }]);
    assert_eq!(admin.post("/api/v1/roles", json!({ "name": "editor", "permissions": grants })).await.status, 201);
    let editor = server.with_token(server.sign_up("editor").await);
    let editor_id = editor.get("/api/v1/me").await.json()["userId"].as_str().unwrap().to_owned();
    assert_eq!(admin.post(&format!("/api/v1/users/{editor_id}/roles"), json!({ "roleId": "editor" })).await.status, 200);
    let webhook = json!({ "url": "https://webhook.invalid/", "topics": ["data.doc.#"] });
    assert_eq!(editor.post("/api/v1/webhooks", webhook).await.status, 201);

    disk.leave(40);
    until_status(&admin, 507, &json!({ "t": "c" })).await;
    admin.post("/api/v1/data/doc", json!({ "t": "c" })).await.expect_error(507, "storage_full");
    admin.patch(&format!("/api/v1/data/doc/{id}"), json!({ "t": "c" })).await.expect_error(507, "storage_full");
    admin.post("/api/v1/data/doc/bulk", json!({ "data": [{ "t": "c" }] })).await.expect_error(507, "storage_full");
    admin.post("/api/v1/objects", json!({ "name": "more", "fields": [] })).await.expect_error(507, "storage_full");
    let answer = admin.post("/api/v1/graphql", json!({ "query": r#"mutation { create_doc(input: { t: "c" }) { id } }"# })).await;
    assert_eq!(answer.json()["errors"][0]["extensions"]["code"], "storage_full", "{}", answer.text);
    let stranger = json!({ "name": "x", "email": "x@example.com", "password": "correct horse battery" });
    server.call("POST", "/api/auth/sign-up/email", Some(stranger)).await.expect_error(507, "storage_full");
    assert_eq!(admin.get("/api/v1/data/doc").await.json()["pagination"]["totalCount"], 2);
    // A read that would store a suspension succeeds, and shows the suspension.
    assert_eq!(admin.patch("/api/v1/roles/editor", json!({ "permissions": [] })).await.status, 200);
    for path in ["/api/v1/tasks", "/api/v1/blocks", "/api/v1/events/subscriptions", "/api/v1/webhooks"] {
        assert_eq!(admin.get(path).await.status, 200, "{path}");
    }
    assert_eq!(admin.get("/api/v1/webhooks").await.data()[0]["suspended"]["reason"], "rights_lost");
    // An admin can still sign in, and delete records to free space.
    let known = json!({ "email": "admin@example.com", "password": "correct horse battery" });
    assert_eq!(server.call("POST", "/api/auth/sign-in/email", Some(known)).await.status, 200);
    assert_eq!(admin.delete(&format!("/api/v1/data/doc/{id}")).await.status, 204);
    assert_eq!(admin.delete_with("/api/v1/data/doc/bulk", json!({ "ids": [other] })).await.status, 200);

    disk.leave(120);
    until_status(&admin, 201, &json!({ "t": "c" })).await;

    // The server also recovers if deletions free space within the file.
    disk.leave(80);
    let wide = json!({ "t": "x".repeat(1_000_000) });
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut made = Vec::new();
    loop {
        let answer = admin.post("/api/v1/data/doc", wide.clone()).await;
        if answer.status == 507 {
            break;
        }
        made.push(answer.data()["id"].as_str().unwrap().to_owned());
        assert!(Instant::now() < deadline, "the disk does not fill");
    }
    let gone = admin.delete_with("/api/v1/data/doc/bulk", json!({ "ids": made })).await;
    assert_eq!(gone.status, 200, "{}", gone.text);
    until_status(&admin, 201, &json!({ "t": "c" })).await;
    assert!(!server.log().contains("panicked"), "something panicked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_lists_sort_in_the_data_directory_and_only_while_there_is_room() {
    let Some(disk) = Disk::mount(512) else {
        eprintln!("NO LACK OF ROOM IS TESTED: this user may not mount a file system (root may).");
        return;
    };
    // A process that was killed at a certain moment has left this file.
    let left = disk.path().join("sort").join("etilqs_0123456789abcdef");
    std::fs::create_dir_all(left.parent().unwrap()).unwrap();
    std::fs::write(&left, "rows of somebody").unwrap();
    let builder = ServerBuilder::new(Engine::Sqlite).env("SVC_DATA_DIR", disk.path().to_str().unwrap());
    let server = builder.env("SVC_EVENTS_ENABLED", "false").start().await;
    assert!(!left.exists(), "it is cleaned at the start");
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "t", "type": "text" }])).await;
    for part in 0..8 {
        let records: Vec<Value> = (0..1000)
            .map(|number| json!({ "t": format!("{:05}{}", (part * 1000 + number) * 777 % 8000, "x".repeat(4000)) }))
            .collect();
        assert_eq!(admin.post("/api/v1/data/doc/bulk", json!({ "data": records })).await.status, 201);
    }
    // The temporary files of the sort have to be in the data directory.
    let sorted = async || admin.get("/api/v1/data/doc?sort=t&t[ilike]=x&limit=2&offset=7998&select=id").await;
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let pid = server.process_id();
    let list = async {
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(sorted().await.status);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        seen
    };
    let watched = async {
        let mut places = std::collections::BTreeSet::new();
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            for open in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
                let Ok(file) = std::fs::read_link(open.path()) else { continue };
                let file = file.to_string_lossy().into_owned();
                if file.contains("etilqs_") {
                    places.insert(file.rsplit_once('/').unwrap().0.to_owned());
                }
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        places
    };
    let (statuses, places) = tokio::join!(list, watched);
    assert_eq!(statuses, [200; 5]);
    assert_eq!(places.into_iter().collect::<Vec<_>>(), [disk.path().join("sort").to_string_lossy().into_owned()]);

    disk.leave(40);
    until_status(&admin, 507, &json!({ "t": "c" })).await;
    sorted().await.expect_error(507, "storage_full");
    let export = admin.get("/api/v1/data/doc/export?format=ndjson&sort=t").await;
    assert_eq!(export.status, 507, "{}", export.text.chars().take(200).collect::<String>());
    // Reads that need no file still work.
    for path in ["?limit=2", "?t[ilike]=zz&count=none&sort=id", "?sort=id&limit=2", "/aggregate?fn=count&t[ilike]=x"] {
        let answer = admin.get(&format!("/api/v1/data/doc{path}")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    }
    assert_eq!(admin.get("/api/v1/webhooks").await.status, 200);
    disk.leave(200);
    until_status(&admin, 201, &json!({ "t": "c" })).await;
    assert_eq!(sorted().await.status, 200);
}
