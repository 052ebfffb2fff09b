//! The over-use detector: m against a threshold that adapts to it.
//!
//! draft-ietf-rmcat-gcc-02, section 5.4. Times in ms, as in the draft:
//!
//! ```text
//!   del_var_th(i) = del_var_th(i−1) + (t(i) − t(i−1)) K(i) (|m(i)| − del_var_th(i−1))
//!   K(i)          = K_d if |m(i)| < del_var_th(i−1), else K_u
//! ```
//!
//! held in [6, 600] ms, and unchanged where |m(i)| exceeds it by more than 15 ms. Over-use is signalled when m has
//! exceeded the threshold for `overuse_time_th` and has not become smaller.
//!
//! Our deviations: m is multiplied by a number of groups (see [`super`]). A gap between two arrivals counts as 100 ms
//! at most, the longest for which the threshold does not overshoot m with `K_u` = 0.01.

use super::arrival_filter::Change;
use super::Parameters;

/// |m| beyond the threshold by more than this does not change it, in ms.
const MAX_EXCESS_MS: f64 = 15.0;
/// Longest gap for the adaptation, in ms.
const MAX_GAP_MS: f64 = 100.0;

/// State of the queue, as detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The queue grows.
    Overuse,
    /// The queue is stable.
    Normal,
    /// The queue shrinks.
    Underuse,
}

/// The detector's state.
#[derive(Clone, Copy, Debug)]
pub struct Detector {
    threshold_ms: f64,
    bounds_ms: (f64, f64),
    overuse_time_ms: f64,
    k_u: f64,
    k_d: f64,
    max_deltas: u32,
    deltas: u32,
    /// m of the group before.
    previous_ms: f64,
    /// Time since the first of the groups in a row of which m has exceeded the threshold.
    above_ms: Option<f64>,
    signal: Signal,
}

impl Detector {
    /// A detector with the initial threshold.
    pub fn new(p: &Parameters) -> Detector {
        Detector {
            threshold_ms: 1e3 * p.threshold_s,
            bounds_ms: (1e3 * p.min_threshold_s, 1e3 * p.max_threshold_s),
            overuse_time_ms: 1e3 * p.overuse_time_s,
            k_u: p.k_u,
            k_d: p.k_d,
            max_deltas: p.max_deltas,
            deltas: 0,
            previous_ms: 0.0,
            above_ms: None,
            signal: Signal::Normal,
        }
    }

    /// The last signal.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The threshold, ms.
    pub fn threshold_ms(&self) -> f64 {
        self.threshold_ms
    }

    /// Process the estimate after a group; returns the signal.
    pub fn update(&mut self, estimate_ms: f64, change: &Change) -> Signal {
        self.deltas = (self.deltas + 1).min(self.max_deltas);
        let m = estimate_ms * f64::from(self.deltas);
        if m > self.threshold_ms {
            let above = self.above_ms.map_or(0.0, |above| above + change.sent_ms);
            self.above_ms = Some(above);
            if above >= self.overuse_time_ms && estimate_ms >= self.previous_ms {
                self.signal = Signal::Overuse;
            }
        } else {
            self.above_ms = None;
            self.signal = if m < -self.threshold_ms {
                Signal::Underuse
            } else {
                Signal::Normal
            };
        }
        self.previous_ms = estimate_ms;
        self.adapt(m.abs(), change.arrived_ms);
        self.signal
    }

    fn adapt(&mut self, size_ms: f64, gap_ms: f64) {
        if size_ms - self.threshold_ms > MAX_EXCESS_MS {
            return;
        }
        let k = if size_ms < self.threshold_ms {
            self.k_d
        } else {
            self.k_u
        };
        let step = gap_ms.clamp(0.0, MAX_GAP_MS) * k * (size_ms - self.threshold_ms);
        let (min, max) = self.bounds_ms;
        self.threshold_ms = (self.threshold_ms + step).clamp(min, max);
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::super::contract::defaults;
    use super::*;

    /// The draft to the letter: m is not multiplied.
    fn detector() -> Detector {
        let mut p = Parameters::deserialize(defaults("gcc")).expect("the defaults");
        p.max_deltas = 1;
        Detector::new(&p)
    }

    const FRAME: Change = Change {
        sent_ms: 20.0,
        arrived_ms: 20.0,
    };

    /// From 12.5 ms: with |m| = 2.5 by 20 · 0.00018 · (−10) = −0.036; with |m| = 20 by 20 · 0.01 · 7.5072 = +1.5.
    #[test]
    fn the_threshold_adapts_by_k_d_and_k_u() {
        let mut detector = detector();
        detector.update(2.5, &FRAME);
        assert!((detector.threshold_ms - 12.464).abs() < 1e-9);
        detector.update(-20.0, &FRAME);
        assert!((detector.threshold_ms - (12.464 + 0.2 * 7.536)).abs() < 1e-9);
        let before = detector.threshold_ms;
        detector.update(before + 15.1, &FRAME);
        assert!(
            (detector.threshold_ms - before).abs() < 1e-12,
            "a sudden change is left out"
        );
    }

    #[test]
    fn the_threshold_stays_within_6_and_600_ms() {
        let mut detector = detector();
        for _ in 0..100_000 {
            detector.update(0.0, &FRAME);
        }
        assert!((detector.threshold_ms - 6.0).abs() < 1e-9);
        for m in 6..2000 {
            detector.update(f64::from(m), &FRAME);
        }
        assert!((detector.threshold_ms - 600.0).abs() < 1e-9);
    }

    #[test]
    fn overuse_requires_10_ms_above_the_threshold_and_an_estimate_that_does_not_fall() {
        let mut detector = detector();
        let fast = Change {
            sent_ms: 8.0,
            arrived_ms: 8.0,
        };
        assert_eq!(detector.update(40.0, &fast), Signal::Normal, "0 ms");
        assert_eq!(detector.update(40.0, &fast), Signal::Normal, "8 ms");
        assert_eq!(
            detector.update(39.0, &fast),
            Signal::Normal,
            "16 ms, but falling"
        );
        assert_eq!(detector.update(39.0, &fast), Signal::Overuse);
        assert_eq!(detector.update(0.0, &fast), Signal::Normal);
        assert_eq!(detector.update(-40.0, &fast), Signal::Underuse);
    }
}
