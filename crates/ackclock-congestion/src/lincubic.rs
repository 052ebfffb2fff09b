//! LinCubic: CUBIC that grows by one segment per round trip near the window of the last loss.
//!
//! S. Belhareth: Joint network and system performance for cloud computing, PhD thesis, Université Nice
//! Sophia Antipolis, 2014, section 5.6. Around its flat point CUBIC takes 1.35 s for the first segment
//! beyond `W_max`, but 0.35 s for the second and 0.25 s for the third (C = 0.4). Where the RTT is longer
//! than that, several segments too many are in flight before the first loss is seen, and the flows that
//! share the bottleneck all lose. LinCubic takes Reno's one segment per round trip within
//! [`W_max` − 2, `W_max` + 2], and is CUBIC outside that range.
//!
//! Our reading where the thesis is silent: `W_max` is what fast convergence made of it, that is the flat
//! point of the curve in use; the curve's time runs on while the window grows linearly, so beyond
//! `W_max` + 2 the window moves to where the curve is by then; Reno's window is a lower bound there too.
//! The arithmetic is CUBIC's in whole segments ([`super::cubic`]).

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::cubic::{self, Cubic, Tracking};
use super::Made;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    #[serde(flatten)]
    cubic: cubic::Common,
    #[serde(rename = "tick_s")]
    tick: Time,
    /// The window grows linearly as near to `W_max` as this, in segments.
    distance: u32,
}

/// Linear near `W_max`, else as CUBIC.
#[derive(Clone, Copy, Debug)]
struct LinearNear {
    distance: u32,
}

impl Tracking for LinearNear {
    fn per_increment(&self, curve: u32, cwnd: u32, w_max: u32) -> u32 {
        if w_max > 0 && cwnd.abs_diff(w_max) <= self.distance {
            cwnd
        } else {
            curve
        }
    }
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, C ≤ 0, or β outside (0, 1).
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let Parameters {
        cubic,
        tick,
        distance,
    } = Parameters::deserialize(parameters)?;
    let near = LinearNear { distance };
    let slow_start = cubic.slow_start;
    Ok(slow_start.control(Cubic::new(cubic, tick, initial_window, near)?))
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::super::window::testing::{ack, LOSS};
    use super::super::{Ack, Controller};
    use super::*;
    use serde_json::json;

    const RTT_S: f64 = 0.5;

    fn lincubic(initial_window: f64, distance: u32) -> Box<dyn Controller> {
        let card = json!({
            "c": 0.4, "beta": 0.8, "fast_convergence": true, "reno_friendly": true,
            "reno_catch_up": false, "slow_start": "standard", "delayed_ack_correction": true,
            "tick_s": 0.004, "distance": distance,
        });
        make(&card, initial_window).expect("the card's parameters")
    }

    /// Windows at the end of each round trip of half a second, from a loss at 83 segments on.
    fn rounds(controller: &mut dyn Controller, count: usize) -> Vec<f64> {
        controller.on_loss(&LOSS);
        let mut now_s = 10.0;
        let mut round = || {
            let flight = controller.cwnd();
            for _ in 0..flight as u32 {
                now_s += RTT_S / flight;
                controller.on_ack(&Ack {
                    rtt: Some(Time::from_seconds(RTT_S)),
                    srtt: Time::from_seconds(RTT_S),
                    ..ack(Time::from_seconds(now_s), 1)
                });
            }
            controller.cwnd()
        };
        (0..count).map(|_| round()).collect()
    }

    #[test]
    fn within_two_of_w_max_it_grows_by_one_each_round_trip() {
        let windows = rounds(lincubic(83.0, 2).as_mut(), 20);
        let near = |pair: &&[f64]| (81.0..=85.0).contains(&pair[0]);
        let steps: Vec<f64> = windows
            .windows(2)
            .filter(near)
            .map(|pair| pair[1] - pair[0])
            .collect();
        assert_eq!(steps, [1.0; 5], "{windows:?}");
    }

    #[test]
    fn outside_the_linear_phase_it_is_cubic() {
        let lin = rounds(lincubic(83.0, 2).as_mut(), 20);
        let cubic = {
            let card = json!({
                "c": 0.4, "beta": 0.8, "fast_convergence": true, "reno_friendly": true,
                "reno_catch_up": false, "slow_start": "standard", "delayed_ack_correction": true,
                "whole_segments": true, "tick_s": 0.004,
            });
            rounds(cubic::make(&card, 83.0).expect("the card's").as_mut(), 20)
        };
        let far = |window: &&f64| **window < 81.0;
        let below = cubic.iter().take_while(far).count();
        assert!(below >= 3, "{cubic:?}");
        assert_eq!(lin[..below], cubic[..below]);
        assert_ne!(lin, cubic);
    }

    #[test]
    fn other_parameters_are_rejected() {
        assert!(make(&json!({ "distance": 2 }), 10.0).is_err());
    }
}
