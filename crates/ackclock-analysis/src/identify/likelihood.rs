//! The likelihood of an observed window, given a replayed one.
//!
//! Once a round trip, the mean of the observed windows is compared with the mean of those that the controller allowed,
//! over the acknowledgements of the round trip with which something left: where nothing leaves, a batch waits, and the
//! window is not used. So it also distinguishes which of them a window grew with, by which Reno in whole segments is
//! another than Reno in fractions. A loss cuts a round trip short, which counts as far as it went: where losses are
//! frequent there are no others. During recovery the losses hold the sender back, not the controller; while a window
//! comes down for marks, it has done so by the third round trip. What they differ by is taken as a share, half a
//! segment added to both as windows are whole. These errors are Cauchy's with a scale of their own for each controller
//! (fitted by maximum likelihood): a replay is exact for most of the time and quite wrong where it missed something,
//! which a normal law would not forgive. Errors of neighbouring rounds are not independent: a round counts as
//! [`WEIGHT`] of an observation.

use ackclock_core::Time;

use crate::identify::replay::Allowed;
use crate::identify::series::{CaState, Series, Signal};

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// When it ended.
    pub end: Time,
    /// The mean of the windows seen in it, segments.
    pub observed: f64,
    /// The mean of what the controller allowed.
    pub allowed: f64,
}

impl Round {
    /// The logarithm of allowed by seen.
    pub fn error(&self) -> f64 {
        ((self.allowed + 0.5) / (self.observed + 0.5)).ln()
    }
}

/// A round trip that is not over: sums over its acknowledgements.
#[derive(Clone, Copy, Debug)]
struct Sums {
    end: Time,
    samples: f64,
    observed: f64,
    allowed: f64,
}

impl Sums {
    fn round(self) -> Round {
        Round {
            end: self.end,
            observed: self.observed / self.samples,
            allowed: self.allowed / self.samples,
        }
    }
}

/// The rounds of a flow with the windows seen alone.
pub fn windows(series: &Series) -> Vec<Round> {
    let nothing = Some(Allowed {
        cwnd: 0.0,
        in_flight: 0.0,
    });
    rounds(series, &vec![nothing; series.samples.len()])
}

/// The rounds of a flow in which the window was the controller's, from the opening to the end.
pub fn rounds(series: &Series, course: &[Option<Allowed>]) -> Vec<Round> {
    let mut rounds = Rounds::default();
    rounds.advance(series, course);
    rounds.matched
}

/// The same of a course that goes on.
#[derive(Clone, Debug, Default)]
pub struct Rounds {
    /// The finished rounds.
    pub matched: Vec<Round>,
    samples: usize,
    unacknowledged: u64,
    end: u64,
    /// The window comes down for marks, and for nothing that is lost.
    marked: bool,
    /// It did so when the round trip began, or the one before.
    reduced: bool,
    sums: Option<Sums>,
}

impl Rounds {
    /// Process what was added to the course.
    pub fn advance(&mut self, series: &Series, course: &[Option<Allowed>]) {
        for (sample, allowed) in series.samples.iter().zip(course).skip(self.samples) {
            self.unacknowledged += u64::from(sample.advanced);
            if sample.signal.is_some() || sample.ca_state == CaState::Open {
                self.marked = sample.signal == Some(Signal::Mark);
            }
            let settled = sample.ca_state == CaState::Open || (self.marked && self.reduced);
            let allowed =
                allowed.filter(|_| settled && sample.signal.is_none() && !sample.not_cwnd_limited);
            if self.unacknowledged >= self.end {
                self.reduced = self.marked && sample.signal.is_none();
                let over = self.round();
                self.matched.extend(over);
                let sent = sample.window.saturating_sub(sample.in_flight);
                self.end = self.unacknowledged + u64::from(sample.outstanding) + u64::from(sent);
                self.sums = allowed.map(|_| Sums {
                    end: sample.time,
                    samples: 0.0,
                    observed: 0.0,
                    allowed: 0.0,
                });
            }
            let Some(allowed) = allowed else {
                let ended_round = self.round().filter(|_| sample.signal.is_some());
                self.matched.extend(ended_round);
                continue;
            };
            if let Some(sums) = self
                .sums
                .as_mut()
                .filter(|_| sample.window > sample.in_flight)
            {
                sums.end = sample.time;
                sums.samples += 1.0;
                sums.observed += f64::from(sample.window);
                sums.allowed += allowed.in_flight;
            }
        }
        self.samples = course.len();
    }

