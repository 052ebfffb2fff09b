//! Shortest paths in graphs with a known number of paths, and the choice among them.

use std::collections::{HashMap, HashSet};

use ackclock_core::{Rate, Time};
use ackclock_plan::{LinkPlan, NodePlan, PcapPlan, QueuePlan, RecordPlan};
use proptest::prelude::*;
use serde_json::json;

use super::*;

#[path = "../../tests/kit/fat_tree.rs"]
mod fat_tree;

pub use fat_tree::FatTree;

/// A plan of nothing but a graph: `hosts` hosts, then switches, and links from node to node.
pub fn graph(
    hosts: u32,
    nodes: u32,
    links: &[(u32, u32)],
    routing: ackclock_plan::Routing,
) -> Plan {
    Plan {
        duration: Time::from_milliseconds(1),
        warmup: Time::ZERO,
        nodes: (0..nodes)
            .map(|node| NodePlan {
                name: format!("n{node}"),
                host: node < hosts,
            })
            .collect(),
        links: links.iter().map(|&ends| link(ends)).collect(),
        routing,
        flowlet_gap: Some(Time::from_microseconds(100)),
        changes: vec![],
        groups: vec![],
        flows: vec![],
        traffic: vec![],
        datagrams: vec![],
        record: RecordPlan {
            interval: Time::from_milliseconds(1),
            packets: false,
            pcap: PcapPlan::Senders(false),
            traffic: false,
            all_links: false,
            delays: false,
            cubic_state: false,
            paths: false,
        },
    }
}

fn link((source, destination): (u32, u32)) -> LinkPlan {
    LinkPlan {
        name: format!("{source}-{destination}"),
        ends: Some(EndsPlan {
            source,
            destination,
        }),
        rate: Rate::from_bits_per_second(1e9),
        delay: Time::ZERO,
        weight: 1.0,
        burst_bytes: None,
        frame_overhead_bytes: 0,
        queue: QueuePlan {
            discipline: "pfifo".to_owned(),
            parameters: json!({ "limit_packets": 10 }),
        },
        loss: None,
        medium: None,
        trace: None,
        bottleneck: false,
    }
}

fn both_directions(edges: &[(u32, u32)]) -> Vec<(u32, u32)> {
    edges.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect()
}

fn tree_plan(tree: &FatTree, routing: ackclock_plan::Routing) -> Plan {
    graph(
        tree.hosts(),
        tree.nodes(),
        &both_directions(&tree.edges()),
        routing,
    )
}

/// The number of paths that the tables allow from a node to a host.
fn count_paths(routing: &Routing, node: u32, destination: u32) -> u32 {
    if node == destination {
        return 1;
    }
    let mut spare = Vec::new();
    let links = routing
        .tables
        .next_links(&routing.graph, node, destination, &mut spare);
    let ends = links.iter().map(|&link| routing.graph.to[link as usize]);
    ends.map(|next| count_paths(routing, next, destination))
        .sum()
}

fn ends(source: u32, destination: u32) -> EndsPlan {
    EndsPlan {
        source,
        destination,
    }
}

#[test]
fn a_fat_tree_has_the_hosts_switches_and_paths_of_the_closed_forms() {
    for (ports, levels, hosts, switches) in [
        (4, 3, 16, 20),
        (8, 3, 128, 80),
        (4, 2, 8, 6),
        (4, 4, 32, 56),
        (6, 1, 6, 1),
    ] {
        let tree = FatTree::new(ports, levels);
        assert_eq!((tree.hosts(), tree.switches()), (hosts, switches));
        let routing = Routing::new(&tree_plan(&tree, ackclock_plan::Routing::Ecmp), 1);
        for destination in 1..hosts {
            let paths = count_paths(&routing, 0, destination);
            assert_eq!(
                paths,
                tree.paths(0, destination),
                "{ports}x{levels} to {destination}"
            );
        }
        assert_eq!(tree.paths(0, hosts - 1), (ports / 2).pow(levels - 1));
    }
}

