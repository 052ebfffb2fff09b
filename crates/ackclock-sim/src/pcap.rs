//! Packet captures at hosts and links, readable by tcpdump and Wireshark.
//!
//! The host that sends a packet composes its frame; every vantage point on its path records the same one, with
//! the ECN bits and the time to live at that point. At a host that is when the packet leaves or reaches it, at a
//! link when it has left the transmitter, as in the log: a tap on the wire behind the queue.
//!
//! The simulator counts segments; a capture counts bytes, from an initial sequence number on (RFC 9293 section 3.4)
//! that each end draws, as the first identification of its IP packets and the first value of its clock for timestamps,
//! which ticks each millisecond (`numbers`). Datagrams have their own identifications, and those of QUIC their content.
//! Each flow has its own pair of
//! addresses, 10.0.0.0/9 the senders and 10.128.0.0/9 the receivers. The time to live is 64 and falls at each link.
//! Packets of programs (`external`) have their own bytes, with the ECN bits at the vantage point and an unchanged time to
//! live.
//!
//! Fate and cause of each packet are recorded with the captures (`ground_truth`).
//!
//! Deviations:
//! - Frames have an Ethernet header whatever the links' frame overhead.
//! - A block that reports a duplicate (RFC 2883) is padding: the simulated ACK contains only a flag for it.
//! - The window field of the sender never changes, and that of the receiver is rounded up to the scale.
//! - Where the reverse path has no link in the plan, packets on it pass a link's wire as long before they arrive
//!   as the forward path takes from the sender to the link; if a queue lies between, when they have left it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use ackclock_core::tables::{PacketFate, Transmissions, NONE};
use ackclock_core::Time;
use ackclock_pcap::savefile;
use ackclock_plan::{FlowPlan, PathPlan, Plan};

use crate::external::ExternalPacket;
use crate::options::Block;
use crate::packet::{Ecn, Packet};
use crate::queue::FlowHeaders;
use crate::sender::SendReason;

mod connection;
mod frame;
mod ground_truth;
mod numbers;
mod vantage;

use connection::Connection;
use frame::Frame;
use ground_truth::{GroundTruth, RowKey};
use numbers::Numbers;
use vantage::{Location, Point};

/// Captures of a run, one for each vantage point of its plan.
#[derive(Debug)]
pub struct Captures {
    files: Vec<(Point, File)>,
    /// Connections by flow.
    connections: BTreeMap<u32, Connection>,
    /// Path of each flow.
    paths: BTreeMap<u32, u32>,
    /// Packets in transit, by their attachment.
    in_transit: Vec<InTransit>,
    ground_truth: GroundTruth,
    /// Headers of the flows' packets, of which frames have the DS codepoint.
    headers: FlowHeaders,
    /// Seed of the run, for initial numbers.
    seed: u64,
}

/// Content of a captured packet besides its header fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Carried<'a> {
    /// SACK blocks of an ACK.
    pub blocks: &'a [Block],
    /// Payload of a datagram; zeros follow it up to the datagram's length.
    pub content: &'a [u8],
    /// A program's packet, which is captured as it is.
    pub external: Option<&'a ExternalPacket>,
}

/// A packet in transit: its frame, and the key of its ground truth, which has the time at which it was sent.
#[derive(Debug, Default)]
struct InTransit {
    frame: Frame,
    row: RowKey,
}

impl Captures {
    /// Captures of a plan, if it has any; `paths`: forward and reverse paths of its flows.
    pub fn of(
        plan: &Plan,
        paths: &[(&PathPlan, &PathPlan)],
        headers: &FlowHeaders,
        seed: u64,
    ) -> Option<Captures> {
        let vantages = plan.record.pcap.vantages().iter();
        let points = vantages.map(|vantage| Point::new(vantage, &plan.links, paths));
        let files: Vec<_> = points.map(|point| (point, File::empty())).collect();
        (!files.is_empty()).then(|| Captures {
            files,
            connections: BTreeMap::new(),
            paths: BTreeMap::new(),
            in_transit: Vec::new(),
            ground_truth: GroundTruth::default(),
            headers: headers.clone(),
            seed,
        })
    }

    /// Open a connection.
    pub fn open(&mut self, flow: u32, plan: &FlowPlan) {
        let numbers = Numbers::drawn(self.seed, flow);
        self.connections
            .insert(flow, Connection::new(plan, numbers));
    }

    /// Set the path of a flow.
    pub fn take_path(&mut self, flow: u32, path: u32) {
        self.paths.insert(flow, path);
    }

    /// Close a flow whose last packet has arrived.
    pub fn close(&mut self, flow: u32) {
        self.connections.remove(&flow);
        self.paths.remove(&flow);
    }

    /// Take the bytes up to `now` since the last call, per file; the first ones begin with the file headers.
    pub fn take(&mut self, now: Time) -> Vec<Vec<u8>> {
        let files = self.files.iter_mut();
        files.map(|(_, file)| file.take(now)).collect()
    }

    /// Take the rows of the ground truth that are complete by `now`, since the last call.
    pub fn take_ground_truth(&mut self, now: Time) -> Transmissions {
        self.ground_truth.take(now)
    }

    /// Complete the rows of packets in transit at the end of the run.
    pub fn finish(&mut self, now: Time) {
        self.ground_truth.finish(now);
    }

    /// Record that a sender sends a packet. Its attachment identifies it from now on; its `wire_bytes` are those of the IP
    /// packet.
    pub fn send(&mut self, packet: &Packet, carried: Carried, reason: SendReason, now: Time) {
        self.register_frame(packet, carried, reason, now, now);
    }

