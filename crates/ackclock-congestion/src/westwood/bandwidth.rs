//! Westwood's bandwidth: acknowledged bytes per tick, filtered twice.
//!
//! An ACK that does not advance stands for a segment. What such ACKs have counted is taken off the cumulative ACK
//! that follows: of `n` segments when at least `n` were counted before, one counts (ICC 2004 section II-B).
//!
//! Linux does so only off its fast path, on ACKs with SACK blocks or, while the receiver's window opens, another
//! window. Any other that advances counts in full, the ACK that fills the last hole too: the segments beyond the hole
//! count twice, and the next loss finds what is still to be taken off.

use crate::Ack;

/// The weight of the old value in each stage of the filter, in eighths.
const OLD_EIGHTHS: u64 = 7;

/// The filter and the sample that is being taken. Rates are in bytes per tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bandwidth {
    /// First stage of the filter.
    first: u64,
    /// Second stage: the estimate.
    second: u64,
    /// Tick at which the sample began.
    since: u64,
    /// Bytes of the sample.
    bytes: u64,
    /// Bytes counted for ACKs that did not advance, not yet taken off.
    ahead: u64,
    /// Payload of a segment.
    segment_bytes: u64,
}

/// 7/8 old, 1/8 new, whole.
fn filtered(old: u64, new: u64) -> u64 {
    (OLD_EIGHTHS * old + new) / 8
}

impl Bandwidth {
    /// Start the first sample.
    pub fn begin(&mut self, now: u64) {
        self.since = now;
    }

    /// End the sample when it is longer than `window` ticks; the first one fills the filter.
    pub fn close_sample(&mut self, now: u64, window: u64) {
        let span = now.saturating_sub(self.since);
        if span <= window {
            return;
        }
        let sample = self.bytes / span;
        if self.first == 0 && self.second == 0 {
            self.first = sample;
            self.second = sample;
        } else {
            self.first = filtered(self.first, sample);
            self.second = filtered(self.second, self.first);
        }
        self.bytes = 0;
        self.since = now;
    }

    /// Count the segments that an ACK reports.
    pub fn count(&mut self, ack: &Ack) {
        if let Some(bytes) = ack
            .newly_acked_bytes
            .checked_div(u64::from(ack.newly_acked))
        {
            self.segment_bytes = bytes;
        }
        let segment = self.segment_bytes;
        let may_raise_cwnd = u64::from(ack.cumulatively_acked) * segment;
        self.bytes += if may_raise_cwnd > 0 && !ack.has_sack && !ack.window_update {
            may_raise_cwnd
        } else if may_raise_cwnd == 0 {
            self.ahead += segment;
            segment
        } else if may_raise_cwnd == segment {
            segment
        } else if self.ahead >= may_raise_cwnd {
            self.ahead -= may_raise_cwnd;
            segment
        } else {
            may_raise_cwnd - std::mem::take(&mut self.ahead)
        };
    }

    /// Segments that arrive in `ticks`.
    pub fn segments_in(&self, ticks: u64) -> u32 {
        let bytes = self.second.saturating_mul(ticks);
        let segments = bytes.checked_div(self.segment_bytes).unwrap_or(0);
        u32::try_from(segments).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::testing::ack;
    use ackclock_core::Time;

    fn duplicate() -> Ack {
        Ack {
            may_raise_cwnd: false,
            cumulatively_acked: 0,
            ..ack(Time::ZERO, 1)
        }
    }

    #[test]
    fn the_filter_has_two_stages_of_an_eighth() {
        let mut bandwidth = Bandwidth::default();
        let mut sample = |now, bytes| {
            bandwidth.bytes = bytes;
            bandwidth.close_sample(now, 5);
            (bandwidth.first, bandwidth.second)
        };
        assert_eq!(sample(5, 9000), (0, 0), "not longer than 5 ticks");
        assert_eq!(sample(6, 9600), (1600, 1600), "the first fills it");
        // 7/8 × 1600 + 2400/8 = 1700; 7/8 × 1600 + 1700/8 = 1612.5.
        assert_eq!(sample(16, 24_000), (1700, 1612));
        // 7/8 × 1700 + 2400/8 = 1787.5; 7/8 × 1612 + 1787/8 = 1633.9.
        assert_eq!(sample(26, 24_000), (1787, 1633));
    }

    #[test]
    fn segments_counted_by_duplicate_acks_are_not_counted_twice() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.count(&ack(Time::ZERO, 2));
        assert_eq!(bandwidth.bytes, 2 * 1448, "a delayed ACK");
        for _ in 0..5 {
            bandwidth.count(&duplicate());
        }
        assert_eq!((bandwidth.bytes, bandwidth.ahead), (7 * 1448, 5 * 1448));
        // Partial ACK of 3: all of them were counted, the retransmission arrived.
        let jump = |n| Ack {
            cumulatively_acked: n,
            has_sack: true,
            ..ack(Time::ZERO, 1)
        };
        bandwidth.count(&jump(3));
        assert_eq!((bandwidth.bytes, bandwidth.ahead), (8 * 1448, 2 * 1448));
        bandwidth.count(&jump(4));
        assert_eq!((bandwidth.bytes, bandwidth.ahead), (10 * 1448, 0));
    }

    #[test]
    fn an_ack_without_sack_blocks_double_counts_duplicate_acks() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.count(&ack(Time::ZERO, 1));
        for _ in 0..5 {
            bandwidth.count(&duplicate());
        }
        bandwidth.count(&Ack {
            cumulatively_acked: 6,
            ..ack(Time::ZERO, 1)
        });
        assert_eq!(
            (bandwidth.bytes, bandwidth.ahead),
            (12 * 1448, 5 * 1448),
            "1, 5 and 6"
        );
    }

    #[test]
    fn a_window_update_counts_duplicate_acks_correctly() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.count(&ack(Time::ZERO, 1));
        for _ in 0..5 {
            bandwidth.count(&duplicate());
        }
        bandwidth.count(&Ack {
            cumulatively_acked: 6,
            window_update: true,
            ..ack(Time::ZERO, 1)
        });
        assert_eq!((bandwidth.bytes, bandwidth.ahead), (7 * 1448, 0), "1 and 6");
    }
}
