//! FIFOs of which the first with a packet is served: what the priority disciplines share.

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
    /// So many FIFOs, with room for so many packets each.
    pub fn new(bands: usize, limit_packets: u32) -> Bands {
        Bands {
            bands: std::iter::repeat_with(Fifo::default).take(bands).collect(),
            limit_packets: limit_packets as usize,
        }
    }

    /// Puts a packet last in a band, or drops it if that is full.
    pub fn push(&mut self, band: usize, packet: Packet, drops: &mut Drops) {
        match self.bands.get_mut(band) {
            Some(band) if band.len() < self.limit_packets => band.push(packet),
            _ => drops.push(packet),
        }
    }

    /// Takes the first packet of the first band that has one.
    pub fn pop(&mut self) -> Option<Packet> {
        self.bands.iter_mut().find_map(Fifo::pop)
    }

    /// What all bands hold.
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
