//! Shapers that replace a transmitter: a token bucket, or the delivery opportunities of a trace.

use ackclock_core::{Rate, Time};
use ackclock_plan::{CoursePlan, LinkPlan};

use super::bucket::Bucket;
use super::opportunities::Opportunities;
use crate::packet::Packet;

/// A shaper, with the admitted packets that have not left yet.
#[derive(Debug)]
pub enum Shaper {
    /// Token bucket.
    Bucket(Bucket),
    /// Delivery opportunities of a trace.
    Opportunities(Opportunities),
}

impl Shaper {
    /// Shaper of a link; `None` if it has a transmitter.
    pub fn of(plan: &LinkPlan) -> Option<Shaper> {
        if let Some(bytes) = plan.burst_bytes {
            return Some(Shaper::Bucket(Bucket::new(bytes, plan.rate)));
        }
        let trace = plan.trace.as_ref()?;
        let CoursePlan::Opportunities { at_ms, bytes } = &trace.course else {
            return None;
        };
        let bytes = u64::from(bytes + plan.frame_overhead_bytes);
        let opportunities = Opportunities::new(at_ms, trace.period, bytes);
        Some(Shaper::Opportunities(opportunities))
    }

    /// Set the rate of a token bucket.
    pub fn set_rate(&mut self, rate: Rate) {
        if let Shaper::Bucket(bucket) = self {
            bucket.set_rate(rate);
        }
    }

    /// Time, past or future, from which on the next packet may be admitted.
    pub fn ready(&mut self, now: Time) -> Time {
        match self {
            Shaper::Bucket(bucket) => bucket.filled(),
            Shaper::Opportunities(opportunities) => opportunities.ready(now),
        }
    }

    /// Admit a packet; `cost` is its transmission time.
    pub fn push(&mut self, packet: Packet, cost: Time, now: Time) {
        match self {
            Shaper::Bucket(bucket) => bucket.push(packet, cost, now),
            Shaper::Opportunities(opportunities) => opportunities.push(packet, now),
        }
    }

    /// Remove the packet that leaves now.
    pub fn pop(&mut self, now: Time) -> Option<Packet> {
        match self {
            Shaper::Bucket(bucket) => bucket.pop(),
            Shaper::Opportunities(opportunities) => opportunities.pop(now),
        }
    }

    /// Departure of the next admitted packet, if there is one.
    pub fn next(&self, now: Time) -> Option<Time> {
        match self {
            Shaper::Bucket(bucket) => bucket.next(now),
            Shaper::Opportunities(opportunities) => opportunities.next(now),
        }
    }

    /// Admitted packets that have not left.
    pub fn len(&self) -> u64 {
        match self {
            Shaper::Bucket(bucket) => bucket.len(),
            Shaper::Opportunities(opportunities) => opportunities.len(),
        }
    }
}
