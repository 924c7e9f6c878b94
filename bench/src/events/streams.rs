//! Many open streams that each get every event: their latency, and the server's memory for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::Options;
use super::clock::{Clock, Writes, marks, percentiles};
use super::subject::Subject;
use crate::cluster::Cluster;
use crate::identity::user_with;
use crate::report::{Table, grouped};
use crate::side::Side;

/// The limits of the server under many streams. All of them come from one address.
pub(crate) const LIMITS: [(&str, &str); 2] =
    [("SVC_MAX_STREAMS_PER_PRINCIPAL", "10000"), ("SVC_MAX_CONNECTIONS_PER_ADDRESS", "20000")];
/// The users who share the streams. With 10,000 streams, each has as many as one caller may have by default.
const USERS: usize = 100;
/// The number of streams that are being opened at a time.
const OPENING: usize = 64;
/// How long the server idles before its memory is measured.
pub(crate) const QUIET: Duration = Duration::from_secs(3);
/// The longest wait for the last events.
pub(crate) const LATE_MAX: Duration = Duration::from_secs(20);
/// The number of file descriptors that are needed besides those of the streams.
pub(crate) const DESCRIPTORS_BESIDE: u64 = 500;
/// The number of bytes that a client reads at a time. An event of this benchmark fits into them.
const READ_BYTES: usize = 4096;
const PAGE_KIB: f64 = 4.0;

/// The events that a client got, each as its number and its time.
pub(crate) type Got = Vec<(u32, u32)>;

