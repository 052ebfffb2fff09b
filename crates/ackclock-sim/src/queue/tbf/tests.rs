//! Token buckets: exact times, exact rates, nothing above the bucket.

use super::*;
use crate::queue::testing::{packet, CONTEXT};
use proptest::prelude::*;
use serde_json::json;

const SIZE: u32 = 1000;

/// 4 Mb/s: 1000 bytes are 2 ms. Two of them fit into the bucket, five into the FIFO.
fn parameters() -> Parameters {
    Parameters {
        rate_bps: 4e6,
        burst_bytes: 2000,
        limit_bytes: 5000,
        latency_s: None,
        per_flow: true,
    }
}

fn us(microseconds: u64) -> Time {
    Time::from_microseconds(microseconds)
}

fn of(flow: u32, wire_bytes: u32) -> Packet {
    Packet {
        flow,
        ..packet(0, wire_bytes)
    }
}

/// Offer packets of a flow; returns how many were dropped.
fn offer(tbf: &mut Tbf, flow: u32, packets: u32, now: Time) -> usize {
    let mut drops = Drops::default();
    for _ in 0..packets {
        tbf.enqueue(of(flow, SIZE).entering(now), now, &mut drops);
    }
    drops.drain().count()
}

/// Take packets as a link of infinite rate would, until nothing waits: when each leaves, and its flow.
fn leave(tbf: &mut Tbf, mut now: Time) -> Vec<(Time, u32)> {
    let mut drops = Drops::default();
    let mut left = Vec::new();
    while tbf.backlog().packets > 0 {
        if let Some(packet) = tbf.dequeue(now, &mut drops) {
            left.push((now, packet.flow));
        } else {
            assert!(tbf.ready(now) > now, "waits for a time to come");
            now = tbf.ready(now);
        }
    }
    assert!(drops.is_empty());
    left
}

#[test]
fn a_burst_leaves_immediately_and_the_rest_at_the_exact_rate() {
    let mut tbf = Tbf::new(&parameters());
    assert_eq!(offer(&mut tbf, 0, 5, us(100)), 0);
    let times: Vec<Time> = leave(&mut tbf, us(100))
        .iter()
        .map(|(time, _)| *time)
        .collect();
    let expected = [us(100), us(100), us(2100), us(4100), us(6100)];
    assert_eq!(times, expected);
    assert_eq!(tbf.ready(us(6100)), Time::NEVER);
}

#[test]
fn tokens_collect_up_to_the_burst_only() {
    let mut tbf = Tbf::new(&parameters());
    offer(&mut tbf, 0, 2, us(0));
    leave(&mut tbf, us(0));
    // 1 ms brings 500 of the 1000 bytes, and the bucket is full again 4 ms later.
    offer(&mut tbf, 0, 1, us(1000));
    assert_eq!(leave(&mut tbf, us(1000)), [(us(2000), 0)]);
    offer(&mut tbf, 0, 3, us(1_000_000));
    let times = leave(&mut tbf, us(1_000_000));
    assert_eq!(times[1..], [(us(1_000_000), 0), (us(1_002_000), 0)]);
}

#[test]
fn a_packet_that_is_held_back_is_not_given_a_picosecond_early() {
    let mut tbf = Tbf::new(&parameters());
    let mut drops = Drops::default();
    offer(&mut tbf, 0, 3, us(0));
    assert!(tbf.dequeue(us(0), &mut drops).is_some());
    assert!(tbf.dequeue(us(0), &mut drops).is_some());
    assert!(tbf.dequeue(us(0), &mut drops).is_none());
    assert_eq!(tbf.ready(us(0)), us(2000));
    let early = us(2000) - Time::from_picoseconds(1);
    assert!(tbf.dequeue(early, &mut drops).is_none());
    assert!(tbf.dequeue(us(2000), &mut drops).is_some());
}

#[test]
fn each_flow_has_its_own_bucket_and_limit() {
    let mut tbf = Tbf::new(&parameters());
    assert_eq!(offer(&mut tbf, 0, 7, us(0)), 2);
    assert_eq!(offer(&mut tbf, 3, 4, us(0)), 0);
    let left = leave(&mut tbf, us(0));
    let of_flow = |flow| -> Vec<Time> {
        let of_flow = left.iter().filter(|(_, left)| *left == flow);
        of_flow.map(|(time, _)| *time).collect()
    };
    assert_eq!(of_flow(0), [us(0), us(0), us(2000), us(4000), us(6000)]);
    assert_eq!(of_flow(3), [us(0), us(0), us(2000), us(4000)]);
}

#[test]
fn a_shared_bucket_limits_all_flows() {
    let mut tbf = Tbf::new(&Parameters {
        per_flow: false,
        ..parameters()
    });
    assert_eq!(offer(&mut tbf, 0, 2, us(0)), 0);
    assert_eq!(offer(&mut tbf, 3, 4, us(0)), 1);
    let left = leave(&mut tbf, us(0));
    let expected = [
        (us(0), 0),
        (us(0), 0),
        (us(2000), 3),
        (us(4000), 3),
        (us(6000), 3),
    ];
    assert_eq!(left, expected);
}

