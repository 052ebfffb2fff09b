//! Agents: senders whose window is set between two calls of [`Simulation::advance`].

use ackclock_core::Rate;

use super::lifecycle::Stage;
use super::{sender_timer, Simulation};

impl Simulation {
    /// Measurements of an active connection's sender, by name: see [`crate::sender::Sender::measurements`].
    pub fn sender_measurements(&self, flow: u32) -> Option<Vec<(&'static str, f64)>> {
        self.senders()
            .find(|sender| sender.flow() == flow && sender.is_active())
            .map(crate::sender::Sender::measurements)
    }

    /// Set the window, in segments, and the pacing rate of an active connection at the present time. Returns false for
    /// a flow that is not active, and for one whose controller sets its own.
    pub fn set_window(&mut self, flow: u32, cwnd: f64, rate: Option<Rate>) -> bool {
        if !self.active.contains(&flow) {
            return false;
        }
        let slot = self.network.slots().slot_of(flow);
        let Stage::Connection(connection) = &mut self.stages[slot] else {
            return false;
        };
        let is_set = connection.sender.set_window(cwnd, rate, self.now);
        self.timers
            .advance(sender_timer(slot), connection.sender.wake());
        is_set
    }
}
