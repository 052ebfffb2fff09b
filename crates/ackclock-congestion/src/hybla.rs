//! Hybla: a flow over a long path grows as fast, per second, as a Reno flow with a short reference round trip.
//!
//! C. Caini, R. Firrincieli: TCP Hybla: a TCP enhancement for heterogeneous networks, International Journal of
//! Satellite Communications and Networking 22(5), 2004, as Linux 6.1 behaves (`tcp_hybla.c`). With ρ = RTT / RTT0, at
//! least 1,
//!
//! ```text
//!   at the opening    cwnd = ρ
//!   for each ACK      cwnd ← cwnd + 2^ρ − 1       below ssthresh
//!                     cwnd ← cwnd + ρ² / cwnd     beyond
//!   at a loss         cwnd ← cwnd / 2
//! ```
//!
//! With an ACK for each segment that is ρ² segments per round trip, and what is sent per second, cwnd / RTT, grows by
//! 1 / RTT0² per second, whatever the RTT is.
//!
//! Where Linux departs from the paper, and this file with it:
//! - ρ is that of the smallest smoothed RTT: the handshake's, until a later one falls below it. It counts in whole
//!   eighths, rounded down; the first window in whole segments.
//! - There is no ssthresh before the first loss; the paper multiplies Reno's by ρ. Nor are the packets spaced.
//! - An ACK counts once, however many segments it acknowledges: a receiver that delays ACKs slows all growth down.
//! - Increments are whole 1/128 of a segment, rounded down. While ρ² / cwnd is less than one of them, a window's worth
//!   of
//!   ACKs brings a segment. So at ρ = 1 it takes 128 ACKs with 65 to 128 segments, and with more as many ACKs as the window
//!   has segments.
//! - Of ρ above 16 only the eighths count in 2^ρ, and no window has more than 65535 segments.
//! - During recovery after a timeout, and where SACKs show reordering, the window grows like Reno's.
//!
//! Deviation from Linux: a connection that opens without an RTT (no timestamps, and the SYN was sent more than once)
//! has the stack's initial window, and ρ from its first RTT. In Linux both remain at 1.

use ackclock_core::Time;
use serde::Deserialize;
use serde_json::Value;

use super::window::{delegate_to_window, Window};
use super::{require, Ack, Controller, Loss, Made, Opening};

/// Increments count in parts of this.
const SCALE: u64 = 128;
/// ρ counts in parts of this.
const EIGHTHS: u64 = 8;
/// The largest integer ρ that counts in 2^ρ.
const MAX_EXPONENT: u64 = 16;
/// Largest window, in segments.
const MAX_WINDOW: u32 = 65_535;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// RTT0: the round trip of the reference.
    #[serde(rename = "rtt0_s")]
    rtt0: Time,
}

/// ρ in eighths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rho(u64);

impl Rho {
    fn of(rtt: Time, rtt0: Time) -> Rho {
        let eighths = rtt.picoseconds().saturating_mul(EIGHTHS) / rtt0.picoseconds();
        Rho(eighths.max(EIGHTHS))
    }

    fn integer_part(self) -> u64 {
        self.0 / EIGHTHS
    }

    /// 2^ρ − 1, in 1/128.
    fn in_slow_start(self) -> u64 {
        let fraction = (self.0 % EIGHTHS) as f64 / EIGHTHS as f64;
        let power = (SCALE as f64 * fraction.exp2()) as u64;
        (power << self.integer_part().min(MAX_EXPONENT)) - SCALE
    }

    /// ρ² / cwnd, in 1/128.
    fn in_avoidance(self, cwnd: u32) -> u64 {
        let square = self.0.saturating_mul(self.0);
        square.saturating_mul(SCALE) / (EIGHTHS * EIGHTHS * u64::from(cwnd))
    }
}

/// A Hybla sender's window.
#[derive(Clone, Copy, Debug)]
struct Hybla {
    rtt0: Time,
    window: Window,
    /// Smallest smoothed RTT; [`Time::NEVER`] before the first.
    min_srtt: Time,
    /// ρ of the current RTT.
    rho: Rho,
    /// The fraction left by increments, in 1/128 of a segment.
    fraction: u64,
}