pub(crate) async fn measure(options: &Options, cluster: Option<&Cluster>) -> Vec<(String, Table)> {
    raise_descriptors(options.clients as u64 + DESCRIPTORS_BESIDE);
    let mut subject = Subject::start(&options.shared.binary, cluster, "streams", &LIMITS).await;
    let tokens = readers(&subject.side).await;
    // The server restarts, because hashing the accounts' passwords has left memory that does not belong to the streams.
    subject.stop();
    subject.start_again();
    let interval = Duration::from_millis(options.interval_ms);
    // The first writes are for warming up, before any client listens.
    let warm = 100;
    let count = warm + (options.seconds * 1000 / options.interval_ms) as usize;
    let clock = Clock::start();
    let writes = Writes::new(&subject.side, clock, count);
    write_paced(&writes, 0..warm, Duration::ZERO).await;
    tokio::time::sleep(QUIET).await;
    let (without, _) = subject.memory_mib();
    let sockets_without = socket_kib();

    let began = Instant::now();
    let got = Arc::new(AtomicUsize::new(0));
    let clients = listen_all(open(&subject.side.address, &tokens, options.clients, None), clock, &got).await;
    let opened_in = began.elapsed();
    eprintln!("  {} streams open", clients.len());
    tokio::time::sleep(QUIET).await;
    let (open, _) = subject.memory_mib();

    let began = Instant::now();
    let most_socket_kib = tokio::spawn(watch_sockets());
    write_paced(&writes, warm..count, interval).await;
    let written_in = began.elapsed();
    let expected = (count - warm) * options.clients;
    while got.load(Ordering::Relaxed) < expected && began.elapsed() < written_in + LATE_MAX {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (loaded, peak) = subject.memory_mib();
    most_socket_kib.abort();
    let sockets = SOCKETS_PEAK_KIB.load(Ordering::Relaxed) as f64 - sockets_without;

    let missing = expected - got.load(Ordering::Relaxed);
    let cut_off = clients.iter().filter(|client| client.is_finished()).count();
    subject.end().await;
    let (from_answer, from_request) = latencies(clients, &writes).await;
    let kib = |mib: f64| format!("{:.1}", (mib - without) * 1024.0 / options.clients as f64);
    let line = |name: &str, value: String| vec![name.to_owned(), value];
    let [answer_p50, answer_p99] = percentiles(&from_answer);
    let [request_p50, request_p99] = percentiles(&from_request);
    let rows = vec![
        line("opened, s", format!("{:.1}", opened_in.as_secs_f64())),
        line("events", grouped((count - warm) as f64)),
        line("written in, s", format!("{:.1}", written_in.as_secs_f64())),
        line("delivered a second", grouped((expected - missing) as f64 / written_in.as_secs_f64())),
        line("not delivered", grouped(missing as f64)),
        line("streams cut off", grouped(cut_off as f64)),
        line("answer → client p50 µs", answer_p50),
        line("answer → client p99 µs", answer_p99),
        line("request → client p50 µs", request_p50),
        line("request → client p99 µs", request_p99),
        line("slowest, from the request, µs", grouped(from_request.max() as f64)),
        line("server without streams, MiB", format!("{without:.0}")),
        line("with them open, MiB", format!("{open:.0}")),
        line("under events, MiB", format!("{loaded:.0}")),
        line("at its peak, MiB", format!("{peak:.0}")),
        line("a stream that is open, KiB", kib(open)),
        line("a stream under events, KiB", kib(loaded)),
        line("buffers of the kernel at most, both ends, KiB a stream", format!("{:.1}", sockets / options.clients as f64)),
    ];
    let clients = grouped(options.clients as f64);
    let title = format!("{clients} streams, an event each {} ms", options.interval_ms);
    vec![(title, Table { head: vec!["", "measured"], rows })]
}

/// This process and the server both have a descriptor for each stream. The server inherits the limit.
pub(crate) fn raise_descriptors(needed: u64) {
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if !is_enough(limit.current) {
        assert!(is_enough(limit.maximum), "{needed} open files are needed: ulimit -Hn {needed}");
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
    }
}

/// Sends one write after the other on one connection.
async fn write_paced(writes: &Writes, numbers: std::ops::Range<usize>, interval: Duration) {
    let mut stream = TcpStream::connect(&writes.side.address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut buffer, mut due) = (Vec::new(), Instant::now());
    for number in numbers {
        tokio::time::sleep_until(due.into()).await;
        writes.send(&mut stream, &mut buffer, number).await;
        due += interval;
    }
}

/// The tokens of users who may read the tasks.
pub(crate) async fn readers(admin: &Side) -> Vec<String> {
    let permissions = json!([{ "resource": "task", "actions": ["read"] }]);
    let mut tokens = Vec::with_capacity(USERS);
    for number in 0..USERS {
        tokens.push(user_with(admin, &format!("reader{number}"), &permissions).await.token.unwrap());
    }
    tokens
}

/// A stream that is open.
pub(crate) struct Opened {
    pub(crate) stream: TcpStream,
    /// The bytes of events that were already read.
    pub(crate) read: Vec<u8>,
    /// The time of the first request.
    pub(crate) asked: Instant,
    /// How often the server was busy, so that the client had to connect again.
    pub(crate) times_busy: usize,
}

/// Opens streams, a bounded number at a time. The tokens take turns. The streams continue after the event `after`, if there is one.
pub(crate) fn open(address: &str, tokens: &[String], count: usize, after: Option<&str>) -> Vec<JoinHandle<Opened>> {
    let opening = Arc::new(Semaphore::new(OPENING));
    let open = |number: usize| {
        let (opening, address, after) = (Arc::clone(&opening), address.to_owned(), after.map(str::to_owned));
        let token = tokens[number % tokens.len()].clone();
        tokio::spawn(async move {
            let (mut asked, mut times_busy) = (None, 0);
            loop {
                let place = opening.acquire().await.unwrap();
                let asked = *asked.get_or_insert_with(Instant::now);
                match Subject::open_stream(&address, Some(&token), after.as_deref()).await {
                    Ok((stream, read)) => return Opened { stream, read, asked, times_busy },
                    Err(retry) => {
                        // Others open their streams meanwhile.
                        drop(place);
                        times_busy += 1;
                        tokio::time::sleep(retry).await;
                    }
                }
            }
        })
    };
    (0..count).map(open).collect()
}

/// Waits until all streams are open, and listens to each.
pub(crate) async fn listen_all(streams: Vec<JoinHandle<Opened>>, clock: Clock, got: &Arc<AtomicUsize>) -> Vec<JoinHandle<Got>> {
    let mut clients = Vec::with_capacity(streams.len());
    for stream in streams {
        clients.push(tokio::spawn(listen(stream.await.unwrap().stream, clock, Arc::clone(got))));
    }
    clients
}

/// Reads events until the stream ends. An event nearly always arrives in one piece, and contains its mark twice.
async fn listen(mut stream: TcpStream, clock: Clock, count: Arc<AtomicUsize>) -> Got {
    let mut got = Got::new();
    let mut buffer = [0; READ_BYTES];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let now = clock.now();
        marks(&buffer[..read], |number| {
            let number = number as u32;
            if got.last().is_none_or(|(last, _)| *last != number) {
                got.push((number, now));
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    got
}

/// For each client, the times from the request and from the response to the event. The streams have ended.
async fn latencies(clients: Vec<JoinHandle<Got>>, writes: &Writes) -> (Histogram<u64>, Histogram<u64>) {
    let (mut from_answer, mut from_request) = (Histogram::new(3).unwrap(), Histogram::new(3).unwrap());
    for client in clients {
        for (number, at) in client.await.unwrap() {
            for (earlier, histogram) in [(&writes.answered, &mut from_answer), (&writes.sent, &mut from_request)] {
                let earlier = earlier.get(number as usize).unwrap();
                histogram.record(u64::from(at.saturating_sub(earlier))).unwrap();
            }
        }
    }
    (from_answer, from_request)
}

static SOCKETS_PEAK_KIB: AtomicUsize = AtomicUsize::new(0);

/// Stores the largest memory of TCP buffers that was seen so far. It never ends.
async fn watch_sockets() {
    SOCKETS_PEAK_KIB.store(0, Ordering::Relaxed);
    loop {
        SOCKETS_PEAK_KIB.fetch_max(socket_kib() as usize, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The memory of the kernel's TCP buffers on this machine.
fn socket_kib() -> f64 {
    let all = std::fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = all.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    let pages = line.rsplit_once("mem ").and_then(|(_, pages)| pages.trim().parse::<f64>().ok());
    pages.unwrap_or(0.0) * PAGE_KIB
}
