//! Paths as the simulation follows them: queueing links, and delays where nothing can queue.

use ackclock_units::Time;

use crate::plan::{HopPlan, PathPlan};

/// The way to a queueing link.
#[derive(Clone, Copy, Debug)]
pub enum Hop {
    /// At once into the queue of this link.
    Here(u32),
    /// Through a stretch of delay that ends at the link.
    After {
        /// How long it takes.
        delay: Time,
        /// Number of the stretch.
        stretch: u32,
    },
}

/// One direction of a flow's way.
#[derive(Clone, Debug)]
pub struct Path {
    /// The queueing links, in order.
    pub hops: Box<[Hop]>,
    /// Delay from the last hop (or the near end) to the far end.
    pub delay: Time,
}

impl Path {
    /// Compiles a path. `new_stretch` makes a stretch of delay before a link and returns its number; a hop
    /// without delay has none, unless packets start towards it ahead of the simulation's clock
    /// (`ahead`: the first hop of the way back).
    pub fn new(plan: &PathPlan, ahead: bool, mut new_stretch: impl FnMut(u32) -> u32) -> Path {
        let hop = |(index, hop): (usize, &HopPlan)| {
            if hop.delay > Time::ZERO || (ahead && index == 0) {
                Hop::After {
                    delay: hop.delay,
                    stretch: new_stretch(hop.link),
                }
            } else {
                Hop::Here(hop.link)
            }
        };
        Path {
            hops: plan.hops.iter().enumerate().map(hop).collect(),
            delay: plan.delay,
        }
    }
}
