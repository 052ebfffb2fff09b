//! Prague: DCTCP made fit for the Internet, with the scalable response of L4S.
//!
//! K. De Schepper, O. Tilmans, B. Briscoe, V. Goel: Prague Congestion Control,
//! draft-briscoe-iccrg-prague-congestion-control. The text at hand is the authors' working copy after revision 00; the
//! section numbers are those of revision 04. Once per round trip, and on each ACK:
//!
//! ```text
//!   α    ← α + (frac − α) / 16                        frac: the marked share of a round        (section 2.3.2)
//!   cwnd ← (1 − α/2) cwnd                             at a mark, at most once per round        (section 2.4.2)
//!   cwnd ← cwnd + (acked − marked) / (M² cwnd)        on each ACK, after a reduction too       (section 2.4.3)
//!   cwnd ← cwnd / 2                                   at a loss, with a reduction for marks less than a round before
//!                                                     counted in                               (section 2.4.1)
//! ```
//!
//! With M = 1, a steady state has α = p and cwnd = 2/p, two marks per round (sections 2.3.2 and 2.4.3), if each round has
//! a reduction. Under random marks fewer have: after a reduction the next one waits for its round to end, and then for a
//! mark. With x = p cwnd marks in a round that is 1 + 1/x rounds, in which the window grows by as many segments, so that
//! x/2 = 1 + 1/x: x = 1 + √3 = 2.73. So next to classic flows that are marked with p² (RFC 9332 section 2.1), Prague has
//! 1.37 times the window for which the coupling is made, and 1.5 times the rate of CUBIC at 20 ms, not 1.15 times
//! (`tests/oracle/test_prague.py`); CUBIC's increase, its whole segments, the step marking and M are not the cause. Next to
//! a single CUBIC flow it is 1.7 times: p follows that flow's sawtooth, and the mean of p² is above the square of the mean.
//!
//! A flow with a shorter RTT than the reference, 25 ms, acts as if its RTT were that: M = `RTT_ref` / RTT, and the rounds
//! of α and of reductions last `RTT_ref` (section 2.4.4). It does so after 500 rounds, so that short flows stay fast.
//!
//! Slow start ends with the first mark. Segments are paced at max(cwnd, in flight) / srtt, twice that in slow start, in
//! bursts of at most 250 µs (section 2.5).
//!
//! With `classic_ecn_fallback`, behind a queue that looks like one of a classic ECN AQM α is at least 0.625 (section 3,
//! `classic_ecn`).
//!
//! Our reading: α stays 1 until the first mark, so that the first reaction halves; the window is at least two segments
//! after a reduction. Deviations: a reduction at a loss takes effect at once, without proportional rate reduction;
//! bursts are 1/4096 s, or one segment. Left out: fractional windows below two segments, and the return to RTT-dependence
//! after an idle time.

mod classic_ecn;

use ackclock_core::{Rate, Time};
use serde::Deserialize;
use serde_json::Value;

use classic_ecn::ClassicEcn;

use super::fractional_window::FractionalWindow;
use super::slow_start::SlowStart;
use super::window::delegate_to_window;
use super::{Ack, Controller, EcnFeedback, Loss, Made, Opening, RecoveryPolicy};

/// g: the weight of a round in α.
const GAIN: f64 = 1.0 / 16.0;
/// Bursts of `MAX_BURST_DELAY`, 250 µs: 2⁻¹² s.
const PACING_SHIFT: u32 = 12;
/// The pacing rate in slow start, in windows per RTT.
const SLOW_START_PACING: f64 = 2.0;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// `RTT_ref`'s minimum; 0 switches the reduced RTT-dependence off.
    #[serde(rename = "rtt_ref_s")]
    rtt_ref: Time,
    /// D: rounds before the RTT-dependence is reduced.
    rtt_ref_after: u32,
    /// True if marks of a classic ECN AQM are answered as CUBIC answers them.
    classic_ecn_fallback: bool,
    slow_start: SlowStart,
}

/// A round of the reference RTT: what has been sent is acknowledged, and the time has passed.
#[derive(Clone, Copy, Debug)]
struct ReferenceRound {
    end: u64,
    until: Time,
}

impl ReferenceRound {
    fn is_over(&self, ack: &Ack) -> bool {
        ack.unacknowledged > self.end && ack.now >= self.until
    }
}

/// A reduction for marks.
#[derive(Clone, Copy, Debug)]
struct Reduced {
    round: ReferenceRound,
    /// The window before it.
    prior: f64,
}

/// A Prague sender's window.
#[derive(Clone, Copy, Debug)]
struct Prague {
    parameters: Parameters,
    window: FractionalWindow,
    /// None before the first mark.
    alpha: Option<f64>,
    /// The round that α observes, and the segments delivered and marked in it.
    observed: Option<ReferenceRound>,
    delivered: u64,
    marked: u64,
    /// Rounds so far.
    rounds: u32,
    /// Segments that the feedback of the present ACK reports as marked.
    newly_marked: u32,
    /// The reduction after which no other follows yet (the state CWR).
    reduced: Option<Reduced>,
    /// None without the fall-back.
    classic_ecn: Option<ClassicEcn>,
    mss_bytes: u32,
    srtt: Time,
    in_flight: u32,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = Parameters::deserialize(parameters)?;
    let prague = Prague::new(parameters, initial_window);
    Ok(parameters.slow_start.control(prague))
}

