//! CAKE against its manual, its paper, and what `tc -s qdisc` of Linux 6.1 shows.

use super::*;
use crate::packet::{Ecn, Flags, Kind};
use crate::queue::testing::{packet, CONTEXT};
use serde_json::json;

mod acks;
mod aqm;

const SIZE: u32 = 1250;
const BULK: u8 = 8;
const VIDEO: u8 = 34;
const VOICE: u8 = 46;

fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

fn parameters(changes: &Value) -> Value {
    let mut all = json!({
        "bandwidth_bps": null, "diffserv": "diffserv3", "isolation": "triple-isolate", "ack_filter": "off",
        "rtt_s": 0.1, "link_layer": "noatm", "overhead": null, "mpu": 0, "memlimit_bytes": null,
    });
    for (name, value) in changes.as_object().expect("a table") {
        all[name] = value.clone();
    }
    all
}

/// CAKE with these changes of its defaults; `headers` are those of the first flows.
fn cake(changes: &Value, headers: &[FlowHeader]) -> Cake {
    let headers = FlowHeaders::new((0..).zip(headers.iter().copied()));
    let context = QueueContext {
        headers: &headers,
        ..CONTEXT
    };
    let parameters = Parameters::deserialize(parameters(changes)).expect("of the specification");
    parameters.check().expect("valid parameters");
    Cake::new(&parameters, &context)
}

fn from_host(source: u32) -> FlowHeader {
    FlowHeader {
        hosts: [source, 100],
        ..FlowHeader::default()
    }
}

fn with_dscp(dscp: u8) -> FlowHeader {
    FlowHeader {
        dscp,
        ..FlowHeader::default()
    }
}

fn of(flow: u32, sequence: u64) -> Packet {
    Packet {
        flow,
        ..packet(sequence, SIZE)
    }
}

fn arrive(cake: &mut Cake, packet: Packet, now: Time) -> Vec<Packet> {
    let mut drops = Drops::default();
    cake.enqueue(packet.entering(now), now, &mut drops);
    drops.drain().collect()
}

/// Packets by flow of which so many leave, while each flow always has ten packets queued; a packet leaves every
/// millisecond, which is what a bandwidth of 10 Mb/s gives.
fn saturated(cake: &mut Cake, flows: u32, leave: u64) -> Vec<u64> {
    let mut counts = vec![0; flows as usize];
    let mut drops = Drops::default();
    for flow in 0..flows {
        for sequence in 0..10 {
            arrive(cake, of(flow, sequence), Time::ZERO);
        }
    }
    for millisecond in 0..leave {
        let left = cake
            .dequeue(ms(millisecond), &mut drops)
            .expect("packets wait");
        counts[left.flow as usize] += 1;
        arrive(cake, of(left.flow, 0), ms(millisecond));
        for lost in drops.drain() {
            arrive(cake, of(lost.flow, 0), ms(millisecond));
        }
    }
    counts
}

/// `tc -s qdisc show` of Linux 6.1.192 for three settings: target and interval in ms, quantum in bytes.
#[test]
fn tins_have_the_constants_that_tc_shows() {
    let shown = [
        (
            "diffserv3",
            1e7,
            0.1,
            vec![(5.0, 100.0, 305), (29.1, 124.0, 300), (7.27, 102.0, 300)],
        ),
        (
            "diffserv4",
            1e6,
            0.1,
            vec![
                (18.2, 113.0, 300),
                (291.0, 581.0, 300),
                (36.3, 131.0, 300),
                (72.7, 168.0, 300),
            ],
        ),
        ("besteffort", 1e7, 0.02, vec![(1.82, 20.8, 305)]),
    ];
    for (diffserv, bps, rtt_s, expected) in shown {
        let changes = json!({ "diffserv": diffserv, "bandwidth_bps": bps, "rtt_s": rtt_s });
        let found = cake(&changes, &[]).tins;
        assert_eq!(found.len(), expected.len());
        for (tin, (target_ms, interval_ms, quantum)) in found.iter().zip(expected) {
            let is_shown =
                |time: Time, shown: f64| (time.seconds() * 1e3 / shown - 1.0).abs() < 5e-3;
            assert!(is_shown(tin.law.target, target_ms) && is_shown(tin.law.interval, interval_ms));
            assert_eq!(tin.flows.quantum_bytes(), quantum);
        }
    }
    let unlimited = cake(&json!({ "rtt_s": 0.02 }), &[]);
    assert!(unlimited
        .tins
        .iter()
        .all(|tin| tin.law.target == ms(1) && tin.law.interval == ms(20)));
    assert!(unlimited
        .tins
        .iter()
        .all(|tin| tin.flows.quantum_bytes() == 1514));
    assert_eq!(unlimited.memory_bytes, 15_140 << 10);
}

