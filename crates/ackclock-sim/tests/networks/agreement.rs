//! A routed network besides the same links on explicit paths.

use ackclock_core::tables::{PacketAction, Packets, Totals};
use ackclock_core::Time;
use ackclock_plan::{HopPlan, LinkPlan, PathPlan, Plan, TcpPlan};
use ackclock_sim::Simulation;
use ackclock_traffic::Duration;

use crate::kit::{between, flow, link, linux, ms, nodes, plan, routed, transfer, us};

fn run(plan: &Plan) -> (Packets, Totals) {
    let mut simulation = Simulation::new(plan, 1).expect("a sound plan");
    simulation.advance(plan.duration);
    (simulation.drain().packets, simulation.finish())
}

/// Time in picoseconds, flow, link, kind, number, what: the rows in a canonical order.
fn rows(log: &Packets) -> Vec<(u64, u32, u32, u8, u64, u8)> {
    let mut rows: Vec<_> = (0..log.what.len())
        .map(|row| {
            let time = Time::from_seconds(log.time_s[row]).picoseconds();
            let (flow, link) = (log.flow[row], log.link[row]);
            (
                time,
                flow,
                link,
                log.kind[row],
                log.sequence[row],
                log.what[row],
            )
        })
        .collect();
    rows.sort_unstable();
    rows
}

/// Three links there with these delays behind them, and three back.
const DELAYS: [Time; 6] = [us(100), us(7300), us(20), us(11), us(9000), us(130)];

fn links() -> Vec<LinkPlan> {
    vec![
        link(20e6, 50),
        link(3e6, 12),
        link(50e6, 50),
        link(50e6, 50),
        link(1e6, 30),
        link(20e6, 50),
    ]
}

/// A path over three links of a row of delays.
fn path(first: u32, delays: &[Time]) -> PathPlan {
    let before = [Time::ZERO, delays[0], delays[1]];
    let hops = (first..).zip(before);
    PathPlan {
        hops: hops.map(|(link, delay)| HopPlan { delay, link }).collect(),
        delay: delays[2],
    }
}

fn by_paths(duration: Time, tcp: TcpPlan) -> Plan {
    let mut one = flow(tcp);
    one.forward = path(0, &DELAYS[..3]);
    one.reverse = path(3, &DELAYS[3..]);
    plan(duration, links(), vec![one])
}

fn by_routing(duration: Time, tcp: TcpPlan) -> Plan {
    let ends = [(0, 2), (2, 3), (3, 1), (1, 3), (3, 2), (2, 0)];
    let links = links().into_iter().zip(ends).zip(DELAYS);
    let links = links.map(|((link, (from, to)), delay)| between(from, to, delay, link));
    let mut plan = plan(duration, links.collect(), vec![routed(0, 1, flow(tcp))]);
    plan.nodes = nodes(2, 4);
    plan
}

#[test]
fn every_packet_has_the_same_times_as_on_explicit_paths() {
    agree(&linux());
}

#[test]
fn host_delays_are_the_same_on_routed_and_explicit_paths() {
    agree(&busy(Duration::Uniform {
        from_s: 0.0,
        to_s: 3e-3,
    }));
}

#[test]
fn constant_host_delays_equal_a_longer_path() {
    let fixed = by_paths(ms(5000), busy(Duration::Fixed { s: 2e-3 }));
    let mut longer = by_paths(ms(5000), linux());
    longer.flows[0].forward.delay += ms(2);
    longer.flows[0].reverse.delay += ms(2);
    let queued = |plan| {
        let rows = rows(&run(plan).0).into_iter();
        rows.filter(|row| row.5 == PacketAction::Enqueue as u8)
            .collect::<Vec<_>>()
    };
    assert!(queued(&fixed) == queued(&longer));
    assert!(queued(&fixed) != queued(&by_paths(ms(5000), linux())));
}

fn busy(law: Duration) -> TcpPlan {
    TcpPlan {
        processing: Some(law),
        ..linux()
    }
}

fn agree(tcp: &TcpPlan) {
    let paths = run(&by_paths(ms(20_000), tcp.clone()));
    let routing = run(&by_routing(ms(20_000), tcp.clone()));
    assert!(
        paths.1.links.dropped_total_p[1] > 10,
        "the bottleneck drops"
    );
    assert_eq!(rows(&paths.0).len(), rows(&routing.0).len());
    assert!(rows(&paths.0) == rows(&routing.0));
}

#[test]
fn flows_that_share_a_bottleneck_get_the_same_as_on_explicit_paths() {
    // Three hosts send through 6-7 to three others; access links of 100 Mb/s, a bottleneck of 10 Mb/s.
    let (mut links, mut flows) = (vec![], vec![]);
    let (mut with_ends, mut with_paths) = (vec![], vec![]);
    for host in 0..3_u32 {
        let start = ms(37).scaled(f64::from(host));
        for (from, to) in [(host, 6), (6, host), (host + 3, 7), (7, host + 3)] {
            links.push(between(
                from,
                to,
                us(500 + 777 * u64::from(host)),
                link(100e6, 100),
            ));
        }
        let mut flow = transfer(linux(), 3000);
        flow.start = start;
        flows.push(flow);
    }
    links.push(between(6, 7, ms(5), link(10e6, 40)));
    links.push(between(7, 6, ms(5), link(10e6, 40)));
    for (host, flow) in (0..).zip(flows) {
        with_ends.push(routed(host, host + 3, flow.clone()));
        let of = |numbers: [u32; 3]| {
            let delay = |link: u32| links[link as usize].delay;
            let before = [Time::ZERO, delay(numbers[0]), delay(numbers[1])];
            PathPlan {
                hops: numbers
                    .into_iter()
                    .zip(before)
                    .map(|(link, delay)| HopPlan { delay, link })
                    .collect(),
                delay: delay(numbers[2]),
            }
        };
        let mut flow = flow;
        flow.forward = of([4 * host, 12, 4 * host + 3]);
        flow.reverse = of([4 * host + 2, 13, 4 * host + 1]);
        with_paths.push(flow);
    }
    let mut routing = plan(ms(30_000), links.clone(), with_ends);
    routing.nodes = nodes(6, 8);
    for link in &mut links {
        link.ends = None;
        link.delay = Time::ZERO;
    }
    let paths = plan(ms(30_000), links, with_paths);
    let (paths, routing) = (run(&paths).1, run(&routing).1);
    for flow in 0..3 {
        assert_eq!(paths.flows.delivered_bytes[flow], 3_000_000);
        assert_eq!(routing.flows.delivered_bytes[flow], 3_000_000);
        let (a, b) = (paths.flows.fct_s[flow], routing.flows.fct_s[flow]);
        assert!((a / b - 1.0).abs() < 0.01, "flow {flow}: {a} and {b} s");
    }
}
