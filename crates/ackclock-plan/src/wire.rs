//! The plan as it is written: flows name their group, and what a group has in common is said once.

use std::sync::Arc;

use ackclock_units::{Rate, Time};
use serde::Deserialize;

use crate::{
    ChangePlan, DatagramPlan, EndsPlan, Error, GroupPlan, LinkPlan, NodePlan, PathPlan, RecordPlan,
    Routing, TrafficPlan,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    #[serde(rename = "duration_s")]
    duration: Time,
    #[serde(rename = "warmup_s")]
    warmup: Time,
    nodes: Vec<NodePlan>,
    links: Vec<LinkPlan>,
    routing: Routing,
    changes: Vec<ChangePlan>,
    groups: Vec<GroupPlan>,
    flows: Vec<Flow>,
    traffic: Vec<TrafficPlan>,
    datagrams: Vec<DatagramPlan>,
    record: RecordPlan,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
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

impl TryFrom<Plan> for crate::Plan {
    type Error = Error;

    fn try_from(plan: Plan) -> Result<crate::Plan, Error> {
        let flows = plan.flows.into_iter().map(|flow| flow.of(&plan.groups));
        Ok(crate::Plan {
            flows: flows.collect::<Result<_, _>>()?,
            duration: plan.duration,
            warmup: plan.warmup,
            nodes: plan.nodes,
            links: plan.links,
            routing: plan.routing,
            changes: plan.changes,
            groups: plan.groups,
            traffic: plan.traffic,
            datagrams: plan.datagrams,
            record: plan.record,
        })
    }
}

impl Flow {
    /// The flow with what its group has in common.
    fn of(self, groups: &[GroupPlan]) -> Result<crate::FlowPlan, Error> {
        let group = groups.get(self.group as usize);
        let common = group.and_then(|group| group.congestion.clone().zip(group.tcp.clone()));
        let (congestion, tcp) = common.ok_or(Error::NoTcp(self.group))?;
        Ok(crate::FlowPlan {
            group: self.group,
            start: self.start,
            start_jitter: self.start_jitter,
            stop: self.stop,
            size_bytes: self.size_bytes,
            request_bytes: self.request_bytes,
            application_rate: self.application_rate,
            priority: self.priority,
            congestion: Arc::new(congestion),
            tcp,
            ends: self.ends,
            forward: self.forward,
            reverse: self.reverse,
        })
    }
}
