//! Flows that are given one by one: TCP transfers and flows over UDP.

use std::sync::Arc;

use ackclock_core::{Rate, Time};
use ackclock_traffic::{SlowReader, Writes};
use serde::Deserialize;

use crate::datagrams::SourcePlan;
use crate::network::{EndsPlan, PathPlan};
use crate::tcp::{CongestionPlan, Misbehaviour, TcpPlan};

/// One TCP connection that carries data one way.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// Time of the SYN.
    pub start: Time,
    /// The start moves by a uniform draw from [0, this) per seed.
    pub start_jitter: Time,
    /// Time at which the application stops; `null` is never.
    pub stop: Option<Time>,
    /// Bytes to transfer; `null` is endless.
    pub size_bytes: Option<u64>,
    /// Bytes of the request, if the receiver opens the connection; `null`: the sender opens it.
    pub request_bytes: Option<u32>,
    /// Rate at which the application writes; `null` is as fast as TCP takes it.
    pub application_rate: Option<Rate>,
    /// The application at the receiver; `null`: it reads at once.
    pub slow_reader: Option<SlowReader>,
    /// The application at the sender, if it writes messages; `null`: it does not.
    pub writes: Option<Writes>,
    /// Misbehaviour of the receiver; `null`: none.
    pub misbehaviour: Option<Misbehaviour>,
    /// Priority of the flow's packets, both ways, 0 to 15 as in `tc-prio(8)`.
    pub priority: u8,
    /// The congestion control.
    pub congestion: Arc<CongestionPlan>,
    /// The rest of the TCP.
    pub tcp: TcpPlan,
    /// The hosts between which the engine finds the paths; `null`: they are the two paths that follow.
    pub ends: Option<EndsPlan>,
    /// Path of the data.
    pub forward: PathPlan,
    /// Path of the ACKs.
    pub reverse: PathPlan,
}

/// A flow over UDP; its group has neither a congestion control nor a TCP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatagramPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// Time of the first datagram.
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
    /// Path of the echoes or reports.
    pub reverse: PathPlan,
    /// Payload of a datagram; of media, of the largest.
    pub payload_bytes: u32,
    /// IPv4 and UDP headers (28), and the RTP header (12) of media.
    pub header_bytes: u32,
    /// The two ends of the flow: what is sent, and when.
    pub source: SourcePlan,
}

impl DatagramPlan {
    /// Bytes of a datagram with its headers.
    pub fn packet_bytes(&self) -> u64 {
        u64::from(self.payload_bytes) + u64::from(self.header_bytes)
    }
}
