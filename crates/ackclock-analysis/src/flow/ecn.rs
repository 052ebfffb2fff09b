//! ECN of a connection: what its handshake agreed on, and what its packets report.

use super::direction::Direction;
use super::ecn_feedback::{mode, EcnMode};
use super::Connection;
use crate::ack_trace::ALL_MARKED;
use ackclock_pcap::packet::{Flags, Segment};

impl Connection {
    /// Process AE, CWR and ECE, but for the pure ACK that ends the handshake: it has the ECN field of the SYN/ACK (RFC 9768
    /// section 3.2.2.1).
    #[inline(never)]
    pub(super) fn on_ecn_feedback(&mut self, segment: &Segment, from: usize) {
        let [client, server] = &self.directions;
        let first = |direction: &Direction| direction.initial.map(|number| number.wrapping_add(1));
        let is_handshake_ack = from == 0
            && segment.payload_bytes == 0
            && first(client) == Some(segment.sequence)
            && first(server) == Some(segment.acknowledgement);
        if is_handshake_ack || segment.flags.has(Flags::SYN | Flags::RST) {
            return;
        }
        let view = self.directions[1 - from].sender_view.as_deref();
        let segment_bytes = view.map_or((0, 0), |view| {
            (view.totals.payload_bytes, view.totals.data_segments)
        });
        self.directions[from]
            .ecn_feedback
            .on_packet(segment, segment_bytes);
    }

    /// Return the meaning of AE, CWR and ECE.
    pub(super) fn ecn_mode(&self) -> EcnMode {
        let [client, server] = &self.directions;
        mode(
            [&client.ecn_feedback, &server.ecn_feedback],
            client.is_ect() || server.is_ect(),
        )
    }

    /// Return how many packets a segment reports as marked: [`ALL_MARKED`] if ECE covers what it acknowledges
    /// (RFC 8257 section 3.3).
    #[inline]
    pub(super) fn reported_marks(&self, segment: &Segment, from: usize) -> u8 {
        let feedback = &self.directions[from].ecn_feedback;
        if !feedback.is_active() {
            return 0;
        }
        match self.ecn_mode() {
            EcnMode::Accurate => feedback.last_increment,
            EcnMode::Classic | EcnMode::Unknown if segment.flags.has(Flags::ECE) => ALL_MARKED,
            EcnMode::Classic | EcnMode::Unknown => 0,
        }
    }
}
