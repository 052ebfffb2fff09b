//! A packet capture at the senders or at the receivers, readable by tcpdump and Wireshark.
//!
//! Each namespace that data come from, or go to, has a packet socket. Of what it hears, the packets of the flows that it
//! sends, or receives, are written down, both ways: what leaves and what comes back. So each packet of a flow is there
//! once, also where two hosts send to each other. One file has them all, in the order of their times, which count from
//! the run's beginning.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use ackclock_core::Time;
use ackclock_plan::Vantage;
use ackclock_savefile::{self as savefile, SNAP_BYTES};

use crate::clock::Clock;
use crate::error::Tried;
use crate::frame::headers;
use crate::namespaces::Namespaces;
use crate::order::Order;
use crate::sys::ring::{Frame, Ring, BLOCK_BYTES};
use crate::Error;

/// How often the rings are emptied.
pub const INTERVAL: Time = Time::from_milliseconds(10);
/// How late a packet may be in its ring. None is where time stands still for work.
const LATEST: Time = Time::from_milliseconds(100);
/// Memory of all rings, and the most blocks that one is given.
const RINGS_BYTES: usize = 64 << 20;
const MOST_BLOCKS: usize = 64;

/// The captured packets of a run at the hosts of one end.
#[derive(Debug)]
pub struct Capture {
    end: End,
    path: PathBuf,
    file: BufWriter<File>,
    rings: Vec<Ring>,
    /// The two ends of the flows: who sends, and to whom.
    flows: HashSet<(SocketAddrV4, SocketAddrV4)>,
    /// What may not be written yet: another may come that is older.
    waiting: Vec<Captured>,
}

/// Where the data of the flows come from, or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Senders,
    Receivers,
}

/// A packet that was captured.
#[derive(Debug, PartialEq, Eq)]
struct Captured {
    time: Time,
    length: u32,
    bytes: Box<[u8]>,
}

impl Capture {
    /// Begins to listen wherever the order asks for a capture.
    pub fn open_all(order: &Order, namespaces: &mut Namespaces) -> Result<Vec<Capture>, Error> {
        let vantages = order.plan.record.pcap.vantages().iter();
        let captures = vantages.zip(&order.captures);
        captures
            .filter_map(|(vantage, path)| End::of(vantage).map(|end| (end, path)))
            .filter(|(end, _)| order.here.is_none() || !end.hosts(order).is_empty())
            .map(|(end, path)| Capture::open(end, path, order, namespaces))
            .collect()
    }

    fn open(
        end: End,
        path: &Path,
        order: &Order,
        namespaces: &mut Namespaces,
    ) -> Result<Capture, Error> {
        let hosts = end.hosts(order);
        let most = hosts.len() * order.captures.len();
        let blocks = RINGS_BYTES / BLOCK_BYTES / most.max(1);
        let mut rings = Vec::with_capacity(hosts.len());
        for host in hosts {
            namespaces.enter(host)?;
            let ring = Ring::open(blocks.clamp(1, MOST_BLOCKS));
            rings.push(ring.tried(|| format!("a packet socket in {host}"))?);
        }
        namespaces.enter("")?;
        let what = || path.display().to_string();
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path).tried(what)?);
        file.write_all(&savefile::header()).tried(what)?;
        Ok(Capture {
            end,
            path: path.to_owned(),
            file,
            rings,
            flows: HashSet::new(),
            waiting: Vec::new(),
        })
    }

    /// From now on the packets of a flow are written down.
    pub fn follow(&mut self, sender: SocketAddrV4, receiver: SocketAddrV4) {
        self.flows.insert((sender, receiver));
    }

    /// Empties the rings, and writes what is old enough at `now`.
    pub fn take(&mut self, now: Time, clock: &Clock) -> Result<(), Error> {
        self.empty(clock);
        self.write(now.since(LATEST))
    }

    /// Writes the rest; the number of packets for which there was no room.
    pub fn finish(&mut self, clock: &Clock) -> Result<u64, Error> {
        self.empty(clock);
        self.write(Time::NEVER)?;
        self.file
            .flush()
            .tried(|| self.path.display().to_string())?;
        let lost = self.rings.iter_mut().map(Ring::lost);
        lost.sum::<Result<u64, _>>()
            .tried(|| "PACKET_STATISTICS".to_owned())
    }

    fn empty(&mut self, clock: &Clock) {
        let (end, flows, waiting) = (self.end, &self.flows, &mut self.waiting);
        for ring in &mut self.rings {
            ring.take(|frame| {
                if end.is_of(flows, &frame) {
                    let kept = frame.bytes.len().min(SNAP_BYTES as usize);
                    waiting.push(Captured {
                        time: clock.of_real(frame.real_ns),
                        length: frame.length,
                        bytes: frame.bytes[..kept].into(),
                    });
                }
            });
        }
        // Stable: at the same time, as each host has them, host after host.
        waiting.sort_by_key(|captured| captured.time);
    }

    fn write(&mut self, until: Time) -> Result<(), Error> {
        let old = self
            .waiting
            .partition_point(|captured| captured.time < until);
        for Captured {
            time,
            length,
            bytes,
        } in self.waiting.drain(..old)
        {
            let header = savefile::record_header(time.nanoseconds(), bytes.len() as u32, length);
            self.file
                .write_all(&header)
                .and_then(|()| self.file.write_all(&bytes))
                .tried(|| self.path.display().to_string())?;
        }
        Ok(())
    }
}

