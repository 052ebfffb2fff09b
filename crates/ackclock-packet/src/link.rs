//! A link that can queue: random loss, then a queue discipline, then a transmitter.
//!
//! The packet in transmission is not in the queue (as in ns-2, and as behind Linux's shapers).

mod bucket;
mod changing;
mod launching;

use ackclock_units::{Rate, Time};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use crate::histogram::Histogram;
use crate::packet::{Kind, Packet};
use crate::plan::{LinkPlan, LossPlan, QueuePlan};
use crate::queue::{self, Drops, Queue, Surroundings};
use crate::PlanError;

use bucket::Bucket;
pub use launching::Launch;

#[cfg(test)]
mod tests;

/// What passed through a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets offered.
    pub arrived: u64,
    /// Packets the discipline dropped.
    pub dropped: u64,
    /// Packets lost at random, or because the link failed.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets that left the transmitter.
    pub departed: u64,
    /// Wire bytes of them.
    pub departed_bytes: u64,
    /// Time the transmitter was busy, packets already begun counted whole.
    pub busy: Time,
    /// Time the queue held no packet.
    pub empty: Time,
    /// Integral of the queued packets over time, in packet-picoseconds.
    pub packet_time: i128,
    /// Integral of the queued bytes over time, in byte-picoseconds.
    pub byte_time: i128,
    /// Packets that left the queue.
    pub dequeued: u64,
    /// Sum of their sojourn times in picoseconds.
    pub sojourn_time: f64,
}

/// Packets below this size are small: most are either full or carry no data.
const SMALL_BYTES: u32 = 256;

/// What became of a packet that was offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It was lost at random, or the link does not work.
    Lost,
    /// The discipline has it (or dropped it or another: see the link's drops).
    Queued,
}

/// A queueing link.
pub struct Link {
    rate: Rate,
    bucket: Option<Box<Bucket>>,
    frame_overhead: u32,
    queue: Queue,
    /// Whether a packet may be lost before it comes to the queue.
    obstructed: bool,
    loss: Option<Box<RandomLoss>>,
    down: bool,
    transmitting: Option<Packet>,
    /// Until when the packet is in transmission that was launched last.
    busy_until: Time,
    /// Its wire bytes.
    launched_bytes: u32,
    queued_packets: u32,
    queued_bytes: u64,
    /// Since when the queue has been empty, while it is.
    empty_since: Time,
    /// Transmission times of the last small and the last large packet.
    transmission_times: [(u32, Time); 2],
    counters: Counters,
    sojourns: Histogram,
    /// What the discipline dropped and marked during the last call.
    drops: Drops,
    settled: Settled,
    has_settled: bool,
    made_from: Box<MadeFrom>,
}

/// What a link's discipline is made from, to make it anew after a failure.
struct MadeFrom {
    queue: QueuePlan,
    burst_bytes: u64,
    seed: u64,
    failures: u64,
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
        Ok(Link {
            rate: plan.rate,
            bucket: plan
                .burst_bytes
                .map(|bytes| Box::new(Bucket::new(bytes, plan.rate))),
            frame_overhead: plan.frame_overhead_bytes,
            queue: queue::make(&queue.discipline, &queue.parameters, &surroundings)?,
            obstructed: plan.loss.is_some(),
            loss: plan
                .loss
                .map(|loss| Box::new(RandomLoss::new(loss, flows, seed))),
            down: false,
            transmitting: None,
            busy_until: Time::ZERO,
            launched_bytes: 0,
            queued_packets: 0,
            queued_bytes: 0,
            empty_since: Time::ZERO,
            transmission_times: [(0, Time::ZERO); 2],
            counters: Counters::default(),
            sojourns: Histogram::new(),
            drops: Drops::default(),
            settled: Settled::default(),
            has_settled: false,
            made_from: Box::new(MadeFrom {
                queue: queue.clone(),
                burst_bytes: plan.burst_bytes.unwrap_or(0),
                seed,
                failures: 0,
            }),
        })
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
        self.sojourns.record(sojourn);
        let duration = self.transmission_time(packet.wire_bytes);
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

    /// A packet enters the queue. The integral of a count over time is Σ leaving times − Σ entering
    /// times + count × now, so each change costs one addition, and [`Link::counters`] the last term.
    #[inline(always)]
    fn enter(&mut self, bytes: u32, now: Time) {
        if self.queued_packets == 0 {
            self.counters.empty += now.since(self.empty_since);
        }
        self.queued_packets += 1;
        self.queued_bytes += u64::from(bytes);
        let time = i128::from(now.picoseconds());
        self.counters.packet_time -= time;
        self.counters.byte_time -= i128::from(bytes) * time;
    }

    /// A packet leaves the queue.
    #[inline(always)]
    fn leave(&mut self, bytes: u32, now: Time) {
        self.queued_packets -= 1;
        self.queued_bytes -= u64::from(bytes);
        let time = i128::from(now.picoseconds());
        self.counters.packet_time += time;
        self.counters.byte_time += i128::from(bytes) * time;
        if self.queued_packets == 0 {
            self.empty_since = now;
        }
    }

    /// Counts up to `now`.
    pub fn counters(&self, now: Time) -> Counters {
        let mut counters = self.counters;
        let time = i128::from(now.picoseconds());
        counters.packet_time += i128::from(self.queued_packets) * time;
        counters.byte_time += i128::from(self.queued_bytes) * time;
        if self.queued_packets == 0 {
            counters.empty += now.since(self.empty_since);
        }
        if self.busy_until > now {
            counters.departed -= 1;
            counters.departed_bytes -= u64::from(self.launched_bytes);
        }
        counters
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

    /// Sojourn times of the packets that left the queue since the histogram was last cleared.
    pub fn sojourns(&mut self) -> &Histogram {
        self.sojourns.settle();
        &self.sojourns
    }

    /// Starts the histogram anew (end of the warm-up).
    pub fn clear_sojourns(&mut self) {
        self.sojourns.clear();
    }
}

/// Loss of data packets that is independent of the queue.
struct RandomLoss {
    kind: LossPlan,
    /// Data packets seen per flow, where they are counted.
    seen: Vec<u64>,
    random: Pcg64Mcg,
}

impl RandomLoss {
    fn new(kind: LossPlan, flows: usize, seed: u64) -> RandomLoss {
        RandomLoss {
            kind,
            seen: match kind {
                LossPlan::Every { .. } => vec![0; flows],
                LossPlan::Bernoulli { .. } => Vec::new(),
            },
            random: Pcg64Mcg::new(u128::from(seed) << 64 | 0x9e37_79b9_7f4a_7c15),
        }
    }

    /// Whether this packet is lost. Only data are, TCP's and UDP's: handshakes, FINs and ACKs pass.
    #[inline]
    fn takes(&mut self, packet: &Packet) -> bool {
        if !matches!(packet.kind, Kind::Data | Kind::Datagram) {
            return false;
        }
        match self.kind {
            LossPlan::Every { packets } => {
                let seen = &mut self.seen[packet.flow as usize];
                *seen += 1;
                seen.is_multiple_of(packets)
            }
            LossPlan::Bernoulli { probability } => {
                (self.random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64) < probability
            }
        }
    }
}
