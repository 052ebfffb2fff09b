//! A link that can queue: random loss, then a queue discipline, then a transmitter.
//!
//! The packet in transmission is not in the queue (as in ns-2, and as behind Linux's shapers).

mod bucket;
mod changing;
mod counting;
mod launching;
mod loss;
mod propagation;

use ackclock_units::{Rate, Time};

use crate::histogram::Histogram;
use crate::packet::Packet;
use crate::plan::{LinkPlan, QueuePlan};
use crate::queue::{self, Drops, Queue, Surroundings};
use crate::PlanError;

use bucket::Bucket;
pub use counting::Counters;
pub use launching::Launch;
use loss::RandomLoss;
pub use propagation::Propagation;

#[cfg(test)]
mod tests;

/// Packets below this size are small: most are either full or carry no data.
const SMALL_BYTES: u32 = 256;

/// Sojourn times that are kept before they are counted.
const SOJOURNS: usize = 8;

/// What became of a packet that was offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It was lost at random, or the link does not work.
    Lost,
    /// The discipline has it (or dropped it or another: see the link's drops).
    Queued,
}

/// A queueing link. What each packet needs is in the first cache line, and where it goes in the second.
#[repr(C, align(128))]
pub struct Link {
    /// Until when the packet is in transmission that was launched last.
    busy_until: Time,
    /// Picoseconds to transmit a byte, if that is a whole number; else 0.
    byte_time: u64,
    /// Packets that found the link idle, and their bytes; not in `counters`.
    passed: u64,
    passed_bytes: u64,
    /// Time in which launched packets were in transmission; not in `counters`.
    busy: Time,
    queued_packets: u32,
    frame_overhead: u32,
    /// Wire bytes of the packet that was launched last.
    launched_bytes: u32,
    /// Whether a packet that finds the link idle is launched without further ado.
    is_plain: bool,
    /// Whether packets are launched when somebody looks, see [`Link::catch_up`].
    is_lazy: bool,
    /// Whether somebody has to know of each launch at its time.
    is_watched: bool,
    /// Whether a packet may be lost before it comes to the queue.
    obstructed: bool,
    down: bool,
    has_settled: bool,
    /// What is behind the transmitter.
    pub propagation: Propagation,
    queue: Queue,
    queued_bytes: u64,
    /// Since when the queue has been empty, while it is.
    empty_since: Time,
    rate: Rate,
    /// Transmission times of the last small and the last large packet.
    transmission_times: [(u32, Time); 2],
    transmitting: Option<Packet>,
    counters: Counters,
    /// The last sojourn times, until there are enough to look for their bins together.
    last_sojourns: [Time; SOJOURNS],
    last_count: usize,
    sojourns: Histogram,
    /// What the discipline dropped and marked during the last call.
    drops: Drops,
    bucket: Option<Box<Bucket>>,
    loss: Option<Box<RandomLoss>>,
    settled: Settled,
    made_from: Box<MadeFrom>,
}

/// What is rarely needed: what a link's discipline is made from, to make it anew after a failure.
struct MadeFrom {
    queue: QueuePlan,
    burst_bytes: u64,
    seed: u64,
    failures: u64,
    /// What `passed` was when the histogram last took the packets that did not wait.
    passed_before: u64,
}

/// Packets that the discipline dropped, and copies of those it marked, counted and ready to be recorded.
#[derive(Debug, Default)]
pub struct Settled {
    /// Dropped, as they were before this link.
    pub dropped: Vec<Packet>,
    /// Marked.
    pub marked: Vec<Packet>,
}

