//! Reno: one packet more in a round trip, half the window at a loss.
//!
//! RFC 5681, in the fluid form of Misra, Gong and Towsley 2000.

use serde::Deserialize;
use serde_json::Value;

use super::{Growth, Moment};

#[derive(Deserialize)]
struct Reno {}

/// Make the law.
///
/// # Errors
/// The parameters are no table.
pub fn make(parameters: &Value) -> Result<Box<dyn Growth>, serde_json::Error> {
    Ok(Box::new(Reno::deserialize(parameters)?))
}

impl Growth for Reno {
    fn increase(&self, _at: &Moment) -> f64 {
        1.0
    }

    fn share_removed(&self, _at: &Moment) -> f64 {
        0.5
    }

    fn lose(&mut self, _at: &Moment, _left_p: f64) {}
}
