//! Routes as the simulation follows them: queueing links, and delays where nothing can queue.

use std::collections::VecDeque;

use ackclock_units::Time;

use crate::packet::Packet;
use crate::plan::{FlowPlan, HopPlan, PathPlan};

/// Packets in a delay that nothing can shorten or lengthen, each with the time of its arrival.
pub type Flight = VecDeque<(Time, Packet)>;

/// When the first packet of a flight arrives; [`Time::NEVER`] if there is none.
#[inline(always)]
pub fn first_due(flight: &Flight) -> Time {
    flight.front().map_or(Time::NEVER, |&(due, _)| due)
}

/// A delay before a queueing link.
#[derive(Debug)]
pub struct Stretch {
    /// The packets in it.
    pub flight: Flight,
    /// The link at its end.
    pub link: u32,
}

/// The way to a queueing link.
#[derive(Clone, Copy, Debug)]
pub enum Hop {
    /// At once into the queue of this link.
    Here(u32),
    /// Through a delay.
    After {
        /// How long it takes.
        delay: Time,
        /// Number of the [`Stretch`].
        stretch: u32,
    },
    /// Wherever the routing says.
    Routed,
}

/// A flow's way there and back, and the packets on its last part. It fits one cache line: with many
/// flows, each packet costs as much as the lines that it needs.
#[derive(Debug)]
#[repr(align(64))]
pub struct Route {
    /// The last delay on the way back.
    pub home: Flight,
    /// Delay from the last queue to the receiver.
    pub forward_delay: Time,
    /// Delay from the last queue (or the receiver, if there is none) to the sender.
    pub reverse_delay: Time,
    /// Queues other than the first one, if there are any.
    further: Option<Box<Further>>,
    /// Packets of the flow that a queue dropped or a link lost.
    pub gone: u64,
}

/// The queues after the first one on the way there, and all on the way back.
#[derive(Debug)]
struct Further {
    forward: Box<[Hop]>,
    reverse: Box<[Hop]>,
}

impl Route {
    /// The route of a flow, and the hop at which its packets enter it; adds the delays before links to
    /// `stretches`. Paths have at least one hop there: [`crate::plan::Plan::check`].
    pub fn new(plan: &FlowPlan, stretches: &mut Vec<Stretch>) -> (Route, Hop) {
        if plan.ends.is_some() {
            return (Route::routed(), Hop::Routed);
        }
        let forward = hops(&plan.forward, false, stretches);
        let reverse = hops(&plan.reverse, true, stretches);
        let (entrance, forward) = (forward[0], &forward[1..]);
        let is_short = forward.is_empty() && reverse.is_empty();
        let further = Further {
            forward: forward.into(),
            reverse,
        };
        let route = Route {
            home: Flight::new(),
            forward_delay: plan.forward.delay,
            reverse_delay: plan.reverse.delay,
            further: (!is_short).then(|| Box::new(further)),
            gone: 0,
        };
        (route, entrance)
    }

    /// What a routed flow has: its packets go nowhere by themselves.
    fn routed() -> Route {
        Route {
            home: Flight::new(),
            forward_delay: Time::ZERO,
            reverse_delay: Time::ZERO,
            further: Some(Box::new(Further {
                forward: Box::default(),
                reverse: Box::new([Hop::Routed]),
            })),
            gone: 0,
        }
    }

    /// The hop after number `index` on the way there (`forward`) or back.
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

    /// The first hop on the way back.
    #[inline]
    pub fn first_hop_back(&self) -> Option<Hop> {
        self.further.as_ref()?.reverse.first().copied()
    }
}

/// The hops of a path, in order. One without delay needs no stretch, unless packets start towards it
/// ahead of the simulation's clock (`ahead`: the first hop of the way back).
fn hops(plan: &PathPlan, ahead: bool, stretches: &mut Vec<Stretch>) -> Box<[Hop]> {
    let hop = |(index, hop): (usize, &HopPlan)| {
        if hop.delay == Time::ZERO && !(ahead && index == 0) {
            return Hop::Here(hop.link);
        }
        stretches.push(Stretch {
            flight: Flight::new(),
            link: hop.link,
        });
        Hop::After {
            delay: hop.delay,
            stretch: (stretches.len() - 1) as u32,
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