#[test]
fn a_flowlet_keeps_its_links_until_the_gap() {
    let tree = FatTree::new(8, 2);
    let mut routing = Routing::new(&tree_plan(&tree, ackclock_plan::Routing::Flowlet), 1);
    let far = tree.hosts() - 1;
    routing.open(0, 5, Some(ends(0, far))).expect("a path");
    let at = |microseconds: u64| Time::from_microseconds(microseconds);
    let entered = routing.first(0, true, at(0));
    let Next::Link(up) = entered else {
        panic!("no way")
    };
    let switch = routing.graph.to[up as usize];
    let mut packet = crate::packet::NO_PACKET;
    packet.kind = crate::packet::Kind::Data;
    let mut next = |now: u64| routing.next(0, &packet, switch, at(now));
    let first = next(0);
    assert!(
        (1..100).all(|k| next(99 * k) == first),
        "no gap is that long"
    );
    let drawn: HashSet<u32> = (1..=64)
        .map(|k| match next(9801 + 100 * k) {
            Next::Link(link) => link,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(drawn.len(), 4, "all ways up are drawn");
}

#[test]
fn valiant_detours_by_the_switch_of_a_random_host_and_keeps_the_path() {
    let tree = FatTree::new(4, 2);
    let plan = tree_plan(&tree, ackclock_plan::Routing::Valiant);
    let mut routing = Routing::new(&plan, 3);
    let hosts = tree.hosts();
    let mut lengths = HashMap::new();
    for flow in 0..200 {
        let (source, destination) = (flow % hosts, (flow % hosts + hosts / 2) % hosts);
        let links = routing
            .forward_path(flow, ends(source, destination))
            .expect("a path");
        let mut node = source;
        for &link in &links {
            assert_eq!(routing.graph.from[link as usize], node);
            node = routing.graph.to[link as usize];
        }
        assert_eq!(node, destination);
        *lengths.entry(links.len()).or_insert(0) += 1;

        routing
            .open(0, flow, Some(ends(source, destination)))
            .expect("a path");
        let mut packet = crate::packet::NO_PACKET;
        packet.kind = crate::packet::Kind::Data;
        let mut taken = vec![];
        let mut next = routing.first(0, true, Time::ZERO);
        while let Next::Link(link) = next {
            taken.push(link);
            next = routing.next(0, &packet, routing.graph.to[link as usize], Time::ZERO);
            packet.hop += 1;
        }
        assert_eq!((next, &taken), (Next::Arrived, &links));
    }
    // Four edge switches: a half of the hosts hang on those of the two ends, which are on the way anyway.
    assert_eq!(
        lengths.keys().copied().collect::<HashSet<_>>(),
        HashSet::from([4, 6])
    );
    assert!((70..130).contains(&lengths[&6]), "{lengths:?}");
}

#[test]
fn a_path_in_a_fat_tree_climbs_to_the_lowest_common_level() {
    let tree = FatTree::new(4, 3);
    let mut routing = Routing::new(&tree_plan(&tree, ackclock_plan::Routing::Ecmp), 1);
    let lengths: Vec<usize> = [1, 2, 4, 15]
        .map(|to| routing.trace(0, to, 7).expect("a path").len())
        .into();
    assert_eq!(lengths, [2, 4, 6, 6]);
}

#[test]
fn single_takes_the_lowest_link_at_each_node_for_every_flow() {
    let tree = FatTree::new(4, 3);
    let plan = tree_plan(&tree, ackclock_plan::Routing::Single);
    let mut routing = Routing::new(&plan, 1);
    let first = routing.trace(0, 15, 0).expect("a path");
    for key in 1..50 {
        assert_eq!(routing.trace(0, 15, key).expect("a path"), first);
    }
    for &link in &first {
        let node = routing.graph.from[link as usize];
        let mut spare = Vec::new();
        let links = routing
            .tables
            .next_links(&routing.graph, node, 15, &mut spare);
        assert_eq!(links.iter().min(), Some(&link));
    }
}

/// Links into the roots that flows from all hosts of one half to the other half use.
fn links_used_at_the_core(routing: &mut Routing, tree: &FatTree) -> HashMap<u32, u32> {
    let half = tree.hosts() / 2;
    let mut used = HashMap::new();
    for flow in 0..100 * half {
        let (source, destination) = (flow % half, half + flow / half % half);
        for link in routing
            .trace(source, destination, 2 * flow)
            .expect("a path")
        {
            let end = routing.graph.to[link as usize];
            if tree.level(end) == 0 {
                *used.entry(link).or_default() += 1;
            }
        }
    }
    used
}

#[test]
fn with_a_salt_for_each_switch_all_links_to_the_core_are_used() {
    let tree = FatTree::new(8, 3);
    let plan = tree_plan(&tree, ackclock_plan::Routing::Ecmp);
    let used = links_used_at_the_core(&mut Routing::new(&plan, 1), &tree);
    // The lower half has 4 pods of 4 switches with 4 links up each, 100 × 64 flows: 100 each expected.
    assert_eq!(used.len(), 64);
    // Standard deviation of a binomial count: √(100 × 63/64) = 9.9.
    assert!(
        used.values().all(|&flows| (50..=150).contains(&flows)),
        "{used:?}"
    );
}

#[test]
fn with_one_salt_for_all_switches_the_hash_polarises() {
    let tree = FatTree::new(8, 3);
    let plan = tree_plan(&tree, ackclock_plan::Routing::Ecmp);
    let mut random = Pcg64Mcg::new(1);
    let hash = FlowHash::draw(&mut random);
    let equal = vec![hash; plan.nodes.len()];
    let used = links_used_at_the_core(&mut Routing::with_hashes(&plan, equal, &mut random), &tree);
    // A switch of the middle level gets only flows whose hash names it: they all take its same link up.
    assert_eq!(used.len(), 16);
}

#[test]
fn both_paths_of_a_flow_are_hashed_independently() {
    let tree = FatTree::new(8, 3);
    let plan = tree_plan(&tree, ackclock_plan::Routing::Ecmp);
    let mut routing = Routing::new(&plan, 3);
    let mut same = 0;
    for flow in 0..400_usize {
        routing
            .open(flow, flow as u32, Some(ends(0, 127)))
            .expect("a path");
        let paths = routing.paths[flow];
        let root = |links: &[u32]| routing.graph.to[links[2] as usize];
        same += u32::from(root(&paths.links[..6]) == root(&paths.links[6..]));
    }
    // One root of 16: 25 expected, standard deviation 4.8.
    assert!((5..=45).contains(&same), "{same}");
}

#[test]
fn weights_are_kept_in_proportion() {
    // Two hosts, two switches, three parallel links there.
    let links = both_directions(&[(0, 2), (1, 3), (2, 3), (2, 3), (2, 3)]);
    let mut plan = graph(2, 4, &links, ackclock_plan::Routing::Weighted);
    for (link, weight) in [(4, 1.0), (6, 2.5), (8, 6.5)] {
        plan.links[link].weight = weight;
    }
    let mut routing = Routing::new(&plan, 1);
    let mut counts: HashMap<u32, u32> = HashMap::new();
    for flow in 0..10_000 {
        *counts
            .entry(routing.trace(0, 1, flow).expect("a path")[1])
            .or_default() += 1;
    }
    for (link, expected) in [(4, 1000.0), (6, 2500.0), (8, 6500.0)] {
        let found = f64::from(counts[&link]);
        let deviation = f64::sqrt(expected * (1.0 - expected / 10_000.0));
        assert!(
            (found - expected).abs() < 4.0 * deviation,
            "link {link}: {found}"
        );
    }
}

#[test]
fn per_packet_routing_draws_for_each_packet_from_the_seed() {
    let tree = FatTree::new(8, 2);
    let plan = tree_plan(&tree, ackclock_plan::Routing::EcmpPacket);
    let paths = |seed| -> Vec<Vec<u32>> {
        let mut routing = Routing::new(&plan, seed);
        (0..200)
            .map(|_| routing.trace(0, 31, 5).expect("a path"))
            .collect()
    };
    assert_eq!(paths(1), paths(1));
    assert_ne!(paths(1), paths(2));
    let different: HashSet<Vec<u32>> = paths(1).into_iter().collect();
    assert_eq!(different.len(), 4, "all four paths");
}

#[test]
fn a_host_on_two_switches_is_reached_by_the_nearer() {
    // Host 0 on switch 3; host 1 on 4 and 5; host 2 on 5. Switches in a row: 3-4-5.
    let links = both_directions(&[(0, 3), (1, 4), (1, 5), (2, 5), (3, 4), (4, 5)]);
    let plan = graph(3, 6, &links, ackclock_plan::Routing::Ecmp);
    let mut routing = Routing::new(&plan, 1);
    let mut path = |from, to| {
        let links = routing.trace(from, to, 9).expect("a path");
        let ends = links
            .iter()
            .map(|&link| plan.links[link as usize].name.clone());
        ends.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(path(0, 1), "0-3 3-4 4-1");
    assert_eq!(path(1, 0), "1-4 4-3 3-0");
    assert_eq!(path(1, 2), "1-5 5-2");
    assert_eq!(path(2, 1), "2-5 5-1");
}

#[test]
fn two_hosts_may_share_a_link_and_no_path_crosses_a_host() {
    // 0-1 directly; 1-2 directly; 0 and 2 also by switches 3 and 4.
    let links = both_directions(&[(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)]);
    let mut routing = Routing::new(&graph(3, 5, &links, ackclock_plan::Routing::Single), 1);
    assert_eq!(routing.trace(0, 1, 0).expect("a path"), [0]);
    assert_eq!(routing.trace(0, 2, 0).expect("a path"), [4, 6, 8]);
}

#[test]
fn an_unreachable_host_is_reported_with_both_names() {
    // A link leads from 0 by switch 2 to 1, but none back.
    let plan = graph(2, 3, &[(0, 2), (2, 1)], ackclock_plan::Routing::Ecmp);
    let mut routing = Routing::new(&plan, 1);
    let refused = routing
        .open(0, 0, Some(ends(0, 1)))
        .expect_err("no path back");
    assert_eq!(refused.to_string(), "no path leads from \"n1\" to \"n0\"");
}

#[test]
fn a_long_path_is_chosen_at_each_node() {
    // Two hosts at the ends of a row of 20 switches.
    let mut row: Vec<(u32, u32)> = (2..21).map(|node| (node, node + 1)).collect();
    row.extend([(0, 2), (21, 1)]);
    let mut routing = Routing::new(
        &graph(2, 22, &both_directions(&row), ackclock_plan::Routing::Ecmp),
        1,
    );
    routing.open(0, 0, Some(ends(0, 1))).expect("a path");
    assert_eq!(routing.first_link(0), None);
    assert_eq!(routing.trace(0, 1, 0).expect("a path").len(), 21);
}

proptest! {
    /// Whatever the graph: a path that is found leads along working links from one host to the other by switches,
    /// and has the length of a search in breadth that knows nothing of groups and rows.
    #[test]
    fn paths_are_shortest_by_breadth_first_search(
        hosts in 2_u32..6,
        switches in 0_u32..7,
        draws in prop::collection::vec((any::<u32>(), any::<u32>(), prop::bool::weighted(0.8)), 1..40),
        key in any::<u32>(),
    ) {
        let nodes = hosts + switches;
        let drawn: Vec<(u32, u32, bool)> = draws.iter().map(|&(a, b, up)| (a % nodes, b % nodes, up)).collect();
        let drawn: Vec<_> = drawn.into_iter().filter(|&(a, b, _)| a != b).collect();
        let links: Vec<(u32, u32)> = drawn.iter().map(|&(a, b, _)| (a, b)).collect();
        let mut routing = Routing::new(&graph(hosts, nodes, &links, ackclock_plan::Routing::Ecmp), 1);
        for (link, &(_, _, up)) in drawn.iter().enumerate() {
            if !up {
                routing.set_up(link, false);
            }
        }
        for source in 0..hosts {
            for destination in (0..hosts).filter(|&host| host != source) {
                let expected = search(hosts, &drawn, source, destination);
                match routing.trace(source, destination, key) {
                    Err(_) => prop_assert_eq!(expected, None),
                    Ok(path) => {
                        prop_assert_eq!(expected, Some(path.len()));
                        let mut node = source;
                        for link in path {
                            let (from, to, up) = drawn[link as usize];
                            prop_assert!(up && from == node && (to >= hosts || to == destination));
                            node = to;
                        }
                        prop_assert_eq!(node, destination);
                    }
                }
            }
        }
    }
}

/// Links of the shortest path, by trying all nodes at each distance.
fn search(hosts: u32, links: &[(u32, u32, bool)], source: u32, destination: u32) -> Option<usize> {
    let mut reached = HashSet::from([source]);
    for length in 1..=links.len() {
        let passable = |node: u32| node == source || node >= hosts;
        let next = links
            .iter()
            .filter(|&&(from, _, up)| up && passable(from) && reached.contains(&from));
        let next: Vec<u32> = next.map(|&(_, to, _)| to).collect();
        reached.extend(next);
        if reached.contains(&destination) {
            return Some(length);
        }
    }
    None
}
