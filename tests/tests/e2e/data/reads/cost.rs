//! Attacks of one user with few rights: long texts, many filters, many lists at the same time.

use std::time::{Duration, Instant};

use blockbase_tests::{Admin, Answer, Engine, Server, ServerBuilder, on_both_engines, until, within};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::json;

use super::{kilobytes, processor_ticks, weak_user};

/// How long other callers may wait. The limit is far above the usual time, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the server may be busy afterwards: half of the time limit of a statement on Postgres.
const REST_MAX: Duration = Duration::from_secs(30);
/// The minimum processor time of a complete scan, in ticks. A cancelled scan uses less.
const WHOLE_TICKS_MIN: u64 = 60;
/// The maximum memory of the process. The texts take 64 MiB of it.
const KILOBYTES_MAX: u64 = 700 * 1024;

/// The peak of the process's memory in KiB, without mapped files. Each connection of SQLite maps the database, and those pages belong to
/// the system's cache.
fn memory_peak(server: &Server) -> u64 {
    kilobytes(server, "VmHWM").saturating_sub(kilobytes(server, "RssFile"))
}

/// Five records of 2 MB and six of 9 MB.
async fn with_big_texts(engine: Engine) -> Server {
    with_texts(engine, &[2, 2, 2, 2, 2, 9, 9, 9, 9, 9, 9]).await
}

/// Records whose texts have these sizes in megabytes.
async fn with_texts(engine: Engine, megabytes: &[usize]) -> Server {
    let server = ServerBuilder::new(engine).env("SVC_MAX_TEXT_BYTES", "10485760").start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "t", "type": "text" }])).await;
    for megabytes in megabytes {
        let text = "Größe und Weite ".repeat(megabytes * 1_000_000 / 18);
        let made = admin.post("/api/v1/data/doc", json!({ "t": text })).await;
        assert_eq!(made.status, 201);
    }
    server
}

/// A list with a hundred filters. Only the last one matches nothing.
fn costly() -> String {
    let filters: Vec<String> = (0..100).map(|number| format!("t[ilike]=weite{}", if number == 99 { "-" } else { "" })).collect();
    format!("/api/v1/data/doc?select=id&count=none&{}", filters.join("&"))
}

/// Different terms that no text contains. All texts contain each of their trigrams, so an index cannot exclude any text.
fn terms() -> Vec<String> {
    let term = "weite und ".to_owned() + &"weite größe und ".repeat(8);
    (0..99).map(|more| term.chars().take(9 + more).collect()).collect()
}

/// A list with these terms as filters.
fn list_of(terms: &[String]) -> String {
    let filters: Vec<String> = terms.iter().map(|term| format!("t[ilike]={}", term.replace(' ', "+"))).collect();
    format!("/api/v1/data/doc?select=id&count=none&{}", filters.join("&"))
}

/// A list with filters that are all different.
fn costlier() -> String {
    list_of(&(0..99).map(|number| format!("GRÖSSE {number:03}")).collect::<Vec<_>>())
}

async fn healthz_answers(server: &Server) {
    let begun = Instant::now();
    assert_eq!(server.call("GET", "/healthz", None).await.status, 200);
    assert!(begun.elapsed() < within(PATIENCE), "/healthz took {:?}", begun.elapsed());
}

/// Keeps a lock for which every scan of `doc` waits, until [`END_LOCK`] runs.
const LOCK: &str = "DO $$ BEGIN LOCK TABLE doc IN ACCESS EXCLUSIVE MODE; PERFORM pg_sleep(100); \
                    EXCEPTION WHEN query_canceled THEN NULL; END $$";
const IS_LOCKED: &str = "SELECT count(*) FROM pg_locks WHERE relation = 'doc'::regclass AND mode = 'AccessExclusiveLock' \
                         AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
const END_LOCK: &str = "SELECT pg_cancel_backend(pid)::text FROM pg_stat_activity WHERE datname = current_database() \
                        AND query LIKE '%pg_sleep(100)%' AND pid <> pg_backend_pid()";