/// Create the controller.
///
/// # Errors
/// Parameters other than the spec's, or a reference without length.
pub fn make(parameters: &Value, initial_window: f64) -> Made {
    let Parameters { rtt0 } = Parameters::deserialize(parameters)?;
    require(
        rtt0 > Time::ZERO,
        "rtt0, the reference round trip, must be above 0",
    )?;
    Ok(Box::new(Hybla {
        rtt0,
        window: Window::new(initial_window),
        min_srtt: Time::NEVER,
        rho: Rho(EIGHTHS),
        fraction: 0,
    }))
}

impl Hybla {
    fn observe(&mut self, srtt: Time) {
        if srtt > Time::ZERO && srtt < self.min_srtt {
            self.min_srtt = srtt;
            self.rho = Rho::of(srtt, self.rtt0);
        }
    }

    /// Grow by an ACK; the window's credit counts ACKs since the last growth.
    fn grow(&mut self) {
        let cwnd = self.window.cwnd();
        let (increment, limit) = if self.window.in_slow_start() {
            (self.rho.in_slow_start(), self.window.ssthresh() as u32)
        } else {
            (self.rho.in_avoidance(cwnd), MAX_WINDOW)
        };
        self.fraction += increment;
        self.window.earn(1);
        let due = increment == 0 && self.window.credit() >= cwnd;
        let segments = (self.fraction / SCALE).min(MAX_WINDOW.into()) as u32 + u32::from(due);
        self.fraction %= SCALE;
        if segments > 0 {
            self.window.buy(segments, self.window.credit());
            self.window
                .set(self.window.cwnd().min(limit).min(MAX_WINDOW));
        }
    }
}

