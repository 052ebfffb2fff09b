//! SACK blocks of the ACKs on their way.
//!
//! Most ACKs have none, so packets carry only the name of a place where theirs wait.

use crate::options::Blocks;
use crate::packet::NO_SACK;

/// The blocks by name, a packet's `sack`.
#[derive(Default)]
pub struct SackStore {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// One cache line: many wait here, and come back long after they were written.
#[repr(align(64))]
struct Slot(Blocks);

impl SackStore {
    /// Keeps the blocks of an ACK that sets off; returns their name.
    pub fn insert(&mut self, blocks: Blocks) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize].0 = blocks;
            slot
        } else {
            self.slots.push(Slot(blocks));
            (self.slots.len() - 1) as u32
        }
    }

    /// The blocks of a packet under way; none if it has no place.
    pub fn get(&self, slot: u32) -> Blocks {
        self.slots
            .get(slot as usize)
            .map_or(Blocks::default(), |slot| slot.0)
    }

    /// Keeps what a packet carries a second time, for a copy of it.
    pub fn duplicate(&mut self, slot: u32) -> u32 {
        if slot == NO_SACK {
            return NO_SACK;
        }
        self.insert(self.get(slot))
    }

    /// Takes the blocks of a packet that has arrived, or is lost. A packet that is captured has a place even if it has
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
