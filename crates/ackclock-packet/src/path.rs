//! Paths: the queueing links on a flow's way and the delays between them.

use ackclock_units::Time;

use crate::plan::PathPlan;

/// One direction of a flow's way, compiled for the simulation.
#[derive(Clone, Debug)]
pub struct Path {
    /// The first queueing link, in place, because most paths have no other.
    first: Option<Hop>,
    /// The queueing links after it, in order.
    rest: Box<[Hop]>,
    /// Delay from the last hop (or the near end) to the far end.
    pub delay: Time,
}

/// A queueing link on a path.
#[derive(Clone, Copy, Debug)]
pub struct Hop {
    /// Index of the link.
    pub link: u32,
    /// Delay from the previous hop (or the near end) to this link's queue.
    pub delay: Time,
    /// The stretch of delay that holds packets on their way to this hop, if there is one.
    pub flight: Option<u32>,
}

impl Path {
    /// Compiles a path. `new_flight` makes a stretch of delay before a link and returns its number; a hop without delay has none,
    /// unless packets start towards it ahead of the simulation's clock (`ahead`: the first hop of the
    /// way back).
    pub fn new(plan: &PathPlan, ahead: bool, mut new_flight: impl FnMut(u32) -> u32) -> Path {
        let mut hops = plan.hops.iter().enumerate().map(|(index, hop)| Hop {
            link: hop.link,
            delay: hop.delay,
            flight: (hop.delay > Time::ZERO || (ahead && index == 0)).then(|| new_flight(hop.link)),
        });
        Path {
            first: hops.next(),
            rest: hops.collect(),
            delay: plan.delay,
        }
    }

    /// Hop number `index`, if the path has one.
    #[inline]
    pub fn hop(&self, index: u8) -> Option<&Hop> {
        match index {
            0 => self.first.as_ref(),
            _ => self.rest.get(usize::from(index) - 1),
        }
    }
}
