//! The parts of the time of a block's call.

use std::time::{Duration, Instant};

use crate::instruments::{block_call_part, is_on};

/// A part of the time of one call of a block. A call is in exactly one part at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// The call waits for the compiled component, for a slot, or for a processor after its guest has yielded.
    Queue,
    /// The host makes the instance, the component runs the code of its start, and the host begins to pass the arguments.
    Instantiate,
    /// The guest's own code runs.
    Guest,
    /// A host function or a function of the engine runs for the guest, or waits.
    Host,
    /// The host passes the rest of the arguments to the guest, reads the result, and makes the answer of it. A call that has
    /// moved to the slow executor also waits here for its way back.
    Render,
    /// The host cuts the requests of the call, drops the instance and clears its memory. Usually the answer does not wait for the
    /// instance and its memory.
    Teardown,
}

impl CallPart {
    /// Every part, in the order in which a call comes to it.
    pub const ALL: [CallPart; 6] =
        [CallPart::Queue, CallPart::Instantiate, CallPart::Guest, CallPart::Host, CallPart::Render, CallPart::Teardown];

    /// The value of the attribute `svc.block.part`.
    pub fn as_str(self) -> &'static str {
        match self {
            CallPart::Queue => "queue",
            CallPart::Instantiate => "instantiate",
            CallPart::Guest => "guest",
            CallPart::Host => "host",
            CallPart::Render => "render",
            CallPart::Teardown => "teardown",
        }
    }
}

/// Divides the time of one call into its parts. The clock reads the time only when the call goes from one part to another. The
/// default is a clock that is off.
#[derive(Debug, Default)]
pub struct CallClock(Option<Running>);

#[derive(Debug)]
struct Running {
    part: CallPart,
    since: Instant,
    /// The time in each part, in the order of [`CallPart::ALL`].
    spent: [Duration; CallPart::ALL.len()],
}

impl CallClock {
    /// Starts in the part `queue`. While telemetry is off, the clock is off too.
    pub fn start() -> CallClock {
        let start = || Running { part: CallPart::Queue, since: Instant::now(), spent: Default::default() };
        CallClock(is_on().then(start))
    }

    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Ends the current part and begins another.
    pub fn enter(&mut self, part: CallPart) {
        if let Some(running) = &mut self.0 {
            running.enter(part);
        }
    }

    /// Does the same, but only if the call is in the part `from`.
    pub fn enter_from(&mut self, from: CallPart, part: CallPart) {
        if let Some(running) = self.0.as_mut().filter(|running| running.part == from) {
            running.enter(part);
        }
    }

    /// Ends the current part, and records all parts except `teardown`. A part that the call never came to is recorded as 0, so
    /// each part has as many values as there were calls.
    pub fn record(self, block: &str) {
        if let Some(mut running) = self.0 {
            running.enter(running.part);
            for (part, spent) in CallPart::ALL.into_iter().zip(running.spent).filter(|(part, _)| *part != CallPart::Teardown) {
                block_call_part(block, part.as_str(), spent);
            }
        }
    }
}

/// Records the part `teardown` of one call. It has a record of its own, because it may end after the answer.
pub fn block_torn_down(block: &str, took: Duration) {
    block_call_part(block, CallPart::Teardown.as_str(), took);
}

impl Running {
    fn enter(&mut self, part: CallPart) {
        let now = Instant::now();
        self.spent[self.part as usize] += now.saturating_duration_since(self.since);
        (self.part, self.since) = (part, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_in_the_order_of_their_numbers() {
        for (place, part) in CallPart::ALL.into_iter().enumerate() {
            assert_eq!(part as usize, place);
        }
    }

    #[test]
    fn the_time_of_a_call_is_divided_among_its_parts_without_a_rest() {
        let begun = Instant::now();
        let mut running = Running { part: CallPart::Queue, since: begun, spent: Default::default() };
        for part in [CallPart::Guest, CallPart::Host, CallPart::Guest, CallPart::Render] {
            running.enter(part);
        }
        assert_eq!(running.spent.iter().sum::<Duration>(), running.since - begun);
        assert_eq!(running.spent[CallPart::Teardown as usize], Duration::ZERO);
        assert_eq!(running.part, CallPart::Render);
    }

    #[test]
    fn a_clock_that_is_off_records_nothing() {
        let mut clock = CallClock::default();
        clock.enter(CallPart::Guest);
        assert!(!clock.is_on());
        clock.record("echo");
    }
}
