//! What an engine is asked to do: complete numbers in SI units, no defaults.
//!
//! A plan arrives as JSON; it is what engines need of the frozen plan that `ackclock run --dry-run` prints. Every
//! default has been filled in from the algorithms' cards before it comes here, so each field is
//! required (`null` where a quantity is absent) and an unknown field is an error.

use std::sync::Arc;

use ackclock_units::{Rate, Time};
use serde::Deserialize;

mod checks;
mod datagrams;
mod error;
mod traffic;
mod wire;

pub use ackclock_traffic::DatagramSource;
pub use datagrams::DatagramPlan;
pub use error::Error;
pub use traffic::{PathPairPlan, PopulationPlan, TrafficPlan};

/// One run's network, traffic and recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "wire::Plan")]
pub struct Plan {
    /// End of the run (`duration_s`).
    #[serde(rename = "duration_s")]
    pub duration: Time,
    /// Start of the measured part (`warmup_s`).
    #[serde(rename = "warmup_s")]
    pub warmup: Time,
    /// Hosts and switches, for flows between two nodes; none if every flow has paths of its own.
    pub nodes: Vec<NodePlan>,
    /// The links that can queue; everything else is delay.
    pub links: Vec<LinkPlan>,
    /// How a way is found between two nodes.
    pub routing: Routing,
    /// What happens to links during the run, in order of time.
    pub changes: Vec<ChangePlan>,
    /// What flows have in common.
    pub groups: Vec<GroupPlan>,
    /// The transfers that are given one by one.
    pub flows: Vec<FlowPlan>,
    /// The transfers that are drawn from the seed.
    pub traffic: Vec<TrafficPlan>,
    /// The UDP sources.
    pub datagrams: Vec<DatagramPlan>,
    /// What to write down.
    pub record: RecordPlan,
}

/// A host or a switch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodePlan {
    /// Its name in the dataset.
    pub name: String,
    /// Whether flows may begin and end here; no way leads through a host.
    pub host: bool,
}

/// How packets find their way between two nodes. All ways are shortest ones, by the number of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// One shortest path for all packets between the same two nodes.
    Single,
    /// Each switch hashes the flow, with a salt of its own, onto one of its equally short next links (RFC 2992).
    Ecmp,
    /// Each switch draws one of its equally short next links for every packet.
    EcmpPacket,
    /// As `ecmp`, in proportion to the links' weights.
    Weighted,
}

/// A change of a link at a given time; what is `null` stays.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangePlan {
    /// When.
    #[serde(rename = "at_s")]
    pub at: Time,
    /// Index into [`Plan::links`].
    pub link: u32,
    /// The rate from now on; a packet in transmission keeps the old one.
    #[serde(rename = "rate_bps", deserialize_with = "Option::deserialize")]
    pub rate: Option<Rate>,
    /// The propagation delay from now on; packets do not overtake each other.
    #[serde(rename = "delay_s", deserialize_with = "Option::deserialize")]
    pub delay: Option<Time>,
    /// `false`: the link fails, and loses what it holds and is offered; `true`: it works again.
    #[serde(deserialize_with = "Option::deserialize")]
    pub up: Option<bool>,
}

/// The two nodes that a link joins, or a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndsPlan {
    /// Index into [`Plan::nodes`].
    pub source: u32,
    /// Index into [`Plan::nodes`].
    pub destination: u32,
}

/// A link that can queue: a queue discipline in front of a transmitter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Its name in the dataset, for example `bottleneck`.
    pub name: String,
    /// The nodes that it joins; `null` for a link that only paths name.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ends: Option<EndsPlan>,
    /// Transmission rate of wire bytes.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Propagation delay behind the transmitter.
    #[serde(rename = "delay_s")]
    pub delay: Time,
    /// Its share among equally short ways, for [`Routing::Weighted`].
    pub weight: f64,
    /// The burst of a token bucket that lets packets go in the transmitter's place; `null` for a transmitter.
    #[serde(deserialize_with = "Option::deserialize")]
    pub burst_bytes: Option<u64>,
    /// Bytes on the wire beyond the IP packet (14 for an Ethernet header).
    pub frame_overhead_bytes: u32,
    /// The queue in front of the transmitter. The packet in transmission is not in it.
    pub queue: QueuePlan,
    /// Random loss before the queue.
    #[serde(deserialize_with = "Option::deserialize")]
    pub loss: Option<LossPlan>,
    /// Whether the metrics look at this link.
    pub bottleneck: bool,
}

