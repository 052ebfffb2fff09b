//! Random small networks and their traffic.

use ackclock_core::{Rate, Time};
use ackclock_plan::{
    DelayedAck, EcnMode, FlowPlan, LinkPlan, LossDetection, LossPlan, PathPlan, PcapPlan, Plan,
    QueuePlan, RecordPlan, Reduction, Routing, TcpPlan,
};
use ackclock_sim::Simulation;
use ackclock_traffic::{Pause, SlowReader, Writes};
use proptest::prelude::*;
use proptest::sample::select;

use crate::kit::{bfifo, cubic, flow, linux, ms, path, pfifo, reno, us};

/// Few enough cases for a development build, and no files left behind.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// A simulation of a plan that must be sound.
pub fn simulate(plan: &Plan, seed: u64) -> Simulation {
    Simulation::new(plan, seed).expect("generated plans are sound")
}

/// Any plan: 1 to 6 flows for up to three seconds.
pub fn any_plan() -> impl Strategy<Value = Plan> {
    (links(1..=30), 1..=6_usize, 300..3000_u64, 0..400_u64)
        .prop_flat_map(|(links, flows, duration_ms, warmup_ms)| {
            let flows = prop::collection::vec(any_flow(any_size()), flows);
            (Just(links), flows, Just(duration_ms), Just(warmup_ms))
        })
        .prop_map(|(links, flows, duration_ms, warmup_ms)| Plan {
            duration: ms(duration_ms),
            warmup: ms(warmup_ms.min(duration_ms / 2)),
            ..assemble(links, flows)
        })
}

/// Transfers that end, and all the time they may take.
pub fn finite_plan() -> impl Strategy<Value = Plan> {
    (links(2..=30), 1..=6_usize)
        .prop_flat_map(|(links, flows)| {
            let size = (0..60_000_u64).prop_map(Some);
            (Just(links), prop::collection::vec(any_flow(size), flows))
        })
        .prop_map(|(links, flows)| {
            let mut plan = assemble(links, flows);
            plan.duration = Time::from_seconds(200_000.0);
            plan.record.interval = Time::from_seconds(10_000.0);
            plan
        })
}

/// The links of a network; each flow passes the bottleneck, and the others if they exist.
#[derive(Clone, Debug)]
struct Links {
    bottleneck: LinkPlan,
    access: Option<LinkPlan>,
    reverse: Option<LinkPlan>,
}

fn links(limits: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = Links> {
    let access = link(1e6..3e7, limits.clone(), no_loss());
    let reverse = link(5e4..1e6, limits.clone(), no_loss());
    (
        link(2e5..1e7, limits, any_loss()),
        prop::option::weighted(0.3, access),
        prop::option::weighted(0.3, reverse),
    )
        .prop_map(|(bottleneck, access, reverse)| Links {
            bottleneck,
            access,
            reverse,
        })
}

fn link(
    rates_bps: std::ops::Range<f64>,
    limits: std::ops::RangeInclusive<u32>,
    loss: impl Strategy<Value = Option<LossPlan>>,
) -> impl Strategy<Value = LinkPlan> {
    let overhead = select(vec![0_u32, 14, 38]);
    let burst = prop_oneof![3 => Just(None), 1 => (0..5000_u64).prop_map(Some)];
    (rates_bps, limits, any::<bool>(), (overhead, burst), loss).prop_map(
        |(rate_bps, limit, in_bytes, (frame_overhead_bytes, burst_bytes), loss)| LinkPlan {
            name: "link".to_owned(),
            ends: None,
            rate: Rate::from_bits_per_second(rate_bps),
            delay: Time::ZERO,
            weight: 1.0,
            burst_bytes,
            frame_overhead_bytes,
            queue: queue(limit, in_bytes),
            loss,
            medium: None,
            trace: None,
            bottleneck: true,
        },
    )
}

/// A queue of so many packets, or of the bytes of so many full ones.
fn queue(limit: u32, in_bytes: bool) -> QueuePlan {
    if in_bytes {
        bfifo(1600 * u64::from(limit))
    } else {
        pfifo(limit)
    }
}

fn no_loss() -> impl Strategy<Value = Option<LossPlan>> {
    Just(None)
}

fn any_loss() -> impl Strategy<Value = Option<LossPlan>> {
    prop_oneof![
        2 => Just(None),
        1 => (2..200_u64).prop_map(|packets| Some(LossPlan::Every { packets })),
        1 => (0.0..0.2).prop_map(|probability| Some(LossPlan::Bernoulli { probability })),
    ]
}

fn any_size() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..300_000_u64).prop_map(Some)]
}

