//! Routes are opened when a flow begins and forgotten when it is over.

use super::{Hop, Network, Path, Route, Time};
use crate::processing::Hosts;
use crate::PlanError;
use ackclock_plan::{EndsPlan, FlowPlan};

impl Network {
    /// A transfer gets a place.
    pub fn take_place(&mut self, flow: u32) -> usize {
        let place = self.places.take(flow);
        self.furnish(place);
        place
    }

    /// A transfer that is over gives its place back.
    pub fn give_place_back(&mut self, place: usize) {
        self.places.give_back(place);
    }

    /// Makes room for the flow that has got a place.
    pub(super) fn furnish(&mut self, place: usize) {
        if place >= self.routes.len() {
            self.routes.resize_with(place + 1, || None);
            self.gone.resize(place + 1, 0);
        }
        let source = self.delay_lines.len() + place;
        self.arrivals.make_room(source + 1);
        self.arrivals.enrol(source, self.places.number(place));
    }

    /// Whether paths lead from one host to the other and back.
    ///
    /// # Errors
    /// If not.
    pub fn check_ends(&mut self, ends: EndsPlan) -> Result<(), PlanError> {
        self.routing.check_ends(ends)
    }

    /// A connection begins; see [`Network::open_route`].
    pub fn open_connection(&mut self, place: usize, path: u32, plan: &FlowPlan) -> (Hop, Time) {
        if let Some(captures) = &mut self.captures {
            captures.open(self.places.number(place), plan);
        }
        let opened = self.open_route(place, path, plan.ends);
        if let Some(route) = &mut self.routes[place] {
            route.hosts = Hosts::of(plan, self.places.number(place), self.seed);
        }
        opened
    }

    /// The flow in a place takes one of the paths, or is routed between two hosts that [`Network::check_ends`] has seen. Returns
    /// the hop at which its packets enter the network, and the delay from the last queue to its receiver.
    pub fn open_route(&mut self, place: usize, path: u32, ends: Option<EndsPlan>) -> (Hop, Time) {
        if let (Some(captures), None) = (&mut self.captures, ends) {
            captures.take_path(self.places.number(place), path);
        }
        let routed = ends.map(|_| Path::routed());
        let path = routed
            .as_ref()
            .unwrap_or_else(|| &self.paths[path as usize]);
        let route = Route::along(path);
        let (delay, entrance) = (route.forward_delay, path.entrance);
        self.routes[place] = Some(Box::new(route));
        // If links have failed, there may be no path now: packets look for one each time.
        let kept = match self.routing.open(place, self.places.number(place), ends) {
            Ok(()) if ends.is_some() => self.routing.kept_entrance(place),
            _ => None,
        };
        (kept.map_or(entrance, Hop::Here), delay)
    }

    /// Writes down the links that a routed flow's data pass, if they are known beforehand.
    pub fn write_path(&mut self, flow: u32, ends: Option<EndsPlan>) {
        let links = ends.and_then(|ends| self.routing.path_there(flow, ends));
        let rows = &mut self.tables.paths;
        for (link, hop) in links.into_iter().flatten().zip(0..) {
            rows.flow.push(flow);
            rows.hop.push(hop);
            rows.link.push(link);
        }
    }

    /// Sum of the propagation delays there and back; NaN if there is no such path, or not only one.
    pub fn base_rtt_s(&mut self, flow: u32, path: u32, ends: Option<EndsPlan>) -> f64 {
        let routed = ends.map(|ends| self.routing.paths_of(flow, ends));
        match routed {
            Some(links) => links.map_or(f64::NAN, |links| self.delay_s(&links)),
            None => self.paths[path as usize].base_rtt.seconds(),
        }
    }

    /// The rate in bit/s of the slowest link that a flow's data pass, as they are now; where its packets draw their
    /// way, of one of the ways. NaN if there is none.
    pub fn path_rate_bps(&mut self, flow: u32, path: u32, ends: Option<EndsPlan>) -> f64 {
        let slower =
            |least: f64, link: u32| least.min(self.links[link as usize].rate().bits_per_second());
        if let Some(ends) = ends {
            let links = self.routing.some_path_there(flow, ends);
            return links.into_iter().flatten().fold(f64::NAN, slower);
        }
        let path = &self.paths[path as usize];
        path.links_there(&self.delay_lines).fold(f64::NAN, slower)
    }

    /// Sum of the links' propagation delays.
    fn delay_s(&self, links: &[u32]) -> f64 {
        let delays = links
            .iter()
            .map(|&link| self.links[link as usize].propagation.delay);
        let sum = delays.fold(Time::ZERO, |sum, delay| sum + delay);
        sum.seconds()
    }

    /// Forgets the route of a flow of which no packet is under way.
    pub fn close_route(&mut self, place: usize) {
        self.routes[place] = None;
        self.gone[place] = 0;
        self.copies.remove(&self.places.number(place));
        if let Some(captures) = &mut self.captures {
            captures.close(self.places.number(place));
        }
    }
}
