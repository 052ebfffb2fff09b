//! The congestion window in fractions of segments, for CCAs whose papers do so.
//!
//! The phases are those of [`super::ca_state`]; slow start and idle times work as in [`super::window`]. The sender
//! sends whole segments: it rounds down.

use super::ca_state::CaState;
use super::detector::{Growth, Steer};
use super::window::MIN_SSTHRESH;
use super::{Ack, PriorWindow, Restart};

/// Window and slow start threshold, in segments.
#[derive(Clone, Copy, Debug)]
pub struct FractionalWindow {
    cwnd: f64,
    ssthresh: f64,
    ca_state: CaState,
    /// The pace of slow start before the first loss.
    growth: Growth,
}

impl FractionalWindow {
    /// Create a window of `initial_window` segments, at least 1, without a threshold.
    pub fn new(initial_window: f64) -> FractionalWindow {
        FractionalWindow {
            cwnd: initial_window.max(1.0),
            ssthresh: f64::INFINITY,
            ca_state: CaState::Open,
            growth: Growth::FULL,
        }
    }

    /// Congestion window.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow start threshold; infinite until the first loss.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Return true if an ACK makes the window grow exponentially.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Return true if fast recovery is going on.
    pub fn in_fast_recovery(&self) -> bool {
        self.ca_state == CaState::Recovery
    }

    /// Update the congestion state with an ACK; return true if the ACK may make the window grow: it is one that may
    /// raise cwnd, the sender used the window, and no fast recovery is going on. Call it once for each ACK, before any
    /// growth.
    #[must_use = "the window may only grow if this is true"]
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        self.ca_state.on_ack(ack);
        self.ca_state != CaState::Recovery && ack.may_raise_cwnd && ack.window_limited
    }

    /// Grow by `step` segments for each acknowledged one, up to ssthresh. Returns the acknowledged
    /// segments that are left over for congestion avoidance: all where the window is there already.
    #[must_use]
    pub fn slow_start(&mut self, acked: f64, step: f64) -> f64 {
        if !self.in_slow_start() {
            return acked;
        }
        if self.ssthresh.is_infinite() {
            self.cwnd += step * self.growth.share(acked);
            return 0.0;
        }
        let needed = (self.ssthresh - self.cwnd) / step;
        if acked < needed {
            self.cwnd += step * acked;
            return 0.0;
        }
        self.cwnd = self.ssthresh;
        acked - needed
    }

    /// Change the pace of slow start, or leave it.
    pub fn steer_slow_start(&mut self, steer: Steer) {
        match steer {
            Steer::Grow(growth) => self.growth = growth,
            Steer::Exit(cwnd) => {
                self.set(cwnd);
                self.end_slow_start();
            }
        }
    }

    /// Set the window (at least 1), for controls that compute it; the threshold stays.
    pub fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.max(1.0);
    }

    /// Create the present window the threshold.
    pub fn end_slow_start(&mut self) {
        self.ssthresh = self.cwnd.max(f64::from(MIN_SSTHRESH));
    }

    /// Reduce to `ssthresh` (at least [`MIN_SSTHRESH`]) without a recovery episode: growth goes on.
    pub fn reduce_in_place(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh.max(f64::from(MIN_SSTHRESH));
        self.cwnd = self.cwnd.min(self.ssthresh);
    }

    /// Reduce to `ssthresh` (at least [`MIN_SSTHRESH`]) for a recovery episode.
    pub fn reduce(&mut self, ssthresh: f64) {
        self.ca_state = CaState::Recovery;
        self.ssthresh = ssthresh.max(f64::from(MIN_SSTHRESH));
        self.cwnd = self.ssthresh;
    }

    /// Start again from one segment after a timeout, with `ssthresh` (at least [`MIN_SSTHRESH`]) as
    /// the threshold unless the current episode has set it already.
    pub fn restart(&mut self, ssthresh: f64) {
        if self.ca_state != CaState::Recovery {
            self.ssthresh = ssthresh.max(f64::from(MIN_SSTHRESH));
        }
        self.ca_state = CaState::Loss;
        self.cwnd = 1.0;
    }

    /// Restore the window and threshold from before a reduction, as [`super::window::Window::undo`].
    pub fn undo(&mut self, before: &PriorWindow) {
        self.ca_state = CaState::Open;
        self.cwnd = self.cwnd.max(before.cwnd);
        self.ssthresh = self.ssthresh.max(before.ssthresh);
    }

    /// Reduce the window after an idle time, as [`super::window::Window::restart_after_idle`].
    pub fn restart_after_idle(&mut self, restart: &Restart) {
        let mut idle = restart.now.since(restart.idle_since);
        if idle <= restart.rto {
            return;
        }
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        let floor = f64::from(restart.initial_window).min(self.cwnd);
        while idle > restart.rto && self.cwnd > floor {
            idle = idle - restart.rto;
            self.cwnd = (self.cwnd / 2.0).max(floor);
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // sums of halves
mod tests {
    use super::super::window::testing::{ack, recovering};
    use super::*;
    use ackclock_core::Time;

    fn below_a_threshold() -> FractionalWindow {
        let mut window = FractionalWindow::new(10.0);
        window.restart(8.0);
        window
    }

    #[test]
    fn slow_start_leaves_the_rest_over_at_the_threshold() {
        let mut window = below_a_threshold();
        assert_eq!(window.slow_start(3.0, 2.0), 0.0);
        assert_eq!(window.cwnd(), 7.0);
        assert_eq!(
            window.slow_start(3.0, 2.0),
            2.5,
            "half a segment was enough"
        );
        assert_eq!(window.cwnd(), 8.0);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn without_a_threshold_slow_start_uses_all_segments() {
        let mut window = FractionalWindow::new(10.0);
        assert_eq!(window.slow_start(7.0, 1.0), 0.0);
        assert_eq!(window.cwnd(), 17.0);
    }

    #[test]
    fn a_timeout_in_fast_recovery_keeps_the_threshold() {
        let mut window = FractionalWindow::new(20.0);
        window.reduce(15.5);
        assert!(!window.on_ack(&recovering(Time::ZERO, 1)));
        window.restart(7.0);
        assert_eq!((window.cwnd(), window.ssthresh()), (1.0, 15.5));
        assert!(window.on_ack(&ack(Time::ZERO, 1)));
        window.restart(0.5);
        assert_eq!((window.cwnd(), window.ssthresh()), (1.0, 2.0));
    }

    #[test]
    fn a_spurious_loss_is_undone() {
        let mut window = below_a_threshold();
        window.undo(&PriorWindow {
            cwnd: 12.5,
            ssthresh: 9.0,
        });
        assert_eq!((window.cwnd(), window.ssthresh()), (12.5, 9.0));
    }

    #[test]
    fn each_timeout_of_idleness_halves_down_to_the_initial_window() {
        let mut window = below_a_threshold();
        window.set(41.0);
        window.restart_after_idle(&Restart {
            now: Time::from_milliseconds(1401),
            idle_since: Time::from_milliseconds(1000),
            rto: Time::from_milliseconds(200),
            initial_window: 10,
        });
        assert_eq!((window.cwnd(), window.ssthresh()), (10.25, 30.75));
    }
}
