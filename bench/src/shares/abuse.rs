//! The abuses, and the cost of each of them for other callers.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::client::{ask, ask_and_leave_unread, at_once, beside, by, from, milliseconds};
use super::subject::Subject;
use crate::report::grouped;

/// The number of records in a list that is nearly as large as a response may be.
const LISTED: usize = 64;
const LARGE_TEXT_BYTES: usize = 950_000;
/// How long responses are left unread before the memory is measured. The line below is the time before the second measurement.
const UNREAD: Duration = Duration::from_secs(10);
const UNREAD_LONGER: Duration = Duration::from_secs(45);
/// The number of records of a bulk update that changes as much data as one call may change.
const UPDATED: usize = 400;
const UPDATED_TEXT_BYTES: usize = 30_000;
const UPDATES: usize = 40;
const DELETED: usize = 400;
const HOOK_CALLS: usize = 100;
const SESSIONS: usize = 50_000;
const WEBHOOKS: usize = 100;
const LOOK_UPS: usize = 40;
const LOOK_UP_TIME: Duration = Duration::from_secs(8);
const EVENTS: usize = 50_000;
const STREAMS: usize = 100;
const AFTER_STREAMS: usize = 20;

/// Measured figures with their names.
type Figures = Vec<(&'static str, String)>;

#[derive(Clone, Copy)]
pub(super) enum Abuse {
    UnreadLists,
    UnreadPublicLists,
    UnreadGraphql,
    BulkUpdates,
    BulkDelete,
    SlowHooks,
    Sessions,
    LookUps,
    Replays,
}

impl Abuse {
    pub(super) const ALL: [Abuse; 9] = [
        Abuse::UnreadLists,
        Abuse::UnreadPublicLists,
        Abuse::UnreadGraphql,
        Abuse::BulkUpdates,
        Abuse::BulkDelete,
        Abuse::SlowHooks,
        Abuse::Sessions,
        Abuse::LookUps,
        Abuse::Replays,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Abuse::UnreadLists => "30 unread lists of 61 MB",
            Abuse::UnreadPublicLists => "60 unread public lists of 61 MB",
            Abuse::UnreadGraphql => "40 operations on an unread stream",
            Abuse::BulkUpdates => "40 bulk updates of 12 MB at once",
            Abuse::BulkDelete => "bulk delete of 380 MB",
            Abuse::SlowHooks => "100 calls of a slow hook",
            Abuse::Sessions => "4 lists of 50,000 sessions",
            Abuse::LookUps => "40 look-ups of unknown webhooks",
            Abuse::Replays => "100 streams from 50,000 events ago",
        }
    }

    pub(super) fn needs_block(self) -> bool {
        matches!(self, Abuse::SlowHooks)
    }

    pub(super) async fn figures(self, subject: &Subject<'_>, block: Option<&Path>) -> Figures {
        match self {
            Abuse::UnreadLists => unread_lists(subject).await,
            Abuse::UnreadPublicLists => unread_public_lists(subject).await,
            Abuse::UnreadGraphql => unread_graphql(subject).await,
            Abuse::BulkUpdates => bulk_updates(subject).await,
            Abuse::BulkDelete => bulk_delete(subject).await,
            Abuse::SlowHooks => slow_hooks(subject, block.expect("the packed block")).await,
            Abuse::Sessions => sessions(subject).await,
            Abuse::LookUps => look_ups(subject).await,
            Abuse::Replays => replays(subject).await,
        }
    }
}

fn mib(number: f64) -> String {
    format!("{} MiB", grouped(number))
}

/// The growth of a server's memory since a moment.
struct Growth<'a> {
    subject: &'a Subject<'a>,
    before: f64,
}

impl<'a> Growth<'a> {
    fn begin(subject: &'a Subject<'a>) -> Growth<'a> {
        subject.process.forget_peak();
        Growth { subject, before: subject.process.memory_mib().0 }
    }

    fn peak(&self) -> String {
        mib((self.subject.process.memory_mib().1 - self.before).max(0.0))
    }

    fn now(&self) -> String {
        mib((self.subject.process.memory_mib().0 - self.before).max(0.0))
    }
}

