//! A token bucket in a transmitter's place, as the shapers of `tc` (htb, tbf) are.
//!
//! A packet leaves as soon as the bucket is not overdrawn, in no time, and may overdraw it. In a busy period
//! each packet so leaves up to a burst and a packet earlier than a transmitter of the same rate would have sent it,
//! and out of an idle link several leave together.

use std::collections::VecDeque;

use ackclock_core::{Rate, Time};

use crate::packet::Packet;

/// Distance between packets that leave together, so that each is a separate event.
pub const APART: Time = Time::from_picoseconds(1);

/// The bucket, and the packets that have passed it but not left yet.
#[derive(Debug)]
pub struct Bucket {
    burst_bytes: u64,
    /// The burst, as the time in which it is earned.
    burst: Time,
    /// Time, past or future, from which on the bucket is not overdrawn.
    filled: Time,
    passing: VecDeque<Packet>,
}

impl Bucket {
    /// A full bucket.
    pub fn new(burst_bytes: u64, rate: Rate) -> Bucket {
        Bucket {
            burst_bytes,
            burst: rate.transmission_time(burst_bytes),
            filled: Time::ZERO,
            passing: VecDeque::new(),
        }
    }

    /// Set the rate. Tokens and debts stay the same in units of time.
    pub fn set_rate(&mut self, rate: Rate) {
        self.burst = rate.transmission_time(self.burst_bytes);
    }

    /// Time, past or future, from which on a packet may leave.
    pub fn filled(&self) -> Time {
        self.filled
    }

    /// Admit a packet; its cost is given as its transmission time.
    pub fn push(&mut self, packet: Packet, cost: Time, now: Time) {
        let full = now.picoseconds().saturating_sub(self.burst.picoseconds());
        self.filled = self.filled.max(Time::from_picoseconds(full)) + cost;
        self.passing.push_back(packet);
    }

    /// Remove the packet that leaves now.
    pub fn pop(&mut self) -> Option<Packet> {
        self.passing.pop_front()
    }

    /// Departure of the next admitted packet, if there is one.
    pub fn next(&self, now: Time) -> Option<Time> {
        (!self.passing.is_empty()).then(|| now + APART)
    }

    /// Admitted packets that have not left.
    pub fn len(&self) -> u64 {
        self.passing.len() as u64
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
        while bucket.filled() <= ms(100) {
            bucket.push(packet(bypassed, 1000), ms(1), ms(100));
            bypassed += 1;
        }
        assert_eq!(
            bypassed, 2,
            "1600 - 1000 = 600 is not overdrawn, 600 - 1000 is"
        );
        assert_eq!(bucket.filled(), ms(100) + Time::from_microseconds(400));
    }

    #[test]
    fn tokens_above_the_burst_are_lost() {
        let mut bucket = bucket(0);
        bucket.push(packet(0, 1000), ms(1), ms(50));
        assert!(bucket.filled() > ms(50));
        assert!(bucket.filled() <= ms(51));
        bucket.push(packet(1, 1000), ms(1), ms(80));
        assert_eq!(bucket.filled(), ms(81));
    }

    #[test]
    fn packets_leave_in_order_one_after_the_other() {
        let mut bucket = bucket(5000);
        for sequence in 0..3 {
            bucket.push(packet(sequence, 1000), ms(1), ms(9));
        }
        assert_eq!(bucket.next(ms(9)), Some(ms(9) + APART));
        let order: Vec<u64> = std::iter::from_fn(|| bucket.pop())
            .map(|p| p.sequence)
            .collect();
        assert_eq!(order, [0, 1, 2]);
        assert_eq!(bucket.next(ms(9)), None);
    }
}
