//! The encoder of a video: sizes of frames around a target rate.
//!
//! RFC 8593, section 5, the statistical model: the mean size of a frame is the rate divided by the frame rate, and sizes
//! deviate from it by a Laplace distribution of scale SCALE_B, relative to the mean. The rate follows the target with a
//! lag: after a change the encoder ignores targets for tau_v.
//!
//! Deviations: frames are captured at equal intervals (SCALE_t = 0). There is no burst of large frames after a change
//! (K_B, K_d), and there are no key frames. Deviations are truncated to one mean size, so that no frame is empty and
//! the mean is that of the target.

use ackclock_core::random::unit_interval;
use ackclock_core::Time;
use ackclock_plan::MediaPlan;
use ackclock_traffic::{stream, Purpose};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

/// Largest deviation of a size, relative to the mean: sizes are at least a hundredth of it.
const MAX_DEVIATION: f64 = 0.99;

/// The encoder.
#[derive(Debug)]
pub struct Encoder {
    frames_per_s: f64,
    variation: f64,
    reaction: Time,
    random: Pcg64Mcg,
    start: Time,
    frames: u64,
    rate_bps: f64,
    last_change: Option<Time>,
}

impl Encoder {
    /// An encoder that captures its first frame at `start`; `number` is the flow's among those over UDP.
    pub fn new(plan: &MediaPlan, start: Time, seed: u64, number: u64) -> Encoder {
        Encoder {
            frames_per_s: plan.frames_per_s,
            variation: plan.size_variation,
            reaction: plan.reaction,
            random: stream(seed, number, Purpose::FrameSizes),
            start,
            frames: 0,
            rate_bps: 0.0,
            last_change: None,
        }
    }

    /// When the next frame is captured.
    pub fn next(&self) -> Time {
        self.start + Time::from_seconds(self.frames as f64 / self.frames_per_s)
    }

    /// Encode the frame that is due at `now`, with this target of the payload in bit/s; returns its number and bytes.
    pub fn encode(&mut self, target_bps: f64, now: Time) -> (u64, u32) {
        let may_react = self
            .last_change
            .is_none_or(|last| now >= last + self.reaction);
        if may_react && target_bps.to_bits() != self.rate_bps.to_bits() {
            self.rate_bps = target_bps;
            self.last_change = Some(now);
        }
        let mean = self.rate_bps / 8.0 / self.frames_per_s;
        let deviation = laplace(unit_interval(self.random.next_u64()), self.variation);
        let bytes = mean * (1.0 + deviation.clamp(-MAX_DEVIATION, MAX_DEVIATION));
        let number = self.frames;
        self.frames += 1;
        (number, bytes.round().max(1.0) as u32)
    }
}

/// The value of a Laplace distribution with mean 0 at a probability in [0, 1).
fn laplace(probability: f64, scale: f64) -> f64 {
    let centred = probability - 0.5;
    let tail = (1.0 - 2.0 * centred.abs()).max(f64::MIN_POSITIVE);
    -scale * centred.signum() * tail.ln()
}

#[cfg(test)]
mod tests {
    use super::super::tests::media_plan;
    use super::*;

    #[test]
    fn quantiles_of_the_laplace_distribution() {
        assert!(laplace(0.5, 0.15).abs() < 1e-12);
        // F(x) = 1 − exp(−x/b)/2: at b ln 2 it is 3/4.
        assert!((laplace(0.75, 0.15) - 0.15 * 2.0_f64.ln()).abs() < 1e-12);
        assert!((laplace(0.25, 0.15) + 0.15 * 2.0_f64.ln()).abs() < 1e-12);
        assert!(laplace(0.0, 0.15).is_finite());
    }

    /// 960 kbit/s and 30 frames a second: 4000 bytes, with a mean absolute deviation of 15 %.
    #[test]
    fn frames_have_the_mean_and_the_deviation_of_the_model() {
        let mut encoder = Encoder::new(&media_plan(), Time::ZERO, 1, 0);
        let mut sizes = Vec::new();
        for number in 0..20_000 {
            let now = encoder.next();
            let (frame, bytes) = encoder.encode(960e3, now);
            assert_eq!(frame, number);
            sizes.push(f64::from(bytes));
        }
        assert_eq!(encoder.next(), Time::from_seconds(20_000.0 / 30.0));
        let mean = sizes.iter().sum::<f64>() / 20_000.0;
        let deviation = sizes.iter().map(|size| (size - 4000.0).abs()).sum::<f64>() / 20_000.0;
        // Standard errors: 4000 · 0.15 √2 / √20000 = 6, and 4000 · 0.15 / √20000 = 4.2.
        assert!((mean - 4000.0).abs() < 24.0, "{mean}");
        assert!((deviation - 600.0).abs() < 20.0, "{deviation}");
    }

    #[test]
    fn a_change_of_the_rate_waits_for_the_reaction_time_after_the_last() {
        let plan = MediaPlan {
            size_variation: 0.0,
            reaction: Time::from_milliseconds(200),
            ..media_plan()
        };
        let mut encoder = Encoder::new(&plan, Time::ZERO, 1, 0);
        let mut at = |ms, target| encoder.encode(target, Time::from_milliseconds(ms)).1;
        assert_eq!(at(0, 240e3), 1000);
        assert_eq!(at(100, 480e3), 1000);
        assert_eq!(at(199, 480e3), 1000);
        assert_eq!(at(200, 480e3), 2000);
        assert_eq!(at(300, 240e3), 2000);
        assert_eq!(at(400, 240e3), 1000);
    }
}
