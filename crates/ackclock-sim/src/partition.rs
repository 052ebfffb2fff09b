//! Division of a network among threads.
//!
//! A part owns nodes and the links that leave them. A link to another part is cut. What enters a cut link is known to
//! the other part a transmission and a propagation delay before it arrives: this is the lookahead of conservative
//! parallel simulation (R. Fujimoto: Parallel discrete event simulation, CACM 33(10), 1990).
//!
//! Nodes joined by a link without delay stay in one part, and so do the hosts of a switch. Hosts are divided in the
//! order of their numbers, by the number of links. Each further switch, the nearest to hosts first, joins the part with
//! most of its neighbours; among equals the part with the fewest links. So pods of a fat tree stay whole, and its roots
//! are spread over the parts.

use ackclock_core::Time;
use ackclock_plan::{LinkPlan, Plan, TcpPlan};

/// No part.
const NONE: u16 = u16::MAX;

/// Largest number of parts.
const MAX_PARTS: usize = 1024;

/// Nodes of a network by their part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Part of each node.
    pub owners: Vec<u16>,
    /// Number of parts, at least 2.
    pub parts: usize,
    /// Least time from the start of a transmission on a cut link to the packet's arrival.
    pub lookahead: Time,
}

impl Partition {
    /// Divide the nodes of a plan, whose links all have ends, into at most `parts` parts; `None` if they cannot be
    /// divided.
    pub fn new(plan: &Plan, parts: usize) -> Option<Partition> {
        let (owners, parts) = divide(plan, parts.min(MAX_PARTS));
        let flows = plan.flows.iter().map(|flow| &flow.tcp);
        let generated = plan.groups.iter().filter_map(|group| group.tcp.as_ref());
        let headers = flows.chain(generated).map(TcpPlan::segment_header_bytes);
        let smallest_packet = headers.min()?;
        let is_cut = |link: &&LinkPlan| {
            link.ends.is_some_and(|ends| {
                owners[ends.source as usize] != owners[ends.destination as usize]
            })
        };
        let ahead = plan.links.iter().filter(is_cut);
        let lookahead = ahead.map(|link| latency(link, smallest_packet)).min();
        (parts > 1).then(|| Partition {
            lookahead: lookahead.unwrap_or(plan.duration),
            owners,
            parts,
        })
    }
}

/// Part of each node, of at most `parts`, and the number of parts.
fn divide(plan: &Plan, parts: usize) -> (Vec<u16>, usize) {
    let mut groups = Groups::new(plan);
    groups.assign_hosts(plan, parts);
    groups.assign_others();
    groups.owners()
}

/// Least time from the start of a transmission to the arrival.
fn latency(link: &LinkPlan, bytes: u32) -> Time {
    if link.burst_bytes.is_some() || link.trace.is_some() {
        return link.delay;
    }
    let bytes = u64::from(bytes + link.frame_overhead_bytes);
    link.delay + link.rate.transmission_time(bytes)
}

/// Nodes that must stay together, and what is known of each such group.
struct Groups {
    /// Group of each node.
    of_node: Vec<u32>,
    /// Groups at the other ends of a group's links.
    neighbours: Vec<Vec<u32>>,
    /// Part of each group, [`NONE`] if it has none yet.
    parts: Vec<u16>,
    /// Links of the nodes in each part.
    loads: Vec<usize>,
}

impl Groups {
    fn new(plan: &Plan) -> Groups {
        let ends = || {
            plan.links
                .iter()
                .filter_map(|link| Some((link, link.ends?)))
        };
        let mut of_node: Vec<u32> = (0..plan.nodes.len() as u32).collect();
        for (_, ends) in ends().filter(|(link, _)| link.delay == Time::ZERO) {
            let (a, b) = (
                root(&of_node, ends.source),
                root(&of_node, ends.destination),
            );
            of_node[a.max(b) as usize] = a.min(b);
        }
        let of_node: Vec<u32> = (0..plan.nodes.len() as u32)
            .map(|node| root(&of_node, node))
            .collect();
        let mut neighbours = vec![Vec::new(); of_node.len()];
        for (_, ends) in ends() {
            let to = of_node[ends.destination as usize];
            neighbours[of_node[ends.source as usize] as usize].push(to);
        }
        Groups {
            parts: vec![NONE; of_node.len()],
            loads: Vec::new(),
            neighbours,
            of_node,
        }
    }

    /// Divide the hosts into parts with about the same number of links, with the switch at which they are.
    fn assign_hosts(&mut self, plan: &Plan, parts: usize) {
        let is_host = |node: u32| plan.nodes[node as usize].host;
        let mut clusters: Vec<Vec<u32>> = Vec::new();
        let mut cluster_of = vec![usize::MAX; self.of_node.len()];
        for node in (0..self.of_node.len() as u32).filter(|&node| is_host(node)) {
            let group = self.of_node[node as usize];
            let first = self.neighbours[group as usize]
                .iter()
                .find(|&&to| !is_host(to));
            let home = first.copied().unwrap_or(group);
            if cluster_of[home as usize] == usize::MAX {
                cluster_of[home as usize] = clusters.len();
                clusters.push(vec![home]);
            }
            clusters[cluster_of[home as usize]].push(group);
        }
        let load =
            |cluster: &[u32]| -> usize { cluster.iter().map(|&group| self.links(group)).sum() };
        let loads: Vec<usize> = clusters.iter().map(|cluster| load(cluster)).collect();
        let total = loads.iter().sum::<usize>().max(1);
        self.loads = vec![0; parts];
        let mut before = 0;
        for (cluster, load) in clusters.iter().zip(loads) {
            let part = (before + load / 2) * parts / total;
            for &group in cluster {
                self.assign(group, part.min(parts - 1));
            }
            before += load;
        }
    }

