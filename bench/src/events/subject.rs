//! A server with its own database, a subscription to its events, and a stream of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::database::Database;
use crate::cluster::Cluster;
use crate::load::request_with;
use crate::server::{Process, blockbase};
use crate::side::Side;

/// The receiver of the events of created tasks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subscribed {
    Nothing,
    LogEvent,
    PersistEvent,
    Webhook,
}

impl Subscribed {
    /// The handler's name in the ledger.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subscribed::Nothing => "no subscription",
            Subscribed::LogEvent => "log_event",
            Subscribed::PersistEvent => "persist_event",
            Subscribed::Webhook => "webhook",
        }
    }
}

/// The topic of the subscription.
pub(crate) const TOPIC: &str = "data.task.created";
const CONSUMER: &str = "bench";
/// The first chunk of a stream.
const OPEN: &[u8] = b": open\n\n\r\n";

pub(crate) struct Subject<'a> {
    binary: PathBuf,
    environment: Vec<(&'static str, &'static str)>,
    directory: tempfile::TempDir,
    postgres: Option<(&'a Cluster, &'static str, String)>,
    process: Option<Process>,
    pub(crate) side: Side,
}

impl<'a> Subject<'a> {
    /// Starts a server on a new database with this name, and makes an account, the objects and one project.
    pub(crate) async fn start(
        binary: &Path,
        cluster: Option<&'a Cluster>,
        name: &'static str,
        environment: &[(&'static str, &'static str)],
    ) -> Subject<'a> {
        let directory = tempfile::tempdir().unwrap();
        let postgres = match cluster {
            Some(cluster) => Some((cluster, name, cluster.new_database(name).await)),
            None => None,
        };
        // The receiver of webhooks is on this machine.
        let environment = [&[("SVC_ALLOW_PRIVATE_NETWORK", "true")], environment].concat();
        let url = postgres.as_ref().map(|(_, _, url)| url.as_str());
        let process = blockbase(binary, directory.path(), url, &environment);
        let mut side = Side::blockbase(&process.address, None).await;
        let project = side.post(side.projects, &json!({ "name": "project" })).await;
        side.project_ids = Arc::new(vec![serde_json::from_value(project["data"]["id"].clone()).unwrap()]);
        Subject { binary: binary.to_owned(), environment, directory, postgres, process: Some(process), side }
    }

    /// Subscribes, and returns the consumer group.
    pub(crate) async fn subscribe(&self, to: Subscribed, hook: &str) -> Option<String> {
        let body = |config| json!({ "event": TOPIC, "consumer": CONSUMER, "handler": to.name(), "config": config });
        let path = "/api/v1/events/subscriptions";
        match to {
            Subscribed::Nothing => return None,
            Subscribed::LogEvent => self.side.post(path, &body(json!({}))).await,
            Subscribed::PersistEvent => {
                let fields = json!([{ "name": "topic", "type": "text" }, { "name": "record", "type": "json" }]);
                self.side.post("/api/v1/objects", &json!({ "name": "archive", "fields": fields })).await;
                let map = json!({ "topic": "event.topic", "record": "payload.record" });
                self.side.post(path, &body(json!({ "object": "archive", "map": map }))).await
            }
            Subscribed::Webhook => {
                let made = self.side.post("/api/v1/webhooks", &json!({ "url": hook, "topics": [TOPIC] })).await;
                return Some(format!("webhook:{}", made["data"]["id"].as_str().unwrap()));
            }
        };
        Some(CONSUMER.to_owned())
    }

    /// Another connection to the server's database.
    pub(crate) async fn database(&self) -> Database {
        match &self.postgres {
            Some((cluster, name, _)) => Database::Postgres(cluster.connect(name).await),
            None => {
                let driver = rusqlite::Connection::open(self.directory.path().join("svc-data/svc.db")).unwrap();
                driver.busy_timeout(Duration::from_secs(60)).unwrap();
                Database::Sqlite(driver)
            }
        }
    }

    /// Does immediately, for a Postgres database, the maintenance that the server would do by itself later.
    pub(crate) async fn settle(&self) {
        if let Some((cluster, name, _)) = &self.postgres {
            cluster.settle(name).await;
        }
    }

    /// The server's process, while it runs.
    pub(crate) fn process(&self) -> &Process {
        self.process.as_ref().expect("a server that runs")
    }

    /// Resident memory of the server now and at its peak, in MiB.
    pub(crate) fn memory_mib(&self) -> (f64, f64) {
        self.process.as_ref().map_or((0.0, 0.0), Process::memory_mib)
    }

    /// Resident memory in MiB. If a page is mapped several times, it counts once.
    pub(crate) fn proportional_mib(&self) -> f64 {
        self.process.as_ref().map_or(0.0, Process::proportional_mib)
    }

    /// Stops the server as an operator would.
    pub(crate) fn stop(&mut self) {
        self.process.take().into_iter().for_each(Process::stop);
    }

    /// Starts a server on the same database.
    pub(crate) fn start_again(&mut self) {
        let url = self.postgres.as_ref().map(|(_, _, url)| url.as_str());
        let process = blockbase(&self.binary, self.directory.path(), url, &self.environment);
        self.side.address.clone_from(&process.address);
        self.process = Some(process);
    }

    /// Stops the server and removes its database.
    pub(crate) async fn end(mut self) {
        drop(self.process.take());
        if let Some((cluster, name, _)) = &self.postgres {
            cluster.drop_database(name).await;
        }
    }

    /// Opens a stream. It continues after the event `after`, if there is one. Returns the stream, and the bytes that were already read of
    /// its events.
    ///
    /// # Errors
    /// The time after which an `EventSource` would connect again, if the stream cannot open now.
    pub(crate) async fn open_stream(
        address: &str,
        token: Option<&str>,
        after: Option<&str>,
    ) -> Result<(TcpStream, Vec<u8>), Duration> {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let path = format!("/api/v1/events/stream?topics={TOPIC}&resume={}", after.is_some());
        let known = after.map(|after| format!("last-event-id: {after}\r\n")).unwrap_or_default();
        let headers = format!("host: 127.0.0.1\r\naccept: text/event-stream\r\n{known}");
        stream.write_all(&request_with("GET", &path, token, &headers, None)).await.unwrap();
        let mut head = Vec::new();
        loop {
            if let Some(end) = head.windows(OPEN.len()).position(|window| window == OPEN) {
                return Ok((stream, head.split_off(end + OPEN.len())));
            }
            if let Some(retry) = retry_of(&head) {
                return Err(retry);
            }
            assert!(stream.read_buf(&mut head).await.unwrap() > 0, "no stream: {}", String::from_utf8_lossy(&head));
            assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        }
    }
}

/// The time after which an `EventSource` connects again, if the response has one.
fn retry_of(response: &[u8]) -> Option<Duration> {
    let (_, rest) = std::str::from_utf8(response).ok()?.split_once("\nretry: ")?;
    let (milliseconds, _) = rest.split_once('\n')?;
    milliseconds.parse().ok().map(Duration::from_millis)
}
