//! The data segments and acknowledgements of a direction.

use super::ip_id::IpIdOrder;
use super::SenderView;
use crate::flow::scoreboard::{SentRange, Transmission};
use crate::output::SegmentOutcome;
use crate::tables::{Fate, RetransmitCause};

/// Header and check sequence of an Ethernet frame.
const ETHERNET_BYTES: u32 = 18;

/// A data segment, with its sequence number unwrapped.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// When it was seen.
    pub now_ns: i64,
    /// Its first byte.
    pub start: u64,
    /// Its payload.
    pub bytes: u32,
    /// Its TSval, if it has timestamps.
    pub tsval: Option<u32>,
    /// The acknowledgement that it echoes.
    pub tsecr: Option<u32>,
    /// Its IP identification, if that is not 0.
    pub identification: Option<u32>,
    /// The bytes of its IP packet.
    pub packet_bytes: u32,
    /// Its position in the sender's IP identification sequence.
    pub ip_id_order: IpIdOrder,
}

impl Data {
    /// Return the bytes on an Ethernet wire.
    pub(super) fn wire_bytes(&self) -> u32 {
        self.packet_bytes.saturating_add(ETHERNET_BYTES)
    }
}

/// An acknowledgement, with its numbers unwrapped.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it was seen.
    pub captured_ns: i64,
    /// The next byte that is expected.
    pub position: u64,
    /// SACK blocks, but for a DSACK.
    pub sack: [(u64, u64); 4],
    /// The number of SACK blocks.
    pub blocks: u8,
    /// The DSACK block (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// The receiver's window, scaled, if the scale is known.
    pub window_bytes: Option<u64>,
    /// The window, or the largest that it can be.
    pub max_window_bytes: u64,
    /// Its TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// It carries no data.
    pub pure: bool,
    /// The packets that it reports as marked (see [`ALL_MARKED`](crate::ack_trace::ALL_MARKED)).
    pub marks: u8,
}

impl SenderView {
    /// A copy's fate.
    pub(super) fn copy_outcome(
        &self,
        range: &SentRange,
        copy: &Transmission,
        fate: Fate,
        confidence: f64,
    ) -> SegmentOutcome {
        SegmentOutcome {
            time_ns: copy.sent_ns,
            captured: copy.captured,
            arrival: copy.arrival,
            cause: copy.cause,
            units: self.segments(range, copy.captured, copy.continued),
            ..self.outcome(range, fate, confidence)
        }
    }

    pub(super) fn outcome(&self, range: &SentRange, fate: Fate, confidence: f64) -> SegmentOutcome {
        let offset = range.start.saturating_sub(self.base);
        SegmentOutcome {
            flow: self.flow,
            time_ns: range.first_ns,
            offset,
            bytes: range.bytes,
            units: self.segments(range, !range.not_captured, range.continued),
            number: offset / u64::from(self.mss.max(1)),
            captured: !range.not_captured,
            arrival: range.arrival,
            fate,
            cause: RetransmitCause::Unknown,
            confidence,
        }
    }

    /// The number of segments that began in a range: a captured one is one, whatever the MSS is now.
    pub(super) fn segments(&self, range: &SentRange, captured: bool, continued: bool) -> u32 {
        match (captured, continued) {
            (true, _) => u32::from(!continued),
            (false, _) => self.units(range.bytes),
        }
    }
}
