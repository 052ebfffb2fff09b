//! A link that can queue: random loss, then a queue discipline, then a transmitter.
//!
//! The packet in transmission is not in the queue (as in ns-2, and as behind Linux's shapers).

mod changes;
mod counters;
pub mod ecn_field;
mod loss;
mod opportunities;
mod propagation;
mod rates;
mod shaper;
mod transmit;

use ackclock_core::{Rate, Time};
use ackclock_plan::{LinkPlan, Tunnel};

use crate::packet::{Flags, Packet};
use crate::queue::{self, Drops, FlowHeaders, Queue};
use crate::PlanError;

use counters::{BypassCounters, Sojourns};
pub use counters::{Counters, Skipped};
use loss::RandomLoss;
pub use propagation::Propagation;
use rates::Rates;
use shaper::{Shaper, APART};

#[cfg(test)]
mod tests;

/// Packets below this size are small: most are either full or carry no data.
const SMALL_BYTES: u32 = 256;

/// Next events of a link after an offer or a poll; [`Time::NEVER`] for those that it does not have.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// End of the transmission that begins.
    pub departure: Time,
    /// Arrival of the first packet in the propagation delay, if that was empty.
    pub arrival: Time,
    /// Time at which to poll the link again.
    pub revisit: Time,
}

impl Due {
    /// No transmission starts.
    fn later(revisit: Time) -> Due {
        Due {
            departure: Time::NEVER,
            arrival: Time::NEVER,
            revisit,
        }
    }

    /// Next event of a link without propagation delay: the end of its transmission, or a poll.
    #[inline(always)]
    pub fn next(self) -> Time {
        self.departure.min(self.revisit)
    }
}

/// A queueing link. State for every packet is in the first cache line, the propagation delay in the second; state for a
/// packet that waits is in the fourth to eighth.
#[repr(C, align(128))]
pub struct Link {
    /// End of the last transmission.
    busy_until: Time,
    /// Picoseconds to transmit a byte, if that is a whole number; else 0.
    byte_time: u64,
    /// Packets that found the link idle; `counters` lacks them.
    bypassed: BypassCounters,
    queued_packets: u32,
    frame_overhead: u32,
    /// Wire bytes of the last packet transmitted.
    transmitting_bytes: u32,
    /// True if a packet that finds the link idle bypasses the queue.
    can_bypass: bool,
    /// True if transmissions are computed lazily, see [`Link::catch_up`].
    is_lazy: bool,
    /// True if each departure must be an event, for the log or a capture.
    is_traced: bool,
    /// True if a packet may be lost before the queue, or enters a tunnel.
    has_entrance: bool,
    down: bool,
    has_drops: bool,
    /// Propagation delay behind the transmitter.
    pub propagation: Propagation,
    queue: Queue,
    queued_bytes: u64,
    /// Time since which the queue has been empty, while it is.
    empty_since: Time,
    counters: Counters,
    sojourns: Sojourns,
    /// Packets that the discipline dropped and marked during the last call.
    drops: Drops,
    drop_log: DropLog,
    rate: Rate,
    /// Transmission times of the last small and the last large packet, as a cache.
    transmission_times: [(u32, Time); 2],
    shaper: Option<Box<Shaper>>,
    /// Rate over time, if it follows a trace.
    rates: Option<Box<Rates>>,
    loss: Option<Box<RandomLoss>>,
    tunnel: Option<Tunnel>,
    /// Seed of its random numbers.
    seed: u64,
}

/// Dropped packets and copies of marked ones, counted and ready to be recorded.
#[derive(Debug, Default)]
pub struct DropLog {
    /// Dropped packets, without this link's frame overhead.
    pub dropped: Vec<Packet>,
    /// Copy of marked packets.
    pub marked: Vec<Packet>,
}

impl Link {
    /// The link number `index` of a plan.
    ///
    /// # Errors
    /// If the discipline or its parameters are not known.
    pub fn new(plan: &LinkPlan, headers: &FlowHeaders, seed: u64) -> Result<Link, PlanError> {
        let mut link = Link {
            busy_until: Time::ZERO,
            byte_time: 0,
            bypassed: BypassCounters::default(),
            queued_packets: 0,
            frame_overhead: plan.frame_overhead_bytes,
            transmitting_bytes: 0,
            can_bypass: false,
            is_lazy: false,
            is_traced: false,
            has_entrance: false,
            down: false,
            has_drops: false,
            propagation: Propagation::new(plan),
            queue: Link::discipline(plan, plan.rate, headers, seed)?,
            queued_bytes: 0,
            empty_since: Time::ZERO,
            rate: plan.rate,
            transmission_times: [(0, Time::ZERO); 2],
            counters: Counters::default(),
            sojourns: Sojourns::default(),
            drops: Drops::default(),
            shaper: Shaper::of(plan).map(Box::new),
            rates: plan.trace.as_ref().and_then(Rates::of).map(Box::new),
            loss: plan.loss.map(|loss| Box::new(RandomLoss::new(loss, seed))),
            tunnel: plan.medium.and_then(|medium| medium.tunnel),
            seed,
            drop_log: DropLog::default(),
        };
        link.set_rate(plan.rate);
        link.update_state();
        Ok(link)
    }

