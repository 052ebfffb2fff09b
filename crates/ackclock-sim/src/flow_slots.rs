//! Slots, in which the state of a flow is kept.
//!
//! The flows of a plan and its UDP sources have their number as their slot for the whole run.
//! A generated transfer gets a slot as soon as its start time is drawn and releases it when it has ended, so there
//! are as many slots as concurrent flows, not as flows of the run.
//!
//! Packets carry a flow's number. Pages of `PAGE` consecutive numbers map numbers to slots; a page exists
//! while one of its flows has a slot.

/// Numbers on a page: concurrent transfers have numbers close to each other, or are few.
const PAGE: usize = 256;

/// No slot.
const NO_SLOT: u32 = u32::MAX;

/// Slots of the flows.
#[derive(Debug)]
pub struct FlowSlots {
    /// Flows that have their number as their slot.
    fixed: usize,
    /// Flow number, by slot.
    numbers: Vec<u32>,
    /// Released slots.
    free: Vec<u32>,
    pages: Vec<Option<Box<Page>>>,
}

#[derive(Debug)]
struct Page {
    slots: [u32; PAGE],
    taken: usize,
}

impl Page {
    const EMPTY: Page = Page {
        slots: [NO_SLOT; PAGE],
        taken: 0,
    };
}

impl FlowSlots {
    /// Slots of `fixed` flows that keep theirs for the whole run.
    pub fn new(fixed: usize) -> FlowSlots {
        FlowSlots {
            fixed,
            numbers: (0..fixed as u32).collect(),
            free: Vec::new(),
            pages: Vec::new(),
        }
    }

    /// Number of slots, taken or free.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Slot of a flow; greater than every slot if it has none.
    #[inline(always)]
    pub fn slot_of(&self, flow: u32) -> usize {
        if (flow as usize) < self.fixed {
            flow as usize
        } else {
            self.lookup(flow)
        }
    }

    #[inline]
    fn lookup(&self, flow: u32) -> usize {
        let (page, line) = (flow as usize / PAGE, flow as usize % PAGE);
        let page = self.pages.get(page).and_then(Option::as_deref);
        page.map_or(NO_SLOT, |page| page.slots[line]) as usize
    }

    /// Number of the flow that has a slot, or had it last.
    #[inline]
    pub fn number(&self, slot: usize) -> u32 {
        self.numbers[slot]
    }

    /// Assign a slot to a transfer that has none.
    pub fn assign(&mut self, flow: u32) -> usize {
        let slot = self.free.pop().unwrap_or(self.numbers.len() as u32);
        if slot as usize == self.numbers.len() {
            self.numbers.push(flow);
        }
        self.numbers[slot as usize] = flow;
        let (page, line) = (flow as usize / PAGE, flow as usize % PAGE);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new(Page::EMPTY));
        page.slots[line] = slot;
        page.taken += 1;
        slot as usize
    }

    /// Release the slot of a transfer that has ended.
    pub fn release(&mut self, slot: usize) {
        let flow = self.numbers[slot] as usize;
        if let Some(page) = &mut self.pages[flow / PAGE] {
            page.slots[flow % PAGE] = NO_SLOT;
            page.taken -= 1;
            if page.taken == 0 {
                self.pages[flow / PAGE] = None;
            }
        }
        self.free.push(slot as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_the_plan_keep_their_slots_and_transfers_share_slots() {
        let mut slots = FlowSlots::new(2);
        assert_eq!((slots.slot_of(1), slots.count()), (1, 2));
        let (first, second) = (slots.assign(2), slots.assign(1_000_000));
        assert_eq!((first, second), (2, 3));
        assert_eq!((slots.slot_of(1_000_000), slots.number(3)), (3, 1_000_000));
        slots.release(first);
        assert!(slots.slot_of(2) >= slots.count());
        assert_eq!(slots.assign(3), first);
        assert_eq!(
            (slots.slot_of(3), slots.slot_of(2) >= slots.count()),
            (first, true)
        );
    }

    #[test]
    fn pages_last_as_long_as_their_transfers() {
        let mut slots = FlowSlots::new(0);
        for flow in 0..100 * PAGE as u32 {
            let slot = slots.assign(flow);
            assert!(slot < 3, "of flow {flow}");
            if flow >= 2 {
                slots.release(slots.slot_of(flow - 2));
            }
        }
        assert!(slots.pages.iter().flatten().count() <= 2);
    }
}