    /// The round trip so far, if anything left in it.
    fn round(&mut self) -> Option<Round> {
        let sums = self.sums.take()?;
        (sums.samples > 0.0).then(|| sums.round())
    }
}

/// The weight of a round as an independent observation: errors persist from one loss to the next, and an epoch has ten
/// rounds and more.
pub const WEIGHT: f64 = 0.1;

/// The least scale of errors: what whole segments and the order within a round leave of an exact replay.
pub const MIN_SCALE: f64 = 0.01;

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

/// Scales to choose the best from: steps of a fifth are finer than a fit to dozens of rounds can resolve.
fn scales() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(MIN_SCALE), |scale| Some(scale * 1.2))
        .take_while(|&scale| scale < 4.0)
}

/// Fit the scale of the errors.
pub fn fit(rounds: &[Round]) -> Fit {
    let errors: Vec<f64> = rounds.iter().map(Round::error).collect();
    let mut best = Fit {
        scale: MIN_SCALE,
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

/// Return an upper bound of the log likelihood with `more` rounds to come, without any error.
pub fn bound(rounds: &[Round], more: usize) -> f64 {
    bounds(rounds, more).fold(f64::NEG_INFINITY, f64::max)
}

/// Check whether the log likelihood can still reach `least`; return its bound if not.
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
    use crate::identify::series::AckSample;

    fn off_by(factor: f64) -> Vec<Round> {
        let round = |observed: u32| Round {
            end: Time::ZERO,
            observed: f64::from(observed),
            allowed: (f64::from(observed) + 0.5) * factor - 0.5,
        };
        (10..60).map(round).collect()
    }

    #[test]
    fn an_exact_replay_has_the_minimum_scale() {
        assert_eq!(fit(&off_by(1.0)).scale, MIN_SCALE);
    }

    #[test]
    fn the_scale_is_that_of_the_errors() {
        let scale = fit(&off_by(1.2)).scale;
        // Cauchy's likelihood of equal errors is greatest where the scale is their size; steps are of a fifth.
        assert!((0.15..0.22).contains(&scale), "{scale}");
    }

    #[test]
    fn a_window_that_grows_with_another_acknowledgement_is_another() {
        let series = rounds_of_ten(|number, sample| {
            sample.window = if number % 10 < 6 { 10 } else { 11 };
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
    fn rounds_of_ten(change: impl Fn(u64, &mut AckSample)) -> Series {
        let mut series = Series::default();
        for number in 0..60_u64 {
            let mut sample = AckSample {
                time: Time::from_milliseconds(number),
                delivered: 1,
                advanced: 1,
                in_flight: 9,
                outstanding: 9,
                window: 10,
                ..AckSample::default()
            };
            change(number, &mut sample);
            series.samples.push(sample);
        }
        series
    }

    fn ends_ms(series: &Series) -> Vec<u64> {
        let matched = windows(series);
        let ends = matched
            .iter()
            .map(|round| (round.end.seconds() * 1e3).round() as u64);
        ends.collect()
    }

    #[test]
    fn a_loss_cuts_a_round_trip_short_which_counts() {
        let whole = ends_ms(&rounds_of_ten(|_, _| {}));
        assert_eq!(whole, [9, 19, 29, 39, 49]);
        let cut = rounds_of_ten(|number, sample| {
            sample.signal = (number == 14).then_some(Signal::Loss);
            if (14..20).contains(&number) {
                sample.ca_state = CaState::Recovery;
            }
        });
        assert_eq!(ends_ms(&cut), [9, 13, 29, 39, 49]);
    }

    #[test]
    fn windows_are_compared_when_segments_depart() {
        let batches = rounds_of_ten(|number, sample| {
            if number % 2 == 0 {
                (sample.in_flight, sample.window) = (8, 8);
            }
        });
        let matched = windows(&batches);
        assert!(matched.len() > 2);
        assert!(matched.iter().all(|round| round.observed == 10.0));
    }

    #[test]
    fn recovery_is_not_compared_and_a_mark_reaction_after_its_reduction_is() {
        let repaired = |signal| {
            let series = rounds_of_ten(|number, sample| {
                sample.signal = (number == 10).then_some(signal);
                if number >= 10 {
                    sample.ca_state = CaState::Recovery;
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
