//! Links: the way into one, and the events of those with propagation delay, among them all links between nodes.
//!
//! All packets of a link with propagation delay share its delay queue. At its end a packet continues by its flow's path,
//! to the link that the routing selects, or to the sender or receiver, whose clock is the simulation's.
//!
//! A packet is in the delay queue from the start of its transmission ([`crate::link`]), so most hops cost one event.

use ackclock_plan::LinkPlan;

use super::{
    Due, EventKind, Impairment, Network, Next, Packet, PacketAction, Plan, Time, TimingWheel, NONE,
};

/// Wire bytes of a typical packet, for the horizon of the timing wheel.
const TYPICAL_BYTES: u64 = 1500;

/// Timing wheel of a plan's links: most events are no further ahead than a transmission and a delay.
pub fn timing_wheel(plan: &Plan) -> TimingWheel {
    let hop = |link: &LinkPlan| link.delay + link.rate.transmission_time(TYPICAL_BYTES);
    let sum = plan.links.iter().map(hop).fold(Time::ZERO, |a, b| a + b);
    let mean = sum.picoseconds() / plan.links.len().max(1) as u64;
    let sources = 2 + usize::from(Impairment::is_planned(plan));
    TimingWheel::new(sources * plan.links.len() + 1, Time::from_picoseconds(mean))
}

impl Network {
    /// Offer a packet to a link. What is not handed on stays in registers; a link with propagation delay gets a copy.
    #[inline(always)]
    pub(super) fn offer(&mut self, packet: Packet, link: usize) {
        if self.links[link].propagation.exists {
            self.offer_behind_queue(packet.entering(self.now), link);
        } else {
            self.admit::<false>(packet, link, self.is_traced);
        }
    }

    /// Offer a packet of which the caller keeps no other part in registers.
    #[inline(always)]
    pub(super) fn offer_from_memory(&mut self, packet: Packet, link: usize) {
        let this = &mut self.links[link];
        if this.is_idle(self.now) {
            let arrival = this.bypass(packet, self.now);
            self.schedule_arrival(link, arrival);
        } else {
            self.offer_behind_queue(packet, link);
        }
    }

    /// Offer a packet to a link that may be idle once it has caught up.
    #[inline(never)]
    fn offer_behind_queue(&mut self, packet: Packet, link: usize) {
        let this = &mut self.links[link];
        if !this.propagation.exists {
            return self.admit::<false>(packet, link, self.is_traced);
        }
        this.catch_up(self.now);
        if this.is_idle(self.now) {
            let arrival = this.bypass(packet, self.now);
            self.schedule_arrival(link, arrival);
        } else if self.is_traced {
            self.admit::<true>(packet, link, true);
        } else {
            self.admit::<true>(packet, link, false);
        }
    }

    /// Admit a packet to a link, which may lose it or queue it, and log that. Links with and without propagation delay
    /// (`PROPAGATES`) are compiled separately: to distinguish them for each packet costs 3 % of all instructions.
    #[inline(always)]
    fn admit<const PROPAGATES: bool>(&mut self, packet: Packet, link: usize, log: bool) {
        let this = &mut self.links[link];
        let due = this.offer::<PROPAGATES>(packet, self.now);
        let has_drops = this.has_drops();
        let Some(due) = due else {
            return self.lose(link as u32, packet.for_record(), EventKind::Loss);
        };
        if log {
            let packet = packet.for_record();
            self.write_log(self.now, link as u32, packet, PacketAction::Enqueue);
            if PROPAGATES {
                self.schedule_departure(link, due.departure);
            }
        }
        if PROPAGATES {
            self.schedule_link(link, due);
        } else if !due.next().is_never() {
            self.transmissions.set(link, due.next());
        }
        if has_drops {
            self.record_drops(link);
        }
    }

    #[inline(always)]
    fn record_drops_if_any(&mut self, link: usize) {
        if self.links[link].has_drops() {
            self.record_drops(link);
        }
    }

    #[cold]
    pub(super) fn record_drops(&mut self, link: usize) {
        let empty = std::mem::take(&mut self.spare_drop_log);
        let mut drop_log = self.links[link].take_drop_log(empty);
        for packet in drop_log.dropped.drain(..) {
            self.lose(link as u32, packet, EventKind::Drop);
        }
        for packet in drop_log.marked.drain(..) {
            let (flow, value) = (packet.flow, packet.number() as f64);
            let time_s = self.plan_time_s();
            let events = &mut self.tables.events;
            events.push(time_s, flow, link as u32, EventKind::Mark, value);
        }
        self.spare_drop_log = drop_log;
    }

    /// Handle the event that [`Network::link_event_before`] returned. If a packet has arrived, returns it with the
    /// local time of its arrival; for one that has arrived at its sender, call [`Network::take_blocks`] next.
    #[inline(never)]
    pub fn on_link_event(&mut self, source: usize) -> Option<(Packet, Time)> {
        self.link_events.take();
        let links = self.links.len();
        if source < links {
            self.revisit(source);
            None
        } else if source < 2 * links {
            self.on_propagated(source - links)
        } else if source == 2 * links {
            self.on_change();
            None
        } else {
            self.on_impairment(source - 2 * links - 1)
        }
    }

    /// Handle the arrival of the first packet in a link's propagation delay.
    #[inline(always)]
    fn on_propagated(&mut self, link: usize) -> Option<(Packet, Time)> {
        let source = self.links.len() + link;
        let this = &mut self.links[link];
        let end = this.propagation.end;
        let (packet, next) = this.propagation.pop();
        let next = next.min(this.catch_up(self.now));
        if !next.is_never() {
            self.link_events.add(source, next);
        }
        self.forward_from_node(packet, end)
    }