    /// Record that a receiver sends a packet at `time`, which may be ahead of `now`.
    pub fn send_reply(&mut self, packet: &Packet, carried: Carried, time: Time, now: Time) {
        let connection = self.connections.get_mut(&packet.flow);
        let again = connection.is_some_and(|connection| !connection.sends_first(packet.kind));
        let reason = SendReason::of_control(packet.kind, again);
        self.register_frame(packet, carried, reason, time, now);
    }

    /// Record that the network duplicates a packet. Its copy is no transmission: the ground truth has no row for it.
    pub fn duplicate(&mut self, packet: u32, copy: u32) {
        let Some(InTransit { frame, row }) = self.in_transit.get(packet as usize) else {
            return;
        };
        let copied = InTransit {
            frame: frame.clone(),
            row: (row.0, u64::MAX),
        };
        self.make_room(copy);
        self.in_transit[copy as usize] = copied;
    }

    fn make_room(&mut self, attachment: u32) {
        let attachment = attachment as usize;
        if attachment >= self.in_transit.len() {
            self.in_transit
                .resize_with(attachment + 1, InTransit::default);
        }
    }

    fn register_frame(
        &mut self,
        packet: &Packet,
        carried: Carried,
        reason: SendReason,
        time: Time,
        now: Time,
    ) {
        self.make_room(packet.attachment);
        let InTransit { frame, row } = &mut self.in_transit[packet.attachment as usize];
        let header = if let Some(external) = carried.external {
            frame.set_external(external)
        } else {
            let header = match self.connections.get_mut(&packet.flow) {
                Some(connection) => connection.compose(packet, carried.blocks, frame),
                None => frame.set_datagram(packet, carried.content),
            };
            frame.set_codepoint(self.headers.of(packet.flow).dscp);
            header
        };
        *row = self.ground_truth.send(packet, header, reason, time);
        self.ground_truth.write_resolved(now);
        self.record_frame(packet, host(packet.kind.is_forward()), time, now);
    }

    /// Record that a packet is dropped or lost, at a link or without one.
    pub fn lose(&mut self, packet: &Packet, fate: PacketFate, link: u32, now: Time) {
        if let Some(sent) = self.in_transit.get(packet.attachment as usize) {
            self.ground_truth.end(sent.row, fate, link, now);
        }
    }

    /// Record that a packet has left the transmitter of a link.
    pub fn leave(&mut self, packet: &Packet, link: u32, now: Time) {
        self.record_frame(packet, Location::Link(link), now, now);
        if let Some(sent) = self.in_transit.get_mut(packet.attachment as usize) {
            sent.frame.pass_router();
        }
    }

    /// Record that a packet of a flow with a path left its last queue, or its host if there is none, at `left`, and
    /// will arrive at `due`.
    pub fn on_return(&mut self, packet: &Packet, left: Time, due: Time, now: Time) {
        let Some(&path) = self.paths.get(&packet.flow) else {
            return;
        };
        let Some(sent) = self.in_transit.get(packet.attachment as usize) else {
            return;
        };
        for (point, file) in &mut self.files {
            if let Some(before) = point.before_arrival(path, packet.kind.is_forward()) {
                let time = due.since(before).max(left);
                file.write(&sent.frame, packet.ecn(), time, now);
            }
        }
    }

    /// Record that a packet reaches its destination at `time`, which may be ahead of `now`.
    pub fn arrive(&mut self, packet: &Packet, time: Time, now: Time) {
        let forward = packet.kind.is_forward();
        self.record_frame(packet, host(!forward), time, now);
        let Some(sent) = self.in_transit.get(packet.attachment as usize) else {
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
        let Some(sent) = self.in_transit.get(packet.attachment as usize) else {
            return;
        };
        for (_, file) in self
            .files
            .iter_mut()
            .filter(|(point, _)| point.captures(location))
        {
            file.write(&sent.frame, packet.ecn(), time, now);
        }
    }
}

/// One capture file, in the order of time. A receiver's clock runs ahead of the simulation's, so records of what it sends
/// and receives come early. They wait until the simulation has reached their time.
#[derive(Debug)]
pub struct File {
    bytes: Vec<u8>,
    /// Record whose time has not come, with the numbers by which they were written.
    waiting: BinaryHeap<Reverse<(Time, u64, Vec<u8>)>>,
    written: u64,
}

impl File {
    /// A file without frames.
    pub fn empty() -> File {
        File {
            bytes: savefile::header(),
            waiting: BinaryHeap::new(),
            written: 0,
        }
    }

    /// Record a frame that passes at `time`, no earlier than `now`, with these ECN bits.
    pub fn write(&mut self, frame: &Frame, ecn: Ecn, time: Time, now: Time) {
        self.write_due(now);
        if time <= now {
            return frame.append_to(&mut self.bytes, time, ecn);
        }
        let mut record = Vec::new();
        frame.append_to(&mut record, time, ecn);
        self.waiting.push(Reverse((time, self.written, record)));
        self.written += 1;
    }

    /// Take the bytes up to `now` since the last call; the first ones begin with the file header.
    pub fn take(&mut self, now: Time) -> Vec<u8> {
        self.write_due(now);
        std::mem::take(&mut self.bytes)
    }

    /// Write the waiting records that are due.
    fn write_due(&mut self, now: Time) {
        while let Some(Reverse((time, _, _))) = self.waiting.peek() {
            if *time > now {
                return;
            }
            if let Some(Reverse((_, _, record))) = self.waiting.pop() {
                self.bytes.extend(record);
            }
        }
    }
}

/// Host at which a packet of a flow begins, or ends.
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
