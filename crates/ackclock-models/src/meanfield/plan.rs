//! Plan of a run, as JSON. Each field is required, an unknown one is an error.

use serde::Deserialize;
use thiserror::Error;

use super::law::{Control, Mode};
use super::policy::Policy;

/// A run of the model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Length of the run.
    pub duration_s: f64,
    /// Totals count from here on.
    pub warmup_s: f64,
    /// Time between samples.
    pub interval_s: f64,
    /// Longest step; `null`: a 25th of the shortest base RTT.
    #[serde(deserialize_with = "Option::deserialize")]
    pub step_s: Option<f64>,
    /// Rate of the bottleneck in packets per second.
    pub rate_pps: f64,
    /// Packets that may wait.
    pub buffer_p: f64,
    /// Policy of drops besides overflow.
    pub policy: Policy,
    /// Flows that are alike.
    pub classes: Vec<ClassPlan>,
    /// True if a flow reduces at most every round trip.
    pub one_reduction_per_rtt: bool,
    /// True if losing takes time: a lost packet clocks nothing until it is detected, and windows rest for the
    /// round trip of its recovery.
    pub recovery: bool,
    /// ρ: number of independent losses for which a lost packet counts; 1 is uniform over packets.
    pub loss_weight: f64,
    /// γ: exponent of the rates by which losses go to flows; 1 is uniform over packets.
    pub loss_rate_exponent: f64,
    /// True if each flow is a particle; else the limit of infinitely many.
    pub particles: bool,
    /// The window of the loss after which flows begin; `null`: a flow's share of what link and buffer hold.
    #[serde(deserialize_with = "Option::deserialize")]
    pub first_loss_p: Option<f64>,
    /// Scale: the model runs at 1/`scale` of the rate and the buffer, and its results are scaled up.
    pub scale: f64,
}

/// Flows of one control and one base RTT.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassPlan {
    /// Their numbers in the dataset; how many there are is the class's weight.
    pub flows: Vec<u32>,
    /// Round-trip time without waiting.
    pub base_rtt_s: f64,
    /// Their congestion control.
    pub control: Control,
    /// Their slow start; `null`: they begin just after a loss.
    #[serde(deserialize_with = "Option::deserialize")]
    pub opening: Option<Opening>,
}

/// Initial slow start of flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Opening {
    /// Times at which equal shares of the flows begin.
    pub starts_s: Vec<f64>,
    /// Window at first.
    pub window_p: f64,
    /// A wait in the queue that ends it (the delay increase of `HyStart`); `null`: only a loss does.
    #[serde(deserialize_with = "Option::deserialize")]
    pub leave_delay_s: Option<f64>,
}

impl Opening {
    fn is_sound(&self) -> bool {
        let starts = &self.starts_s;
        !starts.is_empty()
            && starts
                .iter()
                .all(|time_s| *time_s >= 0.0 && time_s.is_finite())
            && self.window_p > 0.0
            && self.window_p.is_finite()
            && self.leave_delay_s.is_none_or(|delay_s| delay_s > 0.0)
    }
}

/// Factors from what is run to what is meant: of windows and backlogs, and of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// α.
    pub amount: f64,
    /// α in TCP mode, its cube root in cubic mode.
    pub time: f64,
}

/// A plan that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// Shares of a step in the shortest base RTT.
const STEPS_PER_RTT: f64 = 25.0;

impl Plan {
    /// Reject what is not a network.
    ///
    /// # Errors
    /// A number that is not positive and finite, or no flows.
    pub fn check(&self) -> Result<(), PlanError> {
        let positive = [
            ("duration_s", self.duration_s),
            ("interval_s", self.interval_s),
            ("step_s", self.step_s.unwrap_or(1.0)),
            ("rate_pps", self.rate_pps),
            ("buffer_p", self.buffer_p),
            ("first_loss_p", self.first_loss_p.unwrap_or(1.0)),
            ("scale", self.scale),
            ("loss_weight", self.loss_weight),
        ];
        let rtts = self
            .classes
            .iter()
            .map(|class| ("base_rtt_s", class.base_rtt_s));
        for (name, value) in positive.into_iter().chain(rtts) {
            if !(value > 0.0 && value.is_finite()) {
                return Err(PlanError(format!(
                    "{name}: found {value}; expected a positive number"
                )));
            }
        }
        if !(-20.0..=20.0).contains(&self.loss_rate_exponent) {
            return Err(PlanError(format!(
                "loss_rate_exponent: found {}; expected -20 to 20",
                self.loss_rate_exponent
            )));
        }
        if !(0.0..self.duration_s).contains(&self.warmup_s) {
            return Err(PlanError(format!(
                "warmup_s: found {}; expected 0 to the duration",
                self.warmup_s
            )));
        }
        if self.classes.is_empty() || self.classes.iter().any(|class| class.flows.is_empty()) {
            return Err(PlanError(
                "classes: found one without flows; expected flows".to_owned(),
            ));
        }
        self.scaling()?;
        self.check_parameters()
    }

