//! Requests of an attacker, and the requests of other callers at the same time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::load::{request, request_with};
use crate::side::Side;

/// The longest wait for a response.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// The pause between two requests of other callers.
const PAUSE: Duration = Duration::from_millis(20);

/// The result of one request. The status is 0 if there was no response.
pub(super) struct Asked {
    pub(super) status: u16,
    pub(super) time: Duration,
    pub(super) bytes: usize,
}

/// The bytes of a request of this side.
pub(super) fn by(side: &Side, method: &str, path: &str, body: Option<&Value>) -> Vec<u8> {
    request(method, path, side.token.as_deref(), body.map(Value::to_string).as_deref())
}

/// The bytes of a request without a credential, from another address.
pub(super) fn from(address: &str, method: &str, path: &str, body: Option<&str>) -> Vec<u8> {
    request_with(method, path, None, &format!("host: 127.0.0.1\r\nx-forwarded-for: {address}\r\n"), body)
}

/// Sends a request over a new connection, and reads the complete response.
pub(super) async fn ask(address: &str, bytes: &[u8]) -> Asked {
    let begun = Instant::now();
    let asked = tokio::time::timeout(ANSWER_TIME_MAX, whole_answer(address, bytes)).await;
    let (status, bytes) = asked.ok().and_then(Result::ok).unwrap_or_default();
    Asked { status, time: begun.elapsed(), bytes }
}

async fn whole_answer(address: &str, request: &[u8]) -> std::io::Result<(u16, usize)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let (mut buffer, mut head, mut read, mut whole) = (vec![0; 1 << 18], Vec::new(), 0, usize::MAX);
    let mut status = 0;
    while read < whole {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        read += count;
        if whole == usize::MAX {
            head.extend_from_slice(&buffer[..count]);
            if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&head[..end]).to_lowercase();
                status = text.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0);
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
                whole = end + 4 + length.unwrap_or(0);
            }
        }
    }
    Ok((status, read))
}

/// Sends a request and does not read the response.
pub(super) async fn ask_and_leave_unread(address: &str, bytes: &[u8]) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    stream.write_all(bytes).await.ok()?;
    Some(stream)
}

/// The result for other callers: the slowest response, and the number of responses without a 2xx status.
#[derive(Default)]
pub(super) struct Fared {
    slowest: Duration,
    statuses: BTreeMap<u16, usize>,
}

impl Fared {
    pub(super) fn add(&mut self, asked: &Asked) {
        self.slowest = self.slowest.max(asked.time);
        *self.statuses.entry(asked.status).or_default() += 1;
    }

    pub(super) fn text(&self) -> String {
        let refused: usize =
            self.statuses.iter().filter(|(status, _)| !(200..300).contains(*status)).map(|(_, count)| count).sum();
        let all: usize = self.statuses.values().sum();
        let slowest = milliseconds(self.slowest);
        if refused == 0 { slowest } else { format!("{slowest}, {refused} of {all} refused") }
    }
}

pub(super) fn milliseconds(time: Duration) -> String {
    format!("{} ms", crate::report::grouped(time.as_secs_f64() * 1000.0))
}

/// Repeats each of these requests until `attack` has ended. Returns the result of each request.
pub(super) async fn beside<T>(address: &str, requests: &[Vec<u8>], attack: impl Future<Output = T>) -> (T, Vec<Fared>) {
    let watches = requests.iter().map(|bytes| {
        let (address, bytes) = (address.to_owned(), bytes.clone());
        let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
        let watch = tokio::spawn(async move {
            let mut fared = Fared::default();
            while stopped.try_recv().is_err() {
                fared.add(&ask(&address, &bytes).await);
                tokio::time::sleep(PAUSE).await;
            }
            fared
        });
        (stop, watch)
    });
    let watches: Vec<_> = watches.collect();
    let came = attack.await;
    let mut all = Vec::new();
    for (stop, watch) in watches {
        let _ = stop.send(());
        all.push(watch.await.unwrap());
    }
    (came, all)
}

/// Sends the same request `count` times at once. Returns the combined result of the responses.
pub(super) async fn at_once(address: &str, count: usize, bytes: &[u8]) -> Fared {
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let (address, bytes) = (address.to_owned(), bytes.to_vec());
            tokio::spawn(async move { ask(&address, &bytes).await })
        })
        .collect();
    let mut fared = Fared::default();
    for task in tasks {
        fared.add(&task.await.unwrap());
    }
    fared
}
