//! The congestion window in whole segments, shared by the loss-based controllers.
//!
//! RFC 5681 section 3.1, counted as Linux counts it (`tcp_slow_start`, `tcp_cong_avoid_ai`): segments
//! and not bytes, and a credit of acknowledged segments instead of a fractional window.
//! It grows in the states of [`super::ca_state`].

use super::ca_state::CaState;
use super::detector::{Growth, Steer};
use super::{Ack, PriorWindow, Restart};

/// Implement the methods that a [`super::Controller`] delegates to its field `window`: the getters, the restart after
/// an idle time, the undo of a spurious reduction, and the steps of slow start.
macro_rules! delegate_to_window {
    () => {
        fn steer_slow_start(&mut self, steer: $crate::detector::Steer) {
            self.window.steer_slow_start(steer);
        }

        fn undo(&mut self, before: &$crate::PriorWindow) {
            self.window.undo(before);
        }

        fn on_restart(&mut self, restart: &$crate::Restart) {
            self.window.restart_after_idle(restart);
        }

        fn cwnd(&self) -> f64 {
            self.window.cwnd().into()
        }

        fn ssthresh(&self) -> f64 {
            self.window.ssthresh()
        }
    };
}
pub(crate) use delegate_to_window;

/// The smallest ssthresh, in segments (RFC 5681, equation 4).
pub const MIN_SSTHRESH: u32 = 2;

/// Window and slow start threshold, in segments.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    cwnd: u32,
    /// `None` is infinite.
    ssthresh: Option<u32>,
    /// Acknowledged segments that have not made the window grow yet.
    credit: u32,
    ca_state: CaState,
    /// The pace of slow start before the first loss.
    growth: Growth,
}

impl Window {
    /// Create a window of `initial_window` segments, at least 1, without a threshold.
    pub fn new(initial_window: f64) -> Window {
        Window {
            cwnd: (initial_window as u32).max(1),
            ssthresh: None,
            credit: 0,
            ca_state: CaState::Open,
            growth: Growth::FULL,
        }
    }

