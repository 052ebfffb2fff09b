//! UDP on a link.

use ackclock_core::Time;
use ackclock_plan::{DatagramPlan, LossPlan, Plan};
use serde_json::{json, Value};

use super::run;
use crate::kit::{flow, link, linux, ms, path, plan, us};

/// A source of packets of 1000 bytes, 10 ms there and 20 ms back over no queue.
fn source(source: Value) -> DatagramPlan {
    DatagramPlan {
        group: 0,
        start: ms(100),
        stop: None,
        priority: 0,
        ends: None,
        forward: path(ms(10), &[0]),
        reverse: path(ms(20), &[]),
        payload_bytes: 972,
        header_bytes: 28,
        source: serde_json::from_value(source).expect("a source"),
    }
}

fn constant(per_s: f64) -> DatagramPlan {
    source(json!({ "kind": "constant", "per_s": per_s }))
}

fn small(sending: Value) -> DatagramPlan {
    DatagramPlan {
        payload_bytes: 1,
        ..source(sending)
    }
}

fn network(duration: Time, rate_bps: f64, limit: u32, datagrams: Vec<DatagramPlan>) -> Plan {
    Plan {
        datagrams,
        ..plan(duration, vec![link(rate_bps, limit)], vec![])
    }
}

/// 1000 bytes at 8 Mbit/s take 1 ms, and 10 ms follow.
#[test]
fn each_datagram_arrives_after_its_transmission_and_the_delay() {
    let mut plan = network(ms(1200), 8e6, 10, vec![constant(50.0)]);
    plan.warmup = ms(600);
    let (_, tables, totals) = run(&plan, 1);
    let flows = &totals.flows;
    // At 100, 120, …, 1180 ms, and at 1200: 56, of which the last has not passed the link.
    assert_eq!((flows.sent_packets[0], flows.received_packets[0]), (56, 55));
    assert_eq!(
        (flows.sent_bytes[0], flows.delivered_bytes[0]),
        (56_000, 55 * 972)
    );
    assert_eq!(
        flows.measured_sent_packets[0], 30,
        "620 to 1200; 600 came before"
    );
    assert!((flows.delay_mean_s[0] - 0.011).abs() < 1e-15);
    assert!((flows.base_rtt_s[0] - 0.030).abs() < 1e-15);
    assert_eq!(flows.start_s, [0.1]);
    assert!(flows.end_s[0].is_nan() && flows.established_s[0].is_nan());
    assert_eq!(flows.retransmissions, [u64::MAX]);
    assert_eq!(flows.timeouts, [u64::MAX]);
    let samples = &tables.flow_samples;
    assert_eq!(
        samples.delivered_bytes[2],
        10 * 972,
        "at 300 ms, ten have passed the link"
    );
    assert!(samples.cwnd.iter().all(|cwnd| cwnd.is_nan()));
}

#[test]
fn datagrams_above_the_link_rate_are_dropped() {
    // 1500/s on a link that passes 1000/s.
    let plan = network(ms(10_100), 8e6, 10, vec![constant(1500.0)]);
    let (simulation, _, totals) = run(&plan, 1);
    let flows = &totals.flows;
    let (sent, received) = (flows.sent_packets[0], flows.received_packets[0]);
    assert!((sent as i64 - 15_000).abs() <= 1 && (received as i64 - 10_000).abs() <= 1);
    assert_eq!(
        sent,
        received + flows.dropped_packets[0] + simulation.packets_in_transit()
    );
    // Almost always nine or ten before each, of the ten that fit.
    let delay_s = flows.delay_mean_s[0];
    assert!((0.019..0.022).contains(&delay_s), "{delay_s}");
}

/// A burst of 100 at 2000/s on a link that passes 1000/s: the n-th waits n/2 ms, 25 ms on average.
#[test]
fn a_burst_queues_behind_itself() {
    let bursts = json!({ "kind": "bursts", "per_s": 2000.0, "packets": 100, "every_s": 0.5 });
    let plan = network(ms(5099), 8e6, 1000, vec![source(bursts)]);
    let (_, _, totals) = run(&plan, 1);
    assert_eq!(totals.flows.received_packets, [1000]);
    let mean_s = 0.011 + 49.5 * 0.0005;
    assert!((totals.flows.delay_mean_s[0] - mean_s).abs() < 1e-12);
}