/// A flow whose paths are those of a dumbbell with these delays; its links come later.
fn any_flow(size: impl Strategy<Value = Option<u64>>) -> impl Strategy<Value = FlowPlan> {
    let rate = prop_oneof![3 => Just(None), 1 => (1e4..1e6).prop_map(Some)];
    (
        any_tcp(),
        size,
        (rate, any_reader(), any_writes()),
        (0..500_000_u64, 0..50_000_u64),
        (0..100_000_u64, 0..100_000_u64),
        any::<bool>(),
    )
        .prop_map(
            |(tcp, size_bytes, (rate_bps, slow_reader, writes), start_us, delay_us, is_reno)| {
                FlowPlan {
                    stop: None,
                    size_bytes,
                    request_bytes: None,
                    application_rate: rate_bps.map(Rate::from_bits_per_second),
                    slow_reader,
                    writes,
                    start: us(start_us.0),
                    start_jitter: us(start_us.1),
                    congestion: if is_reno { reno() } else { cubic() }.into(),
                    ends: None,
                    forward: path(us(delay_us.0), &[]),
                    reverse: path(us(delay_us.1), &[]),
                    ..flow(tcp)
                }
            },
        )
}

/// Any application at a receiver: prompt, or slow in any way.
pub fn any_reader() -> impl Strategy<Value = Option<SlowReader>> {
    let pause = (0..3000_u64, 1..1000_u64, prop::option::of(1..1000_u64)).prop_map(
        |(at_ms, length_ms, more_ms)| Pause {
            at: ms(at_ms),
            length: ms(length_ms),
            every: more_ms.map(|more_ms| ms(length_ms + more_ms)),
        },
    );
    let reader = (
        prop::option::of(1e4..1e6),
        1..20_000_u64,
        prop::option::of(pause),
    )
        .prop_map(|(bytes_per_second, chunk_bytes, pause)| SlowReader {
            rate: bytes_per_second.map(Rate::from_bytes_per_second),
            chunk_bytes,
            pause,
        });
    prop_oneof![2 => Just(None), 1 => reader.prop_map(Some)]
}

/// Any application at a sender: one that has all its data or a rate, or one that writes messages.
pub fn any_writes() -> impl Strategy<Value = Option<Writes>> {
    let writes = (200..5000_u64, 1..5_u64, 1..200_u64, any::<bool>());
    let writes = writes.prop_map(|(size_bytes, count, every_ms, nodelay)| Writes {
        size_bytes,
        count,
        every: ms(every_ms),
        nodelay,
    });
    prop_oneof![2 => Just(None), 1 => writes.prop_map(Some)]
}

/// Any TCP whose timers and switches make sense together or not.
pub fn any_tcp() -> impl Strategy<Value = TcpPlan> {
    (any_segments(), any_timers(), any_recovery()).prop_map(|(segments, timers, repair)| TcpPlan {
        delayed_ack_timeout: timers.delayed_ack_timeout,
        initial_rto: timers.initial_rto,
        min_rto: timers.min_rto,
        rto_floor_on_variance: timers.rto_floor_on_variance,
        sack: repair.sack,
        loss_detection: repair.loss_detection,
        tail_loss_probe: repair.tail_loss_probe,
        undo_spurious: repair.undo_spurious,
        frto: repair.frto,
        adaptive_reordering: repair.adaptive_reordering,
        limited_transmit: repair.limited_transmit,
        recovery_reduction: repair.recovery_reduction,
        window_validation: repair.window_validation,
        ecn: repair.ecn,
        processing: None,
        ..segments
    })
}

