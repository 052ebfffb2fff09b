//! Detection of a classic ECN AQM (RFC 3168) at the bottleneck, and the response that is fair to the flows there.
//!
//! B. Briscoe, A. S. Ahmed: TCP Prague Fall-back on Detection of a Classic ECN AQM, arXiv 1911.00710. A classic AQM has a
//! longer queue than one of L4S, which varies more. With v the mean deviation of the RTT and d the smoothed RTT above the
//! smallest one, at the end of each round of α since the first mark:
//!
//! ```text
//!   score ← score + V lg(v / V0) + D lg(max(d / D0, 1))      within 0 … 17
//!
//!   0           8            9           17
//!   ├─── L4S ───┼ transition ┼── classic ─┤                  c = 0 … 1 in the transition
//!
//!   cwnd ← (1 − max(α, 0.625 c)/2) cwnd                      at a mark
//! ```
//!
//! A score in the outer ranges needs several rounds to leave them. A classic reduction keeps 0.69 of the window, as CUBIC's
//! 0.7. The averages have the gain 1/(2 w^1.5) for a window of w segments, half of it for the deviation, and so see
//! further than a sawtooth of a classic flow, of which the duration rises with w.
//!
//! The values are those of the authors' implementation for Linux, where the fall-back is off by default. Deviations:
//! real numbers, where it has integers that carry their remainders; gains follow each reduction, not powers of two. The
//! term for flows that are limited by the application is left out, there as well as here.

use ackclock_core::Time;

use super::super::Ack;

/// V and D: weights of the variation and of the queue.
const WEIGHT: f64 = 0.5;
/// V0: the deviation that speaks for neither, in s.
const REFERENCE_DEVIATION_S: f64 = 750e-6;
/// D0: the longest queue that does not speak for a classic AQM, in s.
const REFERENCE_QUEUE_S: f64 = 2e-3;
/// Smallest deviation, the resolution of the reference's clock, in s.
const MIN_DEVIATION_S: f64 = 1e-6;
/// Smallest gain, and the one before the first reduction: 2⁻¹⁸.
const MIN_GAIN: f64 = 1.0 / 262_144.0;
/// Scores: the ends of the ranges L4S, transition and classic.
const L4S: f64 = 8.0;
const CLASSIC: f64 = L4S + 1.0;
const MAX_SCORE: f64 = CLASSIC + L4S;
/// The least α behind a classic AQM.
const CLASSIC_ALPHA: f64 = 0.625;

/// Averages of the RTT, and the score.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassicEcn {
    gain: f64,
    srtt_s: Option<f64>,
    deviation_s: f64,
    score: f64,
}

impl ClassicEcn {
    pub(super) fn new() -> ClassicEcn {
        ClassicEcn {
            gain: MIN_GAIN,
            srtt_s: None,
            deviation_s: MIN_DEVIATION_S,
            score: 0.0,
        }
    }

    /// Take the RTT of an ACK into the averages.
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        let Some(rtt_s) = ack.rtt.map(Time::seconds) else {
            return;
        };
        let srtt_s = self.srtt_s.get_or_insert(rtt_s);
        let error_s = rtt_s - *srtt_s;
        *srtt_s += self.gain * error_s;
        self.deviation_s += self.gain / 2.0 * (error_s.abs() - self.deviation_s);
    }

    /// Update the score at the end of a round.
    pub(super) fn on_round(&mut self, min_rtt: Time) {
        let Some(srtt_s) = self.srtt_s else { return };
        let variation = self.deviation_s.max(MIN_DEVIATION_S) / REFERENCE_DEVIATION_S;
        let queue = (srtt_s - min_rtt.seconds()) / REFERENCE_QUEUE_S;
        let evidence = variation.log2() + queue.max(1.0).log2();
        self.score = (self.score + WEIGHT * evidence).clamp(0.0, MAX_SCORE);
    }

    /// Let the averages see as far as the window demands.
    pub(super) fn on_reduction(&mut self, window: f64) {
        self.gain = (0.5 * window.powf(-1.5)).clamp(MIN_GAIN, 0.5);
    }

    /// α of a reduction, at least as large as a classic AQM demands.
    pub(super) fn response(&self, alpha: f64) -> f64 {
        alpha.max(CLASSIC_ALPHA * (self.score - L4S).clamp(0.0, CLASSIC - L4S))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::window::testing::ack;
    use super::*;

    fn averages(srtt_ms: f64, deviation_us: f64) -> ClassicEcn {
        ClassicEcn {
            srtt_s: Some(srtt_ms * 1e-3),
            deviation_s: deviation_us * 1e-6,
            ..ClassicEcn::new()
        }
    }

    #[test]
    fn the_score_moves_by_half_the_binary_logarithms() {
        let min_rtt = Time::from_milliseconds(20);
        // v = 3000 µs is 4 V0, d = 8 ms is 4 D0: (2 + 2)/2.
        let mut long = averages(28.0, 3000.0);
        long.on_round(min_rtt);
        assert!((long.score - 2.0).abs() < 1e-9);
        // v = V0 / 2 takes half off; a queue below D0 does not.
        let mut short = averages(20.5, 375.0);
        short.score = 2.0;
        short.on_round(min_rtt);
        assert!((short.score - 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_classic_score_gets_the_response_of_cubic() {
        let with = |score| ClassicEcn {
            score,
            ..ClassicEcn::new()
        };
        let least = [8.0, 8.5, 9.0, 17.0].map(|score| with(score).response(0.1));
        assert_eq!(least, [0.1, 0.3125, 0.625, 0.625]);
        assert_eq!(with(17.0).response(0.9).to_bits(), 0.9_f64.to_bits());
    }

    #[test]
    fn scores_stay_in_their_range() {
        let min_rtt = Time::from_milliseconds(20);
        let (mut classic, mut l4s) = (averages(60.0, 5000.0), averages(20.1, 50.0));
        for _ in 0..100 {
            classic.on_round(min_rtt);
            l4s.on_round(min_rtt);
        }
        assert_eq!([classic.score, l4s.score], [MAX_SCORE, 0.0]);
    }

    #[test]
    fn the_averages_follow_the_rtt_by_the_gain_of_the_window() {
        let mut averages = averages(20.0, 0.0);
        averages.on_reduction(4.0);
        averages.on_ack(&Ack {
            rtt: Some(Time::from_milliseconds(36)),
            ..ack(Time::ZERO, 1)
        });
        // 1/(2 · 4^1.5) = 1/16 of 16 ms, and 1/32 of it for the deviation.
        assert!((averages.srtt_s.unwrap_or(0.0) - 21e-3).abs() < 1e-12);
        assert!((averages.deviation_s - 0.5e-3).abs() < 1e-12);
    }
}
