//! The parameters of the algorithm spec, and what they must satisfy.

use serde::Deserialize;

use crate::require;

/// Parameters as in the algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Pacing gain of Startup.
    pub startup_gain: f64,
    /// Pacing gain of Drain.
    pub drain_gain: f64,
    /// Pacing gain of `ProbeBW_UP`.
    pub up_gain: f64,
    /// Pacing gain of `ProbeBW_DOWN`.
    pub down_gain: f64,
    /// Window gain but in `ProbeBW_UP` and `ProbeRTT`.
    pub cwnd_gain: f64,
    /// Window gain of `ProbeBW_UP`.
    pub up_cwnd_gain: f64,
    /// Window gain of `ProbeRTT`.
    pub probe_rtt_cwnd_gain: f64,
    /// Loss share above which a flight was too large.
    pub loss_threshold: f64,
    /// The minimum share that a round with losses leaves.
    pub beta: f64,
    /// Share of the long-term bound that is left to others.
    pub headroom: f64,
    /// Seconds between probes at least.
    pub probe_wait_s: f64,
    /// Seconds that chance adds to it.
    pub probe_wait_spread_s: f64,
    /// Round trips between probes at most.
    pub reno_rounds: u64,
    /// Seconds over which the delay is the minimum.
    pub min_rtt_window_s: f64,
    /// Seconds without a smaller RTT after which the delay is measured.
    pub probe_rtt_interval_s: f64,
    /// Seconds for which the window is small for it.
    pub probe_rtt_duration_s: f64,
    /// Share by which pacing stays below the bandwidth.
    pub pacing_margin: f64,
}

impl Parameters {
    /// Reject gains without a probe, shares that are none, and times without a length.
    ///
    /// # Errors
    /// What must hold and does not.
    pub fn check(&self) -> Result<(), serde_json::Error> {
        let share = |value: f64| (0.0..1.0).contains(&value);
        let positive = |value: f64| value.is_finite() && value > 0.0;
        require(
            positive(self.startup_gain) && self.startup_gain > 1.0,
            "startup_gain must be above 1",
        )?;
        require(
            positive(self.up_gain) && self.up_gain > 1.0,
            "up_gain must be above 1",
        )?;
        require(
            positive(self.drain_gain) && self.drain_gain <= 1.0,
            "drain_gain must lie between 0 and 1",
        )?;
        require(
            positive(self.down_gain) && self.down_gain <= 1.0,
            "down_gain must lie between 0 and 1",
        )?;
        require(
            [self.cwnd_gain, self.up_cwnd_gain]
                .iter()
                .all(|&gain| positive(gain) && gain >= 1.0),
            "cwnd_gain and up_cwnd_gain must be at least 1",
        )?;
        require(
            positive(self.probe_rtt_cwnd_gain) && self.probe_rtt_cwnd_gain <= 1.0,
            "probe_rtt_cwnd_gain must lie between 0 and 1",
        )?;
        require(
            [
                self.loss_threshold,
                self.beta,
                self.headroom,
                self.pacing_margin,
            ]
            .into_iter()
            .all(share),
            "loss_threshold, beta, headroom and pacing_margin must lie between 0 and 1",
        )?;
        require(
            positive(self.probe_wait_s)
                && self.probe_wait_spread_s.is_finite()
                && self.probe_wait_spread_s >= 0.0,
            "probe_wait must be above 0 and probe_wait_spread not below",
        )?;
        require(self.reno_rounds > 0, "reno_rounds must be a round or more")?;
        require(
            [
                self.min_rtt_window_s,
                self.probe_rtt_interval_s,
                self.probe_rtt_duration_s,
            ]
            .into_iter()
            .all(positive),
            "min_rtt_window, probe_rtt_interval and probe_rtt_duration must be above 0",
        )
    }
}