impl Prague {
    fn new(parameters: Parameters, initial_window: f64) -> Prague {
        Prague {
            parameters,
            window: FractionalWindow::new(initial_window),
            alpha: None,
            observed: None,
            delivered: 0,
            marked: 0,
            rounds: 0,
            newly_marked: 0,
            reduced: None,
            classic_ecn: parameters.classic_ecn_fallback.then(ClassicEcn::new),
            mss_bytes: 0,
            srtt: Time::ZERO,
            in_flight: 0,
        }
    }

    /// M: the reference RTT over the RTT; 1 for long RTTs and young flows.
    fn m(&self) -> f64 {
        let is_young = self.rounds < self.parameters.rtt_ref_after;
        if is_young || self.srtt == Time::ZERO {
            1.0
        } else {
            (self.parameters.rtt_ref.seconds() / self.srtt.seconds()).max(1.0)
        }
    }

    fn begin_round(&self, ack: &Ack) -> ReferenceRound {
        let is_longer = self.m() > 1.0;
        let wait = if is_longer {
            self.parameters.rtt_ref
        } else {
            Time::ZERO
        };
        ReferenceRound {
            end: ack.next,
            until: ack.now + wait,
        }
    }

    /// Update α at the end of each round.
    fn observe(&mut self, ack: &Ack) {
        self.delivered += u64::from(ack.newly_acked);
        self.marked += u64::from(self.newly_marked);
        if self.observed.is_some_and(|round| !round.is_over(ack)) {
            return;
        }
        if let Some(alpha) = &mut self.alpha {
            let frac = self.marked as f64 / self.delivered.max(1) as f64;
            *alpha += GAIN * (frac - *alpha);
            if let Some(classic_ecn) = &mut self.classic_ecn {
                classic_ecn.on_round(ack.min_rtt);
            }
        }
        self.rounds = self.rounds.saturating_add(1);
        self.observed = Some(self.begin_round(ack));
        (self.delivered, self.marked) = (0, 0);
    }

    fn react_to_marks(&mut self, ack: &Ack) {
        if self.newly_marked == 0 || self.reduced.is_some() || self.window.in_fast_recovery() {
            return;
        }
        let prior = self.window.cwnd();
        let mut alpha = *self.alpha.get_or_insert(1.0);
        if let Some(classic_ecn) = &mut self.classic_ecn {
            alpha = classic_ecn.response(alpha);
            classic_ecn.on_reduction(prior);
        }
        self.reduced = Some(Reduced {
            round: self.begin_round(ack),
            prior,
        });
        self.window.reduce_in_place((1.0 - alpha / 2.0) * prior);
    }

    fn grow(&mut self, ack: &Ack) {
        let unmarked = ack.newly_acked.saturating_sub(self.newly_marked);
        let acked = self.window.slow_start(f64::from(unmarked), 1.0);
        let (cwnd, m) = (self.window.cwnd(), self.m());
        self.window.set(cwnd + acked / (m * m * cwnd));
    }

    /// Half of the window, or of what it was before a reduction for marks in this round; never more than the window.
    fn halved(&self) -> f64 {
        self.reduced
            .map_or(self.window.cwnd(), |reduced| reduced.prior)
            .min(2.0 * self.window.cwnd())
            / 2.0
    }
}

impl Controller for Prague {
    fn on_ecn_feedback(&mut self, feedback: &EcnFeedback) {
        self.newly_marked = feedback.marked;
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        self.in_flight = ack.in_flight;
        let may_grow = self.window.on_ack(ack);
        if self
            .reduced
            .is_some_and(|reduced| reduced.round.is_over(ack))
        {
            self.reduced = None;
        }
        if let Some(classic_ecn) = &mut self.classic_ecn {
            classic_ecn.on_ack(ack);
        }
        self.observe(ack);
        self.react_to_marks(ack);
        if may_grow {
            self.grow(ack);
        }
        self.newly_marked = 0;
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.halved());
        self.reduced = None;
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.halved());
        self.reduced = None;
    }

    fn on_established(&mut self, opening: &Opening) {
        self.mss_bytes = opening.mss_bytes;
        self.srtt = opening.srtt;
    }

    fn recovery_policy(&self) -> RecoveryPolicy {
        RecoveryPolicy::Controller
    }

    fn requires_pacing(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        if self.srtt == Time::ZERO || self.mss_bytes == 0 {
            return None;
        }
        let cwnd = self.window.cwnd();
        let is_far = cwnd < self.window.ssthresh() / 2.0;
        let gain = if is_far { SLOW_START_PACING } else { 1.0 };
        let bytes = gain * cwnd.max(f64::from(self.in_flight)) * f64::from(self.mss_bytes);
        Some(Rate::from_bytes_per_second(bytes / self.srtt.seconds()))
    }

    fn pacing_shift(&self) -> u32 {
        PACING_SHIFT
    }

    fn min_tso_segs(&self) -> u32 {
        1
    }

    delegate_to_window!();
}

#[cfg(test)]
mod tests;
