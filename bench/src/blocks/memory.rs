//! The memory of a call that waits. It is the difference between the server's memory with more and with fewer waiting calls, for
//! each of the further calls. So it does not contain what the server keeps once for all calls, such as threads, the reserve of
//! the allocator and connections to the database.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::guests::{Guest, Guests};
use super::{Options, action_path};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::identity::median;
use crate::report::Table;
use crate::side::Side;

/// The smaller number of waiting calls.
pub(super) const FEWER: u16 = 16;
/// The number of servers that measure each language.
const SERVERS: usize = 3;
/// How long it may take until the calls wait. It is the server's time limit for a call.
const ARRIVE_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
/// How long a server only gets one call at a time before its memory is measured.
const SETTLE: Duration = Duration::from_secs(4);

/// An endpoint that keeps its requests waiting while it is shut.
struct Gate {
    origin: String,
    arrived: Arc<AtomicUsize>,
    open: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Gate {
    async fn start() -> Gate {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (open, receiver) = watch::channel(true);
        let arrived = Arc::new(AtomicUsize::new(0));
        let router = Router::new().fallback(pass).with_state((Arc::clone(&arrived), receiver));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Gate { origin, arrived, open, task }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(State((arrived, mut open)): State<(Arc<AtomicUsize>, watch::Receiver<bool>)>) -> StatusCode {
    arrived.fetch_add(1, Ordering::Relaxed);
    let _ = open.wait_for(|open| *open).await;
    StatusCode::OK
}

/// The memory of a server at one time, in MiB.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) resident: f64,
    /// The same, but a page that is mapped several times counts once.
    pub(super) own: f64,
}

impl Memory {
    pub(super) fn of(subject: &Subject<'_>) -> Memory {
        Memory { resident: subject.memory_mib().0, own: subject.proportional_mib() }
    }
}

/// Calls an action one at a time for a while, and checks its output. The allocator returns memory of earlier calls only while it
/// gets further requests.
pub(super) async fn settle(side: &Side, path: &str, input: &Value, output: &Value) {
    let settled = Instant::now() + SETTLE;
    while Instant::now() < settled {
        assert_eq!(side.post(path, input).await["data"], *output);
        tokio::time::sleep(LOOK).await;
    }
}

/// What one server has shown.
struct Measured {
    before: Memory,
    fewer: Memory,
    more: Memory,
    afterwards: Memory,
}

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let mut rows = Vec::new();
    for guest in &guests.all {
        let mut servers = Vec::new();
        for server in 1..=SERVERS {
            eprintln!("memory, {}, server {server} of {SERVERS}", guest.language.name());
            servers.push(of_a_server(options, guests, guest, cluster).await);
        }
        rows.push(row(guest.language.name(), &servers, options.calls));
    }
    let head = vec!["block in", "before MiB", "fewer MiB", "more MiB", "afterwards MiB", "a call KiB", "its own KiB"];
    (format!("memory of {FEWER} and of {} waiting calls\n\n{}", options.calls, method(options.calls)), Table { head, rows })
}

/// The method in words, above the table.
fn method(more: u16) -> String {
    format!(
        "Medians of {SERVERS} servers. Before the measurement, {FEWER} calls have waited at a time and ended. *fewer*: {FEWER} \
         calls wait. *more*: {more} calls wait. *a call*: *more* less *fewer*, for each of the {} further calls.",
        more - FEWER
    )
}

/// Each measurement has its own server, so that calls of other blocks have not left memory there.
async fn of_a_server(options: &Options, guests: &Guests, guest: &Guest, cluster: Option<&Cluster>) -> Measured {
    let gate = Gate::start().await;
    let waiter = guests.packed_as(guest, &guest.name, |manifest| manifest["permissions"]["http"] = json!([gate.origin]));
    let mut subject = Subject::start(&options.shared.binary, cluster, "memory", &[]).await;
    subject.side.install(&waiter.file).await;
    // The server restarts. Otherwise the allocator would return memory of the sign-up and the install while the calls run.
    subject.stop();
    subject.start_again();
    let (path, input) = (action_path(&waiter.name, "wait"), json!({ "url": gate.origin }));
    let server = Server { subject, gate, path, input };
    // The first calls that run at the same time leave memory that belongs to none of them. They are as few as those that are
    // measured first, so nearly all further calls get places in the pool that no call has used, and what stays in a place counts.
    server.with_waiting(FEWER).await;
    server.settle().await;
    let before = server.memory();
    let fewer = server.with_waiting(FEWER).await;
    server.settle().await;
    let more = server.with_waiting(options.calls).await;
    server.settle().await;
    let afterwards = server.memory();
    server.subject.end().await;
    Measured { before, fewer, more, afterwards }
}

/// A server whose block waits for the gate.
struct Server<'a> {
    subject: Subject<'a>,
    gate: Gate,
    /// The action's path and its input.
    path: String,
    input: Value,
}

impl Server<'_> {
    fn memory(&self) -> Memory {
        Memory::of(&self.subject)
    }

    async fn settle(&self) {
        settle(&self.subject.side, &self.path, &self.input, &json!(200)).await;
    }

    /// The memory while so many calls wait. It returns when they have ended.
    async fn with_waiting(&self, count: u16) -> Memory {
        self.gate.arrived.store(0, Ordering::Relaxed);
        self.gate.open.send(false).unwrap();
        let calls: Vec<_> = (0..count)
            .map(|_| {
                let (side, path, input) = (self.subject.side.clone(), self.path.clone(), self.input.clone());
                tokio::spawn(async move { side.post(&path, &input).await })
            })
            .collect();
        let deadline = Instant::now() + ARRIVE_MAX;
        while self.gate.arrived.load(Ordering::Relaxed) < usize::from(count) {
            assert!(Instant::now() < deadline, "the calls of {} do not arrive", self.path);
            tokio::time::sleep(LOOK).await;
        }
        let memory = self.memory();
        self.gate.open.send(true).unwrap();
        for call in calls {
            assert_eq!(call.await.unwrap()["data"], 200);
        }
        memory
    }
}

/// The medians of the servers.
fn row(language: &str, servers: &[Measured], more: u16) -> Vec<String> {
    let middle = |of: &dyn Fn(&Measured) -> f64| format!("{:.0}", median(servers.iter().map(of).collect()));
    let further = f64::from(more - FEWER);
    let a_call = |of: fn(Memory) -> f64| middle(&|it: &Measured| (of(it.more) - of(it.fewer)) * 1024.0 / further);
    vec![
        language.to_owned(),
        middle(&|it: &Measured| it.before.resident),
        middle(&|it: &Measured| it.fewer.resident),
        middle(&|it: &Measured| it.more.resident),
        middle(&|it: &Measured| it.afterwards.resident),
        a_call(|memory| memory.resident),
        a_call(|memory| memory.own),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_median_of_what_each_further_one_needs() {
        let server = |fewer: f64, more: f64| {
            let memory = |resident: f64| Memory { resident, own: resident / 2.0 };
            Measured { before: memory(fewer - 10.0), fewer: memory(fewer), more: memory(more), afterwards: memory(more - 5.0) }
        };
        // Of 24 further calls, each needs 1 MiB, 2 MiB or 10 MiB.
        let servers = [server(100.0, 124.0), server(110.0, 350.0), server(90.0, 138.0)];
        let expected = ["C", "90", "100", "138", "133", "2048", "1024"];
        assert_eq!(row("C", &servers, FEWER + 24), expected);
        assert!(method(40).ends_with("for each of the 24 further calls."));
    }
}
