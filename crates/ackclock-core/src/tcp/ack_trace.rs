//! States of a sender in a trace of its ACKs: extracted from captures, and replayed by congestion control algorithms.

/// Congestion signal that reduces the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Fast recovery begins with this ACK.
    Loss,
    /// A reaction to ECN marks begins with this ACK.
    Mark,
    /// The retransmission timer expired after this ACK.
    Timeout,
}

/// Recovery state of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// No recovery: the congestion control algorithm alone sets the window.
    #[default]
    Open,
    /// Fast recovery, or the reaction to ECN marks.
    Recovery,
    /// Recovery after a timeout, of what it marked as lost.
    Loss,
}
