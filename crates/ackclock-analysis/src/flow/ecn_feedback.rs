//! Congestion feedback in the TCP headers of one direction: ECE and CWR (RFC 3168), or AccECN's counter of marked
//! packets in their place (RFC 9768).
//!
//! The handshake shows which of them is in use (section 3.1). Where the capture lacks it, the values may: with RFC 3168
//! the flag AE is never set, and AccECN's counter does not decrease before it has passed four values with AE.
//!
//! The counter of three bits is followed over the packets in their order. Where an acknowledgement covers so many
//! packets that it may have wrapped, there were at least as many marks as its increments.

use ackclock_core::tcp::seq;
use ackclock_pcap::packet::{Flags, Segment};

/// The counter begins at this value (RFC 9768 section 3.2.1).
const FIRST_COUNT: u8 = 5;
/// It wraps after so many marked packets.
const CYCLE: u8 = 8;
/// The value's bit that is AE.
const AE: u8 = 4;
/// The option's counter of bytes has 24 bits.
const BYTES_MASK: u32 = 0xff_ffff;

/// The meaning of AE, CWR and ECE in a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMode {
    /// The capture does not show it.
    Unknown,
    /// The flags of RFC 3168, or none.
    Classic,
    /// The counter of RFC 9768.
    Accurate,
}

/// The feedback of one direction about the packets of the other.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // what was seen and what was not
pub struct EcnFeedback {
    /// The field of its SYN or SYN/ACK, if that was captured.
    syn: Option<u8>,
    /// Packets with ECE and with CWR, but for SYNs.
    pub ece_packets: u32,
    pub cwr_packets: u32,
    /// Marked packets that the increments of the counter report, and those of the last packet.
    pub marks: u32,
    pub last_increment: u8,
    /// The counter may have wrapped between two packets: there may have been more.
    pub is_minimum: bool,
    /// Marked bytes of payload, as the option reports them.
    pub marked_bytes: Option<u64>,
    last: Option<Last>,
    has_value: bool,
    has_ae: bool,
    has_decreased: bool,
}

/// The newest packet's fields.
#[derive(Clone, Copy, Debug)]
struct Last {
    count: u8,
    acknowledgement: u32,
    /// The byte after the highest that it acknowledges, selectively or not.
    covered: u32,
    tsval: Option<u32>,
    marked_bytes: u32,
}

/// The field ACE of a header: AE, CWR and ECE as a number.
fn ace(flags: Flags) -> u8 {
    (flags.0 >> 6 & 7) as u8
}

/// Return what a handshake agreed on by the fields of its SYN and its SYN/ACK (RFC 9768 table 2).
fn agreed(syn: Option<u8>, synack: Option<u8>) -> EcnMode {
    match (syn, synack) {
        (None, None | Some(0b011)) | (Some(0b111), None) => EcnMode::Unknown,
        (None | Some(0b111), Some(0b010 | 0b011 | 0b100 | 0b110)) => EcnMode::Accurate,
        _ => EcnMode::Classic,
    }
}

/// Return the mode of a connection by the feedback of its client and its server.
pub fn mode([client, server]: [&EcnFeedback; 2], is_ect: bool) -> EcnMode {
    let ends = [client, server];
    match agreed(client.syn, server.syn) {
        EcnMode::Unknown if ends.iter().any(|end| end.has_ae) => EcnMode::Accurate,
        EcnMode::Unknown if ends.iter().any(|end| end.has_decreased) => EcnMode::Classic,
        // Neither end uses ECN.
        EcnMode::Unknown if !is_ect && !ends.iter().any(|end| end.has_value) => EcnMode::Classic,
        known => known,
    }
}

