//! A graph on several threads gives the rows of a run on one thread.

use ackclock_core::Time;
use ackclock_plan::{LossPlan, Plan, QueuePlan, Routing};
use ackclock_sim::Simulation;
use ackclock_traffic::Duration;
use serde_json::json;

use super::generated::{among, poisson, tree};
use crate::kit::{between, cubic, flow, link, linux, ms, nodes, plan, routed, us};
use crate::properties::determinism::{finished, run};

/// Transfers among 16 hosts, and two endless flows of each host to others.
fn busy_tree(routing: Routing) -> Plan {
    let everyone: Vec<u32> = (0..16).collect();
    let mut asked = among(&everyone, &everyone, poisson(3000.0, 0.05));
    asked.request_bytes = Some(200);
    let pushed = among(&everyone, &everyone, poisson(3000.0, 0.05));
    let mut plan = tree(ms(60), vec![pushed, asked], vec![]);
    let pairs = (0..16).flat_map(|host| [(host, (host + 5) % 16), (host, (host + 9) % 16)]);
    let flows = pairs.map(|(source, destination)| {
        let mut endless = flow(linux());
        endless.congestion = cubic().into();
        endless.start_jitter = ms(2);
        endless.tcp.processing = Some(Duration::Uniform {
            from_s: 0.0,
            to_s: 1e-5,
        });
        routed(source, destination, endless)
    });
    plan.flows = flows.collect();
    // Few windows: on a busy machine threads wait long for each other.
    for link in &mut plan.links {
        link.delay = us(100);
    }
    plan.routing = routing;
    plan.flowlet_gap = Some(us(500));
    plan.warmup = ms(20);
    plan.record.interval = ms(7);
    plan.record.all_links = true;
    plan.record.traffic = true;
    plan.record.paths = true;
    plan.record.cubic_state = true;
    plan
}

/// The same rows on one and on several threads; returns them.
fn check(plan: &Plan) -> String {
    let alone = run(plan, 3, &[]);
    for threads in [2, 3, 16] {
        let mut simulation = Simulation::new(plan, 3).expect("a sound plan");
        let used = simulation.enable_threads(threads);
        assert_eq!(used, Ok(threads.min(8)), "16 hosts are at 8 switches");
        assert!(finished(&mut simulation, plan, &[0.1, 0.5]) == alone);
    }
    alone
}

#[test]
fn threads_change_nothing_whatever_the_routing() {
    use Routing::{Ecmp, EcmpPacket, Flowlet, Single, Valiant, Weighted};
    for routing in [Single, Ecmp, EcmpPacket, Flowlet, Valiant, Weighted] {
        let rows = check(&busy_tree(routing));
        assert!(rows.len() > 50_000, "a run with many rows");
    }
}

#[test]
fn threads_change_nothing_with_random_loss_and_active_queue_management() {
    let mut plan = busy_tree(Routing::Ecmp);
    for (index, link) in plan.links.iter_mut().enumerate() {
        if index % 3 == 0 {
            link.loss = Some(LossPlan::Bernoulli { probability: 0.01 });
        }
        if index % 2 == 0 {
            link.queue = QueuePlan {
                discipline: "codel".to_owned(),
                parameters: json!({
                    "limit_packets": 100, "target_s": 1e-3, "interval_s": 1e-2, "ecn": false,
                    "ce_threshold_s": null, "newton": false,
                }),
            };
        }
    }
    check(&plan);
}

/// A flow that is over has no state in any part, wherever its ends are.
#[test]
fn flows_end_on_all_threads() {
    let everyone: Vec<u32> = (0..16).collect();
    let traffic = among(&everyone, &everyone, poisson(2000.0, 0.03));
    let mut plan = tree(ms(5000), vec![traffic], vec![]);
    for link in &mut plan.links {
        link.delay = us(100);
    }
    let mut simulation = Simulation::new(&plan, 5).expect("a sound plan");
    assert_eq!(simulation.enable_threads(4), Ok(4));
    simulation.advance(plan.duration);
    assert_eq!(simulation.senders().count(), 0);
    assert!(simulation.finish().flows.end_s.len() > 20);
}

#[test]
fn what_cannot_be_divided_has_a_reason() {
    let reason = |change: fn(&mut Plan)| {
        let mut plan = busy_tree(Routing::Ecmp);
        change(&mut plan);
        Simulation::new(&plan, 1)
            .expect("a sound plan")
            .enable_threads(2)
    };
    assert_eq!(reason(|_| ()), Ok(2));
    let mut one = Simulation::new(&busy_tree(Routing::Ecmp), 1).expect("a sound plan");
    assert_eq!((one.enable_threads(1), one.work()), (Ok(1), None));
    let packets = reason(|plan| plan.record.packets = true);
    assert_eq!(packets, Err("it records single packets or their delays"));
    let no_delay = reason(|plan| {
        for link in &mut plan.links {
            link.delay = Time::ZERO;
        }
    });
    assert!(no_delay.is_err_and(|why| why.contains("links without delay")));
    let hub = |delay| {
        let pairs = [(0, 2), (2, 0), (1, 2), (2, 1)];
        let links = pairs.map(|(a, b)| between(a, b, delay, link(1e6, 10)));
        let mut hub = plan(ms(100), links.to_vec(), vec![routed(0, 1, flow(linux()))]);
        hub.nodes = nodes(2, 3);
        hub.record.packets = false;
        hub
    };
    let mut one_switch = Simulation::new(&hub(ms(1)), 1).expect("a sound plan");
    assert!(one_switch
        .enable_threads(2)
        .is_err_and(|why| why.contains("one switch")));
}
