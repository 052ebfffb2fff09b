//! The congestion window in whole segments: what controllers that react to loss have in common.
//!
//! RFC 5681 section 3.1, counted as Linux counts it (`tcp_slow_start`, `tcp_cong_avoid_ai`): segments
//! and not bytes, and a credit of acknowledged segments instead of a fractional window.
//! The phases in which it grows are those of [`super::phase`].

use super::phase::Phase;
use super::{Ack, Before, Restart};

/// What a [`super::Controller`] leaves to its field `window`: what it shows, what an idle time does, and what is left
/// of a loss that was none.
macro_rules! delegate_to_window {
    () => {
        fn undo(&mut self, before: &$crate::Before) {
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
    phase: Phase,
}

impl Window {
    /// The initial window, at least 1, and no threshold.
    pub fn new(initial_window: f64) -> Window {
        Window {
            cwnd: (initial_window as u32).max(1),
            ssthresh: None,
            credit: 0,
            phase: Phase::Open,
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

    /// Whether an ACK makes the window grow exponentially.
    pub fn in_slow_start(&self) -> bool {
        f64::from(self.cwnd) < self.ssthresh()
    }

    /// Whether fast recovery is going on.
    pub fn in_fast_recovery(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Whether no losses are being repaired, as of the last ACK.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Follows the phases and tells whether this ACK may make the window grow: it advances, the sender
    /// used the window, and no fast recovery is going on.
    pub fn may_grow(&mut self, ack: &Ack) -> bool {
        self.phase.follow(ack);
        self.phase != Phase::Recovery && ack.advanced && ack.window_limited
    }

    /// One segment more for each acknowledged one, up to ssthresh. Returns the acknowledged segments
    /// that are left over for congestion avoidance: all where the window is there already.
    #[must_use]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        if !self.in_slow_start() {
            return acked;
        }
        let grown = self.cwnd.saturating_add(acked);
        let reached = self.ssthresh.map_or(grown, |ssthresh| grown.min(ssthresh));
        let used = reached - self.cwnd;
        self.cwnd = reached;
        acked - used
    }

    /// One segment more for each `per_increment` acknowledged ones, counting from the last increment.
    pub fn additive_increase(&mut self, per_increment: u32, acked: u32) {
        // Credit saved up while an increment was dearer buys one segment, not many at once.
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

    /// Acknowledged segments (or what else a controller counts) that no increment has used up.
    pub fn credit(&self) -> u32 {
        self.credit
    }

    /// Adds to the credit, for a controller that counts in its own way.
    pub fn earn(&mut self, credit: u32) {
        self.credit = self.credit.saturating_add(credit);
    }

    /// Grows by `segments`, which use up `cost` of the credit.
    pub fn buy(&mut self, segments: u32, cost: u32) {
        self.cwnd = self.cwnd.saturating_add(segments);
        self.credit = self.credit.saturating_sub(cost);
    }

    /// Reno's growth: slow start, then one segment more for each acknowledged window.
    pub fn grow_as_reno(&mut self, acked: u32) {
        let left = self.slow_start(acked);
        if left > 0 {
            self.additive_increase(self.cwnd, left);
        }
    }

    /// Sets the window (at least 1), for controls that compute it; the threshold stays.
    pub fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    /// Makes the present window the threshold.
    pub fn end_slow_start(&mut self) {
        self.ssthresh = Some(self.cwnd);
    }

    /// Brings the threshold down to the window (but to [`MIN_SSTHRESH`] at least), if it is above.
    pub fn lower_threshold(&mut self) {
        let cwnd = self.cwnd.max(MIN_SSTHRESH);
        self.ssthresh = Some(self.ssthresh.map_or(cwnd, |ssthresh| ssthresh.min(cwnd)));
    }

    /// Brings the threshold up to three quarters of the window, if it is below
    /// (`tcp_current_ssthresh`: a half and a quarter, each in whole segments).
    pub fn remember(&mut self) {
        let remembered = self.cwnd / 2 + self.cwnd / 4;
        self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.max(remembered));
    }

    /// Comes down to `ssthresh` (at least [`MIN_SSTHRESH`]) for a recovery episode.
    pub fn reduce(&mut self, ssthresh: u32) {
        self.phase = Phase::Recovery;
        self.ssthresh = Some(ssthresh.max(MIN_SSTHRESH));
        self.cwnd = ssthresh.max(MIN_SSTHRESH);
        self.credit = 0;
    }

    /// Goes on with a window of `cwnd` (at least [`MIN_SSTHRESH`]) that is the threshold as well.
    pub fn resume_at(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(MIN_SSTHRESH);
        self.end_slow_start();
    }

    /// Starts again from one segment after a timeout, with `ssthresh` (at least [`MIN_SSTHRESH`]) as
    /// the threshold unless the episode under way has set it already.
    pub fn restart(&mut self, ssthresh: u32) {
        if self.phase != Phase::Recovery {
            self.ssthresh = Some(ssthresh.max(MIN_SSTHRESH));
        }
        self.phase = Phase::Repair;
        self.cwnd = 1;
        self.credit = 0;
    }

    /// Comes back to the window and threshold from before a reduction that proved needless, unless both have grown
    /// beyond (as Linux's `undo_cwnd`; RFC 4015 section 3.2 has the same).
    pub fn undo(&mut self, before: &Before) {
        self.phase = Phase::Open;
        self.cwnd = self.cwnd.max(before.cwnd as u32);
        let infinite = before.ssthresh.is_infinite();
        self.ssthresh = self
            .ssthresh
            .filter(|_| !infinite)
            .map(|ssthresh| ssthresh.max(before.ssthresh as u32));
    }

    /// Comes down after an idle time: by half for each retransmission timeout that has passed, but not
    /// below the initial window (RFC 5681 section 4.1, in the steps of RFC 2861 that Linux takes). The
    /// threshold remembers three quarters of the window.
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

    /// A loss that tells nothing but that it happened.
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
            advanced: true,
            cumulatively_acked: newly_acked,
            selective: false,
            opens: false,
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
            repairing: false,
            paced: false,
            next_departure: Time::ZERO,
        }
    }

    /// Acknowledges a whole window, `per_ack` segments at a time.
    pub fn round(controller: &mut dyn Controller, per_ack: u32) {
        let mut left = controller.cwnd() as u32;
        while left > 0 {
            let acked = left.min(per_ack);
            controller.on_ack(&ack(Time::ZERO, acked));
            left -= acked;
        }
    }

    /// As [`ack`], during fast recovery or repair.
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
            phase: Phase::Open,
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
    fn what_was_no_loss_leaves_nothing() {
        let mut window = window(40, Some(10));
        window.reduce(20);
        window.undo(&Before {
            cwnd: 40.0,
            ssthresh: 30.0,
        });
        assert_eq!((window.cwnd(), window.ssthresh()), (40, 30.0));
        assert!(window.is_open());
        window.set(50);
        window.undo(&Before {
            cwnd: 40.0,
            ssthresh: f64::INFINITY,
        });
        assert_eq!((window.cwnd(), window.ssthresh()), (50, f64::INFINITY));
    }

    #[test]
    fn only_an_advancing_ack_of_a_full_window_may_grow_it() {
        let mut window = window(10, None);
        let full = ack(Time::ZERO, 1);
        assert!(window.may_grow(&full));
        assert!(!window.may_grow(&Ack {
            advanced: false,
            ..full
        }));
        assert!(!window.may_grow(&Ack {
            window_limited: false,
            ..full
        }));
    }

    #[test]
    fn it_does_not_grow_in_fast_recovery_but_in_the_repair_after_a_timeout() {
        let mut window = window(10, None);
        window.reduce(5);
        assert!(!window.may_grow(&recovering(Time::ZERO, 1)));
        window.restart(3);
        assert!(window.may_grow(&recovering(Time::ZERO, 1)));
        assert!(window.may_grow(&ack(Time::ZERO, 1)));
        assert!(
            !window.may_grow(&recovering(Time::ZERO, 1)),
            "a new episode"
        );
    }

    #[test]
    fn the_repair_lasts_as_long_as_the_sender_says() {
        let mut window = window(10, None);
        window.restart(5);
        window.may_grow(&Ack {
            repairing: true,
            ..ack(Time::ZERO, 1)
        });
        assert!(!window.is_open());
        window.may_grow(&ack(Time::ZERO, 1));
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
    fn the_threshold_is_at_least_two() {
        let mut window = window(2, None);
        window.reduce(1);
        assert_eq!((window.cwnd(), window.ssthresh()), (2, 2.0));
        window.may_grow(&ack(Time::ZERO, 1));
        window.restart(0);
        assert_eq!((window.cwnd(), window.ssthresh()), (1, 2.0));
    }
}
