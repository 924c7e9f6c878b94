//! Connections of clients: limits on the number for one address, and on how slowly a client may send a head or read.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use blockbase_app::CLIENT_STALLED_MAX;
use blockbase_quota::{Place, Places, PlacesRule, network_of};
use hyper::rt::Timer;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// How long a client may take to send a request's head.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after an accept failed, for example because no file descriptor was left.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// When a connection's writes have waited for this long altogether, the client must have read at least [`READ_BYTES_MIN`] in that
/// time.
const SLOW_MAX: Duration = Duration::from_secs(60);
/// The number of bytes that a client has to read in [`SLOW_MAX`]. This is 1 KiB per second.
const READ_BYTES_MIN: u64 = 60 * 1024;

/// The open connections of each address.
#[derive(Clone)]
pub(crate) struct Connections {
    by_network: Arc<Places<IpAddr>>,
    /// Whether an address is a trusted proxy, which passes on the requests of many clients.
    is_trusted_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
}

impl Connections {
    /// Allows at most `each` connections for each address. Connections of trusted proxies do not count.
    pub(crate) fn new(each: usize, is_trusted_proxy: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Connections {
        let rule = PlacesRule::without_wait(usize::MAX, each);
        Connections { by_network: Places::new(rule), is_trusted_proxy: Arc::new(is_trusted_proxy) }
    }

    /// A place for one more connection. `None` if its address has the maximum number of connections.
    pub(crate) fn place(&self, address: SocketAddr) -> Option<ConnectionPlace> {
        let address = address.ip().to_canonical();
        if (self.is_trusted_proxy)(address) {
            return Some(ConnectionPlace { _place: None });
        }
        self.by_network.try_take(&network_of(address)).ok().map(|place| ConnectionPlace { _place: Some(place) })
    }
}

/// The place of one connection. It becomes free when this is dropped.
pub(crate) struct ConnectionPlace {
    _place: Option<Place<IpAddr>>,
}

/// The timer for the heads of one connection.
///
/// hyper makes a timeout for each head, and drops it when the head has arrived. If each of them were a timer of the runtime, it
/// would be added to the other timers and removed again, with a lock that all connections share. So the timeouts of a connection
/// share one timer, which goes on when a head has arrived. When it ends, it is set to the end of the timeout that is waited for.
#[derive(Default)]
pub(crate) struct HeadTimer(SharedTimer);

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HeadTimeout { timer: Arc::clone(&self.0), deadline: Instant::from_std(deadline) })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }
}

/// A timer that is made when it is first waited for.
type SharedTimer = Arc<Mutex<Option<Pin<Box<Sleep>>>>>;

/// The timeout of one head.
struct HeadTimeout {
    timer: SharedTimer,
    deadline: Instant,
}

impl hyper::rt::Sleep for HeadTimeout {}

impl Future for HeadTimeout {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.timer.lock();
        let timer = shared.get_or_insert_with(|| Box::pin(sleep_until(self.deadline)));
        while timer.as_mut().poll(context).is_ready() {
            // All timeouts of a connection are equally long, so each ends later than those before it.
            if timer.deadline() >= self.deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(self.deadline);
        }
        Poll::Pending
    }
}

/// Measures how fast a client reads while data waits for it.
#[derive(Default)]
struct Progress {
    /// How long writes waited for the client, and how many bytes the client read in that time.
    waited: Duration,
    taken: u64,
}

impl Progress {
    /// Counts the bytes that a client has read after a wait. Returns whether the client reads fast enough.
    fn took(&mut self, waited: Duration, bytes: u64) -> bool {
        self.waited += waited;
        self.taken += bytes;
        if self.taken >= READ_BYTES_MIN {
            *self = Progress::default();
        }
        self.waited < SLOW_MAX
    }
}

/// A connection that ends if its client does not read, or reads too slowly.
pub(crate) struct Watched<S> {
    stream: S,
    stalled_max: Duration,
    /// The time since when the client has read nothing, and the timer that ends the connection.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
    progress: Progress,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S) -> Watched<S> {
        Watched { stream, stalled_max: CLIENT_STALLED_MAX, stalled: None, progress: Progress::default() }
    }

    /// Turns the result of a write into an error if the client does not read, or reads too slowly.
    fn watch(&mut self, written: Poll<Result<usize>>, context: &mut Context<'_>) -> Poll<Result<usize>> {
        let Poll::Ready(written) = written else {
            let stalled_max = self.stalled_max;
            let (_, end) = self.stalled.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(stalled_max))));
            ready!(end.as_mut().poll(context));
            return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")));
        };
        let waited = self.stalled.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
        let bytes = written.as_ref().map_or(0, |bytes| *bytes as u64);
        match self.progress.took(waited, bytes) {
            true => Poll::Ready(written),
            false => Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client reads too slowly"))),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(written, context)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn each_head_has_its_whole_time() {
        let timer = HeadTimer::default();
        let begun = timer.now();
        let [first, second] = [10, 40].map(|millis| begun + Duration::from_millis(millis));
        // The first head arrives in time, or too late on a slow machine. Its timeout is dropped in either case.
        let _ = timer.sleep_until(first).as_mut().now_or_never();
        timer.sleep_until(second).await;
        assert!(timer.now() >= second);
        // The shared timer has ended, and the timeout has not.
        assert!(timer.sleep(Duration::from_secs(3600)).as_mut().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_cut_off() {
        let (server, mut client) = duplex(1024);
        let mut server = Watched { stalled_max: Duration::from_millis(20), ..Watched::new(server) };
        server.write_all(&[0; 1024]).await.expect("room");
        let error = server.write_all(&[0; 1024]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let mut bytes = Vec::new();
        drop(server);
        assert_eq!(client.read_to_end(&mut bytes).await.expect("the end"), 1024);
    }

    #[test]
    fn a_client_that_hardly_reads_is_cut_off_and_a_slow_one_is_not() {
        let seconds_read = |bytes_a_second: u64| {
            let mut progress = Progress::default();
            (0..600).take_while(|_| progress.took(Duration::from_secs(1), bytes_a_second)).count()
        };
        assert_eq!(seconds_read(100), 59);
        assert_eq!(seconds_read(READ_BYTES_MIN / 60), 600);
        let mut idle = Progress::default();
        assert!((0..10_000).all(|_| idle.took(Duration::ZERO, 1)), "time in which nothing waits for the client does not count");
    }

    #[test]
    fn an_address_has_so_many_connections_and_a_proxy_any_number() {
        let proxy = IpAddr::from([192, 0, 2, 9]);
        let connections = Connections::new(2, move |address| address == proxy);
        let from = |address: [u8; 4]| connections.place(SocketAddr::from((address, 1)));
        let held = [from([192, 0, 2, 1]), from([192, 0, 2, 1])];
        assert!(held.iter().all(Option::is_some));
        assert!(from([192, 0, 2, 1]).is_none());
        assert!(from([192, 0, 2, 2]).is_some());
        let of_proxy: Vec<_> = (0..5).map(|_| from([192, 0, 2, 9])).collect();
        assert!(of_proxy.iter().all(Option::is_some));
        drop(held);
        assert!(from([192, 0, 2, 1]).is_some());
    }
}
