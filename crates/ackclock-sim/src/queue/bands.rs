//! Strict-priority bands of FIFOs, of which the priority disciplines are made.

use ackclock_core::Time;

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::{Backlog, Discipline, Drops};

/// Packet-limited FIFOs, the most urgent first, and the band of each packet.
pub struct Bands<F> {
    fifos: Vec<Fifo>,
    limit_packets: usize,
    band_of: F,
}

impl<F: Fn(&Packet) -> usize> Bands<F> {
    /// Make `bands` FIFOs of `limit_packets` each.
    pub fn new(bands: usize, limit_packets: u32, band_of: F) -> Bands<F> {
        Bands {
            fifos: std::iter::repeat_with(Fifo::default).take(bands).collect(),
            limit_packets: limit_packets as usize,
            band_of,
        }
    }
}

impl<F: Fn(&Packet) -> usize + Send> Discipline for Bands<F> {
    fn enqueue(&mut self, packet: Packet, _now: Time, drops: &mut Drops) {
        match self.fifos.get_mut((self.band_of)(&packet)) {
            Some(band) if band.len() < self.limit_packets => band.push(packet),
            _ => drops.push(packet),
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops) -> Option<Packet> {
        self.fifos.iter_mut().find_map(Fifo::pop)
    }

    fn backlog(&self) -> Backlog {
        self.fifos
            .iter()
            .map(Fifo::backlog)
            .fold(Backlog::default(), |sum, band| Backlog {
                packets: sum.packets + band.packets,
                bytes: sum.bytes + band.bytes,
            })
    }
}
