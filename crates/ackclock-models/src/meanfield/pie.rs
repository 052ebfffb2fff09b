//! PIE as a fluid queue sees it: a share of what arrives.
//!
//! R. Pan, P. Natarajan, F. Baker, G. White: Proportional Integral Controller Enhanced (PIE), RFC 8033, and as Linux
//! 6.1 where that differs: see the algorithm spec of `pie`. With derandomised drops (section 5.4) the share
//! is one over the mean number of arrivals from drop to drop.

use ackclock_core::pie::{ControlLaw, DECAY, FREE_PACKETS, HARMLESS, TOO_EARLY};
use serde::Deserialize;

/// Time of the first update of the drop probability, as in Linux.
const FIRST_UPDATE_S: f64 = 0.5;
/// PIE's parameters, as in its algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pie {
    /// Target delay.
    pub target_s: f64,
    /// Period of the updates.
    pub tupdate_s: f64,
    /// Weight of the delay's deviation from the target, in sixteenths of a hertz.
    pub alpha: f64,
    /// Weight of the delay's change since the last update, in sixteenths of a hertz.
    pub beta: f64,
    /// Time of dropping nothing when congestion begins.
    pub max_burst_s: f64,
    /// True if drops are kept apart.
    pub derandomize: bool,
}

impl Pie {
    /// True if target and period are positive, the burst allowance is not negative, and weights are those that `tc`
    /// takes.
    pub fn is_sound(&self) -> bool {
        let positive = |time_s: f64| time_s > 0.0 && time_s.is_finite();
        let weight = |weight: f64| (0.0..=32.0).contains(&weight);
        positive(self.target_s)
            && positive(self.tupdate_s)
            && (0.0..=100.0).contains(&self.max_burst_s)
            && weight(self.alpha)
            && weight(self.beta)
    }
}

/// State of PIE at a queue.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pie: Pie,
    probability: f64,
    delay_old_s: f64,
    burst_s: f64,
    update_s: f64,
}

impl State {
    /// A queue that has seen no packet.
    pub fn new(pie: Pie) -> State {
        State {
            pie,
            probability: 0.0,
            delay_old_s: 0.0,
            burst_s: pie.max_burst_s,
            update_s: FIRST_UPDATE_S,
        }
    }

    /// Return the share of what arrives in a step that is dropped, and update the state. The field calls it once a
    /// step, in order; `delay_s` and `backlog_p` are those of the queue now.
    pub fn dropped(&mut self, now_s: f64, step_s: f64, delay_s: f64, backlog_p: f64) -> f64 {
        while now_s >= self.update_s {
            self.update(delay_s);
            self.update_s += self.pie.tupdate_s;
        }
        let burst = self.burst_s > 0.0;
        if backlog_p > 0.0 {
            self.burst_s = (self.burst_s - step_s).max(0.0);
        }
        let harmless = delay_s < self.pie.target_s / 2.0 && self.probability < HARMLESS;
        if burst || harmless || backlog_p < f64::from(FREE_PACKETS) {
            return 0.0;
        }
        self.share()
    }

    /// Return one over the mean number of arrivals from drop to drop. The sum of p reaches 0.85 with the n-th packet,
    /// from which on each is dropped with p; that it is dropped for certain when the sum reaches 8.5 adds less than a
    /// thousandth.
    fn share(&self) -> f64 {
        if !self.pie.derandomize || self.probability == 0.0 {
            return self.probability;
        }
        let spared = (TOO_EARLY / self.probability).ceil() - 1.0;
        1.0 / (spared + 1.0 / self.probability)
    }

    fn update(&mut self, delay_s: f64) {
        let law = ControlLaw {
            target_s: self.pie.target_s,
            alpha: self.pie.alpha,
            beta: self.pie.beta,
        };
        let step = law.step(self.probability, delay_s, self.delay_old_s);
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        if delay_s == 0.0 && self.delay_old_s == 0.0 {
            self.probability *= DECAY;
        }
        let half_s = self.pie.target_s / 2.0;
        if self.probability == 0.0 && delay_s < half_s && self.delay_old_s < half_s {
            self.burst_s = self.pie.max_burst_s;
        }
        self.delay_old_s = delay_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIE: Pie = Pie {
        target_s: 0.015,
        tupdate_s: 0.015,
        alpha: 2.0,
        beta: 20.0,
        max_burst_s: 0.15,
        derandomize: true,
    };

    /// With p = 0.01 84 packets pass (the sum reaches 0.85 with the 85th), then one in a hundred on average.
    #[test]
    fn drops_that_are_kept_apart_are_fewer() {
        let state = State {
            probability: 0.01,
            ..State::new(PIE)
        };
        assert!((state.share() - 1.0 / 184.0).abs() < 1e-12);
        let by_lot = Pie {
            derandomize: false,
            ..PIE
        };
        let state = State {
            probability: 0.01,
            ..State::new(by_lot)
        };
        assert_eq!(state.share(), 0.01);
    }

    /// RFC 8033 section 4.2: α (delay − target) + β (delay − old delay), here over 16 and over 2048 at first.
    #[test]
    fn the_probability_moves_by_the_delay_and_its_change() {
        let mut state = State::new(PIE);
        state.update(0.025);
        let first = (2.0 * 0.01 + 20.0 * 0.025) / 16.0 / 2048.0;
        assert!((state.probability - first).abs() < 1e-15);
        state.probability = 0.5;
        state.update(0.025);
        assert!((state.probability - 0.5 - 2.0 * 0.01 / 16.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_dropped_in_a_burst_nor_from_a_short_queue() {
        let mut state = State {
            probability: 0.3,
            update_s: 9.0,
            ..State::new(PIE)
        };
        assert_eq!(state.dropped(1.0, 0.1, 0.02, 50.0), 0.0);
        assert_eq!(state.dropped(1.1, 0.1, 0.02, 50.0), 0.0);
        assert!(state.dropped(1.2, 0.1, 0.02, 50.0) > 0.0);
        assert_eq!(state.dropped(1.3, 0.1, 0.02, 1.0), 0.0);
    }
}
