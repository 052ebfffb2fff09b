//! The flight behind a link's transmitter.

use ackclock_units::Time;

use crate::path::{first_due, Flight};
use crate::plan::LinkPlan;

/// Stands for "no node".
const NONE: u32 = u32::MAX;

/// What is behind a link's transmitter: a flight that all packets share, to a node of the graph or to wherever
/// a packet's path leads on. Without it, packets go on by their paths at once.
#[derive(Debug)]
#[repr(align(64))]
pub struct Wire {
    /// The packets in it, and the one in transmission.
    pub flight: Flight,
    /// The propagation delay.
    delay: Time,
    /// The node at its end, `u32::MAX` if it has none.
    pub end: u32,
    /// Whether there is a flight.
    pub exists: bool,
    /// Whether the last packet's departure is still to be logged.
    pub departing: bool,
}

impl Wire {
    /// The wire of a link: one between nodes or with a delay has a flight.
    pub fn new(plan: &LinkPlan) -> Wire {
        Wire {
            flight: Flight::new(),
            delay: plan.delay,
            end: plan.ends.map_or(NONE, |ends| ends.destination),
            exists: plan.ends.is_some() || plan.delay > Time::ZERO,
            departing: false,
        }
    }

    /// Sets the delay, for packets that have not yet left the transmitter. `busy_until`: when the packet in
    /// transmission will have left it, if there is one.
    pub fn set_delay(&mut self, delay: Time, busy_until: Option<Time>) {
        self.delay = delay;
        if let Some(done) = busy_until {
            if let Some((_, packet)) = self.flight.pop_back() {
                let due = self.due(done);
                self.flight.push_back((due, packet));
            }
        }
    }

    /// When a packet that leaves the transmitter arrives: it does not overtake those before it.
    #[inline(always)]
    pub fn due(&self, done: Time) -> Time {
        let due = done + self.delay;
        self.flight.back().map_or(due, |&(last, _)| due.max(last))
    }

    /// When the first packet arrives.
    #[inline(always)]
    pub fn first_due(&self) -> Time {
        first_due(&self.flight)
    }
}
