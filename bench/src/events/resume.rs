//! Many streams that continue after a restart of the server: the time until each of them has the events that it missed, and the
//! latency of other requests meanwhile.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::Options;
use super::clock::{Clock, Writes, marks, percentiles};
use super::streams::{DESCRIPTORS_BESIDE, LIMITS, Opened, open, raise_descriptors, readers};
use super::subject::Subject;
use crate::cluster::Cluster;
use crate::load::{exchange, request};
use crate::report::{Table, grouped};

/// The number of events that each stream misses.
const MISSED: usize = 20;
/// The bytes that are kept of what was read, so that a mark in two pieces is found.
const KEPT: usize = 64;
/// The time between two of the other requests.
const PAUSE: Duration = Duration::from_millis(5);

pub(crate) async fn measure(options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    raise_descriptors(options.clients as u64 + DESCRIPTORS_BESIDE);
    let mut subject = Subject::start(&options.shared.binary, cluster, "resume", &LIMITS).await;
    let tokens = readers(&subject.side).await;
    let writes = Writes::new(&subject.side, Clock::start(), MISSED + 1);
    let known = first_event(&subject, &writes).await;
    write(&writes, 1..MISSED + 1).await;
    subject.stop();
    subject.start_again();
    let (before, _) = subject.memory_mib();

    let (end, ended) = watch::channel(false);
    let others = tokio::spawn(ask(subject.side.address.clone(), subject.side.token.clone(), ended));
    let began = Instant::now();
    let streams: Vec<_> = open(&subject.side.address, &tokens, options.clients, Some(&known))
        .into_iter()
        .map(|opening| {
            tokio::spawn(async move {
                let Opened { stream, read, asked, times_busy } = opening.await.unwrap();
                // The stream stays open, as the others do.
                (catch_up(stream, read).await.map(|stream| (stream, asked.elapsed())), times_busy)
            })
        })
        .collect();
    let mut times = Histogram::<u64>::new(3).unwrap();
    let (mut caught_up, mut cut_off, mut times_busy) = (Vec::new(), 0, 0);
    for stream in streams {
        let (stream, busy) = stream.await.unwrap();
        times_busy += busy;
        match stream {
            Some((stream, time)) => {
                times.record(time.as_micros() as u64).unwrap();
                caught_up.push(stream);
            }
            None => cut_off += 1,
        }
    }
    let caught_up_in = began.elapsed();
    end.send_replace(true);
    let others = others.await.unwrap();
    let (loaded, peak) = subject.memory_mib();
    let [p50, p99] = percentiles(&times);
    let [others_p50, others_p99] = percentiles(&others);
    let line = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = vec![
        line("all have the events after, s", format!("{:.1}", caught_up_in.as_secs_f64())),
        line("streams a second", grouped(caught_up.len() as f64 / caught_up_in.as_secs_f64())),
        line("streams cut off", grouped(f64::from(cut_off))),
        line("times that the server was busy and a client came back later", grouped(times_busy as f64)),
        line("one stream, from its request to its last event, p50 µs", p50),
        line("one stream, p99 µs", p99),
        line("another request meanwhile, p50 µs", others_p50),
        line("another request meanwhile, p99 µs", others_p99),
        line("server before, MiB", format!("{before:.0}")),
        line("with all streams, MiB", format!("{loaded:.0}")),
        line("at its peak, MiB", format!("{peak:.0}")),
    ];
    drop(caught_up);
    subject.end().await;
    let title = format!("{} streams that missed {MISSED} events", grouped(options.clients as f64));
    vec![(title, Table { head: vec!["", "measured"], rows })]
}

/// Writes the first record, and returns the id of its event.
async fn first_event(subject: &Subject<'_>, writes: &Writes) -> String {
    let (mut stream, mut read) = Subject::open_stream(&subject.side.address, subject.side.token.as_deref(), None).await.unwrap();
    write(writes, 0..1).await;
    loop {
        let text = String::from_utf8_lossy(&read);
        let id = text.split_once("id: ").and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((id, _)) = id {
            return id.to_owned();
        }
        assert!(stream.read_buf(&mut read).await.unwrap() > 0, "the stream ended");
    }
}

async fn write(writes: &Writes, numbers: std::ops::Range<usize>) {
    let mut stream = TcpStream::connect(&writes.side.address).await.unwrap();
    let mut buffer = Vec::new();
    for number in numbers {
        writes.send(&mut stream, &mut buffer, number).await;
    }
}

/// Reads until the last event, and checks that none is missing. `None` if the server ends the stream.
async fn catch_up(mut stream: TcpStream, mut read: Vec<u8>) -> Option<TcpStream> {
    let mut last = 0;
    loop {
        marks(&read, |number| {
            assert!(number <= last + 1, "event {number} after {last}");
            last = last.max(number);
        });
        if last == MISSED {
            return Some(stream);
        }
        read.drain(..read.len().saturating_sub(KEPT));
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

/// Reads records on one connection until the end, and returns the times.
async fn ask(address: String, token: Option<String>, ended: watch::Receiver<bool>) -> Histogram<u64> {
    let mut times = Histogram::new(3).unwrap();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let bytes = request("GET", "/api/v1/data/task?count=none", token.as_deref(), None);
    let mut buffer = Vec::new();
    while !*ended.borrow() {
        let asked = Instant::now();
        let (status, _) = exchange(&mut stream, &bytes, &mut buffer).await;
        assert_eq!(status, 200);
        times.record(asked.elapsed().as_micros() as u64).unwrap();
        tokio::time::sleep(PAUSE).await;
    }
    times
}