impl Link {
    /// The link number `index` of a plan.
    ///
    /// # Errors
    /// If the discipline or its parameters are not known.
    pub fn new(plan: &LinkPlan, priorities: &[u8], seed: u64) -> Result<Link, PlanError> {
        let surroundings = Surroundings {
            rate_bps: plan.rate.bits_per_second(),
            seed,
            priorities,
        };
        let flows = priorities.len();
        let queue = &plan.queue;
        let mut link = Link {
            busy_until: Time::ZERO,
            byte_time: 0,
            passed: 0,
            passed_bytes: 0,
            busy: Time::ZERO,
            queued_packets: 0,
            frame_overhead: plan.frame_overhead_bytes,
            launched_bytes: 0,
            is_plain: false,
            is_lazy: false,
            is_watched: false,
            obstructed: false,
            down: false,
            has_settled: false,
            propagation: Propagation::new(plan),
            queue: queue::make(&queue.discipline, &queue.parameters, &surroundings)?,
            queued_bytes: 0,
            empty_since: Time::ZERO,
            rate: plan.rate,
            transmission_times: [(0, Time::ZERO); 2],
            transmitting: None,
            counters: Counters::default(),
            last_sojourns: [Time::ZERO; SOJOURNS],
            last_count: 0,
            sojourns: Histogram::new(),
            drops: Drops::default(),
            bucket: plan
                .burst_bytes
                .map(|bytes| Box::new(Bucket::new(bytes, plan.rate))),
            loss: plan
                .loss
                .map(|loss| Box::new(RandomLoss::new(loss, flows, seed))),
            settled: Settled::default(),
            made_from: Box::new(MadeFrom {
                queue: queue.clone(),
                burst_bytes: plan.burst_bytes.unwrap_or(0),
                seed,
                failures: 0,
                passed_before: 0,
            }),
        };
        link.set_rate(plan.rate);
        link.take_stock();
        Ok(link)
    }

    /// Offers a packet; if the transmitter was free, says when the packet will have left.
    #[inline(always)]
    pub fn offer(&mut self, mut packet: Packet, now: Time) -> (Offer, Option<Time>) {
        self.counters.arrived += 1;
        if self.obstructed && self.loses(packet.for_record()) {
            return (Offer::Lost, None);
        }
        packet.wire_bytes += self.frame_overhead;
        self.enter(packet.wire_bytes, now);
        self.queue.enqueue(packet, now, &mut self.drops);
        self.settle_drops(now);
        let begun = if self.transmitting.is_none() {
            self.begin(now)
        } else {
            None
        };
        (Offer::Queued, begun)
    }

    /// Whether a packet is lost before it comes to the queue; counts it.
    #[cold]
    fn loses(&mut self, packet: Packet) -> bool {
        let loss = self.loss.as_mut();
        let is_lost = self.down || loss.is_some_and(|loss| loss.takes(&packet));
        self.counters.lost += u64::from(is_lost);
        is_lost
    }

    /// The packet in transmission has left; the next one begins. Returns it, and when the next one
    /// will have left.
    #[inline(always)]
    pub fn finish(&mut self, now: Time) -> (Option<Packet>, Option<Time>) {
        let left = match &mut self.bucket {
            None => self.transmitting.take(),
            Some(bucket) => bucket.pop(),
        };
        let left = left.map(|mut packet| {
            self.counters.departed += 1;
            self.counters.departed_bytes += u64::from(packet.wire_bytes);
            packet.wire_bytes -= self.frame_overhead;
            packet
        });
        (left, self.begin(now))
    }

    #[inline(always)]
    fn begin(&mut self, now: Time) -> Option<Time> {
        if self.queued_packets == 0 && self.bucket.is_none() {
            return None;
        }
        if self.bucket.is_some() {
            return self.pour(now);
        }
        let Some((packet, duration)) = self.take(now) else {
            return self.wait(now);
        };
        self.transmitting = Some(packet);
        Some(now + duration)
    }

    /// Takes the next packet from the queue; also returns how long it takes at the link's rate.
    #[inline(always)]
    fn take(&mut self, now: Time) -> Option<(Packet, Time)> {
        let packet = self.queue.dequeue(now, &mut self.drops);
        self.settle_drops(now);
        let packet = packet?;
        self.leave(packet.wire_bytes, now);
        let sojourn = now.since(packet.enqueued);
        self.counters.dequeued += 1;
        self.counters.sojourn_time += sojourn.as_f64();
        self.record_sojourn(sojourn);
        let duration = self.duration(packet.wire_bytes);
        self.counters.busy += duration;
        Some((packet, duration))
    }