/// Sends a request over this many connections and reads no response. Returns the growth of the server's memory.
async fn left_unread(subject: &Subject<'_>, count: usize, request: &[u8]) -> Figures {
    let address = &subject.admin.address;
    // One response is read before, so that the memory for it already exists.
    assert_eq!(ask(address, request).await.status, 200);
    let growth = Growth::begin(subject);
    let mut unread = Vec::new();
    for _ in 0..count {
        unread.extend(ask_and_leave_unread(address, request).await);
    }
    tokio::time::sleep(UNREAD).await;
    let peak = growth.peak();
    tokio::time::sleep(UNREAD_LONGER).await;
    vec![("memory more, peak", peak), ("memory more after 55 s", growth.now())]
}

async fn unread_lists(subject: &Subject<'_>) -> Figures {
    subject.docs(LISTED, LARGE_TEXT_BYTES).await;
    let (weak, _) = subject.user("weak", json!([{ "resource": "doc", "actions": ["read"] }])).await;
    left_unread(subject, 30, &by(&weak, "GET", &format!("/api/v1/data/doc?limit={LISTED}"), None)).await
}

async fn unread_public_lists(subject: &Subject<'_>) -> Figures {
    subject.docs(LISTED, LARGE_TEXT_BYTES).await;
    subject.everybody_may(json!([{ "resource": "doc", "actions": ["read"] }])).await;
    left_unread(subject, 60, &from("192.0.2.1", "GET", &format!("/api/v1/data/doc?limit={LISTED}"), None)).await
}

async fn unread_graphql(subject: &Subject<'_>) -> Figures {
    const PATH: &str = "/api/v1/graphql";
    subject.docs(LISTED, LARGE_TEXT_BYTES).await;
    let grants = json!([{ "resource": "data", "actions": ["read"] }, { "resource": "doc", "actions": ["read"] }]);
    let (weak, _) = subject.user("weak", grants).await;
    let address = &subject.admin.address;
    let token = subject.text_of(&by(&weak, "PUT", PATH, None)).await;
    let open = format!("{PATH}?token={token}");
    let mut answer = vec![0; 4096];
    let growth = Growth::begin(subject);
    let open = format!(
        "GET {open} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\nauthorization: Bearer {}\r\n\r\n",
        weak.token.as_deref().unwrap()
    );
    let mut stream = ask_and_leave_unread(address, open.as_bytes()).await.unwrap();
    let read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..read]));
    for number in 0..40 {
        let query = json!({ "query": format!("{{ doc(limit: {LISTED}) {{ data {{ body }} }} }}"), "extensions": { "operationId": number.to_string() } });
        ask(address, &by(&weak, "POST", &format!("{PATH}?token={token}"), Some(&query))).await;
    }
    tokio::time::sleep(UNREAD).await;
    let peak = growth.peak();
    tokio::time::sleep(UNREAD_LONGER).await;
    vec![("memory more, peak", peak), ("memory more after 55 s", growth.now())]
}

async fn bulk_updates(subject: &Subject<'_>) -> Figures {
    let ids = subject.docs(UPDATED, UPDATED_TEXT_BYTES).await;
    let (weak, _) = subject.user("weak", json!([{ "resource": "doc", "actions": ["read", "update"] }])).await;
    let admin = &subject.admin;
    let own = admin.post("/api/v1/data/doc", &json!({ "body": "small" })).await;
    let own = format!("/api/v1/data/doc/{}", own["data"]["id"].as_str().unwrap());
    let others = [
        by(admin, "PATCH", &own, Some(&json!({ "n": 2 }))),
        by(admin, "GET", &own, None),
        from("192.0.2.7", "GET", "/readyz", None),
    ];
    let growth = Growth::begin(subject);
    let change = by(&weak, "PATCH", "/api/v1/data/doc/bulk", Some(&json!({ "ids": ids, "values": { "n": 1 } })));
    let (updates, fared) = beside(&admin.address, &others, at_once(&admin.address, UPDATES, &change)).await;
    let [write, read, ready] = &fared[..] else { panic!("three others") };
    vec![
        ("another's write, slowest", write.text()),
        ("another's read, slowest", read.text()),
        ("readyz, slowest", ready.text()),
        ("the updates themselves", updates.text()),
        ("memory more, peak", growth.peak()),
    ]
}

