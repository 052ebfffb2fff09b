//! Packet captures at hosts and links, readable by tcpdump and Wireshark.
//!
//! The host that sends a packet makes its frame; every point that sees it on its way writes down the same one, with
//! the ECN bits and the time to live that it has there. At a host that is when the packet leaves or reaches it, at a
//! link when it has left the transmitter, as in the log: a tap on the wire behind the queue.
//!
//! The simulator counts segments; a capture counts bytes. Initial sequence numbers are 0, so the first
//! data byte is number 1 (RFC 9293 section 3.4), and numbers wrap at 2^32. Timestamps tick each millisecond of
//! simulated time, as Linux's do. Each flow has its own pair of addresses, 10.0.0.0/9 the senders and
//! 10.128.0.0/9 the receivers. Each end of a connection numbers its packets from 0 on (identification in the IP header);
//! datagrams have their own numbers. The time to live is 64 and falls at each link.
//!
//! Deviations:
//! - Frames have an Ethernet header whatever the links' frame overhead.
//! - A block that reports a duplicate (RFC 2883) is padding: the simulated ACK says only that there is one.
//! - Where the way back has no link of its own in the plan, packets on it pass a link's wire as long before they arrive
//!   as the way there takes from the sender to the link; if a queue lies between, when they have left it.

use std::collections::BTreeMap;

use ackclock_plan::{FlowPlan, PathPlan, Plan};
use ackclock_units::Time;

use crate::options::Block;
use crate::packet::{Kind, Packet};

mod connection;
mod file;
mod frame;
mod vantage;

use connection::Connection;
use file::File;
use frame::Frame;
use vantage::{Place, Point};

/// The captures of a run, one for each point that its plan names.
#[derive(Debug)]
pub struct Captures {
    files: Vec<(Point, File)>,
    /// By flow.
    connections: BTreeMap<u32, Connection>,
    /// By flow: the path that it takes.
    paths: BTreeMap<u32, u32>,
    /// Frames under way, and when they were sent, by the names that their packets have in `sack`.
    under_way: Vec<(Frame, Time)>,
}

impl Captures {
    /// The captures that a plan asks for, if any; `paths`: those that its flows may take, there and back.
    pub fn of(plan: &Plan, paths: &[(&PathPlan, &PathPlan)]) -> Option<Captures> {
        let vantages = plan.record.pcap.vantages().iter();
        let points = vantages.map(|vantage| Point::new(vantage, &plan.links, paths));
        let files: Vec<_> = points.map(|point| (point, File::empty())).collect();
        (!files.is_empty()).then(|| Captures {
            files,
            connections: BTreeMap::new(),
            paths: BTreeMap::new(),
            under_way: Vec::new(),
        })
    }

    /// A connection begins.
    pub fn open(&mut self, flow: u32, plan: &FlowPlan) {
        self.connections.insert(flow, Connection::new(plan));
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

    /// A host sends a packet at `time`, which may be ahead of `now`. Its `sack` is its name from now on, and its
    /// `wire_bytes` are those of the IP packet; `blocks` are its SACK blocks.
    pub fn send(&mut self, packet: &Packet, blocks: &[Block], time: Time, now: Time) {
        let name = packet.sack as usize;
        if name >= self.under_way.len() {
            self.under_way
                .resize_with(name + 1, || (Frame::default(), Time::ZERO));
        }
        let (frame, sent) = &mut self.under_way[name];
        *sent = time;
        if matches!(packet.kind, Kind::Datagram | Kind::Echo) {
            frame.set_datagram(packet);
        } else if let Some(connection) = self.connections.get_mut(&packet.flow) {
            connection.compose(packet, blocks, frame);
        }
        self.see(packet, host(packet.kind.is_forward()), time, now);
    }

    /// A packet has left the transmitter of a link.
    pub fn leave(&mut self, packet: &Packet, link: u32, now: Time) {
        self.see(packet, Place::Behind(link), now, now);
        if let Some((frame, _)) = self.under_way.get_mut(packet.sack as usize) {
            frame.pass_router();
        }
    }

    /// A packet of a flow with a path has left its last queue, or its host if there is none, at `left`, and will arrive
    /// at `due`.
    pub fn head_home(&mut self, packet: &Packet, left: Time, due: Time, now: Time) {
        let Some(&path) = self.paths.get(&packet.flow) else {
            return;
        };
        let Some((frame, _)) = self.under_way.get(packet.sack as usize) else {
            return;
        };
        for (point, file) in &mut self.files {
            if let Some(before) = point.before_end(path, packet.kind.is_forward()) {
                let time = due.since(before).max(left);
                file.write(frame, packet.ecn, time, now);
            }
        }
    }

    /// A packet reaches its end at `time`, which may be ahead of `now`.
    pub fn arrive(&mut self, packet: &Packet, time: Time, now: Time) {
        let forward = packet.kind.is_forward();
        self.see(packet, host(!forward), time, now);
        let sent = self.under_way.get(packet.sack as usize);
        let connection = self.connections.get_mut(&packet.flow);
        if let (false, Some((_, sent)), Some(connection)) = (forward, sent, connection) {
            connection.hear(packet, *sent);
        }
    }

    fn see(&mut self, packet: &Packet, place: Place, time: Time, now: Time) {
        let Some((frame, _)) = self.under_way.get(packet.sack as usize) else {
            return;
        };
        for (_, file) in self.files.iter_mut().filter(|(point, _)| point.sees(place)) {
            file.write(frame, packet.ecn, time, now);
        }
    }
}

/// At which host a packet of a flow begins, or ends.
fn host(is_sender: bool) -> Place {
    if is_sender {
        Place::Sender
    } else {
        Place::Receiver
    }
}

#[cfg(test)]
mod reading;
#[cfg(test)]
mod tests;
