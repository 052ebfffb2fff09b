//! Valiant's routing: by way of a switch that is drawn for each flow.
//!
//! L. Valiant, G. Brebner: Universal schemes for parallel communication, STOC 1981: a packet first goes to a node drawn
//! at random, and from there to its destination, so that whatever pattern of traffic there is becomes two random ones.
//! Both legs are shortest paths, chosen as `ecmp` does.
//!
//! Deviations: it is drawn for each flow and direction, as in VL2 (A. Greenberg and others, SIGCOMM 2009), so that
//! packets stay in order; what is drawn is a host, and the flow turns at that host's switch. If no way leads there, the
//! flow goes the shortest way. Links may not fail: a way is laid once.

use ackclock_plan::EndsPlan;

use super::graph::Graph;
use super::{Next, Routing};
use crate::queue::hash::FlowHash;
use crate::PlanError;

/// Hosts to draw from, and the flows' detours.
#[derive(Debug)]
pub struct Valiant {
    hosts: Vec<u32>,
    hash: FlowHash,
    /// State by the flow's slot.
    detours: Vec<Detour>,
}

/// The links of a flow's two paths.
#[derive(Clone, Debug, Default)]
pub struct Detour {
    there: Vec<u32>,
    back: Vec<u32>,
}

impl Detour {
    /// Next hop at this position of the forward or reverse path.
    pub fn at(&self, forward: bool, hop: u8) -> Next {
        let links = if forward { &self.there } else { &self.back };
        let link = links.get(usize::from(hop));
        link.map_or(Next::Arrived, |&link| Next::Link(link))
    }
}

impl Valiant {
    /// Draw from all hosts of a graph.
    pub fn new(graph: &Graph, hash: FlowHash) -> Valiant {
        let hosts = 0..graph.nodes() as u32;
        Valiant {
            hosts: hosts.filter(|&node| graph.is_host[node as usize]).collect(),
            hash,
            detours: Vec::new(),
        }
    }

    /// Host that a key selects.
    fn draw(&self, key: u32) -> u32 {
        self.hosts[self.hash.queue(key, self.hosts.len())]
    }
}

impl Routing {
    /// Detour of the flow in a slot; `None` unless flows have detours.
    #[inline]
    pub(super) fn detour_of(&self, slot: usize) -> Option<&Detour> {
        self.valiant.as_ref()?.detours.get(slot)
    }

    /// Set the detours of a flow, forward and reverse.
    pub(super) fn detour(
        &mut self,
        slot: usize,
        number: u32,
        ends: EndsPlan,
    ) -> Result<(), PlanError> {
        let key = number.wrapping_mul(2);
        let detour = Detour {
            there: self.trace_by(ends.source, ends.destination, key)?,
            back: self.trace_by(ends.destination, ends.source, key + 1)?,
        };
        if let Some(valiant) = &mut self.valiant {
            if valiant.detours.len() <= slot {
                valiant.detours.resize(slot + 1, Detour::default());
            }
            valiant.detours[slot] = detour;
        }
        Ok(())
    }

    /// Links from one host to another that a key selects, by way of a switch if flows have detours.
    pub(super) fn trace_by(
        &mut self,
        source: u32,
        destination: u32,
        key: u32,
    ) -> Result<Vec<u32>, PlanError> {
        let drawn = self.valiant.as_ref().map(|valiant| valiant.draw(key));
        let first_leg = match drawn {
            Some(host) if host != source && host != destination => {
                self.leg_to_switch(source, host, key)
            }
            _ => None,
        };
        let Some((mut links, switch)) = first_leg else {
            return self.trace(source, destination, key);
        };
        match self.trace(switch, destination, key) {
            Ok(rest) => {
                links.extend(rest);
                Ok(links)
            }
            Err(_) => self.trace(source, destination, key),
        }
    }

    /// Links from a host to the switch of another, and that switch; `None` if there is no path.
    fn leg_to_switch(&mut self, source: u32, host: u32, key: u32) -> Option<(Vec<u32>, u32)> {
        let mut links = self.trace(source, host, key).ok()?;
        let last = links.pop()?;
        let switch = self.graph.from[last as usize];
        (!links.is_empty() && switch != source).then_some((links, switch))
    }
}
