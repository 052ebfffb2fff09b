//! Propagation delay behind a link's transmitter.

use ackclock_core::Time;
use ackclock_plan::LinkPlan;

use crate::delay_queue::DelayQueue;
use crate::packet::{Packet, NO_PACKET};

/// No node.
const NONE: u32 = u32::MAX;

/// Delay queue behind a link's transmitter, including the packet in transmission. All packets share it, on their way to
/// a node of the graph or to the next hop of their path. Without a propagation delay, a packet continues on its path as
/// soon as it has left the transmitter, and is the only one here.
///
/// The first packet lies here and not in a ring, so that it is fetched with the link: with thousands of
/// links neither is in the cache, and one after the other they would take twice the time.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Propagation {
    /// The first packet, if there is one.
    front: Packet,
    /// Arrival of the last packet, past or future.
    last_due: Time,
    /// The propagation delay.
    pub delay: Time,
    /// The node at its end, `u32::MAX` if it has none.
    pub end: u32,
    /// Packets in it, and the one in transmission.
    count: u32,
    /// All packets but the first, and when they arrive.
    others: DelayQueue,
    /// True if there is a propagation delay.
    pub exists: bool,
}

impl Propagation {
    /// Bytes of what each packet needs.
    #[cfg(test)]
    pub const HOT_BYTES: usize = std::mem::offset_of!(Propagation, others);

    /// Propagation delay of a link: one between nodes or with a delay has one.
    pub fn new(plan: &LinkPlan) -> Propagation {
        Propagation {
            front: NO_PACKET,
            last_due: Time::ZERO,
            delay: plan.delay,
            end: plan.ends.map_or(NONE, |ends| ends.destination),
            count: 0,
            others: DelayQueue::default(),
            exists: plan.ends.is_some() || plan.delay > Time::ZERO,
        }
    }

    /// True if no packet is in propagation or in transmission.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Packets in propagation and in transmission.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Add a packet that leaves the transmitter at `done`; it does not overtake those before it. Returns when it
    /// arrives if it is the first, else [`Time::NEVER`].
    #[inline(always)]
    pub fn push(&mut self, packet: Packet, done: Time) -> Time {
        let due = (done + self.delay).max(self.last_due);
        self.last_due = due;
        self.count += 1;
        if self.count == 1 {
            self.front = packet;
            return due;
        }
        self.others.append(due, packet);
        Time::NEVER
    }

    /// Hold the packet that is transmitted on a link without a propagation delay.
    #[inline(always)]
    pub fn hold(&mut self, packet: Packet) {
        debug_assert!(!self.exists && self.count == 0);
        self.front = packet;
        self.count = 1;
    }

    /// Take the packet that has been transmitted on a link without a propagation delay.
    #[inline(always)]
    pub fn release(&mut self) -> Option<Packet> {
        let held = std::mem::take(&mut self.count);
        (held > 0).then_some(self.front)
    }

    /// Take the first packet; also returns when the next one arrives, [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn pop(&mut self) -> (Packet, Time) {
        let packet = self.front;
        self.count -= 1;
        if self.count == 0 {
            return (packet, Time::NEVER);
        }
        (packet, self.advance())
    }

    #[inline]
    fn advance(&mut self) -> Time {
        let Some((due, packet)) = self.others.pop() else {
            return Time::NEVER;
        };
        self.front = packet;
        due
    }

    /// The last packet.
    pub fn last(&self) -> Option<&Packet> {
        let first = (self.count > 0).then_some(&self.front);
        self.others.last().or(first)
    }

    /// Take the last packet. `first_due`: when the first one arrives.
    pub fn pop_last(&mut self, first_due: Time) -> Option<Packet> {
        let packet = *self.last()?;
        self.others.pop_last();
        self.count -= 1;
        self.last_due = match (self.others.last_due(), self.count) {
            (Some(due), _) => due,
            (None, 0) => Time::ZERO,
            (None, _) => first_due,
        };
        Some(packet)
    }

    /// Set the delay, for packets that are still to leave the transmitter.
    pub fn set_delay(&mut self, delay: Time) {
        self.delay = delay;
    }

    // ---- a link between two parts of a divided network ----

    /// Let packets be taken by [`Propagation::take_cut`] and not arrive: a place-holder stays the first.
    pub fn cut(&mut self) {
        debug_assert!(self.exists && self.count == 0);
        self.front = NO_PACKET;
        self.count = 1;
    }

    /// Take the first packet of a cut link, with the time of its arrival.
    #[inline]
    pub fn take_cut(&mut self) -> Option<(Time, Packet)> {
        let first = self.others.pop()?;
        self.count -= 1;
        Some(first)
    }

    /// Add a packet of a cut link, which arrives at `due`. Returns that if it is the first, else [`Time::NEVER`].
    pub fn receive(&mut self, packet: Packet, due: Time) -> Time {
        self.count += 1;
        if self.count == 1 {
            self.front = packet;
            return due;
        }
        self.others.append(due, packet);
        Time::NEVER
    }
}
