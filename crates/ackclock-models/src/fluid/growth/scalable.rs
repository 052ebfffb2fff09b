//! Scalable TCP: the window grows by a fixed share in a round trip.
//!
//! T. Kelly: Scalable TCP: improving performance in highspeed wide area networks, ACM SIGCOMM Computer
//! Communication Review 33(2), 2003. Below 1/a packets it grows as Reno's, by one packet.

use serde::Deserialize;
use serde_json::Value;

use super::{Growth, Moment};

#[derive(Deserialize)]
struct Scalable {
    /// Increment per acknowledged packet.
    a: f64,
    /// Share given up at a loss.
    b: f64,
}

/// Make the law.
///
/// # Errors
/// A parameter is missing.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    Ok(Box::new(Scalable::deserialize(parameters)?))
}

impl Growth for Scalable {
    fn increase(&self, at: &Moment) -> f64 {
        (self.a * at.window_p).max(1.0)
    }

    fn share_removed(&self, _at: &Moment) -> f64 {
        self.b
    }

    fn lose(&mut self, _at: &Moment, _left_p: f64) {}
}
