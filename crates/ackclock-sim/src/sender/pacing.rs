//! Pacing, and batches of segments that leave together (TSO autosizing).
//!
//! Linux forms packets of the segments that its pacing rate sends in a binary millisecond, 1/1024 s, at least two (a
//! controller may choose another power of two, and another minimum), and
//! leaves segmentation to the device or to software before it: with or without offload, the segments of such a batch
//! follow each other without a gap. Half a batch is worth waiting for: while the window has room for less than a batch
//! and less than a third of itself, and the next ACK is due within a millisecond, nothing new is sent. With
//! `tso_batching` off, each segment leaves separately.
//!
//! Pacing holds back entire batches. The lateness of a batch is subtracted from the distance to the next one, but at
//! most half of that; a connection's first ten segments are not paced. All this was measured in Linux 6.1.

use std::ops::Range;

use ackclock_core::{Rate, Time};

use super::buffer::SendBuffer;
use super::{CaState, Sender};

/// A connection's first segments leave immediately.
const UNPACED_SEGMENTS: u64 = 10;
/// Time within which the next ACK must be due, and the last batch must have left, for a wait to pay.
const NEAR: Time = Time::from_milliseconds(1);
/// Bytes of the largest batch: an IP packet with room for headers.
const LARGEST_BATCH_BYTES: f64 = 65_200.0;
/// Room for this part of the window is never left unused.
const WINDOW_PARTS: u32 = 3;

/// The batch that is being sent, and when the next one may leave.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // what a batch does and does not
pub struct Pacing {
    /// True if segments are paced.
    pub is_on: bool,
    /// Segments that may still go with this batch.
    left: u32,
    /// The next new segment begins a batch.
    pub begins: bool,
    /// A batch of new segments has gone at this event.
    follows: bool,
    /// The next batch goes without waiting for more, and alone.
    pub pushes: bool,
    /// Lateness of the batch.
    late: Time,
    /// The time that it takes at the pacing rate.
    spacing: Time,
    /// Pacing: earliest time of the next one.
    pub next: Time,
    /// Departure of the last segment; 0 before the first.
    pub last_sent: Time,
}

impl Pacing {
    /// Before the first segment.
    pub fn new(is_on: bool) -> Pacing {
        Pacing {
            is_on,
            ..Pacing::default()
        }
    }

    /// End the present batch.
    #[inline]
    pub fn cut(&mut self) {
        self.left = 0;
        self.follows = false;
    }

    /// Let the next batch go without waiting for more.
    pub fn push(&mut self) {
        self.cut();
        self.pushes = true;
    }
}

/// Whole segments that a pacing rate sends in the time of a batch, 2^−`shift` s.
fn segments_at(rate: Rate, shift: u32, mss_bytes: u32) -> u32 {
    let bytes = rate.bytes_per_second() / f64::from(1_u32 << shift);
    (bytes.min(LARGEST_BATCH_BYTES) / f64::from(mss_bytes)) as u32
}

/// Rounded up.
#[inline]
fn half(time: Time) -> Time {
    Time::from_picoseconds(time.picoseconds().div_ceil(2))
}

/// Decision on whether the next segment may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendDecision {
    /// Send it.
    Now,
    /// Wait for the pacing timer.
    Later,
    /// Defer it until an ACK gives room for a batch.
    Defer,
}

impl Sender {
    /// Decide whether the next segment, a `new` one or a retransmission, may be sent.
    #[inline]
    pub(super) fn decide_send(&mut self, new: bool, now: Time) -> SendDecision {
        if !self.pacing.is_on && !self.tcp.tso_batching {
            return SendDecision::Now;
        }
        if self.pacing.left == 0 {
            if self.pacing.is_on && now < self.pacing.next {
                return SendDecision::Later;
            }
            if new && self.tcp.tso_batching && !self.pacing.pushes && self.should_defer(now) {
                return SendDecision::Defer;
            }
            self.pacing.pushes = false;
            self.begin_batch(new, now);
        }
        self.pacing.left -= 1;
        SendDecision::Now
    }

    /// Take up to `segments` from the batch, of which one has been decided on; returns how many.
    #[inline]
    pub(super) fn take_batch(&mut self, segments: u32) -> u32 {
        if !self.pacing.is_on && !self.tcp.tso_batching {
            return segments;
        }
        let more = self.pacing.left.min(segments - 1);
        self.pacing.left -= more;
        1 + more
    }