#[test]
fn datagrams_are_lost_at_random_as_data_are() {
    let mut plan = network(ms(10_095), 8e6, 10, vec![constant(100.0)]);
    plan.links[0].loss = Some(LossPlan::Every { packets: 10 });
    let (_, _, totals) = run(&plan, 1);
    assert_eq!(totals.flows.dropped_packets, [100]);
    assert_eq!(totals.flows.received_packets, [900]);
}

#[test]
fn a_source_that_stops_sends_no_more() {
    let mut plan = network(ms(3000), 8e6, 10, vec![constant(100.0)]);
    plan.datagrams[0].stop = Some(ms(600));
    let (_, _, totals) = run(&plan, 1);
    assert_eq!(totals.flows.sent_packets, [50]);
    assert_eq!(totals.flows.received_packets, [50]);
}

#[test]
fn flows_are_numbered_before_datagram_sources() {
    let mut tcp = flow(linux());
    tcp.forward = path(ms(10), &[0]);
    let mut plan = network(ms(1000), 8e6, 20, vec![constant(10.0)]);
    plan.flows = vec![tcp];
    let (_, _, totals) = run(&plan, 1);
    assert_eq!(totals.flows.flow, [0, 1]);
    assert!(totals.flows.end_s.iter().all(|end_s| end_s.is_nan()));
    assert_eq!(totals.flows.retransmissions[1], u64::MAX);
    assert_ne!(totals.flows.retransmissions[0], u64::MAX);
}

/// Braud's line, 800 kbit/s and 120 packets, kept full by 1500-byte packets at 1.3 times its rate. The delay of the
/// full queue without small packets is 120 · 15 ms = 1.8 s; they are to bring it to 0.6 s.
#[test]
fn the_adaptive_source_holds_the_delay_of_a_full_queue_at_its_target() {
    let sending = json!({
        "kind": "adaptive", "target_s": 0.6, "min_per_s": 10.0, "max_per_s": 5000.0
    });
    let mut full = constant(1.3 * 800_000.0 / 12_000.0);
    full.payload_bytes = 1472;
    let adaptive = small(sending);
    let mut plan = network(ms(300_000), 800_000.0, 120, vec![full, adaptive]);
    let (_, tables, totals) = run(&plan, 1);
    let samples = &tables.flow_samples;
    let rtts: Vec<f64> = (0..samples.flow.len())
        .filter(|&row| samples.flow[row] == 1 && samples.time_s[row] > 100.0)
        .map(|row| samples.srtt_s[row])
        .collect();
    let mean_s = rtts.iter().sum::<f64>() / rtts.len() as f64;
    // The smallest RTT is that of the first datagram: 30 ms of delay, and the little that was there before it.
    let target_s = 0.63;
    assert!((mean_s / target_s - 1.0).abs() < 0.1, "{mean_s}");
    let (least, most) = rtts
        .iter()
        .fold((9.0_f64, 0.0_f64), |(l, m), &s| (l.min(s), m.max(s)));
    assert!(
        least > 0.5 * target_s && most < 1.7 * target_s,
        "{least} {most}"
    );
    assert!(totals.flows.sent_packets[1] > 10_000);
    // Without the others it goes down to its least.
    plan.datagrams.remove(0);
    let (_, _, totals) = run(&plan, 1);
    assert!((totals.flows.sent_packets[0] as i64 - 2999).abs() <= 1);
}

#[test]
fn an_echo_takes_the_reverse_path() {
    // Back over a second link of 29 bytes a millisecond.
    let sending =
        json!({ "kind": "adaptive", "target_s": 1.0, "min_per_s": 10.0, "max_per_s": 10.0 });
    let mut back = small(sending);
    back.reverse = path(ms(20), &[1]);
    let mut plan = network(ms(1050), 232_000.0, 10, vec![back]);
    plan.links.push(link(232_000.0, 10));
    let (_, tables, totals) = run(&plan, 1);
    assert_eq!(totals.links.departed_p, [10, 10]);
    let samples = &tables.flow_samples;
    let rtt_s = *samples.srtt_s.last().expect("samples");
    assert!((rtt_s - 0.032).abs() < 1e-12, "{rtt_s}");
    assert_eq!(us(32_000), ms(32));
}