    /// Offer a packet to a link with a propagation delay, which has caught up, or without one. Returns `None` if it is
    /// lost at random or the link is down; otherwise the discipline has queued it, or dropped it or another (see the
    /// link's drops).
    #[inline(always)]
    pub fn offer<const PROPAGATES: bool>(&mut self, mut packet: Packet, now: Time) -> Option<Due> {
        debug_assert_eq!(PROPAGATES, self.propagation.exists);
        self.counters.arrived += 1;
        if self.has_entrance {
            packet.flags = self.enter(packet.for_record())?;
        }
        packet.wire_bytes += self.frame_overhead;
        self.count_enqueued(packet.wire_bytes, now);
        self.queue.enqueue(packet, now, &mut self.drops);
        self.collect_drops(now);
        Some(self.poll::<PROPAGATES>(now))
    }

    /// Flags with which a packet enters the queue; `None` if it is lost before, which is counted.
    #[cold]
    fn enter(&mut self, packet: Packet) -> Option<Flags> {
        let loss = self.loss.as_mut();
        if self.down || loss.is_some_and(|loss| loss.draw_drop(&packet)) {
            self.counters.lost += 1;
            return None;
        }
        let tunnel = self.tunnel;
        Some(tunnel.map_or(packet.flags, |tunnel| {
            ecn_field::encapsulate(tunnel, packet.flags)
        }))
    }

    /// Handle the end of a transmission on a link without propagation delay, or a poll that was due; the next packet
    /// begins. Returns the packet that has left.
    #[inline(always)]
    pub fn finish(&mut self, now: Time) -> (Option<Packet>, Due) {
        if self.shaper.is_some() {
            self.release_from_shaper::<false>(now);
        }
        (self.propagation.release(), self.start_next::<false>(now))
    }

    /// Handle a poll that was due at a link with propagation delay.
    #[inline]
    pub fn resume(&mut self, now: Time) -> Due {
        if self.shaper.is_none() {
            return self.poll::<true>(now);
        }
        let (departure, arrival) = self.release_from_shaper::<true>(now);
        Due {
            departure,
            arrival,
            ..self.start_next::<true>(now)
        }
    }

    /// Start the next transmission if the transmitter is free.
    #[inline(always)]
    fn poll<const PROPAGATES: bool>(&mut self, now: Time) -> Due {
        let is_busy = if PROPAGATES {
            self.busy_until > now
        } else {
            !self.propagation.is_empty()
        };
        if is_busy {
            return Due::later(self.next_poll::<PROPAGATES>());
        }
        self.start_next::<PROPAGATES>(now)
    }

    /// Start the next transmission; the transmitter is free.
    #[inline(always)]
    fn start_next<const PROPAGATES: bool>(&mut self, now: Time) -> Due {
        if self.shaper.is_some() {
            return Due::later(self.run_shaper(now));
        }
        if self.queued_packets == 0 {
            return Due::later(Time::NEVER);
        }
        self.transmit::<PROPAGATES>(now)
    }

    /// Start to transmit the next packet.
    #[inline(always)]
    pub(super) fn transmit<const PROPAGATES: bool>(&mut self, now: Time) -> Due {
        let Some((packet, duration)) = self.take(now) else {
            return Due::later(self.next_dequeue_time(now));
        };
        let done = now + duration;
        Due {
            departure: done,
            arrival: self.start_transmission::<PROPAGATES>(packet, done),
            revisit: self.next_poll::<PROPAGATES>(),
        }
    }

    /// Dequeue the next packet; returns it without its frame, and its transmission time.
    #[inline(always)]
    fn take(&mut self, now: Time) -> Option<(Packet, Time)> {
        let frame = self.frame_overhead;
        let packet = self.queue.take(now, frame, &mut self.drops);
        self.collect_drops(now);
        let packet = packet?;
        let wire_bytes = packet.wire_bytes + frame;
        self.count_dequeued(wire_bytes, now);
        let sojourn = now.since(packet.enqueued);
        self.counters.dequeued += 1;
        self.counters.sojourn_time += sojourn.as_f64();
        self.sojourns.record(sojourn, self.propagation.exists);
        let duration = self.duration(wire_bytes, now);
        self.counters.busy += duration;
        Some((packet, duration))
    }

    /// Let the first packet in the shaper depart; returns its departure, and its arrival if it is the first in
    /// propagation.
    #[cold]
    fn release_from_shaper<const PROPAGATES: bool>(&mut self, now: Time) -> (Time, Time) {
        let left = self.shaper.as_mut().and_then(|shaper| shaper.pop(now));
        left.map_or((Time::NEVER, Time::NEVER), |mut packet| {
            packet.wire_bytes -= self.frame_overhead;
            (now, self.start_transmission::<PROPAGATES>(packet, now))
        })
    }

