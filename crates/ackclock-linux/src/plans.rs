//! All flows of a run by number: those of the plan, its UDP sources, then the generated transfers.

use std::collections::HashMap;

use ackclock_core::tables::NONE;
use ackclock_core::Time;
use ackclock_plan::{EndsPlan, PopulationPlan};
use ackclock_traffic::{generate, start_draw, Ends, Schedule};

use crate::connection::Task;
use crate::run_spec::{HostPair, RunSpec};
use crate::Error;

/// The parameters of a flow and its two hosts.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Description<'a> {
    pub about: About,
    pub priority: u8,
    pub task: Task,
    pub stop: Option<Time>,
    pub host_pair: &'a HostPair,
}

/// The columns of a flow that do not depend on its outcome.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct About {
    pub group: u32,
    pub nodes: [u32; 2],
    pub base_rtt_s: f64,
    pub size_bytes: Option<u64>,
}

/// The flows of a run.
#[derive(Debug)]
pub struct Plans {
    flows: usize,
    first_transfer: usize,
    pub schedule: Schedule,
    /// By traffic and nodes: which of its ways.
    between: HashMap<(usize, [u32; 2]), usize>,
}

impl Plans {
    /// Draw the generated transfers.
    pub fn new(run_spec: &RunSpec) -> Result<Plans, Error> {
        let mut workloads = Vec::new();
        for (index, traffic) in run_spec.plan.traffic.iter().enumerate() {
            let (population, stream) = (traffic.population(), index as u64);
            let made = generate(
                &traffic.workload,
                population,
                run_spec.plan.duration,
                run_spec.seed,
                stream,
            )
            .map_err(|source| Error::Traffic { index, source })?;
            workloads.push(made);
        }
        let host_pairs = run_spec.traffic.iter().enumerate();
        let host_pairs = host_pairs.flat_map(|(traffic, host_pairs)| {
            host_pairs
                .iter()
                .enumerate()
                .map(move |(host_pair, of)| (traffic, host_pair, of))
        });
        let between = host_pairs
            .filter_map(|(traffic, host_pair, of)| Some(((traffic, of.nodes?), host_pair)));
        let plans = Plans {
            flows: run_spec.flows.len(),
            first_transfer: run_spec.flows.len() + run_spec.datagrams.len(),
            schedule: Schedule::new(workloads),
            between: between.collect(),
        };
        plans.check()?;
        Ok(plans)
    }

    /// Every transfer has a way.
    fn check(&self) -> Result<(), Error> {
        for index in 0..self.schedule.len() {
            let traffic = self.schedule.workload(index);
            if let Ends::Nodes {
                source,
                destination,
            } = self.schedule.ends(index)
            {
                if !self.between.contains_key(&(traffic, [source, destination])) {
                    let nodes = format!("from node {source} to node {destination}");
                    return Err(Error::RunSpec(format!(
                        "traffic {traffic} has no way {nodes}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Return the number of flows.
    pub fn len(&self) -> usize {
        self.first_transfer + self.schedule.len()
    }

    /// The numbers of the UDP sources.
    pub fn datagrams(&self) -> std::ops::Range<usize> {
        self.flows..self.first_transfer
    }

    /// The number of the first generated transfer.
    pub fn first_transfer(&self) -> usize {
        self.first_transfer
    }

    /// When a flow begins; never, if it waits for others.
    pub fn start(&self, run_spec: &RunSpec, index: usize) -> Time {
        if let Some(flow) = run_spec.plan.flows.get(index) {
            return flow.start
                + flow
                    .start_jitter
                    .scaled(start_draw(run_spec.seed, index as u64));
        }
        match run_spec.plan.datagrams.get(index - self.flows) {
            Some(datagrams) => datagrams.start,
            None => self.schedule.start(index - self.first_transfer),
        }
    }

    /// Return the parameters of a connection.
    pub fn describe<'a>(
        &self,
        run_spec: &'a RunSpec,
        index: usize,
    ) -> Result<Description<'a>, Error> {
        let Some(flow) = run_spec.plan.flows.get(index) else {
            return self.describe_transfer(run_spec, index - self.first_transfer);
        };
        Ok(Description {
            about: About {
                group: flow.group,
                nodes: nodes(flow.ends),
                base_rtt_s: f64::NAN,
                size_bytes: flow.size_bytes,
            },
            priority: flow.priority,
            task: Task {
                size_bytes: flow.size_bytes,
                request_bytes: flow.request_bytes,
                rate: flow.application_rate,
                slow_reader: flow.slow_reader,
                writes: flow.writes,
                mss_bytes: run_spec.sockets_of_group(flow.group)?.1.mss_bytes,
                header_bytes: run_spec
                    .sockets_of_group(flow.group)?
                    .1
                    .segment_header_bytes(),
            },
            stop: flow.stop,
            host_pair: &run_spec.flows[index],
        })
    }

    fn describe_transfer<'a>(
        &self,
        run_spec: &'a RunSpec,
        transfer: usize,
    ) -> Result<Description<'a>, Error> {
        let number = self.schedule.workload(transfer);
        let traffic = &run_spec.plan.traffic[number];
        let (host_pair, nodes, base_rtt_s) = match self.schedule.ends(transfer) {
            Ends::Path(path) => {
                let base_rtt_s = match &traffic.population {
                    PopulationPlan::Paths { paths } => paths[path as usize]
                        .base_rtt(&run_spec.plan.links)
                        .seconds(),
                    PopulationPlan::Nodes { .. } => f64::NAN,
                };
                (path as usize, [NONE; 2], base_rtt_s)
            }
            Ends::Nodes {
                source,
                destination,
            } => {
                let nodes = [source, destination];
                (self.between[&(number, nodes)], nodes, f64::NAN)
            }
        };
        let size_bytes = self.schedule.size_bytes(transfer);
        let group = &run_spec.plan.groups[traffic.group as usize];
        Ok(Description {
            about: About {
                group: traffic.group,
                nodes,
                base_rtt_s,
                size_bytes,
            },
            priority: traffic.priority,
            task: Task {
                size_bytes,
                request_bytes: traffic.request_bytes,
                rate: traffic.application_rate,
                slow_reader: group.slow_reader,
                writes: group.writes,
                mss_bytes: run_spec.sockets_of_group(traffic.group)?.1.mss_bytes,
                header_bytes: run_spec
                    .sockets_of_group(traffic.group)?
                    .1
                    .segment_header_bytes(),
            },
            stop: None,
            host_pair: &run_spec.traffic[number][host_pair],
        })
    }

    /// Return the fixed columns of a flow of any kind.
    pub fn about(&self, run_spec: &RunSpec, index: usize) -> Result<About, Error> {
        if !self.datagrams().contains(&index) {
            return Ok(self.describe(run_spec, index)?.about);
        }
        let plan = &run_spec.plan.datagrams[index - self.flows];
        Ok(About {
            group: plan.group,
            nodes: nodes(plan.ends),
            base_rtt_s: f64::NAN,
            size_bytes: None,
        })
    }
}

fn nodes(ends: Option<EndsPlan>) -> [u32; 2] {
    ends.map_or([NONE; 2], |ends| [ends.source, ends.destination])
}
