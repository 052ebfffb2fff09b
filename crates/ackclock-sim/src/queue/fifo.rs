//! Unlimited FIFO, a building block of other disciplines.

use std::collections::VecDeque;

use crate::packet::Packet;
use crate::queue::Backlog;

/// Packets in order of arrival, and their bytes.
#[derive(Debug, Default)]
pub struct Fifo {
    packets: VecDeque<Packet>,
    bytes: u64,
}

impl Fifo {
    /// Append a packet.
    #[inline(always)]
    pub fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.wire_bytes);
        self.packets.push_back(packet);
    }

    /// Take the first packet.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Take the last packet.
    pub fn pop_last(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Take the last packet that satisfies a predicate.
    pub fn remove_last(&mut self, meant: impl FnMut(&Packet) -> bool) -> Option<Packet> {
        let packet = self.packets.remove(self.packets.iter().rposition(meant)?)?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Take the packet at a position.
    pub fn remove(&mut self, index: usize) -> Option<Packet> {
        let packet = self.packets.remove(index)?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// The packets, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }

    /// The first packet.
    pub fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// Packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Wire bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets and wire bytes.
    pub fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets.len() as u32,
            bytes: self.bytes,
        }
    }
}
