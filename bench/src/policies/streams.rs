//! Many open streams, of many roles or of many readers. They have policies through a relation, and each event belongs to one team,
//! so that only the streams of this team show it.
//!
//! To decide about an event, the streams of roles need one statement for each role. It looks into the table of projects twice:
//! whether the event's project exists, and whether it belongs to the role's team. If the policy names its reader, each stream has
//! a question of its own, and a statement answers several of them. Each question needs a look into the table of projects, and one
//! more if the reader is a member. On Postgres these looks are counted, without those of the writes themselves. The transactions
//! also include the write, the feed, which polls the outbox, and the checks of the streams' callers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::Options;
use super::teams::{Teams, tasks_of, tasks_of_reader};
use crate::cluster::Cluster;
use crate::events::clock::{Clock, Writes, marked, percentiles};
use crate::events::database::{COUNTS_LATE, Database};
use crate::events::streams::{DESCRIPTORS_BESIDE, Got, LATE_MAX, LIMITS, QUIET, listen_all, open, raise_descriptors};
use crate::events::subject::Subject;
use crate::identity::{user_with, users_of};
use crate::load::{exchange, request};
use crate::report::{Table, grouped};
use crate::side::Side;

/// The writes for warming up, before any stream is open.
const WARM: usize = 100;
/// The only role of readers.
const READER: &str = "reader";

/// Who opens the streams.
#[derive(Clone, Copy)]
pub(super) enum Callers {
    /// A user for each role, who has many streams. The policy of a role names its team.
    Roles,
    /// A user for each stream. All have one role, whose policy names its reader.
    Readers,
}

impl Callers {
    /// Makes the callers, and returns their tokens. Caller `n` is shown the events of team `n % count`.
    async fn make(self, admin: &Side, teams: &Teams, streams: usize) -> Vec<String> {
        let reads = |policy: Value| json!([{ "resource": "task", "actions": ["read"], "where": policy }]);
        match self {
            Callers::Roles => {
                let mut tokens = Vec::with_capacity(teams.count);
                for team in 0..teams.count {
                    let member = user_with(admin, &format!("team{team}"), &reads(tasks_of(team))).await;
                    tokens.push(member.token.unwrap());
                }
                tokens
            }
            Callers::Readers => {
                Teams::allow_members(admin).await;
                admin.post("/api/v1/roles", &json!({ "name": READER, "permissions": reads(tasks_of_reader()) })).await;
                let (tokens, ids): (Vec<String>, Vec<String>) = users_of(admin, READER, streams).await.into_iter().unzip();
                teams.add_members(admin, &ids).await;
                eprintln!("  {} readers signed up", tokens.len());
                tokens
            }
        }
    }

    /// The name of the database.
    fn database(self) -> &'static str {
        match self {
            Callers::Roles => "streams_of_roles",
            Callers::Readers => "streams_of_readers",
        }
    }

    /// How many looks into the table of projects there should be.
    fn looks(self) -> &'static str {
        match self {
            Callers::Roles => "two for each decision",
            Callers::Readers => "at least one for each reader",
        }
    }

    fn title(self, options: &Options, streams: usize) -> String {
        let (streams, roles, interval) = (grouped(streams as f64), options.roles, options.interval_ms);
        match self {
            Callers::Roles => {
                format!("{streams} streams of {roles} roles with a policy through a relation, an event each {interval} ms")
            }
            Callers::Readers => {
                format!(
                    "{streams} readers with a stream each, whose policy names them, an event for one in {roles} each {interval} ms"
                )
            }
        }
    }
}