async fn bulk_delete(subject: &Subject<'_>) -> Figures {
    let ids = subject.docs(DELETED, LARGE_TEXT_BYTES).await;
    let (weak, _) = subject.user("weak", json!([{ "resource": "doc", "actions": ["delete"] }])).await;
    let admin = &subject.admin;
    let fields = json!([{ "name": "n", "type": "integer" }]);
    admin.post("/api/v1/objects", &json!({ "name": "other", "fields": fields })).await;
    let other = by(admin, "POST", "/api/v1/data/other", Some(&json!({ "n": 1 })));
    let growth = Growth::begin(subject);
    let delete = by(&weak, "DELETE", "/api/v1/data/doc/bulk", Some(&json!({ "ids": ids })));
    let (asked, fared) = beside(&admin.address, &[other], ask(&admin.address, &delete)).await;
    vec![
        ("its status", asked.status.to_string()),
        ("another's write, slowest", fared[0].text()),
        ("memory more, peak", growth.peak()),
    ]
}

async fn slow_hooks(subject: &Subject<'_>, block: &Path) -> Figures {
    const SLOW: &str = "/api/v1/hooks/hostile/slow";
    const QUICK: &str = "/api/v1/hooks/hostile/mirror";
    subject.admin.install(block).await;
    let address = &subject.admin.address;
    // The block is compiled now, so that the measured call does not include it.
    assert_eq!(ask(address, &from("192.0.2.2", "POST", QUICK, Some("{}"))).await.status, 200);
    let flood: Vec<_> = (0..HOOK_CALLS)
        .map(|_| {
            let (address, bytes) = (address.clone(), from("192.0.2.1", "POST", SLOW, Some("{}")));
            tokio::spawn(async move { ask(&address, &bytes).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let hook = ask(address, &from("192.0.2.2", "POST", QUICK, Some("{}"))).await;
    let action = ask(address, &by(&subject.admin, "POST", "/api/v1/blocks/hostile/actions/good", Some(&json!({ "a": 1 })))).await;
    for call in flood {
        call.abort();
    }
    vec![
        ("the hook for another address", format!("{} after {}", hook.status, milliseconds(hook.time))),
        ("an action of the block", format!("{} after {}", action.status, milliseconds(action.time))),
    ]
}

async fn sessions(subject: &Subject<'_>) -> Figures {
    let (weak, id) = subject.user("weak", json!([])).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let rows = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {SESSIONS}) \
         INSERT INTO svc_sessions (id, token_hash, user_id, expires_at, created_at, updated_at, is_bootstrap, last_seen_at) \
         SELECT 'old-' || i, 'hash-' || i, '{id}', {now} + 36000000, {now} - 3600000, {now} - 3600000, FALSE, {now} - 60000 - i FROM n"
    );
    subject.database().await.execute(rows).await;
    let address = &subject.admin.address;
    let growth = Growth::begin(subject);
    let alive = from("192.0.2.7", "GET", "/healthz", None);
    let mut bytes = 0;
    let mut slowest = Vec::new();
    for request in [
        by(&weak, "GET", "/api/auth/list-sessions", None),
        by(&subject.admin, "GET", &format!("/api/v1/users/{id}/sessions"), None),
    ] {
        bytes = bytes.max(ask(address, &request).await.bytes);
        let (lists, fared) = beside(address, std::slice::from_ref(&alive), at_once(address, 4, &request)).await;
        slowest.push((lists, fared));
    }
    vec![
        ("bytes of a list", grouped(bytes as f64)),
        ("own sessions, slowest", slowest[0].0.text()),
        ("healthz meanwhile, slowest", slowest[0].1[0].text()),
        ("a user's sessions, slowest", slowest[1].0.text()),
        ("healthz meanwhile, slowest", slowest[1].1[0].text()),
        ("memory more, peak", growth.peak()),
    ]
}

async fn look_ups(subject: &Subject<'_>) -> Figures {
    let admin = &subject.admin;
    for number in 0..WEBHOOKS {
        let webhook = json!({ "url": format!("http://127.0.0.1:9/{number}"), "topics": ["data.none.created"] });
        admin.post("/api/v1/webhooks", &webhook).await;
    }
    let grants = json!([{ "resource": "webhooks", "actions": ["read"] }, { "resource": "tasks", "actions": ["read"] }]);
    let (weak, _) = subject.user("weak", grants).await;
    let tasks = by(admin, "GET", "/api/v1/tasks", None);
    let end = Instant::now() + LOOK_UP_TIME;
    let attack = async {
        let tasks: Vec<_> = (0..LOOK_UPS)
            .map(|_| {
                let (address, bytes) = (admin.address.clone(), by(&weak, "GET", "/api/v1/webhooks/unknown", None));
                tokio::spawn(async move {
                    let mut count = 0;
                    while Instant::now() < end {
                        count += usize::from(ask(&address, &bytes).await.status == 404);
                    }
                    count
                })
            })
            .collect();
        let mut all = 0;
        for task in tasks {
            all += task.await.unwrap();
        }
        all
    };
    let (count, fared) = beside(&admin.address, &[tasks], attack).await;
    vec![
        ("look-ups a second", grouped(count as f64 / LOOK_UP_TIME.as_secs_f64())),
        ("an admin's list of tasks, slowest", fared[0].text()),
    ]
}

async fn replays(subject: &Subject<'_>) -> Figures {
    let admin = &subject.admin;
    for object in ["doc", "rare"] {
        let fields = json!([{ "name": "n", "type": "integer" }]);
        admin.post("/api/v1/objects", &json!({ "name": object, "fields": fields })).await;
    }
    let since = subject.database().await.newest_event().await;
    let records: Vec<_> = (0..1000).map(|n| json!({ "n": n })).collect();
    for _ in 0..EVENTS / records.len() {
        admin.post("/api/v1/data/doc/bulk", &json!({ "data": records })).await;
    }
    let grants = json!([{ "resource": "events", "actions": ["read"] }, { "resource": "rare", "actions": ["read"] }]);
    let (weak, _) = subject.user("weak", grants).await;
    let address = &admin.address;
    let mut live =
        ask_and_leave_unread(address, &by(admin, "GET", "/api/v1/events/stream?topics=data.rare.%23", None)).await.unwrap();
    let mut buffer = vec![0; 1 << 16];
    assert!(live.read(&mut buffer).await.unwrap() > 0, "the stream opens");
    let replay = by(&weak, "GET", &format!("/api/v1/events/stream?since={since}&topics=data.rare.%23"), None);
    let before = subject.process.processor_time();
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        streams.extend(ask_and_leave_unread(address, &replay).await);
    }
    let mut times = Vec::new();
    for number in 0..AFTER_STREAMS {
        let begun = Instant::now();
        admin.post("/api/v1/data/rare", &json!({ "n": number })).await;
        // A frame ends with an empty line. Heartbeats are comments.
        loop {
            let read = live.read(&mut buffer).await.unwrap();
            if String::from_utf8_lossy(&buffer[..read]).contains("data: ") {
                break;
            }
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    vec![
        ("somebody else's event, median", milliseconds(times[times.len() / 2])),
        ("somebody else's event, slowest", milliseconds(*times.last().unwrap())),
        ("processor time", milliseconds(subject.process.processor_time() - before)),
    ]
}
