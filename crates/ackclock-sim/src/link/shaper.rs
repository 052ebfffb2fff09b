//! What lets packets leave in a transmitter's place: a token bucket, or the opportunities of a trace.

use ackclock_core::{Rate, Time};
use ackclock_plan::{CoursePlan, LinkPlan};

use super::bucket::Bucket;
use super::opportunities::Opportunities;
use crate::packet::Packet;

/// It has let packets through that have not left yet.
#[derive(Debug)]
pub enum Shaper {
    /// Tokens, earned at a rate.
    Bucket(Bucket),
    /// Opportunities at given times.
    Opportunities(Opportunities),
}

impl Shaper {
    /// That of a link; none if it transmits.
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

    /// The rate from now on, of a bucket.
    pub fn set_rate(&mut self, rate: Rate) {
        if let Shaper::Bucket(bucket) = self {
            bucket.set_rate(rate);
        }
    }

    /// When the next packet may be let through: now or later, or before now.
    pub fn ready(&mut self, now: Time) -> Time {
        match self {
            Shaper::Bucket(bucket) => bucket.filled(),
            Shaper::Opportunities(opportunities) => opportunities.ready(now),
        }
    }

    /// Lets a packet through that would be so long in transmission.
    pub fn push(&mut self, packet: Packet, cost: Time, now: Time) {
        match self {
            Shaper::Bucket(bucket) => bucket.push(packet, cost, now),
            Shaper::Opportunities(opportunities) => opportunities.push(packet, now),
        }
    }

    /// The packet that leaves now.
    pub fn pop(&mut self, now: Time) -> Option<Packet> {
        match self {
            Shaper::Bucket(bucket) => bucket.pop(),
            Shaper::Opportunities(opportunities) => opportunities.pop(now),
        }
    }

    /// When the next packet that was let through leaves, if there is one.
    pub fn next(&self, now: Time) -> Option<Time> {
        match self {
            Shaper::Bucket(bucket) => bucket.next(now),
            Shaper::Opportunities(opportunities) => opportunities.next(now),
        }
    }

    /// Packets that were let through and have not left.
    pub fn len(&self) -> u64 {
        match self {
            Shaper::Bucket(bucket) => bucket.len(),
            Shaper::Opportunities(opportunities) => opportunities.len(),
        }
    }
}
