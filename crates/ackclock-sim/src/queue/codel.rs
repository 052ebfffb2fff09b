//! `codel`: controlled delay. Packets are dropped (or marked) at the head of the queue while the delay
//! has stayed above a target for an interval, ever more often until it falls below.
//!
//! K. Nichols, V. Jacobson, A. McGregor, J. Iyengar: Controlled Delay Active Queue Management, RFC 8289;
//! behaviour and defaults as `tc-codel(8)` in Linux 6.1.
//!
//! Deviations: the RFC's 1/√count is followed by one Newton step per drop, as Linux does (`newton = false`:
//! exact). The steps lag behind: the second interval is 0.5 and not 0.71 of the first. Linux keeps 16 bits
//! of it and counts time in units of 1.024 µs; here both are exact. Where a Newton step would leave the
//! positive numbers (after many drops immediately in `fq_codel`), the exact value is taken.
//!
//! ```text
//!             above target for an interval: drop, count anew or carried over
//!   waiting ──────────────────────────────────────────────────────────────▶ dropping ─┐ drop_next reached:
//!      ▲                                                                       │  ▲   │ count + 1, drop,
//!      └── sojourn time below target, or no more than one packet queued ───────┘  └───┘ drop_next += interval/√count
//! ```

use ackclock_core::Time;
use serde::de::Error as _;
use serde::Deserialize;
use serde_json::Value;

use crate::packet::{Ecn, Packet};
use crate::queue::fifo::Fifo;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

/// A queue with no more than this is never above the target: an Ethernet packet with its link header,
/// which is what Linux takes from the device. A longer packet that was seen replaces it (RFC 8289 section 5.5).
const MAX_PACKET_BYTES: u32 = 1514;
/// After that many intervals without a drop the count starts anew (RFC 8289 section 5).
const MEMORY_INTERVALS: f64 = 16.0;

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Packets that fit.
    limit_packets: u32,
    /// Target delay.
    target_s: f64,
    /// Time for which the delay may exceed the target before the first drop.
    interval_s: f64,
    /// True if packets of ECN-capable transports are marked instead of dropped.
    ecn: bool,
    /// Delay above which every packet is marked.
    ce_threshold_s: Option<f64>,
    /// True if 1/√count is approximated by Newton steps.
    newton: bool,
}

/// A FIFO under CoDel.
#[derive(Debug)]
pub struct Codel {
    limit_packets: usize,
    law: Law,
    control: Control,
    packets: Fifo,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let given = Parameters::deserialize(parameters)?;
    let law = Law::new(given.target_s, given.interval_s)?
        .marking(given.ecn, given.ce_threshold_s)?
        .with_newton(given.newton);
    Ok(Queue::other(Codel::new(given.limit_packets, law)?))
}

impl Codel {
    /// An empty queue.
    pub fn new(limit_packets: u32, law: Law) -> Result<Codel, serde_json::Error> {
        require(limit_packets > 0, "limit_packets must be at least 1")?;
        Ok(Codel {
            limit_packets: limit_packets as usize,
            law,
            control: Control::default(),
            packets: Fifo::default(),
        })
    }
}

impl Discipline for Codel {
    fn enqueue(&mut self, packet: Packet, _now: Time, drops: &mut Drops) {
        if self.packets.len() < self.limit_packets {
            self.packets.push(packet);
        } else {
            drops.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops) -> Option<Packet> {
        self.control
            .dequeue(&self.law, &mut self.packets, now, drops)
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }
}

/// Source of packets for CoDel.
pub trait Source {
    /// The first packet.
    fn pop(&mut self) -> Option<Packet>;
    /// Wire bytes that wait.
    fn bytes(&self) -> u64;
}

impl Source for Fifo {
    fn pop(&mut self) -> Option<Packet> {
        Fifo::pop(self)
    }

    fn bytes(&self) -> u64 {
        Fifo::bytes(self)
    }
}

/// Settings of CoDel.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    target: Time,
    interval: Time,
    ecn: bool,
    ce_threshold: Time,
    newton: bool,
}

impl Law {
    /// Settings that drop, with exact square roots.
    pub fn new(target_s: f64, interval_s: f64) -> Result<Law, serde_json::Error> {
        Ok(Law {
            target: positive("target_s", target_s)?,
            interval: positive("interval_s", interval_s)?,
            ecn: false,
            ce_threshold: Time::NEVER,
            newton: false,
        })
    }

    /// Marks instead of drops, and above a delay of `ce_threshold_s` always.
    pub fn marking(self, ecn: bool, ce_threshold_s: Option<f64>) -> Result<Law, serde_json::Error> {
        let ce_threshold = match ce_threshold_s {
            Some(seconds) => positive("ce_threshold_s", seconds)?,
            None => Time::NEVER,
        };
        Ok(Law {
            ecn,
            ce_threshold,
            ..self
        })
    }

    /// True if 1/√count is approximated by Newton steps.
    #[must_use]
    pub fn with_newton(self, newton: bool) -> Law {
        Law { newton, ..self }
    }

    /// Mark a packet that waited for longer than the threshold.
    #[inline]
    fn past_threshold(&self, mut packet: Packet, now: Time, drops: &mut Drops) -> Packet {
        if now.since(packet.enqueued) > self.ce_threshold && packet.ecn() != Ecn::Ce {
            drops.mark(&mut packet);
        }
        packet
    }
}

/// Convert a parameter to a positive time.
fn positive(name: &str, seconds: f64) -> Result<Time, serde_json::Error> {
    let time = Time::from_seconds(seconds);
    if seconds.is_finite() && time > Time::ZERO {
        return Ok(time);
    }
    Err(serde_json::Error::custom(format!(
        "{name} must be above 0, found {seconds}"
    )))
}

