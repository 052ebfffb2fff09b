//! State of a run for tests and callers: packets in transit, links, senders.

use ackclock_congestion::Variables;

use super::lifecycle::Stage;
use super::Simulation;
use crate::link::Link;
use crate::sender::Sender;

impl Simulation {
    /// Packets in queues, transmitters and delays.
    pub fn packets_in_transit(&self) -> u64 {
        self.network.packets_in_transit()
    }

    /// Packets sent by both ends, and packets that arrived or were dropped or lost, of the flows that have not ended.
    pub fn packets_sent_and_accounted(&self) -> (u64, u64) {
        self.active.iter().fold((0, 0), |(sent, gone), &number| {
            let slot = self.network.slots().slot_of(number);
            let (out, arrived) = self.stages[slot].packets();
            let lost = self.network.lost_packets(slot);
            let copied = self.network.copies(slot);
            (sent + out + copied, gone + arrived + lost)
        })
    }

    /// Largest number of flows with state at the same time, except rows.
    pub fn slots(&self) -> usize {
        self.network.slots().count()
    }

    /// The links, for inspection.
    pub fn links(&self) -> &[Link] {
        self.network.links()
    }

    /// Senders of the active connections, in the order of flows, for inspection.
    pub fn senders(&self) -> impl Iterator<Item = &Sender> {
        let slots = self.active.iter();
        let slots = slots.map(|&number| self.network.slots().slot_of(number));
        let stages = slots.map(|slot| &self.stages[slot]);
        stages.filter_map(|stage| match stage {
            Stage::Connection(flow) => Some(&flow.sender),
            _ => None,
        })
    }

    /// The variables of the congestion control of an active flow, if it shows them.
    pub fn control_variables(&self, flow: u32) -> Option<Variables> {
        self.active
            .iter()
            .map(|&number| &self.stages[self.network.slots().slot_of(number)])
            .find_map(|stage| match stage {
                Stage::Connection(connection) if connection.sender.flow() == flow => {
                    Some(connection.sender.control_variables())
                }
                Stage::Stream(stream) if stream.flow == flow => Some(stream.control_variables()),
                _ => None,
            })?
    }
}
