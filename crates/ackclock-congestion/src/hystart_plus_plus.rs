//! `HyStart++`: conservative slow start (CSS) between slow start and congestion avoidance.
//!
//! RFC 9406. When the smallest RTT of a round exceeds that of the round before by an eighth of it (4 to 16 ms), the
//! window goes on growing at a quarter of the pace. If the RTT falls below what it was at that moment, the increase was
//! jitter, and slow start resumes; otherwise it ends after five rounds.
//!
//! ```text
//!                 RTT ≥ last round's + threshold
//!   slow start ─────────────────────────────────▶ CSS ── 5 rounds ──▶ congestion avoidance
//!        ▲                                         │
//!        └──────────── RTT < baseline ─────────────┘                  (a loss or a mark leads there from both)
//! ```
//!
//! Only the slow start before the first loss uses it (section 4.3). Deviations: N counts segments and not bytes;
//! segments that do not make a whole one after the division count with the next ACK.

use ackclock_core::Time;

use super::detector::{Detector, Growth, Steer, View};
use super::round::Round;
use super::Ack;

// Section 4.3: the recommended values.
const MIN_RTT_THRESH: Time = Time::from_milliseconds(4);
const MAX_RTT_THRESH: Time = Time::from_milliseconds(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// L of a sender without pacing, in segments; with pacing it is infinite.
const L: u32 = 8;

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// `cssBaselineMinRtt`.
    baseline: Time,
    /// Rounds that have begun in it, the partial first one included.
    rounds: u32,
}

/// The state of `HyStart++`.
#[derive(Clone, Copy, Debug)]
pub struct HyStartPlusPlus {
    /// None before the first ACK.
    round: Option<Round>,
    /// `lastRoundMinRTT`.
    last_min: Time,
    css: Option<Css>,
}

impl Default for HyStartPlusPlus {
    fn default() -> HyStartPlusPlus {
        HyStartPlusPlus {
            round: None,
            last_min: Time::NEVER,
            css: None,
        }
    }
}

/// Return the growth of a sender that has left slow start, or not.
fn growth(paced: bool, css: bool) -> Steer {
    let limit = if paced { u32::MAX } else { L };
    Steer::Grow(Growth::new(limit, if css { CSS_GROWTH_DIVISOR } else { 1 }))
}

/// `RttThresh` for the smallest RTT of the last round.
fn rtt_thresh(last_min: Time) -> Time {
    Time::from_picoseconds(last_min.picoseconds() / MIN_RTT_DIVISOR)
        .clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

impl HyStartPlusPlus {
    /// Return true if the CSS round that ends is the last.
    fn end_round(&mut self, ended: &Round) -> bool {
        self.last_min = ended.min_rtt();
        self.css.as_mut().is_some_and(|css| {
            css.rounds += 1;
            css.rounds > CSS_ROUNDS
        })
    }

    /// Compare the round's smallest RTT; return the new growth if the phase changes.
    fn compare(&mut self, round: &Round, paced: bool) -> Option<Steer> {
        let current_min = round.min_rtt();
        if round.samples() < N_RTT_SAMPLE {
            return None;
        }
        let changes = match self.css {
            Some(css) => current_min < css.baseline,
            None => {
                self.last_min != Time::NEVER
                    && current_min >= self.last_min + rtt_thresh(self.last_min)
            }
        };
        changes.then(|| {
            self.css = self.css.is_none().then_some(Css {
                baseline: current_min,
                rounds: 1,
            });
            growth(paced, self.css.is_some())
        })
    }
}

impl Detector for HyStartPlusPlus {
    /// Section 4.2 updates the window first.
    const AFTER_GROWTH: bool = true;

    fn on_ack(&mut self, ack: &Ack, view: View) -> Option<Steer> {
        if !view.in_first_slow_start() {
            return None;
        }
        let first = self.round.is_none();
        let mut round = self.round.unwrap_or(Round::after(ack));
        if round.is_over(ack) {
            if self.end_round(&round) {
                return Some(Steer::Exit(view.cwnd));
            }
            round = Round::after(ack);
        }
        let mut steer = first.then(|| growth(ack.paced, false));
        if let Some(rtt) = ack.rtt {
            round.sample(rtt);
            steer = self.compare(&round, ack.paced).or(steer);
        }
        self.round = Some(round);
        steer
    }
}

#[cfg(test)]
mod tests;
