//! A packet is launched as soon as its transmission begins: it goes into what is behind the link.
//!
//! When it will have left is known by then. Without a flight it stays there until it has. With one, a link whose queue
//! is empty needs no event of its own: a packet that finds it idle costs one event a hop, its arrival. Behind a token
//! bucket packets are launched when they leave.
//!
//! A FIFO with a limit needs no event either when packets wait: who leaves next, and when, is settled with the
//! arrival of each. So it is reckoned up when somebody looks, at the times at which it happened: before a packet
//! arrives, when one has flown, before the counts are read. As long as a packet waits there is one in the flight,
//! and when that one arrives the next has long been launched.

use ackclock_core::Time;

use super::Link;
use crate::packet::Packet;

impl Link {
    /// Whether a packet would find the link idle, and pass it as if it had no queue.
    #[inline(always)]
    pub fn is_idle(&self, now: Time) -> bool {
        self.can_bypass && self.busy_until <= now && self.queued_packets == 0
    }

    /// A packet finds the link idle. Returns when it arrives if it is the first in the flight; else [`Time::NEVER`].
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

    /// Launches the packets whose transmission has begun by `now`, each at its time. Returns when the first one
    /// arrives if the flight was empty; else [`Time::NEVER`].
    #[inline(always)]
    pub fn catch_up(&mut self, now: Time) -> Time {
        if !self.is_lazy || self.queued_packets == 0 || self.busy_until > now {
            return Time::NEVER;
        }
        self.transmit_until(now)
    }

    /// As long as a packet waits there is one in the flight, so only the first that is launched can be first there.
    #[inline(always)]
    fn transmit_until(&mut self, now: Time) -> Time {
        let arrival = self.transmit::<true>(self.busy_until).arrival;
        while self.queued_packets > 0 && self.busy_until <= now {
            self.transmit::<true>(self.busy_until);
        }
        arrival
    }

    /// A packet with its frame is launched, to leave the transmitter at `done`. Returns when it arrives if it is the
    /// first in its flight; else [`Time::NEVER`].
    #[inline(always)]
    pub(super) fn start_transmission(&mut self, mut packet: Packet, done: Time) -> Time {
        self.busy_until = done;
        self.transmitting_bytes = packet.wire_bytes;
        self.counters.departed += 1;
        self.counters.departed_bytes += u64::from(packet.wire_bytes);
        packet.wire_bytes -= self.frame_overhead;
        self.propagation.push(packet, done)
    }

    /// When somebody is to look at a link whose transmitter is busy. The end of a transmission is an event where there is
    /// no flight, and a lazy link needs none.
    #[inline(always)]
    pub(super) fn next_poll<const FLIGHT: bool>(&self) -> Time {
        if !FLIGHT || self.is_lazy || self.queued_packets == 0 {
            return Time::NEVER;
        }
        self.busy_until
    }

    /// Until when the launched packet is in transmission.
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }
}
