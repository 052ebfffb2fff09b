//! Growth of windows between losses, and their reduction at a loss. The fields (`field.rs`, `cohorts.rs`,
//! `particles.rs`) evaluate these curves.
//!
//! CUBIC: S. Ha, I. Rhee, L. Xu, *CUBIC*, ACM SIGOPS OSR 42(5), 2008, and RFC 9438 sections 4.2, 4.3, 4.7:
//! the greater of the cubic curve and of what Reno would have in the same place. New Reno is the second
//! alone. Belhareth 2014, equations 2.1 and 2.2, writes β for the share that is given up; here `kept` is
//! the share that is kept.

use serde::Deserialize;

/// Smallest window, packets.
const MIN_WINDOW_P: f64 = 1.0;

/// Curve of CUBIC that windows follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The greater of the two at each instant, as in RFC 9438 and real senders.
    #[default]
    Auto,
    /// The cubic curve, whatever Reno would have.
    Cubic,
    /// Reno's estimate ("TCP mode").
    Tcp,
}

/// A congestion control, as in its algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Control {
    /// CUBIC: `c` in packets/s³, `beta` the share of the window that is kept.
    Cubic {
        /// Steepness of the curve.
        c: f64,
        /// Share of the window that is kept at a loss.
        beta: f64,
        /// True if a flow that lost below its last plateau aims lower.
        fast_convergence: bool,
        /// Curve that is followed.
        mode: Mode,
    },
    /// New Reno: a packet more per round trip, half the window at a loss.
    Reno {},
}

/// Growth that begins with a loss: remaining window and target plateau of the curve, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Window after the reduction, w(0).
    pub window: f64,
    /// `w_max` of the curve.
    pub plateau: f64,
    /// Time before the window grows, in seconds: that of recovery.
    pub rest_s: f64,
}

/// A control as curves: `w = max(c (s − V)³ + plateau, start + a · rounds)`.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    curve: Option<f64>,
    increase: Option<f64>,
    kept: f64,
    fast_convergence: bool,
}

impl Law {
    /// The law of a control.
    pub fn of(control: Control) -> Law {
        match control {
            Control::Cubic {
                c,
                beta,
                fast_convergence,
                mode,
            } => Law {
                curve: (mode != Mode::Tcp).then_some(c),
                increase: (mode != Mode::Cubic).then_some(3.0 * (1.0 - beta) / (1.0 + beta)),
                kept: beta,
                fast_convergence,
            },
            Control::Reno {} => Law {
                curve: None,
                increase: Some(1.0),
                kept: 0.5,
                fast_convergence: false,
            },
        }
    }

    /// Steepness of the cubic curve, if windows follow it.
    pub fn curve(&self) -> Option<f64> {
        self.curve
    }

    /// Growth per round trip of the line, if windows follow it.
    pub fn increase(&self) -> Option<f64> {
        self.increase
    }

    /// Growth after a loss at `window`, with the previous `plateau`.
    pub fn after_loss(&self, window: f64, plateau: f64) -> Start {
        let gives_way = self.fast_convergence && window < plateau;
        let aims_at = if gives_way {
            0.5 * (1.0 + self.kept) * window
        } else {
            window
        };
        let left = (self.kept * window).max(MIN_WINDOW_P);
        Start {
            window: left,
            plateau: aims_at.max(left),
            rest_s: 0.0,
        }
    }

    /// V: when the curve that starts so reaches its plateau, in seconds after the loss.
    pub fn inflection_s(&self, start: Start) -> f64 {
        let missing = (start.plateau - start.window).max(0.0);
        start.rest_s + self.curve.map_or(0.0, |c| (missing / c).cbrt())
    }

    /// The start of a flow that leaves slow start without a loss: its curve is at the plateau.
    pub fn at_plateau(&self, window: f64) -> Start {
        Start {
            window,
            plateau: window,
            rest_s: 0.0,
        }
    }

    /// True if the plateau is lower than the window of the last loss: fast convergence, which [`Law::after_loss`]
    /// applies. Starts without a loss ([`Law::at_plateau`]) count as such, too.
    pub fn aims_lower(&self, start: Start) -> bool {
        let between = (3.0 + self.kept) / (4.0 * self.kept); // the midpoint of 1 / kept and (1 + kept) / (2 kept)
        start.plateau < between * start.window
    }

    /// The start of a flow whose last loss was at `window`.
    pub fn from_loss_at(&self, window: f64) -> Start {
        self.after_loss(window, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cubic(fast_convergence: bool) -> Law {
        Law::of(Control::Cubic {
            c: 0.4,
            beta: 0.8,
            fast_convergence,
            mode: Mode::Auto,
        })
    }

    #[test]
    fn a_loss_keeps_beta_and_the_curve_recovers_after_v() {
        let start = cubic(true).after_loss(100.0, 90.0);
        assert_eq!((start.window, start.plateau), (80.0, 100.0));
        let v = cubic(true).inflection_s(start);
        assert!((v - (0.2 * 100.0 / 0.4_f64).cbrt()).abs() < 1e-12);
    }

    /// Belhareth 2014, equation 2.13: below the last plateau the next is lower by β/2.
    #[test]
    fn fast_convergence_aims_lower() {
        let start = cubic(true).after_loss(100.0, 110.0);
        assert!((start.plateau - 90.0).abs() < 1e-12 && start.window == 80.0);
        assert!(cubic(true).aims_lower(start));
        assert!(!cubic(false).aims_lower(cubic(false).after_loss(100.0, 110.0)));
    }

    /// RFC 9438 section 4.3: 3 (1 − β) / (1 + β) packets in a round trip.
    #[test]
    fn the_line_grows_as_reno_would_on_average() {
        assert!((cubic(false).increase().unwrap_or(0.0) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(Law::of(Control::Reno {}).increase(), Some(1.0));
        assert_eq!(Law::of(Control::Reno {}).after_loss(10.0, 0.0).window, 5.0);
    }
}
