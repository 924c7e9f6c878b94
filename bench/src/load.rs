//! The load: keep-alive connections that send one request after another, with as little work as possible, and measure the time of
//! each.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The measurement of one side.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The requests per second, or the records per second.
    pub(crate) a_second: f64,
    /// The p50 of a request, in microseconds.
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

impl Measured {
    /// Combines several measurements of one side into one. Each request had `records` records. The p99 is the worst of them.
    pub(crate) fn mean(parts: &[Measured], records: u32) -> Measured {
        let count = parts.len().max(1);
        Measured {
            a_second: parts.iter().map(|part| part.a_second).sum::<f64>() * f64::from(records) / count as f64,
            p50_us: parts.iter().map(|part| part.p50_us).sum::<u64>() / count as u64,
            p99_us: parts.iter().map(|part| part.p99_us).max().unwrap_or(0),
        }
    }
}

/// Makes the bytes of the `number`th request of a connection.
pub(crate) type MakeRequest = std::sync::Arc<dyn Fn(usize, usize) -> Vec<u8> + Send + Sync>;

/// The bytes of a request.
pub(crate) fn request(method: &str, path: &str, token: Option<&str>, body: Option<&str>) -> Vec<u8> {
    request_with(method, path, token, "host: 127.0.0.1\r\n", body)
}

/// The same with other header lines, including `host`.
pub(crate) fn request_with(method: &str, path: &str, token: Option<&str>, headers: &str, body: Option<&str>) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\n{headers}");
    if let Some(token) = token {
        text.push_str(&format!("authorization: Bearer {token}\r\n"));
    }
    if let Some(body) = body {
        text.push_str(&format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
    } else {
        text.push_str("\r\n");
    }
    text.into_bytes()
}

/// Sends one request and reads the complete response. Returns the status and the body.
pub(crate) async fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>) -> (u16, std::ops::Range<usize>) {
    stream.write_all(request).await.unwrap();
    buffer.clear();
    loop {
        let read = stream.read_buf(buffer).await.unwrap();
        assert!(read > 0, "the server closed the connection");
        let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end]).unwrap();
        let status: u16 = head[9..12].parse().unwrap();
        let length: usize = head
            .lines()
            .find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
            })
            .unwrap_or(0);
        let whole = end + 4 + length;
        while buffer.len() < whole {
            assert!(stream.read_buf(buffer).await.unwrap() > 0);
        }
        return (status, end + 4..whole);
    }
}

/// Runs `make`'s requests on `connections` for `time`, after a short warm-up. Each connection finishes at least one request after it,
/// even if that takes longer than `time`.
pub(crate) async fn run(address: &str, connections: usize, time: Duration, make: MakeRequest) -> Measured {
    run_after(time / 8, address, connections, time, make).await
}

/// Does the same with another warm-up. After a warm-up of zero, every request is measured.
pub(crate) async fn run_after(
    warm_up: Duration,
    address: &str,
    connections: usize,
    time: Duration,
    make: MakeRequest,
) -> Measured {
    run_at(Pace { warm_up, pause: Duration::ZERO }, address, connections, time, make).await
}

/// When each connection sends its requests, and from when on they are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The requests that begin in this time are not measured.
    pub(crate) warm_up: Duration,
    /// The time from a response to the next request.
    pub(crate) pause: Duration,
}

/// Does the same at another pace.
pub(crate) async fn run_at(pace: Pace, address: &str, connections: usize, time: Duration, make: MakeRequest) -> Measured {
    let warm = Instant::now() + pace.warm_up;
    let end = warm + time;
    let tasks: Vec<_> = (0..connections)
        .map(|connection| {
            let (address, make) = (address.to_owned(), make.clone());
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.set_nodelay(true).unwrap();
                let mut buffer = Vec::with_capacity(64 * 1024);
                let mut histogram = Histogram::<u64>::new(3).unwrap();
                let mut first = None;
                for number in 0.. {
                    let bytes = make(connection, number);
                    let sent = Instant::now();
                    if sent >= end && !histogram.is_empty() {
                        break;
                    }
                    let (status, _) = exchange(&mut stream, &bytes, &mut buffer).await;
                    assert!((200..300).contains(&status), "{status} {}", String::from_utf8_lossy(&buffer));
                    if sent >= warm {
                        first.get_or_insert(sent);
                        histogram.record(sent.elapsed().as_micros() as u64).unwrap();
                    }
                    if !pace.pause.is_zero() {
                        tokio::time::sleep(pace.pause).await;
                    }
                }
                let took = first.expect("a measured request").elapsed();
                (histogram.len() as f64 / took.as_secs_f64(), histogram)
            })
        })
        .collect();
    let mut all = Histogram::<u64>::new(3).unwrap();
    let mut a_second = 0.0;
    for task in tasks {
        let (by_connection, histogram) = task.await.unwrap();
        a_second += by_connection;
        all.add(histogram).unwrap();
    }
    Measured { a_second, p50_us: all.value_at_quantile(0.5), p99_us: all.value_at_quantile(0.99) }
}