/// A queue discipline and its complete parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueuePlan {
    /// Name as in `tc`.
    pub discipline: String,
    /// Parameters as named on the card, in SI units.
    pub parameters: serde_json::Value,
}

/// Loss of packets that is independent of the queue.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossPlan {
    /// Each `packets`-th data packet of a flow is lost (the model of RFC 9438's tables).
    Every {
        /// Period in data packets, ≥ 2.
        packets: u64,
    },
    /// Each data packet is lost with this probability (Bernoulli).
    Bernoulli {
        /// Probability in (0, 1).
        probability: f64,
    },
    /// As `Bernoulli`, and what opens a connection (a SYN or SYN/ACK) is lost with a probability of its own.
    WithSyn {
        /// Probability of each data packet, in [0, 1).
        probability: f64,
        /// Probability of each SYN or SYN/ACK, in (0, 1).
        syn: f64,
    },
}

/// What the flows of a group have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupPlan {
    /// The name they go by.
    pub label: String,
    /// The congestion control; `null` if it is not TCP.
    #[serde(deserialize_with = "Option::deserialize")]
    pub congestion: Option<CongestionPlan>,
    /// The rest of the TCP; `null` if it is not TCP.
    #[serde(deserialize_with = "Option::deserialize")]
    pub tcp: Option<TcpPlan>,
}

/// One TCP connection that carries data one way.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Index into the plan's groups.
    pub group: u32,
    /// When the SYN is sent.
    pub start: Time,
    /// The start moves by a uniform draw from [0, this) per seed.
    pub start_jitter: Time,
    /// When the application has no more to send; `null` is never.
    pub stop: Option<Time>,
    /// Bytes to transfer; `null` is endless.
    pub size_bytes: Option<u64>,
    /// The receiver opens the connection and asks with so many bytes; `null`: the sender opens it.
    pub request_bytes: Option<u32>,
    /// Rate at which the application writes; `null` is as fast as TCP takes it.
    pub application_rate: Option<Rate>,
    /// Priority of the flow's packets, both ways, 0 to 15 as in `tc-prio(8)`.
    pub priority: u8,
    /// The congestion control.
    pub congestion: Arc<CongestionPlan>,
    /// The rest of the TCP.
    pub tcp: TcpPlan,
    /// The hosts between which the engine finds the ways; `null`: they are the two paths that follow.
    pub ends: Option<EndsPlan>,
    /// Way of the data.
    pub forward: PathPlan,
    /// Way of the ACKs.
    pub reverse: PathPlan,
}

/// A congestion control and its complete parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CongestionPlan {
    /// Name as in `sysctl`.
    pub kind: String,
    /// Parameters as named on the card, in SI units.
    pub parameters: serde_json::Value,
}

/// A path: to the first hop's queue, on to the next, then to the far end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathPlan {
    /// The queueing links on the way, in order.
    pub hops: Vec<HopPlan>,
    /// Propagation delay after the last hop (or of the whole path if there is none).
    #[serde(rename = "delay_s")]
    pub delay: Time,
}

/// A queueing link on a path.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HopPlan {
    /// Propagation delay to this link's queue.
    #[serde(rename = "delay_s")]
    pub delay: Time,
    /// Index into [`Plan::links`].
    pub link: u32,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayedAck {
    /// Every segment.
    Off,
    /// Every second full segment, or after the delayed-ACK timer (RFC 1122, RFC 5681).
    On,
    /// As `on`, with Linux's quick ACKs at the start and after gaps.
    Quick,
}

