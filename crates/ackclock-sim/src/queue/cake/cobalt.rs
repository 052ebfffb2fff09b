//! COBALT: CoDel against standing queues, and BLUE against flows that do not respond.
//!
//! Høiland-Jørgensen, Täht, Morton 2018 section III; CoDel is RFC 8289, BLUE is W. Feng et al.: The BLUE Active Queue
//! Management Algorithms, IEEE/ACM ToN 10(4), 2002. Differences from the CoDel of `codel.rs`, all of them Linux's:
//!
//! - The first drop is an interval after the delay has come above the target, and the drops after that do not begin anew
//!   when it returns: below the target the count falls by the schedule by which it has risen.
//! - A packet is at most one event late: marks that were not due in time are not made up for.
//! - A delay of four full packets' transmissions or less is never too long.
//!
//! BLUE drops with a probability that rises when the memory overflows and falls when the queue is empty.
//!
//! Deviations: 1/√count is exact; Linux keeps 32 bits of it. While a queue is empty, its count and probability fall by
//! time; in Linux when the scheduler visits the queue, which it does for one queue with each packet.

use ackclock_core::Time;
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::packet::Packet;
use crate::queue::Drops;

/// Increase of the probability by an overflow, of 2³²: 1/256.
const INCREASE: u32 = 1 << 24;
/// Decrease of the probability by an empty queue: 1/4096.
const DECREASE: u32 = 1 << 20;
/// Transmissions of full packets that make no standing queue.
const MIN_BACKLOG_PACKETS: u64 = 4;

/// Settings of a tin.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    pub target: Time,
    pub interval: Time,
    /// Transmission time of a full packet; zero without a shaper.
    pub full_packet: Time,
}

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Control {
    /// Signals since the delay has come above the target, less those by which it has fallen since.
    count: u32,
    dropping: bool,
    /// Time of the next signal, or of the next fall of the count.
    drop_next: Time,
    /// BLUE's probability, of 2³².
    probability: u32,
    /// Time of BLUE's last update.
    blue_updated: Time,
}

impl Control {
    /// Decide whether a packet that leaves is dropped; it may be marked instead.
    pub fn is_hit(
        &mut self,
        law: &Law,
        packet: &mut Packet,
        now: Time,
        drops: &mut Drops,
        random: &mut Pcg64Mcg,
    ) -> bool {
        let is_due = self.is_due(now);
        self.set_dropping(law, now.since(packet.enqueued), now);
        let mut is_hit = false;
        if is_due && self.dropping {
            is_hit = !drops.mark(packet);
            self.count = self.count.saturating_add(1);
            self.drop_next = self.control_law(law, self.drop_next);
        } else {
            self.fall(law, now);
        }
        is_hit |= self.probability > 0 && random.next_u32() < self.probability;
        if self.count == 0 {
            self.drop_next = now + law.interval;
        } else if !is_hit {
            self.drop_next = self.drop_next.max(now);
        }
        is_hit
    }

    fn is_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    /// Enter the dropping state while the delay is too long.
    fn set_dropping(&mut self, law: &Law, sojourn: Time, now: Time) {
        let least = law.full_packet.picoseconds() * MIN_BACKLOG_PACKETS;
        let is_above = sojourn > law.target && sojourn.picoseconds() > least;
        if is_above && !self.dropping {
            self.drop_next = self.control_law(law, now);
            self.count = self.count.max(1);
        }
        self.dropping = is_above;
    }

    /// `t + interval / √count` (RFC 8289 section 5, `control_law`).
    fn control_law(&self, law: &Law, t: Time) -> Time {
        t + law
            .interval
            .scaled(f64::from(self.count.max(1)).sqrt().recip())
    }

    /// Take one off the count at each time that is due.
    fn fall(&mut self, law: &Law, now: Time) {
        while self.is_due(now) {
            self.count -= 1;
            self.drop_next = self.control_law(law, self.drop_next);
        }
    }

    /// The queue is empty: when its turn comes, and before a packet enters it, for the time in between.
    pub fn on_empty(&mut self, law: &Law, now: Time) {
        self.dropping = false;
        self.fall(law, now);
        self.calm(law, now);
    }

    /// Reduce BLUE's probability once per target time.
    fn calm(&mut self, law: &Law, now: Time) {
        if self.probability == 0 {
            return;
        }
        let periods = now.since(self.blue_updated).picoseconds() / law.target.picoseconds();
        let periods = u32::try_from(periods).unwrap_or(u32::MAX);
        if periods > 0 {
            self.probability = self
                .probability
                .saturating_sub(periods.saturating_mul(DECREASE));
            self.blue_updated = now;
        }
    }

    /// The memory has overflowed, and this is the longest queue.
    pub fn on_overflow(&mut self, law: &Law, now: Time) {
        if self.probability == 0 || now.since(self.blue_updated) > law.target {
            self.probability = self.probability.saturating_add(INCREASE);
            self.blue_updated = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// BLUE's probability.
    #[cfg(test)]
    pub fn probability(&self) -> f64 {
        f64::from(self.probability) / 2_f64.powi(32)
    }
}
