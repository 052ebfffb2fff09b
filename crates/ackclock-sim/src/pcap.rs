//! Packet captures at hosts and links, readable by tcpdump and Wireshark.
//!
//! The host that sends a packet makes its frame; every point that sees it on its way writes down the same one, with
//! the ECN bits and the time to live that it has there. At a host that is when the packet leaves or reaches it, at a
//! link when it has left the transmitter, as in the log: a tap on the wire behind the queue.
//!
//! The simulator counts segments; a capture counts bytes, from an initial sequence number on (RFC 9293 section 3.4) that
//! each end draws, as the first identification of its IP packets and the first value of its clock for timestamps, which
//! ticks each millisecond (`numbers`). Datagrams have their own identifications. Each flow has its own pair of addresses,
//! 10.0.0.0/9 the senders and 10.128.0.0/9 the receivers. The time to live is 64 and falls at each link.
//!
//! What became of each packet, and why it was sent, is written beside the captures (`ground_truth`).
//!
//! Deviations:
//! - Frames have an Ethernet header whatever the links' frame overhead.
//! - A block that reports a duplicate (RFC 2883) is padding: the simulated ACK says only that there is one.
//! - The window field never changes: the receiver's application reads at once.
//! - Where the way back has no link of its own in the plan, packets on it pass a link's wire as long before they arrive
//!   as the way there takes from the sender to the link; if a queue lies between, when they have left it.

use std::collections::BTreeMap;

use ackclock_core::tables::{PacketFate, Transmissions, NONE};
use ackclock_core::Time;
use ackclock_plan::{FlowPlan, PathPlan, Plan};

use crate::options::Block;
use crate::packet::Packet;
use crate::sender::SendReason;

mod connection;
mod file;
mod frame;
mod ground_truth;
mod numbers;
mod vantage;

use connection::Connection;
use file::File;
use frame::Frame;
use ground_truth::{GroundTruth, RowKey};
use numbers::Numbers;
use vantage::{Location, Point};

/// The captures of a run, one for each point that its plan names.
#[derive(Debug)]
pub struct Captures {
    files: Vec<(Point, File)>,
    /// By flow.
    connections: BTreeMap<u32, Connection>,
    /// By flow: the path that it takes.
    paths: BTreeMap<u32, u32>,
    /// By the names that packets have in `sack`.
    in_transit: Vec<InTransit>,
    ground_truth: GroundTruth,
    /// Of the run, for the numbers with which connections begin.
    seed: u64,
}

/// A packet under way: its frame, and its row of the truth, which says when it was sent.
#[derive(Debug, Default)]
struct InTransit {
    frame: Frame,
    row: RowKey,
}

impl Captures {
    /// The captures that a plan asks for, if any; `paths`: those that its flows may take, there and back.
    pub fn of(plan: &Plan, paths: &[(&PathPlan, &PathPlan)], seed: u64) -> Option<Captures> {
        let vantages = plan.record.pcap.vantages().iter();
        let points = vantages.map(|vantage| Point::new(vantage, &plan.links, paths));
        let files: Vec<_> = points.map(|point| (point, File::empty())).collect();
        (!files.is_empty()).then(|| Captures {
            files,
            connections: BTreeMap::new(),
            paths: BTreeMap::new(),
            in_transit: Vec::new(),
            ground_truth: GroundTruth::default(),
            seed,
        })
    }

    /// A connection begins.
    pub fn open(&mut self, flow: u32, plan: &FlowPlan) {
        let numbers = Numbers::drawn(self.seed, flow);
        self.connections
            .insert(flow, Connection::new(plan, numbers));
    }

    /// A flow takes a path.
    pub fn take_path(&mut self, flow: u32, path: u32) {
        self.paths.insert(flow, path);
    }

    /// The last packet of a flow has arrived.
    pub fn close(&mut self, flow: u32) {
        self.connections.remove(&flow);
        self.paths.remove(&flow);
    }

    /// The bytes up to `now` since the last call, a file each; those of the first call begin with the files' headers.
    pub fn take(&mut self, now: Time) -> Vec<Vec<u8>> {
        let files = self.files.iter_mut();
        files.map(|(_, file)| file.take(now)).collect()
    }

    /// The rows of the truth of which all is known by `now`, since the last call.
    pub fn take_ground_truth(&mut self, now: Time) -> Transmissions {
        self.ground_truth.take(now)
    }

