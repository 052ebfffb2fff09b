//! Records of single packets: the packet log and the captures.

use super::{Hop, Network, Packet, PacketAction, Time, NO_ATTACHMENT};
use crate::options::Blocks;
use crate::pcap::Captures;
use crate::sender::SendReason;
use ackclock_core::tables::{PacketFate, Tables};

impl Network {
    #[cold]
    pub(super) fn write_log(
        &mut self,
        time: Time,
        link: u32,
        packet: Packet,
        action: PacketAction,
    ) {
        if let Some(captures) = &mut self.captures {
            match action {
                PacketAction::Dequeue => captures.leave(&packet, link, time),
                PacketAction::Arrive => {
                    captures.arrive(&packet, time, self.now);
                    self.release_forward(&packet, time);
                }
                PacketAction::Drop => captures.lose(&packet, PacketFate::Dropped, link, time),
                PacketAction::Loss => captures.lose(&packet, PacketFate::Lost, link, time),
                PacketAction::Enqueue => {}
            }
        }
        if self.log_packets {
            packet.log(time, link, action, &mut self.tables.packets);
        }
    }

    /// Record that a packet left its last queue on the reverse path at `left` and will arrive at `due`.
    #[cold]
    pub(super) fn log_return(&mut self, packet: Packet, left: Time, due: Time) {
        if let Some(captures) = &mut self.captures {
            captures.on_return(&packet, left, due, self.now);
        }
    }

    /// Release the capture state of a packet that reaches its receiver. (The sender takes the SACK blocks of an ACK.)
    fn release_forward(&mut self, packet: &Packet, due: Time) {
        if !packet.kind.is_forward() {
            return;
        }
        if let Some(captures) = &mut self.captures {
            captures.on_return(packet, self.now, due, self.now);
        }
        // What the packet carries is taken by its receiver, which releases the slot.
        if !self.attachments.has_payload(packet.attachment) {
            self.attachments.remove(packet.attachment);
        }
    }

    /// Capture a sender's packet, then send it.
    #[cold]
    pub(super) fn send_traced(
        &mut self,
        hop: Hop,
        packet: Packet,
        reason: impl FnOnce() -> SendReason,
    ) {
        let mut packet = Packet { hop: 0, ..packet };
        if self.captures.is_some() {
            packet.attachment = self.slot_of_frame(&packet);
        }
        if let Some(captures) = &mut self.captures {
            let carried = self.attachments.carried(packet.attachment);
            captures.send(&packet, carried, reason(), self.now);
        }
        self.send_to_hop(hop, packet);
    }

    /// Capture a receiver's packet, then send it; its path may have no further queue.
    #[cold]
    pub(super) fn send_reply_captured(&mut self, packet: Packet, local: Time) {
        let packet = self.capture_reply(packet, local);
        let route = self.routes.get(self.slots.slot_of(packet.flow));
        if let Some(Some(route)) = route {
            let due = local + route.reverse_delay;
            if route.first_reverse_hop().is_none() {
                self.log_return(packet, local, due);
            }
        }
        self.forward_reply(packet, local);
    }

    /// Capture a packet that its receiver sends at `time`. Returns it with the attachment of its frame.
    fn capture_reply(&mut self, packet: Packet, time: Time) -> Packet {
        let attachment = self.slot_of_frame(&packet);
        let packet = Packet {
            attachment,
            hop: 0,
            ..packet
        };
        if let Some(captures) = &mut self.captures {
            let carried = self.attachments.carried(attachment);
            captures.send_reply(&packet, carried, time, self.now);
        }
        packet
    }

    /// The slot of a captured packet: that of its attachment, or a new one.
    fn slot_of_frame(&mut self, packet: &Packet) -> u32 {
        if packet.attachment == NO_ATTACHMENT {
            self.attachments.insert(Blocks::default())
        } else {
            packet.attachment
        }
    }

    /// Take the rows recorded since the last call.
    pub fn take_rows(&mut self) -> Tables {
        if let Some(captures) = &mut self.captures {
            self.tables.transmissions = captures.take_ground_truth(self.now);
        }
        std::mem::take(&mut self.tables)
    }

    /// Complete the ground truth of packets in transit at the end of the run.
    pub fn finish_ground_truth(&mut self) {
        if let Some(captures) = &mut self.captures {
            captures.finish(self.now);
        }
    }

    /// Take the bytes captured since the last call, a file for each of the plan's vantage points.
    pub fn take_captures(&mut self) -> Vec<Vec<u8>> {
        let captures = self.captures.as_mut();
        captures
            .map(|captures: &mut Captures| captures.take(self.now))
            .unwrap_or_default()
    }
}
