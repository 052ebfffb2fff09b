//! A link in front of a flight: a packet goes into the flight as soon as its transmission begins.
//!
//! When it will have left is known by then, so a link whose queue is empty needs no event of its own: a
//! packet that finds it idle costs one event a hop, its arrival. Behind a token bucket or a discipline that
//! holds packets back, packets are launched when they leave.
//!
//! A FIFO with a limit needs no event either when packets wait: who leaves next, and when, is settled with the
//! arrival of each. So it is reckoned up when somebody looks, at the times at which it happened: before a packet
//! arrives, when one has flown, before the counts are read. As long as a packet waits there is one in the flight,
//! and when that one arrives the next has long been launched.

use ackclock_units::Time;

use super::Link;
use crate::packet::Packet;

/// What became of a packet that was offered, and what the link does next.
#[derive(Clone, Copy, Debug)]
pub struct Launch {
    /// The packet whose transmission begins, and when it will have left.
    pub packet: Option<(Packet, Time)>,
    /// When the link is to be looked at again.
    pub revisit: Option<Time>,
}

impl Launch {
    const NOTHING: Launch = Launch {
        packet: None,
        revisit: None,
    };
}

impl Link {
    /// Whether a packet would find the link idle.
    #[inline(always)]
    pub fn is_idle(&self, now: Time) -> bool {
        self.is_plain && self.busy_until <= now && self.queued_packets == 0
    }

    /// A packet of so many bytes finds the link idle; returns when it will have left.
    #[inline(always)]
    pub fn pass(&mut self, bytes: u32, now: Time) -> Time {
        let bytes = bytes + self.frame_overhead;
        let duration = self.duration(bytes);
        self.passed += 1;
        self.passed_bytes += u64::from(bytes);
        self.busy += duration;
        self.launched_bytes = bytes;
        self.busy_until = now + duration;
        self.busy_until
    }

    /// Launches the packets whose transmission has begun by `now`, each at its time. Returns when the first one
    /// arrives if the flight was empty.
    #[inline(always)]
    pub fn catch_up(&mut self, now: Time) -> Option<Time> {
        let mut first_due = None;
        while self.is_lazy && self.queued_packets > 0 && self.busy_until <= now {
            let begin = self.busy_until;
            let Some((packet, duration)) = self.take(begin) else {
                break;
            };
            let (packet, done) = self.launch(packet, begin + duration);
            first_due = first_due.or(self.propagation.push(packet, done));
        }
        first_due
    }

    /// Whether packets are launched when somebody looks.
    #[inline(always)]
    pub fn is_lazy(&self) -> bool {
        self.is_lazy
    }

    /// Offers a packet to a lazy link; returns when the first packet of the flight arrives if that was empty.
    ///
    /// # Errors
    /// The packet itself, if it is lost before it comes to the queue.
    #[inline]
    pub fn admit_lazily(&mut self, mut packet: Packet, now: Time) -> Result<Option<Time>, Packet> {
        self.catch_up(now);
        if self.is_idle(now) {
            let done = self.pass(packet.wire_bytes, now);
            return Ok(self.propagation.push(packet, done));
        }
        self.counters.arrived += 1;
        if self.obstructed && self.loses(packet.for_record()) {
            return Err(packet);
        }
        packet.wire_bytes += self.frame_overhead;
        self.enter(packet.wire_bytes, now);
        self.queue.enqueue(packet, now, &mut self.drops);
        self.settle_drops(now);
        if self.busy_until > now {
            return Ok(None);
        }
        self.busy_until = now;
        Ok(self.catch_up(now))
    }

    /// Offers a packet; `None` if it is lost.
    #[inline]
    pub fn admit(&mut self, mut packet: Packet, now: Time) -> Option<Launch> {
        if self.is_idle(now) {
            let done = self.pass(packet.wire_bytes, now);
            return Some(Launch {
                packet: Some((packet, done)),
                revisit: None,
            });
        }
        self.counters.arrived += 1;
        if self.obstructed && self.loses(packet.for_record()) {
            return None;
        }
        packet.wire_bytes += self.frame_overhead;
        self.enter(packet.wire_bytes, now);
        self.queue.enqueue(packet, now, &mut self.drops);
        self.settle_drops(now);
        Some(self.look(now))
    }

    /// A packet was queued, or the time has come at which the link was to be looked at.
    #[inline]
    pub fn look(&mut self, now: Time) -> Launch {
        if self.bucket.is_some() {
            return Launch {
                packet: None,
                revisit: self.begin(now),
            };
        }
        if self.queued_packets == 0 {
            return Launch::NOTHING;
        }
        if self.busy_until > now {
            return Launch {
                packet: None,
                revisit: Some(self.busy_until),
            };
        }
        let Some((packet, duration)) = self.take(now) else {
            return Launch {
                packet: None,
                revisit: self.wait(now),
            };
        };
        let launched = self.launch(packet, now + duration);
        Launch {
            packet: Some(launched),
            revisit: (self.queued_packets > 0).then_some(self.busy_until),
        }
    }

    #[inline(always)]
    fn launch(&mut self, mut packet: Packet, done: Time) -> (Packet, Time) {
        self.busy_until = done;
        self.launched_bytes = packet.wire_bytes;
        self.counters.departed += 1;
        self.counters.departed_bytes += u64::from(packet.wire_bytes);
        packet.wire_bytes -= self.frame_overhead;
        (packet, done)
    }

    /// The time has come at which the link was to be looked at.
    #[inline]
    pub fn resume(&mut self, now: Time) -> Launch {
        if self.bucket.is_none() {
            return self.look(now);
        }
        let (packet, revisit) = self.finish(now);
        Launch {
            packet: packet.map(|packet| (packet, now)),
            revisit,
        }
    }

    /// Until when the launched packet is in transmission.
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }
}
