//! The contract of every congestion control algorithm: properties its sender relies on, for arbitrary histories.
//!
//! The tests try it with proptest, which looks for the shortest history that breaks a law; [`run_trials`] with
//! histories from a seed, so that a control can be tried where nothing is compiled.

mod history;

use ackclock_core::{Rate, Time};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

pub use history::{History, Step};

use super::{make, Controller};

/// Initial window of every trial, in segments.
pub const INITIAL_WINDOW: u32 = 10;

/// The CCA whose window reaches its maximum early on a long path, however little is sent, and that maximum.
const LARGE_INCREASE: (&str, f64) = ("hybla", 65_535.0);

/// Steps of a history that [`run_trials`] draws.
const STEPS: usize = 300;

/// A control, and what happens to it.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Its name.
    pub kind: &'a str,
    /// The parameters of its algorithm spec, complete.
    pub parameters: &'a Value,
    /// The path's RTT without queues, in microseconds.
    pub base_rtt_us: u64,
    /// The seed of its random numbers.
    pub seed: u64,
    /// The history.
    pub steps: &'a [Step],
}

/// The observable state of a controller: window, threshold, rate in bit/s.
type Shown = (f64, f64, Option<f64>);

/// The verdict of a check: an error describes the violation.
type Verdict = Result<(), String>;

impl Trial<'_> {
    /// All laws.
    ///
    /// # Errors
    /// The first that is broken, in words.
    pub fn check(&self) -> Verdict {
        self.starts_at_initial_window()?;
        self.keeps_bounds()?;
        self.is_deterministic()?;
        self.reduces_at_timeout()
    }

    /// It can be made, and begins with the initial window.
    ///
    /// # Errors
    /// Why it cannot, or the window it begins with.
    pub fn starts_at_initial_window(&self) -> Verdict {
        let cwnd = self.make_controller()?.cwnd();
        require(cwnd == f64::from(INITIAL_WINDOW), || {
            format!("it begins with cwnd {cwnd}; expected the initial window, {INITIAL_WINDOW}")
        })
    }

    /// Windows are at least one segment, finite, and no more than 40 segments for each one sent and a thousand more
    /// (the fastest slow starts of the algorithm specs add 32 for each acknowledged one; but see `LARGE_INCREASE`);
    /// thresholds are at least one; rates above nothing.
    ///
    /// # Errors
    /// What it shows instead, and after which step.
    pub fn keeps_bounds(&self) -> Verdict {
        let (large, largest) = LARGE_INCREASE;
        let min = if self.kind == large { largest } else { 0.0 };
        let most = |sent: u64| {
            let by_sent = 40.0 * (f64::from(INITIAL_WINDOW) + sent as f64) + 1000.0;
            by_sent.max(min)
        };
        let mut sent = 0;
        let (_, shown) = self.play()?;
        for (number, (step, (cwnd, ssthresh, rate_bps))) in self.steps.iter().zip(shown).enumerate()
        {
            if let Step::Send(segments, _) = step {
                sent += u64::from(*segments);
            }
            let after = || format!("after step {number} ({step:?})");
            require(cwnd >= 1.0 && cwnd <= most(sent), || {
                let most = most(sent);
                format!("cwnd {cwnd} {}; expected 1 to {most} segments", after())
            })?;
            require(ssthresh >= 1.0, || {
                format!("ssthresh {ssthresh} {}; expected at least 1", after())
            })?;
            let sane = rate_bps.is_none_or(|rate_bps| rate_bps > 0.0 && rate_bps.is_finite());
            require(sane, || {
                let rate_bps = rate_bps.unwrap_or_default();
                format!("pacing at {rate_bps} bit/s {}; expected a rate", after())
            })?;
        }
        Ok(())
    }

    /// The same history and seed give the same windows.
    ///
    /// # Errors
    /// That they do not.
    pub fn is_deterministic(&self) -> Verdict {
        let (first, second) = (self.play()?.1, self.play()?.1);
        let apart = first
            .iter()
            .zip(&second)
            .position(|(one, other)| one != other);
        apart.map_or(Ok(()), |number| {
            let (cwnd, second) = (first[number].0, second[number].0);
            Err(format!(
                "cwnd {cwnd} and {second} after step {number} of the same history; expected the same"
            ))
        })
    }

    /// A timeout leaves a small window, unless the controller governs the repair itself.
    ///
    /// # Errors
    /// A window that has grown.
    pub fn reduces_at_timeout(&self) -> Verdict {
        let (mut controller, _) = self.play()?;
        let before = controller.cwnd();
        controller.on_timeout(Time::from_seconds(1e6), 5);
        let cwnd = controller.cwnd();
        require(cwnd <= before.max(6.0), || {
            format!("cwnd {cwnd} after a timeout, {before} before; expected no more")
        })
    }

    fn make_controller(&self) -> Result<Box<dyn Controller>, String> {
        make(self.kind, self.parameters, INITIAL_WINDOW).map_err(|error| error.to_string())
    }

    /// The controller at the end, and what it showed after each step.
    fn play(&self) -> Result<(Box<dyn Controller>, Vec<Shown>), String> {
        let mut controller = self.make_controller()?;
        let mut history = History::new(self.base_rtt_us);
        history.open(controller.as_mut(), self.seed);
        let mut shown = Vec::with_capacity(self.steps.len());
        for &step in self.steps {
            history.apply(step, controller.as_mut());
            shown.push(observe(controller.as_ref()));
        }
        Ok((controller, shown))
    }
}

