//! Headers of the flows' packets, which disciplines read.
//!
//! Flows that are routed are between nodes. Others have no nodes: those of a group that take the same paths are between
//! the same two hosts, numbered after the nodes.

use std::collections::HashMap;

use ackclock_plan::{EndsPlan, PathPlan, Plan, SourcePlan, TcpPlan};
use ackclock_traffic::Ends;

use super::transfers::Transfers;
use crate::queue::{FlowHeader, FlowHeaders, HOST_AWARE};

/// The headers of all flows. `given` flows are not generated.
pub fn flow_headers(plan: &Plan, transfers: &Transfers, given: usize) -> FlowHeaders {
    let mut hosts = Hosts::new(plan);
    let mut headers = Vec::new();
    for flow in &plan.flows {
        let between = hosts.of(flow.group, flow.ends, &flow.forward, &flow.reverse);
        headers.push(header(
            plan,
            flow.group,
            flow.priority,
            Some(&flow.tcp),
            between,
        ));
    }
    for source in &plan.datagrams {
        let between = hosts.of(source.group, source.ends, &source.forward, &source.reverse);
        headers.push(FlowHeader {
            is_external: matches!(source.source, SourcePlan::External),
            ..header(plan, source.group, source.priority, None, between)
        });
    }
    let mut headers: Vec<_> = (0..).zip(headers).collect();
    for (index, traffic) in plan.traffic.iter().enumerate() {
        let group = plan.groups.get(traffic.group as usize);
        let tcp = group.and_then(|group| group.tcp.as_ref());
        let of = |between| header(plan, traffic.group, traffic.priority, tcp, between);
        let first = given + transfers.first(index);
        if !hosts.are_seen {
            headers.push((first as u32, of([0; 2])));
            continue;
        }
        for (flow, ends) in (first as u32..).zip(transfers.ends_of(index)) {
            let between = match ends {
                Ends::Nodes {
                    source,
                    destination,
                } => [source, destination],
                Ends::Path(path) => {
                    let pair = &traffic.paths()[path as usize];
                    hosts.of(traffic.group, None, &pair.forward, &pair.reverse)
                }
            };
            headers.push((flow, of(between)));
        }
    }
    FlowHeaders::new(headers)
}

fn header(
    plan: &Plan,
    group: u32,
    priority: u8,
    tcp: Option<&TcpPlan>,
    hosts: [u32; 2],
) -> FlowHeader {
    let bare_ack_bytes = tcp.map_or(0, TcpPlan::segment_header_bytes);
    FlowHeader {
        priority,
        dscp: plan
            .groups
            .get(group as usize)
            .map_or(0, |group| group.dscp),
        bare_ack_bytes: u16::try_from(bare_ack_bytes).unwrap_or(u16::MAX),
        hosts,
        is_external: false,
    }
}

/// The hosts of flows.
struct Hosts<'a> {
    /// True if a discipline of the plan distinguishes them.
    are_seen: bool,
    /// Number of the first host that is no node.
    first: u32,
    pairs: HashMap<(u32, &'a PathPlan, &'a PathPlan), u32>,
}

impl<'a> Hosts<'a> {
    fn new(plan: &Plan) -> Hosts<'a> {
        let mut links = plan.links.iter();
        Hosts {
            are_seen: links.any(|link| HOST_AWARE.contains(&link.queue.discipline.as_str())),
            first: plan.nodes.len() as u32,
            pairs: HashMap::new(),
        }
    }

    /// The source and the destination of a flow's data.
    fn of(
        &mut self,
        group: u32,
        ends: Option<EndsPlan>,
        forward: &'a PathPlan,
        reverse: &'a PathPlan,
    ) -> [u32; 2] {
        if !self.are_seen {
            return [0; 2];
        }
        if let Some(ends) = ends {
            return [ends.source, ends.destination];
        }
        let next = self.pairs.len() as u32;
        let pair = *self.pairs.entry((group, forward, reverse)).or_insert(next);
        [self.first + 2 * pair, self.first + 2 * pair + 1]
    }
}
