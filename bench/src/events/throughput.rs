//! The events per second that one handler gets: while writes make them, and when all of them already wait.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Options;
use super::receiver::Receiver;
use super::subject::{Subject, Subscribed, TOPIC};
use crate::cluster::Cluster;
use crate::fill;
use crate::report::{Table, grouped};

/// If fewer events are left after the last write, the rate of their delivery means nothing.
const LEFT_MIN: i64 = 1000;

pub(crate) async fn measure(options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    let mut rows = Vec::new();
    for subscribed in [Subscribed::LogEvent, Subscribed::PersistEvent, Subscribed::Webhook] {
        let row = turn(options, cluster, subscribed).await;
        eprintln!("  {}", row.join("  "));
        rows.push(row);
    }
    let head = vec!["handler", "written /s", "through /s", "left when written", "then /s", "a backlog /s"];
    let title = format!("{} events through one handler", grouped(f64::from(options.events)));
    vec![(title, Table { head, rows })]
}

async fn turn(options: &Options, cluster: Option<&Cluster>, subscribed: Subscribed) -> Vec<String> {
    let mut subject = Subject::start(&options.shared.binary, cluster, "throughput", &[]).await;
    let receiver = Receiver::start(None).await;
    let consumer = subject.subscribe(subscribed, &receiver.url).await.unwrap();
    let mut database = subject.database().await;

    let began = Instant::now();
    let filled_in = fill::fill(&mut subject.side, options.events).await;
    let left = database.pending(&consumer).await;
    let filled = Instant::now();
    database.drained(&consumer).await;
    let (all, rest) = (began.elapsed(), filled.elapsed());
    assert_eq!(database.failed(&consumer).await, 0, "deliveries failed");
    drop(database);

    // Measures the same events again, but now all of them exist before the first is claimed.
    subject.side.post(subject.side.items, &json!({ "title": "what the backlog is like" })).await;
    subject.database().await.drained(&consumer).await;
    subject.stop();
    let backlog = subject.database().await.fill(TOPIC, &consumer, subscribed.name(), options.events).await;
    subject.settle().await;
    subject.start_again();
    let mut database = subject.database().await;
    let tenths = database.tenths(&consumer, backlog).await;
    assert_eq!(database.failed(&consumer).await, 0, "deliveries failed");
    drop(database);
    subject.end().await;

    // The first tenth is left out, because the server started during it.
    let (first, last) = (tenths[0], tenths[tenths.len() - 1]);
    let rate = |count: f64, time: Duration| grouped(count / time.as_secs_f64());
    let events = f64::from(options.events);
    vec![
        subscribed.name().to_owned(),
        rate(events, filled_in),
        rate(events, all),
        grouped(left as f64),
        if left < LEFT_MIN { String::new() } else { rate(left as f64, rest) },
        rate((last.1 - first.1) as f64, last.0 - first.0),
    ]
}
