//! A link's rate changes, it fails, and works again.

use ackclock_core::{Rate, Time, PICOSECONDS_PER_SECOND};

use super::{Link, RandomLoss};
use crate::packet::Packet;
use crate::queue::{self, Priorities, Queue, QueueContext};
use crate::PlanError;
use ackclock_plan::{LinkPlan, LossPlan};

/// Whole picoseconds for a byte below which those for a packet are exact in a float.
const LARGEST_BYTE_TIME: f64 = 1e11;

impl Link {
    /// The discipline of a link that has this rate, with an empty queue.
    ///
    /// # Errors
    /// If it or its parameters are not known.
    pub fn discipline(
        plan: &LinkPlan,
        rate: Rate,
        priorities: Priorities<'_>,
        seed: u64,
    ) -> Result<Queue, PlanError> {
        let context = QueueContext {
            rate_bps: rate.bits_per_second(),
            seed,
            priorities,
        };
        queue::make(&plan.queue.discipline, &plan.queue.parameters, &context)
    }

    /// What a packet has to expect.
    pub(super) fn update_state(&mut self) {
        self.may_lose = self.down || self.loss.is_some();
        let can_bypass = self.queue.can_bypass() && self.shaper.is_none();
        self.is_lazy = can_bypass && self.propagation.exists && !self.is_traced;
        self.can_bypass = self.is_lazy && !self.may_lose;
    }

    /// There is a flight behind the link, because its delay will change.
    pub fn enable_propagation(&mut self) {
        self.propagation.exists = true;
        self.update_state();
    }

    /// There is no flight behind the link: what has left the transmitter is the medium's.
    pub fn disable_propagation(&mut self) {
        self.propagation.exists = false;
        self.update_state();
    }

    /// The random loss from now on. Its stream of random numbers goes on.
    pub fn set_loss(&mut self, loss: LossPlan) {
        let seed = self.seed;
        let now = self
            .loss
            .get_or_insert_with(|| Box::new(RandomLoss::new(loss, seed)));
        now.set(loss);
        self.update_state();
    }

    /// Somebody has to know of each launch at its time.
    pub fn enable_tracing(&mut self) {
        self.is_traced = true;
        self.update_state();
    }

    /// The rate from now on. A packet in transmission keeps the old one, and the discipline is told nothing: as
    /// in Linux, one that was set up for a rate keeps it.
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

    /// Whether the link works.
    pub fn is_up(&self) -> bool {
        !self.down
    }

    /// The link works again, with an empty queue.
    pub fn restore(&mut self) {
        self.down = false;
        self.update_state();
    }

    /// The link fails; returns the packets in its queue, which are lost. What was launched is another's. The
    /// discipline starts anew as `fresh`, as `qdisc_reset` does in Linux.
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

    /// Takes all packets out of the queue, those that the discipline would hold back at later times.
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

    /// The packet in transmission, which was launched, is lost: it has not departed.
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
