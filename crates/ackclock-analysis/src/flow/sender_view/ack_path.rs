//! The path of the acknowledgements: how long they wait on it, and whether they take back what they said.

use super::SenderView;
use crate::flow::scoreboard::State;
use crate::tables::Vantage;

impl SenderView {
    /// An acknowledgement with this TSval passed: what it took longer than others by its sender's clock, it waited
    /// before the vantage point.
    #[inline]
    pub(super) fn on_ack_clock(&mut self, tsval: u32, now_ns: i64) {
        if self.vantage == Vantage::Receiver {
            return; // it comes from here
        }
        self.ack_clock.on_packet(tsval, now_ns);
        if let Some((excess_ns, tick_ns)) = self.ack_clock.excess_delay_ns() {
            self.ack_waits[0].add((excess_ns - tick_ns).max(0));
        }
    }

    /// The delay from the vantage point to the sender and back is known anew: what it grew by, and the data did not wait
    /// by their sender's clock, the acknowledgements did. A sender that waits itself makes single samples longer, not the
    /// least of many.
    pub(super) fn on_sender_delay(&mut self) {
        if let Some((excess_ns, _)) = self.tsval_clock.excess_delay_ns() {
            let grown_ns = self.sender_delay_ns - self.sender_side_rtt.min_ns;
            self.ack_waits[1].add((grown_ns - excess_ns).max(0));
        }
    }

    /// Return the mean time for which acknowledgements waited on their path; NaN if it is unknown.
    pub fn ack_wait_s(&self) -> f64 {
        let [before_s, behind_s] = self.ack_waits.map(|waits| waits.mean_s());
        match self.vantage {
            Vantage::Unknown => f64::NAN,
            Vantage::Sender => before_s,
            Vantage::Receiver => behind_s,
            Vantage::Middle => before_s + behind_s,
        }
    }

    /// Count the head of the scoreboard if the receiver has taken its SACK back: the cumulative acknowledgement stopped
    /// before what was sacked, until that was sent again (RFC 2018 section 8).
    #[inline]
    pub(super) fn detect_reneging(&mut self) {
        let is_reneged = self.board.sacked_bytes() > 0
            && self.board.front().is_some_and(|first| {
                first.state == State::Sacked
                    && first.start == self.snd_una
                    && first.last_ns > first.sacked_ns
            });
        self.totals.sack_reneged += u32::from(is_reneged);
    }
}
