//! Strict-priority bands of FIFOs, shared by the priority disciplines.

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::{Backlog, Drops};

/// Packet-limited FIFOs, the most urgent first.
#[derive(Debug)]
pub struct Bands {
    bands: Vec<Fifo>,
    limit_packets: usize,
}

impl Bands {
    /// Make `bands` FIFOs of `limit_packets` each.
    pub fn new(bands: usize, limit_packets: u32) -> Bands {
        Bands {
            bands: std::iter::repeat_with(Fifo::default).take(bands).collect(),
            limit_packets: limit_packets as usize,
        }
    }

    /// Append a packet to a band, or drop it if that is full.
    pub fn push(&mut self, band: usize, packet: Packet, drops: &mut Drops) {
        match self.bands.get_mut(band) {
            Some(band) if band.len() < self.limit_packets => band.push(packet),
            _ => drops.push(packet),
        }
    }

    /// Take the first packet of the first band that has one.
    pub fn pop(&mut self) -> Option<Packet> {
        self.bands.iter_mut().find_map(Fifo::pop)
    }

    /// Packets and bytes in all bands.
    pub fn backlog(&self) -> Backlog {
        self.bands
            .iter()
            .map(Fifo::backlog)
            .fold(Backlog::default(), |sum, band| Backlog {
                packets: sum.packets + band.packets,
                bytes: sum.bytes + band.bytes,
            })
    }
}
