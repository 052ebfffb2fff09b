//! ABCC: a rate that is predicted from the spacing of ACKs and then follows a Vegas-like law.
//!
//! Le Thi Lan Huong: Congestion Control in Cloud Datacenter by Bandwidth Adaptation, master's thesis, National
//! Chiao Tung University, 2011, chapter 4.
//!
//! ```text
//!                 n groups measured: R from (4.1), (4.2)
//!   Prediction ──────────────────────────────────────────▶ Paced     each round trip (4.3), each loss (4.4)
//!   slow start ◀────────────────────────────────────────── at R
//!                               timeout
//! ```
//!
//! (4.3), the backlog (RTT − RTTmin) R kept at α:  R ← R + (α − (RTT − RTTmin) R) β/RTT
//! (4.4), δ from 8 (shortest RTT) to 2 (longest):  R ← R (1 − 1/δ)
//!
//! Deviations and what the thesis leaves open, here decided:
//! - n, the group sizes (x, y), α, β and γ have no values in the thesis; the algorithm spec gives the source of ours.
//! - D in (4.1) is what arrives after the group's first ACK: N segments leave N − 1 gaps. `count_first` takes
//!   all N, as the thesis writes it, which is too much by 1/(N − 1).
//! - The groups are runs of ACKs within one flight of slow start, as far apart as a further random size, and not
//!   bursts of their own beside it. A group that a flight's end cuts off is begun anew.
//! - (4.3) is applied once per round trip; the thesis has no interval. RTT is the latest sample.
//! - γ: a backlog below it is taken for an idle path and (4.3) may raise R; from γ on R is not raised. The thesis
//!   has this sentence once with the sign turned round. With γ ≥ α (4.3) alone decides.
//! - R is not raised by a sender that has less than half a round trip's worth in flight (RFC 7661 in spirit).
//! - 1/δ is interpolated linearly in the RTT, as the thesis gives only its ends; where all RTTs were equal it is 1/2.
//! - A loss during prediction halves the window (RFC 5681) and the measurement begins again: R is still 0.
//! - The window is a cap: twice what the equilibrium has in flight, R RTTmin + α, so that it does not
//!   bind near the equilibrium and an R far too high fills no more than that; and no more than 16 times what
//!   was ever delivered in a round trip, as bunched ACKs predict any rate. ECN marks count as losses.

use ackclock_core::{Rate, Time};
use serde::Deserialize;
use serde_json::Value;

use super::window::Window;
use super::{require, Ack, Controller, Loss, Made, Opening, PriorWindow, Restart};

mod prediction;

use prediction::Prediction;

/// The share of R that is given up at a loss at the shortest and at the longest RTT (section 4.3).
const MIN_DECREASE: f64 = 1.0 / 8.0;
const MAX_DECREASE: f64 = 1.0 / 2.0;
/// The window's cap, in what the equilibrium has in flight.
const CAP_GAIN: f64 = 2.0;
/// The cap is no more than so often what was ever delivered in a round trip: ACKs that arrive bunched predict
/// any rate, and what is in flight would follow it.
const TRUST: f64 = 16.0;
/// Least window: two segments and an ACK delayed for two.
const MIN_WINDOW: f64 = 4.0;
/// While no rate is known the sender is not paced: a rate that no link has.
const UNPACED: Rate = Rate::from_bits_per_second(1e18);

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Backlog that (4.3) aims at, in segments.
    alpha: f64,
    /// Share of the gap to α that (4.3) closes in a round trip.
    beta: f64,
    /// Backlog from which on R is not raised, in segments.
    gamma: f64,
    /// Groups to measure: n.
    groups: u32,
    /// Least and most packets in a group: x, y.
    group_min: u32,
    group_max: u32,
    /// True if D counts the group's first packet.
    count_first: bool,
}

/// RTTs seen so far.
#[derive(Clone, Copy, Debug)]
struct Rtts {
    min: Time,
    max: Time,
    latest: Time,
}

#[derive(Clone, Debug)]
enum State {
    /// R = 0: slow start, and the spacing of ACKs is measured.
    Predicting(Prediction),
    /// R in payload bytes per second; (4.3) is due when all below `round_end` is acknowledged.
    Paced { rate: f64, round_end: u64 },
}

/// An ABCC sender.
#[derive(Clone, Debug)]
struct Abcc {
    parameters: Parameters,
    state: State,
    /// The window of slow start, before R is known.
    window: Window,
    rtts: Option<Rtts>,
    /// The most segments that were ever delivered in a round trip.
    max_delivered: u64,
    mss_bytes: f64,
    seed: u64,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than those of the algorithm spec, or such that make no sense.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    Ok(Box::new(Abcc::new(parameters, initial_window)?))
}

impl Parameters {
    fn read(parameters: &Value) -> Result<Parameters, serde_json::Error> {
        let read = Parameters::deserialize(parameters)?;
        let positive = |value: f64| value.is_finite() && value > 0.0;
        require(positive(read.alpha), "alpha must be above 0")?;
        require(positive(read.gamma), "gamma must be above 0")?;
        require(
            positive(read.beta) && read.beta <= 1.0,
            "beta must be above 0 and at most 1",
        )?;
        require(read.groups > 0, "groups must be at least 1")?;
        require(read.group_min >= 2, "group_min must be at least 2")?;
        require(
            read.group_max >= read.group_min,
            "group_max must be at least group_min",
        )?;
        Ok(read)
    }
}

