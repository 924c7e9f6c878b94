//! The cost of events for writers. Records are created without events, with events that have no receiver, and with events that go
//! to a handler or a webhook.

use std::time::{Duration, Instant};

use super::Options;
use super::receiver::Receiver;
use super::subject::{Subject, Subscribed};
use crate::cluster::Cluster;
use crate::identity::median;
use crate::load::{Measured, run as run_load};
use crate::report::{Table, grouped};
use crate::workloads::create;

/// The number of turns of each server.
const TURNS: u32 = 6;

struct Contender<'a> {
    name: &'static str,
    subject: Subject<'a>,
    consumer: Option<String>,
    turns: Vec<Measured>,
    /// The largest number of deliveries that were left when a turn ended.
    left: i64,
}

pub(crate) async fn measure(options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    let receiver = Receiver::start(None).await;
    let mut contenders = Vec::new();
    for (name, database, is_on, subscribed) in [
        ("events off", "cost_off", "false", Subscribed::Nothing),
        ("no subscription", "cost_none", "true", Subscribed::Nothing),
        ("one log_event", "cost_log", "true", Subscribed::LogEvent),
        ("one webhook", "cost_webhook", "true", Subscribed::Webhook),
    ] {
        let subject = Subject::start(&options.shared.binary, cluster, database, &[("SVC_EVENTS_ENABLED", is_on)]).await;
        let consumer = subject.subscribe(subscribed, &receiver.url).await;
        contenders.push(Contender { name, subject, consumer, turns: Vec::new(), left: 0 });
    }
    let time = Duration::from_millis(options.seconds * 1000) / TURNS;
    for turn in 0..TURNS {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for place in order {
            contenders[place].create(options.connections, time).await;
        }
    }
    let rows = (0..contenders.len()).map(|place| row(&contenders[place], &contenders[0])).collect();
    for contender in contenders {
        contender.subject.end().await;
    }
    let head = vec!["create", "/s", "p50 µs", "p99 µs", "ratio", "left to deliver"];
    vec![(format!("what events cost, {} connections", options.connections), Table { head, rows })]
}

impl Contender<'_> {
    /// Creates records for some time, then waits until all events are delivered, so that no delivery happens during another turn.
    async fn create(&mut self, connections: usize, time: Duration) {
        let began = Instant::now();
        let side = &self.subject.side;
        let measured = run_load(&side.address, connections, time, create(side)).await;
        if let Some(consumer) = &self.consumer {
            let mut database = self.subject.database().await;
            self.left = self.left.max(database.pending(consumer).await);
            database.drained(consumer).await;
            assert_eq!(database.failed(consumer).await, 0, "deliveries failed");
        }
        eprintln!("{:>4} s  {:<16} {:>7}/s", began.elapsed().as_secs(), self.name, grouped(measured.a_second));
        self.turns.push(measured);
    }
}

fn row(contender: &Contender, base: &Contender) -> Vec<String> {
    let all = Measured::mean(&contender.turns, 1);
    let ratios = contender.turns.iter().zip(&base.turns).map(|(ours, base)| ours.a_second / base.a_second).collect();
    let is_base = std::ptr::eq(contender, base);
    vec![
        contender.name.to_owned(),
        grouped(all.a_second),
        grouped(all.p50_us as f64),
        grouped(all.p99_us as f64),
        if is_base { String::new() } else { format!("{:.2}", median(ratios)) },
        if contender.consumer.is_some() { grouped(contender.left as f64) } else { String::new() },
    ]
}
