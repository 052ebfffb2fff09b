//! QUIC connections on a link.

use ackclock_core::tables::Totals;
use ackclock_core::Time;
use ackclock_plan::{
    DatagramPlan, ImpairmentPlan, LossPlan, PcapPlan, Plan, QuicCongestion, QuicPlan, QuicStack,
    SourcePlan, StackCongestion,
};
use ackclock_sim::Simulation;
use proptest::prelude::*;

use super::run;
use crate::kit::{cubic, flow, link, linux, ms, path, plan, reno};

/// UDP payload of a full datagram, and the size of its IP packet.
const DATAGRAM_BYTES: f64 = 1472.0;
const PACKET_BYTES: f64 = 1500.0;
/// A 1-RTT packet without its stream data: first byte, connection ID, packet number (1 to 4 bytes), tag; of the frame
/// its type, stream ID, offset (up to 8) and length.
const OVERHEAD_BYTES: f64 = 1.0 + 8.0 + 2.0 + 16.0 + 8.0;

pub fn connection() -> QuicPlan {
    QuicPlan {
        stack: QuicStack::Noq,
        congestion: QuicCongestion::Stack(StackCongestion::Cubic),
        start_jitter: Time::ZERO,
        size_bytes: None,
        streams: 1,
        initial_window_bytes: 12_000,
        discovery_limit_bytes: Some(1472),
        ack_eliciting_threshold: None,
        receive_window_bytes: 16 << 20,
        send_window_bytes: 16 << 20,
        ecn: true,
        certificate_chain_bytes: 2500,
        qlog: false,
    }
}

/// A connection with a round trip of 40 ms.
pub fn quic(connection: &QuicPlan) -> DatagramPlan {
    DatagramPlan {
        group: 0,
        start: Time::ZERO,
        stop: None,
        priority: 0,
        ends: None,
        forward: path(ms(20), &[0]),
        reverse: path(ms(20), &[]),
        payload_bytes: 1472,
        header_bytes: 28,
        source: SourcePlan::Quic(connection.clone()),
    }
}

pub fn network(duration: Time, rate_bps: f64, limit: u32, connections: Vec<DatagramPlan>) -> Plan {
    Plan {
        datagrams: connections,
        ..plan(duration, vec![link(rate_bps, limit)], vec![])
    }
}

pub fn goodput_bps(totals: &Totals, flow: usize, span: Time) -> f64 {
    8.0 * totals.flows.measured_bytes[flow] as f64 / span.seconds()
}

/// A buffer of one bandwidth–delay product is more than CUBIC's decrease to 0.7 needs to keep a link busy.
#[test]
fn cubic_fills_a_link_with_a_buffer_of_one_bandwidth_delay_product() {
    let limit = 20e6 * 0.04 / 8.0 / PACKET_BYTES;
    let mut plan = network(ms(40_000), 20e6, limit as u32, vec![quic(&connection())]);
    plan.warmup = ms(10_000);
    let (_, tables, totals) = run(&plan, 1);
    let share = (DATAGRAM_BYTES - OVERHEAD_BYTES) / PACKET_BYTES;
    let used = goodput_bps(&totals, 0, ms(30_000)) / (20e6 * share);
    assert!((0.9..1.01).contains(&used), "{used}");
    // A full pipe and a full queue are twice as many packets as the queue holds.
    let largest = tables
        .flow_samples
        .cwnd
        .iter()
        .fold(0.0_f64, |a, &b| a.max(b));
    assert!(largest > 1.8 * limit, "{largest}");
    assert!(totals.flows.recoveries[0] > 2 && totals.flows.timeouts[0] == 0);
    // Datagrams that are dropped are declared lost, apart from those in flight at the end.
    let (lost, dropped) = (
        totals.flows.retransmissions[0],
        totals.flows.dropped_packets[0],
    );
    assert!(
        lost.abs_diff(dropped) <= dropped / 50 + 2,
        "{lost} {dropped}"
    );
}

