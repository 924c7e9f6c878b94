//! A large backlog: whether it is delivered at a steady rate, and how much it slows down writers meanwhile.

use std::time::{Duration, Instant};

use serde_json::json;

use super::database::Backlog;
use super::subject::{Subject, Subscribed, TOPIC};
use super::{BuiltIn, Options};
use crate::cluster::Cluster;
use crate::load::{Measured, run as run_load};
use crate::report::{Table, grouped};
use crate::run::REST;
use crate::workloads::always;

/// The smallest good ratio of the creates per second with a backlog to those without one.
const CREATES_AIM: f64 = 0.8;

pub(crate) async fn measure(options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    let mut subject = Subject::start(&options.shared.binary, cluster, "backlog", &[]).await;
    let subscribed = match options.handler {
        BuiltIn::LogEvent => Subscribed::LogEvent,
        BuiltIn::PersistEvent => Subscribed::PersistEvent,
    };
    let consumer = subject.subscribe(subscribed, "").await.unwrap();
    subject.side.post(subject.side.items, &json!({ "title": "what the backlog is like" })).await;
    subject.database().await.drained(&consumer).await;

    let (backlog, began) = fill(&mut subject, options, subscribed, &consumer).await;
    let drain = drain_table(&subject.database().await.tenths(&consumer, backlog).await, began);
    let memory = subject.memory_mib();
    eprintln!("  {:.0} MiB, {:.0} MiB at the peak", memory.0, memory.1);

    let before = creates(&subject, options).await;
    let (backlog, _) = fill(&mut subject, options, subscribed, &consumer).await;
    let mut database = subject.database().await;
    // This waits until the server has begun to deliver.
    while database.done(&consumer, backlog, 0).await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (done, began) = (database.done(&consumer, backlog, 0).await, Instant::now());
    let meanwhile = creates(&subject, options).await;
    let done_then = database.done(&consumer, backlog, done).await;
    let delivered = (done_then - done, began.elapsed());
    assert!(done_then < backlog.count, "the backlog was delivered before the creates were measured: take a greater --backlog");
    database.drained(&consumer).await;
    assert_eq!(database.failed(&consumer).await, 0, "deliveries failed");
    drop(database);
    tokio::time::sleep(REST).await;
    let after = creates(&subject, options).await;
    subject.end().await;

    let deliveries = grouped(f64::from(options.backlog));
    let name = subscribed.name();
    vec![
        (format!("{deliveries} deliveries waiting for {name}"), drain),
        (
            format!("creates beside {deliveries} waiting deliveries, {} connections", options.connections),
            creates_table(&before, &meanwhile, &after, delivered),
        ),
    ]
}

/// Creates a backlog while the server is stopped. Also returns the time when the server was running again.
async fn fill(subject: &mut Subject<'_>, options: &Options, subscribed: Subscribed, consumer: &str) -> (Backlog, Instant) {
    subject.stop();
    let began = Instant::now();
    let backlog = subject.database().await.fill(TOPIC, consumer, subscribed.name(), options.backlog).await;
    subject.settle().await;
    eprintln!("  filled in {} s", began.elapsed().as_secs());
    subject.start_again();
    (backlog, Instant::now())
}

/// Creates records of an object without subscribers, so that only the backlog makes a difference.
async fn creates(subject: &Subject<'_>, options: &Options) -> Measured {
    let side = &subject.side;
    let make = always(side, "POST", side.projects, Some(r#"{"name":"a name of usual length"}"#));
    let measured = run_load(&side.address, options.connections, Duration::from_secs(options.seconds), make).await;
    eprintln!("  {} creates a second", grouped(measured.a_second));
    measured
}

fn drain_table(tenths: &[(Instant, i64)], began: Instant) -> Table {
    let mut rows = Vec::new();
    let mut last = (began, 0);
    for (instant, done) in tenths {
        let rate = (done - last.1) as f64 / (*instant - last.0).as_secs_f64();
        let after = (*instant - began).as_secs_f64();
        rows.push(vec![grouped(*done as f64), format!("{after:.1}"), grouped(rate)]);
        last = (*instant, *done);
    }
    Table { head: vec!["delivered", "after s", "/s since the line before"], rows }
}

fn creates_table(before: &Measured, meanwhile: &Measured, after: &Measured, delivered: (i64, Duration)) -> Table {
    let without = f64::midpoint(before.a_second, after.a_second);
    let line = |name: &str, measured: &Measured| {
        let numbers = [measured.a_second, measured.p50_us as f64, measured.p99_us as f64].map(grouped);
        [vec![name.to_owned()], numbers.to_vec()].concat()
    };
    let with = |mut cells: Vec<String>, more: [String; 3]| {
        cells.extend(more);
        cells
    };
    let ratio = format!("{:.2}", meanwhile.a_second / without);
    let rate = grouped(delivered.0 as f64 / delivered.1.as_secs_f64());
    Table {
        head: vec!["creates", "/s", "p50 µs", "p99 µs", "ratio", "aim", "delivered /s"],
        rows: vec![
            with(line("nothing waits, before", before), Default::default()),
            with(line("beside the backlog", meanwhile), [ratio, format!("{CREATES_AIM:.2}"), rate]),
            with(line("nothing waits, afterwards", after), Default::default()),
        ],
    }
}