    /// The run ends: what is still to be said of packets under way is said.
    pub fn finish(&mut self, now: Time) {
        self.ground_truth.finish(now);
    }

    /// A sender sends a packet. Its `sack` is its name from now on, and its `wire_bytes` are those of the IP packet.
    pub fn send(&mut self, packet: &Packet, reason: SendReason, now: Time) {
        self.register_frame(packet, &[], reason, now, now);
    }

    /// A receiver sends a packet with these SACK blocks at `time`, which may be ahead of `now`.
    pub fn send_reply(&mut self, packet: &Packet, blocks: &[Block], time: Time, now: Time) {
        let connection = self.connections.get_mut(&packet.flow);
        let again = connection.is_some_and(|connection| !connection.sends_first(packet.kind));
        let reason = SendReason::of_control(packet.kind, again);
        self.register_frame(packet, blocks, reason, time, now);
    }

    fn register_frame(
        &mut self,
        packet: &Packet,
        blocks: &[Block],
        reason: SendReason,
        time: Time,
        now: Time,
    ) {
        let name = packet.sack as usize;
        if name >= self.in_transit.len() {
            self.in_transit.resize_with(name + 1, InTransit::default);
        }
        let InTransit { frame, row } = &mut self.in_transit[name];
        let header = match self.connections.get_mut(&packet.flow) {
            Some(connection) => connection.compose(packet, blocks, frame),
            None => frame.set_datagram(packet),
        };
        *row = self.ground_truth.send(packet, header, reason, time);
        self.ground_truth.write_resolved(now);
        self.record_frame(packet, host(packet.kind.is_forward()), time, now);
    }

    /// A packet is dropped or lost at a link, or at none.
    pub fn lose(&mut self, packet: &Packet, fate: PacketFate, link: u32, now: Time) {
        if let Some(sent) = self.in_transit.get(packet.sack as usize) {
            self.ground_truth.end(sent.row, fate, link, now);
        }
    }

    /// A packet has left the transmitter of a link.
    pub fn leave(&mut self, packet: &Packet, link: u32, now: Time) {
        self.record_frame(packet, Location::Link(link), now, now);
        if let Some(sent) = self.in_transit.get_mut(packet.sack as usize) {
            sent.frame.pass_router();
        }
    }

    /// A packet of a flow with a path has left its last queue, or its host if there is none, at `left`, and will arrive
    /// at `due`.
    pub fn on_return(&mut self, packet: &Packet, left: Time, due: Time, now: Time) {
        let Some(&path) = self.paths.get(&packet.flow) else {
            return;
        };
        let Some(sent) = self.in_transit.get(packet.sack as usize) else {
            return;
        };
        for (point, file) in &mut self.files {
            if let Some(before) = point.before_arrival(path, packet.kind.is_forward()) {
                let time = due.since(before).max(left);
                file.write(&sent.frame, packet.ecn, time, now);
            }
        }
    }

    /// A packet reaches its end at `time`, which may be ahead of `now`.
    pub fn arrive(&mut self, packet: &Packet, time: Time, now: Time) {
        let forward = packet.kind.is_forward();
        self.record_frame(packet, host(!forward), time, now);
        let Some(sent) = self.in_transit.get(packet.sack as usize) else {
            return;
        };
        let connection = self.connections.get_mut(&packet.flow);
        let is_new = connection.is_none_or(|connection| connection.on_arrival(packet, sent.row.0));
        let fate = if is_new {
            PacketFate::Delivered
        } else {
            PacketFate::Duplicate
        };
        self.ground_truth.end(sent.row, fate, NONE, time);
    }

    fn record_frame(&mut self, packet: &Packet, location: Location, time: Time, now: Time) {
        let Some(sent) = self.in_transit.get(packet.sack as usize) else {
            return;
        };
        for (_, file) in self
            .files
            .iter_mut()
            .filter(|(point, _)| point.captures(location))
        {
            file.write(&sent.frame, packet.ecn, time, now);
        }
    }
}

/// At which host a packet of a flow begins, or ends.
fn host(is_sender: bool) -> Location {
    if is_sender {
        Location::Sender
    } else {
        Location::Receiver
    }
}

#[cfg(test)]
mod parser;
#[cfg(test)]
mod tests;