    /// Assign the groups that have no part yet, those next to assigned ones first.
    fn assign_others(&mut self) {
        let all = || 0..self.of_node.len() as u32;
        let mut left: Vec<u32> = all()
            .filter(|&node| self.of_node[node as usize] == node)
            .collect();
        loop {
            left.retain(|&group| self.parts[group as usize] == NONE);
            let mut votes: Vec<_> = left
                .iter()
                .map(|&group| (group, self.votes(group)))
                .collect();
            votes.retain(|(_, votes)| votes.iter().any(|&count| count > 0));
            if votes.is_empty() {
                break;
            }
            for (group, votes) in votes {
                let best = |&part: &usize| {
                    (
                        votes[part],
                        std::cmp::Reverse(self.loads[part]),
                        std::cmp::Reverse(part),
                    )
                };
                let part = (0..votes.len()).max_by_key(best).unwrap_or_default();
                self.assign(group, part);
            }
        }
        for group in left {
            self.assign(group, 0);
        }
    }

    /// Links from a group to each part.
    fn votes(&self, group: u32) -> Vec<usize> {
        let mut votes = vec![0; self.loads.len()];
        for &to in &self.neighbours[group as usize] {
            if let Some(votes) = votes.get_mut(usize::from(self.parts[to as usize])) {
                *votes += 1;
            }
        }
        votes
    }

    fn links(&self, group: u32) -> usize {
        self.neighbours[group as usize].len()
    }

    fn assign(&mut self, group: u32, part: usize) {
        if self.parts[group as usize] == NONE {
            self.parts[group as usize] = part as u16;
            self.loads[part] += self.links(group);
        }
    }

    /// Part of each node, numbered without gaps, and the number of parts.
    fn owners(&self) -> (Vec<u16>, usize) {
        let part_of = |&group: &u32| self.parts[group as usize];
        let owners: Vec<u16> = self.of_node.iter().map(part_of).collect();
        let mut used = owners.clone();
        used.sort_unstable();
        used.dedup();
        let rank = |part: u16| used.partition_point(|&other| other < part) as u16;
        (owners.into_iter().map(rank).collect(), used.len())
    }
}

/// First node of the group of a node, in a forest of parents.
fn root(parents: &[u32], node: u32) -> u32 {
    let mut node = node;
    while parents[node as usize] != node {
        node = parents[node as usize];
    }
    node
}

#[cfg(test)]
mod tests {
    use ackclock_core::Rate;
    use ackclock_plan::Routing;

    use super::*;
    use crate::routing::tests::{graph, FatTree};

    fn both_ways(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let both = edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]);
        both.collect()
    }

    fn plan(hosts: u32, nodes: u32, edges: &[(u32, u32)], delay: Time) -> Plan {
        let mut plan = graph(hosts, nodes, &both_ways(edges), Routing::Ecmp);
        for link in &mut plan.links {
            link.delay = delay;
        }
        plan
    }

    const DELAY: Time = Time::from_microseconds(1);

    #[test]
    fn hosts_stay_with_their_switch_and_the_core_joins_one_part() {
        let edges = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)];
        let (owners, parts) = divide(&plan(4, 7, &edges, DELAY), 2);
        assert_eq!((&owners[..6], parts), (&[0_u16, 0, 1, 1, 0, 1] as &[_], 2));
        let (_, parts) = divide(&plan(4, 7, &edges, DELAY), 16);
        assert_eq!(parts, 2, "there are two switches with hosts");
    }

    #[test]
    fn nodes_joined_by_a_link_without_delay_stay_in_one_part() {
        let edges = [(0, 2), (1, 3), (2, 3)];
        let mut plan = plan(2, 4, &edges, DELAY);
        assert_eq!(divide(&plan, 2).1, 2);
        plan.links[4].delay = Time::ZERO;
        assert_eq!(divide(&plan, 2), (vec![0, 0, 0, 0], 1));
    }

    #[test]
    fn fat_tree_parts_are_pods() {
        let tree = FatTree::new(4, 3);
        let plan = plan(16, 36, &tree.edges(), DELAY);
        let (owners, parts) = divide(&plan, 4);
        assert_eq!(parts, 4);
        for (host, &owner) in owners.iter().take(16).enumerate() {
            assert_eq!(usize::from(owner), host / 4, "of host {host}");
        }
        let links_of = |part: u16| {
            let ends = plan.links.iter().filter_map(|link| link.ends);
            ends.filter(|ends| owners[ends.source as usize] == part)
                .count()
        };
        let links: Vec<usize> = (0..4).map(links_of).collect();
        assert_eq!(links, [24; 4]);
    }

    #[test]
    fn latency_has_the_transmission_unless_packets_may_leave_in_a_burst() {
        let mut link = plan(2, 2, &[(0, 1)], DELAY).links.remove(0);
        link.rate = Rate::from_bits_per_second(1e9);
        link.frame_overhead_bytes = 10;
        assert_eq!(latency(&link, 40), Time::from_picoseconds(1_400_000));
        link.burst_bytes = Some(3000);
        assert_eq!(latency(&link, 40), DELAY);
    }
}