/// Codepoints of the manual, and of the classes that tc counts packets of them in.
#[test]
fn codepoints_have_the_tins_of_the_manual() {
    let expected = [
        (0, [0, 0, 2]),
        (8, [1, 1, 1]),
        (1, [1, 1, 0]),
        (46, [2, 3, 6]),
        (44, [2, 3, 6]),
        (48, [2, 3, 7]),
        (56, [2, 3, 7]),
        (4, [2, 2, 4]),
        (34, [0, 2, 3]),
        (26, [0, 2, 3]),
        (24, [0, 2, 3]),
        (18, [0, 2, 4]),
        (16, [0, 2, 5]),
        (40, [0, 3, 6]),
        (32, [0, 3, 6]),
        (10, [0, 1 - 1, 1]),
        (63, [0, 0, 2]),
    ];
    let tins = [
        Diffserv::Diffserv3,
        Diffserv::Diffserv4,
        Diffserv::Diffserv8,
    ];
    for (dscp, expected) in expected {
        assert_eq!(
            tins.map(|diffserv| diffserv.tin_of(dscp)),
            expected,
            "{dscp}"
        );
        assert_eq!(Diffserv::Precedence.tin_of(dscp), usize::from(dscp / 8));
        assert_eq!(Diffserv::Besteffort.tin_of(dscp), 0);
    }
}

/// Host 1 has a flow, host 2 has eight: each gets half, and a flow of host 2 an eighth of that. Without host isolation
/// each flow gets a ninth, and so it does where the host that is looked at is the same for all.
#[test]
fn hosts_get_equal_shares_whatever_the_number_of_their_flows() {
    let ninth = 1.0 / 9.0;
    let cases = [
        ("triple-isolate", 200, 0.5),
        ("dual-srchost", 200, 0.5),
        ("dual-dsthost", 200, 0.5),
        ("flows", 200, ninth),
        ("triple-isolate", 0, ninth),
        ("dual-srchost", 0, 0.5),
        ("dual-dsthost", 0, ninth),
    ];
    for (isolation, apart, first) in cases {
        let header = |source| FlowHeader {
            hosts: [source, 100 + apart * source],
            ..FlowHeader::default()
        };
        let hosts: Vec<FlowHeader> = (0..9).map(|flow| header(1 + flow.min(1))).collect();
        let mut cake = cake(&json!({ "isolation": isolation, "rtt_s": 1000.0 }), &hosts);
        let counts = saturated(&mut cake, 9, 9000);
        let share = counts[0] as f64 / 9000.0;
        assert!(
            (share - first).abs() < 0.005,
            "{isolation}, {apart}: {share}"
        );
        let (least, most) = (counts[1..].iter().min(), counts[1..].iter().max());
        assert!(most <= least.map(|least| least + 20).as_ref(), "{counts:?}");
    }
}

/// Eight sources send to one destination, which has more flows than each of them, beside one to another: of the two
/// destinations each gets half.
#[test]
fn of_two_hosts_the_one_with_more_flows_counts() {
    let header = |flow| FlowHeader {
        hosts: [flow, if flow == 0 { 100 } else { 101 }],
        ..FlowHeader::default()
    };
    let hosts: Vec<FlowHeader> = (0..9).map(header).collect();
    let mut cake = cake(&json!({ "rtt_s": 1000.0 }), &hosts);
    let counts = saturated(&mut cake, 9, 9000);
    assert!(
        (counts[0] as f64 / 9000.0 - 0.5).abs() < 0.005,
        "{counts:?}"
    );
}

/// A packet back has the hosts the other way round: the destination of the data is its source.
#[test]
fn the_source_of_an_ack_is_the_destination_of_the_data() {
    let mut cake = cake(
        &json!({ "isolation": "srchost" }),
        &[from_host(1), from_host(2)],
    );
    let ack = |flow| Packet {
        kind: Kind::Ack,
        ..of(flow, 0)
    };
    for packet in [ack(0), ack(0), ack(1), of(0, 0)] {
        arrive(&mut cake, packet, Time::ZERO);
    }
    let listed = cake.tins[0].flows.listed();
    assert_eq!(listed, 2);
}

/// Thresholds of the manual: 6.25 % for bulk, 25 % for voice, 50 % for video; best effort has what is left.
#[test]
fn saturated_tins_get_their_thresholds() {
    let cases = [
        (
            "diffserv3",
            vec![(0, 0.6875), (BULK, 0.0625), (VOICE, 0.25)],
        ),
        (
            "diffserv4",
            vec![(0, 0.1875), (BULK, 0.0625), (VIDEO, 0.5), (VOICE, 0.25)],
        ),
        ("diffserv4", vec![(0, 0.9375), (BULK, 0.0625)]),
        ("besteffort", vec![(0, 0.5), (VOICE, 0.5)]),
    ];
    for (diffserv, flows) in cases {
        let headers: Vec<FlowHeader> = flows.iter().map(|&(dscp, _)| with_dscp(dscp)).collect();
        let changes = json!({ "diffserv": diffserv, "bandwidth_bps": 1e7, "rtt_s": 1000.0 });
        let counts = saturated(&mut cake(&changes, &headers), flows.len() as u32, 16_000);
        for (count, (dscp, share)) in counts.iter().zip(flows) {
            let found = *count as f64 / 16_000.0;
            assert!(
                (found - share).abs() < 0.005,
                "{diffserv} {dscp}: {found}, {share} expected"
            );
        }
    }
}