/// The state of one controlled queue. Names as in RFC 8289 section 5.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    /// Time at which the delay will have been above the target for an interval; zero while it is below.
    first_above_time: Time,
    /// Time of the next drop, or of the one that would have followed the last.
    drop_next: Time,
    /// 1/√count, or what Newton steps have made of it.
    inverse_root: f64,
    /// Drops since the dropping state was entered, and what was carried over.
    count: u32,
    /// Value of `count` at that time.
    lastcount: u32,
    /// The longest packet seen, at least [`MAX_PACKET_BYTES`].
    maxpacket: u32,
    dropping: bool,
}

impl Default for Control {
    fn default() -> Control {
        Control {
            first_above_time: Time::ZERO,
            drop_next: Time::ZERO,
            inverse_root: 1.0,
            count: 0,
            lastcount: 0,
            maxpacket: MAX_PACKET_BYTES,
            dropping: false,
        }
    }
}

impl Control {
    /// Take the packet to send next; drops or marks others first (RFC 8289 section 5.5, `deque`).
    #[inline]
    pub fn dequeue(
        &mut self,
        law: &Law,
        queue: &mut impl Source,
        now: Time,
        drops: &mut Drops,
    ) -> Option<Packet> {
        let packet = self.take(queue)?;
        if self.ok_to_drop(law, &packet, queue.bytes(), now) {
            return self.drop_if_due(law, packet, queue, now, drops);
        }
        self.dropping = false;
        Some(law.past_threshold(packet, now, drops))
    }

    /// Count packets that others dropped, to signal more strongly next time.
    pub fn strengthen(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// The head of the queue. An empty queue is not above the target.
    #[inline]
    fn take(&mut self, queue: &mut impl Source) -> Option<Packet> {
        let packet = queue.pop();
        if packet.is_none() {
            self.first_above_time = Time::ZERO;
            self.dropping = false;
        }
        packet
    }

    /// True if the delay has been above the target for an interval (RFC 8289 section 5.6, `dodequeue`).
    /// `bytes` are left behind the packet.
    #[inline]
    fn ok_to_drop(&mut self, law: &Law, packet: &Packet, bytes: u64, now: Time) -> bool {
        self.maxpacket = self.maxpacket.max(packet.wire_bytes);
        if now.since(packet.enqueued) < law.target || bytes <= u64::from(self.maxpacket) {
            self.first_above_time = Time::ZERO;
            return false;
        }
        if self.first_above_time == Time::ZERO {
            self.first_above_time = now + law.interval;
            return false;
        }
        now >= self.first_above_time
    }

    /// Drop if a drop is due; the delay has been above the target for an interval.
    #[cold]
    fn drop_if_due(
        &mut self,
        law: &Law,
        packet: Packet,
        queue: &mut impl Source,
        now: Time,
        drops: &mut Drops,
    ) -> Option<Packet> {
        let left = if self.dropping {
            self.next_drops(law, packet, queue, now, drops)
        } else {
            self.first_drop(law, packet, queue, now, drops)
        };
        left.map(|packet| law.past_threshold(packet, now, drops))
    }

    /// Enter the dropping state. If that was left a short time ago, it resumes with the drop rate
    /// of that time.
    fn first_drop(
        &mut self,
        law: &Law,
        mut packet: Packet,
        queue: &mut impl Source,
        now: Time,
        drops: &mut Drops,
    ) -> Option<Packet> {
        let left = if law.ecn && drops.mark(&mut packet) {
            Some(packet)
        } else {
            drops.push(packet);
            let next = self.take(queue);
            if let Some(next) = &next {
                self.ok_to_drop(law, next, queue.bytes(), now);
            }
            next
        };
        self.dropping = true;
        let since_entered = self.count.saturating_sub(self.lastcount);
        let recent = now < self.drop_next + law.interval.scaled(MEMORY_INTERVALS);
        if since_entered > 1 && recent {
            self.count = since_entered;
            self.refine(law);
        } else {
            self.count = 1;
            self.inverse_root = 1.0;
        }
        self.lastcount = self.count;
        self.drop_next = self.control_law(law, now);
        left
    }

    /// Drop until the next drop is in the future or the delay is below the target.
    fn next_drops(
        &mut self,
        law: &Law,
        mut packet: Packet,
        queue: &mut impl Source,
        now: Time,
        drops: &mut Drops,
    ) -> Option<Packet> {
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.refine(law);
            if law.ecn && drops.mark(&mut packet) {
                self.drop_next = self.control_law(law, self.drop_next);
                break;
            }
            drops.push(packet);
            packet = self.take(queue)?;
            self.dropping = self.ok_to_drop(law, &packet, queue.bytes(), now);
            if self.dropping {
                self.drop_next = self.control_law(law, self.drop_next);
            }
        }
        Some(packet)
    }

    /// `t + interval / √count` (RFC 8289 section 5, `control_law`).
    fn control_law(&self, law: &Law, t: Time) -> Time {
        t + law.interval.scaled(self.inverse_root)
    }

    /// Bring 1/√count up to a new count: x ← x (3 − count x²) / 2 approaches it.
    fn refine(&mut self, law: &Law) {
        let count = f64::from(self.count);
        let x = self.inverse_root;
        let step = 0.5 * x * (3.0 - count * x * x);
        self.inverse_root = if law.newton && step > 0.0 {
            step
        } else {
            count.sqrt().recip()
        };
    }
}

#[cfg(test)]
mod tests;