    /// Deliver a routed packet to its host: to TCP directly, unless the host has a processing delay.
    #[inline(always)]
    pub(super) fn deliver_to_host(&mut self, packet: Packet) -> Option<(Packet, Time)> {
        let slot = self.slots.slot_of(packet.flow);
        if let Some(Some(route)) = self.routes.get(slot) {
            if route.hosts.is_some() {
                self.delay_at_host(slot, packet);
                return None;
            }
        }
        self.log(self.now, NONE, &packet, PacketAction::Arrive);
        Some((packet, self.now))
    }

    /// Delay a routed packet at its host. The flow's return queue holds it, at either end.
    #[inline(never)]
    fn delay_at_host(&mut self, slot: usize, packet: Packet) {
        let forward = packet.kind.is_forward();
        if forward {
            self.log(self.now, NONE, &packet, PacketAction::Arrive);
        }
        let Some(route) = &mut self.routes[slot] else {
            return;
        };
        let Some(hosts) = &mut route.hosts else {
            return;
        };
        let host = if forward {
            &mut hosts.receiver
        } else {
            &mut hosts.sender
        };
        let due = host.ready(self.now);
        if route.return_queue.push(due, packet) {
            self.arrivals.set(self.delay_lines.len() + slot, due);
        }
    }

    /// Forward a packet on its explicit path, out of line.
    #[inline(never)]
    pub(super) fn follow_path(&mut self, packet: Packet) -> Option<(Packet, Time)> {
        self.forward_on_path(packet)
    }

    /// Send a packet of a routed flow from its host.
    #[inline(never)]
    pub(super) fn send_from_host(&mut self, packet: Packet) {
        let forward = packet.kind.is_forward();
        match self
            .routing
            .first(self.slots.slot_of(packet.flow), forward, self.now)
        {
            Next::Link(link) => self.offer_from_memory(packet, link as usize),
            _ => self.lose(NONE, packet, EventKind::Loss),
        }
    }

    /// Poll a link whose transmitter is free, or whose discipline may release a packet.
    #[inline]
    fn revisit(&mut self, link: usize) {
        self.log_departure(link);
        let due = self.links[link].resume(self.now);
        if self.is_traced {
            self.schedule_departure(link, due.departure);
        }
        self.schedule_link(link, due);
        self.record_drops_if_any(link);
    }

    /// Schedule the events that follow an offer to or a poll of a link with propagation delay.
    #[inline(always)]
    fn schedule_link(&mut self, link: usize, due: Due) {
        self.schedule_arrival(link, due.arrival);
        if !due.revisit.is_never() {
            self.link_events.set(link, due.revisit);
        }
    }

    /// Schedule the arrival of the first packet in a link's propagation delay, if that was empty.
    #[inline(always)]
    pub(super) fn schedule_arrival(&mut self, link: usize, arrival: Time) {
        if !arrival.is_never() {
            self.link_events.add(self.links.len() + link, arrival);
        }
    }

    /// Schedule the departure of a packet, which the log or a capture records.
    #[cold]
    fn schedule_departure(&mut self, link: usize, departure: Time) {
        let launched = self.links[link].propagation.last().copied();
        let Some(packet) = launched.filter(|_| !departure.is_never()) else {
            return;
        };
        self.write_departure(link);
        self.departing.insert(link, packet);
        if departure > self.now {
            self.link_events.set(link, departure);
        } else {
            self.write_departure(link);
        }
    }

    /// Log the departure of the last packet transmitted.
    #[inline(always)]
    fn log_departure(&mut self, link: usize) {
        if self.is_traced {
            self.write_departure(link);
        }
    }

    #[cold]
    fn write_departure(&mut self, link: usize) {
        if let Some(packet) = self.departing.remove(&link) {
            self.write_log(self.now, link as u32, packet, PacketAction::Dequeue);
        }
    }

    /// Compute the transmissions of all lazy links up to `now`.
    pub fn catch_up(&mut self, now: Time) {
        for link in 0..self.links.len() {
            self.catch_up_link(link, now);
        }
    }

    /// Compute the transmissions of a lazy link up to `now`.
    pub(super) fn catch_up_link(&mut self, link: usize, now: Time) {
        let arrival = self.links[link].catch_up(now);
        self.schedule_arrival(link, arrival);
    }

    /// Abort a link's transmission in progress and return its packet.
    pub(super) fn abort_transmission(&mut self, link: usize) -> Option<Packet> {
        if self.links[link].busy_until() <= self.now {
            return None;
        }
        self.links[link].abort_transmission(self.now);
        self.departing.remove(&link);
        self.take_last(link)
    }

    /// Remove the last packet in a link's propagation delay.
    fn take_last(&mut self, link: usize) -> Option<Packet> {
        let source = self.links.len() + link;
        let first_due = self.link_events.time(source);
        let propagation = &mut self.links[link].propagation;
        let packet = propagation.pop_last(first_due);
        if propagation.is_empty() {
            self.link_events.set(source, Time::NEVER);
        }
        packet
    }

    /// Set the propagation delay of packets that have not left the transmitter.
    pub(super) fn set_delay(&mut self, link: usize, delay: Time) {
        if let Some(medium) = self.impairments.get_mut(&link) {
            return medium.set_delay(delay);
        }
        self.links[link].propagation.set_delay(delay);
        let done = self.links[link].busy_until();
        if done <= self.now {
            return;
        }
        if let Some(packet) = self.take_last(link) {
            let arrival = self.links[link].propagation.push(packet, done);
            self.schedule_arrival(link, arrival);
        }
    }
}
