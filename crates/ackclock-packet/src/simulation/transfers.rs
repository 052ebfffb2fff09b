//! Generated transfers: which there are, what each is, and those that wait for others.

use std::sync::Arc;

use ackclock_traffic::{generate, Ends, Gate, Generated, Population, Start, Transfer};
use ackclock_units::Time;

use crate::plan::{EndsPlan, FlowPlan, PathPlan, Plan, PopulationPlan, TrafficPlan};
use crate::PlanError;

/// The transfers of all traffic of a plan.
pub struct Transfers {
    list: Vec<Transfer>,
    parts: Vec<Part>,
    gates: Vec<Counter>,
    /// Transfers that wait for a gate, gate by gate, and where those of each gate begin.
    waiting: Vec<u32>,
    first_waiting: Vec<u32>,
}

/// The transfers of one `[[traffic]]`.
struct Part {
    /// Where its transfers, gates and ways begin.
    first: usize,
    first_gate: u32,
    first_way: u32,
    /// A transfer as a flow; what differs is filled in.
    flow: FlowPlan,
}

/// A gate and the completions that it still awaits.
struct Counter {
    gate: Gate,
    /// It begins nothing at or after this.
    stop: Time,
}

impl Transfers {
    /// Draws all transfers; the ways of the first traffic begin with number `first_way`.
    ///
    /// # Errors
    /// A workload that cannot be generated.
    pub fn new(plan: &Plan, seed: u64, first_way: u32) -> Result<Transfers, PlanError> {
        let mut transfers = Transfers {
            list: Vec::new(),
            parts: Vec::new(),
            gates: Vec::new(),
            waiting: Vec::new(),
            first_waiting: Vec::new(),
        };
        let mut first_way = first_way;
        for (index, traffic) in plan.traffic.iter().enumerate() {
            let population = population(traffic);
            let (workload, stream) = (&traffic.workload, index as u64);
            let made = generate(workload, population, plan.duration, seed, stream)
                .map_err(|source| PlanError::Traffic { index, source })?;
            transfers.add(made, first_way, flow(plan, traffic)?);
            first_way += traffic.ways().len() as u32;
        }
        transfers.sort_waiting();
        Ok(transfers)
    }

    fn add(&mut self, made: Generated, first_way: u32, flow: FlowPlan) {
        self.parts.push(Part {
            first: self.list.len(),
            first_gate: self.gates.len() as u32,
            first_way,
            flow,
        });
        let stop = made.stop;
        let gates = made.gates.into_iter().map(|gate| Counter { gate, stop });
        self.gates.extend(gates);
        self.list.extend(made.transfers);
        self.list.shrink_to_fit();
    }

    /// Sorts by gate what waits for one; the order within a gate stays.
    fn sort_waiting(&mut self) {
        let gate = |index: &u32| self.gate_of(*index as usize);
        let mut waiting: Vec<u32> = (0..self.list.len() as u32)
            .filter(|index| gate(index).is_some())
            .collect();
        waiting.sort_by_key(gate);
        let gates = 0..=self.gates.len() as u32;
        self.first_waiting = gates
            .map(|of| waiting.partition_point(|index| gate(index) < Some(of)) as u32)
            .collect();
        self.waiting = waiting;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// When a transfer begins; [`Time::NEVER`] if it waits for others.
    pub fn start(&self, index: usize) -> Time {
        match self.list[index].start {
            Start::At(time) => time,
            Start::Gate(_) => Time::NEVER,
        }
    }

    /// Size in bytes; none if it is endless.
    pub fn size_bytes(&self, index: usize) -> Option<u64> {
        self.list[index].size_bytes
    }

    /// Whether others wait for the transfer's completion.
    pub fn is_awaited(&self, index: usize) -> bool {
        self.list[index].completes.is_some()
    }

    /// What a transfer has in common with the others of its traffic.
    pub fn common(&self, index: usize) -> &FlowPlan {
        &self.parts[self.part(index)].flow
    }

    /// The way of a transfer, or the nodes between which it is.
    pub fn ends(&self, index: usize) -> (Option<u32>, Option<EndsPlan>) {
        match self.list[index].ends {
            Ends::Path(path) => (Some(self.parts[self.part(index)].first_way + path), None),
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

    /// A transfer as a flow, without its paths.
    pub fn flow(&mut self, index: usize) -> &FlowPlan {
        let (_, ends) = self.ends(index);
        let size_bytes = self.size_bytes(index);
        let part = self.part(index);
        let flow = &mut self.parts[part].flow;
        flow.size_bytes = size_bytes;
        flow.ends = ends;
        flow
    }

    /// A transfer is complete at `now`: when those begin that have waited for it alone, and which they are.
    pub fn complete(&mut self, index: usize, now: Time) -> Option<(Time, &[u32])> {
        let gate = self.list[index].completes? + self.parts[self.part(index)].first_gate;
        let counter = &mut self.gates[gate as usize];
        counter.gate.awaits -= 1;
        let opens = now + counter.gate.delay;
        if counter.gate.awaits > 0 || opens >= counter.stop {
            return None;
        }
        let place = |gate: u32| self.first_waiting[gate as usize] as usize;
        Some((opens, &self.waiting[place(gate)..place(gate + 1)]))
    }

    fn gate_of(&self, index: usize) -> Option<u32> {
        match self.list[index].start {
            Start::At(_) => None,
            Start::Gate(gate) => Some(gate + self.parts[self.part(index)].first_gate),
        }
    }

    fn part(&self, index: usize) -> usize {
        self.parts.partition_point(|part| part.first <= index) - 1
    }
}

fn population(traffic: &TrafficPlan) -> Population<'_> {
    match &traffic.population {
        PopulationPlan::Paths { paths } => Population::Paths(paths.len() as u32),
        PopulationPlan::Nodes {
            sources,
            destinations,
            pairing,
        } => Population::Nodes {
            sources,
            destinations,
            pairing: *pairing,
        },
    }
}

/// What the transfers of a traffic have in common.
fn flow(plan: &Plan, traffic: &TrafficPlan) -> Result<FlowPlan, PlanError> {
    let group = plan.groups.get(traffic.group as usize);
    let common = group.and_then(|group| group.congestion.clone().zip(group.tcp.clone()));
    let (congestion, tcp) = common.ok_or(PlanError::NoTcp(traffic.group))?;
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
