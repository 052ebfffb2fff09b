//! Events of flows over UDP.
//!
//! As with TCP, the receiver's clock runs ahead of the simulation's. The sender's packets leave by its timer, one at a
//! time; the receiver's leave at once when a packet has arrived, or by its timer.

use ackclock_core::Time;
use ackclock_plan::SourcePlan;

use super::lifecycle::Stage;
use super::stream::Stream;
use super::{receiver_timer, sender_timer, Simulation};
use crate::packet::Packet;

impl Simulation {
    /// Take the bytes captured since the last call: a file for each of the plan's vantage points, and then one for each
    /// QUIC flow whose stack is to log.
    pub fn take_captures(&mut self) -> Vec<Vec<u8>> {
        let mut files = self.network.take_captures();
        let first = self.plan.flows.len();
        for (number, plan) in self.plan.datagrams.iter().enumerate() {
            if matches!(&plan.source, SourcePlan::Quic(quic) if quic.qlog) {
                let stage = &mut self.stages[first + number];
                files.push(match stage {
                    Stage::Stream(stream) => stream.take_log(),
                    _ => Vec::new(),
                });
            }
        }
        files
    }

    /// Begin a flow over UDP, the plan's with this number, which [`super::stream::check`] has accepted.
    pub(super) fn begin_stream(&mut self, slot: usize, number: usize) {
        let plan = &self.plan.datagrams[number];
        let flow = slot as u32;
        let opened = self.network.open_route(slot, flow, plan.ends);
        let numbers = (flow, number as u64);
        if let Ok(stream) = Stream::new(numbers, plan, opened, self.now, self.seed, &self.stacks) {
            self.timers.set(sender_timer(slot), stream.sender_due());
            self.stages[slot] = Stage::Stream(Box::new(stream));
        }
    }

    /// Deliver a packet to the sender of a flow over UDP.
    #[cold]
    pub(super) fn reach_source(&mut self, slot: usize, packet: Packet) {
        let payload = self.network.take_payload(&packet);
        if let Stage::Stream(stream) = &mut self.stages[slot] {
            stream.reach_sender(&packet, payload, self.now);
            self.timers.set(sender_timer(slot), stream.sender_due());
        }
    }

    /// Deliver a packet to the receiver of a flow over UDP at its local time.
    #[cold]
    pub(super) fn reach_sink(&mut self, slot: usize, packet: Packet, local: Time) {
        if let Stage::Stream(stream) = &mut self.stages[slot] {
            stream.reach_receiver(&packet, local, &mut self.network);
            stream.write_rows(self.plan.duration, &mut self.network);
            let due = stream.receiver_due();
            if !due.is_never() {
                self.timers.advance(receiver_timer(slot), due.max(self.now));
            }
        }
    }

    /// Handle the timer of the sender of a flow over UDP. An entry may be earlier than its deadline.
    pub(super) fn on_source_timer(&mut self, slot: usize) {
        if let Stage::Stream(stream) = &mut self.stages[slot] {
            if stream.sender_due() <= self.now {
                stream.send(self.now, &mut self.network);
                stream.write_rows(self.plan.duration, &mut self.network);
            }
            self.timers.set(sender_timer(slot), stream.sender_due());
        }
    }

    /// Handle the timer of the receiver of a flow over UDP.
    pub(super) fn on_sink_timer(&mut self, slot: usize) {
        if let Stage::Stream(stream) = &mut self.stages[slot] {
            stream.on_receiver_timer(self.now, &mut self.network);
            let due = stream.receiver_due().max(self.now);
            self.timers.set(receiver_timer(slot), due);
        }
    }
}
