//! Instances made ahead: a small stock for each hot block whose start is slow, so that calls do not wait for the start.
//!
//! A call still has an instance of its own, in which no other call ran or will run. Only the start of the component comes earlier,
//! on behalf of nobody. So it may read clocks, random bytes and its empty environment. If it does anything else that reaches
//! outside of the instance, traps, or hits a limit, its component is not started ahead again until its file is loaded again
//! ([`Starts`](crate::engine::starts::Starts)), and its author sees what they would see without a stock. If the server lacks
//! memory or processor time for it, the server waits a second before it tries again.
//!
//! Making an instance yields to calls. It begins after the answer of a hot block's call, if a processor is free. It takes a place
//! of its own in the pool, no other instance goes for it, and it leaves the memory of a whole call free
//! ([`CallMemory::take_ahead`]). An instance waits 10 seconds at most, so a block without calls costs nothing.

use std::sync::Arc;
use std::time::Duration;

use blockbase_app::InstalledBlock;
use blockbase_telemetry::CallClock;
use tokio::time::{Instant, timeout};

use super::calls::Failed;
use super::guest::Guest;
use super::{Inner, Loaded};
use crate::engine::executors::with_processor_time;
use crate::engine::limits::{CallMemory, LimitHit};
use crate::engine::starts::OfCalls;
use crate::host::call::CallState;

/// The longest time of a start.
const START_MAX: Duration = Duration::from_secs(1);
/// A start that has not ended after its longest time is the component's own fault if it has used more processor time than this.
/// Otherwise it has waited for a processor.
const PROCESSOR_TIME_MAX: Duration = Duration::from_millis(500);
/// How long an instance waits for a call.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What becomes of an instance after its start.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    Waits,
    /// There was too little memory or processor time, or the host failed. The component has no fault.
    NotNow,
    /// The start failed, or did what belongs to a call.
    BelongsToCall(OfCalls),
}

impl Start {
    /// `started` is `None` if the start has not ended in time.
    fn of(state: &mut CallState, started: Option<wasmtime::Result<()>>, processor_time: Duration) -> Start {
        let (tripped, has_ended) = (state.tripped.hit(), started.is_some());
        let failed = match started {
            Some(Err(error)) => Some(Failed::of(error, tripped)),
            Some(Ok(())) | None => tripped.map(Failed::Limit),
        };
        match &failed {
            // The guest may trap or log because of this.
            Some(Failed::Limit(LimitHit::AllMemory)) => return Start::NotNow,
            Some(Failed::Limit(limit)) => return Start::BelongsToCall(OfCalls::Limit(*limit)),
            Some(Failed::Trap(trap)) => return Start::BelongsToCall(OfCalls::Trap(trap.clone())),
            Some(Failed::Abnormal(error)) => {
                tracing::debug!(error.cause = %format!("{error:#}"), "an instance could not be made ahead");
            }
            Some(Failed::Deadline) | None => {}
        }
        match state.belongs_to_call() {
            Some(what) => Start::BelongsToCall(what),
            None if !has_ended && processor_time > PROCESSOR_TIME_MAX => Start::BelongsToCall(OfCalls::ProcessorTime),
            None if !has_ended || failed.is_some() => Start::NotNow,
            None => Start::Waits,
        }
    }
}

impl Inner {
    /// Makes an instance of the block ahead in the background, if nothing else needs the processors. The answer and the teardown of
    /// the call before it do not wait for this.
    pub(super) fn make_ahead(self: &Arc<Self>, block: Arc<InstalledBlock>, loaded: Arc<Loaded>) {
        let inner = Arc::clone(self);
        self.executors.spawn(async move {
            // What this thread still has to do for the call comes first.
            tokio::task::yield_now().await;
            inner.made_ahead(block, loaded).await;
        });
    }

