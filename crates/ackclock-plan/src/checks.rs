//! Plans that no engine can run.

use ackclock_core::{Rate, Time};
use ackclock_traffic::{SlowReader, Writes};

use crate::error::Error;
use crate::flows::DatagramPlan;
use crate::network::{ChangePlan, EndsPlan, LinkPlan, LossPlan, PathPlan};
use crate::plan::Plan;
use crate::record::Vantage;
use crate::tcp::{Misbehaviour, TcpPlan};
use crate::trace::TracePlan;
use crate::traffic::{PopulationPlan, TrafficPlan};

/// Bytes of the largest IP packet.
const LARGEST_PACKET_BYTES: u64 = 65_535;
/// Largest size of the options of a TCP header, bytes.
const MAX_OPTION_BYTES: u64 = 40;
/// Most ACKs of a segment: a packet has three bits for the part of one.
const MAX_ACK_DIVISION: u64 = 8;
/// Largest number of hops of a path.
const MAX_HOPS: u64 = 255;

impl Plan {
    /// Check that an engine can run the plan.
    ///
    /// # Errors
    /// The first quantity that is zero where it must not be, or larger than a packet or a path can be;
    /// a path without a link; a link or a node that is not there; ends that are no hosts. Whether a path
    /// leads from end to end, and whether it has the algorithms that are named, the engine finds out.
    pub fn check(&self) -> Result<(), Error> {
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
        for vantage in self.record.pcap.vantages() {
            self.check_vantage(vantage)?;
        }
        for group in &self.groups {
            check_reader(group.slow_reader)?;
            check_writes(group.writes)?;
            check_misbehaviour(group.misbehaviour)?;
            check_max("dscp", u64::from(group.dscp), 63)?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            flow.tcp.check()?;
            check_reader(flow.slow_reader)?;
            check_writes(flow.writes)?;
            check_misbehaviour(flow.misbehaviour)?;
            flow.tcp.check_request(flow.request_bytes)?;
            check_max("priority", u64::from(flow.priority), 15)?;
            self.check_endpoints("flow", index, flow.ends, [&flow.forward, &flow.reverse])?;
        }
        for (index, datagrams) in self.datagrams.iter().enumerate() {
            self.check_datagrams(index, datagrams)?;
        }
        for (index, traffic) in self.traffic.iter().enumerate() {
            self.check_traffic(index, traffic)?;
        }
        Ok(())
    }

    fn check_vantage(&self, vantage: &Vantage) -> Result<(), Error> {
        match vantage {
            Vantage::Link(name) if !self.links.iter().any(|link| link.name == *name) => {
                Err(Error::UnknownLinkCaptured(name.clone()))
            }
            _ => Ok(()),
        }
    }

    fn check_datagrams(&self, index: usize, plan: &DatagramPlan) -> Result<(), Error> {
        check_max("priority", u64::from(plan.priority), 15)?;
        let bytes = plan.packet_bytes();
        check_max("payload_bytes with headers", bytes, LARGEST_PACKET_BYTES)?;
        if let Some(reason) = plan.source.fault() {
            return Err(Error::Datagrams { index, reason });
        }
        self.check_endpoints(
            "datagrams",
            index,
            plan.ends,
            [&plan.forward, &plan.reverse],
        )
    }

    fn check_traffic(&self, index: usize, traffic: &TrafficPlan) -> Result<(), Error> {
        check_max("priority", u64::from(traffic.priority), 15)?;
        self.check_group(traffic)?;
        match &traffic.population {
            PopulationPlan::Paths { paths } => paths.iter().try_for_each(|pair| {
                self.check_paths("traffic", index, [&pair.forward, &pair.reverse])
            }),
            PopulationPlan::Nodes {
                sources,
                destinations,
                ..
            } => {
                let mut nodes = sources.iter().chain(destinations);
                nodes.try_for_each(|&node| self.check_host("traffic", index, node))
            }
        }
    }

    /// Its group must describe a TCP.
    fn check_group(&self, traffic: &TrafficPlan) -> Result<(), Error> {
        let group = self.groups.get(traffic.group as usize);
        match group.and_then(|group| group.congestion.as_ref().zip(group.tcp.as_ref())) {
            None => Err(Error::NoTcp(traffic.group)),
            Some((_, tcp)) => {
                tcp.check()?;
                tcp.check_request(traffic.request_bytes)
            }
        }
    }

    /// Two different nodes that are there.
    fn check_ends(&self, subject: &'static str, index: usize, ends: EndsPlan) -> Result<(), Error> {
        let nodes = self.nodes.len();
        let node = ends.source.max(ends.destination);
        if node as usize >= nodes {
            return Err(Error::UnknownNode {
                subject,
                index,
                node,
                nodes,
            });
        }
        if ends.source == ends.destination {
            let node = self.nodes[node as usize].name.clone();
            return Err(Error::SameEnds {
                subject,
                index,
                node,
            });
        }
        Ok(())
    }

