//! The medium behind a link's transmitter, where it does more than delay: jitter, reordering, duplicates, damage.
//!
//! As in netem: a packet may be doubled first, then each copy is damaged and delayed by itself. Each of the four has a
//! stream of random numbers of its own, so one more does not change the others. A packet that is reordered arrives
//! without the link's delay. Without an order to keep, packets arrive by their times.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use ackclock_core::tables::EventKind;
use ackclock_core::Time;
use ackclock_plan::{Distribution, JitterPlan, LinkPlan, MediumPlan, Plan};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use super::{Network, Next, Packet, NONE};
use crate::packet::Ecn;

/// What a medium did.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImpairmentCounters {
    /// Packets that it damaged.
    pub corrupted: u64,
    /// Packets that it doubled.
    pub duplicated: u64,
    /// Packets that arrived after one that had entered later (RFC 4737 section 3).
    pub reordered: u64,
}

/// A medium, and the packets in it.
pub struct Impairment {
    plan: MediumPlan,
    delay: Time,
    jitter: Pcg64Mcg,
    reorder: Pcg64Mcg,
    duplicate: Pcg64Mcg,
    corrupt: Pcg64Mcg,
    flight: BinaryHeap<Reverse<DelayedPacket>>,
    /// The number of the next packet that enters, and of the latest that has arrived.
    next_number: u64,
    last_arrived: u64,
    /// When the last packet arrives of those that keep their order.
    last_due: Time,
    counters: ImpairmentCounters,
}

/// A packet on its way: the order is that of arrival.
struct DelayedPacket {
    due: Time,
    number: u64,
    packet: Packet,
}

impl Ord for DelayedPacket {
    fn cmp(&self, other: &DelayedPacket) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

impl PartialOrd for DelayedPacket {
    fn partial_cmp(&self, other: &DelayedPacket) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for DelayedPacket {
    fn eq(&self, other: &DelayedPacket) -> bool {
        self.number == other.number
    }
}

impl Eq for DelayedPacket {}

impl Impairment {
    /// Whether a plan has one.
    pub fn is_planned(plan: &Plan) -> bool {
        let mut changes = plan.changes.iter();
        plan.links.iter().any(|link| link.medium.is_some())
            || changes.any(|change| change.medium.is_some())
    }

    /// The media of a plan's links, by link: of those that have one, or will.
    pub fn all(plan: &Plan, seeds: &[u64]) -> BTreeMap<usize, Impairment> {
        let links = plan.links.iter().enumerate();
        let now = links.filter(|(_, link)| link.medium.is_some());
        let later = plan.changes.iter().filter(|change| change.medium.is_some());
        let numbers = now
            .map(|(link, _)| link)
            .chain(later.map(|change| change.link as usize));
        let impairments =
            numbers.map(|link| (link, Impairment::new(&plan.links[link], seeds[link])));
        impairments.collect()
    }

    fn new(plan: &LinkPlan, seed: u64) -> Impairment {
        let stream = |number: u128| Pcg64Mcg::new(u128::from(seed) << 64 | number << 8 | 1);
        Impairment {
            plan: plan.medium.unwrap_or(MediumPlan::PLAIN),
            delay: plan.delay,
            jitter: stream(2),
            reorder: stream(3),
            duplicate: stream(4),
            corrupt: stream(5),
            flight: BinaryHeap::new(),
            next_number: 0,
            last_arrived: 0,
            last_due: Time::ZERO,
            counters: ImpairmentCounters::default(),
        }
    }

    /// What it does from now on.
    pub fn set(&mut self, plan: MediumPlan) {
        self.plan = plan;
    }

    /// The delay from now on, of packets that are still to enter.
    pub fn set_delay(&mut self, delay: Time) {
        self.delay = delay;
    }

    /// What it did.
    pub fn counters(&self) -> ImpairmentCounters {
        self.counters
    }

    /// Packets in it.
    pub fn len(&self) -> usize {
        self.flight.len()
    }

    /// Whether the next packet is doubled.
    fn draw_duplicate(&mut self) -> bool {
        let is_doubled = occurs(&mut self.duplicate, self.plan.duplicate);
        self.counters.duplicated += u64::from(is_doubled);
        is_doubled
    }

    /// A packet enters; returns whether it is damaged.
    fn insert(&mut self, mut packet: Packet, now: Time) -> bool {
        let is_damaged = occurs(&mut self.corrupt, self.plan.corrupt);
        if is_damaged {
            packet.ecn = Ecn::Damaged;
            self.counters.corrupted += 1;
        }
        self.next_number += 1;
        let (due, number) = (self.due(now), self.next_number);
        self.flight.push(Reverse(DelayedPacket {
            due,
            number,
            packet,
        }));
        is_damaged
    }

    /// When a packet arrives that enters now.
    fn due(&mut self, now: Time) -> Time {
        let delay = match self.plan.jitter {
            Some(jitter) => jittered(&mut self.jitter, self.delay, jitter),
            None => self.delay,
        };
        if occurs(&mut self.reorder, self.plan.reorder) {
            return now;
        }
        let is_in_order = self.plan.jitter.is_none_or(|jitter| jitter.in_order);
        if !is_in_order {
            return now + delay;
        }
        self.last_due = self.last_due.max(now + delay);
        self.last_due
    }

