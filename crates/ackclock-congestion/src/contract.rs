//! What holds for every congestion control, whatever happens to it: what its sender relies on.
//!
//! The tests try it with proptest, which looks for the shortest history that breaks a law; [`tried`] with histories
//! from a seed, so that a control can be tried where nothing is compiled.

mod history;

use ackclock_core::{Rate, Time};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

pub use history::{History, Step};

use super::{make, Controller};

/// Initial window of every trial, in segments.
pub const INITIAL_WINDOW: u32 = 10;

/// The control whose window soon has its largest size on a long path, however little is sent, and that size.
const LARGE_AT_ONCE: (&str, f64) = ("hybla", 65_535.0);

/// Steps of a history that [`tried`] draws.
const STEPS: usize = 300;

/// A control, and what happens to it.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Its name.
    pub kind: &'a str,
    /// Its card's parameters, complete.
    pub parameters: &'a Value,
    /// The path's RTT without queues, in microseconds.
    pub base_rtt_us: u64,
    /// What it draws its random numbers from.
    pub seed: u64,
    /// What happens.
    pub steps: &'a [Step],
}

/// What a controller shows of its state: window, threshold, rate in bit/s.
type Shown = (f64, f64, Option<f64>);

/// What holds of a trial; or in words what does not.
type Holds = Result<(), String>;

impl Trial<'_> {
    /// All laws.
    ///
    /// # Errors
    /// The first that is broken, in words.
    pub fn holds(&self) -> Holds {
        self.begins()?;
        self.stays_sane()?;
        self.repeats()?;
        self.comes_down_at_a_timeout()
    }

    /// It can be made, and begins with the initial window.
    ///
    /// # Errors
    /// Why it cannot, or the window it begins with.
    pub fn begins(&self) -> Holds {
        let cwnd = self.made()?.cwnd();
        require(cwnd == f64::from(INITIAL_WINDOW), || {
            format!("it begins with cwnd {cwnd}; expected the initial window, {INITIAL_WINDOW}")
        })
    }

    /// Windows are at least one segment, finite, and no more than 40 segments for each one sent and a thousand more
    /// (the fastest slow starts of the cards add 32 for each acknowledged one; but see `LARGE_AT_ONCE`); thresholds are at
    /// least one; rates above nothing.
    ///
    /// # Errors
    /// What it shows instead, and after which step.
    pub fn stays_sane(&self) -> Holds {
        let (large, largest) = LARGE_AT_ONCE;
        let least = if self.kind == large { largest } else { 0.0 };
        let most = |sent: u64| {
            let by_sent = 40.0 * (f64::from(INITIAL_WINDOW) + sent as f64) + 1000.0;
            by_sent.max(least)
        };
        let mut sent = 0;
        let (_, seen) = self.played()?;
        for (number, (step, (cwnd, ssthresh, rate_bps))) in self.steps.iter().zip(seen).enumerate()
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
    pub fn repeats(&self) -> Holds {
        let (once, again) = (self.played()?.1, self.played()?.1);
        let apart = once
            .iter()
            .zip(&again)
            .position(|(one, other)| one != other);
        apart.map_or(Ok(()), |number| {
            let (cwnd, second) = (once[number].0, again[number].0);
            Err(format!(
                "cwnd {cwnd} and {second} after step {number} of the same history; expected the same"
            ))
        })
    }

    /// A timeout leaves a small window, unless the controller governs the repair itself.
    ///
    /// # Errors
    /// A window that has grown.
    pub fn comes_down_at_a_timeout(&self) -> Holds {
        let (mut controller, _) = self.played()?;
        let before = controller.cwnd();
        controller.on_timeout(Time::from_seconds(1e6), 5);
        let cwnd = controller.cwnd();
        require(cwnd <= before.max(6.0), || {
            format!("cwnd {cwnd} after a timeout, {before} before; expected no more")
        })
    }

    fn made(&self) -> Result<Box<dyn Controller>, String> {
        make(self.kind, self.parameters, INITIAL_WINDOW).map_err(|error| error.to_string())
    }

    /// The controller at the end, and what it showed after each step.
    fn played(&self) -> Result<(Box<dyn Controller>, Vec<Shown>), String> {
        let mut controller = self.made()?;
        let mut history = History::new(self.base_rtt_us);
        history.open(controller.as_mut(), self.seed);
        let mut seen = Vec::with_capacity(self.steps.len());
        for &step in self.steps {
            history.apply(step, controller.as_mut());
            seen.push(shown(controller.as_ref()));
        }
        Ok((controller, seen))
    }
}

/// Tries a control with so many random histories, always the same ones.
///
/// # Errors
/// The first law that is broken, in words.
pub fn tried(kind: &str, parameters: &Value, trials: u32) -> Holds {
    for seed in 0..u64::from(trials) {
        let mut random = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        let decades = [10, 100, 1000, 10_000, 100_000];
        let least = decades[random.next_u32() as usize % decades.len()];
        let base_rtt_us = least + random.next_u64() % (9 * least);
        let steps: Vec<Step> = (0..STEPS).map(|_| Step::drawn(&mut random)).collect();
        let trial = Trial {
            kind,
            parameters,
            base_rtt_us,
            seed,
            steps: &steps,
        };
        trial
            .holds()
            .map_err(|broken| format!("history {seed}, base RTT {base_rtt_us} µs: {broken}"))?;
    }
    Ok(())
}

fn shown(controller: &dyn Controller) -> Shown {
    let rate = controller.pacing_rate().map(Rate::bits_per_second);
    (controller.cwnd(), controller.ssthresh(), rate)
}

fn require(holds: bool, otherwise: impl FnOnce() -> String) -> Holds {
    if holds {
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
    fn a_control_that_is_there_keeps_the_contract() {
        assert_eq!(tried("reno", &json!({}), 20), Ok(()));
    }

    #[test]
    fn what_cannot_be_made_is_said_in_words() {
        let broken = tried("reno", &json!({ "no_such": 1 }), 1).expect_err("an unknown parameter");
        assert!(
            broken.contains("reno") && broken.contains("no_such"),
            "{broken}"
        );
    }

    #[test]
    fn the_histories_are_long_and_have_every_step() {
        let mut random = Pcg64Mcg::new(1);
        let steps: Vec<Step> = (0..STEPS).map(|_| Step::drawn(&mut random)).collect();
        for kind in [
            std::mem::discriminant(&Step::Send(1, true)),
            std::mem::discriminant(&Step::Ack(1, 1, 1, true, true)),
            std::mem::discriminant(&Step::Loss(true)),
            std::mem::discriminant(&Step::Recovered),
            std::mem::discriminant(&Step::Timeout),
            std::mem::discriminant(&Step::Idle(1)),
        ] {
            let found = steps.iter().map(std::mem::discriminant);
            assert!(found.filter(|other| *other == kind).count() > 2, "{kind:?}");
        }
    }
}