/// The statements of callers that Postgres is running, or that wait for a lock.
async fn active_statements(server: &Server) -> usize {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
               AND (query LIKE '%strpos%' OR wait_event_type = 'Lock') AND pid <> pg_backend_pid()";
    server.sql(sql).await[0][0].parse().unwrap()
}

/// Waits until the server and its database are idle.
async fn comes_to_rest(server: &Server) {
    let deadline = Instant::now() + REST_MAX;
    loop {
        let before = processor_ticks(server);
        tokio::time::sleep(Duration::from_millis(500)).await;
        let used = processor_ticks(server) - before;
        let works = match server.engine() {
            Engine::Sqlite => 0,
            Engine::Postgres => active_statements(server).await,
        };
        // A scan would use all of the fifty ticks.
        if used < 15 && works == 0 {
            return;
        }
        assert!(Instant::now() < deadline, "{used} ticks in half a second, {works} statements at work");
    }
}

/// Sends requests, and disconnects as soon as `is_at_work` is true.
async fn leave(requests: impl Future<Output = Vec<Answer>>, is_at_work: impl AsyncFnMut() -> bool) {
    tokio::select! {
        answers = requests => panic!("answered before the client left: {answers:?}"),
        () = until("the server is at work", is_at_work) => {}
    }
}

/// Disconnects early in a scan on SQLite. A complete scan uses `whole` ticks.
async fn leave_early(server: &Server, whole: u64, requests: impl Future<Output = Vec<Answer>>) {
    let before = processor_ticks(server);
    leave(requests, async || processor_ticks(server) - before > whole / 8).await;
    comes_to_rest(server).await;
    let used = processor_ticks(server) - before;
    assert!(used < whole / 2, "{used} ticks of scans that nobody waits for; a whole one uses {whole}");
}

