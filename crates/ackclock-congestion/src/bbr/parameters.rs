//! The parameters of the algorithm spec, and what they must satisfy.

use serde::Deserialize;

use crate::require;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Pacing and window gain of Startup; Drain paces at its inverse.
    pub startup_gain: f64,
    /// Pacing gain of the probing phase; the draining phase has as much less than 1.
    pub probe_gain: f64,
    /// Window gain in steady state.
    pub cwnd_gain: f64,
    /// Rounds over which the bandwidth is the maximum.
    pub bandwidth_window: u64,
    /// Seconds over which the delay is the minimum.
    pub min_rtt_window_s: f64,
    /// Seconds for which the window is four segments to measure the delay.
    pub probe_rtt_duration_s: f64,
    /// Share by which pacing stays below the bandwidth.
    pub pacing_margin: f64,
    /// True if policers are looked for.
    pub policer_detection: bool,
}

impl Parameters {
    /// Reject gains with which there is no probing, and times without a length.
    ///
    /// # Errors
    /// What must hold and does not.
    pub fn check(&self) -> Result<(), serde_json::Error> {
        let finite = |value: f64| value.is_finite() && value > 0.0;
        require(
            finite(self.startup_gain) && self.startup_gain > 1.0,
            "startup_gain must be above 1",
        )?;
        require(
            self.probe_gain > 1.0 && self.probe_gain < 2.0,
            "probe_gain must lie between 1 and 2",
        )?;
        require(
            finite(self.cwnd_gain) && self.cwnd_gain >= 1.0,
            "cwnd_gain must be at least 1",
        )?;
        require(
            self.bandwidth_window > 0,
            "bandwidth_window must be a round or more",
        )?;
        require(
            finite(self.min_rtt_window_s) && finite(self.probe_rtt_duration_s),
            "min_rtt_window and probe_rtt_duration must be above 0",
        )?;
        require(
            (0.0..1.0).contains(&self.pacing_margin),
            "pacing_margin must lie between 0 and 1",
        )
    }
}
