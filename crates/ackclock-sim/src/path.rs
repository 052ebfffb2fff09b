//! Routes as the simulation follows them: queueing links, and delays where nothing can queue.

use std::collections::VecDeque;
use std::sync::Arc;

use ackclock_core::Time;
use ackclock_plan::{HopPlan, PathPlan};

use crate::packet::Packet;
use crate::processing::Hosts;

/// Packets in a delay that nothing can shorten or lengthen, each with the time of its arrival.
pub type Flight = VecDeque<(Time, Packet)>;

/// When the first packet of a flight arrives; [`Time::NEVER`] if there is none.
#[inline(always)]
pub fn first_due(flight: &Flight) -> Time {
    flight.front().map_or(Time::NEVER, |&(due, _)| due)
}

/// Adds a packet to a flight; returns whether it is the first to arrive now. A packet that starts ahead of the
/// clock may be overtaken by one that does not, so a later one may have to go before it.
#[inline(always)]
pub fn set_off(flight: &mut Flight, due: Time, packet: Packet) -> bool {
    match flight.back() {
        Some(&(last, _)) if last > due => put_in_order(flight, due, packet.entering(due)),
        _ => {
            flight.push_back((due, packet));
            flight.len() == 1
        }
    }
}

#[cold]
fn put_in_order(flight: &mut Flight, due: Time, packet: Packet) -> bool {
    let place = flight.partition_point(|&(time, _)| time <= due);
    flight.insert(place, (due, packet));
    place == 0
}

/// A delay before a queueing link.
#[derive(Debug)]
pub struct DelayLine {
    /// The packets in it.
    pub flight: Flight,
    /// The link at its end.
    pub link: u32,
}

/// How a packet comes to a queueing link.
#[derive(Clone, Copy, Debug)]
pub enum Hop {
    /// At once into the queue of this link.
    Here(u32),
    /// Through a delay.
    After {
        /// How long it takes.
        delay: Time,
        /// Number of the [`DelayLine`].
        delay_line: u32,
    },
    /// Wherever the routing says.
    Routed,
}

/// A path there and back, compiled. Flows that take it one after the other or together share its delay lines.
#[derive(Debug)]
pub struct Path {
    /// The hop at which packets enter it.
    pub entrance: Hop,
    /// Sum of the propagation delays both ways.
    pub base_rtt: Time,
    forward_delay: Time,
    reverse_delay: Time,
    further: Option<Arc<Further>>,
}

impl Path {
    /// What a routed flow takes: its packets go nowhere by themselves.
    pub fn routed() -> Path {
        Path {
            entrance: Hop::Routed,
            base_rtt: Time::NEVER,
            forward_delay: Time::ZERO,
            reverse_delay: Time::ZERO,
            further: Some(Arc::new(Further {
                forward: Box::default(),
                reverse: Box::new([Hop::Routed]),
            })),
        }
    }

    /// From a plan's two paths, or from none for a routed flow; adds the delays before links to `delay_lines`. A
    /// path there has at least one hop: [`ackclock_plan::Plan::check`].
    pub fn new(forward: &PathPlan, reverse: &PathPlan, delay_lines: &mut Vec<DelayLine>) -> Path {
        if forward.hops.is_empty() {
            return Path::routed();
        }
        let hops_there = hops(forward, false, delay_lines);
        let hops_back = hops(reverse, true, delay_lines);
        let (entrance, rest) = (hops_there[0], &hops_there[1..]);
        let is_short = rest.is_empty() && hops_back.is_empty();
        let further = Further {
            forward: rest.into(),
            reverse: hops_back,
        };
        Path {
            entrance,
            base_rtt: delay(forward) + delay(reverse),
            forward_delay: forward.delay,
            reverse_delay: reverse.delay,
            further: (!is_short).then(|| Arc::new(further)),
        }
    }

    /// The links that data pass, in order.
    pub fn links_there<'a>(
        &'a self,
        delay_lines: &'a [DelayLine],
    ) -> impl Iterator<Item = u32> + 'a {
        let rest = self.further.iter().flat_map(|further| &further.forward[..]);
        let hops = std::iter::once(&self.entrance).chain(rest);
        hops.filter_map(|hop| match *hop {
            Hop::Here(link) => Some(link),
            Hop::After { delay_line, .. } => Some(delay_lines[delay_line as usize].link),
            Hop::Routed => None,
        })
    }
}

/// A flow's path there and back, and the packets on its last part. It fits one cache line: with many
/// flows, each packet costs as much as the lines that it needs.
#[derive(Debug)]
#[repr(align(64))]
pub struct Route {
    /// The last delay on the path back.
    pub home: Flight,
    /// Delay from the last queue to the receiver.
    pub forward_delay: Time,
    /// Delay from the last queue (or the receiver, if there is none) to the sender.
    pub reverse_delay: Time,
    /// Queues other than the first one, if there are any.
    further: Option<Arc<Further>>,
    /// The flow's hosts, if they take time for packets.
    pub hosts: Option<Box<Hosts>>,
}

/// The queues after the first one on the path there, and all on the path back.
#[derive(Debug)]
struct Further {
    forward: Box<[Hop]>,
    reverse: Box<[Hop]>,
}

impl Route {
    /// The route of a flow that takes this path.
    pub fn along(path: &Path) -> Route {
        Route {
            home: Flight::new(),
            forward_delay: path.forward_delay,
            reverse_delay: path.reverse_delay,
            further: path.further.clone(),
            hosts: None,
        }
    }

    /// The hop after number `index` on the path there (`forward`) or back.
    #[inline]
    pub fn hop_after(&self, index: u8, forward: bool) -> Option<Hop> {
        let further = self.further.as_ref()?;
        let index = usize::from(index);
        if forward {
            further.forward.get(index).copied()
        } else {
            further.reverse.get(index + 1).copied()
        }
    }

    /// A packet will reach the sender at `due`, which sees it when its host is ready; returns when that is if it is the
    /// first of those on their way.
    #[inline(always)]
    pub fn fly_home(&mut self, due: Time, packet: Packet) -> Option<Time> {
        let due = match &mut self.hosts {
            Some(hosts) => hosts.sender.ready(due),
            None => due,
        };
        set_off(&mut self.home, due, packet).then_some(due)
    }

    /// The first hop on the path back.
    #[inline]
    pub fn first_hop_back(&self) -> Option<Hop> {
        self.further.as_ref()?.reverse.first().copied()
    }
}

/// Propagation delay of a path.
fn delay(path: &PathPlan) -> Time {
    path.hops
        .iter()
        .fold(path.delay, |sum, hop| sum + hop.delay)
}

/// The hops of a path, in order. One without delay needs no delay line, unless packets start towards it
/// ahead of the simulation's clock (`ahead`: the first hop of the path back).
fn hops(plan: &PathPlan, ahead: bool, delay_lines: &mut Vec<DelayLine>) -> Box<[Hop]> {
    let hop = |(index, hop): (usize, &HopPlan)| {
        if hop.delay == Time::ZERO && !(ahead && index == 0) {
            return Hop::Here(hop.link);
        }
        delay_lines.push(DelayLine {
            flight: Flight::new(),
            link: hop.link,
        });
        Hop::After {
            delay: hop.delay,
            delay_line: (delay_lines.len() - 1) as u32,
        }
    };
    plan.hops.iter().enumerate().map(hop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_fits_one_cache_line() {
        assert_eq!(size_of::<Route>(), 64);
    }
}
