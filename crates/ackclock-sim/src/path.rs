//! Paths as the simulation follows them: queueing links, and delays where nothing can queue.

use std::sync::Arc;

use ackclock_core::Time;
use ackclock_plan::{HopPlan, PathPlan};

use crate::delay_queue::DelayQueue;
use crate::host_delay::HostDelays;
use crate::packet::Packet;

/// A delay before a queueing link.
#[derive(Debug)]
pub struct DelayLine {
    /// Packets in the delay.
    pub packets: DelayQueue,
    /// Link at the end.
    pub link: u32,
}

/// Way of a packet to a queueing link.
#[derive(Clone, Copy, Debug)]
pub enum Hop {
    /// Directly into the queue of this link.
    Direct(u32),
    /// Through a delay line.
    Delayed {
        /// Its delay.
        delay: Time,
        /// Number of the [`DelayLine`].
        delay_line: u32,
    },
    /// To the link that the routing selects.
    Routed,
}

/// Forward and reverse path, compiled. Flows on the same path share its delay lines.
#[derive(Debug)]
pub struct Path {
    /// First hop of packets.
    pub first_hop: Hop,
    /// Sum of the propagation delays both ways.
    pub base_rtt: Time,
    forward_delay: Time,
    reverse_delay: Time,
    later_hops: Option<Arc<LaterHops>>,
}

impl Path {
    /// Path of a routed flow, without hops of its own.
    pub fn routed() -> Path {
        Path {
            first_hop: Hop::Routed,
            base_rtt: Time::NEVER,
            forward_delay: Time::ZERO,
            reverse_delay: Time::ZERO,
            later_hops: Some(Arc::new(LaterHops {
                forward: Box::default(),
                reverse: Box::new([Hop::Routed]),
            })),
        }
    }

    /// Compile a plan's two paths, or none for a routed flow; adds the delays before links to `delay_lines`. A
    /// forward path has at least one hop: [`ackclock_plan::Plan::check`].
    pub fn new(forward: &PathPlan, reverse: &PathPlan, delay_lines: &mut Vec<DelayLine>) -> Path {
        if forward.hops.is_empty() {
            return Path::routed();
        }
        let forward_hops = hops(forward, false, delay_lines);
        let reverse_hops = hops(reverse, true, delay_lines);
        let (first_hop, rest) = (forward_hops[0], &forward_hops[1..]);
        let is_short = rest.is_empty() && reverse_hops.is_empty();
        let later_hops = LaterHops {
            forward: rest.into(),
            reverse: reverse_hops,
        };
        Path {
            first_hop,
            base_rtt: delay(forward) + delay(reverse),
            forward_delay: forward.delay,
            reverse_delay: reverse.delay,
            later_hops: (!is_short).then(|| Arc::new(later_hops)),
        }
    }

    /// Links of the forward path, in order.
    pub fn forward_links<'a>(
        &'a self,
        delay_lines: &'a [DelayLine],
    ) -> impl Iterator<Item = u32> + 'a {
        let rest = self
            .later_hops
            .iter()
            .flat_map(|later_hops| &later_hops.forward[..]);
        let hops = std::iter::once(&self.first_hop).chain(rest);
        hops.filter_map(|hop| match *hop {
            Hop::Direct(link) => Some(link),
            Hop::Delayed { delay_line, .. } => Some(delay_lines[delay_line as usize].link),
            Hop::Routed => None,
        })
    }
}

/// Forward and reverse path of a flow, and the packets on their last delay. It fits one cache line: with many
/// flows, each packet costs as much as the lines that it needs.
#[derive(Debug)]
#[repr(align(64))]
pub struct Route {
    /// Packets in the last delay of the reverse path.
    pub return_queue: DelayQueue,
    /// Delay from the last queue to the receiver.
    pub forward_delay: Time,
    /// Delay from the last queue (or the receiver, if there is none) to the sender.
    pub reverse_delay: Time,
    /// Queues after the first one, if there are any.
    later_hops: Option<Arc<LaterHops>>,
    /// Processing delays of the flow's hosts, if any.
    pub hosts: Option<Box<HostDelays>>,
}

/// Queues after the first one on the forward path, and all on the reverse path.
#[derive(Debug)]
struct LaterHops {
    forward: Box<[Hop]>,
    reverse: Box<[Hop]>,
}

impl Route {
    /// Make the route of a flow on this path.
    pub fn along(path: &Path) -> Route {
        Route {
            return_queue: DelayQueue::default(),
            forward_delay: path.forward_delay,
            reverse_delay: path.reverse_delay,
            later_hops: path.later_hops.clone(),
            hosts: None,
        }
    }

    /// Hop after number `index` on the forward or reverse path.
    #[inline]
    pub fn hop_after(&self, index: u8, forward: bool) -> Option<Hop> {
        let later_hops = self.later_hops.as_ref()?;
        let index = usize::from(index);
        if forward {
            later_hops.forward.get(index).copied()
        } else {
            later_hops.reverse.get(index + 1).copied()
        }
    }

    /// Queue a packet that will reach the sender's host at `due`; returns when its TCP sees it, if it is the
    /// first in the queue.
    #[inline(always)]
    pub fn queue_return(&mut self, due: Time, packet: Packet) -> Option<Time> {
        let due = match &mut self.hosts {
            Some(hosts) => hosts.sender.ready(due),
            None => due,
        };
        self.return_queue.push(due, packet).then_some(due)
    }

    /// First hop on the reverse path.
    #[inline]
    pub fn first_reverse_hop(&self) -> Option<Hop> {
        self.later_hops.as_ref()?.reverse.first().copied()
    }
}

/// Propagation delay of a path.
fn delay(path: &PathPlan) -> Time {
    path.hops
        .iter()
        .fold(path.delay, |sum, hop| sum + hop.delay)
}

/// Hops of a path, in order. One without delay needs no delay line, unless packets start towards it
/// ahead of the simulation's clock (`ahead`: the first hop of the reverse path).
fn hops(plan: &PathPlan, ahead: bool, delay_lines: &mut Vec<DelayLine>) -> Box<[Hop]> {
    let hop = |(index, hop): (usize, &HopPlan)| {
        if hop.delay == Time::ZERO && !(ahead && index == 0) {
            return Hop::Direct(hop.link);
        }
        delay_lines.push(DelayLine {
            packets: DelayQueue::default(),
            link: hop.link,
        });
        Hop::Delayed {
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
