//! Changes of a link: its rate, its loss, failure and recovery.

use ackclock_core::{Rate, Time, PICOSECONDS_PER_SECOND};

use super::{Link, RandomLoss};
use crate::packet::Packet;
use crate::queue::{self, FlowHeaders, Queue, QueueContext};
use crate::PlanError;
use ackclock_plan::{LinkPlan, LossPlan};

/// Picoseconds per byte below which the transmission time of a packet is exact in a float.
const LARGEST_BYTE_TIME: f64 = 1e11;

impl Link {
    /// Make the discipline of a link with this rate.
    ///
    /// # Errors
    /// If it or its parameters are not known.
    pub fn discipline(
        plan: &LinkPlan,
        rate: Rate,
        headers: &FlowHeaders,
        seed: u64,
    ) -> Result<Queue, PlanError> {
        let context = QueueContext {
            rate_bps: rate.bits_per_second(),
            seed,
            frame_bytes: plan.frame_overhead_bytes,
            headers,
        };
        queue::make(&plan.queue.discipline, &plan.queue.parameters, &context)
    }

    /// Update the cached state that decides how packets are admitted.
    pub(super) fn update_state(&mut self) {
        self.has_entrance = self.down || self.loss.is_some() || self.tunnel.is_some();
        let can_bypass = self.queue.is_fifo() && self.shaper.is_none();
        self.is_lazy = can_bypass && self.propagation.exists && !self.is_traced;
        self.can_bypass = self.is_lazy && !self.has_entrance;
    }

    /// Add a propagation delay to the link, whose delay will change.
    pub fn enable_propagation(&mut self) {
        self.propagation.exists = true;
        self.update_state();
    }

    /// Remove the propagation delay: packets that leave the transmitter enter an impairment.
    pub fn disable_propagation(&mut self) {
        self.propagation.exists = false;
        self.update_state();
    }

    /// Set the random loss. The stream of random numbers continues.
    pub fn set_loss(&mut self, loss: LossPlan) {
        let seed = self.seed;
        let now = self
            .loss
            .get_or_insert_with(|| Box::new(RandomLoss::new(loss, seed)));
        now.set(loss);
        self.update_state();
    }

    /// Make each departure an event, for the log or a capture.
    pub fn enable_tracing(&mut self) {
        self.is_traced = true;
        self.update_state();
    }

    /// Set the rate. A packet in transmission keeps the old one, and the discipline is not notified: as
    /// in Linux, a discipline that was configured for a rate keeps it.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        let byte_time = 8.0 * PICOSECONDS_PER_SECOND as f64 / rate.bits_per_second();
        let is_whole = byte_time.fract() == 0.0
            && (1.0..LARGEST_BYTE_TIME).contains(&byte_time)
            && self.rates.is_none();
        self.byte_time = if is_whole { byte_time as u64 } else { 0 };
        self.transmission_times = Default::default();
        if let Some(shaper) = &mut self.shaper {
            shaper.set_rate(rate);
        }
    }

    /// True if the link is up.
    pub fn is_up(&self) -> bool {
        !self.down
    }

    /// Bring the link up, with an empty queue.
    pub fn restore(&mut self) {
        self.down = false;
        self.update_state();
    }

    /// Take the link down; returns the packets in its queue, which are lost. Those transmitted are not affected. The
    /// discipline is replaced by `fresh`, as `qdisc_reset` does in Linux.
    pub fn fail(&mut self, fresh: Queue, now: Time) -> Vec<Packet> {
        self.down = true;
        self.update_state();
        let mut lost = self.empty_queue(now);
        if let Some(shaper) = &mut self.shaper {
            lost.extend(std::iter::from_fn(|| shaper.pop(Time::NEVER)));
        }
        for packet in &mut lost {
            packet.wire_bytes -= self.frame_overhead;
        }
        self.counters.lost += lost.len() as u64;
        self.queue = fresh;
        lost
    }

    /// Remove all packets from the queue; those that the discipline holds back are dequeued at later times.
    fn empty_queue(&mut self, now: Time) -> Vec<Packet> {
        let (mut lost, mut time) = (Vec::new(), now);
        while self.queued_packets > 0 && !time.is_never() {
            let before = lost.len();
            lost.extend(self.queue.dequeue(time, &mut self.drops));
            lost.extend(self.drops.drain());
            self.drops.drain_marked().for_each(drop);
            if lost.len() == before {
                time = self.queue.ready(time).max(time + Time::from_picoseconds(1));
            }
            for packet in &lost[before..] {
                self.count_dequeued(packet.wire_bytes, now);
            }
        }
        lost
    }

    /// Abort the transmission in progress: its packet is lost and has not departed.
    pub fn abort_transmission(&mut self, now: Time) {
        if self.busy_until > now {
            self.merge_bypassed();
            self.counters.departed -= 1;
            self.counters.departed_bytes -= u64::from(self.transmitting_bytes);
            self.counters.lost += 1;
            self.busy_until = now;
        }
    }
}
