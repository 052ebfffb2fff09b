//! Attachments of packets in transit: the SACK blocks of an ACK, and what a datagram carries. The slot of a captured
//! packet identifies its frame, too.
//!
//! Most packets have none, so they carry only the index of a slot.

use std::collections::BTreeMap;

use crate::endpoint::Payload;
use crate::options::Blocks;
use crate::packet::NO_ATTACHMENT;
use crate::pcap::Carried;

/// Blocks by slot, a packet's `attachment`.
#[derive(Default)]
pub struct Attachments {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Content of datagrams, by their slot.
    payloads: BTreeMap<u32, Payload>,
}

/// One cache line, since blocks are read long after they were written.
#[repr(align(64))]
struct Slot(Blocks);

impl Attachments {
    /// Store the blocks of an ACK that is sent; returns their slot.
    pub fn insert(&mut self, blocks: Blocks) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].0 = blocks;
            slot
        } else {
            self.slots.push(Slot(blocks));
            (self.slots.len() - 1) as u32
        }
    }

    /// Store what a datagram carries; returns its slot.
    pub fn insert_payload(&mut self, payload: Payload) -> u32 {
        let slot = self.insert(Blocks::default());
        self.payloads.insert(slot, payload);
        slot
    }

    /// Blocks of a packet in transit; none if it has no slot.
    pub fn get(&self, slot: u32) -> Blocks {
        self.slots
            .get(slot as usize)
            .map_or(Blocks::default(), |slot| slot.0)
    }

    /// Return the content of a slot's packet for a capture: SACK blocks, the bytes of QUIC, a program's packet; of media
    /// none.
    pub fn carried(&self, slot: u32) -> Carried<'_> {
        Carried {
            blocks: self
                .slots
                .get(slot as usize)
                .map_or(&[], |slot| slot.0.as_slice()),
            content: match self.payloads.get(&slot) {
                Some(Payload::Quic(bytes)) => bytes,
                _ => &[],
            },
            external: match self.payloads.get(&slot) {
                Some(Payload::External(packet)) => Some(packet),
                _ => None,
            },
        }
    }

    /// Return true if a slot holds what a datagram carries.
    pub fn has_payload(&self, slot: u32) -> bool {
        self.payloads.contains_key(&slot)
    }

    /// Take what a datagram carries out of its slot.
    pub fn take_payload(&mut self, slot: u32) -> Option<Payload> {
        self.payloads.remove(&slot)
    }

    /// Duplicate the attachment of a packet, for a copy of it.
    pub fn duplicate(&mut self, slot: u32) -> u32 {
        if slot == NO_ATTACHMENT {
            return NO_ATTACHMENT;
        }
        match self.payloads.get(&slot).cloned() {
            Some(payload) => self.insert_payload(payload),
            None => self.insert(self.get(slot)),
        }
    }

    /// Remove the blocks of a packet that has arrived. A captured packet has a slot even if it has no blocks.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Option<Blocks> {
        if slot == NO_ATTACHMENT {
            return None;
        }
        self.free.push(slot);
        let blocks = self.slots[slot as usize].0;
        (!blocks.is_empty()).then_some(blocks)
    }

    /// Discard all that a packet carries which is lost.
    pub fn discard(&mut self, slot: u32) {
        self.take_payload(slot);
        self.remove(slot);
    }
}
