//! The sender's part in a leap: its controller gets a batch of ACKs for each step, and the scoreboard stays as it is.
//!
//! The segments in flight, their numbers and times, and the timers are those of the engine's clock, which stands still
//! during a leap. The controller's clock goes on, so it is ahead by what leaps have [`Skipped`].
//!
//! Deviations: a controller that counts round trips by segment numbers, as those of delay do, would see none pass; the
//! engine rejects it. The window of 300 s of the smallest RTT counts the engine's time.
//!
//! After a leap the window is larger than what is in flight. The difference is withheld, and released in proportion to
//! what is acknowledged, so that within one window all of it is sent, mixed evenly with what the ACKs clock out.

use ackclock_congestion::Ack;
use ackclock_core::Time;

use super::send_reason::BlockedBy;
use super::timers::Purpose;
use super::{floor_segments, CaState, Sender};

/// Time and segments of a connection that leaps have skipped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skipped {
    /// Time by which the controller's clock is ahead of the sender's.
    pub time: Time,
    /// Segments that were sent and acknowledged meanwhile.
    pub segments: u64,
}

/// Segments that the window has room for after a leap, and that are not released yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Withheld {
    /// Segments still withheld.
    pub segments: u32,
    /// Segments withheld at the end of the leap, which are released while `window` segments are acknowledged.
    growth: u64,
    window: u64,
    /// Acknowledged segments times `growth` that have not released a segment yet.
    credit: u64,
}

/// Segments that a step of a leap delivers.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// Segments that arrive and are acknowledged.
    pub segments: u32,
    /// ACKs that acknowledge them.
    pub acks: u32,
    /// The round-trip time of the last segment.
    pub rtt: Time,
}

impl Sender {
    /// The controller's clock.
    #[inline(always)]
    pub(super) fn controller_time(&self, now: Time) -> Time {
        now + self.skipped.time
    }

    /// Set the window to the controller's minus what is still withheld after `acknowledged` more segments are credited.
    #[inline(always)]
    pub(super) fn follow_controller(&mut self, acknowledged: u32) {
        self.window = self.window_segments();
        if self.withheld.segments > 0 {
            self.release_withheld(acknowledged);
        }
    }

    /// Return true if only ACKs in order are to be expected: congestion avoidance in the state Open with nothing SACKed,
    /// lost or retransmitted, no probe, the window as the only limit, all of it released, and an endless transfer.
    pub fn is_quiet(&self) -> bool {
        self.ca_state == CaState::Open
            && self.board.is_clean()
            && self.tlp.is_none()
            && self.prr.is_none()
            && self.withheld.segments == 0
            && self.stop == BlockedBy::Window
            && matches!(self.timers.purpose, Purpose::Timeout | Purpose::TlpProbe)
            && self.controller.cwnd() >= self.controller.ssthresh()
            && self.workload.segments == u64::MAX
            && !self.pacing.is_on
    }

    /// Time at which the application stops.
    pub fn stops_at(&self) -> Time {
        self.workload.stop
    }

    /// The window in whole segments, those that are withheld included.
    #[inline(always)]
    pub fn window_segments(&self) -> u32 {
        floor_segments(self.controller.cwnd())
    }

    /// Segments by which the window may grow before the receiver's limits the sender.
    pub fn receiver_room(&self) -> u64 {
        self.window_end.saturating_sub(self.board.next)
    }

    /// Let the time of a step pass while the engine's clock stands at `now`; at its end `batch` is acknowledged.
    pub fn skip(&mut self, now: Time, step: Time, batch: &Batch) {
        let segments = u64::from(batch.segments);
        self.skipped.time += step;
        self.skipped.segments += segments;
        self.counters.sent_packets += segments;
        self.counters.sent_bytes += segments * self.segment_bytes();
        self.counters.received_packets += u64::from(batch.acks);
        if batch.segments > 0 {
            self.rtt.converge_to(batch.rtt);
            self.rtt.observe_minimum(now, batch.rtt);
            let ack = self.ack_of(batch, self.controller_time(now));
            self.controller.on_ack(&ack);
        }
    }

    /// Bytes of a full segment as an IP packet.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.tcp.mss_bytes + self.tcp.segment_header_bytes())
    }

    fn ack_of(&self, batch: &Batch, now: Time) -> Ack {
        let bytes = u64::from(batch.segments) * u64::from(self.tcp.mss_bytes);
        let window = self.window_segments();

        Ack {
            now,
            newly_acked: batch.segments,
            newly_acked_bytes: bytes,
            may_raise_cwnd: true,
            cumulatively_acked: batch.segments,
            has_sack: false,
            window_update: false,
            rtt: Some(batch.rtt),
            srtt: batch.rtt,
            min_rtt: self.rtt.min_rtt(),
            prior_in_flight: window,
            in_flight: window.saturating_sub(batch.segments),
            delivery_rate: None,
            delivered: self.rates.delivered,
            prior_delivered: self.rates.delivered,
            application_limited: false,
            window_limited: true,
            newly_lost: 0,
            marked_bytes: 0,
            next: self.board.next,
            unacknowledged: self.board.unacknowledged,
            recovering: false,
            in_loss: false,
            paced: false,
            next_departure: Time::ZERO,
        }
    }

    /// End a leap of length `leap`: withhold what the window has grown by.
    pub fn end_leap(&mut self, leap: Time) {
        let window = self.window_segments();
        let growth = window.saturating_sub(self.window);
        self.withheld = Withheld {
            segments: growth,
            growth: growth.into(),
            window: self.window.into(),
            credit: 0,
        };
        self.bring_forward(leap);
    }

    /// Bring the application's times forward by what leaps have skipped.
    pub fn bring_forward(&mut self, skipped: Time) {
        for due in [&mut self.workload.stop, &mut self.timers.application] {
            if !due.is_never() {
                *due = due.since(skipped);
            }
        }
    }

    /// Release what `acknowledged` segments release of the window that a leap has left, all of it unless the state is
    /// Open.
    #[cold]
    pub(super) fn release_withheld(&mut self, acknowledged: u32) {
        if self.ca_state == CaState::Open {
            self.withheld.release(acknowledged);
        } else {
            self.withheld.segments = 0;
        }
        self.window = self.window.saturating_sub(self.withheld.segments).max(1);
    }
}

impl Withheld {
    fn release(&mut self, acknowledged: u32) {
        self.credit += u64::from(acknowledged) * self.growth;
        let released = self.credit / self.window;
        self.credit %= self.window;
        self.segments = u64::from(self.segments).saturating_sub(released) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn withheld(segments: u32, window: u32) -> Withheld {
        Withheld {
            segments,
            growth: segments.into(),
            window: window.into(),
            credit: 0,
        }
    }

    #[test]
    fn growth_is_released_evenly_within_a_window() {
        let mut withheld = withheld(30, 100);
        let left: Vec<u32> = (0..10)
            .map(|_| {
                withheld.release(10);
                withheld.segments
            })
            .collect();
        assert_eq!(left, [27, 24, 21, 18, 15, 12, 9, 6, 3, 0]);
    }

    #[test]
    fn less_than_a_segment_is_kept_as_credit() {
        let mut withheld = withheld(3, 10);
        for _ in 0..3 {
            withheld.release(1);
        }
        assert_eq!(withheld.segments, 3);
        withheld.release(1);
        assert_eq!(withheld.segments, 2);
    }
}