impl Controller for Hybla {
    fn on_established(&mut self, opening: &Opening) {
        self.observe(opening.srtt);
        if opening.srtt > Time::ZERO {
            let first = self.rho.integer_part().min(u64::from(MAX_WINDOW));
            self.window.set(first as u32);
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        let may_grow = self.window.on_ack(ack);
        if ack.may_raise_cwnd && !self.window.in_fast_recovery() {
            self.observe(ack.srtt);
        }
        if !may_grow {
            return;
        }
        if self.window.is_open() && !ack.has_sack {
            self.grow();
        } else {
            self.window.grow_as_reno(ack.newly_acked);
            self.window.set(self.window.cwnd().min(MAX_WINDOW));
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.reduce(self.window.cwnd() / 2);
    }

    fn on_timeout(&mut self, _now: Time, _in_flight: u32) {
        self.window.restart(self.window.cwnd() / 2);
    }

    delegate_to_window!();
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // windows are whole segments
mod tests {
    use super::super::window::testing::{ack, recovering, LOSS};
    use super::*;
    use crate::PriorWindow;
    use serde_json::json;

    const MS: fn(u64) -> Time = Time::from_milliseconds;

    /// A flow whose handshake took `rtt`, with a reference of 25 ms.
    fn opened(rtt: Time) -> Box<dyn Controller> {
        let mut hybla = make(&json!({ "rtt0_s": 0.025 }), 10.0).expect("the card's parameters");
        hybla.on_established(&Opening {
            now: Time::ZERO,
            srtt: rtt,
            mss_bytes: 1448,
            seed: 0,
        });
        hybla
    }

    /// The same in congestion avoidance with so many segments.
    fn avoiding(rtt: Time, cwnd: f64) -> Box<dyn Controller> {
        let mut hybla = opened(rtt);
        hybla.undo(&PriorWindow {
            cwnd: 2.0 * cwnd,
            ssthresh: f64::INFINITY,
        });
        hybla.on_loss(&LOSS);
        hybla.on_ack(&Ack {
            window_limited: false,
            ..ack(Time::ZERO, 1)
        });
        assert_eq!((hybla.cwnd(), hybla.ssthresh()), (cwnd, cwnd));
        hybla
    }

    /// The window after so many ACKs.
    fn after(acks: u32, mut hybla: Box<dyn Controller>) -> f64 {
        (0..acks).for_each(|_| hybla.on_ack(&ack(Time::ZERO, 1)));
        hybla.cwnd()
    }

    #[test]
    fn rho_is_in_eighths_and_min_one() {
        let eighths = |rtt| Rho::of(rtt, MS(25)).0;
        assert_eq!([MS(0), MS(25), MS(28)].map(eighths), [8, 8, 8]);
        assert_eq!([MS(29), MS(50), MS(200)].map(eighths), [9, 16, 64]);
    }

    #[test]
    fn the_first_window_is_rho() {
        let first = |ms| opened(MS(ms)).cwnd();
        assert_eq!([10, 49, 50, 210].map(first), [1.0, 1.0, 2.0, 8.0]);
        assert_eq!(opened(Time::ZERO).cwnd(), 10.0, "without an RTT");
    }

    #[test]
    fn in_slow_start_an_ack_adds_two_to_rho_less_one() {
        assert_eq!(after(1, opened(MS(20))), 2.0);
        assert_eq!(after(2, opened(MS(50))), 2.0 + 2.0 * 3.0);
        assert_eq!(after(1, opened(MS(100))), 4.0 + 15.0);
        // 2^1.5 = 2.828: 181/128 doubled, less 128: 234/128 an ACK; eleven of them are 20.1.
        assert_eq!(after(11, opened(Time::from_microseconds(37_500))), 21.0);
    }

    #[test]
    fn growth_counts_acks_not_segments() {
        let mut hybla = opened(MS(50));
        hybla.on_ack(&ack(Time::ZERO, 2));
        assert_eq!(hybla.cwnd(), 5.0);
    }

    #[test]
    fn slow_start_ends_at_the_threshold() {
        let mut hybla = avoiding(MS(100), 20.0);
        hybla.on_timeout(Time::ZERO, 20);
        assert_eq!((hybla.cwnd(), hybla.ssthresh()), (1.0, 10.0));
        assert_eq!(after(1, hybla), 10.0, "1 and 15 are more");
    }

    #[test]
    fn in_avoidance_a_round_trip_adds_the_square_of_rho() {
        assert_eq!(after(100, avoiding(MS(25), 25.0)), 28.0);
        // 16 · 128 / 100 is 20/128 an ACK, rounded down: 19.2 ACKs to 103 segments; there 19/128, 33.7 ACKs to 108; and
        // 18/128, 42.7 ACKs to 114.
        assert_eq!(after(95, avoiding(MS(100), 100.0)), 113.0);
        assert_eq!(after(96, avoiding(MS(100), 100.0)), 114.0);
        // 64 · 128 / 10 = 819/128: more than a segment at once.
        assert_eq!(after(1, avoiding(MS(200), 10.0)), 16.0);
    }

    #[test]
    fn increments_of_large_windows_are_rounded_down() {
        assert_eq!(after(127, avoiding(MS(25), 100.0)), 100.0);
        assert_eq!(after(128, avoiding(MS(25), 100.0)), 101.0);
        assert_eq!(after(199, avoiding(MS(25), 200.0)), 200.0);
        assert_eq!(after(200, avoiding(MS(25), 200.0)), 201.0);
    }

    #[test]
    fn rho_follows_the_smallest_smoothed_rtt() {
        let mut hybla = opened(MS(100));
        for (srtt, expected) in [(120, 19.0), (50, 22.0), (75, 25.0)] {
            hybla.on_ack(&Ack {
                srtt: MS(srtt),
                ..ack(Time::ZERO, 1)
            });
            assert_eq!(hybla.cwnd(), expected, "{srtt} ms");
        }
    }

    #[test]
    fn recovery_and_reordering_are_as_in_reno() {
        let mut hybla = avoiding(MS(100), 20.0);
        hybla.on_ack(&Ack {
            has_sack: true,
            ..ack(Time::ZERO, 20)
        });
        assert_eq!(hybla.cwnd(), 21.0);
        hybla.on_timeout(Time::ZERO, 20);
        hybla.on_ack(&Ack {
            in_loss: true,
            ..ack(Time::ZERO, 2)
        });
        assert_eq!(hybla.cwnd(), 3.0);
    }

    #[test]
    fn a_loss_halves_and_blocks_growth_until_recovery_ends() {
        let mut hybla = avoiding(MS(100), 25.0);
        hybla.on_loss(&LOSS);
        hybla.on_ack(&recovering(Time::ZERO, 5));
        assert_eq!((hybla.cwnd(), hybla.ssthresh()), (12.0, 12.0));
    }

    #[test]
    fn very_long_paths_have_limits() {
        assert_eq!(Rho::of(MS(250_000), MS(1)).in_slow_start(), 65_535 * SCALE);
        assert_eq!(after(2, opened(MS(10_000))), 65_535.0);
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        assert!(make(&json!({ "rtt0_s": 0.0 }), 10.0).is_err());
        assert!(make(&json!({}), 10.0).is_err());
    }
}
