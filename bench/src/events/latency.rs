//! The latency from a write to its event at a handler and on a stream, at a steady rate of writes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::Options;
use super::clock::{Clock, Instants, Writes, marks, percentiles};
use super::receiver::Receiver;
use super::subject::{Subject, Subscribed};
use crate::cluster::Cluster;
use crate::report::{Table, grouped};

/// The longest wait for the last events.
const LATE_MAX: Duration = Duration::from_secs(10);

pub(crate) async fn measure(options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    let mut rows = Vec::new();
    for subscribed in [Subscribed::Nothing, Subscribed::LogEvent, Subscribed::PersistEvent, Subscribed::Webhook] {
        let cells = turn(options, cluster, subscribed).await;
        eprintln!("  {}", cells.join("  "));
        rows.push(cells);
    }
    let head = vec![
        "one stream and",
        "writes /s",
        "write p50 µs",
        "p99",
        "answer → stream p50",
        "p99",
        "request → stream p50",
        "p99",
        "answer → handler p50",
        "p99",
        "request → handler p50",
        "p99",
        "did not arrive",
    ];
    let title = format!("{} writes a second on {} connections", grouped(f64::from(options.rate)), options.connections);
    vec![(title, Table { head, rows })]
}

/// A row of the table.
async fn turn(options: &Options, cluster: Option<&Cluster>, subscribed: Subscribed) -> Vec<String> {
    let subject = Subject::start(&options.shared.binary, cluster, "latency", &[]).await;
    let rate = options.rate as usize;
    // The first second is for warming up.
    let count = rate * (options.seconds as usize + 1);
    let clock = Clock::start();
    let writes = Writes::new(&subject.side, clock, count);
    let (streamed, handled) = (Instants::new(clock, count), Instants::new(clock, count));
    let receiver = Receiver::start(Some(Arc::clone(&handled))).await;
    let consumer = subject.subscribe(subscribed, &receiver.url).await;
    let (stream, _) = Subject::open_stream(&subject.side.address, subject.side.token.as_deref(), None).await.unwrap();
    let reader = tokio::spawn(read(stream, Arc::clone(&streamed)));

    write_paced(options, &writes, count).await;
    let is_webhook = subscribed == Subscribed::Webhook;
    let missing = || streamed.missing() + if is_webhook { handled.missing() } else { 0 };
    let deadline = Instant::now() + LATE_MAX;
    while missing() > 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    reader.abort();

    let (first, last) = (writes.sent.get(rate).unwrap(), writes.sent.get(count - 1).unwrap());
    let achieved = (count - rate - 1) as f64 * 1e6 / f64::from(last - first);
    let mut cells = vec![subscribed.name().to_owned(), grouped(achieved)];
    cells.extend(percentiles(&writes.answered.after(&writes.sent, rate)));
    cells.extend(percentiles(&streamed.after(&writes.answered, rate)));
    cells.extend(percentiles(&streamed.after(&writes.sent, rate)));
    let by_ledger = match (&consumer, is_webhook) {
        (Some(consumer), false) => {
            let mut database = subject.database().await;
            database.drained(consumer).await;
            in_micros(database.delivered_after_ms(consumer).await.get(rate..).unwrap_or_default())
        }
        _ => Histogram::new(3).unwrap(),
    };
    // Only the ledger has the times of a built-in handler, in whole milliseconds from the write's start.
    cells.extend(percentiles(&handled.after(&writes.answered, rate)));
    cells.extend(percentiles(&if is_webhook { handled.after(&writes.sent, rate) } else { by_ledger }));
    cells.push(grouped(missing() as f64));
    subject.end().await;
    cells
}

fn in_micros(milliseconds: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).unwrap();
    milliseconds.iter().for_each(|pause| histogram.record(pause * 1000).unwrap());
    histogram
}

/// Sends each write when it is due, or later when its connection is free.
async fn write_paced(options: &Options, writes: &Writes, count: usize) {
    let (connections, rate) = (options.connections, options.rate);
    let began = Instant::now();
    let tasks: Vec<_> = (0..connections)
        .map(|connection| {
            let writes = writes.clone();
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(&writes.side.address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut buffer = Vec::with_capacity(4096);
                for number in (connection..count).step_by(connections) {
                    let due = began + Duration::from_secs_f64(number as f64 / f64::from(rate));
                    tokio::time::sleep_until(due.into()).await;
                    writes.send(&mut stream, &mut buffer, number).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Stores the times when the events of a stream arrive.
async fn read(mut stream: TcpStream, arrived: Arc<Instants>) {
    let mut buffer = Vec::with_capacity(256 * 1024);
    while stream.read_buf(&mut buffer).await.unwrap() > 0 {
        // An incomplete frame stays in the buffer.
        let Some(end) = buffer.windows(2).rposition(|window| window == b"\n\n") else { continue };
        marks(&buffer[..end], |number| arrived.note(number));
        buffer.drain(..end);
    }
    eprintln!("  the stream was cut off");
}
