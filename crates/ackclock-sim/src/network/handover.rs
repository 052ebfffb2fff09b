//! Packets between the parts of a network that several threads simulate ([`crate::partition`]).
//!
//! In the part that owns a cut link, packets wait in its propagation delay until they are handed over. In the other
//! part the link has no queue, and its propagation delay holds what was handed over.

use super::{Network, Packet, Time, NO_ATTACHMENT};
use crate::options::Blocks;

/// A packet on a cut link.
#[derive(Clone, Copy)]
pub struct Handover {
    link: u32,
    /// Its arrival at the other part.
    due: Time,
    packet: Packet,
    blocks: Option<Blocks>,
}

impl Network {
    /// Let the packets of a link be handed over.
    pub fn cut(&mut self, link: usize) {
        self.links[link].propagation.cut();
    }

    /// Hand over the packets of a cut link whose transmission has started by `now`. Returns the earliest time that
    /// the other part has to know: the first arrival, or the start of the next transmission if that has no event.
    #[inline]
    pub fn hand_over(&mut self, link: usize, now: Time, handovers: &mut Vec<Handover>) -> Time {
        let this = &self.links[link];
        if this.propagation.len() <= 1 && this.waiting_in_queue() == 0 {
            return Time::NEVER;
        }
        self.hand_over_packets(link, now, handovers)
    }

    #[inline(never)]
    fn hand_over_packets(&mut self, link: usize, now: Time, handovers: &mut Vec<Handover>) -> Time {
        let this = &mut self.links[link];
        this.catch_up(now);
        let mut earliest = this.next_lazy_start();
        while let Some((due, packet)) = this.propagation.take_cut() {
            debug_assert!(due > now, "a packet has arrived before it is handed over");
            earliest = earliest.min(due);
            handovers.push(Handover {
                link: link as u32,
                due,
                blocks: self.attachments.remove(packet.attachment),
                packet,
            });
        }
        earliest
    }

    /// Take a packet over from another part.
    pub fn take_over(&mut self, handover: Handover) {
        let link = handover.link as usize;
        let blocks = handover.blocks;
        let packet = Packet {
            attachment: blocks.map_or(NO_ATTACHMENT, |blocks| self.attachments.insert(blocks)),
            ..handover.packet
        };
        let arrival = self.links[link].propagation.receive(packet, handover.due);
        self.schedule_arrival(link, arrival);
    }

    /// Add what another part has counted as lost of the flow in a slot, whose count starts anew.
    pub fn move_losses(&mut self, slot: usize, other: &mut Network, other_slot: usize) {
        let losses = std::mem::take(&mut other.losses[other_slot]);
        self.losses[slot].forward += losses.forward;
        self.losses[slot].backward += losses.backward;
    }

    /// Exchange a link with another part.
    pub fn swap_link(&mut self, link: usize, other: &mut Network) {
        std::mem::swap(&mut self.links[link], &mut other.links[link]);
    }
}