pub(super) async fn measure(options: &Options, cluster: Option<&Cluster>, callers: Callers, streams: usize) -> (String, Table) {
    raise_descriptors(streams as u64 + DESCRIPTORS_BESIDE);
    let mut subject = Subject::start(&options.shared.binary, cluster, callers.database(), &LIMITS).await;
    let teams = Teams::make(&subject.side, options.roles).await;
    let tokens = callers.make(&subject.side, &teams, streams).await;
    // The server restarts, because hashing passwords has left memory that does not belong to the streams.
    subject.stop();
    subject.start_again();
    let mut database = subject.database().await;
    let interval = Duration::from_millis(options.interval_ms);
    let count = WARM + (options.seconds * 1000 / options.interval_ms).max(1) as usize;
    let clock = Clock::start();
    let writes = Writes::new(&subject.side, clock, count);
    let quiet = if cluster.is_some() { COUNTS_LATE } else { QUIET };
    tokio::time::sleep(quiet).await;
    let before = Used::now(&subject, &mut database).await;
    write_paced(&writes, &teams, 0..WARM, Duration::ZERO).await;
    tokio::time::sleep(quiet).await;
    let warm = Used::now(&subject, &mut database).await.since(&before);
    let (without, _) = subject.memory_mib();
    let got = Arc::new(AtomicUsize::new(0));
    let clients = listen_all(open(&subject.side.address, &tokens, streams, None), clock, &got).await;
    eprintln!("  {} streams open", clients.len());
    tokio::time::sleep(quiet).await;
    let (open, _) = subject.memory_mib();
    // Open streams cost something without events too, because the server checks their rights again from time to time. This is
    // measured first, for as long as the writes will take.
    let events = count - WARM;
    let idle_began = Instant::now();
    let idle_before = Used::now(&subject, &mut database).await;
    tokio::time::sleep(interval * events as u32 + quiet).await;
    let before = Used::now(&subject, &mut database).await;
    let idle_for = idle_began.elapsed();
    let idle = before.since(&idle_before);

    let began = Instant::now();
    write_paced(&writes, &teams, WARM..count, interval).await;
    let written_in = began.elapsed();
    let of_team = |team: usize| (team..streams).step_by(options.roles).len();
    let expected: usize = (WARM..count).map(|number| of_team(number % options.roles)).sum();
    while got.load(Ordering::Relaxed) < expected && began.elapsed() < written_in + LATE_MAX {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The streams that do not show an event may still decide that.
    tokio::time::sleep(quiet).await;
    let missing = expected.saturating_sub(got.load(Ordering::Relaxed));
    let used = Used::now(&subject, &mut database).await.since(&before);
    // How often the time without writes goes into the time with them.
    let times_idle = began.elapsed().as_secs_f64() / idle_for.as_secs_f64();
    let (_, peak) = subject.memory_mib();
    let cut_off = clients.iter().filter(|client| client.is_finished()).count();
    drop(database);
    subject.end().await;
    let (from_answer, from_request) = latencies(clients, &writes, options.roles).await;

    let events = events as f64;
    let line = |name: &str, value: String| vec![name.to_owned(), value];
    let ([answer_p50, answer_p99], [request_p50, request_p99]) = (percentiles(&from_answer), percentiles(&from_request));
    let mut rows = vec![
        line("events", grouped(events)),
        line("not delivered", grouped(missing as f64)),
        line("streams cut off", grouped(cut_off as f64)),
        line("answer → client p50 µs", answer_p50),
        line("answer → client p99 µs", answer_p99),
        line("request → client p50 µs", request_p50),
        line("request → client p99 µs", request_p99),
        line("slowest, from the request, µs", grouped(from_request.max() as f64)),
        line(
            "processor time of the server, ms an event, without that of idle streams",
            format!("{:.1}", (used.busy_ms - idle.busy_ms * times_idle) / events),
        ),
        line("processor time of idle streams, ms a second", format!("{:.1}", idle.busy_ms / idle_for.as_secs_f64())),
        line("server without streams, MiB", format!("{without:.0}")),
        line("with them open, MiB", format!("{open:.0}")),
        line("at its peak, MiB", format!("{peak:.0}")),
    ];
    if let Some((of_events, of_warm)) = used.project_scans.zip(warm.project_scans) {
        let reads = of_events / events - of_warm / WARM as f64;
        rows.push(line(&format!("looks into the table of projects an event, {}", callers.looks()), format!("{reads:.1}")));
    }
    if let Some((of_events, of_idle)) = used.transactions.zip(idle.transactions) {
        rows.push(line(
            "transactions of Postgres an event, of every kind, without those of idle streams",
            format!("{:.1}", (of_events - of_idle * times_idle) / events),
        ));
        rows.push(line("transactions of idle streams a second", format!("{:.1}", of_idle / idle_for.as_secs_f64())));
    }
    (callers.title(options, streams), Table { head: vec!["", "measured"], rows })
}

/// The processor time of the server in milliseconds. If its database is Postgres, also the transactions, and how often rows of
/// projects were looked for.
struct Used {
    busy_ms: f64,
    transactions: Option<f64>,
    project_scans: Option<f64>,
}

impl Used {
    /// The use since the server and its database started.
    async fn now(subject: &Subject<'_>, database: &mut Database) -> Used {
        let busy_ms = subject.process().processor_time().as_secs_f64() * 1e3;
        let transactions = database.transactions().await.map(|transactions| transactions as f64);
        Used { busy_ms, transactions, project_scans: database.scans("project").await.map(|scans| scans as f64) }
    }

    fn since(&self, before: &Used) -> Used {
        let between = |after: Option<f64>, before: Option<f64>| after.zip(before).map(|(after, before)| after - before);
        Used {
            busy_ms: self.busy_ms - before.busy_ms,
            transactions: between(self.transactions, before.transactions),
            project_scans: between(self.project_scans, before.project_scans),
        }
    }
}

/// Sends one write after the other on one connection. The team of a write is its number, in turn.
async fn write_paced(writes: &Writes, teams: &Teams, numbers: Range<usize>, interval: Duration) {
    let mut stream = TcpStream::connect(&writes.side.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut buffer, mut due) = (Vec::new(), Instant::now());
    for number in numbers {
        tokio::time::sleep_until(due.into()).await;
        let project = teams.project_of_team(number % teams.count);
        let body = format!(r#"{{"title":"{}","priority":1,"project_id":"{project}"}}"#, marked(number));
        let bytes = request("POST", writes.side.items, writes.side.token.as_deref(), Some(&body));
        writes.sent.note(number);
        let (status, _) = exchange(&mut stream, &bytes, &mut buffer).await;
        writes.answered.note(number);
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&buffer));
        due += interval;
    }
}

/// For each client, the times from the response and from the request to the event. The streams have ended. No stream may have shown
/// an event of another team.
async fn latencies(clients: Vec<JoinHandle<Got>>, writes: &Writes, roles: usize) -> (Histogram<u64>, Histogram<u64>) {
    let (mut from_answer, mut from_request) = (Histogram::new(3).unwrap(), Histogram::new(3).unwrap());
    for (client, got) in clients.into_iter().enumerate() {
        for (number, at) in got.await.unwrap() {
            assert_eq!(number as usize % roles, client % roles, "a stream showed an event of another team");
            for (earlier, histogram) in [(&writes.answered, &mut from_answer), (&writes.sent, &mut from_request)] {
                let earlier = earlier.get(number as usize).unwrap();
                histogram.record(u64::from(at.saturating_sub(earlier))).unwrap();
            }
        }
    }
    (from_answer, from_request)
}
