//! Forwarding tables: for each switch and destination the links that begin a shortest path.
//!
//! The length of a path is its number of links. Hosts that hang on the same switches share their rows: a
//! search in breadth from those switches finds how far every other one is.

use std::collections::HashMap;

use super::graph::{Graph, Lists, NONE};

/// A distance that no switch has.
const FAR: u16 = u16::MAX;

/// The tables of all switches.
#[derive(Debug, Default)]
pub struct Tables {
    /// Switch number, by node.
    switches: Vec<u32>,
    count: usize,
    /// Number of the set of switches that lead to a host, by node.
    groups: Vec<u32>,
    /// Links from a switch to the nearest one of a group, by group, then by switch.
    distances: Vec<u16>,
    /// First links of the shortest paths to a group, by group, then by switch.
    rows: Lists,
    /// Links to a host, those of one switch together, by node.
    access: Lists,
}

impl Tables {
    /// The tables of a graph as it is now.
    pub fn new(graph: &Graph) -> Tables {
        let (switches, count) = number_switches(graph);
        let mut tables = Tables {
            switches,
            count,
            ..Tables::default()
        };
        let sets = tables.group_hosts(graph);
        let mut search = Vec::new();
        for set in &sets {
            tables.add_group(graph, set, &mut search);
        }
        tables
    }

    /// Assign hosts with the same switches to a group; returns the groups' switches.
    fn group_hosts(&mut self, graph: &Graph) -> Vec<Vec<u32>> {
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut sets = Vec::new();
        for node in 0..graph.nodes() as u32 {
            let is_host = graph.is_host[node as usize];
            let mut links: Vec<u32> = graph.links_to(node).filter(|_| is_host).collect();
            links.sort_by_key(|&link| (graph.from[link as usize], link));
            let mut set: Vec<u32> = links
                .iter()
                .map(|&link| graph.from[link as usize])
                .collect();
            set.dedup();
            set.retain(|&from| !graph.is_host[from as usize]);
            self.access.push(links);
            self.groups.push(if set.is_empty() {
                NONE
            } else {
                *numbers.entry(set).or_insert_with_key(|set| {
                    sets.push(set.clone());
                    sets.len() as u32 - 1
                })
            });
        }
        sets
    }

    /// Compute the distance of every switch from the nearest of a set, and the rows of the group.
    fn add_group(&mut self, graph: &Graph, set: &[u32], search: &mut Vec<u32>) {
        let base = self.distances.len();
        self.distances.resize(base + self.count, FAR);
        let distances = &mut self.distances[base..];
        search.clear();
        search.extend_from_slice(set);
        for &node in set {
            distances[self.switches[node as usize] as usize] = 0;
        }
        let mut head = 0;
        while let Some(&node) = search.get(head) {
            head += 1;
            let distance = distances[self.switches[node as usize] as usize];
            for link in graph.links_to(node) {
                let from = graph.from[link as usize];
                let switch = self.switches[from as usize];
                if switch != NONE && distances[switch as usize] == FAR {
                    distances[switch as usize] = distance + 1;
                    search.push(from);
                }
            }
        }
        for node in (0..graph.nodes() as u32).filter(|&node| !graph.is_host[node as usize]) {
            let distance = distances[self.switches[node as usize] as usize];
            let nearer = graph.links_from(node).filter(|&link| {
                let switch = self.switches[graph.to[link as usize] as usize];
                let found = distances.get(switch as usize).copied().unwrap_or(FAR);
                found != FAR && found + 1 == distance
            });
            self.rows.push(nearer);
        }
    }

    /// The links that begin a shortest path from a node to a host, the lowest number first; none if there is no
    /// path. Links that are no row of the tables are put into `spare`.
    #[inline]
    pub fn next_links<'a>(
        &'a self,
        graph: &Graph,
        node: u32,
        destination: u32,
        spare: &'a mut Vec<u32>,
    ) -> &'a [u32] {
        let switch = self.switches[node as usize];
        if switch == NONE {
            self.first_links(graph, node, destination, spare);
            return spare;
        }
        let group = self.groups[destination as usize];
        if group == NONE {
            return &[];
        }
        let row = group as usize * self.count + switch as usize;
        let links = self.rows.of(row);
        if links.is_empty() && self.distances[row] == 0 {
            return self.last_links(graph, node, destination);
        }
        links
    }

    /// The links from a switch to a host on it.
    fn last_links(&self, graph: &Graph, node: u32, host: u32) -> &[u32] {
        let links = self.access.of(host as usize);
        let start = links.partition_point(|&link| graph.from[link as usize] < node);
        let end = links.partition_point(|&link| graph.from[link as usize] <= node);
        &links[start..end]
    }

    /// The links from a host that begin a shortest path.
    fn first_links(&self, graph: &Graph, host: u32, destination: u32, found: &mut Vec<u32>) {
        found.clear();
        let mut least = usize::MAX;
        for link in graph.links_from(host) {
            let Some(length) = self.length_from(graph.to[link as usize], destination) else {
                continue;
            };
            if length < least {
                least = length;
                found.clear();
            }
            if length == least {
                found.push(link);
            }
        }
    }

    /// Links from a host's neighbour to a destination; `None` if none lead there.
    fn length_from(&self, node: u32, destination: u32) -> Option<usize> {
        if node == destination {
            return Some(0);
        }
        let (group, switch) = (
            self.groups[destination as usize],
            self.switches[node as usize],
        );
        if group == NONE || switch == NONE {
            return None;
        }
        let distance = self.distances[group as usize * self.count + switch as usize];
        (distance != FAR).then_some(1 + usize::from(distance))
    }
}

/// Number the switches; hosts get none.
fn number_switches(graph: &Graph) -> (Vec<u32>, usize) {
    let mut count = 0;
    let number = |&is_host: &bool| {
        if is_host {
            return NONE;
        }
        count += 1;
        count - 1
    };
    let switches = graph.is_host.iter().map(number).collect();
    (switches, count as usize)
}