    async fn made_ahead(&self, block: Arc<InstalledBlock>, loaded: Arc<Loaded>) {
        let Some(place) = self.stock.reserve(&block) else { return };
        let making = place.making();
        let share = self.call_slots.memory_at_leisure(block.name(), self.memory_bytes_max, making, self.processors);
        let Some(share) = share else { return };
        let memory = CallMemory::new(share.budget());
        let state = CallState::ahead(self.environment(START_MAX, &memory, CallClock::default()));
        let ticking = self.ticker.keep();
        let engine = self.engine.clone();
        let (stock, executors) = (Arc::clone(&self.stock), Arc::clone(&self.executors));
        let make = async move {
            // These are kept until the instance waits or is gone. They are declared before the guest, so that they are dropped
            // after it.
            let (place, _held) = (place, (share, ticking));
            let mut guest = Guest::new(&engine, Arc::clone(&loaded), memory, state);
            let (started, processor_time) = with_processor_time(timeout(START_MAX, guest.start())).await;
            match Start::of(guest.store.data_mut(), started.ok(), processor_time) {
                Start::Waits => {
                    // It comes first, so that each call that may find the instance looks for it.
                    loaded.starts.made_ahead();
                    if !guest.wait(place, Instant::now() + WAIT_MAX, &stock, &executors) {
                        loaded.starts.pause(Instant::now());
                    }
                }
                Start::NotNow => loaded.starts.pause(Instant::now()),
                Start::BelongsToCall(what) => leave_to_calls(&block, &loaded, &what),
            }
        };
        self.executors.run(make).await;
    }
}

/// From now on, each call of the block starts its instance itself. The log says so once.
fn leave_to_calls(block: &InstalledBlock, loaded: &Loaded, what: &OfCalls) {
    if loaded.starts.belong_to_calls() {
        tracing::info!(block.name = block.name(), "instances of the block are no longer made ahead: {what}");
    }
}

#[cfg(test)]
mod tests {
    use blockbase_outbound::{AddressPolicy, Client};
    use wasmtime::Trap;

    use super::*;
    use crate::engine::executors::Executors;
    use crate::engine::limits::MemoryBudget;
    use crate::host::call::CallEnvironment;

    #[tokio::test]
    async fn only_a_deed_of_the_component_ends_its_starts_ahead_of_calls() {
        let executors = Arc::new(Executors::new().expect("executors"));
        let client = Client::new(AddressPolicy { allow_private: false }).expect("a client");
        let state = || {
            CallState::ahead(CallEnvironment {
                client: client.clone(),
                executors: Arc::clone(&executors),
                memory_bytes_max: 100,
                memory: CallMemory::new(MemoryBudget::new(1000)),
                timeout: START_MAX,
                clock: CallClock::default(),
            })
        };
        let tripped = |limit: LimitHit| {
            let state = state();
            state.tripped.trip(limit);
            state
        };
        let asking = || {
            let mut state = state();
            state.count_host_call().expect("a call of the block interface");
            state
        };
        let (little, much) = (PROCESSOR_TIME_MAX, PROCESSOR_TIME_MAX + Duration::from_millis(1));
        let start = |mut state: CallState, started, processor_time| Start::of(&mut state, started, processor_time);
        let trap = || Some(Err(wasmtime::Error::from(Trap::UnreachableCodeReached)));
        let of_limit = |limit: LimitHit| Start::BelongsToCall(OfCalls::Limit(limit));

        assert_eq!(start(state(), Some(Ok(())), much), Start::Waits);
        for started in [Some(Ok(())), trap(), None] {
            assert_eq!(start(tripped(LimitHit::AllMemory), started, much), Start::NotNow, "it lacks memory");
        }
        for started in [Some(Ok(())), trap(), None] {
            assert_eq!(start(tripped(LimitHit::HostCalls), started, little), of_limit(LimitHit::HostCalls));
        }
        let stopped = Some(Err(wasmtime::Error::from(LimitHit::LogLines)));
        assert_eq!(start(state(), stopped, little), of_limit(LimitHit::LogLines));
        let trapped = start(state(), trap(), little);
        assert!(matches!(&trapped, Start::BelongsToCall(OfCalls::Trap(trap)) if trap.contains("unreachable")), "{trapped:?}");
        let host = Some(Err(wasmtime::Error::msg("the pool is full")));
        assert_eq!(start(state(), host, much), Start::NotNow, "the host failed");
        assert_eq!(start(state(), None, little), Start::NotNow, "it has waited for a processor");
        assert_eq!(start(state(), None, much), Start::BelongsToCall(OfCalls::ProcessorTime));
        for started in [Some(Ok(())), None] {
            assert_eq!(start(asking(), started, little), Start::BelongsToCall(OfCalls::BlockInterface));
        }
    }
}
