//! The parts of the time of a block's call.

use std::time::{Duration, Instant};

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
    /// Starts in the part `queue`.
    pub fn start() -> CallClock {
        CallClock(Some(Running { part: CallPart::Queue, since: Instant::now(), spent: Default::default() }))
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

    /// Ends the current part, and returns the time in every part except `teardown`, which may end after the answer. A part that
    /// the call never came to has 0, so each part has as many values as there were calls. A clock that is off returns nothing.
    pub fn end(self) -> impl Iterator<Item = (CallPart, Duration)> {
        let spent = self.0.map(|mut running| {
            running.enter(running.part);
            running.spent
        });
        let parts = spent.into_iter().flat_map(|spent| CallPart::ALL.into_iter().zip(spent));
        parts.filter(|(part, _)| *part != CallPart::Teardown)
    }
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
    fn the_end_of_a_call_has_a_time_for_each_part_but_the_teardown() {
        let mut clock = CallClock::start();
        clock.enter(CallPart::Teardown);
        let ended: Vec<(CallPart, Duration)> = clock.end().collect();
        let parts: Vec<CallPart> = ended.iter().map(|(part, _)| *part).collect();
        assert_eq!(parts, [CallPart::Queue, CallPart::Instantiate, CallPart::Guest, CallPart::Host, CallPart::Render]);
        assert!(ended.iter().skip(1).all(|(_, took)| took.is_zero()), "{ended:?}");
    }

    #[test]
    fn a_clock_that_is_off_returns_nothing() {
        let mut clock = CallClock::default();
        clock.enter(CallPart::Guest);
        assert!(!clock.is_on());
        assert_eq!(clock.end().count(), 0);
    }
}
