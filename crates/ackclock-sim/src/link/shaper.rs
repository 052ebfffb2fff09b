//! Shapers that replace a transmitter: a token bucket, or the delivery opportunities of a trace.
//!
//! The bucket is as those of `tc` (htb, tbf). A packet leaves as soon as the bucket is not overdrawn, in no time, and may
//! overdraw it. In a busy period each packet so leaves up to a burst and a packet earlier than a transmitter of the same
//! rate would have sent it, and out of an idle link several leave together.

use ackclock_core::{Rate, Time};
use ackclock_plan::{CoursePlan, LinkPlan};

use super::opportunities::Opportunities;
use crate::delay_queue::DelayQueue;
use crate::packet::Packet;

/// Distance between packets that leave together, so that each is a separate event.
pub const APART: Time = Time::from_picoseconds(1);

/// A shaper, with the admitted packets that have not left yet.
#[derive(Debug)]
pub struct Shaper {
    law: Law,
    passing: DelayQueue,
}

/// Rule by which packets are admitted.
#[derive(Debug)]
enum Law {
    Bucket(Bucket),
    Opportunities(Opportunities),
}

impl Shaper {
    /// Shaper of a link; `None` if it has a transmitter.
    pub fn of(plan: &LinkPlan) -> Option<Shaper> {
        let law = if let Some(bytes) = plan.burst_bytes {
            Law::Bucket(Bucket::new(bytes, plan.rate))
        } else {
            let trace = plan.trace.as_ref()?;
            let CoursePlan::Opportunities { at_ms, bytes } = &trace.course else {
                return None;
            };
            let bytes = u64::from(bytes + plan.frame_overhead_bytes);
            Law::Opportunities(Opportunities::new(at_ms, trace.period, bytes))
        };
        let passing = DelayQueue::default();
        Some(Shaper { law, passing })
    }

    /// Set the rate of a token bucket.
    pub fn set_rate(&mut self, rate: Rate) {
        if let Law::Bucket(bucket) = &mut self.law {
            bucket.set_rate(rate);
        }
    }

    /// Time, past or future, from which on the next packet may be admitted.
    pub fn ready(&mut self, now: Time) -> Time {
        match &mut self.law {
            Law::Bucket(bucket) => bucket.filled,
            Law::Opportunities(opportunities) => opportunities.ready(now),
        }
    }

    /// Admit a packet; `cost` is its transmission time.
    pub fn push(&mut self, packet: Packet, cost: Time, now: Time) {
        let due = match &mut self.law {
            Law::Bucket(bucket) => bucket.take(cost, now),
            Law::Opportunities(opportunities) => opportunities.take(packet.wire_bytes, now),
        };
        self.passing.append(due, packet);
    }

    /// Remove the packet that leaves now.
    pub fn pop(&mut self, now: Time) -> Option<Packet> {
        let (_, packet) = (self.passing.first_due() <= now).then(|| self.passing.pop())??;
        Some(packet)
    }

    /// Departure of the next admitted packet, if there is one.
    pub fn next(&self, now: Time) -> Option<Time> {
        (!self.passing.is_empty()).then(|| self.passing.first_due().max(now + APART))
    }

    /// Admitted packets that have not left.
    pub fn len(&self) -> u64 {
        self.passing.len() as u64
    }

    /// Wire bits that can leave up to a time, if that follows a trace.
    pub fn capacity_bits(&self, until: Time) -> Option<f64> {
        match &self.law {
            Law::Bucket(_) => None,
            Law::Opportunities(opportunities) => Some(opportunities.capacity_bits(until)),
        }
    }
}

/// A token bucket.
#[derive(Debug)]
struct Bucket {
    burst_bytes: u64,
    /// The burst, as the time in which it is earned.
    burst: Time,
    /// Time, past or future, from which on the bucket is not overdrawn.
    filled: Time,
}

impl Bucket {
    /// A full bucket.
    fn new(burst_bytes: u64, rate: Rate) -> Bucket {
        Bucket {
            burst_bytes,
            burst: rate.transmission_time(burst_bytes),
            filled: Time::ZERO,
        }
    }

    /// Set the rate. Tokens and debts stay the same in units of time.
    fn set_rate(&mut self, rate: Rate) {
        self.burst = rate.transmission_time(self.burst_bytes);
    }

    /// Take the tokens of a packet, given as its transmission time; returns its departure, which is immediate.
    fn take(&mut self, cost: Time, now: Time) -> Time {
        let full = now.picoseconds().saturating_sub(self.burst.picoseconds());
        self.filled = self.filled.max(Time::from_picoseconds(full)) + cost;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::testing::packet;

    fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    /// 8 Mb/s: 1000 bytes are worth a millisecond.
    fn bucket(burst_bytes: u64) -> Bucket {
        Bucket::new(burst_bytes, Rate::from_bits_per_second(8e6))
    }

    #[test]
    fn a_full_bucket_lets_packets_through_until_it_is_overdrawn() {
        let mut bucket = bucket(1600);
        let mut bypassed = 0;
        while bucket.filled <= ms(100) {
            bucket.take(ms(1), ms(100));
            bypassed += 1;
        }
        assert_eq!(
            bypassed, 2,
            "1600 - 1000 = 600 is not overdrawn, 600 - 1000 is"
        );
        assert_eq!(bucket.filled, ms(100) + Time::from_microseconds(400));
    }

    #[test]
    fn tokens_above_the_burst_are_lost() {
        let mut bucket = bucket(0);
        bucket.take(ms(1), ms(50));
        assert!(bucket.filled > ms(50));
        assert!(bucket.filled <= ms(51));
        bucket.take(ms(1), ms(80));
        assert_eq!(bucket.filled, ms(81));
    }

    #[test]
    fn packets_leave_in_order_one_after_the_other() {
        let mut shaper = Shaper {
            law: Law::Bucket(bucket(5000)),
            passing: DelayQueue::default(),
        };
        for sequence in 0..3 {
            shaper.push(packet(sequence, 1000), ms(1), ms(9));
        }
        assert_eq!(shaper.next(ms(9)), Some(ms(9) + APART));
        let order: Vec<u64> = std::iter::from_fn(|| shaper.pop(ms(9)))
            .map(|p| p.sequence)
            .collect();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(shaper.next(ms(9)), None);
    }

    /// 1000 bytes at 2, 2, 5 and 10 ms.
    #[test]
    fn packets_leave_in_order_at_their_opportunities() {
        let opportunities = Opportunities::new(&[2, 2, 5, 10], ms(10), 1000);
        let mut shaper = Shaper {
            law: Law::Opportunities(opportunities),
            passing: DelayQueue::default(),
        };
        for bytes in [1000, 500, 1000] {
            shaper.push(packet(u64::from(bytes), bytes), ms(1), ms(2));
        }
        assert_eq!(shaper.next(ms(2)), Some(ms(2) + APART));
        assert!(shaper.pop(ms(2) + APART).is_some());
        assert!(shaper.pop(ms(2) + APART + APART).is_some());
        assert_eq!(shaper.next(ms(3)), Some(ms(5)));
        assert!(shaper.pop(ms(4)).is_none());
        assert_eq!((shaper.len(), shaper.pop(ms(5)).is_some()), (1, true));
    }
}