/// Mathis et al. (1997): a window that grows by a datagram each round trip and is halved at each loss is on average
/// sqrt(3/2)/sqrt(p) = 1.22/sqrt(p) datagrams if losses are periodic; Ott et al. (1996): 1.31/sqrt(p) if they are
/// independent. In one round trip there is one decrease. A tenth on each side is for the 200 losses of the run.
#[test]
fn reno_responds_to_random_loss_by_the_square_root_law() {
    let (probability, span) = (0.001, ms(300_000));
    let reno = QuicPlan {
        congestion: QuicCongestion::Stack(StackCongestion::Reno),
        ..connection()
    };
    let mut plan = network(ms(310_000), 1e9, 10_000, vec![quic(&reno)]);
    plan.warmup = ms(10_000);
    plan.links[0].loss = Some(LossPlan::Bernoulli { probability });
    let (_, _, totals) = run(&plan, 1);
    let stream_bytes = DATAGRAM_BYTES - OVERHEAD_BYTES;
    let datagrams_per_rtt = goodput_bps(&totals, 0, span) / 8.0 / stream_bytes * 0.04;
    let constant = datagrams_per_rtt * f64::sqrt(probability);
    assert!(
        (0.9 * 1.2247..1.1 * 1.3098).contains(&constant),
        "{constant}"
    );
}

#[test]
fn a_transfer_in_streams_completes_under_loss_with_every_byte() {
    let transfer = QuicPlan {
        size_bytes: Some(1_000_003),
        streams: 4,
        ..connection()
    };
    let mut plan = network(ms(60_000), 10e6, 50, vec![quic(&transfer)]);
    plan.links[0].loss = Some(LossPlan::Bernoulli { probability: 0.03 });
    plan.links[0].medium = Some(ImpairmentPlan {
        reorder: 0.05,
        duplicate: 0.05,
        corrupt: 0.01,
        ..ImpairmentPlan::NONE
    });
    let (_, tables, totals) = run(&plan, 1);
    assert_eq!(totals.flows.delivered_bytes, [1_000_003]);
    assert_eq!(totals.flows.size_bytes, [1_000_003]);
    assert!(totals.flows.retransmissions[0] > 0);
    assert!(totals.flows.fct_s[0] > 1_000_003.0 * 8.0 / 10e6);
    // Nothing is sampled after the end.
    let last_s = tables.flow_samples.time_s.last().copied();
    assert!(last_s.is_some_and(|last_s| last_s <= totals.flows.end_s[0]));
}

/// A server's first datagram has 1200 bytes. The stack paces the next ones by its initial RTT of 333 ms, so
/// certificates that do not fit wait for the client's acknowledgement.
#[test]
fn a_long_certificate_chain_takes_another_round_trip() {
    let established_s = |certificate_chain_bytes| {
        let connection = QuicPlan {
            certificate_chain_bytes,
            ..connection()
        };
        let plan = network(ms(1000), 1e9, 100, vec![quic(&connection)]);
        run(&plan, 1).2.flows.established_s[0]
    };
    let (short, long) = (established_s(500), established_s(2500));
    assert!((0.040..0.041).contains(&short), "{short}");
    assert!((0.080..0.081).contains(&long), "{long}");
}

#[test]
fn tcp_and_quic_share_a_link() {
    let tcp = flow(linux());
    let mut plan = network(ms(60_000), 20e6, 66, vec![quic(&connection())]);
    plan.flows = vec![ackclock_plan::FlowPlan {
        congestion: cubic().into(),
        forward: path(ms(20), &[0]),
        reverse: path(ms(20), &[]),
        ..tcp
    }];
    plan.warmup = ms(20_000);
    let (_, _, totals) = run(&plan, 1);
    let rates = [0, 1].map(|flow| goodput_bps(&totals, flow, ms(40_000)) / 20e6);
    assert!(rates[0] + rates[1] > 0.88, "{rates:?}");
    assert!(rates[0] > 0.1 && rates[1] > 0.1, "{rates:?}");
}

