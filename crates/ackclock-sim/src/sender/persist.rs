//! Persist timer: zero-window probes (RFC 9293 section 3.8.6.1, RFC 1122 section 4.2.2.17).
//!
//! A receiver sends an ACK when it has room again, but it does not retransmit that. So a sender that has data, nothing
//! outstanding and no window sends a probe: the first when the window has been closed for the retransmission timeout,
//! the next each after twice the time of the one before, up to the largest timeout, for as long as it stays closed.
//!
//! Deviation: the probe carries no new byte. As Linux's it is an empty segment just below the window, which the receiver
//! must acknowledge all the same (RFC 9293 section 3.10.7.4): segments are never divided here.

use ackclock_core::Time;

use super::timers::Purpose;
use super::{Outlet, Sender};
use crate::packet::Kind;

impl Sender {
    /// Run the persist timer while the receiver's window is all that holds data back.
    #[cold]
    pub(super) fn await_window(&mut self, now: Time) {
        let is_running =
            self.timers.purpose == Purpose::Persist && !self.timers.retransmission.is_never();
        if !is_running {
            self.probe_wait = self.rtt.rto();
            self.timers.persist(now, self.probe_wait);
        }
    }

    /// Send a probe if the window is still closed, and wait for twice as long.
    pub(super) fn on_persist_timer(&mut self, now: Time, out: &mut impl Outlet) {
        if self.board.outstanding() > 0 || self.board.next < self.window_end {
            self.timers.stop();
            return;
        }
        self.send_control(Kind::WindowProbe, now, out);
        self.probe_wait = (self.probe_wait + self.probe_wait).min(self.tcp.max_rto);
        self.timers.persist(now, self.probe_wait);
    }
}
