//! The handshake of a connection: when its segments were captured, and the round trips that they show.
//!
//! The client's segment that first acknowledges the SYN/ACK ends it, if it is the third segment of the handshake. A filter
//! or a loss may hide that; a later segment then shows that the connection is open, but not since when.

use super::direction::Direction;
use ackclock_core::tcp::seq;
use ackclock_pcap::packet::{Flags, Segment};

/// The largest window of a SYN/ACK, which is not scaled (RFC 7323 section 2.2).
const MAX_SYN_WINDOW: i32 = 65_535;

/// The state of the handshake. Times are of the capture, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handshake {
    /// The client's last SYN with a number of its own.
    pub syn_ns: Option<i64>,
    /// The server's answer to it.
    pub synack_ns: Option<i64>,
    /// The first segment of the client behind that.
    pub established_ns: Option<i64>,
    /// The third segment of the handshake was lost or not captured.
    is_delayed: bool,
    /// From the vantage point to the client and back, and to the server and back; 0 if not known.
    pub side_rtts_ns: [i64; 2],
    /// The timestamps of the third segment, and when the second was captured.
    pub last_ack: Option<((u32, u32), i64)>,
    /// Bytes of data in the SYN, and how many of them the SYN/ACK acknowledges (TCP Fast Open, RFC 7413).
    pub fast_open_bytes: [u32; 2],
}

impl Handshake {
    /// Process the first copy of a SYN.
    pub fn on_syn(&mut self, segment: &Segment, now_ns: i64) {
        self.syn_ns = Some(now_ns);
        self.fast_open_bytes[0] = segment.payload_bytes;
    }

    /// Process the first copy of a SYN/ACK; return true if it acknowledges none of the data in the SYN, whose number was
    /// `initial`.
    pub fn on_synack(&mut self, segment: &Segment, initial: Option<u32>, now_ns: i64) -> bool {
        self.synack_ns = Some(now_ns);
        let Some(initial) = initial else {
            return false;
        };
        let first = initial.wrapping_add(1);
        let accepted = segment.acknowledgement.wrapping_sub(first);
        self.fast_open_bytes[1] = accepted.min(self.fast_open_bytes[0]);
        accepted == 0 && self.fast_open_bytes[0] > 0
    }

    /// Process the client's first segment behind the SYN/ACK; return false if that was not captured.
    pub fn on_client_segment(
        &mut self,
        segment: &Segment,
        directions: &[Direction; 2],
        now_ns: i64,
    ) -> bool {
        let Some(synack_ns) = self.synack_ns else {
            return false;
        };
        self.established_ns = Some(now_ns);
        self.is_delayed = !is_third(segment, self.fast_open_bytes[0], directions);
        if directions.iter().all(|one| one.syn_retransmissions == 0) {
            let to_server_ns = self.syn_ns.map_or(0, |syn_ns| (synack_ns - syn_ns).max(1));
            let to_client_ns = (now_ns - synack_ns).max(1);
            // What comes later, as behind a loss, still bounds the round trip; what ends the connection does not.
            let [client, server] = directions;
            let is_timed =
                !segment.flags.has(Flags::FIN | Flags::RST) && !skips_data(segment, client, server);
            self.side_rtts_ns = [if is_timed { to_client_ns } else { 0 }, to_server_ns];
            let timestamps = segment.options.timestamps;
            self.last_ack = timestamps
                .filter(|_| to_server_ns > 0 && !self.is_delayed)
                .map(|known| (known, synack_ns));
        }
        true
    }

    /// Return how long it took from the SYN to the third segment; None if one of them was not captured, or the clock did
    /// not advance.
    pub fn duration_ns(&self) -> Option<i64> {
        let established_ns = self.established_ns.filter(|_| !self.is_delayed)?;
        Some(established_ns - self.syn_ns?).filter(|&ns| ns > 0)
    }

    /// The RTT of the handshake, if nothing of it was sent twice or lost.
    pub fn rtt_ns(&self) -> Option<i64> {
        let [to_client_ns, to_server_ns] = self.side_rtts_ns;
        let is_known = to_client_ns > 0 && to_server_ns > 0 && !self.is_delayed;
        is_known.then_some(to_client_ns + to_server_ns)
    }
}

/// Return true if a segment of the client can be the third of the handshake: it has the numbers behind both SYNs, as far
/// as those were captured, and does not close the connection. Behind data in the SYN, of `syn_bytes`, the server may send
/// before it (RFC 7413 section 4.2.2).
fn is_third(segment: &Segment, syn_bytes: u32, [client, server]: &[Direction; 2]) -> bool {
    let bytes_behind = |direction: &Direction, number: u32| {
        let first = direction.initial.map(|initial| initial.wrapping_add(1));
        first.map_or(0, |first| number.wrapping_sub(first))
    };
    let sent = bytes_behind(client, segment.sequence);
    let acknowledged = bytes_behind(server, segment.acknowledgement);
    let most = if syn_bytes > 0 {
        bytes_behind(server, server.next as u32)
    } else {
        0
    };
    !segment.flags.has(Flags::FIN | Flags::RST)
        && (sent == 0 || sent == syn_bytes)
        && acknowledged <= most
}

/// Return true if a segment of an end shows that the connection went on behind its SYNs, unseen by the capture: it
/// acknowledges bytes that were not captured, or is beyond the window of the SYN/ACK.
pub fn skips_data(segment: &Segment, own: &Direction, other: &Direction) -> bool {
    let ahead = |direction: &Direction, number: u32| match direction.initial {
        Some(_) => seq::distance(number, direction.next as u32),
        None => 0,
    };
    segment.flags.has(Flags::ACK) && ahead(other, segment.acknowledgement) > 0
        || ahead(own, segment.sequence) > MAX_SYN_WINDOW
}
