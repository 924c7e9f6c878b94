//! The time of an install: of a file that the server does not know, and of the same file after an uninstall.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Options;
use super::guests::{Guest, Guests};
use crate::cluster::Cluster;
use crate::events::subject::Subject;
use crate::identity::median;
use crate::load::request;
use crate::report::{Table, grouped};
use crate::run::REST;

/// The number of installs of each kind.
const ROUNDS: u32 = 3;

pub(super) async fn measure(options: &Options, guests: &Guests, cluster: Option<&Cluster>) -> (String, Table) {
    let subject = Subject::start(&options.shared.binary, cluster, "install", &[]).await;
    tokio::time::sleep(REST).await;
    let mut rows = Vec::new();
    for guest in &guests.all {
        eprintln!("install, {}", guest.language.name());
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // Each file is different, so that the server does not know any of them.
            let packed = guests.packed_as(guest, &guest.name, |manifest| manifest["version"] = json!(format!("0.1.{round}")));
            first.push(in_and_out(&subject, &packed).await);
            again.push(in_and_out(&subject, &packed).await);
        }
        let size = std::fs::metadata(&guest.file).unwrap().len();
        let milliseconds = |times: Vec<Duration>| grouped(median(times.iter().map(|time| time.as_secs_f64() * 1000.0).collect()));
        rows.push(vec![
            guest.language.name().to_owned(),
            grouped(size as f64 / 1024.0),
            milliseconds(first),
            milliseconds(again),
        ]);
    }
    subject.end().await;
    ("installs".to_owned(), Table { head: vec!["block in", "file KiB", "first ms", "again ms"], rows })
}

/// The time of an install. Afterwards, the block is uninstalled.
async fn in_and_out(subject: &Subject<'_>, guest: &Guest) -> Duration {
    let begun = Instant::now();
    subject.side.install(&guest.file).await;
    let took = begun.elapsed();
    let path = format!("/api/v1/blocks/{}", guest.name);
    subject.side.send(&request("DELETE", &path, subject.side.token.as_deref(), None)).await;
    took
}
