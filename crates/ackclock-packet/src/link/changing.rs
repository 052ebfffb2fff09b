//! A link's rate changes, it fails, and works again.

use ackclock_units::{Rate, Time};

use super::Link;
use crate::packet::Packet;
use crate::queue::{self, Surroundings};
use crate::PlanError;

impl Link {
    /// The rate from now on. A packet in transmission keeps the old one, and the discipline is told nothing: as
    /// in Linux, one that was set up for a rate keeps it.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.transmission_times = Default::default();
        if let Some(bucket) = &mut self.bucket {
            bucket.set_burst(self.made_from.burst_bytes, rate);
        }
    }

    /// Whether the link works.
    pub fn is_up(&self) -> bool {
        !self.down
    }

    /// The link works again, with an empty queue.
    pub fn restore(&mut self) {
        self.down = false;
        self.obstructed = self.loss.is_some();
    }

    /// The link fails; returns the packets in its queue and transmitter, which are lost. What was launched is
    /// another's. The discipline starts anew, as `qdisc_reset` does in Linux.
    ///
    /// # Errors
    /// None that did not come when the link was made.
    pub fn fail(&mut self, priorities: &[u8], now: Time) -> Result<Vec<Packet>, PlanError> {
        self.down = true;
        self.obstructed = true;
        let mut lost = self.empty_queue(now);
        lost.extend(self.transmitting.take());
        if let Some(bucket) = &mut self.bucket {
            lost.extend(std::iter::from_fn(|| bucket.pop()));
        }
        for packet in &mut lost {
            packet.wire_bytes -= self.frame_overhead;
        }
        self.counters.lost += lost.len() as u64;
        self.made_from.failures += 1;
        let surroundings = Surroundings {
            rate_bps: self.rate.bits_per_second(),
            seed: self.made_from.seed.wrapping_add(self.made_from.failures),
            priorities,
        };
        let made_from = &self.made_from.queue;
        self.queue = queue::make(&made_from.discipline, &made_from.parameters, &surroundings)?;
        Ok(lost)
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
            self.counters.departed -= 1;
            self.counters.departed_bytes -= u64::from(self.launched_bytes);
            self.counters.lost += 1;
            self.busy_until = now;
        }
    }
}
