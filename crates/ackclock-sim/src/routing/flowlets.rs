//! Flowlets: the packets of a flow between two gaps, each flowlet by a link of its own.
//!
//! S. Sinha, S. Kandula, D. Katabi: Harnessing TCP's burstiness with flowlet switching, `HotNets` 2004: if the gap is
//! longer than what paths differ by, packets stay in order. Each flowlet draws its link at each switch, as in E.
//! Vanini, R. Pan, M. Alizadeh, P. Taheri, T. Edsall: Let it flow: resilient asymmetric load balancing with flowlet
//! switching, NSDI 2017.
//!
//! Deviation: a switch keeps exact state for each flow; theirs hash flows into a table, where some share a row.

use ackclock_core::Time;

/// Last packet of a flow at a node, in one direction.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: (u32, u32),
    link: u32,
    seen: Time,
}

/// The flowlets of all flows.
#[derive(Debug)]
pub struct Flowlets {
    gap: Time,
    /// Nodes at which a flow's packets chose a link, by slot.
    flows: Vec<Vec<Last>>,
}

impl Flowlets {
    /// No flow is open. A gap of at least `gap` between packets begins a flowlet.
    pub fn new(gap: Time) -> Flowlets {
        Flowlets {
            gap,
            flows: Vec::new(),
        }
    }

    /// Clear the state of a slot for a new flow.
    pub fn open(&mut self, slot: usize) {
        if let Some(flow) = self.flows.get_mut(slot) {
            flow.clear();
        }
    }

    /// Link of the current flowlet at a node and direction; `None` if a new one begins.
    pub fn at(&self, slot: usize, at: (u32, u32), now: Time) -> Option<u32> {
        let flow = self.flows.get(slot)?;
        let last = flow.iter().find(|last| last.at == at)?;
        (now.since(last.seen) < self.gap).then_some(last.link)
    }

    /// Record that a packet takes a link.
    pub fn take(&mut self, slot: usize, at: (u32, u32), link: u32, now: Time) {
        if self.flows.len() <= slot {
            self.flows.resize_with(slot + 1, Vec::new);
        }
        let flow = &mut self.flows[slot];
        let last = Last {
            at,
            link,
            seen: now,
        };
        match flow.iter_mut().find(|last| last.at == at) {
            Some(found) => *found = last,
            None => flow.push(last),
        }
    }
}