on_both_engines! {
    #[ignore = "long: memory and latency, alone"]
    async fn one_user_cannot_freeze_the_server(engine: Engine) {
        let server = with_big_texts(engine).await;
        let admin = server.with_token(sign_in(&server).await);
        let user = weak_user(&admin, "eve", "doc").await;
        let before = memory_peak(&server);
        for path in [costly(), costlier()] {
            let mut lists: FuturesUnordered<_> = (0..2).map(|_| user.get(&path)).collect();
            loop {
                tokio::select! {
                    list = lists.next() => match list {
                        Some(list) => assert_eq!((list.status, list.json()["data"].clone()), (200, json!([])), "{}", list.text),
                        None => break,
                    },
                    () = healthz_answers(&server) => {}
                }
            }
        }
        assert!(before.max(KILOBYTES_MAX) >= memory_peak(&server), "{} KiB", memory_peak(&server));

        // Two lists at the same time read and render these records completely.
        let whole = |user: &Admin<'_>| user.request("GET", "/api/v1/data/doc?sort=t").send();
        let (first, second) = tokio::join!(whole(&user), whole(&user));
        for list in [first.unwrap(), second.unwrap()] {
            assert_eq!(list.status(), 200, "64 MiB and not more");
            assert!(list.bytes().await.unwrap().len() > 60_000_000);
        }
        assert!(before.max(KILOBYTES_MAX) >= memory_peak(&server), "{} KiB", memory_peak(&server));
    }

    async fn a_list_whose_client_has_left_costs_nothing(engine: Engine) {
        // There are only a few records, because a complete scan has to end in time on a slow machine too.
        let server = with_texts(engine, &[1, 1, 1]).await;
        let admin = server.with_token(sign_in(&server).await);
        let costlier = list_of(&terms());
        let lists = async || (0..4).map(|_| admin.get(&costlier)).collect::<FuturesUnordered<_>>().collect::<Vec<_>>().await;
        let filters: Vec<String> =
            terms().iter().map(|term| format!(r#"{{ field: "t", operator: ilike, value: "{term}" }}"#)).collect();
        let query = format!("{{ doc(filter: [{}]) {{ data {{ id }} }} }}", filters.join(", "));
        let by_graphql = async || vec![admin.post("/api/v1/graphql", json!({ "query": query })).await];
        match engine {
            Engine::Sqlite => {
                let before = processor_ticks(&server);
                assert_eq!(admin.get(&costlier).await.status, 200);
                let whole = processor_ticks(&server) - before;
                assert!(whole >= WHOLE_TICKS_MIN, "a whole scan uses {whole} ticks: too few to tell it from one given up");
                for _ in 0..2 {
                    leave_early(&server, whole, lists()).await;
                }
                leave_early(&server, whole, by_graphql()).await;
            }
            Engine::Postgres => {
                // While the table is locked, no scan can end.
                let abandoned = async {
                    until("the table is locked", async || server.sql(IS_LOCKED).await[0][0] == "1").await;
                    for _ in 0..2 {
                        leave(lists(), async || active_statements(&server).await > 0).await;
                        comes_to_rest(&server).await;
                    }
                    leave(by_graphql(), async || active_statements(&server).await > 0).await;
                    comes_to_rest(&server).await;
                    assert_eq!(server.sql(END_LOCK).await, [["true"]]);
                };
                tokio::join!(server.sql(LOCK), abandoned);
            }
        }
        // All permits are free again.
        assert_eq!(admin.get("/api/v1/data/doc?select=id&t[ilike]=nothing+like+it").await.status, 200);
    }

    #[ignore = "long: memory and latency, alone"]
    async fn one_users_lists_starve_nobody(engine: Engine) {
        let server = with_big_texts(engine).await;
        let admin = server.with_token(sign_in(&server).await);
        let user = weak_user(&admin, "eve", "doc").await;
        let other = weak_user(&admin, "ann", "doc").await;
        let path = costlier();
        let mut lists: FuturesUnordered<_> = (0..8).map(|_| user.get(&path)).collect();
        let mut statuses = Vec::new();
        for _ in 0..5 {
            tokio::select! {
                list = lists.next() => statuses.extend(list.map(|list| list.status)),
                () = async {
                    let begun = Instant::now();
                    assert_eq!(admin.get("/api/v1/users").await.status, 200);
                    assert!(begun.elapsed() < within(PATIENCE), "GET /users took {:?}", begun.elapsed());
                    let begun = Instant::now();
                    assert_eq!(other.get("/api/v1/data/doc?select=id&limit=1").await.status, 200);
                    assert!(begun.elapsed() < within(PATIENCE), "a list took {:?}", begun.elapsed());
                } => {}
            }
        }
        while let Some(list) = lists.next().await {
            if list.status == 503 {
                list.expect_error(503, "unavailable");
                assert_eq!(list.headers["retry-after"], "5");
            }
            statuses.push(list.status);
        }
        assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
        assert!(statuses.contains(&200), "{statuses:?}");
    }
}

/// Signs in as the first user again.
async fn sign_in(server: &Server) -> String {
    let body = json!({ "email": "admin@example.com", "password": "correct horse battery" });
    let answer = server.call("POST", "/api/auth/sign-in/email", Some(body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_third_scan_waits_five_seconds_and_is_told_when_to_try_again() {
    let server = ServerBuilder::new(Engine::Postgres).start().await;
    let admin = server.admin().await;
    admin.define("doc", json!([{ "name": "t", "type": "text" }])).await;
    let user = weak_user(&admin, "eve", "doc").await;
    // The scans wait until the test lets them continue.
    let lock = server.hold_reads("doc").await;
    let begun = Instant::now();
    let mut lists: FuturesUnordered<_> = (0..3).map(|_| user.get("/api/v1/data/doc?t[ilike]=x")).collect();
    let refused = lists.next().await.unwrap();
    refused.expect_error(503, "unavailable");
    assert_eq!(refused.headers["retry-after"], "5");
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    lock.release().await;
    while let Some(list) = lists.next().await {
        assert_eq!(list.status, 200, "{}", list.text);
    }
}
