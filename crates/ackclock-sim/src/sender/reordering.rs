//! Reordering: its degree, and the time for which the sender waits for overtaken segments.
//!
//! RFC 8985 section 6.2, steps 3 and 4:
//!
//! ```text
//!   no reordering detected            none in recovery, nor with three segments SACKed
//!   a segment that was sent once      a quarter of the smallest RTT, in recovery too
//!     arrived behind a later one
//!   a DSACK                           a quarter more, at most once per round trip
//!   16 recoveries without another     a quarter, as before
//! ```
//!
//! As in Linux: at most the smoothed RTT; a recovery that is undone for its DSACKs adds one recovery to the wait, and
//! those that timestamps prove spurious do not count; network duplicates (more DSACKs than retransmissions) and
//! retransmissions of a tail loss probe do not widen the window. Once the degree of reordering, the distance in
//! segments from a late segment to the highest SACKed one, exceeds three, SACKs make a window grow as well as ACKs that
//! advance.
//!
//! Deviation: after a timeout Linux resets a larger degree to three.

use ackclock_core::Time;

use super::scoreboard::DUPLICATE_THRESHOLD;
use super::{CaState, Sender};

/// Recoveries for which a wider window is kept (RFC 8985 section 6.2, step 4).
const KEPT_RECOVERIES: u8 = 16;
/// The largest degree of reordering (Linux: `net.ipv4.tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

/// State of reordering detection.
#[derive(Clone, Copy, Debug)]
pub struct Reordering {
    /// True if a segment was reordered.
    is_detected: bool,
    /// The largest distance in segments.
    degree: u32,
    /// The window in quarters of the smallest RTT.
    quarters: u8,
    /// Remaining recoveries for which it stays wider.
    lasts: u8,
    /// A DSACK has come, and the window is to be widened.
    widens: bool,
    /// Segments delivered when it was widened last.
    widened_at: u64,
    /// Retransmissions that arrived as duplicates.
    pub duplicates: u64,
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering {
            is_detected: false,
            degree: DUPLICATE_THRESHOLD,
            quarters: 1,
            lasts: 0,
            widens: false,
            widened_at: 0,
            duplicates: 0,
        }
    }
}

impl Reordering {
    /// Record a retransmission that a DSACK proved spurious.
    pub fn on_duplicate(&mut self) {
        self.widens = true;
    }

    /// Count the end of a recovery that was not spurious.
    pub fn on_recovery_end(&mut self) {
        self.lasts = self.lasts.saturating_sub(1);
    }

    /// Keep the wider window for one more recovery after an undo for DSACKs.
    pub fn on_undo(&mut self) {
        self.lasts = (self.lasts + 1).min(KEPT_RECOVERIES);
    }

    /// True if SACKs make the window grow.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.degree > DUPLICATE_THRESHOLD
    }

    /// Widen the window at most once per round trip: for a delivered segment with `prior_delivered` at its
    /// transmission.
    #[inline]
    fn follow(&mut self, prior_delivered: u64, delivered: u64) {
        if self.widens {
            self.widens = false;
            if prior_delivered >= self.widened_at {
                self.quarters = self.quarters.saturating_add(1);
                self.widened_at = delivered;
                self.lasts = KEPT_RECOVERIES;
                return;
            }
        }
        if self.lasts == 0 {
            self.quarters = 1;
        }
    }
}

impl Sender {
    /// Record the degree of reordering of a segment that was sent once and delivered after later ones, or that was only
    /// late.
    pub(super) fn note_reordering(&mut self, late: Option<u64>) {
        let Some(late) = late.filter(|_| self.tcp.adaptive_reordering) else {
            return;
        };
        let highest = self.board.highest_sacked().unwrap_or(0);
        let highest = highest.max(self.board.unacknowledged);
        if late >= highest {
            return;
        }
        let distance = (highest - late).min(MAX_REORDERING) as u32;
        self.reordering.degree = self.reordering.degree.max(distance);
        self.reordering.is_detected = true;
    }

    /// Adapt the window to DSACKs, when something is delivered.
    #[inline]
    pub(super) fn adapt_to_reordering(&mut self, prior_delivered: Option<u64>) {
        let Some(prior) = prior_delivered else { return };
        if self.tcp.adaptive_reordering {
            self.reordering.follow(prior, self.rates.delivered);
        }
    }

    /// RFC 8985 section 6.2, step 4.
    pub(super) fn reordering_window(&self) -> Time {
        let repairing = matches!(self.ca_state, CaState::Recovery | CaState::Loss);
        let is_clear = repairing || self.board.sacked >= DUPLICATE_THRESHOLD;
        if is_clear && !self.reordering.is_detected {
            return Time::ZERO;
        }
        let quarters = f64::from(self.reordering.quarters);
        let wait = self.rtt.min_rtt().scaled(0.25 * quarters);
        wait.min(self.rtt.srtt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dsack_widens_per_round_and_lasts_sixteen_recoveries() {
        let mut reordering = Reordering::default();
        reordering.on_duplicate();
        reordering.follow(100, 120);
        assert_eq!(reordering.quarters, 2);
        reordering.on_duplicate();
        reordering.follow(119, 130);
        assert_eq!(reordering.quarters, 2, "of the same round trip");
        for _ in 0..15 {
            reordering.on_recovery_end();
        }
        reordering.follow(140, 150);
        assert_eq!(reordering.quarters, 2);
        reordering.on_recovery_end();
        reordering.follow(150, 160);
        assert_eq!(reordering.quarters, 1);
    }
}