impl EcnFeedback {
    /// Return true if a packet has feedback though none of the flags is set: the counter may stand at 0.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.has_value
    }

    /// Process a SYN or a SYN/ACK. A retransmitted one may try without ECN.
    #[cold]
    pub fn on_syn(&mut self, flags: Flags) {
        self.syn = Some(self.syn.unwrap_or(0) | ace(flags));
    }

    /// Process a packet after the handshake; `segment_bytes`: the payload of the other direction and its segments, from
    /// which the number of packets that an acknowledgement covers follows.
    pub fn on_packet(&mut self, segment: &Segment, segment_bytes: (u64, u64)) {
        let count = ace(segment.flags);
        self.ece_packets += u32::from(segment.flags.has(Flags::ECE));
        self.cwr_packets += u32::from(segment.flags.has(Flags::CWR));
        self.has_value |= count != 0;
        self.has_ae |= count & AE != 0;
        self.last_increment = 0;
        let tsval = segment.options.timestamps.map(|(tsval, _)| tsval);
        let acknowledgement = segment.acknowledgement;
        if self
            .last
            .is_some_and(|last| last.is_newer_than(acknowledgement, tsval))
        {
            return;
        }
        let covered = covered(segment);
        let first = Last {
            // A middlebox that clears the flags leaves 0 (RFC 9768 section 3.2.2.4).
            count: if self.syn.is_some() && count != 0 {
                FIRST_COUNT
            } else {
                count
            },
            acknowledgement,
            covered,
            tsval,
            marked_bytes: if self.syn.is_some() {
                0
            } else {
                segment.options.marked_bytes.unwrap_or(0)
            },
        };
        let last = self.last.unwrap_or(first);
        self.last_increment = count.wrapping_sub(last.count) % CYCLE;
        self.marks += u32::from(self.last_increment);
        self.has_decreased |= count < last.count;
        let covered_bytes = seq::distance(covered, last.covered).max(0);
        self.is_minimum |= spans_a_cycle(covered_bytes as u64, segment_bytes);
        if let Some(bytes) = segment.options.marked_bytes {
            let added = bytes.wrapping_sub(last.marked_bytes) & BYTES_MASK;
            *self.marked_bytes.get_or_insert(0) += u64::from(added);
        }
        self.last = Some(Last {
            count,
            acknowledgement,
            covered: if covered_bytes > 0 {
                covered
            } else {
                last.covered
            },
            tsval,
            marked_bytes: segment.options.marked_bytes.unwrap_or(last.marked_bytes),
        });
    }
}

impl Last {
    /// Return true if this packet was sent later than one with such numbers.
    fn is_newer_than(&self, acknowledgement: u32, tsval: Option<u32>) -> bool {
        let has_older_clock = self
            .tsval
            .zip(tsval)
            .is_some_and(|(newest, tsval)| seq::distance(tsval, newest) < 0);
        seq::distance(acknowledgement, self.acknowledgement) < 0 || has_older_clock
    }
}

/// Return the byte after the highest that a segment acknowledges, selectively or not.
fn covered(segment: &Segment) -> u32 {
    let blocks = segment.options.sack().iter().map(|&(_, end)| end);
    blocks.fold(segment.acknowledgement, |highest, end| {
        if seq::distance(end, highest) > 0 {
            end
        } else {
            highest
        }
    })
}

