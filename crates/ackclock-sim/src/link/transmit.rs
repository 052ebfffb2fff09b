//! Transmission: a packet enters the propagation delay as soon as its transmission starts.
//!
//! Its departure is known by then. On a link without a propagation delay it is held until its transmission ends. With
//! one, a link whose queue is empty has no event: a packet that finds it idle costs one event per hop, its arrival.
//! Behind a token bucket packets enter the propagation delay when they leave.
//!
//! A FIFO with a limit has no event either while packets wait: order and times of departures are fixed at the
//! arrival of each. So transmissions are computed lazily, with the times at which they happened: before a packet
//! arrives, when one has propagated, before counts are read. While a packet waits, another is in propagation,
//! and when that one arrives the next has long started.

use ackclock_core::Time;

use super::Link;
use crate::packet::Packet;

impl Link {
    /// True if a packet would find the link idle and can bypass the queue.
    #[inline(always)]
    pub fn is_idle(&self, now: Time) -> bool {
        self.can_bypass && self.busy_until <= now && self.queued_packets == 0
    }

    /// Transmit a packet that finds the link idle. Returns its arrival if it is the first in propagation, else
    /// [`Time::NEVER`].
    #[inline(always)]
    pub fn bypass(&mut self, packet: Packet, now: Time) -> Time {
        debug_assert!(self.is_idle(now));
        let bytes = packet.wire_bytes + self.frame_overhead;
        let duration = self.duration(bytes, now);
        self.bypassed.add(bytes, duration);
        self.transmitting_bytes = bytes;
        self.busy_until = now + duration;
        self.propagation.push(packet, self.busy_until)
    }

    /// Transmit the packets whose transmission has started by `now`, each at its time. Returns when the first one
    /// arrives if none was in propagation, else [`Time::NEVER`].
    #[inline(always)]
    pub fn catch_up(&mut self, now: Time) -> Time {
        if !self.is_lazy || self.queued_packets == 0 || self.busy_until > now {
            return Time::NEVER;
        }
        self.transmit_until(now)
    }

    /// Transmit until `now`. While a packet waits, another is in propagation, so only the first can be the first there.
    #[inline(always)]
    fn transmit_until(&mut self, now: Time) -> Time {
        let arrival = self.transmit::<true>(self.busy_until).arrival;
        while self.queued_packets > 0 && self.busy_until <= now {
            self.transmit::<true>(self.busy_until);
        }
        arrival
    }

    /// Start the transmission of a packet, which ends at `done`. Returns its arrival if it is the first in propagation,
    /// else [`Time::NEVER`].
    #[inline(always)]
    pub(super) fn start_transmission<const PROPAGATES: bool>(
        &mut self,
        packet: Packet,
        done: Time,
    ) -> Time {
        let bytes = packet.wire_bytes + self.frame_overhead;
        self.busy_until = done;
        self.transmitting_bytes = bytes;
        self.counters.departed += 1;
        self.counters.departed_bytes += u64::from(bytes);
        if PROPAGATES {
            return self.propagation.push(packet, done);
        }
        self.propagation.hold(packet);
        Time::NEVER
    }

    /// Time of the next poll of a link whose transmitter is busy. The end of a transmission is an event where there is
    /// no propagation delay, and a lazy link needs no poll.
    #[inline(always)]
    pub(super) fn next_poll<const PROPAGATES: bool>(&self) -> Time {
        if !PROPAGATES || self.is_lazy || self.queued_packets == 0 {
            return Time::NEVER;
        }
        self.busy_until
    }

    /// Packets in the queue.
    #[inline]
    pub fn waiting_in_queue(&self) -> u32 {
        self.queued_packets
    }

    /// Start of the next transmission on a lazy link, which has no event; [`Time::NEVER`] if no packet waits.
    #[inline]
    pub fn next_lazy_start(&self) -> Time {
        if self.is_lazy && self.queued_packets > 0 {
            self.busy_until
        } else {
            Time::NEVER
        }
    }

    /// End of the last transmission.
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }
}
