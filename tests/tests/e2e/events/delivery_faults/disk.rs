//! No space left for SQLite's files.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use blockbase_tests::{Engine, Server, blockbase, until};
use serde_json::json;

use super::audit;
use super::groups::Groups;
use super::seed::Seed;
use super::storm::{OnLoss, Storm};
use crate::events::webhooks::short_leases;

/// A limit that prevents SQLite from writing.
trait Limit {
    /// Takes the free space away.
    fn tighten(&mut self, server: &Server);
    /// Gives the free space back.
    fn loosen(&mut self, server: &Server);
    /// The status and the code of a write when there is no space.
    fn refusal(&self) -> (u16, &'static str);
}

/// A small file system in memory, and a file that fills it.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts the file system. `None` if this user may not mount.
    fn mount(place: &Path) -> Option<SmallDisk> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256m,mode=700", "tmpfs"]).arg(place).status();
        mounted.is_ok_and(|status| status.success()).then(|| SmallDisk(place.to_owned()))
    }

    fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

impl Limit for SmallDisk {
    fn tighten(&mut self, _: &Server) {
        let mut file = std::fs::File::create(self.ballast()).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
    }

    fn loosen(&mut self, _: &Server) {
        std::fs::remove_file(self.ballast()).unwrap();
    }

    fn refusal(&self) -> (u16, &'static str) {
        (507, "storage_full")
    }
}

/// A limit on the size of the process's files. It needs no special rights.
struct SmallFiles;

impl SmallFiles {
    /// The path of the binary, which runs with a signal ignored that would end it at the limit.
    fn program(directory: &Path) -> PathBuf {
        let program = directory.join("blockbase-within-bounds");
        std::fs::write(&program, format!("#!/bin/sh\ntrap '' XFSZ\nexec '{}' \"$@\"\n", blockbase().display())).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        program
    }

    fn bound(server: &Server, bytes: &str) {
        let process = server.process_id().to_string();
        assert!(Command::new("prlimit").args(["--pid", &process, &format!("--fsize={bytes}:")]).status().unwrap().success());
    }
}

impl Limit for SmallFiles {
    fn tighten(&mut self, server: &Server) {
        // The existing part of the write-ahead log can be overwritten, but the file cannot grow.
        let log = std::fs::metadata(server.directory().join("svc-data/svc.db-wal")).unwrap().len();
        SmallFiles::bound(server, &log.to_string());
    }

    fn loosen(&mut self, server: &Server) {
        SmallFiles::bound(server, "unlimited");
    }

    /// SQLite reports an I/O error, as for a broken disk. So the cause is not known.
    fn refusal(&self) -> (u16, &'static str) {
        (503, "unavailable")
    }
}

/// Writers write while there is no space: writes are refused, and reads work. Afterwards everything works again by itself.
async fn no_room_for_a_while(server: &Server, token: &str, groups: &Groups, seed: &Seed, limit: &mut dyn Limit) {
    let admin = server.with_token(token.to_owned());
    let storm = Arc::new(Storm::default());
    let mut moments = Vec::new();
    let writers = storm.begin((&server.base, token), seed, 10, 4, OnLoss::GoOn);
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        moments.push(Instant::now());
        limit.tighten(server);
        // These bodies are too large for the free space that may be left in a file.
        let wide: Vec<_> = (0..200).map(|_| json!({ "text": "x".repeat(4000) })).collect();
        let (status, code) = limit.refusal();
        until("a write is refused", async || {
            let answer = admin.post("/api/v1/data/wide/bulk", json!({ "data": wide })).await;
            if answer.status == status {
                answer.expect_error(status, code);
                return true;
            }
            // If another file fills first, SQLite may report an error without its cause.
            assert!([201, 503].contains(&answer.status), "{}", answer.text);
            false
        })
        .await;
        // This is long enough for all attempts of a delivery.
        let full_until = Instant::now() + Duration::from_secs(3);
        while Instant::now() < full_until {
            let read = admin.get("/api/v1/data/thing?limit=5").await;
            assert_eq!(read.status, 200, "{}", read.text);
            assert_eq!(admin.get("/api/v1/events?limit=5").await.status, 200);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        moments.push(Instant::now());
        limit.loosen(server);
        // The server checks the free space twice a second.
        until("writes find room again", async || {
            admin.post("/api/v1/data/wide/bulk", json!({ "data": wide })).await.status == 201
        })
        .await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    storm.end(writers).await;
    assert!(storm.refused.load(Ordering::Relaxed) > 0, "no writer met the full disk");
    audit::settle(server).await;
    // An outcome that could not be stored is lost, so its event arrives once more.
    let repeated = audit::check(server, groups, &storm, &moments).await;
    audit::tell("no room", &storm, audit::events(server).await.len(), repeated, moments.len());
    assert!(!server.log().contains("panicked"), "something panicked");
}

async fn prepared(server: &Server, seed: &Seed) -> (String, Groups) {
    let admin = server.admin().await;
    let groups = Groups::make(&admin, seed).await;
    admin.define("wide", json!([{ "name": "text", "type": "text" }])).await;
    (admin.token, groups)
}

#[ignore = "long: a storm of writes on a full disk"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_writes_are_refused_and_no_delivery_is_lost() {
    let seed = Seed::new();
    let builder = short_leases(Engine::Sqlite).env("SVC_RETRY_BASE_MS", "50").env("SVC_EVENTS_POLL_INTERVAL_MS", "200");
    let mut server = builder.start().await;
    let (token, groups) = prepared(&server, &seed).await;
    server.kill();
    let data = server.directory().join("svc-data");
    let aside = server.directory().join("aside");
    std::fs::rename(&data, &aside).unwrap();
    std::fs::create_dir(&data).unwrap();
    let Some(mut disk) = SmallDisk::mount(&data) else {
        eprintln!(
            "NO FULL DISK IS TESTED: this user may not mount a file system (root may). \
             What is tested is the bound on the size of files, in the test beside this one."
        );
        return;
    };
    let copied = Command::new("cp").arg("-a").arg(format!("{}/.", aside.display())).arg(&data).status().unwrap();
    assert!(copied.success());
    let server = server.restart().await;
    no_room_for_a_while(&server, &token, &groups, &seed, &mut disk).await;
    drop(server);
}

#[ignore = "long: a storm of writes on a full disk"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_files_may_not_grow_writes_are_refused_and_no_delivery_is_lost() {
    let seed = Seed::new();
    let directory = tempfile::tempdir().unwrap();
    let builder = short_leases(Engine::Sqlite).program(SmallFiles::program(directory.path()));
    let server = builder.env("SVC_RETRY_BASE_MS", "50").env("SVC_EVENTS_POLL_INTERVAL_MS", "200").start().await;
    let (token, groups) = prepared(&server, &seed).await;
    no_room_for_a_while(&server, &token, &groups, &seed, &mut SmallFiles).await;
}