#[test]
fn an_application_that_stops_closes_the_connection_and_sends_nothing_more() {
    let mut flow = quic(&connection());
    flow.stop = Some(ms(2000));
    let mut plan = network(ms(4000), 10e6, 33, vec![flow]);
    plan.record.packets = true;
    let (_, tables, totals) = run(&plan, 1);
    assert!(
        totals.flows.end_s[0].is_nan(),
        "the transfer is not complete"
    );
    let delivered = totals.flows.delivered_bytes[0] as f64 * 8.0 / 2.0;
    assert!((0.85 * 10e6..10e6).contains(&delivered), "{delivered}");
    // A queue of 33 packets is 40 ms, and a round trip as long.
    let last_s = tables.packets.time_s.iter().fold(0.0_f64, |a, &b| a.max(b));
    assert!((2.0..2.1).contains(&last_s), "{last_s}");
    let last_sample_s = tables.flow_samples.time_s.last().copied();
    assert!(last_sample_s.is_some_and(|last_s| last_s <= 2.0));
}

#[test]
fn discovery_of_the_path_mtu_can_be_off() {
    let sizes = |discovery_limit_bytes| {
        let connection = QuicPlan {
            discovery_limit_bytes,
            ..connection()
        };
        let mut plan = network(ms(2000), 10e6, 33, vec![quic(&connection)]);
        plan.record.packets = true;
        let (_, tables, _) = run(&plan, 1);
        let largest = tables.packets.wire_bytes.iter().max().copied();
        largest.expect("packets")
    };
    assert_eq!((sizes(None), sizes(Some(1472))), (1228, 1500));
    assert_eq!(sizes(Some(8972)), 9000);
}

/// A network that loses, duplicates, reorders, damages and marks packets, with and without captures.
fn any_network() -> impl Strategy<Value = Plan> {
    let shares = (0.0..0.3_f64, 0.0..0.3_f64, 0.0..0.1_f64);
    let rates = (50e3..20e6_f64, 2..200_u32);
    let congestion = prop::sample::select(vec![
        QuicCongestion::Stack(StackCongestion::Reno),
        QuicCongestion::Stack(StackCongestion::Cubic),
        QuicCongestion::Engine(reno()),
        QuicCongestion::Engine(cubic()),
    ]);
    let choices = (congestion, any::<bool>(), 1..5_u32, any::<bool>());
    (choices, rates, shares).prop_map(
        |(
            (congestion, ecn, streams, is_captured),
            (rate_bps, limit),
            (loss, duplicate, corrupt),
        )| {
            let endless = QuicPlan {
                congestion,
                ecn,
                streams,
                ..connection()
            };
            let transfer = QuicPlan {
                size_bytes: Some(30_000),
                start_jitter: ms(1000),
                ack_eliciting_threshold: Some(10),
                ..endless.clone()
            };
            let connections = vec![quic(&endless), quic(&transfer)];
            let mut plan = network(ms(4000), rate_bps, limit, connections);
            plan.links[0].loss = Some(LossPlan::Bernoulli { probability: loss });
            plan.links[0].delay = ms(5);
            plan.links[0].medium = Some(ImpairmentPlan {
                reorder: 0.1,
                duplicate,
                corrupt,
                ..ImpairmentPlan::NONE
            });
            plan.record.pcap = PcapPlan::Senders(is_captured);
            plan.record.packets = true;
            plan
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn packets_are_conserved_and_runs_repeat(plan in any_network(), cut in 0.0..1.0_f64) {
        let mut simulation = Simulation::new(&plan, 1).expect("a sound plan");
        simulation.advance(plan.duration.scaled(cut));
        let mut packets = simulation.drain().packets;
        simulation.advance(plan.duration);
        packets.append(&mut simulation.drain().packets);
        let (sent, gone) = simulation.packets_sent_and_accounted();
        prop_assert_eq!(sent, gone + simulation.packets_in_transit());
        let (_, tables, totals) = run(&plan, 1);
        prop_assert_eq!(format!("{packets:?}"), format!("{:?}", tables.packets));
        prop_assert_eq!(format!("{:?}", simulation.finish()), format!("{totals:?}"));
    }
}
