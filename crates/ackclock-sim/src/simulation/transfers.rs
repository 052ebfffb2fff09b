//! Generated transfers as flows.
//!
//! Transfers are numbered traffic by traffic. Of each traffic those with a time come first, in its order, so that only
//! the next one need be known; those that wait for others were drawn ahead.

use std::ops::Range;
use std::sync::Arc;

use ackclock_congestion::Prototype;
use ackclock_core::Time;
use ackclock_plan::{EndsPlan, FlowPlan, PathPlan, Plan, TrafficPlan};
use ackclock_traffic::{supply, Arriving, Ends, Generated, Schedule, Start, Supply, Transfer};

use crate::sender::Sender;
use crate::PlanError;

/// The transfers of all traffic of a plan.
pub struct Transfers {
    /// Transfers drawn in advance.
    schedule: Schedule,
    parts: Vec<Part>,
    len: usize,
}

/// The transfers of one `[[traffic]]`.
struct Part {
    /// The number of its first transfer.
    first: usize,
    /// Number of transfers with a start time that have been scheduled.
    given_out: usize,
    /// Generator of transfers that are not drawn in advance.
    arriving: Option<Arriving>,
    /// Index of its first path; `None` between nodes.
    first_path: Option<u32>,
    /// A transfer as a flow; what differs is filled in.
    flow: FlowPlan,
    /// Prototype of their controllers.
    prototype: Arc<Prototype>,
}

/// A transfer that is to begin, has begun, or is over.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The number of its traffic.
    pub traffic: usize,
    /// The transfer.
    pub transfer: Transfer,
}

impl Task {
    /// Traffic whose next transfer is scheduled when this one begins, if transfers have start times.
    pub fn follower(&self) -> Option<usize> {
        matches!(self.transfer.start, Start::At(_)).then_some(self.traffic)
    }
}

impl Transfers {
    /// The transfers of a plan; the paths of the first traffic begin with number `first_path`.
    pub fn new(plan: &Plan, seed: u64, mut first_path: u32) -> Result<Transfers, PlanError> {
        let (mut ahead, mut parts, mut len) = (Vec::new(), Vec::new(), 0);
        for (index, traffic) in plan.traffic.iter().enumerate() {
            let (workload, stream) = (&traffic.workload, index as u64);
            let supply = supply(workload, traffic.population(), plan.duration, seed, stream)
                .map_err(|source| PlanError::Traffic { index, source })?;
            let (made, arriving) = match supply {
                Supply::Drawn(made) => (made, None),
                Supply::Arriving(arriving) => (Generated::none(arriving.stop()), Some(arriving)),
            };
            let first = len;
            len += made.transfers.len() + arriving.as_ref().map_or(0, Arriving::len);
            ahead.push(made);
            let flow = flow(plan, traffic)?;
            let paths = traffic.paths().len() as u32;
            parts.push(Part {
                first,
                given_out: 0,
                arriving,
                first_path: (paths > 0).then_some(first_path),
                prototype: Sender::prototype(&flow)?,
                flow,
            });
            first_path += paths;
        }
        Ok(Transfers {
            schedule: Schedule::new(ahead),
            parts,
            len,
        })
    }

    /// Number of transfers.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if each transfer begins at a time of its own, whatever becomes of the others.
    pub fn are_independent(&self) -> bool {
        let mut drawn = (0..self.schedule.len()).map(|index| self.schedule.transfer(index));
        drawn.all(|transfer| transfer.completes.is_none() && matches!(transfer.start, Start::At(_)))
    }

    /// The numbers of all traffic.
    pub fn traffic(&self) -> Range<usize> {
        0..self.parts.len()
    }

    /// Number of a traffic's first transfer.
    pub fn first(&self, traffic: usize) -> usize {
        self.parts[traffic].first
    }

