//! ACK filter: drop an ACK that waits when a newer one of the same connection makes it redundant.
//!
//! Høiland-Jørgensen, Täht, Morton 2018 section III; tc-cake(8). ACKs are cumulative, so an older one says nothing that
//! the newer does not, unless it has more to say: SACK blocks, a mark or the echo of one, a larger window, or that a
//! packet came out of order (a duplicate ACK, and the one that it duplicates). None of these is ever dropped.
//!
//! `on` leaves one redundant ACK in the queue, `aggressive` none. At most one is dropped for each ACK that comes, the
//! oldest.
//!
//! Deviation: Linux drops some ACKs with SACK blocks, those whose blocks a newer one repeats, and some duplicates. Here
//! they stay: a discipline does not read blocks, only the size that they add to.

use serde::Deserialize;

use crate::packet::{Ecn, Kind, Packet};
use crate::queue::fifo::Fifo;

/// ACKs that are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AckFilter {
    /// None.
    Off,
    /// All redundant ACKs but one.
    On,
    /// All redundant ACKs.
    Aggressive,
}

impl AckFilter {
    pub fn is_on(self) -> bool {
        self != AckFilter::Off
    }

    /// Position of the ACK in a queue that a packet which comes replaces. `departed` are flow and number of the last
    /// ACK that left the queue; an ACK without SACK blocks has `bare_bytes`.
    pub fn redundant(
        self,
        waiting: &Fifo,
        departed: Option<(u32, u64)>,
        packet: &Packet,
        bare_bytes: u32,
    ) -> Option<usize> {
        if packet.kind != Kind::Ack {
            return None;
        }
        let is_of_flow = |waits: &Packet| waits.flow == packet.flow && waits.kind == Kind::Ack;
        let acks = waiting.iter().enumerate();
        let mut acks = acks.filter(|&(_, waits)| is_of_flow(waits)).peekable();
        let before = departed.filter(|&(flow, _)| flow == packet.flow);
        let mut before = before.map(|(_, number)| number);
        let (mut oldest, mut count) = (None, 0);
        while let Some((index, ack)) = acks.next() {
            let after = acks.peek().map_or(packet, |&(_, next)| next).number();
            let number = ack.number();
            let is_in_order = before.is_none_or(|before| before < number) && number < after;
            if is_in_order && number < packet.number() && is_bare(ack, bare_bytes) {
                oldest = oldest.or(Some(index));
                count += 1;
            }
            before = Some(number);
        }
        let kept = usize::from(self == AckFilter::On);
        oldest.filter(|_| count > kept)
    }
}

/// True if an ACK carries nothing but its number and its window.
fn is_bare(ack: &Packet, bare_bytes: u32) -> bool {
    let flags = ack.flags;
    let has_information =
        flags.echo() > 0 || flags.has_dsack() || flags.has_opened() || flags.part() > 0;
    ack.wire_bytes <= bare_bytes && !has_information && ack.ecn() != Ecn::Ce
}
