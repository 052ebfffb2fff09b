//! The evidence of a round: what its packets and round trips tell of the limit.

use super::{
    LimitClassifier, FILLS, FLAT_ROUNDS, FROM_START, MIN_RETRANSMISSIONS, PERSISTENT_QUEUE, ROOM,
    SLOW_START_GROWTH, SPACED_BYTES, STEADY_REMOTE,
};
use crate::shared_bottleneck::{Round, SharedBottleneck};

/// Acknowledgements are further apart than so many ticks where it is no coincidence that data follow them.
pub(super) const TICKS_SURE: i64 = 16;

/// Scalable congestion control (RFC 9331) has two marks each round trip; rounds without one may lie between them.
const MARKED_ROUNDS: u8 = 4;

impl LimitClassifier {
    /// The receiver reports a congestion mark: the path limits the sender, however evenly it paces and short the queue
    /// of the AQM that marks (RFC 9332).
    pub fn on_mark(&mut self) {
        self.after_mark = MARKED_ROUNDS;
    }

    /// The pipe is as full as ever, round after round, though nothing was lost, no queue stays and the link has room: a
    /// congestion window would grow.
    pub(super) fn is_buffer_limited(
        &self,
        bps: f64,
        capacity_bps: Option<f64>,
        rtt_min_ns: i64,
    ) -> bool {
        let least_queue_ns = (self.round_min_rtt_ns - rtt_min_ns) as f64;
        self.pipe_ceiling.holds(self.mss)
            && self.total_retransmissions == 0
            && self.after_mark == 0
            && least_queue_ns < PERSISTENT_QUEUE * rtt_min_ns as f64
            && capacity_bps.is_none_or(|capacity| capacity > ROOM * bps)
            && !self.is_mostly_unclocked_new()
    }

    /// The window's opening let out most of the round, as far as that is visible; of a paced sender, which spreads the
    /// rest, something with most openings.
    pub(super) fn is_released_by_window(&self) -> bool {
        let sends = self.classified_sends;
        let released = if self.is_paced() {
            sends.min(self.zero_window_acks)
        } else {
            sends
        };
        sends == 0 || 2 * self.released >= released
    }

    /// The window has grown as in slow start.
    pub(super) fn has_grown(&self) -> bool {
        self.max_pipe_bytes as f64 >= SLOW_START_GROWTH * self.previous_max_pipe_bytes.max(1) as f64
    }

    /// Most segments of the round have not waited for acknowledgements.
    pub(super) fn is_mostly_unclocked_new(&self) -> bool {
        2 * self.unclocked_new > self.sends
    }

    /// Detect a restart in slow start: the pipe falls far below any reduction's result, as after a timeout (Jacobson
    /// 1988).
    pub(super) fn detect_restart(&mut self) {
        let little = self.lost_bytes / FROM_START;
        let after = self.after_loss == 1 && self.out_of_slow_start;
        if after && little >= self.min_window_bytes && self.max_pipe_bytes <= little {
            self.out_of_slow_start = false;
            self.ssthresh_bytes = self.lost_bytes / 2;
            self.flat = 0;
        }
    }

    /// Return the mean queueing delay; its minimum where only that is known.
    pub(super) fn queue_ns(&self, rtt_min_ns: i64) -> i64 {
        match (self.rtt_count, self.round_min_rtt_ns) {
            (0, 0) => 0,
            (0, least_ns) => least_ns - rtt_min_ns,
            (count, _) => self.rtt_sum_ns / i64::from(count) - rtt_min_ns,
        }
    }

    /// Return the mean delay before the vantage point by the sender's TSval clock; 0 if unknown.
    pub(super) fn waited_ns(&self) -> f64 {
        self.excess_sum_ns as f64 / f64::from(self.excess_count.max(1))
    }

    /// Return true if this flow and the flows with the same packet spacing together fill the link that the spacing
    /// implies. Without delay samples, a constant rate that was never exceeded is taken to be the link's: a sender with
    /// a rate of its own also sends retransmissions, and catches up after they held it back. A capture at the sender
    /// has no link before it.
    pub(super) fn fills_link(&self, round: &Round, shared: &mut SharedBottleneck) -> bool {
        let link_bps = self.send_rate.link_bps();
        if self.classified_sends > 0 || link_bps <= 0.0 || self.has_delay_samples {
            return false;
        }
        let spaced = Round {
            queue_ns: (8e9 * f64::from(SPACED_BYTES) / link_bps) as i64,
            ..*round
        };
        shared.links.put(spaced);
        self.total_retransmissions >= MIN_RETRANSMISSIONS
            && round.bps + shared.links.bps(&spaced) >= FILLS * link_bps
    }

    /// Return true if acknowledgements let out most segments of the round, after losses: the rate of a small window is
    /// constant too, as behind a policer whose bucket has room for little more.
    fn is_ack_clocked(&self) -> bool {
        self.total_retransmissions >= MIN_RETRANSMISSIONS
            && self.timed_new > 0
            && 2 * self.unclocked_new <= self.timed_new
    }

    /// Return true if the sender has its own constant rate, not clocked by acknowledgements.
    pub(super) fn has_own_rate(&self) -> bool {
        let own = match self.classified_sends {
            0 => self.send_rate.recurring.stays(),
            _ => self.is_mostly_unclocked_new(),
        };
        let flat = self.flat >= FLAT_ROUNDS || own && !self.has_grown();
        let untouched = !self.is_touched && flat && !self.pipe_growth.is_rising();
        match self.classified_sends {
            _ if self.after_mark > 0 => false,
            0 if self.is_ack_clocked() => false,
            0 => self.send_rate.steady >= STEADY_REMOTE || untouched,
            _ => self.is_paced && (self.send_rate.steady > 0 || untouched),
        }
    }
}
