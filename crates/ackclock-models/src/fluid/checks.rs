//! Checks of a plan, and the ranges of its numbers.

use thiserror::Error;

/// Reason why a plan cannot be run.
#[derive(Debug, Error)]
pub enum PlanError {
    /// Not the JSON of a plan.
    #[error("plan: {0}")]
    Json(#[from] serde_json::Error),
    /// A growth law that there is not, or parameters other than those of its algorithm spec.
    #[error("flow {flow}: {reason}")]
    Growth {
        /// Number of the flow.
        flow: usize,
        /// Description of the error.
        reason: String,
    },
    /// A number outside its range.
    #[error("{0}")]
    Value(String),
    /// Two paths cross the same links in different orders.
    #[error("the paths of the flows cross their links in a circle")]
    Circle,
}

/// Reject what is not a finite number above 0.
///
/// # Errors
/// It is not.
pub fn positive(name: &str, value: f64) -> Result<(), PlanError> {
    between(name, value, f64::MIN_POSITIVE, f64::MAX)
}

/// Reject what is not a finite number within bounds.
///
/// # Errors
/// It is not.
pub fn between(name: &str, value: f64, low: f64, high: f64) -> Result<(), PlanError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let message = format!("{name}: found {value}; expected a number from {low:e} to {high:e}");
    Err(PlanError::Value(message))
}
