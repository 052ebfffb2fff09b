//! Generated transfers as flows.

use std::sync::Arc;

use ackclock_congestion::Prototype;
use ackclock_plan::{EndsPlan, FlowPlan, PathPlan, Plan, TrafficPlan};
use ackclock_traffic::{generate, Ends, Schedule};
use ackclock_units::Time;

use crate::sender::Sender;
use crate::PlanError;

/// The transfers of all traffic of a plan.
pub struct Transfers {
    schedule: Schedule,
    parts: Vec<Part>,
}

/// What the transfers of one `[[traffic]]` have in common.
struct Part {
    /// Where its paths begin.
    first_path: u32,
    /// A transfer as a flow; what differs is filled in.
    flow: FlowPlan,
    /// What their controllers are copied from.
    prototype: Arc<Prototype>,
}

impl Transfers {
    /// Draws all transfers; the paths of the first traffic begin with number `first_path`.
    ///
    /// # Errors
    /// A workload that cannot be generated.
    pub fn new(plan: &Plan, seed: u64, mut first_path: u32) -> Result<Transfers, PlanError> {
        let (mut workloads, mut parts) = (Vec::new(), Vec::new());
        for (index, traffic) in plan.traffic.iter().enumerate() {
            let (workload, stream) = (&traffic.workload, index as u64);
            let made = generate(workload, traffic.population(), plan.duration, seed, stream)
                .map_err(|source| PlanError::Traffic { index, source })?;
            workloads.push(made);
            let flow = flow(plan, traffic)?;
            parts.push(Part {
                first_path,
                prototype: Sender::prototype(&flow)?,
                flow,
            });
            first_path += traffic.paths().len() as u32;
        }
        Ok(Transfers {
            schedule: Schedule::new(workloads),
            parts,
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.schedule.len()
    }

    /// When a transfer begins; [`Time::NEVER`] if it waits for others.
    pub fn start(&self, index: usize) -> Time {
        self.schedule.start(index)
    }

    /// Size in bytes; none if it is endless.
    pub fn size_bytes(&self, index: usize) -> Option<u64> {
        self.schedule.size_bytes(index)
    }

    /// Whether others wait for the transfer's completion.
    pub fn is_awaited(&self, index: usize) -> bool {
        self.schedule.is_awaited(index)
    }

    /// What a transfer has in common with the others of its traffic.
    pub fn common(&self, index: usize) -> &FlowPlan {
        &self.parts[self.schedule.workload(index)].flow
    }

    /// The path of a transfer, or the nodes between which it is.
    pub fn ends(&self, index: usize) -> (Option<u32>, Option<EndsPlan>) {
        match self.schedule.ends(index) {
            Ends::Path(path) => {
                let part = &self.parts[self.schedule.workload(index)];
                (Some(part.first_path + path), None)
            }
            Ends::Nodes {
                source,
                destination,
            } => (
                None,
                Some(EndsPlan {
                    source,
                    destination,
                }),
            ),
        }
    }

    /// A transfer as a flow, without its paths, and what its controller is copied from.
    pub fn flow(&mut self, index: usize) -> (&FlowPlan, &Arc<Prototype>) {
        let (_, ends) = self.ends(index);
        let size_bytes = self.size_bytes(index);
        let part = &mut self.parts[self.schedule.workload(index)];
        part.flow.size_bytes = size_bytes;
        part.flow.ends = ends;
        (&part.flow, &part.prototype)
    }

    /// A transfer is complete at `now`: when those begin that have waited for it alone, and which they are.
    pub fn complete(&mut self, index: usize, now: Time) -> Option<(Time, &[u32])> {
        self.schedule.complete(index, now)
    }
}

/// What the transfers of a traffic have in common.
fn flow(plan: &Plan, traffic: &TrafficPlan) -> Result<FlowPlan, PlanError> {
    let group = plan.groups.get(traffic.group as usize);
    let common = group.and_then(|group| group.congestion.clone().zip(group.tcp.clone()));
    let (congestion, tcp) = common.ok_or(ackclock_plan::Error::NoTcp(traffic.group))?;
    let nowhere = PathPlan {
        hops: Vec::new(),
        delay: Time::ZERO,
    };
    Ok(FlowPlan {
        group: traffic.group,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        stop: None,
        size_bytes: None,
        request_bytes: traffic.request_bytes,
        application_rate: traffic.application_rate,
        priority: traffic.priority,
        congestion: Arc::new(congestion),
        tcp,
        ends: None,
        forward: nowhere.clone(),
        reverse: nowhere,
    })
}
