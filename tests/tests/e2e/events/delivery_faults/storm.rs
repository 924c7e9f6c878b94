//! Writers that remember which of their writes were acknowledged.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use blockbase_tests::http_client;
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::seed::Seed;

/// The number of records that are updated. There are only few, so that each has many events.
const LIVE_MAX: usize = 40;

/// Writes that are certainly stored.
#[derive(Default)]
pub(super) struct Acknowledged {
    pub(super) created: Vec<String>,
    /// The record and its new note. No other write has this note.
    pub(super) updated: Vec<(String, String)>,
    pub(super) deleted: Vec<String>,
}

impl Acknowledged {
    pub(super) fn count(&self) -> usize {
        self.created.len() + self.updated.len() + self.deleted.len()
    }
}

/// The state that all writers of a test share.
#[derive(Default)]
pub(super) struct Storm {
    pub(super) acknowledged: Mutex<Acknowledged>,
    /// The number of writes that got 503, 507 or no response. They may be stored or not.
    pub(super) unknown: AtomicU64,
    /// The number of writes that got 503 or 507.
    pub(super) refused: AtomicU64,
    live: Mutex<Vec<String>>,
    notes: AtomicU64,
    is_over: AtomicBool,
}

/// The behavior of a writer that cannot connect to the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnLoss {
    End,
    GoOn,
}

enum Write {
    Create(usize),
    Update(String, String),
    Delete(Vec<String>),
}

impl Storm {
    /// Starts writers. `part` chooses their random numbers.
    pub(super) fn begin(
        self: &Arc<Self>,
        (base, token): (&str, &str),
        seed: &Seed,
        part: u64,
        count: u64,
        on_loss: OnLoss,
    ) -> Vec<JoinHandle<()>> {
        self.is_over.store(false, Ordering::Relaxed);
        let writer = |number| {
            let (storm, base, token) = (Arc::clone(self), base.to_owned(), token.to_owned());
            let random = seed.rng(part * 100 + number);
            tokio::spawn(async move { storm.write(&base, &token, random, on_loss).await })
        };
        (0..count).map(writer).collect()
    }

    /// Ends the writers when their requests are answered.
    pub(super) async fn end(&self, writers: Vec<JoinHandle<()>>) {
        self.is_over.store(true, Ordering::Relaxed);
        Storm::ended(writers).await;
    }

    /// Waits for writers that end by themselves.
    pub(super) async fn ended(writers: Vec<JoinHandle<()>>) {
        for writer in writers {
            writer.await.unwrap();
        }
    }

    async fn write(&self, base: &str, token: &str, mut random: Rng, on_loss: OnLoss) {
        let client = http_client();
        while !self.is_over.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(random.u64(0..25))).await;
            let write = self.choose(&mut random);
            let records = |count: usize| vec![json!({ "note": "new" }); count];
            let (method, path, body) = match &write {
                Write::Create(1) => ("POST", String::new(), json!({ "note": "new" })),
                Write::Create(count) => ("POST", "/bulk".to_owned(), json!({ "data": records(*count) })),
                Write::Update(id, note) => ("PATCH", format!("/{id}"), json!({ "note": note })),
                Write::Delete(ids) if ids.len() == 1 => ("DELETE", format!("/{}", ids[0]), Value::Null),
                Write::Delete(ids) => ("DELETE", "/bulk".to_owned(), json!({ "ids": ids })),
            };
            let request = client
                .request(method.parse().unwrap(), format!("{base}/api/v1/data/thing{path}"))
                .bearer_auth(token)
                .timeout(Duration::from_secs(60));
            let request = if body.is_null() { request } else { request.json(&body) };
            match answer(request).await {
                Some((status, text)) => self.take(write, status, &text),
                None => {
                    self.unknown.fetch_add(1, Ordering::Relaxed);
                    if on_loss == OnLoss::End {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }

    fn choose(&self, random: &mut Rng) -> Write {
        let mut live = self.live.lock().unwrap();
        let kind = if live.len() < 5 {
            0
        } else if live.len() >= LIVE_MAX {
            random.u32(50..100)
        } else {
            random.u32(0..100)
        };
        match kind {
            0..20 => Write::Create(1),
            20..30 => Write::Create(random.usize(2..8)),
            30..90 => {
                let note = format!("note {}", self.notes.fetch_add(1, Ordering::Relaxed));
                Write::Update(live[random.usize(..live.len())].clone(), note)
            }
            kind => {
                // No other writer deletes these records. So the response alone shows whether they are deleted.
                let count = if kind < 96 { 1 } else { random.usize(2..5) };
                random.shuffle(&mut live);
                let kept = live.len() - count;
                Write::Delete(live.split_off(kept))
            }
        }
    }

    fn take(&self, write: Write, status: u16, text: &str) {
        let mut acknowledged = self.acknowledged.lock().unwrap();
        match (write, status) {
            (_, 503 | 507) => {
                let body: Value = serde_json::from_str(text).unwrap();
                assert_eq!(body["error"], if status == 503 { "unavailable" } else { "storage_full" }, "{text}");
                for inside in ["sqlx", "rusqlite", "SQLITE", "os error", "disk", "server process", "src/"] {
                    assert!(!text.contains(inside), "{text} shows {inside}");
                }
                self.unknown.fetch_add(1, Ordering::Relaxed);
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            (Write::Create(count), 201) => {
                let body: Value = serde_json::from_str(text).unwrap();
                let ids: Vec<String> = match body["ids"].as_array() {
                    Some(ids) => ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect(),
                    None => vec![body["data"]["id"].as_str().unwrap().to_owned()],
                };
                assert_eq!(ids.len(), count, "{text}");
                self.live.lock().unwrap().extend(ids.iter().cloned());
                acknowledged.created.extend(ids);
            }
            (Write::Update(id, note), 200) => acknowledged.updated.push((id, note)),
            // Another writer has deleted the record meanwhile.
            (Write::Update(..), 404) => {}
            (Write::Delete(ids), 200 | 204) => acknowledged.deleted.extend(ids),
            (_, status) => panic!("{status} {text}"),
        }
    }
}

/// A complete response. `None` if it is incomplete.
async fn answer(request: reqwest::RequestBuilder) -> Option<(u16, String)> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    Some((status, response.text().await.ok()?))
}