/// Segments on the wire and in the windows.
fn any_segments() -> impl Strategy<Value = TcpPlan> {
    let delayed_ack = select(vec![DelayedAck::Off, DelayedAck::On, DelayedAck::Quick]);
    let bytes = || prop_oneof![2 => Just(None), 1 => (1..60_000_u64).prop_map(Some)];
    (
        200..1500_u32,
        any::<bool>(),
        delayed_ack,
        1..20_u32,
        (bytes(), bytes()),
        any::<[bool; 2]>(),
    )
        .prop_map(|told| {
            let (mss_bytes, timestamps, delayed_ack, initial_window, buffers, sends) = told;
            let (receive_window_bytes, send_buffer_bytes) = buffers;
            let [pacing, batches] = sends;
            TcpPlan {
                mss_bytes,
                timestamps,
                delayed_ack,
                initial_window,
                receive_window_bytes,
                send_buffer_bytes,
                pacing,
                tso_batching: batches,
                ..linux()
            }
        })
}

fn any_timers() -> impl Strategy<Value = TcpPlan> {
    let initial_rto = select(vec![ms(1000), ms(3000)]);
    let min_rto = select(vec![ms(10), ms(200), ms(1000)]);
    (1..200_u64, initial_rto, min_rto, any::<bool>()).prop_map(
        |(delayed_ack_ms, initial_rto, min_rto, rto_floor_on_variance)| TcpPlan {
            delayed_ack_timeout: ms(delayed_ack_ms),
            initial_rto,
            min_rto,
            rto_floor_on_variance,
            ..linux()
        },
    )
}

fn any_recovery() -> impl Strategy<Value = TcpPlan> {
    let loss_detection = select(vec![LossDetection::Rack, LossDetection::DuplicateAcks]);
    let reduction = select(vec![Reduction::Prr, Reduction::Immediate]);
    let ecn = select(vec![
        EcnMode::Off,
        EcnMode::Classic,
        EcnMode::Dctcp,
        EcnMode::Accurate,
        EcnMode::L4s,
    ]);
    let switches = any::<[bool; 7]>();
    (loss_detection, reduction, ecn, switches).prop_map(
        |(loss_detection, reduction, ecn, switches)| {
            let [sack, tail_loss_probe, limited_transmit, window_validation, undo, frto, adaptive_reordering] =
                switches;
            TcpPlan {
                sack,
                undo_spurious: undo,
                frto,
                adaptive_reordering,
                loss_detection,
                tail_loss_probe,
                limited_transmit,
                recovery_reduction: reduction,
                window_validation,
                ecn,
                ..linux()
            }
        },
    )
}

/// Put the links on the flows' paths: the bottleneck is link 0; then each flow's access link, if there
/// are any; then the reverse link.
fn assemble(links: Links, mut flows: Vec<FlowPlan>) -> Plan {
    let mut plan_links = vec![links.bottleneck];
    for (index, flow) in (1..).zip(&mut flows) {
        let hops: &[u32] = if links.access.is_some() {
            &[index, 0]
        } else {
            &[0]
        };
        plan_links.extend(links.access.clone());
        flow.forward = path(flow.forward.delay, hops);
        delay_before_last_hop(&mut flow.forward);
    }
    if let Some(reverse) = links.reverse {
        let index = plan_links.len() as u32;
        plan_links.push(reverse);
        for flow in &mut flows {
            flow.reverse = path(flow.reverse.delay, &[index]);
        }
    }
    Plan {
        duration: Time::ZERO,
        warmup: Time::ZERO,
        nodes: vec![],
        links: plan_links,
        routing: Routing::Single,
        flowlet_gap: None,
        changes: vec![],
        groups: vec![],
        flows,
        traffic: vec![],
        datagrams: vec![],
        record: RecordPlan {
            interval: ms(50),
            packets: true,
            pcap: PcapPlan::Senders(false),
            traffic: false,
            all_links: true,
            delays: true,
            cubic_state: true,
            paths: false,
        },
    }
}

/// Move a part of the delay from the end of a path of two links to between them.
fn delay_before_last_hop(path: &mut PathPlan) {
    if let [_, last] = &mut path.hops[..] {
        last.delay = path.delay.scaled(0.25);
        path.delay = path.delay.scaled(0.75);
    }
}
