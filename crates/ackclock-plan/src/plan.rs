//! The plan.

use ackclock_core::Time;
use serde::Deserialize;

use crate::error::Error;
use crate::flows::DatagramPlan;
use crate::flows::FlowPlan;
use crate::network::{ChangePlan, LinkPlan, NodePlan, Routing};
use crate::record::RecordPlan;
use crate::tcp::GroupPlan;
use crate::traffic::TrafficPlan;
use crate::wire;

/// One run's network, traffic and recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "wire::Plan")]
pub struct Plan {
    /// End of the run (`duration_s`).
    #[serde(rename = "duration_s")]
    pub duration: Time,
    /// Start of the measured part (`warmup_s`).
    #[serde(rename = "warmup_s")]
    pub warmup: Time,
    /// Hosts and switches, for flows between two nodes; none if every flow has paths of its own.
    pub nodes: Vec<NodePlan>,
    /// The links that can queue; everything else is delay.
    pub links: Vec<LinkPlan>,
    /// Routing between two nodes.
    pub routing: Routing,
    /// The least gap between packets of a flow that begins a flowlet, for [`Routing::Flowlet`].
    pub flowlet_gap: Option<Time>,
    /// Changes of links during the run, in order of time.
    pub changes: Vec<ChangePlan>,
    /// Groups of flows with common parameters.
    pub groups: Vec<GroupPlan>,
    /// The transfers that are given one by one.
    pub flows: Vec<FlowPlan>,
    /// The transfers that are drawn from the seed.
    pub traffic: Vec<TrafficPlan>,
    /// The UDP sources.
    pub datagrams: Vec<DatagramPlan>,
    /// Records to write.
    pub record: RecordPlan,
}

impl TryFrom<wire::Plan> for Plan {
    type Error = Error;

    fn try_from(plan: wire::Plan) -> Result<Plan, Error> {
        let flows = plan.flows.into_iter().map(|flow| flow.of(&plan.groups));
        Ok(Plan {
            flows: flows.collect::<Result<_, _>>()?,
            duration: plan.duration,
            warmup: plan.warmup,
            nodes: plan.nodes,
            links: plan.links,
            routing: plan.routing,
            flowlet_gap: plan.flowlet_gap,
            changes: plan.changes,
            groups: plan.groups,
            traffic: plan.traffic,
            datagrams: plan.datagrams,
            record: plan.record,
        })
    }
}