/// Return true if so many bytes are a cycle's packets or more, by the mean size of segments.
fn spans_a_cycle(bytes: u64, (payload_bytes, segments): (u64, u64)) -> bool {
    bytes.saturating_mul(segments) >= u64::from(CYCLE).saturating_mul(payload_bytes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_pcap::packet::Options;

    const SEGMENT: u32 = 1000;

    /// A handshake with these fields of the SYN and the SYN/ACK, and what the server then reports.
    fn handshake(syn: u8, synack: u8) -> [EcnFeedback; 2] {
        let mut ends = [EcnFeedback::default(); 2];
        ends[0].on_syn(Flags(Flags::SYN | u16::from(syn) << 6));
        ends[1].on_syn(Flags(Flags::SYN | Flags::ACK | u16::from(synack) << 6));
        ends
    }

    /// An acknowledgement of so many segments with a value of the counter.
    fn ack(segments: u32, count: u8) -> Segment {
        Segment {
            acknowledgement: 1 + segments * SEGMENT,
            flags: Flags(Flags::ACK | u16::from(count) << 6),
            ..Segment::default()
        }
    }

    fn after(mut feedback: EcnFeedback, acks: &[(u32, u8)]) -> EcnFeedback {
        for &(segments, count) in acks {
            feedback.on_packet(&ack(segments, count), (100_000, 100));
        }
        feedback
    }

    fn mode_of(ends: &[EcnFeedback; 2]) -> EcnMode {
        mode([&ends[0], &ends[1]], true)
    }

    #[test]
    fn the_handshake_shows_whether_the_flags_are_a_counter() {
        for synack in [0b010, 0b011, 0b100, 0b110] {
            assert_eq!(mode_of(&handshake(0b111, synack)), EcnMode::Accurate);
        }
        // RFC 9768 table 2: the nonce, RFC 3168, no ECN, and a host that reflects the SYN.
        for synack in [0b101, 0b001, 0b000, 0b111] {
            assert_eq!(mode_of(&handshake(0b111, synack)), EcnMode::Classic);
        }
        assert_eq!(mode_of(&handshake(0b011, 0b011)), EcnMode::Classic);
    }

    #[test]
    fn increments_are_counted_modulo_eight_from_the_first_value() {
        let [_, server] = handshake(0b111, 0b100);
        let acks = [(1, 5), (3, 6), (5, 0), (7, 0), (9, 3)];
        let feedback = after(server, &acks);
        assert_eq!((feedback.marks, feedback.is_minimum), (6, false));
        // The first that was captured reports two; an older one came late.
        assert_eq!(after(server, &[(2, 7), (4, 0), (3, 7), (6, 0)]).marks, 3);
        // A middlebox cleared all.
        assert_eq!(after(server, &[(2, 0), (4, 0)]).marks, 0);
    }

    #[test]
    fn marks_are_a_minimum_where_the_counter_may_have_wrapped() {
        let [_, server] = handshake(0b111, 0b100);
        let feedback = after(server, &[(1, 5), (9, 6)]);
        assert_eq!((feedback.marks, feedback.is_minimum), (1, true));
        assert!(!after(server, &[(1, 5), (8, 6)]).is_minimum);
        // What was sacked before is not covered anew when the hole is filled.
        let mut sacked = after(server, &[(1, 5)]);
        for end in [4, 8, 12, 16] {
            let mut duplicate = ack(1, 5);
            duplicate.options.sack[0] = (1 + 2 * SEGMENT, 1 + end * SEGMENT);
            duplicate.options.sack_blocks = 1;
            sacked.on_packet(&duplicate, (100_000, 100));
        }
        assert!(!after(sacked, &[(16, 5)]).is_minimum);
    }

    #[test]
    fn the_option_counts_the_marked_bytes() {
        let [_, mut server] = handshake(0b111, 0b100);
        for (segments, bytes) in [(2, 0), (20, 0xff_f000), (40, 0x100)] {
            let options = Options {
                marked_bytes: Some(bytes),
                ..Options::default()
            };
            let ack = Segment {
                options,
                ..ack(segments, 5)
            };
            server.on_packet(&ack, (100_000, 100));
        }
        assert_eq!(server.marked_bytes, Some(0x100_0100));
    }

    #[test]
    fn without_the_handshake_the_values_show_the_mode_or_nothing_does() {
        let mid_stream = |acks: &[(u32, u8)]| {
            mode_of(&[EcnFeedback::default(), after(EcnFeedback::default(), acks)])
        };
        assert_eq!(mid_stream(&[(1, 0), (2, 0)]), EcnMode::Unknown);
        assert_eq!(mid_stream(&[(1, 1), (2, 1), (3, 2)]), EcnMode::Unknown);
        assert_eq!(mid_stream(&[(1, 0), (2, 1), (3, 0)]), EcnMode::Classic);
        assert_eq!(mid_stream(&[(1, 7), (2, 0), (3, 2)]), EcnMode::Accurate);
        let counted = after(EcnFeedback::default(), &[(1, 7), (2, 0), (3, 2)]);
        assert_eq!(counted.marks, 3, "as captured");
        let none = [EcnFeedback::default(); 2];
        assert_eq!(mode([&none[0], &none[1]], false), EcnMode::Classic);
    }
}
