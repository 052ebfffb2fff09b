//! Packets that enter the simulation from outside, and leave it.

use ackclock_core::Time;

use super::lifecycle::Stage;
use super::{receiver_timer, sender_timer, Simulation};
use crate::external::{Delivered, ExternalPacket, FlowEnd};

impl Simulation {
    /// A program's packet enters at an end of an external flow at the present time; the next call of
    /// [`Simulation::advance`] sends it. The first packet begins the flow. Nothing happens if the flow is another.
    pub fn enter(&mut self, flow: u32, end: FlowEnd, packet: ExternalPacket) {
        let slot = flow as usize;
        if let Some(Stage::Waiting(None)) = self.stages.get(slot) {
            self.begin(slot, None);
        }
        let Some(Stage::Stream(stream)) = self.stages.get_mut(slot) else {
            return;
        };
        stream.end(end).enter(packet, self.now);
        let timer = match end {
            FlowEnd::Sender => sender_timer(slot),
            FlowEnd::Receiver => receiver_timer(slot),
        };
        self.timers.set(timer, self.now);
    }

    /// Move the programs' packets that have crossed the network to `all`, by flow; those of a flow in their order.
    pub fn take_delivered(&mut self, all: &mut Vec<Delivered>) {
        for &number in &self.active {
            if let Stage::Stream(stream) = &mut self.stages[self.network.slots().slot_of(number)] {
                for end in [FlowEnd::Sender, FlowEnd::Receiver] {
                    stream.end(end).take_delivered(all);
                }
            }
        }
    }

    /// Time of the next event; [`Time::NEVER`] if there is none.
    pub fn next_event(&mut self) -> Time {
        let (transmitted, _) = self.network.next_transmission();
        let (arrival, _) = self.network.next_arrival();
        let (due, _) = self.timers.next();
        let next = transmitted.min(arrival).min(due);
        let link_event = self.network.link_event_before(next, Time::NEVER);
        link_event.map_or(next, |(time, _)| time)
    }
}
