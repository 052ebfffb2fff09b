//! Keep-alives (RFC 9293 section 3.8.4), and whether they are answered.

use super::stall::is_shut;
use super::Connection;
use ackclock_pcap::packet::{Flags, Segment};

/// The keep-alives of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAlives {
    /// The number of probes.
    pub probes: u32,
    /// The longest run of probes without a packet of the other end between them or since.
    pub unanswered: u32,
    run: u32,
    sender: usize,
}

impl KeepAlives {
    /// Process a packet of an end.
    #[inline]
    pub fn on_packet(&mut self, from: usize, is_probe: bool) {
        if is_probe {
            self.on_probe(from);
        } else if self.run > 0 && from != self.sender {
            self.run = 0;
        }
    }

    #[cold]
    fn on_probe(&mut self, from: usize) {
        self.probes = self.probes.saturating_add(1);
        self.run = if from == self.sender { self.run + 1 } else { 1 };
        self.sender = from;
        self.unanswered = self.unanswered.max(self.run);
    }
}

impl Connection {
    /// Return true if a segment is a keep-alive: it has no byte, or one, and its number is that before the next one,
    /// while nothing is outstanding and the window is open.
    #[inline]
    pub(super) fn is_keep_alive(&self, segment: &Segment, from: usize) -> bool {
        let direction = &self.directions[from];
        let Flags(flags) = segment.flags;
        flags & (Flags::SYN | Flags::FIN | Flags::RST) == 0
            && direction.next != 0
            && segment.sequence.wrapping_add(1) == direction.next as u32
            && direction.sender_view.as_deref().map_or(
                direction.initial.is_some() && self.handshake.established_ns.is_some(),
                |view| {
                    let starts_before_next = direction.unwrap(segment.sequence) + 1 == view.snd_nxt;
                    starts_before_next && view.all_acknowledged() && !is_shut(view)
                },
            )
    }
}
