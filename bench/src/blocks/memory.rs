//! The memory of a running call. It is the server's resident memory with many waiting calls, minus the memory without them, divided by
//! their number.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::guests::{Guest, Guests};
use super::{Options, action_path};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::report::Table;

/// How long it may take until the calls wait. It is the server's time limit for a call.
const ARRIVE_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
/// How long a server idles before its memory is measured.
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

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let mut rows = Vec::new();
    for guest in &guests.all {
        eprintln!("memory, {}", guest.language.name());
        rows.push(of(options, guests, guest, cluster).await);
    }
    let head = vec!["block in", "before MiB", "with calls MiB", "afterwards MiB", "a call KiB", "its own KiB"];
    (format!("memory of {} running calls", options.calls), Table { head, rows })
}

/// Each measurement has its own server, so that calls of other blocks have not left memory there.
async fn of(options: &Options, guests: &Guests, guest: &Guest, cluster: Option<&Cluster>) -> Vec<String> {
    let gate = Gate::start().await;
    let waiter = guests.packed_as(guest, &guest.name, |manifest| manifest["permissions"]["http"] = json!([gate.origin]));
    let mut subject = Subject::start(&options.shared.binary, cluster, "memory", &[]).await;
    subject.side.install(&waiter.file).await;
    // The server restarts. Otherwise the allocator would return memory of the sign-up and the install while the calls run.
    subject.stop();
    subject.start_again();
    let (path, input) = (action_path(&waiter.name, "wait"), json!({ "url": gate.origin }));
    // A first call leaves memory that does not belong to a single call. The allocator returns the memory of the start only while
    // it gets further requests.
    let settled = Instant::now() + SETTLE;
    while Instant::now() < settled {
        assert_eq!(subject.side.post(&path, &input).await["data"], 200);
        tokio::time::sleep(LOOK).await;
    }
    gate.arrived.store(0, Ordering::Relaxed);
    let (before, before_own) = (subject.memory_mib().0, subject.proportional_mib());

    gate.open.send(false).unwrap();
    let calls: Vec<_> = (0..options.calls)
        .map(|_| {
            let (side, path, input) = (subject.side.clone(), path.clone(), input.clone());
            tokio::spawn(async move { side.post(&path, &input).await })
        })
        .collect();
    let deadline = Instant::now() + ARRIVE_MAX;
    while gate.arrived.load(Ordering::Relaxed) < usize::from(options.calls) {
        assert!(Instant::now() < deadline, "the calls of {} do not arrive", waiter.name);
        tokio::time::sleep(LOOK).await;
    }
    let (with, with_own) = (subject.memory_mib().0, subject.proportional_mib());
    gate.open.send(true).unwrap();
    for call in calls {
        assert_eq!(call.await.unwrap()["data"], 200);
    }
    tokio::time::sleep(SETTLE).await;
    let afterwards = subject.memory_mib().0;
    subject.end().await;
    let a_call = |mib: f64| format!("{:.0}", mib * 1024.0 / f64::from(options.calls));
    vec![
        guest.language.name().to_owned(),
        format!("{before:.0}"),
        format!("{with:.0}"),
        format!("{afterwards:.0}"),
        a_call(with - before),
        a_call(with_own - before_own),
    ]
}
