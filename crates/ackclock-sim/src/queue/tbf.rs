//! `tbf`: a token bucket in front of a FIFO, one for every flow or one for all.
//!
//! Behaviour: `tc-tbf(8)`. Tokens for `rate` collect up to `burst` bytes; a packet leaves when there are
//! tokens for all of it, and waits in a byte-limited FIFO until then. With `per_flow` each flow has a bucket
//! and a FIFO of its own: the shaper of 4 Mb/s per connection in chapter 4 of Belhareth 2014.
//!
//! Among packets with tokens, the one that has had them for the longest time goes first, as if a FIFO
//! followed the buckets.
//!
//! Deviations:
//! - `limit` is always given, and `latency` narrows it; `tc` wants one of the two.
//! - No `peakrate`: the link that follows has a rate.
//! - Tokens are counted in picoseconds of the rate, so that a packet's share is off by half of one at most;
//!   the kernel counts in nanoseconds and is woken by a timer.
//!
//! As in the kernel, a packet larger than `burst` is dropped: it could never leave.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_core::{Rate, Time};
use serde::Deserialize;
use serde_json::Value;

use crate::packet::Packet;
use crate::queue::fifo::Fifo;
use crate::queue::{require, Backlog, Discipline, Drops, Queue, QueueContext};

#[cfg(test)]
mod tests;

/// Parameters, as in the algorithm's specification.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Rate at which tokens arrive.
    rate_bps: f64,
    /// Wire bytes for which tokens can be saved up.
    burst_bytes: u64,
    /// Wire bytes that may wait, in each FIFO.
    limit_bytes: u64,
    /// The longest that a packet may have to wait for tokens.
    latency_s: Option<f64>,
    /// True if each flow has a separate bucket and FIFO.
    per_flow: bool,
}

impl Parameters {
    fn check(&self) -> Result<(), serde_json::Error> {
        let is_rate = self.rate_bps.is_finite() && self.rate_bps > 0.0;
        let is_negative = self.latency_s.is_some_and(|latency_s| latency_s < 0.0);
        require(is_rate, "rate_bps must be greater than 0")?;
        require(self.burst_bytes > 0, "burst_bytes must be at least 1")?;
        require(self.limit_bytes > 0, "limit_bytes must be at least 1")?;
        require(!is_negative, "latency_s must not be negative")
    }

    /// Bytes that may wait: as `tc` has it, a latency is what the rate carries in that time, and a burst.
    fn limit(&self) -> u64 {
        let Some(latency_s) = self.latency_s else {
            return self.limit_bytes;
        };
        let within = (latency_s * self.rate_bps / 8.0) as u64;
        self.limit_bytes
            .min(within.saturating_add(self.burst_bytes))
    }
}

/// Tokens, as the time in which the rate brings them.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: Time,
    /// Time of that count.
    counted: Time,
}

impl Bucket {
    /// Time at which there are this many tokens, if none are taken.
    fn when(&self, tokens: Time) -> Time {
        self.counted + tokens.since(self.tokens)
    }

    /// Take tokens that are there.
    fn take(&mut self, tokens: Time, depth: Time, now: Time) {
        let collected = (self.tokens + now.since(self.counted)).min(depth);
        *self = Bucket {
            tokens: collected - tokens,
            counted: now,
        };
    }
}

/// A bucket and what waits for its tokens.
#[derive(Debug)]
struct Shaper {
    bucket: Bucket,
    packets: Fifo,
}

/// Shapers, and the order in which their first packets may leave.
#[derive(Debug)]
struct Tbf {
    rate: Rate,
    /// Capacity of a bucket.
    depth: Time,
    burst_bytes: u64,
    limit_bytes: u64,
    per_flow: bool,
    /// Shapers by flow, or a single one.
    shapers: Vec<Shaper>,
    /// Shapers with packets: when the first may leave, a sequence number, the shaper.
    heads: BinaryHeap<Reverse<(Time, u64, usize)>>,
    numbered: u64,
    backlog: Backlog,
}

/// Make the discipline; an error if parameters differ from the specification or are out of range.
pub fn make(parameters: &Value, _context: &QueueContext) -> Result<Queue, serde_json::Error> {
    let parameters = Parameters::deserialize(parameters)?;
    parameters.check()?;
    Ok(Queue::other(Tbf::new(&parameters)))
}

impl Tbf {
    fn new(parameters: &Parameters) -> Tbf {
        let rate = Rate::from_bits_per_second(parameters.rate_bps);
        Tbf {
            rate,
            depth: rate.transmission_time(parameters.burst_bytes),
            burst_bytes: parameters.burst_bytes,
            limit_bytes: parameters.limit(),
            per_flow: parameters.per_flow,
            shapers: Vec::new(),
            heads: BinaryHeap::new(),
            numbered: 0,
            backlog: Backlog::default(),
        }
    }

    /// The shaper of a packet, made with a full bucket when its first packet comes.
    fn shaper_of(&mut self, packet: &Packet) -> usize {
        let index = if self.per_flow {
            packet.flow as usize
        } else {
            0
        };
        if index >= self.shapers.len() {
            let depth = self.depth;
            self.shapers.resize_with(index + 1, || Shaper {
                bucket: Bucket {
                    tokens: depth,
                    counted: Time::ZERO,
                },
                packets: Fifo::default(),
            });
        }
        index
    }

    /// The tokens that a packet takes.
    fn tokens(&self, packet: &Packet) -> Time {
        self.rate.transmission_time(u64::from(packet.wire_bytes))
    }

    /// Schedule the departure of a packet that has become its shaper's first.
    fn await_tokens(&mut self, index: usize, now: Time) {
        let shaper = &self.shapers[index];
        if let Some(first) = shaper.packets.first() {
            let when = shaper.bucket.when(self.tokens(first)).max(now);
            self.heads.push(Reverse((when, self.numbered, index)));
            self.numbered += 1;
        }
    }
}

impl Discipline for Tbf {
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Drops) {
        let index = self.shaper_of(&packet);
        let bytes = u64::from(packet.wire_bytes);
        let packets = &mut self.shapers[index].packets;
        if bytes > self.burst_bytes || packets.bytes() + bytes > self.limit_bytes {
            drops.push(packet);
            return;
        }
        packets.push(packet);
        self.backlog.packets += 1;
        self.backlog.bytes += bytes;
        if self.shapers[index].packets.len() == 1 {
            self.await_tokens(index, now);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops) -> Option<Packet> {
        if self.ready(now) > now {
            return None;
        }
        let Reverse((_, _, index)) = self.heads.pop()?;
        let packet = self.shapers[index].packets.pop()?;
        let tokens = self.tokens(&packet);
        self.shapers[index].bucket.take(tokens, self.depth, now);
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.wire_bytes);
        self.await_tokens(index, now);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn ready(&self, _now: Time) -> Time {
        let first = self.heads.peek();
        first.map_or(Time::NEVER, |Reverse((when, ..))| *when)
    }
}
