//! Serialised form of the plan: flows name their group, which holds their common parameters.

use std::sync::Arc;

use ackclock_core::{Rate, Time};
use serde::Deserialize;

use crate::error::Error;
use crate::flows::DatagramPlan;
use crate::flows::FlowPlan;
use crate::network::{ChangePlan, EndsPlan, LinkPlan, NodePlan, PathPlan, Routing};
use crate::record::RecordPlan;
use crate::tcp::GroupPlan;
use crate::traffic::TrafficPlan;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    #[serde(rename = "duration_s")]
    pub duration: Time,
    #[serde(rename = "warmup_s")]
    pub warmup: Time,
    pub nodes: Vec<NodePlan>,
    pub links: Vec<LinkPlan>,
    pub routing: Routing,
    #[serde(rename = "flowlet_gap_s", deserialize_with = "Option::deserialize")]
    pub flowlet_gap: Option<Time>,
    pub changes: Vec<ChangePlan>,
    pub groups: Vec<GroupPlan>,
    pub flows: Vec<Flow>,
    pub traffic: Vec<TrafficPlan>,
    pub datagrams: Vec<DatagramPlan>,
    pub record: RecordPlan,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    group: u32,
    #[serde(rename = "start_s")]
    start: Time,
    #[serde(rename = "start_jitter_s")]
    start_jitter: Time,
    #[serde(rename = "stop_s", deserialize_with = "Option::deserialize")]
    stop: Option<Time>,
    #[serde(deserialize_with = "Option::deserialize")]
    size_bytes: Option<u64>,
    #[serde(deserialize_with = "Option::deserialize")]
    request_bytes: Option<u32>,
    #[serde(
        rename = "application_rate_bps",
        deserialize_with = "Option::deserialize"
    )]
    application_rate: Option<Rate>,
    priority: u8,
    #[serde(deserialize_with = "Option::deserialize")]
    ends: Option<EndsPlan>,
    forward: PathPlan,
    reverse: PathPlan,
}

impl Flow {
    /// The flow with what its group has in common.
    pub fn of(self, groups: &[GroupPlan]) -> Result<FlowPlan, Error> {
        let group = groups.get(self.group as usize);
        let common = group.and_then(|group| group.congestion.clone().zip(group.tcp.clone()));
        let (congestion, tcp) = common.ok_or(Error::NoTcp(self.group))?;
        Ok(FlowPlan {
            group: self.group,
            start: self.start,
            start_jitter: self.start_jitter,
            stop: self.stop,
            size_bytes: self.size_bytes,
            request_bytes: self.request_bytes,
            application_rate: self.application_rate,
            slow_reader: group.and_then(|group| group.slow_reader),
            writes: group.and_then(|group| group.writes),
            misbehaviour: group.and_then(|group| group.misbehaviour),
            priority: self.priority,
            congestion: Arc::new(congestion),
            tcp,
            ends: self.ends,
            forward: self.forward,
            reverse: self.reverse,
        })
    }
}
