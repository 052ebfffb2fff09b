//! A link's rate changes, it fails, and works again.

use ackclock_core::{Rate, Time, PICOSECONDS_PER_SECOND};

use super::{Link, RandomLoss};
use crate::packet::Packet;
use crate::queue::{self, Priorities, Queue, Surroundings};
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
        let surroundings = Surroundings {
            rate_bps: rate.bits_per_second(),
            seed,
            priorities,
        };
        queue::make(
            &plan.queue.discipline,
            &plan.queue.parameters,
            &surroundings,
        )
    }

    /// What a packet has to expect.
    pub(super) fn take_stock(&mut self) {
        self.obstructed = self.down || self.loss.is_some();
        let lets_through = self.queue.lets_through() && self.gate.is_none();
        self.is_lazy = lets_through && self.propagation.exists && !self.is_watched;
        self.is_plain = self.is_lazy && !self.obstructed;
    }

    /// There is a flight behind the link, because its delay will change.
    pub fn give_flight(&mut self) {
        self.propagation.exists = true;
        self.take_stock();
    }

    /// There is no flight behind the link: what has left the transmitter is the medium's.
    pub fn give_medium(&mut self) {
        self.propagation.exists = false;
        self.take_stock();
    }

    /// The random loss from now on. Its stream of random numbers goes on.
    pub fn set_loss(&mut self, loss: LossPlan) {
        let seed = self.seed;
        let now = self
            .loss
            .get_or_insert_with(|| Box::new(RandomLoss::new(loss, seed)));
        now.set(loss);
        self.take_stock();
    }

    /// Somebody has to know of each launch at its time.
    pub fn watch(&mut self) {
        self.is_watched = true;
        self.take_stock();
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
        if let Some(gate) = &mut self.gate {
            gate.set_rate(rate);
        }
    }

    /// Whether the link works.
    pub fn is_up(&self) -> bool {
        !self.down
    }

    /// The link works again, with an empty queue.
    pub fn restore(&mut self) {
        self.down = false;
        self.take_stock();
    }

    /// The link fails; returns the packets in its queue, which are lost. What was launched is another's. The
    /// discipline starts anew as `fresh`, as `qdisc_reset` does in Linux.
    pub fn fail(&mut self, fresh: Queue, now: Time) -> Vec<Packet> {
        self.down = true;
        self.take_stock();
        let mut lost = self.empty_queue(now);
        if let Some(gate) = &mut self.gate {
            lost.extend(std::iter::from_fn(|| gate.pop(Time::NEVER)));
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
                self.leave(packet.wire_bytes, now);
            }
        }
        lost
    }

    /// The packet in transmission, which was launched, is lost: it has not departed.
    pub fn recall(&mut self, now: Time) {
        if self.busy_until > now {
            self.settle_passed();
            self.counters.departed -= 1;
            self.counters.departed_bytes -= u64::from(self.launched_bytes);
            self.counters.lost += 1;
            self.busy_until = now;
        }
    }
}
