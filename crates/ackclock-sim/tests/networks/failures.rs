//! Links fail and work again: what is lost, where packets go, and that flows come back.

use ackclock_core::tables::{PacketAction, Packets, NONE};
use ackclock_core::Rate;
use ackclock_plan::{ChangePlan, LinkPlan, Plan, QueuePlan, Routing};
use ackclock_sim::Simulation;
use serde_json::json;

use crate::kit::{between, change, flow, link, linux, ms, nodes, plan, routed, transfer};

/// Links of the diamond.
const UPPER_1: u32 = 2;
const UPPER_2: u32 = 4;
const LOWER_1: u32 = 6;
const UPPER_1_BACK: u32 = 3;

/// Hosts 0 and 1; 0-2, 2-3-5 and 2-4-5, 5-1: two equal ways, 10 Mb/s and 10 ms a link.
fn diamond() -> Vec<LinkPlan> {
    let edges = [(0, 2), (2, 3), (3, 5), (2, 4), (4, 5), (5, 1)];
    let both = edges.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    both.map(|(a, b)| between(a, b, ms(10), link(10e6, 60)))
        .collect()
}

fn with_failures(failures: &[(u64, u32, bool)], routing: Routing) -> Plan {
    let mut plan = plan(ms(4000), diamond(), vec![routed(0, 1, flow(linux()))]);
    plan.nodes = nodes(2, 6);
    plan.routing = routing;
    plan.changes = failures
        .iter()
        .map(|&(at_ms, link, up)| ChangePlan {
            up: Some(up),
            ..change(ms(at_ms), link)
        })
        .collect();
    plan
}

/// Times at which packets of a link had this happen to them, s.
fn times(log: &Packets, link: u32, what: PacketAction) -> Vec<f64> {
    (0..log.what.len())
        .filter(|&row| log.link[row] == link && log.what[row] == what as u8)
        .map(|row| log.time_s[row])
        .collect()
}

fn run(plan: &Plan) -> (Simulation, Packets) {
    let mut simulation = Simulation::new(plan, 1).expect("a sound plan");
    simulation.advance(plan.duration);
    let (sent, gone) = simulation.packets_sent_and_accounted();
    assert_eq!(
        sent,
        gone + simulation.packets_in_transit(),
        "no packet vanishes"
    );
    let log = simulation.drain().packets;
    (simulation, log)
}

#[test]
fn packets_are_rerouted_while_a_link_is_down() {
    let plan = with_failures(
        &[(1000, UPPER_1, false), (2000, UPPER_1, true)],
        Routing::Single,
    );
    let (mut simulation, log) = run(&plan);
    let offered = |link| times(&log, link, PacketAction::Enqueue);
    assert!(offered(UPPER_1)
        .iter()
        .all(|&time| !(1.0..2.0).contains(&time)));
    assert!(offered(LOWER_1)
        .iter()
        .all(|&time| (1.0..2.0).contains(&time)));
    let during = offered(LOWER_1).len();
    let after = offered(UPPER_1).iter().filter(|&&time| time >= 2.0).count();
    // 1 s and 2 s at 10 Mb/s are 1188 and 2376 packets.
    assert!(during > 600 && after > 1200, "{during}, {after}");
    // Nothing comes to the failed link, so what it lost is what it held.
    let lost = times(&log, UPPER_1, PacketAction::Loss);
    assert!(!lost.is_empty() && lost.iter().all(|&time| time == 1.0));
    let totals = simulation.finish();
    assert_eq!(
        totals.links.lost_total_p[UPPER_1 as usize],
        lost.len() as u64
    );
    assert_eq!(times(&log, NONE, PacketAction::Loss).len(), 0);
}

#[test]
fn packets_in_propagation_on_a_failed_link_arrive() {
    let plan = with_failures(&[(1000, UPPER_1, false)], Routing::Single);
    let (_, log) = run(&plan);
    // The link's 10 ms hold up to 11 packets of 0.84 ms; all of them are offered to the next link.
    let left = times(&log, UPPER_1, PacketAction::Dequeue).len();
    let offered = times(&log, UPPER_2, PacketAction::Enqueue);
    assert_eq!(offered.len(), left);
    assert!(offered.iter().filter(|&&time| time > 1.0).count() >= 10);
}

#[test]
fn a_packet_off_the_new_path_is_still_routed() {
    // The second link of the upper way fails: what is at or before switch 3 turns back.
    let plan = with_failures(&[(1000, UPPER_2, false)], Routing::Single);
    let (_, log) = run(&plan);
    let back = times(&log, UPPER_1_BACK, PacketAction::Enqueue);
    let turned = back
        .iter()
        .filter(|&&time| (1.0..1.02).contains(&time))
        .count();
    assert!(turned >= 10, "{turned}");
    assert_eq!(times(&log, NONE, PacketAction::Loss).len(), 0);
}

