//! What a link counts: packets, bytes, times, and the integral of its queue.

use ackclock_units::Time;

use super::{Link, SOJOURNS};
use crate::histogram::Histogram;

/// What passed through a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets offered.
    pub arrived: u64,
    /// Packets the discipline dropped.
    pub dropped: u64,
    /// Packets lost at random, or because the link failed.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets that left the transmitter.
    pub departed: u64,
    /// Wire bytes of them.
    pub departed_bytes: u64,
    /// Time the transmitter was busy, packets already begun counted whole.
    pub busy: Time,
    /// Time the queue held no packet.
    pub empty: Time,
    /// Integral of the queued packets over time, in packet-picoseconds.
    pub packet_time: i128,
    /// Integral of the queued bytes over time, in byte-picoseconds.
    pub byte_time: i128,
    /// Packets that left the queue.
    pub dequeued: u64,
    /// Sum of their sojourn times in picoseconds.
    pub sojourn_time: f64,
}

impl Link {
    /// With many links the bins are seldom in the cache: those between nodes wait until several are fetched together.
    #[inline(always)]
    pub(super) fn record_sojourn(&mut self, sojourn: Time) {
        if !self.propagation.exists {
            self.sojourns.record(sojourn);
            return;
        }
        self.last_sojourns[self.last_count % SOJOURNS] = sojourn;
        self.last_count += 1;
        if self.last_count == SOJOURNS {
            self.settle_sojourns();
        }
    }

    /// Counts the sojourn times that wait.
    #[inline(never)]
    pub(super) fn settle_sojourns(&mut self) {
        for &sojourn in &self.last_sojourns[..self.last_count] {
            self.sojourns.record(sojourn);
        }
        self.last_count = 0;
    }

    /// A packet enters the queue. The integral of a count over time is Σ leaving times − Σ entering
    /// times + count × now, so each change costs one addition, and [`Link::counters`] the last term.
    #[inline(always)]
    pub(super) fn enter(&mut self, bytes: u32, now: Time) {
        if self.queued_packets == 0 {
            self.counters.empty += now.since(self.empty_since);
        }
        self.queued_packets += 1;
        self.queued_bytes += u64::from(bytes);
        let time = i128::from(now.picoseconds());
        self.counters.packet_time -= time;
        self.counters.byte_time -= i128::from(bytes) * time;
    }

    /// A packet leaves the queue.
    #[inline(always)]
    pub(super) fn leave(&mut self, bytes: u32, now: Time) {
        self.queued_packets -= 1;
        self.queued_bytes -= u64::from(bytes);
        let time = i128::from(now.picoseconds());
        self.counters.packet_time += time;
        self.counters.byte_time += i128::from(bytes) * time;
        if self.queued_packets == 0 {
            self.empty_since = now;
        }
    }

    /// The counts with those of the packets that found the link idle.
    pub(super) fn counters_with_passed(&self) -> Counters {
        let mut counters = self.counters;
        counters.arrived += self.passed;
        counters.dequeued += self.passed;
        counters.departed += self.passed;
        counters.departed_bytes += self.passed_bytes;
        counters.busy += self.busy;
        counters
    }

    /// Adds the packets that found the link idle to the other counts.
    pub(super) fn settle_passed(&mut self) {
        self.sojourns();
        self.counters = self.counters_with_passed();
        self.passed = 0;
        self.passed_bytes = 0;
        self.busy = Time::ZERO;
        self.made_from.passed_before = 0;
    }

    /// Counts up to `now`.
    pub fn counters(&self, now: Time) -> Counters {
        let mut counters = self.counters_with_passed();
        let time = i128::from(now.picoseconds());
        counters.packet_time += i128::from(self.queued_packets) * time;
        counters.byte_time += i128::from(self.queued_bytes) * time;
        if self.queued_packets == 0 {
            counters.empty += now.since(self.empty_since);
        }
        if self.busy_until > now {
            counters.departed -= 1;
            counters.departed_bytes -= u64::from(self.launched_bytes);
        }
        counters
    }

    /// Sojourn times of the packets that left the queue since the histogram was last cleared.
    pub fn sojourns(&mut self) -> &Histogram {
        self.settle_sojourns();
        self.sojourns
            .add_zeros(self.passed - self.made_from.passed_before);
        self.made_from.passed_before = self.passed;
        &self.sojourns
    }

    /// Starts the histogram anew (end of the warm-up).
    pub fn clear_sojourns(&mut self) {
        self.made_from.passed_before = self.passed;
        self.last_count = 0;
        self.sojourns.clear();
    }
}