    /// Scaling of results at 1/`scale` to those of the plan (Belhareth 2014, section 3.3.2).
    ///
    /// # Errors
    /// A scale other than 1 for flows that do not all follow the same single curve, with early drops
    /// or with slow start.
    pub fn scaling(&self) -> Result<Scaling, PlanError> {
        if self.scale == 1.0 {
            return Ok(Scaling {
                amount: 1.0,
                time: 1.0,
            });
        }
        let all =
            |wanted: fn(&Control) -> bool| self.classes.iter().all(|class| wanted(&class.control));
        let time = if all(|control| {
            matches!(
                control,
                Control::Reno {}
                    | Control::Cubic {
                        mode: Mode::Tcp,
                        ..
                    }
            )
        }) {
            self.scale
        } else if all(|control| {
            matches!(
                control,
                Control::Cubic {
                    mode: Mode::Cubic,
                    ..
                }
            )
        }) {
            self.scale.cbrt()
        } else {
            return Err(PlanError(
                "scale: found flows of several modes; expected mode \"cubic\" or \"tcp\""
                    .to_owned(),
            ));
        };
        if self.classes.iter().any(|class| class.opening.is_some()) {
            return Err(PlanError(
                "scale: found slow start; expected flows that begin after a loss".to_owned(),
            ));
        }
        if !matches!(self.policy, Policy::Droptail {}) {
            return Err(PlanError(
                "scale: found a queue that drops early; expected a tail-drop queue".to_owned(),
            ));
        }
        Ok(Scaling {
            amount: self.scale,
            time,
        })
    }

    /// The plan that is run in the place of this one.
    #[must_use]
    pub fn scaled_down(&self, by: Scaling) -> Plan {
        Plan {
            duration_s: self.duration_s / by.time,
            warmup_s: self.warmup_s / by.time,
            interval_s: self.interval_s / by.time,
            rate_pps: self.rate_pps / by.amount,
            buffer_p: self.buffer_p / by.amount,
            first_loss_p: self.first_loss_p.map(|window| window / by.amount),
            ..self.clone()
        }
    }

    fn check_parameters(&self) -> Result<(), PlanError> {
        self.policy.check().map_err(PlanError)?;
        for opening in self
            .classes
            .iter()
            .filter_map(|class| class.opening.as_ref())
        {
            if !opening.is_sound() {
                return Err(PlanError(format!(
                    "opening: found {opening:?}; expected times from 0 on, a window above 0"
                )));
            }
        }
        for class in &self.classes {
            if let Control::Cubic { c, beta, .. } = class.control {
                if !(c > 0.0 && c.is_finite() && beta > 0.0 && beta < 1.0) {
                    return Err(PlanError(format!(
                        "cubic: found c = {c}, beta = {beta}; expected c > 0, 0 < beta < 1"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Number of flows.
    pub fn flow_count(&self) -> usize {
        self.classes.iter().map(|class| class.flows.len()).sum()
    }

    /// Number of steps between samples, and their length.
    pub fn steps(&self) -> (u64, f64) {
        let shortest_s = self
            .classes
            .iter()
            .map(|class| class.base_rtt_s)
            .fold(f64::INFINITY, f64::min);
        let most_s = shortest_s / STEPS_PER_RTT;
        let longest_s = self.step_s.map_or(most_s, |step_s| step_s.min(most_s));
        let count = (self.interval_s / longest_s).ceil().max(1.0);
        (count as u64, self.interval_s / count)
    }

    /// The window of the loss after which the flows of a class begin.
    pub fn first_loss_p(&self, class: &ClassPlan) -> f64 {
        let flows = self.flow_count() as f64;
        let share_p = (self.rate_pps * class.base_rtt_s + self.buffer_p) / flows;
        self.first_loss_p.unwrap_or(share_p)
    }
}
