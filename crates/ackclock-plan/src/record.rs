//! What is recorded.

use ackclock_units::Time;
use serde::Deserialize;

/// What to write down.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)]
pub struct RecordPlan {
    /// Period of the flow and queue samples.
    #[serde(rename = "interval_s")]
    pub interval: Time,
    /// Log every packet.
    pub packets: bool,
    /// Write a capture of the senders' side.
    pub pcap: bool,
    /// Sample the flows of generated traffic too.
    pub traffic: bool,
    /// Sample every link's queue, not only the bottlenecks'.
    pub all_links: bool,
}
