//! What a capture tells of one flow: a step for each acknowledgement, as its sender saw them.

pub use ackclock_core::tcp::ack_trace::{Phase, Signal};
use ackclock_core::Time;

/// One acknowledgement. Counts are of full segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// When it reached the sender.
    pub time: Time,
    /// Segments that it delivers, cumulatively or selectively.
    pub delivered: u32,
    /// Segments by which it advances.
    pub advanced: u32,
    /// Whether it carries SACK blocks or is a duplicate.
    pub selective: bool,
    /// Of what it delivers, how many are reported as marked.
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
    /// What comes down with it.
    pub signal: Option<Signal>,
    /// What is being repaired once it has come.
    pub phase: Phase,
    /// Whether something else than the window limits the sender: the application, the receiver.
    pub limited_elsewhere: bool,
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
    /// In the order of time.
    pub steps: Vec<Step>,
}

impl Series {
    /// Congestion epochs: how often a window had to come down.
    pub fn epochs(&self) -> usize {
        self.steps
            .iter()
            .filter(|step| step.signal.is_some())
            .count()
    }
}
