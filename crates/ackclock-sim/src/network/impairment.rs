//! Impairments behind a link's transmitter: rewriting of the ECN field, jitter, reordering, duplication, corruption.
//!
//! The ECN field comes first ([`ecn_field`]). As in netem: a packet may be duplicated first, then each copy is corrupted and delayed separately. Each of the four
//! has a separate stream of random numbers, so one does not change the others. A packet that is reordered arrives
//! without the link's delay. Without an order to keep, packets arrive by their times.

use std::collections::BTreeMap;

use ackclock_core::random::unit_interval;
use ackclock_core::tables::EventKind;
use ackclock_core::Time;
use ackclock_plan::{Distribution, ImpairmentPlan, JitterPlan, LinkPlan, Plan};
use rand_core::RngCore;
use rand_pcg::Pcg64Mcg;

use super::{Network, Next, Packet, NONE};
use crate::delay_queue::DelayQueue;
use crate::link::ecn_field;

/// Counts of impaired packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImpairmentCounters {
    /// Corrupted packets.
    pub corrupted: u64,
    /// Duplicated packets.
    pub duplicated: u64,
    /// Packets that arrived after one that had entered later (RFC 4737 section 3).
    pub reordered: u64,
}

/// An impairment, and the packets that it delays.
pub struct Impairment {
    plan: ImpairmentPlan,
    delay: Time,
    jitter: Pcg64Mcg,
    reorder: Pcg64Mcg,
    duplicate: Pcg64Mcg,
    corrupt: Pcg64Mcg,
    /// Delayed packets, with the order in which they entered.
    packets: DelayQueue<(u64, Packet)>,
    /// Number of the last packet that entered, and of the latest that has arrived.
    last_entered: u64,
    last_arrived: u64,
    /// Arrival of the last packet that keeps its order.
    last_due: Time,
    counters: ImpairmentCounters,
}

impl Impairment {
    /// True if a plan has impairments.
    pub fn is_planned(plan: &Plan) -> bool {
        let mut changes = plan.changes.iter();
        plan.links.iter().any(|link| link.medium.is_some())
            || changes.any(|change| change.medium.is_some())
    }

    /// Impairments of a plan by link, including those that a change will set.
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
            plan: plan.medium.unwrap_or(ImpairmentPlan::NONE),
            delay: plan.delay,
            jitter: stream(2),
            reorder: stream(3),
            duplicate: stream(4),
            corrupt: stream(5),
            packets: DelayQueue::default(),
            last_entered: 0,
            last_arrived: 0,
            last_due: Time::ZERO,
            counters: ImpairmentCounters::default(),
        }
    }

    /// Set the parameters.
    pub fn set(&mut self, plan: ImpairmentPlan) {
        self.plan = plan;
    }

    /// Set the delay of packets that are still to enter.
    pub fn set_delay(&mut self, delay: Time) {
        self.delay = delay;
    }

    /// Counts so far.
    pub fn counters(&self) -> ImpairmentCounters {
        self.counters
    }

    /// Delayed packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Draw whether the next packet is duplicated.
    fn draw_duplicate(&mut self) -> bool {
        let is_doubled = occurs(&mut self.duplicate, self.plan.duplicate);
        self.counters.duplicated += u64::from(is_doubled);
        is_doubled
    }

    /// Insert a packet; returns whether it is corrupted.
    fn insert(&mut self, mut packet: Packet, now: Time) -> bool {
        let is_corrupted = occurs(&mut self.corrupt, self.plan.corrupt);
        if is_corrupted {
            packet.corrupt();
            self.counters.corrupted += 1;
        }
        self.last_entered += 1;
        let due = self.due(now);
        self.packets.insert(due, (self.last_entered, packet));
        is_corrupted
    }

    /// Arrival of a packet that enters now.
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

    /// A packet behind a rewriting of its ECN field and the egress of a tunnel; `None` if that drops it.
    fn leave_tunnel(&self, packet: Packet) -> Option<Packet> {
        let rewritten = match self.plan.ecn {
            Some(rewriting) => ecn_field::rewrite(rewriting, packet.flags),
            None => packet.flags,
        };
        let flags = match self.plan.tunnel {
            Some(tunnel) => ecn_field::decapsulate(tunnel, rewritten)?,
            None => rewritten,
        };
        Some(Packet { flags, ..packet })
    }

    fn pop(&mut self) -> Option<Packet> {
        let (_, (number, packet)) = self.packets.pop()?;
        self.counters.reordered += u64::from(number < self.last_arrived);
        self.last_arrived = self.last_arrived.max(number);
        Some(packet)
    }
}