    /// Move packets from the queue into the shaper as it allows; returns when to poll again.
    #[cold]
    fn run_shaper(&mut self, now: Time) -> Time {
        let Some(mut shaper) = self.shaper.take() else {
            return Time::NEVER;
        };
        while self.queued_packets > 0 && shaper.ready(now) <= now {
            let Some((mut packet, cost)) = self.take(now) else {
                break;
            };
            packet.wire_bytes += self.frame_overhead;
            shaper.push(packet, cost, now);
        }
        let next = shaper
            .next(now)
            .unwrap_or_else(|| self.next_shaper_time(&mut shaper, now));
        self.shaper = Some(shaper);
        next
    }

    /// Time of the next dequeue attempt while the discipline holds its packets back.
    #[cold]
    fn next_dequeue_time(&self, now: Time) -> Time {
        if self.queued_packets == 0 {
            return Time::NEVER;
        }
        self.queue.ready(now).max(now + Time::from_picoseconds(1))
    }

    /// Time at which the empty shaper can take a packet, or the discipline may release one.
    fn next_shaper_time(&self, shaper: &mut Shaper, now: Time) -> Time {
        let ready = shaper.ready(now);
        if self.queued_packets > 0 && ready > now {
            ready
        } else {
            self.next_dequeue_time(now)
        }
    }

    /// Transmission time of a packet that starts now.
    #[inline(always)]
    fn duration(&mut self, bytes: u32, now: Time) -> Time {
        if self.byte_time == 0 {
            return self.transmission_time(bytes, now);
        }
        Time::from_picoseconds(u64::from(bytes) * self.byte_time)
    }

    #[inline(always)]
    fn transmission_time(&mut self, bytes: u32, now: Time) -> Time {
        if let Some(rates) = &self.rates {
            return rates.transmission_time(u64::from(bytes), now).max(APART);
        }
        let last = &mut self.transmission_times[usize::from(bytes >= SMALL_BYTES)];
        if last.0 != bytes {
            // At least a picosecond, so that time advances on links of any rate.
            let duration = self.rate.transmission_time(u64::from(bytes));
            *last = (bytes, duration.max(Time::from_picoseconds(1)));
        }
        last.1
    }

    #[inline]
    fn collect_drops(&mut self, now: Time) {
        if !self.drops.is_empty() {
            self.log_drops(now);
        }
    }

    #[cold]
    fn log_drops(&mut self, now: Time) {
        let mut drops = std::mem::take(&mut self.drops);
        for mut packet in drops.drain() {
            self.counters.dropped += 1;
            self.count_dequeued(packet.wire_bytes, now);
            packet.wire_bytes -= self.frame_overhead;
            self.drop_log.dropped.push(packet);
        }
        for packet in drops.drain_marked() {
            self.counters.marked += 1;
            self.drop_log.marked.push(packet);
        }
        self.drops = drops;
        self.has_drops = true;
    }

    /// True if drops or marks are still to be recorded.
    #[inline]
    pub fn has_drops(&self) -> bool {
        self.has_drops
    }

    /// Take the dropped and marked packets, and leave `empty` to be filled.
    pub fn take_drop_log(&mut self, empty: DropLog) -> DropLog {
        self.has_drops = false;
        std::mem::replace(&mut self.drop_log, empty)
    }

    /// Packets and bytes in the queue.
    pub fn backlog(&self) -> (u32, u64) {
        (self.queued_packets, self.queued_bytes)
    }

    /// Take the most packets that have been in the queue at a time since the last call.
    pub fn take_peak(&mut self) -> u32 {
        self.queue.take_peak()
    }

    /// Packets in the queue and in the transmitter.
    pub fn held_packets(&self, now: Time) -> u64 {
        self.waiting_packets() + u64::from(self.busy_until > now)
    }

    /// Packets whose transmission has not started: in the queue and in the shaper.
    pub fn waiting_packets(&self) -> u64 {
        let passing = self.shaper.as_ref().map_or(0, |shaper| shaper.len());
        u64::from(self.queued_packets) + passing
    }

    /// Backlog by the discipline's own count.
    pub fn discipline_backlog(&self) -> queue::Backlog {
        self.queue.backlog()
    }

    /// Wire bits that it could have sent in the time before `now`.
    pub fn capacity_bits(&self, now: Time, span: Time) -> f64 {
        let traced = |until| match (&self.rates, &self.shaper) {
            (Some(rates), _) => Some(rates.capacity_bits(until)),
            (_, Some(shaper)) => shaper.capacity_bits(until),
            _ => None,
        };
        match (traced(now), traced(now - span)) {
            (Some(total), Some(before)) => total - before,
            _ => self.rate.bits_per_second() * span.seconds(),
        }
    }

    /// The rate of the transmitter, or the mean of its trace.
    pub fn rate(&self) -> Rate {
        self.rate
    }
}
