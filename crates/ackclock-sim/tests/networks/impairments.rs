//! Impairments of links: packets are conserved, and each impairment has its effect.

use ackclock_core::Time;
use ackclock_plan::{
    ChangePlan, CoursePlan, Distribution, EcnMode, EcnRewrite, FlowPlan, ImpairmentPlan,
    JitterPlan, LossPlan, Misbehaviour, PcapPlan, Plan, QueuePlan, TcpPlan, TracePlan, Tunnel,
    Vantage,
};
use ackclock_sim::Simulation;

use crate::kit::{between, change, flow, link, linux, ms, nodes, path, plan, routed};

fn jitter(in_order: bool) -> JitterPlan {
    JitterPlan {
        deviation: ms(3),
        distribution: Distribution::Normal,
        in_order,
    }
}

fn impairments() -> [ImpairmentPlan; 7] {
    let plain = ImpairmentPlan::NONE;
    [
        ImpairmentPlan {
            jitter: Some(jitter(true)),
            ..plain
        },
        ImpairmentPlan {
            jitter: Some(jitter(false)),
            ..plain
        },
        ImpairmentPlan {
            reorder: 0.02,
            ..plain
        },
        ImpairmentPlan {
            duplicate: 0.05,
            ..plain
        },
        ImpairmentPlan {
            corrupt: 0.02,
            ..plain
        },
        ImpairmentPlan {
            jitter: Some(jitter(false)),
            reorder: 0.01,
            duplicate: 0.01,
            corrupt: 0.01,
            ..plain
        },
        ImpairmentPlan {
            ecn: Some(EcnRewrite::Bleach),
            tunnel: Some(Tunnel::Rfc6040),
            ..plain
        },
    ]
}

fn sized(mut flow: FlowPlan) -> FlowPlan {
    flow.size_bytes = Some(400_000);
    flow
}

/// Three flows that end over a link of 2 Mb/s with this medium, and back over another.
fn by_paths(medium: ImpairmentPlan) -> Plan {
    let mut there = link(2e6, 20);
    (there.medium, there.delay) = (Some(medium), ms(20));
    there.loss = Some(LossPlan::GilbertElliott {
        p_good_to_bad: 0.002,
        p_bad_to_good: 0.3,
        in_bad: 1.0,
        in_good: 0.0,
    });
    let back = link(10e6, 100);
    let mut one = sized(flow(linux()));
    one.forward = path(ms(5), &[0]);
    one.reverse = path(ms(5), &[1]);
    plan(
        ms(60_000),
        vec![there, back],
        vec![one.clone(), one.clone(), one],
    )
}

/// The same between hosts, with media both ways.
fn between_hosts(medium: ImpairmentPlan) -> Plan {
    let with_medium = |mut link: ackclock_plan::LinkPlan| {
        link.medium = Some(medium);
        link
    };
    let links = vec![
        between(0, 2, ms(10), with_medium(link(2e6, 20))),
        between(2, 1, ms(10), link(2e6, 20)),
        between(1, 2, ms(10), with_medium(link(2e6, 20))),
        between(2, 0, ms(10), link(2e6, 20)),
    ];
    let flows = vec![routed(0, 1, sized(flow(linux()))); 2];
    let mut plan = plan(ms(60_000), links, flows);
    plan.nodes = nodes(2, 3);
    plan
}

/// At each stop the packets sent are gone or in transit; in the end all flows are over, and nothing is left.
fn check(plan: &Plan) -> Simulation {
    let mut simulation = Simulation::new(plan, 3).expect("a sound plan");
    for stop in 1..=100 {
        simulation.advance(ms(600 * stop));
        let (sent, gone) = simulation.packets_sent_and_accounted();
        assert_eq!(
            sent,
            gone + simulation.packets_in_transit(),
            "at stop {stop}"
        );
    }
    assert_eq!(simulation.packets_in_transit(), 0);
    assert_eq!(simulation.senders().count(), 0, "a flow is not over");
    simulation
}

#[test]
fn packets_are_conserved_on_explicit_paths() {
    for medium in impairments() {
        check(&by_paths(medium));
    }
}

