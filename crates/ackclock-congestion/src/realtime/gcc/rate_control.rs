//! Rate control from the over-use signal: additive or multiplicative increase, decrease, and hold.
//!
//! draft-ietf-rmcat-gcc-02, section 5.5. An empty field means that the state remains.
//!
//! ```text
//!    signal    │ Hold      Increase  Decrease
//!   ───────────┼──────────────────────────────
//!    over-use  │ Decrease  Decrease
//!    normal    │ Increase            Hold
//!    under-use │           Hold      Hold
//! ```
//!
//! In Increase the estimate A grows by eta^min(Δ, 1 s), or, where the received rate R is close to the average at which
//! over-use was found before, by half a packet in a response time (RTT + 100 ms). It stays below 1.5 R. In Decrease it
//! becomes beta R.
//!
//! R is close if it is within three standard deviations of that average. Our deviation: the standard deviation is at
//! least 2 % of the average; after the first over-use it would be nothing.

use ackclock_core::Time;

use super::overuse::Signal;
use super::Parameters;

/// Smoothing of the average rate at over-use.
const SMOOTHING: f64 = 0.95;
/// Smallest standard deviation of it, as a share.
const MIN_DEVIATION: f64 = 0.02;
/// A exceeds the received rate at most by this factor.
const MAX_EXCESS: f64 = 1.5;
/// Frames in a second and bits of a packet by which the draft estimates the size of packets.
const FRAMES_PER_S: f64 = 30.0;
const PACKET_BITS: f64 = 1200.0 * 8.0;
/// Smallest additive increase, in bit/s.
const MIN_INCREASE_BPS: f64 = 1000.0;
/// Delay of the detector, in s, part of the response time.
const DETECTION_S: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// Average and variance of the received rate at over-use.
#[derive(Clone, Copy, Debug)]
struct Average {
    mean_bps: f64,
    variance: f64,
}

/// The rate control.
#[derive(Clone, Copy, Debug)]
pub struct RateControl {
    state: State,
    beta: f64,
    eta: f64,
    rate_window: Time,
    rate_bps: f64,
    first: Option<Time>,
    last: Time,
    at_overuse: Option<Average>,
}

impl RateControl {
    /// A rate control that begins with this rate.
    pub fn new(p: &Parameters, rate_bps: f64) -> RateControl {
        RateControl {
            state: State::Increase,
            beta: p.beta,
            eta: p.eta,
            rate_window: p.rate_window,
            rate_bps,
            first: None,
            last: Time::ZERO,
            at_overuse: None,
        }
    }

    /// Set A, after its limits were applied.
    pub fn set_rate(&mut self, rate_bps: f64) {
        self.rate_bps = rate_bps;
    }

    /// Process a signal; returns A in bit/s.
    pub fn update(&mut self, signal: Signal, received_bps: f64, rtt: Time, now: Time) -> f64 {
        let first = *self.first.get_or_insert(now);
        let since_s = if now == first {
            0.0
        } else {
            now.since(self.last).seconds()
        };
        self.last = now;
        self.state = next(self.state, signal);
        match self.state {
            State::Hold => {}
            State::Decrease => {
                self.rate_bps = self.beta * received_bps;
                self.note_overuse(received_bps);
            }
            State::Increase => {
                let increased = self.increased(received_bps, rtt, since_s);
                // The received rate is known once its window is full.
                let is_known = now.since(first) >= self.rate_window;
                let limit = if is_known {
                    MAX_EXCESS * received_bps
                } else {
                    f64::INFINITY
                };
                self.rate_bps = increased.min(limit.max(self.rate_bps));
            }
        }
        self.rate_bps
    }

    fn increased(&mut self, received_bps: f64, rtt: Time, since_s: f64) -> f64 {
        if let Some(average) = self.at_overuse {
            let three = 3.0 * average.deviation_bps();
            if (received_bps - average.mean_bps).abs() <= three {
                return self.rate_bps + additive_bps(self.rate_bps, rtt, since_s);
            }
            if received_bps > average.mean_bps + three {
                self.at_overuse = None;
            }
        }
        self.rate_bps * self.eta.powf(since_s.min(1.0))
    }

    fn note_overuse(&mut self, received_bps: f64) {
        let average = self.at_overuse.get_or_insert(Average {
            mean_bps: received_bps,
            variance: 0.0,
        });
        average.mean_bps += (1.0 - SMOOTHING) * (received_bps - average.mean_bps);
        let square = (received_bps - average.mean_bps).powi(2);
        average.variance += (1.0 - SMOOTHING) * (square - average.variance);
    }
}

