//! Detectors of the end of slow start.
//!
//! A [`Detector`] around a controller watches its ACKs and steers its window with [`Steer`]; congestion avoidance and
//! every reduction stay the controller's.
//!
//! ```text
//!   ACK ──▶ detector ── Grow, Exit ──▶ controller ──▶ window
//!     └────────────────────────────────▲
//! ```

use ackclock_core::{Rate, Time};

use super::{
    Ack, Controller, CubicState, EcnFeedback, Loss, Opening, PriorWindow, RecoveryPolicy, Restart,
    Variables,
};

/// The acknowledged segments that the first slow start counts: at most `limit` of an ACK's, and one in `divisor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    limit: u32,
    divisor: u32,
    /// Segments that have not made a whole one yet.
    credit: u32,
}

impl Growth {
    /// Every acknowledged segment, as in RFC 5681 with appropriate byte counting.
    pub const FULL: Growth = Growth::new(u32::MAX, 1);

    /// Count at most `limit` segments of an ACK, divided by `divisor`.
    pub const fn new(limit: u32, divisor: u32) -> Growth {
        Growth {
            limit,
            divisor,
            credit: 0,
        }
    }

    /// Return the whole segments that count when `acked` are acknowledged; the rest counts with the next ones.
    pub fn count(&mut self, acked: u32) -> u32 {
        let counted = acked.min(self.limit).saturating_add(self.credit);
        self.credit = counted % self.divisor;
        counted / self.divisor
    }

    /// Return the segments that count, for a window in fractions of segments.
    pub fn share(&self, acked: f64) -> f64 {
        acked.min(f64::from(self.limit)) / f64::from(self.divisor)
    }
}

/// A detector's instruction to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steer {
    /// Grow like this for as long as no loss has set a threshold.
    Grow(Growth),
    /// Leave slow start with this window, in segments.
    Exit(f64),
}

/// The state of a controller that a detector may see.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The congestion window.
    pub cwnd: f64,
    /// The slow start threshold.
    pub ssthresh: f64,
}

impl View {
    /// Return true if the window grows exponentially.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Return true before the first loss.
    pub fn in_first_slow_start(&self) -> bool {
        self.ssthresh.is_infinite()
    }
}

/// A rule for the pace and the end of slow start.
pub trait Detector: Clone + Send + Sync + 'static {
    /// True if the window grows by an ACK before the detector looks at it.
    const AFTER_GROWTH: bool;

    /// Set up for an established connection.
    fn on_established(&mut self, opening: &Opening) {
        let _ = opening;
    }

    /// Return true if no ACK changes anything until a timeout.
    fn is_done(&self) -> bool {
        false
    }

    /// Process an ACK.
    fn on_ack(&mut self, ack: &Ack, view: View) -> Option<Steer>;

    /// React to an expired retransmission timer.
    fn on_timeout(&mut self, now: Time) {
        let _ = now;
    }
}

/// A controller with a detector.
#[derive(Clone, Debug)]
pub struct Detecting<C, D> {
    controller: C,
    detector: D,
}

impl<C: Controller, D: Detector> Detecting<C, D> {
    /// Put a detector around a controller.
    pub fn new(controller: C, detector: D) -> Detecting<C, D> {
        Detecting {
            controller,
            detector,
        }
    }

    #[inline]
    fn detect(&mut self, ack: &Ack) {
        if !self.detector.is_done() && !self.controller.discards_rtt(ack.now) {
            self.steer(ack);
        }
    }

    fn steer(&mut self, ack: &Ack) {
        let view = View {
            cwnd: self.controller.cwnd(),
            ssthresh: self.controller.ssthresh(),
        };
        if let Some(steer) = self.detector.on_ack(ack, view) {
            self.controller.steer_slow_start(steer);
        }
    }
}

impl<C: Controller + Clone + 'static, D: Detector> Controller for Detecting<C, D> {
    fn on_ack(&mut self, ack: &Ack) {
        if D::AFTER_GROWTH {
            self.controller.on_ack(ack);
            self.detect(ack);
        } else {
            self.detect(ack);
            self.controller.on_ack(ack);
        }
    }

    fn on_established(&mut self, opening: &Opening) {
        self.controller.on_established(opening);
        self.detector.on_established(opening);
    }

    fn on_timeout(&mut self, now: Time, in_flight: u32) {
        self.controller.on_timeout(now, in_flight);
        self.detector.on_timeout(now);
    }

    fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        self.controller.on_ecn_feedback(feedback);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.controller.on_loss(loss);
    }

    fn on_loss_after_mark(&mut self, loss: &Loss) {
        self.controller.on_loss_after_mark(loss);
    }

    fn on_recovered(&mut self, now: Time, rtt: Option<Time>) {
        self.controller.on_recovered(now, rtt);
    }

    fn on_repeated_timeout(&mut self) {
        self.controller.on_repeated_timeout();
    }

    fn undo(&mut self, before: &PriorWindow) {
        self.controller.undo(before);
    }

    fn on_restart(&mut self, restart: &Restart) {
        self.controller.on_restart(restart);
    }

    fn cwnd(&self) -> f64 {
        self.controller.cwnd()
    }

    fn ssthresh(&self) -> f64 {
        self.controller.ssthresh()
    }

    fn recovery_policy(&self) -> RecoveryPolicy {
        self.controller.recovery_policy()
    }

    fn requires_pacing(&self) -> bool {
        self.controller.requires_pacing()
    }

    fn cubic_state(&self, now: Time) -> Option<CubicState> {
        self.controller.cubic_state(now)
    }

    fn variables(&self) -> Option<Variables> {
        self.controller.variables()
    }

    fn min_tso_segs(&self) -> u32 {
        self.controller.min_tso_segs()
    }

    fn pacing_shift(&self) -> u32 {
        self.controller.pacing_shift()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.controller.pacing_rate()
    }
}
