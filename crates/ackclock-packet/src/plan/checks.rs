//! What no simulation could carry out.

use ackclock_units::{Rate, Time};

use super::{ChangePlan, CongestionPlan, EndsPlan, FlowPlan, LinkPlan, LossPlan, Plan, TcpPlan};
use crate::congestion;
use crate::PlanError;

/// Bytes of the largest IP packet.
const LARGEST_PACKET_BYTES: u64 = 65_535;
/// Bytes of the options of a TCP header, at most.
const MOST_OPTION_BYTES: u64 = 40;
/// Hops of a path, at most.
const MOST_HOPS: u64 = 255;

impl Plan {
    /// Refuses what no simulation could carry out.
    ///
    /// # Errors
    /// The first quantity that is zero where it must not be, or larger than a packet or a path can be;
    /// a path without a link; a link or a node that is not there; ends that are no hosts. Whether a way
    /// leads from end to end, [`crate::routing::Routing`] finds out.
    pub fn check(&self) -> Result<(), PlanError> {
        positive("record.interval_s", self.record.interval > Time::ZERO)?;
        for (index, link) in self.links.iter().enumerate() {
            link.check()?;
            if let Some(ends) = link.ends {
                self.check_ends("link", index, ends)?;
            }
        }
        for change in &self.changes {
            change.check(self.links.len())?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            flow.tcp.check()?;
            at_most("priority", u64::from(flow.priority), 15)?;
            match flow.ends {
                Some(ends) => self.check_routed(index, flow, ends)?,
                None => self.check_paths(index, flow)?,
            }
        }
        Ok(())
    }

    /// Two different nodes that are there.
    fn check_ends(
        &self,
        what: &'static str,
        index: usize,
        ends: EndsPlan,
    ) -> Result<(), PlanError> {
        let nodes = self.nodes.len();
        let node = ends.source.max(ends.destination);
        if node as usize >= nodes {
            return Err(PlanError::UnknownNode {
                what,
                index,
                node,
                nodes,
            });
        }
        if ends.source == ends.destination {
            let node = self.nodes[node as usize].name.clone();
            return Err(PlanError::SameEnds { what, index, node });
        }
        Ok(())
    }

    fn check_routed(&self, index: usize, flow: &FlowPlan, ends: EndsPlan) -> Result<(), PlanError> {
        let paths = [&flow.forward, &flow.reverse];
        if paths
            .iter()
            .any(|path| !path.hops.is_empty() || path.delay > Time::ZERO)
        {
            return Err(PlanError::EndsAndPaths(index));
        }
        self.check_ends("flow", index, ends)?;
        for node in [ends.source, ends.destination] {
            let node = &self.nodes[node as usize];
            if !node.host {
                return Err(PlanError::NotAHost {
                    flow: index,
                    node: node.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn check_paths(&self, index: usize, flow: &FlowPlan) -> Result<(), PlanError> {
        if flow.forward.hops.is_empty() {
            return Err(PlanError::NoLink(index));
        }
        for path in [&flow.forward, &flow.reverse] {
            at_most("hops of a path", path.hops.len() as u64, MOST_HOPS)?;
        }
        let mut hops = flow.forward.hops.iter().chain(&flow.reverse.hops);
        match hops.find(|hop| hop.link as usize >= self.links.len()) {
            None => Ok(()),
            Some(hop) => Err(PlanError::UnknownLink {
                flow: index,
                link: hop.link,
                links: self.links.len(),
            }),
        }
    }
}

impl LinkPlan {
    fn check(&self) -> Result<(), PlanError> {
        check_rate(self.rate)?;
        positive("weight", self.weight > 0.0 && self.weight.is_finite())?;
        let overhead = u64::from(self.frame_overhead_bytes);
        at_most("frame_overhead_bytes", overhead, LARGEST_PACKET_BYTES)?;
        match self.loss {
            Some(LossPlan::Every { packets }) => positive("loss.packets", packets > 0),
            _ => Ok(()),
        }
    }
}

impl ChangePlan {
    fn check(&self, links: usize) -> Result<(), PlanError> {
        if self.link as usize >= links {
            return Err(PlanError::UnknownLinkChanged {
                at_s: self.at.seconds(),
                link: self.link,
                links,
            });
        }
        self.rate.map_or(Ok(()), check_rate)
    }
}

impl CongestionPlan {
    /// Refuses what the engine does not have.
    ///
    /// # Errors
    /// If the congestion control or its parameters are not known.
    pub fn check(&self) -> Result<(), PlanError> {
        congestion::make(&self.kind, &self.parameters, 1).map(|_| ())
    }
}

impl TcpPlan {
    fn check(&self) -> Result<(), PlanError> {
        positive("mss_bytes", self.mss_bytes > 0)?;
        positive("initial_rto_s", self.initial_rto > Time::ZERO)?;
        positive("max_rto_s", self.max_rto > Time::ZERO)?;
        let bytes = u64::from(self.mss_bytes) + u64::from(self.header_bytes) + MOST_OPTION_BYTES;
        at_most("mss_bytes with headers", bytes, LARGEST_PACKET_BYTES)
    }
}

fn check_rate(rate: Rate) -> Result<(), PlanError> {
    positive("rate_bps", rate.bits_per_second() > 0.0)
}

fn positive(what: &'static str, is_positive: bool) -> Result<(), PlanError> {
    if is_positive {
        Ok(())
    } else {
        Err(PlanError::NotPositive(what))
    }
}

fn at_most(what: &'static str, found: u64, most: u64) -> Result<(), PlanError> {
    if found <= most {
        Ok(())
    } else {
        Err(PlanError::TooLarge { what, found, most })
    }
}
