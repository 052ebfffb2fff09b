//! Transfers that are given one by one.

use std::sync::Arc;

use ackclock_core::{Rate, Time};

use crate::network::{EndsPlan, PathPlan};
use crate::tcp::{CongestionPlan, TcpPlan};

/// One TCP connection that carries data one way.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// When the SYN is sent.
    pub start: Time,
    /// The start moves by a uniform draw from [0, this) per seed.
    pub start_jitter: Time,
    /// When the application has no more to send; `null` is never.
    pub stop: Option<Time>,
    /// Bytes to transfer; `null` is endless.
    pub size_bytes: Option<u64>,
    /// The receiver opens the connection and asks with so many bytes; `null`: the sender opens it.
    pub request_bytes: Option<u32>,
    /// Rate at which the application writes; `null` is as fast as TCP takes it.
    pub application_rate: Option<Rate>,
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
