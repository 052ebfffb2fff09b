//! Shared parts of the integration tests: a default plan, and a wire for conversations.
//!
//! [`Conversation`] joins a real sender and a real receiver by a wire that loses what it is told to
//! lose; [`Script`] talks to a sender with acknowledgements written by hand. Both write a transcript
//! that [`assert_reads`] compares, line by line.

pub mod cards;
mod conversation;
#[allow(dead_code)] // the unit tests of routing and an example share it
pub mod fat_tree;
mod script;
mod transcript;

use ackclock_core::tables::EventKind;
use ackclock_core::{Rate, Time};
use ackclock_plan::{
    ChangePlan, CongestionPlan, DelayedAck, EcnMode, EndsPlan, FlowPlan, HopPlan, LinkPlan,
    LossDetection, NodePlan, PathPlan, PcapPlan, Plan, QueuePlan, RecordPlan, Reduction, Routing,
    RttSampling, TcpPlan,
};
use ackclock_sim::packet::Packet;
use ackclock_sim::sender::{Outlet, SendReason, Sender};
use serde_json::json;

pub use conversation::{data, nth, Conversation, Loss};
pub use script::{packet, Script};
pub use transcript::assert_reads;

/// Payload of a full segment here: a round number, for sums in the head.
pub const MSS_BYTES: u32 = 1000;
/// Headers without options.
pub const HEADER_BYTES: u32 = 40;

/// `milliseconds` ms.
pub const fn ms(milliseconds: u64) -> Time {
    Time::from_milliseconds(milliseconds)
}

/// `microseconds` µs.
pub const fn us(microseconds: u64) -> Time {
    Time::from_microseconds(microseconds)
}

/// The stack spec `linux`, but for delayed ACKs: every segment is acknowledged.
pub fn linux() -> TcpPlan {
    TcpPlan {
        mss_bytes: MSS_BYTES,
        header_bytes: HEADER_BYTES,
        sack: true,
        timestamps: true,
        delayed_ack: DelayedAck::Off,
        delayed_ack_timeout: ms(40),
        initial_window: 10,
        initial_rto: ms(1000),
        min_rto: ms(200),
        max_rto: ms(120_000),
        rto_floor_on_variance: true,
        rto_slop: Time::ZERO,
        timer_tick: Time::ZERO,
        rtt_sampling: RttSampling::EachAck,
        rtt_tick: Time::ZERO,
        impatient: false,
        receive_window_bytes: None,
        send_buffer_bytes: None,
        loss_detection: LossDetection::Rack,
        tail_loss_probe: true,
        undo_spurious: true,
        frto: true,
        adaptive_reordering: true,
        limited_transmit: true,
        recovery_reduction: Reduction::Prr,
        pacing: false,
        tso_batching: false,
        window_validation: true,
        byte_counting: true,
        ecn: EcnMode::Off,
        processing: None,
    }
}

/// A TCP of RFC 5681, 6298 and 6675: SACK and three duplicates, immediately to ssthresh, no probes.
pub fn sack_tcp() -> TcpPlan {
    TcpPlan {
        timestamps: false,
        min_rto: ms(1000),
        rto_floor_on_variance: false,
        loss_detection: LossDetection::DuplicateAcks,
        tail_loss_probe: false,
        undo_spurious: false,
        frto: false,
        adaptive_reordering: false,
        recovery_reduction: Reduction::Immediate,
        window_validation: false,
        ..linux()
    }
}

/// A TCP of RFC 5681, 6298 and 6582: New Reno without SACK.
pub fn new_reno() -> TcpPlan {
    TcpPlan {
        sack: false,
        ..sack_tcp()
    }
}

/// A flow of Reno without end over no link at all; tests that need links give paths.
pub fn flow(tcp: TcpPlan) -> FlowPlan {
    FlowPlan {
        group: 0,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        stop: None,
        size_bytes: None,
        request_bytes: None,
        application_rate: None,
        slow_reader: None,
        writes: None,
        misbehaviour: None,
        priority: 0,
        congestion: reno().into(),
        tcp,
        ends: None,
        forward: path(Time::ZERO, &[]),
        reverse: path(Time::ZERO, &[]),
    }
}

/// The sender of such a flow.
///
/// # Panics
/// If the flow's congestion control is not known.
pub fn sender(flow: &FlowPlan) -> Sender {
    let prototype = Sender::prototype(flow).expect("the kit's plans are sound");
    Sender::new(0, flow, &prototype)
}

/// A flow that ends after `segments` full segments.
pub fn transfer(tcp: TcpPlan, segments: u64) -> FlowPlan {
    FlowPlan {
        size_bytes: Some(segments * u64::from(tcp.mss_bytes)),
        ..flow(tcp)
    }
}