    /// Decide whether the next segment goes with the batch that is pushed.
    pub(super) fn pushes_on(&mut self, now: Time) -> bool {
        if self.pacing.left == 0 && !self.pacing.pushes {
            return false;
        }
        self.decide_send(true, now) == SendDecision::Now
    }

    fn begin_batch(&mut self, new: bool, now: Time) {
        self.pacing.begins = true;
        if new && std::mem::replace(&mut self.pacing.follows, true) {
            self.wake_application_if_room();
        }
        self.pacing.left = if self.tcp.tso_batching {
            let buffer = self.buffer.as_ref().filter(|_| new);
            let whole = buffer.map_or(u32::MAX, SendBuffer::first);
            self.batch_segments()
                .min((self.window / 2).max(1))
                .min(whole.max(1))
        } else {
            1
        };
        self.pacing.late = now.since(self.pacing.next);
        self.pacing.spacing = Time::ZERO;
    }

    /// True if it pays to wait for the next ACK (Linux: `tcp_tso_should_defer`).
    fn should_defer(&self, now: Time) -> bool {
        let room = self.window.saturating_sub(self.occupied());
        let whole = match &self.buffer {
            Some(buffer) => buffer.is_complete_within(room),
            None => self.workload.has_messages(),
        };
        let early = matches!(
            self.ca_state,
            CaState::Open | CaState::Disorder | CaState::Cwr
        );
        if !early
            || whole
            || room * WINDOW_PARTS >= self.window
            || now.since(self.pacing.last_sent) > NEAR
        {
            return false;
        }
        self.ack_is_near(now) && self.is_less_than_a_batch(room)
    }

    /// True if `segments` are less than a batch. The smallest batch is compared first, which requires no rate.
    #[inline]
    fn is_less_than_a_batch(&self, segments: u32) -> bool {
        segments < self.controller.min_tso_segs() || segments < self.batch_segments()
    }

    /// True if the first outstanding segment's ACK is due within a millisecond, or half a round trip.
    fn ack_is_near(&self, now: Time) -> bool {
        if self.board.outstanding() == 0 {
            return false;
        }
        let srtt = self.rtt.srtt();
        let due = self.board.head_sent() + srtt;
        due.since(now) <= half(srtt).min(NEAR)
    }

    /// Segments of a batch.
    fn batch_segments(&self) -> u32 {
        let shift = self.controller.pacing_shift();
        segments_at(self.pacing_rate(), shift, self.tcp.mss_bytes)
            .max(self.controller.min_tso_segs())
    }

    /// The controller's rate, else 2 (slow start) or 1.2 windows per smoothed RTT.
    fn pacing_rate(&self) -> Rate {
        self.controller.pacing_rate().unwrap_or_else(|| {
            let cwnd = self.controller.cwnd();
            let slow_start = cwnd < self.controller.ssthresh() / 2.0;
            let gain = if slow_start { 2.0 } else { 1.2 };
            let bytes = gain * cwnd * f64::from(self.tcp.mss_bytes);
            Rate::from_bytes_per_second(bytes / self.rtt.srtt().seconds().max(1e-6))
        })
    }

    /// Record the departure of segments of the same size.
    #[inline]
    pub(super) fn depart(&mut self, segments: Range<u64>, payload_bytes: u32, now: Time) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent(segments.end - segments.start);
        }
        if self.pacing.is_on {
            segments.for_each(|sequence| self.pace(sequence, payload_bytes, now));
        }
        self.pacing.last_sent = now;
    }

    /// Advance the pacing time by a segment's payload.
    fn pace(&mut self, sequence: u64, payload_bytes: u32, now: Time) {
        if sequence + 1 < UNPACED_SEGMENTS {
            self.pacing.next = now;
            return;
        }
        let rate = self.pacing_rate();
        let batch = &mut self.pacing;
        batch.spacing += rate.transmission_time(u64::from(payload_bytes));
        let half = Time::from_picoseconds(batch.spacing.picoseconds() / 2);
        batch.next = now + batch.spacing.since(batch.late.min(half));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates and batches as a kernel's module printed them (Reno, 100 Mb/s, 10 ms): at 1.2 × 73 segments in 10.670 ms
    /// eight leave together, and seven in 10.794 ms, where a decimal millisecond sends eight.
    #[test]
    fn a_batch_is_the_rate_times_a_binary_millisecond() {
        let segments = |bytes| segments_at(Rate::from_bytes_per_second(bytes), 10, 1448);
        assert_eq!(segments(11_887_706.0), 8);
        assert_eq!(segments(11_751_417.0), 7);
        assert_eq!(segments(1e12), 45);
    }
}