/// Try a control with so many random histories, always the same ones.
///
/// # Errors
/// The first law that is broken, in words.
pub fn run_trials(kind: &str, parameters: &Value, trials: u32) -> Verdict {
    for seed in 0..u64::from(trials) {
        let mut random = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        let decades = [10, 100, 1000, 10_000, 100_000];
        let min = decades[random.next_u32() as usize % decades.len()];
        let base_rtt_us = min + random.next_u64() % (9 * min);
        let steps: Vec<Step> = (0..STEPS).map(|_| Step::random(&mut random)).collect();
        let trial = Trial {
            kind,
            parameters,
            base_rtt_us,
            seed,
            steps: &steps,
        };
        trial
            .check()
            .map_err(|broken| format!("history {seed}, base RTT {base_rtt_us} µs: {broken}"))?;
    }
    Ok(())
}

fn observe(controller: &dyn Controller) -> Shown {
    let rate = controller.pacing_rate().map(Rate::bits_per_second);
    (controller.cwnd(), controller.ssthresh(), rate)
}

fn require(check: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if check {
        Ok(())
    } else {
        Err(otherwise())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_existing_cca_keeps_the_contract() {
        assert_eq!(
            run_trials("reno", &json!({ "slow_start": "standard" }), 20),
            Ok(())
        );
    }

    #[test]
    fn invalid_parameters_are_reported() {
        let broken =
            run_trials("reno", &json!({ "no_such": 1 }), 1).expect_err("an unknown parameter");
        assert!(
            broken.contains("reno") && broken.contains("no_such"),
            "{broken}"
        );
    }

    #[test]
    fn the_histories_are_long_and_have_every_step() {
        let mut random = Pcg64Mcg::new(1);
        let steps: Vec<Step> = (0..STEPS).map(|_| Step::random(&mut random)).collect();
        for kind in [
            std::mem::discriminant(&Step::Send(1, true)),
            std::mem::discriminant(&Step::Ack(1, 1, 1, true, true)),
            std::mem::discriminant(&Step::Loss(true)),
            std::mem::discriminant(&Step::Recovered),
            std::mem::discriminant(&Step::Timeout),
            std::mem::discriminant(&Step::Idle(1)),
            std::mem::discriminant(&Step::LossAfterMark),
            std::mem::discriminant(&Step::RepeatedTimeout),
            std::mem::discriminant(&Step::Undo),
            std::mem::discriminant(&Step::Reordering(true)),
        ] {
            let found = steps.iter().map(std::mem::discriminant);
            assert!(found.filter(|other| *other == kind).count() > 2, "{kind:?}");
        }
    }
}
