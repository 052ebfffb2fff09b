//! TCP, and the common parameters of a group of flows.

use ackclock_core::Time;
use ackclock_traffic::{Duration, SlowReader, Writes};
use serde::Deserialize;

/// Common parameters of a group of flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupPlan {
    /// The name they go by.
    pub name: String,
    /// The congestion control; `null` if it is not TCP.
    #[serde(deserialize_with = "Option::deserialize")]
    pub congestion: Option<CongestionPlan>,
    /// The rest of the TCP; `null` if it is not TCP.
    #[serde(deserialize_with = "Option::deserialize")]
    pub tcp: Option<TcpPlan>,
    /// The application at the receivers; `null`: it reads at once.
    #[serde(deserialize_with = "Option::deserialize")]
    pub slow_reader: Option<SlowReader>,
    /// The application at the senders, if it writes messages; `null`: it has all its data, or a rate.
    #[serde(deserialize_with = "Option::deserialize")]
    pub writes: Option<Writes>,
    /// Misbehaviour of the receivers; `null`: none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub misbehaviour: Option<Misbehaviour>,
    /// Codepoint of the DS field of the packets, both ways, 0 to 63 (RFC 2474).
    pub dscp: u8,
}

/// A misbehaving receiver (S. Savage et al.: TCP congestion control with a misbehaving receiver, CCR 29(5), 1999).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Misbehaviour {
    /// ACKs for each of its ACKs that advances; 1: no division.
    pub ack_division: u32,
    /// Duplicates of each of its ACKs.
    pub duplicate_acks: u32,
    /// Segments that it acknowledges before they arrive.
    pub optimistic_acks: u32,
    /// True if it acknowledges what is lost.
    pub conceals_losses: bool,
    /// True if it reports no ECN mark.
    pub conceals_marks: bool,
}

/// A congestion control and its complete parameters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CongestionPlan {
    /// Name as in `sysctl`.
    pub kind: String,
    /// Parameters as named in the algorithm spec, in SI units.
    pub parameters: serde_json::Value,
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
    /// Mode of delayed ACKs.
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
    /// True if the variance term, and not the whole RTO, has the floor (as Linux computes it).
    pub rto_floor_on_variance: bool,
    /// Time added to the sampled RTO.
    #[serde(rename = "rto_slop_s")]
    pub rto_slop: Time,
    /// The clock that the reordering timer is set by; 0: an exact one.
    #[serde(rename = "timer_tick_s")]
    pub timer_tick: Time,
    /// Samples of the RTT that enter the RTO.
    pub rtt_sampling: RttSampling,
    /// Granularity of the clock that RTTs are measured with (RFC 6298: G); 0: an exact one.
    #[serde(rename = "rtt_tick_s")]
    pub rtt_tick: Time,
    /// Only the first partial ACK of a recovery restarts the RTO, without SACK (RFC 6582: Impatient).
    pub impatient: bool,
    /// Receive window; `null` is unlimited.
    #[serde(deserialize_with = "Option::deserialize")]
    pub receive_window_bytes: Option<u64>,
    /// Send buffer: bytes that are not sent or not acknowledged; `null` is unlimited.
    #[serde(deserialize_with = "Option::deserialize")]
    pub send_buffer_bytes: Option<u64>,
    /// Loss detection.
    pub loss_detection: LossDetection,
    /// Tail loss probes (RFC 8985 section 7).
    pub tail_loss_probe: bool,
    /// Reductions are undone that timestamps or DSACKs prove needless (RFC 3522, RFC 3708, RFC 4015).
    pub undo_spurious: bool,
    /// Timeouts are undone that the ACKs behind them prove needless (RFC 5682).
    pub frto: bool,
    /// RACK's reordering window follows what is seen of the path (RFC 8985 section 6.2, step 4).
    pub adaptive_reordering: bool,
    /// A new segment for each of the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Reduction of the window in fast recovery.
    pub recovery_reduction: Reduction,
    /// Pace at the controller's rate, or at 2 (slow start) and 1.2 × cwnd/srtt when it names none.
    pub pacing: bool,
    /// True if segments leave in batches of what the pacing rate sends in a millisecond.
    pub tso_batching: bool,
    /// True if the window grows only while the sender fills it (RFC 7661 in spirit; Linux).
    pub window_validation: bool,
    /// True if the window grows by what is acknowledged (RFC 3465), and not by a segment for each ACK that advances.
    pub byte_counting: bool,
    /// Explicit congestion notification, at both ends.
    pub ecn: EcnMode,
    /// Processing delay of each host, from a packet's arrival to TCP; `null`: none.
    #[serde(deserialize_with = "Option::deserialize")]
    pub processing: Option<Duration>,
}

impl TcpPlan {
    /// Headers of a segment with its options, but for SACK blocks.
    #[inline]
    pub fn segment_header_bytes(&self) -> u32 {
        self.header_bytes + u32::from(self.timestamps) * TIMESTAMPS_BYTES
    }
}

/// Bytes of the timestamps option, with its padding (RFC 7323 appendix A).
pub const TIMESTAMPS_BYTES: u32 = 12;

/// Mode of delayed ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayedAck {
    /// Every segment.
    Off,
    /// Every second full segment, or after the delayed-ACK timer (RFC 1122, RFC 5681).
    On,
    /// Delayed ACKs with Linux's quick ACKs at the start and after gaps.
    Quick,
}

/// Samples of the RTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RttSampling {
    /// One for each ACK.
    EachAck,
    /// One segment at a time is timed, unless timestamps are on (RFC 6298 section 3).
    OneAtATime,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossDetection {
    /// RACK (RFC 8985).
    Rack,
    /// Three duplicate ACKs, or three segments SACKed above (RFC 6675, RFC 6582).
    DuplicateAcks,
}

/// Window in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Proportional rate reduction (RFC 6937), with Linux's conditional slow start bound.
    Prr,
    /// At once to ssthresh; send when the pipe has drained below it (RFC 6675, RFC 6582).
    Immediate,
}

/// Explicit congestion notification: bits of the sender, and feedback of the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EcnMode {
    /// None.
    Off,
    /// ECT(0) on new data; ECE until CWR (RFC 3168).
    Classic,
    /// ECT(0); ECE identifies the marked segments exactly (RFC 8257 section 3.2).
    Dctcp,
    /// ECT(0); the marked packets are counted (RFC 9768).
    Accurate,
    /// ECT(1), the low-latency service (RFC 9331); the marked packets are counted.
    L4s,
}
