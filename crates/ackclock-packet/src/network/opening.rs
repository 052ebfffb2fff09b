//! Routes are opened when a flow begins and forgotten when it is over.

use ackclock_plan::{EndsPlan, FlowPlan};

use super::{Hop, Network, Route, Time, Way};
use crate::PlanError;

impl Network {
    /// Whether ways lead from one host to the other and back.
    ///
    /// # Errors
    /// If not.
    pub fn check_ends(&mut self, ends: EndsPlan) -> Result<(), PlanError> {
        self.routing.check_ends(ends)
    }

    /// A connection begins; see [`Network::open_route`].
    pub fn open_connection(&mut self, flow: u32, way: u32, plan: &FlowPlan) -> (Hop, Time) {
        if let Some(capture) = &mut self.capture {
            capture.open(flow, plan);
        }
        self.open_route(flow, way, plan.ends)
    }

    /// A flow takes one of the ways, or is routed between two hosts that [`Network::check_ends`] has seen. Returns
    /// the hop at which its packets enter the network, and the delay from the last queue to its receiver.
    pub fn open_route(&mut self, flow: u32, way: u32, ends: Option<EndsPlan>) -> (Hop, Time) {
        let routed = ends.map(|_| Way::routed());
        let way = routed.as_ref().unwrap_or_else(|| &self.ways[way as usize]);
        let route = Route::along(way);
        let (delay, entrance) = (route.forward_delay, way.entrance);
        self.routes[flow as usize] = Some(Box::new(route));
        // If links have failed, there may be no way now: packets look for one each time.
        let kept = match self.routing.open(flow as usize, flow, ends) {
            Ok(()) if ends.is_some() => self.routing.kept_entrance(flow as usize),
            _ => None,
        };
        (kept.map_or(entrance, Hop::Here), delay)
    }

    /// Sum of the propagation delays there and back; NaN if there is no such way, or no one way.
    pub fn base_rtt_s(&mut self, flow: u32, way: u32, ends: Option<EndsPlan>) -> f64 {
        let routed = ends.map(|ends| self.routing.ways_of(flow, ends));
        match routed {
            Some(links) => links.map_or(f64::NAN, |links| self.delay_s(&links)),
            None => self.ways[way as usize].base_rtt.seconds(),
        }
    }

    /// Sum of the links' propagation delays.
    fn delay_s(&self, links: &[u32]) -> f64 {
        let delays = links
            .iter()
            .map(|&link| self.links[link as usize].wire.delay);
        let sum = delays.fold(Time::ZERO, |sum, delay| sum + delay);
        sum.seconds()
    }

    /// Forgets a flow of which no packet is under way.
    pub fn close_route(&mut self, flow: u32) {
        self.routes[flow as usize] = None;
        if let Some(capture) = &mut self.capture {
            capture.close(flow);
        }
    }
}
