//! Congestion window validation: a window that the sender does not use must not grow (RFC 2861); the rule is Linux's.

use ackclock_congestion::Controller;

use super::scoreboard::Scoreboard;

/// Use of the window when most segments were outstanding in a flight: whether it limited the sender (as Linux's cwnd
/// validation).
#[derive(Clone, Copy, Debug, Default)]
pub struct CwndUsage {
    /// True if the window limited the sender.
    limited: bool,
    max_outstanding: u32,
    /// The flight ends when everything below it is acknowledged.
    until: u64,
}

impl CwndUsage {
    /// Record that segments were sent, or could not be because the window `limited` them.
    #[inline]
    pub fn observe(&mut self, limited: bool, board: &Scoreboard) {
        let outstanding = board.outstanding();
        let new_flight = board.unacknowledged >= self.until;
        if new_flight || limited || (!self.limited && outstanding > self.max_outstanding) {
            *self = CwndUsage {
                limited,
                max_outstanding: outstanding,
                until: board.next,
            };
        }
    }

    /// True if the window may grow: it was used, or in slow start more than half of it.
    #[inline]
    pub fn allows_growth(&self, controller: &dyn Controller) -> bool {
        if self.limited {
            return true;
        }
        let cwnd = controller.cwnd();
        cwnd < controller.ssthresh() && cwnd < 2.0 * f64::from(self.max_outstanding)
    }
}
