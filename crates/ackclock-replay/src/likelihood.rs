//! How well a replayed window fits the seen one.
//!
//! Once a round trip, the mean of the windows seen stands beside the mean of those that the controller allowed, over the
//! acknowledgements of the round trip with which something left: where nothing leaves, a batch waits, and the window is
//! not used. So it tells too with which of them a window grew, by which Reno in whole segments is another than Reno in
//! fractions. A loss cuts a round trip short, which counts as far as it went: where losses are frequent there are no others.
//! While losses are repaired, what was lost holds the sender back and not the controller; while a window comes down for
//! marks, it has done so by the third round trip. What they differ by is taken as a share, half a segment
//! added to both as windows are whole.
//! These errors are Cauchy's with a scale of their own for each controller (fitted by maximum likelihood): a replay is
//! exact for most of the time and quite wrong where it missed something, which a normal law would not forgive.
//! Errors of neighbouring rounds are not independent: a round counts as [`WEIGHT`] of an observation.

use ackclock_core::Time;

use crate::replay::Allowed;
use crate::series::{Phase, Series, Signal};

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// When it ended.
    pub end: Time,
    /// The mean of the windows seen in it, segments.
    pub seen: f64,
    /// The mean of what the controller allowed.
    pub allowed: f64,
}

impl Round {
    /// The logarithm of allowed by seen.
    pub fn error(&self) -> f64 {
        ((self.allowed + 0.5) / (self.seen + 0.5)).ln()
    }
}

/// A round trip that is not over: sums over its acknowledgements.
#[derive(Clone, Copy, Debug)]
struct Sums {
    end: Time,
    steps: f64,
    seen: f64,
    allowed: f64,
}

impl Sums {
    fn round(self) -> Round {
        Round {
            end: self.end,
            seen: self.seen / self.steps,
            allowed: self.allowed / self.steps,
        }
    }
}

/// The rounds of a flow with the windows seen alone.
pub fn windows(series: &Series) -> Vec<Round> {
    let nothing = Some(Allowed {
        cwnd: 0.0,
        in_flight: 0.0,
    });
    rounds(series, &vec![nothing; series.steps.len()])
}

/// The rounds of a flow in which the window was the controller's, from the opening to the end.
pub fn rounds(series: &Series, course: &[Option<Allowed>]) -> Vec<Round> {
    let mut rounds = Rounds::default();
    rounds.advance(series, course);
    rounds.found
}

/// The same of a course that goes on.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// Those that are over.
    pub found: Vec<Round>,
    steps: usize,
    unacknowledged: u64,
    end: u64,
    /// The window comes down for marks, and for nothing that is lost.
    marked: bool,
    /// It did so when the round trip began, or the one before.
    reduced: bool,
    sums: Option<Sums>,
}

impl Rounds {
    /// Looks at what was added to the course.
    pub fn advance(&mut self, series: &Series, course: &[Option<Allowed>]) {
        for (step, allowed) in series.steps.iter().zip(course).skip(self.steps) {
            self.unacknowledged += u64::from(step.advanced);
            if step.signal.is_some() || step.phase == Phase::Open {
                self.marked = step.signal == Some(Signal::Mark);
            }
            let settled = step.phase == Phase::Open || (self.marked && self.reduced);
            let allowed =
                allowed.filter(|_| settled && step.signal.is_none() && !step.limited_elsewhere);
            if self.unacknowledged >= self.end {
                self.reduced = self.marked && step.signal.is_none();
                let over = self.round();
                self.found.extend(over);
                let sent = step.window.saturating_sub(step.in_flight);
                self.end = self.unacknowledged + u64::from(step.outstanding) + u64::from(sent);
                self.sums = allowed.map(|_| Sums {
                    end: step.time,
                    steps: 0.0,
                    seen: 0.0,
                    allowed: 0.0,
                });
            }
            let Some(allowed) = allowed else {
                let cut_short = self.round().filter(|_| step.signal.is_some());
                self.found.extend(cut_short);
                continue;
            };
            if let Some(sums) = self.sums.as_mut().filter(|_| step.window > step.in_flight) {
                sums.end = step.time;
                sums.steps += 1.0;
                sums.seen += f64::from(step.window);
                sums.allowed += allowed.in_flight;
            }
        }
        self.steps = course.len();
    }