/// Delay with jitter, not below zero.
fn jittered(random: &mut Pcg64Mcg, delay: Time, jitter: JitterPlan) -> Time {
    let deviations = match jitter.distribution {
        Distribution::Uniform => 2.0 * unit_interval(random.next_u64()) - 1.0,
        Distribution::Normal => {
            // G. Box, M. Muller: A note on the generation of random normal deviates, 1958. The first is not 0.
            let (radius, angle) = (
                1.0 - unit_interval(random.next_u64()),
                unit_interval(random.next_u64()),
            );
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }
    };
    Time::from_seconds(delay.seconds() + deviations * jitter.deviation.seconds())
}

/// Draw an event of this probability. A probability of zero takes no random number.
fn occurs(random: &mut Pcg64Mcg, chance: f64) -> bool {
    chance > 0.0 && unit_interval(random.next_u64()) < chance
}

impl Network {
    /// Index of the event of a link's impairment.
    fn impairment_event(&self, link: usize) -> usize {
        2 * self.links.len() + 1 + link
    }

    /// Insert a packet that has left a transmitter into the impairment behind it, if there is one. `hop` is the
    /// packet's, of which the caller passes a separate copy.
    #[cold]
    pub(super) fn enter_impairment(&mut self, link: usize, packet: Packet, hop: u8) -> bool {
        let packet = Packet { hop, ..packet };
        let Some(impairment) = self.impairments.get_mut(&link) else {
            return false;
        };
        let Some(packet) = impairment.leave_tunnel(packet) else {
            self.lose(NONE, packet, EventKind::Loss);
            return true;
        };
        let copy = impairment.draw_duplicate().then(|| {
            let attachment = self.attachments.duplicate(packet.attachment);
            if let Some(captures) = &mut self.captures {
                captures.duplicate(packet.attachment, attachment);
            }
            Packet {
                attachment,
                ..packet
            }
        });
        let copied = copy.map(|copy| impairment.insert(copy, self.now));
        let corrupted = impairment.insert(packet, self.now);
        let next = impairment.packets.first_due();
        let event = self.impairment_event(link);
        self.link_events.set(event, next);
        if let Some(is_corrupted) = copied {
            *self.copies.entry(packet.flow).or_default() += 1;
            self.report_impairment(link, packet, EventKind::Duplicate);
            if is_corrupted {
                self.report_impairment(link, packet, EventKind::Corruption);
            }
        }
        if corrupted {
            self.report_impairment(link, packet, EventKind::Corruption);
        }
        true
    }

    fn report_impairment(&mut self, link: usize, packet: Packet, kind: EventKind) {
        let (time_s, value) = (self.plan_time_s(), packet.number() as f64);
        let events = &mut self.tables.events;
        events.push(time_s, packet.flow, link as u32, kind, value);
    }

    /// Handle the next arrival from an impairment; returns as [`Network::on_link_event`].
    #[cold]
    pub(super) fn on_impairment(&mut self, link: usize) -> Option<(Packet, Time)> {
        let impairment = self.impairments.get_mut(&link)?;
        let packet = impairment.pop()?;
        let next = impairment.packets.first_due();
        let event = self.impairment_event(link);
        self.link_events.set(event, next);
        let end = self.links[link].propagation.end;
        self.forward_from_node(packet, end)
    }

    /// Forward a packet from a node, or on its explicit path. If it has arrived at its destination, returns it with its
    /// time.
    #[inline(always)]
    pub(super) fn forward_from_node(&mut self, packet: Packet, end: u32) -> Option<(Packet, Time)> {
        match self
            .routing
            .next(self.slots.slot_of(packet.flow), &packet, end, self.now)
        {
            Next::Link(next) => {
                let hop = packet.hop.wrapping_add(1);
                self.offer_from_memory(Packet { hop, ..packet }, next as usize);
                None
            }
            Next::Arrived if packet.is_corrupted() => self.discard_corrupted(packet.for_record()),
            Next::Arrived => self.deliver_to_host(packet),
            Next::Unreachable => {
                self.lose(NONE, packet, EventKind::Loss);
                None
            }
            Next::NotRouted => self.follow_path(packet),
        }
    }

    /// Discard a corrupted packet at its destination, for its checksum.
    #[cold]
    pub(super) fn discard_corrupted(&mut self, packet: Packet) -> Option<(Packet, Time)> {
        self.lose(NONE, packet, EventKind::Loss);
        None
    }

    /// Duplicates that impairments made, of the flow in a slot.
    pub fn copies(&self, slot: usize) -> u64 {
        if self.copies.is_empty() {
            return 0;
        }
        let flow = self.slots.number(slot);
        self.copies.get(&flow).copied().unwrap_or(0)
    }

    /// Counts of the impairment behind a link.
    pub fn impairment_counters(&self, link: usize) -> ImpairmentCounters {
        self.impairments
            .get(&link)
            .map_or(ImpairmentCounters::default(), Impairment::counters)
    }
}