impl Average {
    fn deviation_bps(&self) -> f64 {
        self.variance.sqrt().max(MIN_DEVIATION * self.mean_bps)
    }
}

fn next(state: State, signal: Signal) -> State {
    match (signal, state) {
        (Signal::Overuse, _) => State::Decrease,
        (Signal::Normal, State::Hold | State::Increase) => State::Increase,
        (Signal::Normal, State::Decrease) | (Signal::Underuse, _) => State::Hold,
    }
}

/// Additive increase: half a packet in a response time.
fn additive_bps(rate_bps: f64, rtt: Time, since_s: f64) -> f64 {
    let frame_bits = rate_bps / FRAMES_PER_S;
    let packet_bits = frame_bits / (frame_bits / PACKET_BITS).ceil();
    let response_s = DETECTION_S + rtt.seconds();
    let alpha = 0.5 * (since_s / response_s).min(1.0);
    (alpha * packet_bits).max(MIN_INCREASE_BPS)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::super::super::contract::defaults;
    use super::*;

    const RTT: Time = Time::from_milliseconds(100);

    fn control() -> RateControl {
        let p = Parameters::deserialize(defaults("gcc")).expect("the defaults");
        RateControl::new(&p, 1e6)
    }

    fn at(control: &mut RateControl, ms: u64, signal: Signal, received_bps: f64) -> f64 {
        control.update(signal, received_bps, RTT, Time::from_milliseconds(ms))
    }

    #[test]
    fn the_transitions_are_those_of_the_draft() {
        use Signal::{Normal, Overuse, Underuse};
        use State::{Decrease, Hold, Increase};
        let table = [
            (Hold, [Decrease, Increase, Hold]),
            (Increase, [Decrease, Increase, Hold]),
            (Decrease, [Decrease, Hold, Hold]),
        ];
        for (state, expected) in table {
            assert_eq!(
                [Overuse, Normal, Underuse].map(|signal| next(state, signal)),
                expected
            );
        }
    }

    /// 1.08^0.5 in half a second.
    #[test]
    fn far_from_convergence_the_rate_grows_by_8_percent_a_second() {
        let mut control = control();
        at(&mut control, 1000, Signal::Normal, 1e6);
        let rate = at(&mut control, 1500, Signal::Normal, 1e6);
        assert!((rate - 1e6 * 1.08_f64.sqrt()).abs() < 1e-3);
        let rate = at(&mut control, 9500, Signal::Normal, 1e6);
        assert!(
            (rate - 1e6 * 1.08_f64.powf(1.5)).abs() < 1e-3,
            "a second at most"
        );
    }

    #[test]
    fn the_rate_stays_below_one_and_a_half_times_the_received_one() {
        let mut control = control();
        at(&mut control, 0, Signal::Normal, 690e3);
        let rate = at(&mut control, 1000, Signal::Normal, 690e3);
        assert!((rate - 1.035e6).abs() < 1e-3, "{rate}");
    }

    /// At 900 kbit/s over-use: 765 kbit/s, hold, then close to 900: 765/30 kbit are 25,500 bits in three packets of
    /// 8500; in a whole response time of 200 ms half of that.
    #[test]
    fn after_overuse_the_rate_is_a_fraction_of_the_received_and_grows_by_half_a_packet() {
        let mut control = control();
        at(&mut control, 0, Signal::Normal, 900e3);
        assert!((at(&mut control, 100, Signal::Overuse, 900e3) - 765e3).abs() < 1e-6);
        assert!(
            (at(&mut control, 200, Signal::Normal, 900e3) - 765e3).abs() < 1e-6,
            "hold"
        );
        assert!((at(&mut control, 400, Signal::Normal, 900e3) - 769_250.0).abs() < 1e-6);
        // Below the average by more than three times 2 %: 8 % a second again.
        let rate = at(&mut control, 1400, Signal::Normal, 800e3);
        assert!((rate - 769_250.0 * 1.08).abs() < 1e-3);
        assert!(control.at_overuse.is_some());
        at(&mut control, 1500, Signal::Normal, 960e3);
        assert!(
            control.at_overuse.is_none(),
            "more than was possible before"
        );
    }
}
