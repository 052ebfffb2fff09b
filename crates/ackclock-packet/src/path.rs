//! Paths: the queueing links on a flow's way and the delays between them.

use ackclock_units::Time;
use smallvec::SmallVec;

use crate::plan::PathPlan;

/// One direction of a flow's way, compiled for the simulation.
#[derive(Clone, Debug)]
pub struct Path {
    /// The queueing links, in order.
    pub hops: SmallVec<[Hop; 1]>,
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
    /// Compiles a path. `new_flight` numbers its stretches of delay; a hop without delay has none,
    /// unless packets start towards it ahead of the simulation's clock (`ahead`: the first hop of the
    /// way back).
    pub fn new(plan: &PathPlan, ahead: bool, mut new_flight: impl FnMut() -> u32) -> Path {
        let hops = plan.hops.iter().enumerate();
        Path {
            hops: hops
                .map(|(index, hop)| Hop {
                    link: hop.link,
                    delay: hop.delay,
                    flight: (hop.delay > Time::ZERO || (ahead && index == 0)).then(&mut new_flight),
                })
                .collect(),
            delay: plan.delay,
        }
    }
}