#[test]
fn packets_with_tokens_go_in_the_order_in_which_they_had_them() {
    let mut tbf = Tbf::new(&parameters());
    let mut drops = Drops::default();
    for (flow, now) in [(1, us(0)), (0, us(500))] {
        offer(&mut tbf, flow, 3, now);
        assert!(tbf.dequeue(now, &mut drops).is_some());
        assert!(tbf.dequeue(now, &mut drops).is_some());
    }
    // The link was busy meanwhile: flow 1 has had tokens since 2 ms, flow 0 since 2.5 ms.
    let left: Vec<u32> = (0..2)
        .filter_map(|_| tbf.dequeue(us(9000), &mut drops))
        .map(|packet| packet.flow)
        .collect();
    assert_eq!(left, [1, 0]);
    assert_eq!(tbf.backlog(), Backlog::default());
}

#[test]
fn a_packet_larger_than_the_bucket_is_dropped() {
    let mut tbf = Tbf::new(&parameters());
    let mut drops = Drops::default();
    tbf.enqueue(of(0, 2001), us(0), &mut drops);
    assert_eq!(drops.drain().count(), 1);
    tbf.enqueue(of(0, 2000), us(0), &mut drops);
    assert_eq!(leave(&mut tbf, us(0)), [(us(0), 0)]);
}

#[test]
fn a_latency_is_a_limit_of_rate_times_latency_and_a_burst() {
    let limit = |latency_s| {
        Parameters {
            latency_s: Some(latency_s),
            limit_bytes: 100_000,
            ..parameters()
        }
        .limit()
    };
    assert_eq!(limit(0.05), 25_000 + 2000);
    assert_eq!(limit(0.0), 2000);
    assert_eq!(limit(10.0), 100_000);
}

#[test]
fn wrong_parameters_are_rejected() {
    let right = json!({
        "rate_bps": 4e6, "burst_bytes": 3000, "limit_bytes": 9000, "latency_s": null, "per_flow": true,
    });
    assert!(make(&right, &CONTEXT).is_ok());
    for (key, value) in [
        ("rate_bps", json!(0.0)),
        ("rate_bps", json!(-1.0)),
        ("burst_bytes", json!(0)),
        ("limit_bytes", json!(0)),
        ("latency_s", json!(-0.1)),
        ("per_flow", json!(null)),
        ("peakrate_bps", json!(1e7)),
    ] {
        let mut wrong = right.clone();
        wrong[key] = value;
        assert!(make(&wrong, &CONTEXT).is_err(), "{wrong}");
    }
}

proptest! {
    /// For any arrivals and polls of the link: in no interval does a flow send more than
    /// burst + rate × time; a flow that always has packets sends exactly that; its order is kept.
    #[test]
    fn never_above_the_bucket_and_never_below_the_rate(
        rate_bps in 1e5_f64..1e8,
        burst_bytes in 1500_u64..20_000,
        arrivals in prop::collection::vec((0_u64..20_000, 0_u32..3, 40_u32..1500), 1..200),
        slow in any::<bool>(),
    ) {
        let mut tbf = Tbf::new(&Parameters {
            rate_bps, burst_bytes, limit_bytes: 30_000, latency_s: None, per_flow: true,
        });
        let mut drops = Drops::default();
        let mut now = Time::ZERO;
        let mut left: Vec<(Time, Packet)> = Vec::new();
        for (sequence, (gap_us, flow, wire_bytes)) in arrivals.into_iter().enumerate() {
            let next = now + us(gap_us);
            // The link polls when it may; a slow one polls only when a packet arrives.
            while !slow && tbf.ready(now) <= next {
                now = tbf.ready(now).max(now);
                left.extend(tbf.dequeue(now, &mut drops).map(|packet| (now, packet)));
            }
            now = next;
            let arriving = Packet { sequence: sequence as u64, ..of(flow, wire_bytes) };
            tbf.enqueue(arriving.entering(now), now, &mut drops);
            left.extend(tbf.dequeue(now, &mut drops).map(|packet| (now, packet)));
        }
        for flow in 0..3 {
            let mine: Vec<_> = left.iter().filter(|(_, packet)| packet.flow == flow).collect();
            prop_assert!(mine.windows(2).all(|pair| pair[0].1.sequence < pair[1].1.sequence));
            for first in 0..mine.len() {
                let mut bytes = 0.0;
                for (time, packet) in &mine[first..] {
                    bytes += f64::from(packet.wire_bytes);
                    let most = burst_bytes as f64 + rate_bps / 8.0 * time.since(mine[first].0).seconds();
                    prop_assert!(bytes <= most + 0.01, "{bytes} B, at most {most}");
                }
            }
        }
    }

    /// The long-term rate of a flow with packets at all times is the rate, whatever their sizes.
    #[test]
    fn a_busy_flow_sends_at_the_rate(
        rate_bps in 1e5_f64..1e8,
        sizes in prop::collection::vec(40_u32..1500, 100..300),
    ) {
        let mut tbf = Tbf::new(&Parameters {
            rate_bps, burst_bytes: 1500, limit_bytes: 1_000_000, latency_s: None, per_flow: true,
        });
        let mut drops = Drops::default();
        for wire_bytes in &sizes {
            tbf.enqueue(of(0, *wire_bytes), Time::ZERO, &mut drops);
        }
        let end = leave(&mut tbf, Time::ZERO).last().map_or(Time::ZERO, |(time, _)| *time);
        let bytes: f64 = sizes.iter().map(|bytes| f64::from(*bytes)).sum();
        let expected_s = (bytes - 1500.0).max(0.0) * 8.0 / rate_bps;
        prop_assert!((end.seconds() - expected_s).abs() < 1e-9, "{end} for {expected_s} s");
    }
}
