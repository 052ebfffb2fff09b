//! Scratch placeholder while the parts are being written.
use super::Controller;
/// Makes the controller.
///
/// # Errors
/// Always, for now.
pub fn make(_: &serde_json::Value, _: f64) -> Result<Box<dyn Controller>, serde_json::Error> {
    use serde::de::Error as _;
    Err(serde_json::Error::custom("not yet"))
}