#[test]
fn per_packet_routing_uses_both_paths_until_one_fails() {
    let plan = with_failures(&[(2000, UPPER_1, false)], Routing::EcmpPacket);
    let (_, log) = run(&plan);
    let early = |link| {
        times(&log, link, PacketAction::Enqueue)
            .iter()
            .filter(|&&time| time < 2.0)
            .count()
    };
    let (upper, lower) = (early(UPPER_1) as f64, early(LOWER_1) as f64);
    // Fair draws: the difference of two halves has the standard deviation √n.
    assert!(
        (upper - lower).abs() < 4.0 * (upper + lower).sqrt(),
        "{upper} and {lower}"
    );
    assert!(times(&log, UPPER_1, PacketAction::Enqueue)
        .iter()
        .all(|&time| time < 2.0));
}

#[test]
fn packets_without_a_route_are_lost_and_the_flow_recovers() {
    let failures = [
        (100, UPPER_1, false),
        (100, LOWER_1, false),
        (700, LOWER_1, true),
    ];
    let mut plan = with_failures(&failures, Routing::Ecmp);
    plan.flows = vec![routed(0, 1, transfer(linux(), 500))];
    let (mut simulation, log) = run(&plan);
    let lost = times(&log, NONE, PacketAction::Loss);
    assert!(!lost.is_empty() && lost.iter().all(|time| (0.1..0.7).contains(time)));
    let totals = simulation.finish();
    assert_eq!(totals.flows.delivered_bytes, [500_000]);
    assert!(totals.flows.timeouts[0] > 0);
    let all: u64 = totals.links.lost_total_p.iter().sum();
    let dropped: u64 = totals.links.dropped_total_p.iter().sum();
    assert_eq!(
        totals.flows.dropped_packets[0],
        all + dropped + lost.len() as u64
    );
    assert_eq!(simulation.packets_in_transit(), 0);
}

#[test]
fn a_link_of_explicit_paths_fails_too() {
    let mut one = transfer(linux(), 2000);
    one.forward = crate::kit::path(ms(20), &[0]);
    one.reverse = crate::kit::path(ms(20), &[]);
    let mut plan = plan(ms(20_000), vec![link(10e6, 50)], vec![one]);
    for (at_ms, up) in [(500, false), (900, true)] {
        let up = Some(up);
        plan.changes.push(ChangePlan {
            up,
            ..change(ms(at_ms), 0)
        });
    }
    let (mut simulation, log) = run(&plan);
    let lost = times(&log, 0, PacketAction::Loss);
    assert!(lost.len() > 1 && lost.iter().all(|time| (0.5..0.9).contains(time)));
    let left = times(&log, 0, PacketAction::Dequeue);
    assert!(left.iter().all(|time| !(0.5..0.9).contains(time)));
    assert_eq!(simulation.finish().flows.delivered_bytes, [2_000_000]);
}

/// Disciplines that hold packets back, average, or keep a queue for each flow give all of them up.
#[test]
fn a_failing_link_drops_the_packets_of_every_discipline() {
    let disciplines = crate::kit::cards::disciplines(30);
    assert!(disciplines.len() > 10);
    for queue in disciplines {
        let name = queue.discipline.clone();
        let plan = failing_behind(queue);
        let (simulation, log) = run(&plan);
        assert!(
            !times(&log, UPPER_1, PacketAction::Loss).is_empty(),
            "{name}"
        );
        for link in simulation.links() {
            let backlog = link.discipline_backlog();
            assert_eq!(link.backlog(), (backlog.packets, backlog.bytes), "{name}");
        }
    }
}

/// The first link of the upper way is the bottleneck, has this queue, fails twice, and has a token bucket.
fn failing_behind(queue: QueuePlan) -> Plan {
    let failures = [
        (1000, UPPER_1, false),
        (1300, UPPER_1, true),
        (2500, UPPER_1, false),
        (2500, UPPER_1, true),
    ];
    let mut plan = with_failures(&failures, Routing::Single);
    let bottleneck = &mut plan.links[UPPER_1 as usize];
    bottleneck.rate = Rate::from_bits_per_second(3e6);
    bottleneck.queue = queue;
    plan.flows.push(plan.flows[0].clone());
    plan
}

#[test]
fn a_token_bucket_link_fails_and_recovers() {
    let mut plan = failing_behind(QueuePlan {
        discipline: "pfifo".to_owned(),
        parameters: json!({ "limit_packets": 40 }),
    });
    plan.links[UPPER_1 as usize].burst_bytes = Some(5000);
    let (_, log) = run(&plan);
    let left = times(&log, UPPER_1, PacketAction::Dequeue);
    assert!(left.iter().all(|time| !(1.0..1.3).contains(time)));
    assert!(left.iter().filter(|&&time| time > 1.3).count() > 300);
}
