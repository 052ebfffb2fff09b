//! Quick ACKs: how many segments are yet to be acknowledged one by one.
//!
//! Linux does so for the first [`QUICK_ACKS`] ACKs of a connection and after a duplicate, and for every segment that
//! makes the receive window grow. The window it announces begins with what fits a header without scaling, and
//! each new segment opens it by two, up to what the receive buffer holds: a connection with a large buffer
//! has thousands of segments acknowledged one by one. The growth is as fast as the fastest slow start, so
//! it holds no sender back, and is counted in segments only.

use ackclock_plan::TcpPlan;

/// Quick ACKs at the start of a connection and after a duplicate (Linux's `TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;
/// The window at the start: the most that the header says without scaling (RFC 9293 section 3.1).
const FIRST_WINDOW_BYTES: u64 = 65_535;
/// Segments by which the window grows for one that arrives.
const GROWTH_SEGMENTS: u64 = 2;

/// The quick ACKs that are left.
#[derive(Clone, Copy, Debug)]
pub struct Quick {
    left: u32,
    /// Segments that will make the window grow.
    growing: u64,
}

impl Quick {
    /// At the start of a connection. A window without limit is open from the start.
    pub fn new(tcp: &TcpPlan) -> Quick {
        let growth = tcp
            .receive_window_bytes
            .map_or(0, |bytes| bytes.saturating_sub(FIRST_WINDOW_BYTES));
        Quick {
            left: QUICK_ACKS,
            growing: growth.div_ceil(GROWTH_SEGMENTS * u64::from(tcp.mss_bytes)),
        }
    }

    /// A new segment arrived. One that makes the window grow takes no quick ACK from those that are left.
    #[inline]
    pub fn on_new_segment(&mut self) {
        if self.growing > 0 {
            self.growing -= 1;
            self.left |= 1;
        }
    }

    /// A duplicate arrived: the sender may be in slow start again.
    pub fn on_duplicate(&mut self) {
        self.left = QUICK_ACKS;
    }

    /// At least so many are to follow.
    pub fn at_least(&mut self, acks: u32) {
        self.left = self.left.max(acks);
    }

    /// An ACK left.
    #[inline]
    pub fn on_ack(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// Whether the next ACK is not delayed.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.left > 0
    }
}
