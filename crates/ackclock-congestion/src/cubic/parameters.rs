//! The parameters of CUBIC and its relatives, and which of them make sense.

use ackclock_core::Time;
use serde::Deserialize;

use crate::require;
use crate::slow_start::SlowStart;

/// Linux counts β in parts of this.
pub const BETA_SCALE: u32 = 1024;

/// Parameters shared by CUBIC and its variants.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)]
pub struct Common {
    /// C, segments/s³.
    pub c: f64,
    /// β: the share of the window that is kept at a loss.
    pub beta: f64,
    /// True if a loss below `W_max` lowers `W_max` further, to make room for new flows (section 4.7).
    pub fast_convergence: bool,
    /// True if the window is at least Reno's (section 4.3).
    pub reno_friendly: bool,
    /// True if `W_est` grows like Reno once it has reached the window before the loss.
    pub reno_catch_up: bool,
    /// Slow start: its pace and its end.
    pub slow_start: SlowStart,
    /// True if growth counts acknowledged segments; otherwise it counts ACKs.
    pub delayed_ack_correction: bool,
}

/// Parameters as in CUBIC's algorithm spec.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    #[serde(flatten)]
    pub common: Common,
    /// True if windows are whole segments, as in Linux; otherwise they are the RFC's fractions.
    pub whole_segments: bool,
    /// Minimum time between two updates from the curve; 0: with each ACK.
    #[serde(rename = "tick_s")]
    pub tick: Time,
}

impl Common {
    /// β in 1/1024, if the parameters make sense.
    ///
    /// # Errors
    /// C ≤ 0, or β outside (0, 1).
    pub fn beta_1024(&self) -> Result<u32, serde_json::Error> {
        let beta_1024 = (self.beta * f64::from(BETA_SCALE)).round() as u32;
        require(
            (1..BETA_SCALE).contains(&beta_1024),
            "beta, the share of the window that is kept, must be between 0 and 1",
        )?;
        require(self.c > 0.0 && self.c.is_finite(), "c must be above 0")?;
        Ok(beta_1024)
    }
}
