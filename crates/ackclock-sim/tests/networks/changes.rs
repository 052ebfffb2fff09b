//! A link's rate and delay change: transmission times and RTTs before and after, from closed forms.

use ackclock_core::tables::{EventKind, PacketAction, Packets, NONE};
use ackclock_core::{Rate, Time};
use ackclock_plan::{ChangePlan, FlowPlan, Plan};
use ackclock_sim::Simulation;

use crate::kit::{
    between, change, flow, link, linux, ms, nodes, path, plan, routed, us, HEADER_BYTES, MSS_BYTES,
};

const DATA: u8 = 2;
/// A full segment with timestamps: 1052 bytes, 8.416 ms at 1 Mb/s.
const WIRE_BITS: f64 = 8.0 * (MSS_BYTES + HEADER_BYTES + 12) as f64;

fn run(plan: &Plan) -> Simulation {
    let mut simulation = Simulation::new(plan, 1).expect("a sound plan");
    simulation.advance(plan.duration);
    simulation
}

/// Times at which the data packets of a link had this happen to them, s.
fn times(log: &Packets, link: u32, what: PacketAction) -> Vec<f64> {
    (0..log.what.len())
        .filter(|&row| log.link[row] == link && log.kind[row] == DATA)
        .filter(|&row| log.what[row] == what as u8)
        .map(|row| log.time_s[row])
        .collect()
}

/// Two hosts joined by link 0 of 1 Mb/s there and link 1 of 100 Mb/s back, 5 ms each.
fn wired(flow: FlowPlan, changes: Vec<ChangePlan>) -> Plan {
    let links = vec![
        between(0, 1, ms(5), link(1e6, 1000)),
        between(1, 0, ms(5), link(100e6, 1000)),
    ];
    let mut plan = plan(ms(4000), links, vec![routed(0, 1, flow)]);
    plan.nodes = nodes(2, 2);
    plan.changes = changes;
    plan
}

/// The same by explicit paths, over one link.
fn by_paths(mut flow: FlowPlan, changes: Vec<ChangePlan>) -> Plan {
    flow.forward = path(ms(5), &[0]);
    flow.reverse = path(ms(5), &[]);
    let mut plan = plan(ms(4000), vec![link(1e6, 1000)], vec![flow]);
    plan.changes = changes;
    plan
}

/// A flow that writes a segment each 100 ms, so that none waits.
fn thin() -> FlowPlan {
    FlowPlan {
        application_rate: Some(Rate::from_bits_per_second(8.0 * f64::from(MSS_BYTES) / 0.1)),
        ..flow(linux())
    }
}

fn to_rate(at: Time, bps: f64) -> ChangePlan {
    ChangePlan {
        rate: Some(Rate::from_bits_per_second(bps)),
        ..change(at, 0)
    }
}

fn to_delay(at: Time, delay: Time) -> ChangePlan {
    ChangePlan {
        delay: Some(delay),
        ..change(at, 0)
    }
}

#[test]
fn after_a_change_of_rate_each_packet_takes_its_bits_over_the_new_rate() {
    for make in [wired, by_paths] {
        let changes = vec![to_rate(ms(2000), 4e6)];
        let mut simulation = run(&make(flow(linux()), changes));
        let left = times(&simulation.drain().packets, 0, PacketAction::Dequeue);
        let gaps: Vec<(f64, f64)> = left
            .windows(2)
            .map(|pair| (pair[0], pair[1] - pair[0]))
            .collect();
        // The queue never empties from 1 s on; what is in transmission at 2 s keeps the old rate.
        let busy = gaps.iter().filter(|(begin, _)| *begin > 1.0);
        let (mut before, mut after) = (0, 0);
        for &(begin, gap) in busy {
            let rate_bps = if begin < 2.0 { 1e6 } else { 4e6 };
            assert!(
                (gap - WIRE_BITS / rate_bps).abs() < 1e-9,
                "{gap} s from {begin} s"
            );
            before += u32::from(begin < 2.0);
            after += u32::from(begin >= 2.0);
        }
        // 1 s and 2 s of the measured part at 1 and 4 Mb/s.
        assert!((117..=120).contains(&before), "{before}");
        assert!((940..=952).contains(&after), "{after}");
    }
}