/// An optimistic receiver has segments that it never gets, and the transfer ends nevertheless.
#[test]
fn packets_are_conserved_with_misbehaving_receivers() {
    for (ack_division, duplicate_acks, optimistic_acks) in
        [(8, 0, 0), (1, 3, 0), (1, 0, 20), (3, 2, 5)]
    {
        for sack in [true, false] {
            let mut plan = by_paths(ImpairmentPlan::NONE);
            for flow in &mut plan.flows {
                flow.tcp.sack = sack;
                flow.tcp.receive_window_bytes = Some(64_000);
                flow.misbehaviour = Some(Misbehaviour {
                    ack_division,
                    duplicate_acks,
                    optimistic_acks,
                    conceals_losses: false,
                    conceals_marks: true,
                });
            }
            check(&plan);
        }
    }
}

#[test]
fn packets_are_conserved_between_hosts() {
    for medium in impairments() {
        check(&between_hosts(medium));
    }
}

#[test]
fn each_impairment_is_counted_at_its_link() {
    let harms = impairments().map(|medium| {
        let links = check(&by_paths(medium)).finish().links;
        (
            links.reordered_total_p[0],
            links.duplicated_total_p[0],
            links.corrupted_total_p[0],
        )
    });
    let is = |impairment_counters: (u64, u64, u64)| {
        [
            impairment_counters.0 > 0,
            impairment_counters.1 > 0,
            impairment_counters.2 > 0,
        ]
    };
    assert_eq!(is(harms[0]), [false, false, false], "jitter in order");
    assert_eq!(is(harms[1]), [true, false, false], "jitter out of order");
    assert_eq!(is(harms[2]), [true, false, false], "reordering");
    assert_eq!(is(harms[3]), [false, true, false], "duplicates");
    assert_eq!(is(harms[4]), [false, false, true], "damage");
    assert_eq!(is(harms[5]), [true, true, true]);
    assert_eq!(is(harms[6]), [false, false, false], "a tunnel");
}

/// Copies of captured packets have frames too, and captures change nothing.
#[test]
fn captures_of_duplicated_packets_change_nothing() {
    let medium = ImpairmentPlan {
        duplicate: 0.05,
        ..ImpairmentPlan::NONE
    };
    let mut plan = between_hosts(medium);
    let mut bare = Simulation::new(&plan, 1).expect("a sound plan");
    bare.advance(plan.duration);
    plan.record.pcap = PcapPlan::Each(vec![Vantage::Senders, Vantage::Receivers]);
    let mut captured = Simulation::new(&plan, 1).expect("a sound plan");
    captured.advance(plan.duration);
    let totals = captured.finish();
    assert_eq!(format!("{totals:?}"), format!("{:?}", bare.finish()));
    assert!(totals.links.duplicated_total_p.iter().sum::<u64>() > 0);
    assert!(captured.take_captures().iter().all(|file| file.len() > 24));
}

#[test]
fn loss_and_impairments_change_during_a_run() {
    let mut plan = by_paths(ImpairmentPlan::NONE);
    plan.links[0].medium = None;
    plan.links[0].loss = None;
    plan.changes = vec![
        ChangePlan {
            medium: Some(impairments()[5]),
            ..change(ms(500), 0)
        },
        ChangePlan {
            loss: Some(LossPlan::Bernoulli { probability: 0.05 }),
            ..change(ms(800), 0)
        },
        ChangePlan {
            medium: Some(ImpairmentPlan::NONE),
            loss: Some(LossPlan::Bernoulli { probability: 0.0 }),
            ..change(ms(1500), 0)
        },
    ];
    let mut simulation = check(&plan);
    let tables = simulation.drain();
    let loss = tables.events.kind.iter().zip(&tables.events.time_s);
    let kind = |word: &str| {
        let words = ackclock_core::tables::EventKind::NAMES;
        words
            .iter()
            .position(|&known| known == word)
            .expect("a kind") as u8
    };
    let times: Vec<f64> = loss
        .filter(|(&found, _)| found == kind("corruption"))
        .map(|(_, &time)| time)
        .collect();
    assert!(
        !times.is_empty() && times.iter().all(|time| (0.5..1.5).contains(time)),
        "{times:?}"
    );
}