    /// The round trip so far, if anything left in it.
    fn round(&mut self) -> Option<Round> {
        let sums = self.sums.take()?;
        (sums.steps > 0.0).then(|| sums.round())
    }
}

/// How much of an independent observation a round is: what is wrong after a loss stays wrong until the next one, and
/// an epoch has ten rounds and more.
pub const WEIGHT: f64 = 0.1;

/// The least scale of errors: what whole segments and the order within a round leave of an exact replay.
pub const LEAST_SCALE: f64 = 0.01;

/// A scale of errors and the logarithm of their likelihood with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The scale of the Cauchy law: half of the errors are smaller.
    pub scale: f64,
    /// Logarithm of the likelihood of all errors.
    pub log_likelihood: f64,
    /// Rounds.
    pub rounds: usize,
}

/// Scales from which the best one is taken: steps of a fifth are finer than a fit of dozens of rounds is sure.
fn scales() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(LEAST_SCALE), |scale| Some(scale * 1.2))
        .take_while(|&scale| scale < 4.0)
}

/// Fits the scale of the errors.
pub fn fit(rounds: &[Round]) -> Fit {
    let errors: Vec<f64> = rounds.iter().map(Round::error).collect();
    let mut best = Fit {
        scale: LEAST_SCALE,
        log_likelihood: f64::NEG_INFINITY,
        rounds: errors.len(),
    };
    for scale in scales() {
        let log_likelihood = log_likelihood(&errors, scale);
        if log_likelihood > best.log_likelihood {
            best.scale = scale;
            best.log_likelihood = log_likelihood;
        }
    }
    best
}

/// What the logarithm of the likelihood can be at most, with so many rounds more: those without any error.
pub fn bound(rounds: &[Round], more: usize) -> f64 {
    bounds(rounds, more).fold(f64::NEG_INFINITY, f64::max)
}

/// Whether it can be `least`; if not, what it is at most.
///
/// # Errors
/// The bound, which is less.
pub fn reaches(rounds: &[Round], more: usize, least: f64) -> Result<(), f64> {
    let mut most = f64::NEG_INFINITY;
    for bound in bounds(rounds, more) {
        most = most.max(bound);
        if most >= least {
            return Ok(());
        }
    }
    Err(most)
}

/// The bound for each scale.
fn bounds(rounds: &[Round], more: usize) -> impl Iterator<Item = f64> {
    let errors: Vec<f64> = rounds.iter().map(Round::error).collect();
    scales().map(move |scale| {
        log_likelihood(&errors, scale) + more as f64 * log_likelihood(&[0.0], scale)
    })
}

