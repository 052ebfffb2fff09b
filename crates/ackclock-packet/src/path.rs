//! Paths: the queueing links on a flow's way and the delays between them.

use ackclock_units::Time;

use crate::plan::PathPlan;

/// One direction of a flow's way, compiled for the simulation.
#[derive(Clone, Debug)]
pub struct Path {
    /// The queueing links, in order.
    pub hops: Box<[Hop]>,
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
    /// The stretch of delay that holds packets on their way to this hop.
    pub flight: u32,
}

impl Path {
    /// Compiles a path, numbering its stretches of delay from `first_flight` on.
    pub fn new(plan: &PathPlan, first_flight: u32) -> Path {
        let hops = plan.hops.iter().zip(first_flight..);
        Path {
            hops: hops
                .map(|(hop, flight)| Hop {
                    link: hop.link,
                    delay: hop.delay,
                    flight,
                })
                .collect(),
            delay: plan.delay,
        }
    }
}