impl End {
    /// The hosts here from which data come, or to which they go.
    fn hosts(self, order: &Order) -> BTreeSet<&str> {
        let ways = order.flows.iter().chain(&order.datagrams);
        let ways = ways.chain(order.traffic.iter().flatten());
        let hosts = ways.map(|way| match self {
            End::Senders => &way.source,
            End::Receivers => &way.destination,
        });
        let here = hosts.filter(|host| order.has(host));
        here.map(|host| host.namespace.as_str()).collect()
    }

    /// The end that a plan names; links have none.
    fn of(vantage: &Vantage) -> Option<End> {
        match vantage {
            Vantage::Senders => Some(End::Senders),
            Vantage::Receivers => Some(End::Receivers),
            Vantage::Link(_) => None,
        }
    }

    /// Whether a frame that a host hears is of a flow of which it is this end.
    fn is_of(self, flows: &HashSet<(SocketAddrV4, SocketAddrV4)>, frame: &Frame) -> bool {
        headers(frame.bytes).is_some_and(|headers| {
            let (from, to) = (headers.source, headers.destination);
            let is_data = frame.is_outgoing == (self == End::Senders);
            flows.contains(&if is_data { (from, to) } else { (to, from) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::tests::{frame, said};

    fn heard(is_outgoing: bool, bytes: &[u8]) -> Frame<'_> {
        Frame {
            real_ns: 0,
            is_outgoing,
            length: 54,
            bytes,
        }
    }

    #[test]
    fn a_host_writes_down_the_flows_that_it_sends() {
        let (bytes, ends) = (frame(), said());
        let sends = HashSet::from([(ends.source, ends.destination)]);
        let receives = HashSet::from([(ends.destination, ends.source)]);
        assert!(End::Senders.is_of(&sends, &heard(true, &bytes)));
        assert!(
            End::Senders.is_of(&receives, &heard(false, &bytes)),
            "an ACK of its own"
        );
        assert!(
            !End::Senders.is_of(&sends, &heard(false, &bytes)),
            "another's data"
        );
        assert!(
            !End::Senders.is_of(&receives, &heard(true, &bytes)),
            "its ACK of another's"
        );
        assert!(!End::Senders.is_of(&sends, &heard(true, b"something else")));
    }
    #[test]
    fn a_receiver_writes_down_the_flows_that_it_receives() {
        let (bytes, ends) = (frame(), said());
        let flow = HashSet::from([(ends.source, ends.destination)]);
        let back = HashSet::from([(ends.destination, ends.source)]);
        assert!(End::Receivers.is_of(&flow, &heard(false, &bytes)), "data");
        assert!(End::Receivers.is_of(&back, &heard(true, &bytes)), "its ACK");
        assert!(!End::Receivers.is_of(&flow, &heard(true, &bytes)));
    }
}