    /// Lets through what the bucket allows; returns when to look again.
    #[cold]
    fn pour(&mut self, now: Time) -> Option<Time> {
        let mut bucket = self.bucket.take()?;
        while self.queued_packets > 0 && bucket.allows(now) {
            let Some((packet, cost)) = self.take(now) else {
                break;
            };
            bucket.push(packet, cost, now);
        }
        let next = bucket.next(now).or_else(|| self.wait_for(&bucket, now));
        self.bucket = Some(bucket);
        next
    }

    /// The discipline holds its packets back: when to ask again.
    #[cold]
    fn wait(&self, now: Time) -> Option<Time> {
        let ready = self.queue.ready(now).max(now + Time::from_picoseconds(1));
        (self.queued_packets > 0 && !ready.is_never()).then_some(ready)
    }

    /// Nothing is passing: when the bucket allows a packet, or the discipline gives one.
    fn wait_for(&self, bucket: &Bucket, now: Time) -> Option<Time> {
        if self.queued_packets > 0 && !bucket.allows(now) {
            Some(bucket.filled())
        } else {
            self.wait(now)
        }
    }

    /// How long a packet is in transmission.
    #[inline(always)]
    fn duration(&mut self, bytes: u32) -> Time {
        if self.byte_time == 0 {
            return self.transmission_time(bytes);
        }
        Time::from_picoseconds(u64::from(bytes) * self.byte_time)
    }

    #[inline(always)]
    fn transmission_time(&mut self, bytes: u32) -> Time {
        let last = &mut self.transmission_times[usize::from(bytes >= SMALL_BYTES)];
        if last.0 != bytes {
            // At least a picosecond, so that time passes on however fast a link.
            let duration = self.rate.transmission_time(u64::from(bytes));
            *last = (bytes, duration.max(Time::from_picoseconds(1)));
        }
        last.1
    }

    #[inline]
    fn settle_drops(&mut self, now: Time) {
        if !self.drops.is_empty() {
            self.count_drops(now);
        }
    }

    #[cold]
    fn count_drops(&mut self, now: Time) {
        let mut drops = std::mem::take(&mut self.drops);
        for mut packet in drops.drain() {
            self.counters.dropped += 1;
            self.leave(packet.wire_bytes, now);
            packet.wire_bytes -= self.frame_overhead;
            self.settled.dropped.push(packet);
        }
        for packet in drops.drain_marked() {
            self.counters.marked += 1;
            self.settled.marked.push(packet);
        }
        self.drops = drops;
        self.has_settled = true;
    }

    /// Whether drops or marks wait to be recorded.
    #[inline]
    pub fn has_settled(&self) -> bool {
        self.has_settled
    }

    /// Takes what was dropped and marked, and leaves `empty` to be filled.
    pub fn take_settled(&mut self, empty: Settled) -> Settled {
        self.has_settled = false;
        std::mem::replace(&mut self.settled, empty)
    }

    /// Packets and bytes in the queue.
    pub fn backlog(&self) -> (u32, u64) {
        (self.queued_packets, self.queued_bytes)
    }

    /// Packets in the queue and in the transmitter.
    pub fn holds(&self, now: Time) -> u64 {
        self.keeps() + u64::from(self.busy_until > now)
    }

    /// Packets in the queue and in the transmitter, but for one that was launched.
    pub fn keeps(&self) -> u64 {
        let passing = self.bucket.as_ref().map_or(0, |bucket| bucket.len());
        u64::from(self.queued_packets) + u64::from(self.transmitting.is_some()) + passing
    }

    /// The discipline's own account of what it holds.
    pub fn discipline_backlog(&self) -> queue::Backlog {
        self.queue.backlog()
    }

    /// The rate of the transmitter.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}