    /// Between whom the transfers of a traffic are, in the order of their numbers.
    pub fn ends_of(&self, traffic: usize) -> impl Iterator<Item = Ends> + '_ {
        let arriving = self.parts[traffic].arriving.clone().into_iter().flatten();
        let ahead = self.schedule.of_workload(traffic);
        let ahead = ahead.map(|index| self.schedule.transfer(index));
        arriving.chain(ahead).map(|transfer| transfer.ends)
    }

    /// The nodes between which transfers are that have no paths.
    pub fn nodes(&self) -> impl Iterator<Item = EndsPlan> + '_ {
        let routed = self.parts.iter().filter(|part| part.first_path.is_none());
        let arriving = routed.filter_map(|part| part.arriving.clone()).flatten();
        let ahead = (0..self.schedule.len()).map(|index| self.schedule.transfer(index));
        arriving
            .chain(ahead)
            .filter_map(|transfer| nodes(transfer.ends))
    }

    /// The next transfer of a traffic that begins at a time of its own: its number, that time, and what it is.
    pub fn next(&mut self, traffic: usize) -> Option<(usize, Time, Task)> {
        let part = &mut self.parts[traffic];
        let transfer = if let Some(arriving) = &mut part.arriving {
            arriving.next()?
        } else {
            let mut ahead = self.schedule.of_workload(traffic);
            self.schedule.transfer(ahead.nth(part.given_out)?)
        };
        let Start::At(time) = transfer.start else {
            return None;
        };
        let number = part.first + part.given_out;
        part.given_out += 1;
        Some((number, time, Task { traffic, transfer }))
    }

    /// Properties that a transfer shares with the others of its traffic.
    pub fn common(&self, task: &Task) -> &FlowPlan {
        &self.parts[task.traffic].flow
    }

    /// The path of a transfer, or the nodes between which it is.
    pub fn ends(&self, task: &Task) -> (Option<u32>, Option<EndsPlan>) {
        let first_path = self.parts[task.traffic].first_path;
        match task.transfer.ends {
            Ends::Path(path) => (first_path.map(|first| first + path), None),
            Ends::Nodes { .. } => (None, nodes(task.transfer.ends)),
        }
    }

    /// A transfer as a flow, without its paths, and what its controller is copied from.
    pub fn flow(&mut self, task: &Task) -> (&FlowPlan, &Arc<Prototype>) {
        let part = &mut self.parts[task.traffic];
        part.flow.size_bytes = task.transfer.size_bytes;
        part.flow.ends = nodes(task.transfer.ends);
        (&part.flow, &part.prototype)
    }

    /// The transfer of this number is complete at `now`: when those begin that have waited for it alone, their numbers,
    /// and what they are.
    pub fn complete(
        &mut self,
        number: usize,
        traffic: usize,
        now: Time,
    ) -> Option<(Time, Vec<(usize, Task)>)> {
        let first = self.parts[traffic].first;
        let ahead = self.schedule.of_workload(traffic).start;
        let (opens, waiting) = self.schedule.complete(number - first + ahead, now)?;
        let waiting: Vec<usize> = waiting.iter().map(|&index| index as usize).collect();
        let waiting = waiting.into_iter().map(|index| {
            let transfer = self.schedule.transfer(index);
            (index - ahead + first, Task { traffic, transfer })
        });
        Some((opens, waiting.collect()))
    }
}

/// The two ends of a transfer that has no path.
fn nodes(ends: Ends) -> Option<EndsPlan> {
    match ends {
        Ends::Path(_) => None,
        Ends::Nodes {
            source,
            destination,
        } => Some(EndsPlan {
            source,
            destination,
        }),
    }
}

/// Properties of all transfers of a traffic.
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
        slow_reader: group.and_then(|group| group.slow_reader),
        writes: group.and_then(|group| group.writes),
        misbehaviour: group.and_then(|group| group.misbehaviour),
        priority: traffic.priority,
        congestion: Arc::new(congestion),
        tcp,
        ends: None,
        forward: nowhere.clone(),
        reverse: nowhere,
    })
}
