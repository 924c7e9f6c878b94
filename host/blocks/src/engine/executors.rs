//! The threads that run guests. A call begins on the thread that serves its request, which costs nothing. If it uses a processor
//! for longer than a request should wait, it moves to a separate executor. The system schedules that executor's threads after all
//! others. So a loop in one block does not slow down requests.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

use blockbase_telemetry::processor_time;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tracing::Instrument;

/// The processor time after which a call is moved.
const SHORT: Duration = Duration::from_millis(5);
/// The `nice` value of the slow executor's threads. It makes the system schedule them after other threads.
const NICENESS: i32 = 10;

thread_local! {
    static IS_SLOW: Cell<bool> = const { Cell::new(false) };
}

/// The slow executor. The runtime that makes a call is the quick one.
pub(crate) struct Executors {
    slow: Option<Runtime>,
    /// The service's own runtime.
    quick: Handle,
}

impl Executors {
    /// It must be called on the service's own runtime.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub(crate) fn new() -> std::io::Result<Executors> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let slow = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("block-slow-exec")
            .on_thread_start(step_back)
            .enable_all()
            .build()?;
        Ok(Executors { slow: Some(slow), quick: Handle::current() })
    }

    /// Runs a call to its end, and returns the processor time that it used. Dropping the future ends the call.
    pub(crate) async fn run<T: Send + 'static>(&self, call: impl Future<Output = T> + Send + 'static) -> (T, Duration) {
        let (mut call, mut busy) = (Box::pin(call), Duration::ZERO);
        if let Some(value) = polled(&mut call, &mut busy, Some(SHORT)).await {
            return (value, busy);
        }
        let Some(slow) = &self.slow else { unreachable!("there is a slow executor until the end") };
        let rest = async move {
            let mut busy = busy;
            let value = polled(&mut call, &mut busy, None).await;
            (value, busy)
        };
        // Log lines that the host writes for the call keep the request's id.
        let rest = slow.spawn(rest.in_current_span());
        match AbortOnDrop(rest).join().await {
            (Some(value), busy) => (value, busy),
            (None, _) => unreachable!("without a limit a call is polled to its end"),
        }
    }

    /// Does work in the background, on the service's own threads.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.quick.spawn(work));
    }

    /// Does work for a guest on the service's own threads, even if the guest runs on the slow ones. All callers share connections
    /// and blocking threads. So this work must not wait for an executor that guests keep busy. Dropping the future ends the work.
    pub(crate) async fn serve<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        match IS_SLOW.get() {
            false => work.await,
            true => AbortOnDrop(self.quick.spawn(work.in_current_span())).join().await,
        }
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        // The drop may run on a thread that must not wait for guests. No caller that needs their results is left.
        if let Some(slow) = self.slow.take() {
            slow.shutdown_background();
        }
    }
}

/// Polls until the end, or until the future has used a processor for longer than `most`.
async fn polled<T>(call: &mut Pin<Box<impl Future<Output = T>>>, busy: &mut Duration, most: Option<Duration>) -> Option<T> {
    poll_fn(|context| {
        let begun = Instant::now();
        let polled = call.as_mut().poll(context);
        *busy += begun.elapsed();
        match polled {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if most.is_some_and(|most| *busy > most) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Does work, and returns also the processor time that it used. Unlike the time of [`Executors::run`], this leaves out what a
/// thread waits for a processor in the middle of the work.
pub(crate) async fn with_processor_time<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = pin!(work);
    let mut used = Duration::ZERO;
    let value = poll_fn(|context| {
        let begun = processor_time();
        let polled = work.as_mut().poll(context);
        used += processor_time().saturating_sub(begun);
        polled
    })
    .await;
    (value, used)
}

/// A task that ends when nobody waits for it any more.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    async fn join(mut self) -> T {
        match (&mut self.0).await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The task can only be missing if the process ends.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes the system schedule the calling thread after other threads.
fn step_back() {
    IS_SLOW.set(true);
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(error.cause = %error, "the slow executor of blocks runs at the priority of all others");
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a guest that computes keeps its thread")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_short_call_stays_and_a_long_one_moves() {
        let executors = Executors::new().expect("executors");
        let here = std::thread::current().id();
        let (thread, _) = executors.run(async { std::thread::current().id() }).await;
        assert_eq!(thread, here);
        let (thread, busy) = executors
            .run(async {
                std::thread::sleep(SHORT * 2);
                tokio::task::yield_now().await;
                std::thread::current().id()
            })
            .await;
        assert_ne!(thread, here);
        assert!(busy >= SHORT * 2);
    }

    #[tokio::test]
    async fn what_the_service_does_for_a_guest_it_does_on_its_own_threads() {
        let executors = std::sync::Arc::new(Executors::new().expect("executors"));
        let here = std::thread::current().id();
        let served = std::sync::Arc::clone(&executors);
        let (threads, _) = executors
            .run(async move {
                std::thread::sleep(SHORT * 2);
                tokio::task::yield_now().await;
                (std::thread::current().id(), served.serve(async { std::thread::current().id() }).await)
            })
            .await;
        assert_ne!(threads.0, here);
        assert_eq!(threads.1, here);
    }

    #[tokio::test]
    async fn processor_time_leaves_out_waits() {
        let (_, waited) = with_processor_time(async { std::thread::sleep(SHORT * 10) }).await;
        assert!(waited < SHORT * 10, "{waited:?}");
        let (_, computed) = with_processor_time(async {
            for _ in 0..2 {
                let begun = processor_time();
                while processor_time() < begun + SHORT {}
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert!(computed >= SHORT * 2, "{computed:?}");
    }

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_ends() {
        struct Ended(tokio::sync::mpsc::Sender<()>);
        impl Drop for Ended {
            fn drop(&mut self) {
                let _ = self.0.try_send(());
            }
        }
        let executors = Executors::new().expect("executors");
        let (sender, mut ended) = tokio::sync::mpsc::channel(1);
        let ended_call = Ended(sender);
        let call = executors.run(async move {
            let _ended = ended_call;
            loop {
                std::thread::sleep(SHORT);
                tokio::task::yield_now().await;
            }
        });
        assert!(tokio::time::timeout(SHORT * 10, call).await.is_err());
        assert_eq!(ended.recv().await, Some(()));
    }
}
