//! The window trace of one flow: a sample for each acknowledgement at the sender.

pub use ackclock_core::tcp::ack_trace::{CaState, Signal};
use ackclock_core::Time;

/// One acknowledgement. Counts are of full segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AckSample {
    /// When it reached the sender.
    pub time: Time,
    /// Segments that it delivers, cumulatively or selectively.
    pub delivered: u32,
    /// Segments by which it advances.
    pub advanced: u32,
    /// True if it carries SACK blocks or is a duplicate.
    pub selective: bool,
    /// Delivered segments that are reported as marked.
    pub marked: u32,
    /// RTT of the newest segment that it delivers, unless that was sent more than once.
    pub rtt: Option<Time>,
    /// RTT of the oldest segment that it delivers, which the timer smooths, unless something that it delivers was sent
    /// more than once.
    pub oldest_rtt: Option<Time>,
    /// The pipe (RFC 6675) before it.
    pub prior_in_flight: u32,
    /// The pipe after it, before it lets anything go.
    pub in_flight: u32,
    /// The pipe once all has left that it let go: the window, where the window limits.
    pub window: u32,
    /// When the oldest segment that is then outstanding was first sent.
    pub oldest_sent: Time,
    /// Sequence space between the first unacknowledged and the next new segment, before it lets anything go.
    pub outstanding: u32,
    /// The congestion signal that begins with it.
    pub signal: Option<Signal>,
    /// The congestion state after it.
    pub ca_state: CaState,
    /// True if the application or the receiver limits the sender, and not its window.
    pub not_cwnd_limited: bool,
}

/// One flow.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Payload of a full segment, bytes.
    pub mss_bytes: u32,
    /// The window with which the connection opened, segments; `None` if the capture began later.
    pub initial_window: Option<u32>,
    /// RTT of the handshake, if it was captured.
    pub handshake: Option<Time>,
    /// Its packets carry ECT(1): the sender declares that its congestion control is scalable (L4S, RFC 9331 section 4.1).
    pub is_l4s: bool,
    /// In the order of time.
    pub samples: Vec<AckSample>,
}

impl Series {
    /// Congestion epochs: how often a window had to come down.
    pub fn epochs(&self) -> usize {
        self.samples
            .iter()
            .filter(|sample| sample.signal.is_some())
            .count()
    }
}
