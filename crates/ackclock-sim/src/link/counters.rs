//! Counters of a link: packets, bytes, times, and the integral of its queue.

use ackclock_core::Time;

use super::Link;
use crate::histogram::Histogram;

/// Counts of packets, bytes and times.
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
    /// Time the transmitter was busy, including all of the transmission in progress.
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

/// Packets and time that a step of a leap skips at a link.
#[derive(Clone, Copy, Debug)]
pub struct Skipped {
    /// Its duration.
    pub span: Time,
    /// Packets that arrive and leave, each of the same size with the frame.
    pub packets: u64,
    /// Bytes of each.
    pub wire_bytes: u32,
    /// Mean backlog in packets.
    pub backlog_p: f64,
    /// The sojourn time that goes with it.
    pub sojourn: Time,
}

/// Counts of packets that found the link idle and bypassed its queue.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct BypassCounters {
    packets: u64,
    bytes: u64,
    /// Their transmission time.
    busy: Time,
}

impl BypassCounters {
    #[inline(always)]
    pub fn add(&mut self, bytes: u32, duration: Time) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.busy += duration;
    }
}

/// Sojourn times that are buffered before they enter the histogram.
const KEPT: usize = 8;

/// Sojourn times of a link, and how many of the packets that bypassed its queue they include.
#[derive(Default)]
#[repr(C)]
pub(super) struct Sojourns {
    count: usize,
    bypassed: u64,
    /// Buffer of the last ones, whose bins are fetched together.
    last: [Time; KEPT],
    histogram: Histogram,
}

impl Sojourns {
    /// Record a sojourn time. With many links the bins are seldom in the cache: links with propagation delay buffer
    /// (`later`) several and fetch their bins together.
    #[inline(always)]
    pub fn record(&mut self, sojourn: Time, later: bool) {
        if !later {
            self.histogram.record(sojourn);
            return;
        }
        self.last[self.count % KEPT] = sojourn;
        self.count += 1;
        if self.count == KEPT {
            self.flush();
        }
    }

    /// Move the buffered sojourn times into the histogram.
    #[inline(never)]
    fn flush(&mut self) {
        for &sojourn in &self.last[..self.count] {
            self.histogram.record(sojourn);
        }
        self.count = 0;
    }
}

impl Link {
    /// Count a packet that enters the queue. The integral of a count over time is Σ leaving times − Σ entering
    /// times + count × now, so each change costs one addition, and [`Link::counters`] the last term.
    #[inline(always)]
    pub(super) fn count_enqueued(&mut self, bytes: u32, now: Time) {
        if self.queued_packets == 0 {
            self.counters.empty += now.since(self.empty_since);
        }
        self.queued_packets += 1;
        self.queued_bytes += u64::from(bytes);
        let time = i128::from(now.picoseconds());
        self.counters.packet_time -= time;
        self.counters.byte_time -= i128::from(bytes) * time;
    }

    /// Count a packet that leaves the queue.
    #[inline(always)]
    pub(super) fn count_dequeued(&mut self, bytes: u32, now: Time) {
        self.queued_packets -= 1;
        self.queued_bytes -= u64::from(bytes);
        let time = i128::from(now.picoseconds());
        self.counters.packet_time += time;
        self.counters.byte_time += i128::from(bytes) * time;
        if self.queued_packets == 0 {
            self.empty_since = now;
        }
    }

    /// Counts including the packets that bypassed the queue.
    pub(super) fn total_counters(&self) -> Counters {
        let mut counters = self.counters;
        counters.arrived += self.bypassed.packets;
        counters.dequeued += self.bypassed.packets;
        counters.departed += self.bypassed.packets;
        counters.departed_bytes += self.bypassed.bytes;
        counters.busy += self.bypassed.busy;
        counters
    }

    /// Merge the counts of packets that bypassed the queue into the others.
    pub(super) fn merge_bypassed(&mut self) {
        self.sojourns();
        self.counters = self.total_counters();
        self.bypassed = BypassCounters::default();
        self.sojourns.bypassed = 0;
    }

    /// Count what a leap skips.
    pub fn skip(&mut self, skipped: &Skipped) {
        let (packets, bytes) = (
            skipped.packets,
            skipped.packets * u64::from(skipped.wire_bytes),
        );
        let counters = &mut self.counters;
        counters.arrived += packets;
        counters.dequeued += packets;
        counters.departed += packets;
        counters.departed_bytes += bytes;
        counters.sojourn_time += packets as f64 * skipped.sojourn.as_f64();
        let packet_time = (skipped.backlog_p * skipped.span.as_f64()) as i128;
        counters.packet_time += packet_time;
        counters.byte_time += packet_time * i128::from(skipped.wire_bytes);
        counters.empty += skipped.span.scaled((1.0 - skipped.backlog_p).max(0.0));
        let duration = self.rate.transmission_time(bytes);
        self.counters.busy += duration.min(skipped.span);
        self.sojourns
            .histogram
            .record_many(skipped.sojourn, packets);
    }

    /// Counts up to `now`.
    pub fn counters(&self, now: Time) -> Counters {
        let mut counters = self.total_counters();
        let time = i128::from(now.picoseconds());
        counters.packet_time += i128::from(self.queued_packets) * time;
        counters.byte_time += i128::from(self.queued_bytes) * time;
        if self.queued_packets == 0 {
            counters.empty += now.since(self.empty_since);
        }
        if self.busy_until > now {
            counters.departed -= 1;
            counters.departed_bytes -= u64::from(self.transmitting_bytes);
        }
        counters
    }

    /// Sojourn times of the packets that left the queue since the histogram was last cleared.
    pub fn sojourns(&mut self) -> &Histogram {
        let sojourns = &mut self.sojourns;
        sojourns.flush();
        sojourns
            .histogram
            .add_zeros(self.bypassed.packets - sojourns.bypassed);
        sojourns.bypassed = self.bypassed.packets;
        &sojourns.histogram
    }

    /// Clear the histogram at the end of the warm-up.
    pub fn clear_sojourns(&mut self) {
        self.sojourns.bypassed = self.bypassed.packets;
        self.sojourns.count = 0;
        self.sojourns.histogram.clear();
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // whole picoseconds
mod tests {
    use super::super::tests::fifo;
    use super::*;

    #[test]
    fn what_is_skipped_is_counted_as_if_it_had_passed() {
        let mut link = fifo();
        link.skip(&Skipped {
            span: Time::from_milliseconds(10),
            packets: 100,
            wire_bytes: 1000,
            backlog_p: 5.0,
            sojourn: Time::from_microseconds(500),
        });
        let counters = link.counters(Time::ZERO);
        assert_eq!(
            [counters.arrived, counters.dequeued, counters.departed],
            [100; 3]
        );
        assert_eq!(counters.departed_bytes, 100_000);
        assert_eq!(counters.busy, Time::from_milliseconds(10));
        assert_eq!(counters.empty, Time::ZERO);
        assert_eq!(counters.packet_time, 50_000_000_000);
        assert_eq!(counters.byte_time, 50_000_000_000_000);
        assert_eq!(counters.sojourn_time, 50e9);
        assert_eq!(link.sojourns().count(), 100);
    }
}
