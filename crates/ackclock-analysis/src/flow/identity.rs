//! The connection that a segment belongs to.

use super::direction::Direction;
use super::{stall, Connection};
use ackclock_core::tcp::seq;
use ackclock_pcap::packet::{Endpoint, Flags, Segment};

/// A SYN with the number of one before is another copy of it for so long (RFC 9293's 2 MSL).
const SAME_SYN_NS: i64 = 240_000_000_000;

/// A capture does not miss more bytes than this of both directions of a connection.
const MAX_JUMP: u32 = 1 << 24;

impl Connection {
    /// Return true if a segment with its addresses and ports begins another connection: a SYN with another number, or
    /// one that comes when no copy of the first can be in flight any more. A server answers copies of a SYN with the same
    /// number, so another number behind its FIN answers a SYN that was not captured.
    #[inline]
    pub fn is_new_connection(&self, segment: &Segment, now_ns: i64) -> bool {
        let Flags(flags) = segment.flags;
        let is_behind_silence = now_ns - self.last_ns > stall::MIN_STALL_NS;
        if flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN | Flags::ACK {
            let own = &self.directions[self.from(segment)];
            let is_other = own.initial.is_some_and(|one| one != segment.sequence);
            return is_other && (self.closed() || own.fin.is_some())
                || is_behind_silence && self.is_numbered_anew(segment);
        }
        if flags & (Flags::SYN | Flags::ACK | Flags::RST) != Flags::SYN {
            return flags & Flags::SYN == 0 && is_behind_silence && self.is_numbered_anew(segment);
        }
        let from = self.from(segment);
        match self.directions[from].initial {
            Some(initial) => initial != segment.sequence || now_ns - self.last_ns > SAME_SYN_NS,
            None => self.directions[from].packets > 0 || self.directions[1 - from].packets > 0,
        }
    }

    /// The numbers of both ends are far from all that came before: behind a silence, the ports are used again, and the
    /// capture does not have the SYN. After a hole in the capture those of one end would go on, or nearly.
    fn is_numbered_anew(&self, segment: &Segment) -> bool {
        let from = self.from(segment);
        let (own, other) = (&self.directions[from], &self.directions[1 - from]);
        let is_far = |direction: &Direction, number: u32| {
            direction.next != 0
                && seq::distance(number, direction.next as u32).unsigned_abs() > MAX_JUMP
        };
        segment.flags.has(Flags::ACK)
            && is_far(own, segment.sequence)
            && is_far(other, segment.acknowledgement)
    }

    /// Return true if a segment has its addresses and ports.
    #[inline]
    pub fn is_between(&self, segment: &Segment) -> bool {
        let [client, server] = self.ends;
        (segment.source == client && segment.destination == server)
            || (segment.source == server && segment.destination == client)
    }
}

/// Client and server of the connection that a segment is the first of. Without a SYN, the server is the one with the
/// lower port.
pub(super) fn ends(segment: &Segment) -> [Endpoint; 2] {
    let (source, destination) = (segment.source, segment.destination);
    let Flags(flags) = segment.flags;
    let from_server = match flags & (Flags::SYN | Flags::ACK) {
        Flags::SYN => false,
        both if both == Flags::SYN | Flags::ACK => true,
        _ => source.port < destination.port,
    };
    if from_server {
        [destination, source]
    } else {
        [source, destination]
    }
}