/// Logarithm of Cauchy's likelihood of `errors`.
fn log_likelihood(errors: &[f64], scale: f64) -> f64 {
    let each = |error: &f64| {
        let ratio = error / scale;
        -(std::f64::consts::PI * scale * (1.0 + ratio * ratio)).ln()
    };
    WEIGHT * errors.iter().map(each).sum::<f64>()
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // the same sums
mod tests {
    use super::*;
    use crate::series::Step;

    fn off_by(factor: f64) -> Vec<Round> {
        let round = |seen: u32| Round {
            end: Time::ZERO,
            seen: f64::from(seen),
            allowed: (f64::from(seen) + 0.5) * factor - 0.5,
        };
        (10..60).map(round).collect()
    }

    #[test]
    fn an_exact_replay_has_the_least_scale() {
        assert_eq!(fit(&off_by(1.0)).scale, LEAST_SCALE);
    }

    #[test]
    fn the_scale_is_that_of_the_errors() {
        let scale = fit(&off_by(1.2)).scale;
        // Cauchy's likelihood of equal errors is greatest where the scale is their size; steps are of a fifth.
        assert!((0.15..0.22).contains(&scale), "{scale}");
    }

    #[test]
    fn a_window_that_grows_with_another_acknowledgement_is_another() {
        let series = rounds_of_ten(|number, step| {
            step.window = if number % 10 < 6 { 10 } else { 11 };
        });
        let errors = |grows_at: u64| -> Vec<f64> {
            let allowed = |number: u64| Allowed {
                cwnd: 0.0,
                in_flight: if number % 10 < grows_at { 10.0 } else { 11.0 },
            };
            let course: Vec<_> = (0..60).map(|number| Some(allowed(number))).collect();
            rounds(&series, &course).iter().map(Round::error).collect()
        };
        assert!(errors(6).len() > 2);
        assert!(errors(6).iter().all(|&error| error == 0.0));
        assert!(errors(4).iter().all(|&error| error > 0.0));
    }

    /// Round trips of ten acknowledgements, with each of which a segment leaves; `change` has the number of each.
    fn rounds_of_ten(change: impl Fn(u64, &mut Step)) -> Series {
        let mut series = Series::default();
        for number in 0..60_u64 {
            let mut step = Step {
                time: Time::from_milliseconds(number),
                delivered: 1,
                advanced: 1,
                in_flight: 9,
                outstanding: 9,
                window: 10,
                ..Step::default()
            };
            change(number, &mut step);
            series.steps.push(step);
        }
        series
    }

    fn ends_ms(series: &Series) -> Vec<u64> {
        let found = windows(series);
        let ends = found
            .iter()
            .map(|round| (round.end.seconds() * 1e3).round() as u64);
        ends.collect()
    }

    #[test]
    fn a_loss_cuts_a_round_trip_short_which_counts() {
        let whole = ends_ms(&rounds_of_ten(|_, _| {}));
        assert_eq!(whole, [9, 19, 29, 39, 49]);
        let cut = rounds_of_ten(|number, step| {
            step.signal = (number == 14).then_some(Signal::Loss);
            if (14..20).contains(&number) {
                step.phase = Phase::Recovery;
            }
        });
        assert_eq!(ends_ms(&cut), [9, 13, 29, 39, 49]);
    }

    #[test]
    fn a_window_is_compared_where_something_leaves() {
        let batches = rounds_of_ten(|number, step| {
            if number % 2 == 0 {
                (step.in_flight, step.window) = (8, 8);
            }
        });
        let found = windows(&batches);
        assert!(found.len() > 2);
        assert!(found.iter().all(|round| round.seen == 10.0));
    }

    #[test]
    fn a_repair_is_not_compared_and_a_reaction_to_marks_is_once_the_window_has_come_down() {
        let repaired = |signal| {
            let series = rounds_of_ten(|number, step| {
                step.signal = (number == 10).then_some(signal);
                if number >= 10 {
                    step.phase = Phase::Recovery;
                }
            });
            ends_ms(&series)
        };
        assert_eq!(repaired(Signal::Loss), [9]);
        assert_eq!(repaired(Signal::Mark), [9, 39, 49]);
    }

    #[test]
    fn a_bound_on_the_first_rounds_is_one() {
        let all = [off_by(1.3), off_by(1.02)].concat();
        let whole = fit(&all).log_likelihood;
        let bounds: Vec<f64> = (0..=all.len())
            .map(|first| bound(&all[..first], all.len() - first))
            .collect();
        assert!(bounds.is_sorted_by(|before, after| before >= after));
        assert!(bounds.iter().all(|&bound| bound >= whole));
        assert_eq!(bounds.last(), Some(&whole));
        for (first, &most) in bounds.iter().enumerate() {
            let reaches = |least| reaches(&all[..first], all.len() - first, least);
            assert_eq!(reaches(most), Ok(()));
            assert_eq!(reaches(most + 1e-9), Err(most));
        }
    }

    #[test]
    fn a_closer_replay_is_likelier() {
        let likelihood = |factor| fit(&off_by(factor)).log_likelihood;
        assert!(likelihood(1.05) > likelihood(1.3));
        assert!(likelihood(1.0 / 1.05) > likelihood(1.0 / 1.3));
    }
}
