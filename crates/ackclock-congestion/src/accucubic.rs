//! AccuCubic: CUBIC whose window is on the curve at each moment.
//!
//! S. Belhareth: Joint network and system performance for cloud computing, PhD thesis, Université Nice
//! Sophia Antipolis, 2014, sections 5.5.2 and 5.6. Linux spreads increments so that in one round trip the
//! window would meet the curve by then. With long RTTs the window is ahead of the curve: it
//! leaves `W_max` after some 0.8 s of the flat part, not after 1.35 s (C = 0.4), and more segments are lost
//! when the buffer overflows. AccuCubic tracks the curve itself:
//!
//! ```text
//!   cwnd = ⌊ max(W_cubic(t), W_est) ⌋     at each ACK, t since the start of the epoch
//! ```
//!
//! so that it passes `W_max` at K and `W_max` + n at K + ∛(n/C).
//!
//! Our reading where the thesis is silent: the window never falls in an epoch, and does not grow by more
//! than what an ACK acknowledges; before the first loss and after a timeout the curve begins at its flat
//! point, as in CUBIC. The arithmetic is CUBIC's ([`super::cubic`]).

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::cubic::{self, Cubic, Epoch, Tracking};
use super::Made;

/// On the curve at each ACK.
#[derive(Clone, Copy, Debug)]
struct Exact;

impl Tracking for Exact {
    fn target(epoch: &Epoch, t: Time, _min_rtt: Time) -> f64 {
        epoch.w_cubic(t).floor()
    }

    fn follow(cubic: &mut Cubic<Exact>, now: Time, acked: u32) {
        let target = cubic.on_curve(now, acked);
        cubic.rise_to(target as u32, acked);
    }
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, C ≤ 0, or β outside (0, 1).
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let parameters = cubic::Common::deserialize(parameters)?;
    // It is updated from the curve with each ACK.
    let cubic = Cubic::new(parameters, Time::ZERO, initial_window, Exact)?;
    Ok(parameters.slow_start.control(cubic))
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::super::window::testing::{ack, LOSS};
    use super::super::{Ack, Controller};
    use super::*;
    use serde_json::json;

    fn accucubic(initial_window: f64, fast_convergence: bool) -> Box<dyn Controller> {
        let card = json!({
            "c": 0.4, "beta": 0.8, "fast_convergence": fast_convergence, "reno_friendly": true,
            "reno_catch_up": false, "slow_start": "standard", "delayed_ack_correction": true,
        });
        make(&card, initial_window).expect("the card's parameters")
    }

    /// Seconds after the start of the epoch when the window first was each of `windows`; an ACK each
    /// 10 ms of an RTT of one second.
    fn reached(controller: &mut dyn Controller, windows: &[f64]) -> Vec<f64> {
        let at = |tick: u64| Time::from_milliseconds(5_000 + 10 * tick);
        let mut tick = 0;
        let mut until = |window: f64| {
            while controller.cwnd() < window {
                controller.on_ack(&Ack {
                    rtt: Some(Time::from_milliseconds(1_000)),
                    srtt: Time::from_milliseconds(1_000),
                    ..ack(at(tick), 1)
                });
                tick += 1;
            }
            tick.saturating_sub(1) as f64 / 100.0
        };
        windows.iter().map(|window| until(*window)).collect()
    }

    #[test]
    fn the_window_passes_w_max_plus_n_when_the_curve_does() {
        let mut accucubic = accucubic(100.0, true);
        accucubic.on_loss(&LOSS);
        assert_eq!(accucubic.cwnd(), 79.0, "819/1024");
        // K = ∛(21 / 0.4) = 3.744 s; then 1.357, 1.710, 1.957 and 2.154 s as in section 5.5.1.
        let k_s = 3.744;
        let expected = [0.0, 1.357, 1.710, 1.957, 2.154].map(|after| k_s + after);
        let reached = reached(accucubic.as_mut(), &[100.0, 101.0, 102.0, 103.0, 104.0]);
        for (reached, expected) in reached.iter().zip(expected) {
            assert!(
                (0.0..0.0101).contains(&(reached - expected)),
                "{reached} {expected}"
            );
        }
    }

    #[test]
    fn below_w_max_it_is_on_the_curve_too() {
        let mut accucubic = accucubic(100.0, true);
        accucubic.on_loss(&LOSS);
        // 100 − 0.4 (3.744 − t)³ is 90 where t = 3.744 − ∛25 = 0.820 s, 99 at 3.744 − 1.357 = 2.387 s.
        let reached = reached(accucubic.as_mut(), &[90.0, 99.0]);
        assert!((0.0..0.0101).contains(&(reached[0] - 0.820)), "{reached:?}");
        assert!((0.0..0.0101).contains(&(reached[1] - 2.387)), "{reached:?}");
    }

    #[test]
    fn an_ack_raises_the_window_by_no_more_than_it_acknowledges() {
        let mut accucubic = accucubic(100.0, true);
        accucubic.on_loss(&LOSS);
        accucubic.on_ack(&ack(Time::from_milliseconds(1_000), 1));
        accucubic.on_ack(&ack(Time::from_milliseconds(60_000), 3));
        assert_eq!(accucubic.cwnd(), 82.0);
    }

    #[test]
    fn fast_convergence_puts_the_flat_point_lower() {
        // A second loss, at 79: from 63 to 79 · (1024 + 819) / 2048 = 71, or to 79 itself. K is ∛(8 / 0.4) or
        // ∛(16 / 0.4), and the curve flat until 1.357 s later.
        for (fast_convergence, next, expected) in
            [(true, 72.0, 2.714 + 1.357), (false, 80.0, 3.420 + 1.357)]
        {
            let mut accucubic = accucubic(100.0, fast_convergence);
            accucubic.on_loss(&LOSS);
            accucubic.on_loss(&LOSS);
            let reached = reached(accucubic.as_mut(), &[next]);
            assert!(
                (0.0..0.0111).contains(&(reached[0] - expected)),
                "{reached:?}"
            );
        }
    }

    #[test]
    fn other_parameters_are_rejected() {
        assert!(make(&json!({ "tick_s": 0.004 }), 10.0).is_err());
    }
}
