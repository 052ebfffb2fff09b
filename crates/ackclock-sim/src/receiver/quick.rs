//! Quick ACKs: how many segments are yet to be acknowledged one by one.
//!
//! Linux does so for the first [`QUICK_ACKS`] ACKs of a connection and after a duplicate, and for every segment that
//! opens the receive window: with a large buffer, or one that grows, thousands of segments (`window.rs`).

/// Quick ACKs at the start of a connection and after a duplicate (Linux's `TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;

/// Remaining quick ACKs.
#[derive(Clone, Copy, Debug)]
pub struct Quick {
    left: u32,
}

impl Quick {
    /// At the start of a connection.
    pub fn new() -> Quick {
        Quick { left: QUICK_ACKS }
    }

    /// Acknowledge a segment that opened the window immediately, without using up a quick ACK.
    #[inline]
    pub fn on_opened(&mut self) {
        self.left |= 1;
    }

    /// Restart quick ACKs after a duplicate: the sender may be in slow start again.
    pub fn on_duplicate(&mut self) {
        self.left = QUICK_ACKS;
    }

    /// Ensure that at least `acks` quick ACKs remain.
    pub fn ensure(&mut self, acks: u32) {
        self.left = self.left.max(acks);
    }

    /// Count an ACK that was sent.
    #[inline]
    pub fn on_ack(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// True if the next ACK is not delayed.
    #[inline]
    pub fn is_due(self) -> bool {
        self.left > 0
    }
}