#[test]
fn the_round_trip_follows_a_change_of_delay() {
    // Data: 8.416 ms of transmission and 5 ms; ACK: 52 bytes at 100 Mb/s, and 5 ms. Then 60 ms more.
    let before_s = WIRE_BITS / 1e6 + 0.005 + 8.0 * 52.0 / 100e6 + 0.005;
    let log = run(&wired(thin(), vec![to_delay(ms(2050), ms(65))]))
        .drain()
        .packets;
    let sent = times(&log, 0, PacketAction::Enqueue);
    let answered: Vec<f64> = (0..log.what.len())
        .filter(|&row| log.what[row] == PacketAction::Arrive as u8 && log.kind[row] == 4)
        .map(|row| log.time_s[row])
        .collect();
    let (mut old, mut new) = (0, 0);
    // The first segment waits behind the handshake's last ACK.
    for &begin in sent[1..].iter().filter(|&&begin| begin < 3.8) {
        let expected = begin + before_s + if begin < 2.05 { 0.0 } else { 0.06 };
        let is_there = answered.iter().any(|end| (end - expected).abs() < 1e-9);
        assert!(is_there, "sent at {begin} s");
        old += u32::from(begin < 2.05);
        new += u32::from(begin >= 2.05);
    }
    assert!(old >= 15 && new >= 15, "{old} and {new}");
}

#[test]
fn a_shorter_delay_lets_no_packet_overtake() {
    // 100 ms to begin with; 1 ms from 2 s on, while eleven packets fly and the queue is full.
    let mut begun = wired(flow(linux()), vec![to_delay(ms(2000), ms(1))]);
    begun.links[0].delay = ms(100);
    let log = run(&begun).drain().packets;
    let left = times(&log, 0, PacketAction::Dequeue);
    let arrived = times(&log, NONE, PacketAction::Arrive);
    let mut last: f64 = 0.0;
    let mut waited = 0;
    for (&left, &arrived) in left.iter().zip(&arrived) {
        let own = left + if left < 2.0 { 0.1 } else { 0.001 };
        let expected = own.max(last);
        assert!(
            (arrived - expected).abs() < 1e-9,
            "left at {left} s, arrived at {arrived} s"
        );
        waited += u32::from(expected > own);
        last = expected;
    }
    // In 99 ms behind the last of the old delay, 8.416 ms apart: 11 packets.
    assert_eq!(waited, 11);
}

#[test]
fn a_longer_delay_applies_to_the_packet_in_transmission() {
    let log = run(&wired(flow(linux()), vec![to_delay(ms(2000), ms(50))]))
        .drain()
        .packets;
    let left = times(&log, 0, PacketAction::Dequeue);
    let arrived = times(&log, NONE, PacketAction::Arrive);
    for (&left, &arrived) in left.iter().zip(&arrived) {
        let delay_s = if left < 2.0 { 0.005 } else { 0.05 };
        assert!((arrived - left - delay_s).abs() < 1e-9, "left at {left} s");
    }
}

#[test]
fn a_delay_on_a_link_of_explicit_paths_adds_to_theirs() {
    let changes = vec![to_delay(ms(2000), ms(40))];
    let log = run(&by_paths(thin(), changes)).drain().packets;
    let left = times(&log, 0, PacketAction::Dequeue);
    let arrived = times(&log, NONE, PacketAction::Arrive);
    assert!(arrived.len() > 30);
    for (&left, &arrived) in left.iter().zip(&arrived) {
        let delay_s = if left < 2.0 { 0.005 } else { 0.045 };
        assert!((arrived - left - delay_s).abs() < 1e-9, "left at {left} s");
    }
}

#[test]
fn every_change_is_an_event_with_the_rate_from_then_on() {
    let link_down = ChangePlan {
        up: Some(false),
        ..change(ms(3000), 0)
    };
    let changes = vec![link_down, to_rate(ms(1000), 2e6), to_delay(ms(2000), us(1))];
    let events = run(&wired(thin(), changes)).drain().events;
    let rows: Vec<(f64, u32, u32, f64)> = (0..events.kind.len())
        .filter(|&row| events.kind[row] == EventKind::LinkChange as u8)
        .map(|row| {
            (
                events.time_s[row],
                events.flow[row],
                events.link[row],
                events.value[row],
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (1.0, NONE, 0, 2e6),
            (2.0, NONE, 0, 2e6),
            (3.0, NONE, 0, 0.0)
        ]
    );
}
