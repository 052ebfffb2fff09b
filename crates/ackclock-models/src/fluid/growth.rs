//! Growth laws: by how many packets a window grows in a round trip, and what share of it a loss takes.
//!
//! One file a law. The names are those of the algorithm specs; of a spec's parameters, a law reads those that mean
//! something to a fluid: clock ticks and whole segments do not.

mod bic;
mod cubic;
mod fast;
mod highspeed;
mod htcp;
mod reno;
mod scalable;
mod vegas;

use serde_json::Value;

/// A flow at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time.
    pub now_s: f64,
    /// W, packets.
    pub window_p: f64,
    /// R.
    pub rtt_s: f64,
    /// T: the RTT without queues.
    pub base_rtt_s: f64,
}

impl Moment {
    /// Packets of the flow that wait in queues: W (R − T) / R.
    pub fn waiting_p(&self) -> f64 {
        self.window_p * (self.rtt_s - self.base_rtt_s) / self.rtt_s
    }
}

/// A growth law with its state: a pure machine; time comes in with each call.
pub trait Growth: Send {
    /// a: packets that the window grows by in a round trip, in congestion avoidance; may be negative.
    fn increase(&self, at: &Moment) -> f64;

    /// b: the share of the window that a loss takes now.
    fn share_removed(&self, at: &Moment) -> f64;

    /// A loss was found at `at`, and the window becomes `left_p`.
    fn lose(&mut self, at: &Moment, left_p: f64);

    /// Slow start is over without a loss, or never was.
    fn avoid(&mut self, _at: &Moment) {}

    /// A step ended at `at`, `step_s` after the one before, in congestion avoidance.
    fn observe(&mut self, _at: &Moment, _step_s: f64) {}

    /// True if slow start ends here without a loss.
    fn leaves_slow_start(&self, _at: &Moment) -> bool {
        false
    }
}

/// Make a law from the parameters of its algorithm spec.
pub type Maker = fn(&Value) -> Result<Box<dyn Growth>, serde_json::Error>;

/// The laws by the names of their congestion control algorithms.
pub const LAWS: &[(&str, Maker)] = &[
    ("reno", reno::make),
    ("scalable", scalable::make),
    ("highspeed", highspeed::make),
    ("cubic", cubic::make),
    ("htcp", htcp::make),
    ("fast", fast::make),
    ("bic", bic::make),
    ("vegas", vegas::make),
];

/// Make a law by its name.
///
/// # Errors
/// There is no such law, or its parameters are not those of its algorithm spec; the message says which.
pub fn make(name: &str, parameters: &Value) -> Result<Box<dyn Growth>, String> {
    let found = LAWS.iter().find(|(law, _)| *law == name);
    let (_, maker) = found.ok_or_else(|| format!("no growth law {name:?}"))?;
    maker(parameters).map_err(|error| format!("{name}: {error}"))
}

#[cfg(test)]
mod tests;