impl Abcc {
    fn new(parameters: &Value, initial_window: f64) -> Result<Abcc, serde_json::Error> {
        let parameters = Parameters::read(parameters)?;
        Ok(Abcc {
            parameters,
            state: State::Predicting(Prediction::new(&parameters, 0)),
            window: Window::new(initial_window),
            rtts: None,
            max_delivered: 0,
            mss_bytes: 1.0,
            seed: 0,
        })
    }

    fn predict_anew(&mut self) {
        // Another seed for each prediction, or a second one would draw the same groups.
        self.seed = self.seed.wrapping_add(1);
        self.state = State::Predicting(Prediction::new(&self.parameters, self.seed));
    }

    fn observe_rtt(&mut self, rtt: Time) {
        let (min, max) = self
            .rtts
            .map_or((rtt, rtt), |rtts| (rtts.min.min(rtt), rtts.max.max(rtt)));
        self.rtts = Some(Rtts {
            min,
            max,
            latest: rtt,
        });
    }

    /// (4.3), with γ and the condition that the rate is used.
    fn updated_rate(&self, rate: f64, rtts: &Rtts, ack: &Ack) -> f64 {
        let alpha = self.parameters.alpha * self.mss_bytes;
        let gamma = self.parameters.gamma * self.mss_bytes;
        let rtt = rtts.latest.seconds().max(1e-9);
        let backlog = backlog(rate, rtts);
        let change = (alpha - backlog) * self.parameters.beta / rtt;
        let in_flight = f64::from(ack.prior_in_flight) * self.mss_bytes;
        let may_rise = backlog < gamma && in_flight >= rate * rtt / 2.0;
        let change = if may_rise { change } else { change.min(0.0) };
        // A segment in a round trip is the least that can be sent.
        (rate + change).max(self.mss_bytes / rtt)
    }

    /// Segments of the cap: twice R RTTmin + α, within what is to be trusted.
    fn cap(&self, rate: f64) -> f64 {
        let min = self.rtts.map_or(0.0, |rtts| rtts.min.seconds());
        let equilibrium = rate * min / self.mss_bytes + self.parameters.alpha;
        let trusted = TRUST * self.max_delivered as f64;
        (CAP_GAIN * equilibrium).min(trusted).max(MIN_WINDOW)
    }
}

/// (RTT − RTTmin) R: what of this sender's waits in queues.
fn backlog(rate: f64, rtts: &Rtts) -> f64 {
    rtts.latest.since(rtts.min).seconds() * rate
}

/// 1/δ: from 1/8 at the shortest RTT, linearly, to 1/2 at the longest.
fn decrease(rtts: Option<Rtts>) -> f64 {
    let place = rtts.map_or(1.0, |rtts| {
        let range = rtts.max.since(rtts.min).seconds();
        if range > 0.0 {
            rtts.latest.since(rtts.min).seconds() / range
        } else {
            1.0
        }
    });
    MIN_DECREASE + place * (MAX_DECREASE - MIN_DECREASE)
}

impl Controller for Abcc {
    fn on_established(&mut self, opening: &Opening) {
        self.mss_bytes = f64::from(opening.mss_bytes);
        self.seed = opening.seed;
        self.predict_anew();
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.observe_rtt(rtt);
        }
        let delivered = ack.delivered - ack.prior_delivered;
        self.max_delivered = self.max_delivered.max(delivered);
        let undisturbed = !ack.recovering && !ack.in_loss;
        match &mut self.state {
            State::Predicting(prediction) => {
                let predicted = if ack.may_raise_cwnd && undisturbed {
                    prediction.observe(ack)
                } else {
                    None
                };
                if self.window.on_ack(ack) {
                    self.window.grow_as_reno(ack.newly_acked);
                }
                if let Some(rate) = predicted {
                    self.state = State::Paced {
                        rate,
                        round_end: ack.next,
                    };
                }
            }
            State::Paced { round_end, .. } if !undisturbed => *round_end = ack.next,
            &mut State::Paced { rate, round_end } => {
                if let (true, Some(rtts)) = (ack.unacknowledged > round_end, self.rtts) {
                    self.state = State::Paced {
                        rate: self.updated_rate(rate, &rtts, ack),
                        round_end: ack.next,
                    };
                }
            }
        }
    }

    /// (4.4).
    fn on_loss(&mut self, _loss: &Loss) {
        let decrease = decrease(self.rtts);
        if let State::Paced { rate, .. } = &mut self.state {
            *rate *= 1.0 - decrease;
            return;
        }
        self.window.reduce(self.window.cwnd() / 2);
        self.predict_anew();
    }

    fn on_timeout(&mut self, _now: Time, in_flight: u32) {
        self.window.restart(in_flight / 2);
        self.predict_anew();
    }

    fn undo(&mut self, before: &PriorWindow) {
        if matches!(self.state, State::Predicting(_)) {
            self.window.undo(before);
        }
    }

    fn on_restart(&mut self, restart: &Restart) {
        if matches!(self.state, State::Predicting(_)) {
            self.window.restart_after_idle(restart);
        }
    }

    fn cwnd(&self) -> f64 {
        match self.state {
            State::Predicting(_) => f64::from(self.window.cwnd()),
            State::Paced { rate, .. } => self.cap(rate),
        }
    }

    fn ssthresh(&self) -> f64 {
        self.window.ssthresh()
    }

    fn requires_pacing(&self) -> bool {
        true
    }

    fn pacing_rate(&self) -> Option<Rate> {
        Some(match self.state {
            State::Predicting(_) => UNPACED,
            State::Paced { rate, .. } => Rate::from_bytes_per_second(rate),
        })
    }
}

#[cfg(test)]
mod tests;
