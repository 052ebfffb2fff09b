//! Segments of any length, of an application that writes messages: their bytes, and when they are acknowledged.
//!
//! RFC 5681 section 4.2 delays no ACK beyond the second full-sized segment. `quick` delayed ACKs do as Linux: bytes
//! count, more than the largest segment so far; and once the application has read all, a segment that ends a write is
//! acknowledged at once, since this end has nothing of its own to send: here, one shorter than the MSS. So a delayed ACK
//! waits for a reader that leaves the first part of a message in the buffer until the rest is there.

use std::collections::BTreeMap;

use ackclock_plan::{DelayedAck, TcpPlan};

use super::Receiver;
use crate::packet::Packet;

/// Length that the largest segment is taken to have at first (Linux: the default MSS).
const MIN_FULL_BYTES: u64 = 536;

/// Segments that are shorter do not open the receive window (Linux).
const MIN_OPENING_BYTES: u64 = 128;

/// Lengths of the segments that have arrived.
#[derive(Clone, Debug)]
pub struct ShortSegments {
    /// Bytes of the segments before those in `lengths`.
    bytes_before: u64,
    /// Length of each segment from there on that has arrived.
    lengths: BTreeMap<u64, u64>,
    header_bytes: u32,
    mss_bytes: u64,
    /// The largest segment so far.
    full_bytes: u64,
    /// Length of the last segment.
    last_bytes: u64,
    /// Bytes since the last ACK.
    unacknowledged_bytes: u64,
    /// True if a short segment is among them.
    has_short: bool,
}

impl ShortSegments {
    pub fn new(tcp: &TcpPlan) -> ShortSegments {
        ShortSegments {
            bytes_before: 0,
            lengths: BTreeMap::new(),
            header_bytes: tcp.segment_header_bytes(),
            mss_bytes: u64::from(tcp.mss_bytes),
            full_bytes: MIN_FULL_BYTES,
            last_bytes: 0,
            unacknowledged_bytes: 0,
            has_short: false,
        }
    }

    /// Bytes of the first `segments` segments, as far as they have arrived.
    pub fn bytes_before(&self, segments: u64) -> u64 {
        self.bytes_before
            + self
                .lengths
                .range(..segments)
                .map(|(_, bytes)| bytes)
                .sum::<u64>()
    }

    fn payload_bytes(&self, packet: &Packet) -> u64 {
        u64::from(packet.wire_bytes.saturating_sub(self.header_bytes))
    }

    /// Record a segment when those before `next` have arrived.
    fn record(&mut self, packet: &Packet, next: u64) {
        while let Some(first) = self
            .lengths
            .first_entry()
            .filter(|first| *first.key() < next)
        {
            self.bytes_before += first.remove();
        }
        self.last_bytes = self.payload_bytes(packet);
        if packet.sequence >= next {
            self.lengths.insert(packet.sequence, self.last_bytes);
        }
    }

    /// Count a segment in order; `is_first`: it is the first since the last ACK. Returns whether the bytes since then
    /// are more than a full segment.
    fn count(&mut self, is_first: bool) -> bool {
        let bytes = self.last_bytes;
        if is_first {
            (self.unacknowledged_bytes, self.has_short) = (0, false);
        }
        self.unacknowledged_bytes += bytes;
        self.has_short |= bytes < self.mss_bytes;
        self.full_bytes = self.full_bytes.max(bytes);
        self.unacknowledged_bytes > self.full_bytes
    }
}

impl Receiver {
    /// Record the length of a segment that arrives, and count one in order for the delayed ACK.
    #[cold]
    pub(super) fn weigh_segment(&mut self, packet: &Packet) {
        let Some(short) = &mut self.short_segments else {
            return;
        };
        short.record(packet, self.next);
        let exceeds = packet.sequence == self.next && short.count(self.pending == 0);
        let is_read = short.has_short && self.reader.is_none();
        self.max_pending = if exceeds || is_read { 1 } else { u32::MAX };
    }

    /// True if the segment that has just arrived is too short to open the window.
    pub(super) fn is_tiny(&self) -> bool {
        let short = self.short_segments.as_ref();
        short.is_some_and(|short| short.last_bytes < MIN_OPENING_BYTES)
    }

    /// True if the application has read all, and `quick` delayed ACKs report a short segment then.
    pub(super) fn acknowledges_read(&self) -> bool {
        let short = self.short_segments.as_ref();
        self.policy == DelayedAck::Quick
            && short.is_some_and(|short| short.has_short)
            && !self.has_unread()
    }
}