/// Reno with the defaults of its algorithm spec.
pub fn reno() -> CongestionPlan {
    CongestionPlan {
        kind: "reno".to_owned(),
        parameters: json!({ "slow_start": "standard" }),
    }
}

/// CUBIC with the defaults of its algorithm spec.
pub fn cubic() -> CongestionPlan {
    CongestionPlan {
        kind: "cubic".to_owned(),
        parameters: json!({
            "c": 0.4,
            "beta": 0.7,
            "fast_convergence": true,
            "reno_friendly": true,
            "reno_catch_up": false,
            "slow_start": "hystart",
            "delayed_ack_correction": true,
            "whole_segments": true,
            "tick_s": 0.004,
        }),
    }
}

/// A path through `links`, each entered immediately, with `delay` after the last.
pub fn path(delay: Time, links: &[u32]) -> PathPlan {
    let hop = |&link: &u32| HopPlan {
        delay: Time::ZERO,
        link,
    };
    PathPlan {
        hops: links.iter().map(hop).collect(),
        delay,
    }
}

/// A link without frame overhead behind a queue of `limit_packets`.
pub fn link(rate_bps: f64, limit_packets: u32) -> LinkPlan {
    LinkPlan {
        name: "bottleneck".to_owned(),
        ends: None,
        rate: Rate::from_bits_per_second(rate_bps),
        delay: Time::ZERO,
        weight: 1.0,
        burst_bytes: None,
        frame_overhead_bytes: 0,
        queue: pfifo(limit_packets),
        loss: None,
        medium: None,
        trace: None,
        bottleneck: true,
    }
}

/// The same link from one node to another, with a propagation delay.
pub fn between(source: u32, destination: u32, delay: Time, link: LinkPlan) -> LinkPlan {
    LinkPlan {
        name: format!("{source}-{destination}"),
        ends: Some(EndsPlan {
            source,
            destination,
        }),
        delay,
        ..link
    }
}

/// The same flow between two hosts.
pub fn routed(source: u32, destination: u32, flow: FlowPlan) -> FlowPlan {
    FlowPlan {
        ends: Some(EndsPlan {
            source,
            destination,
        }),
        forward: path(Time::ZERO, &[]),
        reverse: path(Time::ZERO, &[]),
        ..flow
    }
}

/// `hosts` hosts, then switches, `count` nodes together.
pub fn nodes(hosts: u32, count: u32) -> Vec<NodePlan> {
    let node = |number| NodePlan {
        name: format!("n{number}"),
        host: number < hosts,
    };
    (0..count).map(node).collect()
}

/// A change of nothing, of a link at a time.
pub fn change(at: Time, link: u32) -> ChangePlan {
    ChangePlan {
        at,
        link,
        rate: None,
        delay: None,
        up: None,
        loss: None,
        medium: None,
    }
}

/// A queue that holds `limit_packets`.
pub fn pfifo(limit_packets: u32) -> QueuePlan {
    QueuePlan {
        discipline: "pfifo".to_owned(),
        parameters: json!({ "limit_packets": limit_packets }),
    }
}

/// A queue that holds `limit_bytes` wire bytes.
pub fn bfifo(limit_bytes: u64) -> QueuePlan {
    QueuePlan {
        discipline: "bfifo".to_owned(),
        parameters: json!({ "limit_bytes": limit_bytes }),
    }
}

/// A plan that logs every packet and has no warm-up.
pub fn plan(duration: Time, links: Vec<LinkPlan>, flows: Vec<FlowPlan>) -> Plan {
    Plan {
        duration,
        warmup: Time::ZERO,
        nodes: vec![],
        links,
        routing: Routing::Single,
        flowlet_gap: None,
        changes: vec![],
        groups: vec![],
        flows,
        traffic: vec![],
        datagrams: vec![],
        record: RecordPlan {
            interval: ms(100),
            packets: true,
            pcap: PcapPlan::Senders(false),
            traffic: false,
            all_links: true,
            delays: false,
            cubic_state: false,
            paths: false,
        },
    }
}

/// An outlet that collects packets and events.
#[derive(Debug, Default)]
pub struct Output {
    /// Packets for the first hop.
    pub packets: Vec<Packet>,
    /// Events with a value (a segment number).
    pub events: Vec<(EventKind, f64)>,
}

impl Outlet for Output {
    fn send(&mut self, packet: Packet, _: impl FnOnce() -> SendReason) {
        self.packets.push(packet);
    }

    fn report(&mut self, _flow: u32, kind: EventKind, value: f64) {
        self.events.push((kind, value));
    }
}