    /// Congestion window.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// Slow start threshold; infinite until the first loss.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh.map_or(f64::INFINITY, f64::from)
    }

    /// Return true if an ACK makes the window grow exponentially.
    pub fn in_slow_start(&self) -> bool {
        f64::from(self.cwnd) < self.ssthresh()
    }

    /// Return true if fast recovery is going on.
    pub fn in_fast_recovery(&self) -> bool {
        self.ca_state == CaState::Recovery
    }

    /// Return true if the state is Open, as of the last ACK.
    pub fn is_open(&self) -> bool {
        self.ca_state == CaState::Open
    }

    /// Update the congestion state with an ACK; return true if the ACK may make the window grow: it is one that may
    /// raise cwnd, the sender used the window, and no fast recovery is going on. Call it once for each ACK, before any
    /// growth.
    #[must_use = "the window may only grow if this is true"]
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        self.ca_state.on_ack(ack);
        self.ca_state != CaState::Recovery && ack.may_raise_cwnd && ack.window_limited
    }

    /// Grow by one segment for each acknowledged one, up to ssthresh. Return the acknowledged segments that are left
    /// for congestion avoidance: all of them if the window has reached ssthresh already.
    #[must_use]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        if !self.in_slow_start() {
            return acked;
        }
        let Some(ssthresh) = self.ssthresh else {
            self.cwnd = self.cwnd.saturating_add(self.growth.count(acked));
            return 0;
        };
        let reached = self.cwnd.saturating_add(acked).min(ssthresh);
        let used = reached - self.cwnd;
        self.cwnd = reached;
        acked - used
    }

    /// Change the pace of slow start, or leave it.
    pub fn steer_slow_start(&mut self, steer: Steer) {
        match steer {
            Steer::Grow(growth) => self.growth = growth,
            Steer::Exit(cwnd) => self.resume_at(cwnd as u32),
        }
    }

    /// Grow by one segment for each `per_increment` acknowledged ones, counting from the last increment.
    pub fn additive_increase(&mut self, per_increment: u32, acked: u32) {
        // Credit that accumulated while an increment cost more gives one segment, not many.
        if self.credit >= per_increment {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        if self.credit >= per_increment {
            self.cwnd += self.credit / per_increment;
            self.credit %= per_increment;
        }
    }

    /// Return the credit: acknowledged segments, or another unit of the controller, that no increment has used.
    pub fn credit(&self) -> u32 {
        self.credit
    }

    /// Add to the credit, for a controller with its own unit.
    pub fn earn(&mut self, credit: u32) {
        self.credit = self.credit.saturating_add(credit);
    }

    /// Grow by `segments` and take `cost` from the credit.
    pub fn buy(&mut self, segments: u32, cost: u32) {
        self.cwnd = self.cwnd.saturating_add(segments);
        self.credit = self.credit.saturating_sub(cost);
    }

    /// Grow like Reno: slow start, then one segment for each acknowledged window.
    pub fn grow_as_reno(&mut self, acked: u32) {
        let left = self.slow_start(acked);
        if left > 0 {
            self.additive_increase(self.cwnd, left);
        }
    }

    /// Set the window (at least 1), for controllers that compute it; the threshold stays.
    pub fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    /// Set the threshold to the current window.
    pub fn end_slow_start(&mut self) {
        self.ssthresh = Some(self.cwnd);
    }

    /// Lower the threshold to the window, but not below [`MIN_SSTHRESH`].
    pub fn lower_threshold(&mut self) {
        let cwnd = self.cwnd.max(MIN_SSTHRESH);
        self.ssthresh = Some(self.ssthresh.map_or(cwnd, |ssthresh| ssthresh.min(cwnd)));
    }

    /// Raise the threshold to three quarters of the window, if it is below
    /// (`tcp_current_ssthresh`: a half and a quarter, each in whole segments).
    pub fn remember(&mut self) {
        let remembered = self.cwnd / 2 + self.cwnd / 4;
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(remembered));
    }

    /// Reduce the window and the threshold to `ssthresh` (at least [`MIN_SSTHRESH`]) for a recovery episode.
    pub fn reduce(&mut self, ssthresh: u32) {
        self.ca_state = CaState::Recovery;
        self.ssthresh = Some(ssthresh.max(MIN_SSTHRESH));
        self.cwnd = ssthresh.max(MIN_SSTHRESH);
        self.credit = 0;
    }

    /// Set both the window and the threshold to `cwnd` (at least [`MIN_SSTHRESH`]).
    pub fn resume_at(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(MIN_SSTHRESH);
        self.end_slow_start();
    }

    /// Restart from one segment after a timeout, with `ssthresh` (at least [`MIN_SSTHRESH`]) as the threshold unless
    /// the current recovery episode has set it already.
    pub fn restart(&mut self, ssthresh: u32) {
        if self.ca_state != CaState::Recovery {
            self.ssthresh = Some(ssthresh.max(MIN_SSTHRESH));
        }
        self.ca_state = CaState::Loss;
        self.cwnd = 1;
        self.credit = 0;
    }

    /// Undo a spurious reduction: restore the window and threshold before it, unless they have grown larger since
    /// (Linux's `undo_cwnd`; RFC 4015 section 3.2).
    pub fn undo(&mut self, before: &PriorWindow) {
        self.ca_state = CaState::Open;
        self.cwnd = self.cwnd.max(before.cwnd as u32);
        let infinite = before.ssthresh.is_infinite();
        self.ssthresh = self
            .ssthresh
            .filter(|_| !infinite)
            .map(|ssthresh| ssthresh.max(before.ssthresh as u32));
    }

    /// Reduce the window after an idle time: by half for each retransmission timeout that has passed, but not below the
    /// initial window (RFC 5681 section 4.1, in the steps of RFC 2861 as in Linux). The threshold keeps three quarters
    /// of the window.
    pub fn restart_after_idle(&mut self, restart: &Restart) {
        if restart.now.since(restart.idle_since) <= restart.rto {
            return;
        }
        self.remember();
        let floor = restart.initial_window.min(self.cwnd);
        let mut idle = restart.now.since(restart.idle_since);
        while idle > restart.rto && self.cwnd > floor {
            idle = idle - restart.rto;
            self.cwnd = (self.cwnd / 2).max(floor);
        }
    }
}

/// ACKs for tests of controllers.
#[cfg(test)]
pub mod testing {
    use super::super::{Ack, Controller, Loss};
    use ackclock_core::Time;

    /// A loss without any measurements.
    pub const LOSS: Loss = Loss {
        now: Time::ZERO,
        in_flight: 0,
        srtt: Time::ZERO,
        min_rtt: Time::NEVER,
        delivered: 0,
        marked: false,
    };

    /// An ACK of `newly_acked` segments at `now` that leaves the window free to grow.
    pub fn ack(now: Time, newly_acked: u32) -> Ack {
        Ack {
            now,
            newly_acked,
            newly_acked_bytes: u64::from(newly_acked) * 1448,
            may_raise_cwnd: true,
            cumulatively_acked: newly_acked,
            has_sack: false,
            window_update: false,
            rtt: None,
            srtt: Time::ZERO,
            min_rtt: Time::NEVER,
            prior_in_flight: 0,
            in_flight: 0,
            delivery_rate: None,
            delivered: 0,
            prior_delivered: 0,
            application_limited: false,
            window_limited: true,
            newly_lost: 0,
            marked_bytes: 0,
            next: 0,
            unacknowledged: 0,
            recovering: false,
            in_loss: false,
            paced: false,
            next_departure: Time::ZERO,
        }
    }

    /// Acknowledge a whole window, `per_ack` segments at a time.
    pub fn round(controller: &mut dyn Controller, per_ack: u32) {
        let mut left = controller.cwnd() as u32;
        while left > 0 {
            let acked = left.min(per_ack);
            controller.on_ack(&ack(Time::ZERO, acked));
            left -= acked;
        }
    }

