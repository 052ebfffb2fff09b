//! Packets in a delay, in the order of their arrival.
//!
//! There is one before a link and on the way home, behind a link's transmitter, in its shaper and in an impairment.

use std::collections::VecDeque;

use ackclock_core::Time;

use crate::packet::Packet;

/// Packets, or what else a delay holds, each with the time of its arrival.
#[derive(Debug)]
pub struct DelayQueue<T = Packet>(VecDeque<(Time, T)>);

impl<T> Default for DelayQueue<T> {
    fn default() -> DelayQueue<T> {
        DelayQueue(VecDeque::new())
    }
}

impl<T: Copy> DelayQueue<T> {
    /// Arrival of the first packet; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn first_due(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |&(due, _)| due)
    }

    /// Arrival of the last packet, if there is one.
    #[inline(always)]
    pub fn last_due(&self) -> Option<Time> {
        self.0.back().map(|&(due, _)| due)
    }

    /// The last packet.
    pub fn last(&self) -> Option<&T> {
        self.0.back().map(|(_, packet)| packet)
    }

    /// Add a packet that overtakes none.
    #[inline(always)]
    pub fn append(&mut self, due: Time, packet: T) {
        self.0.push_back((due, packet));
    }

    /// Add a packet behind all that arrive no later than it.
    #[cold]
    pub fn insert(&mut self, due: Time, packet: T) -> bool {
        let slot = self.0.partition_point(|&(time, _)| time <= due);
        self.0.insert(slot, (due, packet));
        slot == 0
    }

    /// Take the first packet, with its time.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.0.pop_front()
    }

    /// Take the last packet.
    pub fn pop_last(&mut self) -> Option<T> {
        self.0.pop_back().map(|(_, packet)| packet)
    }

    /// Packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl DelayQueue {
    /// Add a packet; returns whether it is now the first to arrive. A packet that starts ahead of the clock may be
    /// overtaken by one that does not, so a later one may have to go before it.
    #[inline(always)]
    pub fn push(&mut self, due: Time, packet: Packet) -> bool {
        if self.last_due().is_some_and(|last| last > due) {
            return self.insert(due, packet.entering(due));
        }
        self.append(due, packet);
        self.len() == 1
    }
}