    /// Check the ends or the paths.
    fn check_endpoints(
        &self,
        subject: &'static str,
        index: usize,
        ends: Option<EndsPlan>,
        paths: [&PathPlan; 2],
    ) -> Result<(), Error> {
        let Some(ends) = ends else {
            return self.check_paths(subject, index, paths);
        };
        let is_path = |path: &&PathPlan| !path.hops.is_empty() || path.delay > Time::ZERO;
        if paths.iter().any(is_path) {
            return Err(Error::EndsAndPaths { subject, index });
        }
        self.check_ends(subject, index, ends)?;
        self.check_host(subject, index, ends.source)?;
        self.check_host(subject, index, ends.destination)
    }

    fn check_host(&self, subject: &'static str, index: usize, node: u32) -> Result<(), Error> {
        match self.nodes.get(node as usize) {
            Some(value) if value.host => Ok(()),
            Some(value) => Err(Error::NotAHost {
                subject,
                index,
                node: value.name.clone(),
            }),
            None => Err(Error::UnknownNode {
                subject,
                index,
                node,
                nodes: self.nodes.len(),
            }),
        }
    }

    fn check_paths(
        &self,
        subject: &'static str,
        index: usize,
        [forward, reverse]: [&PathPlan; 2],
    ) -> Result<(), Error> {
        if forward.hops.is_empty() {
            return Err(Error::NoLink { subject, index });
        }
        for path in [forward, reverse] {
            check_max("hops of a path", path.hops.len() as u64, MAX_HOPS)?;
        }
        let mut hops = forward.hops.iter().chain(&reverse.hops);
        match hops.find(|hop| hop.link as usize >= self.links.len()) {
            None => Ok(()),
            Some(hop) => Err(Error::UnknownLink {
                subject,
                index,
                link: hop.link,
                links: self.links.len(),
            }),
        }
    }
}

impl LinkPlan {
    fn check(&self) -> Result<(), Error> {
        check_rate(self.rate)?;
        positive("weight", self.weight > 0.0 && self.weight.is_finite())?;
        let overhead = u64::from(self.frame_overhead_bytes);
        check_max("frame_overhead_bytes", overhead, LARGEST_PACKET_BYTES)?;
        if let Some(subject) = self.trace.as_ref().and_then(TracePlan::fault) {
            return Err(Error::NotPositive(subject));
        }
        self.loss.map_or(Ok(()), check_loss)
    }
}

impl ChangePlan {
    fn check(&self, links: usize) -> Result<(), Error> {
        if self.link as usize >= links {
            return Err(Error::UnknownLinkChanged {
                at_s: self.at.seconds(),
                link: self.link,
                links,
            });
        }
        self.loss.map_or(Ok(()), check_loss)?;
        self.rate.map_or(Ok(()), check_rate)
    }
}

impl TcpPlan {
    fn check(&self) -> Result<(), Error> {
        positive("mss_bytes", self.mss_bytes > 0)?;
        positive("initial_rto_s", self.initial_rto > Time::ZERO)?;
        positive("max_rto_s", self.max_rto > Time::ZERO)?;
        if let Some(law) = &self.processing {
            law.check().map_err(Error::Processing)?;
        }
        let bytes = u64::from(self.mss_bytes) + u64::from(self.header_bytes) + MAX_OPTION_BYTES;
        check_max("mss_bytes with headers", bytes, LARGEST_PACKET_BYTES)
    }

    /// A request is one segment.
    fn check_request(&self, request_bytes: Option<u32>) -> Result<(), Error> {
        let bytes = u64::from(request_bytes.unwrap_or(0));
        check_max("request_bytes", bytes, u64::from(self.mss_bytes))
    }
}

fn check_reader(reader: Option<SlowReader>) -> Result<(), Error> {
    let fault = reader.and_then(|reader| reader.fault());
    fault.map_or(Ok(()), |subject| Err(Error::NotPositive(subject)))
}

fn check_writes(writes: Option<Writes>) -> Result<(), Error> {
    let fault = writes.and_then(|writes| writes.fault());
    fault.map_or(Ok(()), |subject| Err(Error::NotPositive(subject)))
}

fn check_misbehaviour(misbehaviour: Option<Misbehaviour>) -> Result<(), Error> {
    let Some(misbehaviour) = misbehaviour else {
        return Ok(());
    };
    let division = misbehaviour.ack_division;
    positive("misbehaviour.ack_division", division > 0)?;
    check_max(
        "misbehaviour.ack_division",
        u64::from(division),
        MAX_ACK_DIVISION,
    )
}

fn check_loss(loss: LossPlan) -> Result<(), Error> {
    match loss {
        LossPlan::Every { packets } => positive("loss.packets", packets > 0),
        LossPlan::ByKind { ack_thinning, .. } => positive("loss.ack_thinning", ack_thinning > 0),
        _ => Ok(()),
    }
}

fn check_rate(rate: Rate) -> Result<(), Error> {
    positive("rate_bps", rate.bits_per_second() > 0.0)
}

fn positive(subject: &'static str, is_positive: bool) -> Result<(), Error> {
    if is_positive {
        Ok(())
    } else {
        Err(Error::NotPositive(subject))
    }
}

fn check_max(subject: &'static str, value: u64, max: u64) -> Result<(), Error> {
    if value <= max {
        Ok(())
    } else {
        Err(Error::TooLarge {
            subject,
            value,
            max,
        })
    }
}