    /// An ACK as from [`ack`], in fast recovery or after a timeout.
    pub fn recovering(now: Time, newly_acked: u32) -> Ack {
        Ack {
            recovering: true,
            ..ack(now, newly_acked)
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::testing::{ack, recovering};
    use super::*;
    use ackclock_core::Time;

    fn window(cwnd: u32, ssthresh: Option<u32>) -> Window {
        Window {
            cwnd,
            ssthresh,
            credit: 0,
            ca_state: CaState::Open,
            growth: Growth::FULL,
        }
    }

    #[test]
    fn each_timeout_of_idleness_halves_down_to_the_initial_window() {
        let after = |idle_ms: u64| {
            let mut window = window(80, Some(20));
            window.restart_after_idle(&Restart {
                now: Time::from_milliseconds(1000 + idle_ms),
                idle_since: Time::from_milliseconds(1000),
                rto: Time::from_milliseconds(200),
                initial_window: 10,
            });
            (window.cwnd(), window.ssthresh())
        };
        assert_eq!(after(200), (80, 20.0));
        assert_eq!(after(201), (40, 60.0));
        assert_eq!(after(601), (10, 60.0));
        assert_eq!(after(9000), (10, 60.0));
    }

    #[test]
    fn slow_start_leaves_the_rest_over_at_the_threshold() {
        let mut window = window(10, Some(12));
        assert_eq!(window.slow_start(5), 3);
        assert_eq!(window.cwnd(), 12);
        assert!(!window.in_slow_start());
    }

    #[test]
    fn credit_of_a_dearer_time_buys_one_segment() {
        let mut window = window(10, Some(10));
        window.additive_increase(1000, 900);
        assert_eq!(window.cwnd(), 10);
        window.additive_increase(10, 5);
        assert_eq!(window.cwnd(), 11);
        window.additive_increase(10, 25);
        assert_eq!(window.cwnd(), 14, "5 left and 25 new make three increments");
    }

    #[test]
    fn the_threshold_follows_the_window_down_and_three_quarters_of_it_up() {
        let mut low = window(87, Some(10));
        low.remember();
        assert_eq!(low.ssthresh(), 64.0, "43 and 21, as recorded at 87");
        low.set(50);
        low.lower_threshold();
        assert_eq!((low.cwnd(), low.ssthresh()), (50, 50.0));
        let mut free = window(10, None);
        free.remember();
        assert_eq!(free.ssthresh(), f64::INFINITY);
        free.lower_threshold();
        assert_eq!(free.ssthresh(), 10.0);
    }

    #[test]
    fn a_spurious_loss_is_undone() {
        let mut window = window(40, Some(10));
        window.reduce(20);
        window.undo(&PriorWindow {
            cwnd: 40.0,
            ssthresh: 30.0,
        });
        assert_eq!((window.cwnd(), window.ssthresh()), (40, 30.0));
        assert!(window.is_open());
        window.set(50);
        window.undo(&PriorWindow {
            cwnd: 40.0,
            ssthresh: f64::INFINITY,
        });
        assert_eq!((window.cwnd(), window.ssthresh()), (50, f64::INFINITY));
    }

    #[test]
    fn only_an_advancing_ack_of_a_full_window_may_grow_it() {
        let mut window = window(10, None);
        let full = ack(Time::ZERO, 1);
        assert!(window.on_ack(&full));
        assert!(!window.on_ack(&Ack {
            may_raise_cwnd: false,
            ..full
        }));
        assert!(!window.on_ack(&Ack {
            window_limited: false,
            ..full
        }));
    }

    #[test]
    fn the_window_grows_after_a_timeout_but_not_in_fast_recovery() {
        let mut window = window(10, None);
        window.reduce(5);
        assert!(!window.on_ack(&recovering(Time::ZERO, 1)));
        window.restart(3);
        assert!(window.on_ack(&recovering(Time::ZERO, 1)));
        assert!(window.on_ack(&ack(Time::ZERO, 1)));
        assert!(!window.on_ack(&recovering(Time::ZERO, 1)), "a new episode");
    }

    #[test]
    fn the_loss_state_lasts_until_the_sender_ends_it() {
        let mut window = window(10, None);
        window.restart(5);
        let _ = window.on_ack(&Ack {
            in_loss: true,
            ..ack(Time::ZERO, 1)
        });
        assert!(!window.is_open());
        let _ = window.on_ack(&ack(Time::ZERO, 1));
        assert!(window.is_open());
    }

    #[test]
    fn a_timeout_in_fast_recovery_keeps_the_threshold() {
        let mut window = window(20, None);
        window.reduce(10);
        window.restart(5);
        assert_eq!((window.cwnd(), window.ssthresh()), (1, 10.0));
        window.restart(2);
        assert_eq!(
            window.ssthresh(),
            2.0,
            "a second timeout is a loss of its own"
        );
    }

    #[test]
    fn the_minimum_threshold_is_two() {
        let mut window = window(2, None);
        window.reduce(1);
        assert_eq!((window.cwnd(), window.ssthresh()), (2, 2.0));
        let _ = window.on_ack(&ack(Time::ZERO, 1));
        window.restart(0);
        assert_eq!((window.cwnd(), window.ssthresh()), (1, 2.0));
    }
}
