//! A connection of QUIC: the stack of its ends, and what is transferred.

use ackclock_core::Time;
use serde::Deserialize;

use crate::tcp::CongestionPlan;

/// Smallest UDP payload that a path of QUIC must carry (RFC 9000 section 14).
const MIN_PAYLOAD_BYTES: u16 = 1200;
/// Largest UDP payload.
const MAX_PAYLOAD_BYTES: u16 = 65_507;
/// Streams that may be open at a time.
const MAX_STREAMS: u32 = 100;
/// Largest number in QUIC (RFC 9000 section 16).
const MAX_NUMBER: u64 = (1 << 62) - 1;

/// Name of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuicStack {
    /// noq-proto.
    Noq,
}

/// A congestion control algorithm of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StackCongestion {
    /// New Reno (RFC 9002 section 7).
    Reno,
    /// CUBIC (RFC 9438).
    Cubic,
}

/// The congestion control of a QUIC connection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum QuicCongestion {
    /// An algorithm of the stack, by its name.
    Stack(StackCongestion),
    /// A controller of the engine, by the stack's interface for controllers.
    Engine(CongestionPlan),
}

/// A QUIC connection that carries data one way.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuicPlan {
    /// Stack of both ends.
    pub stack: QuicStack,
    /// Its congestion control.
    pub congestion: QuicCongestion,
    /// The start moves by a uniform draw from [0, this) per seed.
    #[serde(rename = "start_jitter_s")]
    pub start_jitter: Time,
    /// Bytes to transfer, over all streams; `null` is endless.
    #[serde(deserialize_with = "Option::deserialize")]
    pub size_bytes: Option<u64>,
    /// Streams that share the connection.
    pub streams: u32,
    /// Initial congestion window.
    pub initial_window_bytes: u64,
    /// Largest UDP payload that discovery of the path MTU tries; `null`: no discovery, datagrams of 1200 bytes.
    #[serde(deserialize_with = "Option::deserialize")]
    pub discovery_limit_bytes: Option<u16>,
    /// ACK-eliciting packets that the receiver may leave unacknowledged, by the ACK frequency extension; `null`:
    /// without the extension.
    #[serde(deserialize_with = "Option::deserialize")]
    pub ack_eliciting_threshold: Option<u32>,
    /// Bytes of each stream that the receiver buffers.
    pub receive_window_bytes: u64,
    /// Bytes that the sender keeps until they are acknowledged.
    pub send_window_bytes: u64,
    /// True if datagrams are sent with the ECN bits that the stack asks for.
    pub ecn: bool,
    /// Bytes of the server's certificates.
    pub certificate_chain_bytes: u32,
    /// True if the sender's stack writes its log.
    pub qlog: bool,
}

impl QuicPlan {
    /// Largest UDP payload of a datagram.
    pub fn max_payload_bytes(&self) -> u16 {
        self.discovery_limit_bytes.unwrap_or(MIN_PAYLOAD_BYTES)
    }

    /// Return the reason why nothing can be sent, if there is one.
    pub fn fault(&self) -> Option<String> {
        let payload = u64::from(self.max_payload_bytes());
        let threshold = u64::from(self.ack_eliciting_threshold.unwrap_or(0));
        let payloads = (u64::from(MIN_PAYLOAD_BYTES), u64::from(MAX_PAYLOAD_BYTES));
        let bounds = [
            (
                "streams",
                u64::from(self.streams),
                (1, u64::from(MAX_STREAMS)),
            ),
            (
                "initial_window_bytes",
                self.initial_window_bytes,
                (1, MAX_NUMBER),
            ),
            ("discovery_limit_bytes", payload, payloads),
            ("ack_eliciting_threshold", threshold, (0, MAX_NUMBER)),
            (
                "receive_window_bytes",
                self.receive_window_bytes,
                (1, MAX_NUMBER),
            ),
            ("send_window_bytes", self.send_window_bytes, (1, MAX_NUMBER)),
        ];
        let mut faults = bounds.into_iter().filter_map(|(name, value, (min, max))| {
            let is_inside = (min..=max).contains(&value);
            (!is_inside).then(|| format!("{name} is {value}; expected {min} to {max}"))
        });
        faults.next()
    }
}

/// A connection between two endpoints of a user's stack, which carries data one way.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackPlan {
    /// Name of the stack.
    pub stack: String,
    /// Its congestion control algorithm; empty for the stack's own choice.
    pub congestion: String,
    /// Text that the stack alone interprets.
    pub options: String,
    /// The start moves by a uniform draw from [0, this) per seed.
    #[serde(rename = "start_jitter_s")]
    pub start_jitter: Time,
    /// Bytes to transfer; `null` is endless.
    #[serde(deserialize_with = "Option::deserialize")]
    pub size_bytes: Option<u64>,
    /// Initial congestion window.
    pub initial_window_bytes: u64,
    /// Largest UDP payload.
    pub max_payload_bytes: u16,
    /// Bytes that the receiver buffers.
    pub receive_window_bytes: u64,
    /// True if datagrams are sent with the ECN bits that the stack asks for.
    pub ecn: bool,
}

impl StackPlan {
    /// Return the reason why nothing can be sent, if there is one.
    pub fn fault(&self) -> Option<String> {
        let found = self.max_payload_bytes;
        if !(MIN_PAYLOAD_BYTES..=MAX_PAYLOAD_BYTES).contains(&found) {
            return Some(format!(
                "max_payload_bytes is {found}; expected {MIN_PAYLOAD_BYTES} to {MAX_PAYLOAD_BYTES}"
            ));
        }
        let texts = [("congestion", &self.congestion), ("options", &self.options)];
        let wrong = texts.into_iter().find(|(_, text)| text.contains('\0'));
        wrong.map(|(name, _)| format!("{name} has a zero byte; expected a text without one"))
    }
}