/// A rate of 1 Mb/s that pauses for the second half of each second; a flow has all of it.
#[test]
fn a_traced_link_is_full_at_its_mean_rate() {
    let mut plan = by_paths(ImpairmentPlan::NONE);
    plan.duration = ms(10_000);
    plan.flows.truncate(1);
    plan.flows[0].size_bytes = None;
    (plan.links[0].medium, plan.links[0].loss) = (None, None);
    plan.links[0].trace = Some(TracePlan {
        file: "pauses.csv".to_owned(),
        sha256: String::new(),
        period: ms(1000),
        course: CoursePlan::Rates {
            at_s: vec![Time::ZERO, ms(500)],
            rate_bps: vec![1e6, 0.0],
        },
    });
    let mut simulation = Simulation::new(&plan, 1).expect("a sound plan");
    simulation.advance(plan.duration);
    let links = simulation.finish().links;
    assert!(
        (links.rate_bps[0] - 5e5).abs() < 1.0,
        "{}",
        links.rate_bps[0]
    );
    let used = links.departed_bytes[0] as f64 * 8.0 / 10.0 / links.rate_bps[0];
    assert!((0.95..=1.01).contains(&used), "{used}");
}

/// Packets that CoDel marks and drops of two flows of Reno over 4 Mb/s, and the reactions to marks.
fn signals(ecn: Option<EcnRewrite>, tunnel: Option<Tunnel>) -> (u64, u64, usize) {
    let mut bottleneck = link(4e6, 100);
    bottleneck.queue = QueuePlan {
        discipline: "codel".to_owned(),
        parameters: serde_json::json!({
            "limit_packets": 1000, "target_s": 0.005, "interval_s": 0.1, "ecn": true,
            "ce_threshold_s": null, "newton": false,
        }),
    };
    bottleneck.medium = Some(ImpairmentPlan {
        ecn,
        tunnel,
        ..ImpairmentPlan::NONE
    });
    let tcp = TcpPlan {
        ecn: EcnMode::Classic,
        ..linux()
    };
    let mut one = flow(tcp);
    (one.forward, one.reverse) = (path(ms(20), &[0]), path(ms(20), &[]));
    let plan = plan(ms(20_000), vec![bottleneck], vec![one.clone(), one]);
    let mut simulation = Simulation::new(&plan, 3).expect("a sound plan");
    simulation.advance(plan.duration);
    let events = simulation.drain().events;
    let reactions = events
        .kind
        .iter()
        .map(|&kind| usize::from(kind == REACTION))
        .sum();
    let links = simulation.finish().links;
    (links.marked_p[0], links.dropped_p[0], reactions)
}

const REACTION: u8 = ackclock_core::tables::EventKind::MarkReaction as u8;

/// RFC 6040: marks pass a tunnel that conforms, in its compatibility mode the queue drops instead, and no reaction
/// follows the marks that a tunnel of before ECN or a node on the path erases.
#[test]
fn marks_reach_the_receiver_unless_the_path_erases_them() {
    let plain = signals(None, None);
    assert!(plain.0 > 20 && plain.1 == 0 && plain.2 > 20, "{plain:?}");
    for tunnel in [Tunnel::Rfc6040, Tunnel::Rfc3168] {
        assert_eq!(signals(None, Some(tunnel)), plain, "{tunnel:?}");
    }
    let (marked, dropped, reactions) = signals(None, Some(Tunnel::Compatibility));
    assert!(marked == 0 && dropped > 20 && reactions == 0);
    let erased = [
        (None, Some(Tunnel::CeLost)),
        (Some(EcnRewrite::Bleach), None),
        (Some(EcnRewrite::CeToEct0), None),
        (Some(EcnRewrite::Bleach), Some(Tunnel::Rfc6040)),
    ];
    for (ecn, tunnel) in erased {
        let (marked, _, reactions) = signals(ecn, tunnel);
        assert!(marked > plain.0 && reactions == 0, "{ecn:?} {tunnel:?}");
    }
    assert_eq!(signals(Some(EcnRewrite::Ect1ToEct0), None), plain);
}
