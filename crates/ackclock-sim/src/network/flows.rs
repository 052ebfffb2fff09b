//! Routes of flows: opened when a flow begins, closed when it has ended.

use super::{Hop, Losses, Network, Path, Route, Time};
use crate::host_delay::HostDelays;
use crate::PlanError;
use ackclock_plan::{EndsPlan, FlowPlan};

impl Network {
    /// Assign a slot to a transfer.
    pub fn assign_slot(&mut self, flow: u32) -> usize {
        let slot = self.slots.assign(flow);
        self.init_slot(slot);
        slot
    }

    /// Release the slot of a transfer that has ended.
    pub fn release_slot(&mut self, slot: usize) {
        self.slots.release(slot);
    }

    /// Initialise the state of a new slot.
    pub(super) fn init_slot(&mut self, slot: usize) {
        if slot >= self.routes.len() {
            self.routes.resize_with(slot + 1, || None);
            self.losses.resize(slot + 1, Losses::default());
        }
        let source = self.delay_lines.len() + slot;
        self.arrivals.reserve(source + 1);
        self.arrivals.register(source, self.slots.number(slot));
    }

    /// Check that paths lead from one host to the other and back.
    pub fn check_ends(&mut self, ends: EndsPlan) -> Result<(), PlanError> {
        self.routing.check_ends(ends)
    }

    /// Open the route of a connection; see [`Network::open_route`].
    pub fn open_connection(&mut self, slot: usize, path: u32, plan: &FlowPlan) -> (Hop, Time) {
        if let Some(captures) = &mut self.captures {
            captures.open(self.slots.number(slot), plan);
        }
        let opened = self.open_route(slot, path, plan.ends);
        if let Some(route) = &mut self.routes[slot] {
            route.hosts = HostDelays::of(plan, self.slots.number(slot), self.seed);
        }
        opened
    }

    /// Open the route of the flow in a slot: one of the explicit paths, or between two hosts that
    /// [`Network::check_ends`] accepts. Returns the hop at which its packets enter the network, and the delay from the
    /// last queue to its receiver.
    pub fn open_route(&mut self, slot: usize, path: u32, ends: Option<EndsPlan>) -> (Hop, Time) {
        if let (Some(captures), None) = (&mut self.captures, ends) {
            captures.take_path(self.slots.number(slot), path);
        }
        let routed = ends.map(|_| Path::routed());
        let path = routed
            .as_ref()
            .unwrap_or_else(|| &self.paths[path as usize]);
        let route = Route::along(path);
        let (delay, first_hop) = (route.forward_delay, path.first_hop);
        self.routes[slot] = Some(Box::new(route));
        // If links have failed, there may be no path now: each packet is routed separately.
        let kept = match self.routing.open(slot, self.slots.number(slot), ends) {
            Ok(()) if ends.is_some() => self.routing.first_link(slot),
            _ => None,
        };
        (kept.map_or(first_hop, Hop::Direct), delay)
    }

    /// Record the links of a routed flow's forward path, if it is fixed.
    pub fn write_path(&mut self, flow: u32, ends: Option<EndsPlan>) {
        let links = ends.and_then(|ends| self.routing.forward_path(flow, ends));
        let rows = &mut self.tables.paths;
        for (link, hop) in links.into_iter().flatten().zip(0..) {
            rows.flow.push(flow);
            rows.hop.push(hop);
            rows.link.push(link);
        }
    }

    /// Sum of the propagation delays in both directions; NaN without a path, or with more than one.
    pub fn base_rtt_s(&mut self, flow: u32, path: u32, ends: Option<EndsPlan>) -> f64 {
        let routed = ends.map(|ends| self.routing.paths_of(flow, ends));
        match routed {
            Some(links) => links.map_or(f64::NAN, |links| self.delay_s(&links)),
            None => self.paths[path as usize].base_rtt.seconds(),
        }
    }

    /// Present rate in bit/s of the slowest link on a flow's forward path; where each packet draws its
    /// path, of one such path. NaN without a path.
    pub fn path_rate_bps(&mut self, flow: u32, path: u32, ends: Option<EndsPlan>) -> f64 {
        let slower =
            |least: f64, link: u32| least.min(self.links[link as usize].rate().bits_per_second());
        if let Some(ends) = ends {
            let links = self.routing.sample_forward_path(flow, ends);
            return links.into_iter().flatten().fold(f64::NAN, slower);
        }
        let path = &self.paths[path as usize];
        path.forward_links(&self.delay_lines).fold(f64::NAN, slower)
    }

    /// Sum of the links' propagation delays.
    fn delay_s(&self, links: &[u32]) -> f64 {
        let delays = links
            .iter()
            .map(|&link| self.links[link as usize].propagation.delay);
        let sum = delays.fold(Time::ZERO, |sum, delay| sum + delay);
        sum.seconds()
    }

    /// Close the route of a flow that has no packet in transit.
    pub fn close_route(&mut self, slot: usize) {
        self.routes[slot] = None;
        self.losses[slot] = Losses::default();
        self.copies.remove(&self.slots.number(slot));
        if let Some(captures) = &mut self.captures {
            captures.close(self.slots.number(slot));
        }
    }
}