/// Without a shaper tins take turns by weights of 16 : 1 : 4.
#[test]
fn without_a_bandwidth_tins_take_turns_by_weight() {
    let headers = [with_dscp(0), with_dscp(BULK), with_dscp(VOICE)];
    let counts = saturated(&mut cake(&json!({ "rtt_s": 1000.0 }), &headers), 3, 21_000);
    for (count, expected) in counts.iter().zip([16_000.0, 1000.0, 4000.0]) {
        assert!((*count as f64 / expected - 1.0).abs() < 0.01, "{counts:?}");
    }
}

/// At 10 Mb/s a packet of 1250 bytes lasts a millisecond. After an idle time nothing leaves at once.
#[test]
fn the_shaper_spaces_packets_and_saves_up_no_tokens() {
    let mut cake = cake(&json!({ "bandwidth_bps": 1e7 }), &[]);
    let mut drops = Drops::default();
    for start in [0, 5000] {
        for sequence in 0..5 {
            arrive(&mut cake, of(0, sequence), ms(start));
        }
        for millisecond in 0..5 {
            let now = ms(start + millisecond);
            assert!(cake.dequeue(now, &mut drops).is_some());
            assert!(cake.dequeue(now, &mut drops).is_none());
            assert_eq!(cake.ready(now), now + ms(1));
        }
    }
    assert!(drops.is_empty());
}

/// 1250 − 14 + 40 bytes fill 27 cells of 53.
#[test]
fn the_shaper_counts_overhead_and_cells() {
    let mut cake = cake(
        &json!({ "bandwidth_bps": 1e7, "overhead": 40, "link_layer": "atm" }),
        &[],
    );
    arrive(&mut cake, of(0, 0), Time::ZERO);
    cake.dequeue(Time::ZERO, &mut Drops::default());
    let seconds = 8.0 * 27.0 * 53.0 / 1e7;
    assert_eq!(cake.ready(Time::ZERO), Time::from_seconds(seconds));
}

/// A flow that sends a packet now and then waits for one packet of the others at most.
#[test]
fn a_sparse_flow_does_not_wait_for_bulk_flows() {
    let mut cake = cake(&json!({ "bandwidth_bps": 1e7 }), &[]);
    let mut drops = Drops::default();
    for flow in 0..4 {
        for sequence in 0..100 {
            arrive(&mut cake, of(flow, sequence), Time::ZERO);
        }
    }
    // Until all four have used a quantum up.
    for millisecond in 0..20 {
        cake.dequeue(ms(millisecond), &mut drops);
    }
    for round in 2..20 {
        arrive(&mut cake, of(9, round), ms(10 * round));
        let next = [0, 1].map(|later| {
            cake.dequeue(ms(10 * round + later), &mut drops)
                .expect("queued")
                .flow
        });
        assert!(next.contains(&9), "{next:?}");
        for later in 2..10 {
            cake.dequeue(ms(10 * round + later), &mut drops);
        }
    }
}

/// Eight flows whose hash is of one set have a queue each; the ninth shares one.
#[test]
fn flows_of_a_set_share_a_queue_only_when_all_eight_are_in_use() {
    let mut cake = cake(&json!({}), &[]);
    let set = cake.hash.queue(0, 128);
    let flows: Vec<u32> = (0..)
        .filter(|&flow| cake.hash.queue(flow, 128) == set)
        .take(9)
        .collect();
    for (place, &flow) in flows.iter().enumerate() {
        arrive(&mut cake, of(flow, 0), Time::ZERO);
        assert_eq!(cake.tins[0].flows.listed(), (place + 1).min(8));
    }
    assert_eq!(cake.backlog().packets, 9);
}

#[test]
fn wrong_parameters_are_rejected() {
    assert!(make(&parameters(&json!({})), &CONTEXT).is_ok());
    for (key, value) in [
        ("bandwidth_bps", json!(0.0)),
        ("diffserv", json!("diffserv5")),
        ("isolation", json!("triple_isolate")),
        ("ack_filter", json!(true)),
        ("rtt_s", json!(0.0)),
        ("link_layer", json!("dsl")),
        ("overhead", json!(-65)),
        ("overhead", json!(257)),
        ("mpu", json!(257)),
        ("mpu", json!(-1)),
        ("memlimit_bytes", json!(0)),
        ("limit_packets", json!(100)),
    ] {
        let wrong = parameters(&json!({ key: value }));
        assert!(make(&wrong, &CONTEXT).is_err(), "{wrong}");
    }
}