/// How lost segments are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossDetection {
    /// RACK (RFC 8985).
    Rack,
    /// Three duplicate ACKs, or three segments SACKed above (RFC 6675, RFC 6582).
    DuplicateAcks,
}

/// How much may be sent in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Proportional rate reduction (RFC 6937), with Linux's conditional slow start bound.
    Prr,
    /// At once to ssthresh; send when the pipe has drained below it (RFC 6675, RFC 6582).
    Immediate,
}

/// Explicit congestion notification: what the sender sets, and how the receiver tells of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EcnMode {
    /// None.
    Off,
    /// ECT(0) on new data; ECE until CWR (RFC 3168).
    Classic,
    /// ECT(0); ECE tells exactly which segments were marked (RFC 8257 section 3.2).
    Dctcp,
    /// ECT(0); the marked packets are counted (RFC 9768).
    Accurate,
    /// ECT(1), the low-latency service (RFC 9331); the marked packets are counted.
    L4s,
}

/// A TCP stack's behaviour apart from its congestion control.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)]
pub struct TcpPlan {
    /// Payload bytes of a full segment.
    pub mss_bytes: u32,
    /// IPv4 and TCP headers without options (40).
    pub header_bytes: u32,
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323), 12 bytes on each segment.
    pub timestamps: bool,
    /// When to acknowledge.
    pub delayed_ack: DelayedAck,
    /// The delayed-ACK timer.
    #[serde(rename = "delayed_ack_timeout_s")]
    pub delayed_ack_timeout: Time,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window: u32,
    /// RTO before the first RTT sample (RFC 6298: 1 s).
    #[serde(rename = "initial_rto_s")]
    pub initial_rto: Time,
    /// Floor of the RTO (RFC 6298: 1 s; Linux: 200 ms).
    #[serde(rename = "min_rto_s")]
    pub min_rto: Time,
    /// Ceiling of the RTO and of its backoff.
    #[serde(rename = "max_rto_s")]
    pub max_rto: Time,
    /// Whether the variance term, and not the whole RTO, has the floor (as Linux computes it).
    pub rto_floor_on_variance: bool,
    /// What is added to the RTO that the samples ask for.
    #[serde(rename = "rto_slop_s")]
    pub rto_slop: Time,
    /// The clock that the reordering timer is set by; 0: an exact one.
    #[serde(rename = "timer_tick_s")]
    pub timer_tick: Time,
    /// Receive window; `null` is unlimited.
    #[serde(deserialize_with = "Option::deserialize")]
    pub receive_window_bytes: Option<u64>,
    /// How losses are found.
    pub loss_detection: LossDetection,
    /// Tail loss probes (RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// A new segment for each of the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// How the window comes down in fast recovery.
    pub reduction: Reduction,
    /// Pace at the controller's rate, or at 2 (slow start) and 1.2 × cwnd/srtt when it names none.
    pub pacing: bool,
    /// Whether segments leave in batches of what the pacing rate sends in a millisecond.
    pub batches: bool,
    /// Whether the window grows only while the sender fills it (RFC 7661 in spirit; Linux).
    pub window_validation: bool,
    /// Explicit congestion notification, at both ends.
    pub ecn: EcnMode,
}

/// Bytes of the timestamps option, with its padding (RFC 7323 appendix A).
pub const TIMESTAMPS_BYTES: u32 = 12;

impl TcpPlan {
    /// Headers of a segment with its options, but for SACK blocks.
    #[inline]
    pub fn segment_header_bytes(&self) -> u32 {
        self.header_bytes + u32::from(self.timestamps) * TIMESTAMPS_BYTES
    }
}

/// What to write down.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)]
pub struct RecordPlan {
    /// Period of the flow and queue samples.
    #[serde(rename = "interval_s")]
    pub interval: Time,
    /// Log every packet.
    pub packets: bool,
    /// Write a capture of the senders' side.
    pub pcap: bool,
    /// Sample the flows of generated traffic too.
    pub traffic: bool,
    /// Sample every link's queue, not only the bottlenecks'.
    pub all_links: bool,
}