    /// When the next packet arrives.
    fn next(&self) -> Time {
        let next = self.flight.peek();
        next.map_or(Time::NEVER, |Reverse(flying)| flying.due)
    }

    fn pop(&mut self) -> Option<Packet> {
        let Reverse(flying) = self.flight.pop()?;
        self.counters.reordered += u64::from(flying.number < self.last_arrived);
        self.last_arrived = self.last_arrived.max(flying.number);
        Some(flying.packet)
    }
}

/// A delay that differs by chance, and is not below zero.
fn jittered(random: &mut Pcg64Mcg, delay: Time, jitter: JitterPlan) -> Time {
    let deviations = match jitter.distribution {
        Distribution::Uniform => 2.0 * fraction(random) - 1.0,
        Distribution::Normal => {
            // G. Box, M. Muller: A note on the generation of random normal deviates, 1958. The first is not 0.
            let (radius, angle) = (1.0 - fraction(random), fraction(random));
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }
    };
    Time::from_seconds(delay.seconds() + deviations * jitter.deviation.seconds())
}

/// Whether what has this chance happens. What cannot happen draws nothing.
fn occurs(random: &mut Pcg64Mcg, chance: f64) -> bool {
    chance > 0.0 && fraction(random) < chance
}

/// Evenly from 0 to below 1.
fn fraction(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

impl Network {
    /// Where the event of a link's medium is.
    fn impairment_event(&self, link: usize) -> usize {
        2 * self.links.len() + 1 + link
    }

    /// A packet has left a transmitter; returns whether it has gone into a medium behind it. `hop`: the packet's, of
    /// which the copy is given that nothing else refers to.
    #[cold]
    pub(super) fn enter_impairment(&mut self, link: usize, packet: Packet, hop: u8) -> bool {
        let packet = Packet { hop, ..packet };
        let Some(impairment) = self.impairments.get_mut(&link) else {
            return false;
        };
        let copy = impairment.draw_duplicate().then(|| Packet {
            sack: self.sacks.duplicate(packet.sack),
            ..packet
        });
        let copied = copy.map(|copy| impairment.insert(copy, self.now));
        let damaged = impairment.insert(packet, self.now);
        let next = impairment.next();
        let event = self.impairment_event(link);
        self.link_events.set(event, next);
        if let Some(is_damaged) = copied {
            *self.copies.entry(packet.flow).or_default() += 1;
            self.report_impairment(link, packet, EventKind::Duplicate);
            if is_damaged {
                self.report_impairment(link, packet, EventKind::Corruption);
            }
        }
        if damaged {
            self.report_impairment(link, packet, EventKind::Corruption);
        }
        true
    }

    fn report_impairment(&mut self, link: usize, packet: Packet, kind: EventKind) {
        let (time_s, value) = (self.now.seconds(), packet.sequence as f64);
        let events = &mut self.tables.events;
        events.push(time_s, packet.flow, link as u32, kind, value);
    }

    /// The next packet of a medium arrives at its end; as [`Network::on_link_event`].
    #[cold]
    pub(super) fn on_impairment(&mut self, link: usize) -> Option<(Packet, Time)> {
        let impairment = self.impairments.get_mut(&link)?;
        let packet = impairment.pop()?;
        let next = impairment.next();
        let event = self.impairment_event(link);
        self.link_events.set(event, next);
        let end = self.links[link].propagation.end;
        self.forward_from_node(packet, end)
    }

    /// A packet arrives at a node, or goes on by its path. If it has arrived at its end, returns it with its time.
    #[inline(always)]
    pub(super) fn forward_from_node(&mut self, packet: Packet, end: u32) -> Option<(Packet, Time)> {
        match self
            .routing
            .next(self.slots.slot_of(packet.flow), &packet, end, self.now)
        {
            Next::Link(next) => {
                let hop = packet.hop.wrapping_add(1);
                self.offer_to_link(Packet { hop, ..packet }, next as usize);
                None
            }
            Next::Arrived if packet.ecn == Ecn::Damaged => {
                self.discard_corrupted(packet.for_record())
            }
            Next::Arrived => self.deliver_to_host(packet),
            Next::Unreachable => {
                self.lose(NONE, packet, EventKind::Loss);
                None
            }
            Next::NotRouted => self.follow_path(packet),
        }
    }

    /// A damaged packet comes to its end, which discards it for its checksum.
    #[cold]
    pub(super) fn discard_corrupted(&mut self, packet: Packet) -> Option<(Packet, Time)> {
        self.lose(NONE, packet, EventKind::Loss);
        None
    }

    /// Packets of the flow in a place that a medium made.
    pub fn copies(&self, slot: usize) -> u64 {
        if self.copies.is_empty() {
            return 0;
        }
        let flow = self.slots.number(slot);
        self.copies.get(&flow).copied().unwrap_or(0)
    }

    /// What the medium behind a link did.
    pub fn impairment_counters(&self, link: usize) -> ImpairmentCounters {
        self.impairments
            .get(&link)
            .map_or(ImpairmentCounters::default(), Impairment::counters)
    }
}
