//! UDP sources.

use ackclock_core::Time;
use ackclock_traffic::DatagramSource;
use serde::Deserialize;

use crate::network::{EndsPlan, PathPlan};

/// A UDP source; its group has neither a congestion control nor a TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// When the first datagram is sent.
    #[serde(rename = "start_s")]
    pub start: Time,
    /// No datagram is sent at or after this; `null` is never.
    #[serde(rename = "stop_s", deserialize_with = "Option::deserialize")]
    pub stop: Option<Time>,
    /// Priority of the packets, both ways, 0 to 15.
    pub priority: u8,
    /// The hosts between which the engine finds the paths; `null`: they are the two paths that follow.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ends: Option<EndsPlan>,
    /// Path of the datagrams.
    pub forward: PathPlan,
    /// Path of the echoes.
    pub reverse: PathPlan,
    /// Payload of a datagram.
    pub payload_bytes: u32,
    /// IPv4 and UDP headers (28).
    pub header_bytes: u32,
    /// When datagrams leave.
    pub source: DatagramSource,
}

impl DatagramPlan {
    /// Bytes of a datagram with its headers.
    pub fn packet_bytes(&self) -> u64 {
        u64::from(self.payload_bytes) + u64::from(self.header_bytes)
    }
}
