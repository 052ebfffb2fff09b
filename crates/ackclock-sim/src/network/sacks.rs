//! SACK blocks of the ACKs in transit.
//!
//! Most ACKs have none, so packets carry only the index of a slot that stores theirs.

use crate::options::Blocks;
use crate::packet::NO_SACK;

/// Blocks by slot, a packet's `sack`.
#[derive(Default)]
pub struct SackStore {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// One cache line, since blocks are read long after they were written.
#[repr(align(64))]
struct Slot(Blocks);

impl SackStore {
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

    /// Blocks of a packet in transit; none if it has no slot.
    pub fn get(&self, slot: u32) -> Blocks {
        self.slots
            .get(slot as usize)
            .map_or(Blocks::default(), |slot| slot.0)
    }

    /// Duplicate the blocks of a packet, for a copy of it.
    pub fn duplicate(&mut self, slot: u32) -> u32 {
        if slot == NO_SACK {
            return NO_SACK;
        }
        self.insert(self.get(slot))
    }

    /// Remove the blocks of a packet that has arrived or is lost. A captured packet has a slot even if it has
    /// no blocks.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Option<Blocks> {
        if slot == NO_SACK {
            return None;
        }
        self.free.push(slot);
        let blocks = self.slots[slot as usize].0;
        (!blocks.is_empty()).then_some(blocks)
    }
}
