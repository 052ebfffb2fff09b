//! A packet capture at the senders or at the receivers, readable by tcpdump and Wireshark.
//!
//! Each namespace that data come from, or go to, has a packet socket. Of the packets it captures, those of the flows
//! that it sends, or receives, are written down, both ways: what leaves and what comes back. So each packet of a flow
//! is there once, also where two hosts send to each other. One file has them all, in the order of their times, which
//! count from the run's beginning.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use ackclock_core::Time;
use ackclock_pcap::savefile::{self, SNAP_BYTES};
use ackclock_plan::Vantage;

use crate::clock::Clock;
use crate::error::Tried;
use crate::frame::headers;
use crate::namespaces::Namespaces;
use crate::run_spec::RunSpec;
use crate::sys::ring::{Frame, Ring, BLOCK_BYTES};
use crate::Error;

/// The interval at which the rings are emptied.
pub const INTERVAL: Time = Time::from_milliseconds(10);
/// The maximum delay of a packet in its ring. In virtual time there is none.
const MAX_DELAY: Time = Time::from_milliseconds(100);
/// Memory of all rings, and the most blocks that one is given.
const RINGS_BYTES: usize = 64 << 20;
const MAX_BLOCKS: usize = 64;

/// The captured packets of a run at the hosts of one end.
#[derive(Debug)]
pub struct Capture {
    end: End,
    path: PathBuf,
    file: BufWriter<File>,
    rings: Vec<Ring>,
    /// The two ends of the flows: who sends, and to whom.
    flows: HashSet<(SocketAddrV4, SocketAddrV4)>,
    /// Packets that may not be written yet, since an older one may follow.
    pending: Vec<Captured>,
}

/// The end of the flows at which packets are captured.
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
    /// Open a packet socket wherever the run spec has a capture.
    pub fn open_all(
        run_spec: &RunSpec,
        namespaces: &mut Namespaces,
    ) -> Result<Vec<Capture>, Error> {
        let vantages = run_spec.plan.record.pcap.vantages().iter();
        let captures = vantages.zip(&run_spec.captures);
        captures
            .filter_map(|(vantage, path)| End::of(vantage).map(|end| (end, path)))
            .filter(|(end, _)| run_spec.local.is_none() || !end.hosts(run_spec).is_empty())
            .map(|(end, path)| Capture::open(end, path, run_spec, namespaces))
            .collect()
    }

    fn open(
        end: End,
        path: &Path,
        run_spec: &RunSpec,
        namespaces: &mut Namespaces,
    ) -> Result<Capture, Error> {
        let hosts = end.hosts(run_spec);
        let rings_total = hosts.len() * run_spec.captures.len();
        let blocks = RINGS_BYTES / BLOCK_BYTES / rings_total.max(1);
        let mut rings = Vec::with_capacity(hosts.len());
        for host in hosts {
            namespaces.enter(host)?;
            let ring = Ring::open(blocks.clamp(1, MAX_BLOCKS));
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
            pending: Vec::new(),
        })
    }

    /// From now on the packets of a flow are written down.
    pub fn add_flow(&mut self, sender: SocketAddrV4, receiver: SocketAddrV4) {
        self.flows.insert((sender, receiver));
    }

    /// Empty the rings, and write what is old enough at `now`.
    pub fn take(&mut self, now: Time, clock: &Clock) -> Result<(), Error> {
        self.empty(clock);
        self.write(now.since(MAX_DELAY))
    }

    /// Write the rest; the number of packets for which there was no room.
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
        let (end, flows, pending) = (self.end, &self.flows, &mut self.pending);
        for ring in &mut self.rings {
            ring.take(|frame| {
                if end.matches(flows, &frame) {
                    let kept = frame.bytes.len().min(SNAP_BYTES as usize);
                    pending.push(Captured {
                        time: clock.of_real(frame.real_ns),
                        length: frame.length,
                        bytes: frame.bytes[..kept].into(),
                    });
                }
            });
        }
        // Stable: at the same time, as each host has them, host after host.
        pending.sort_by_key(|captured| captured.time);
    }

    fn write(&mut self, until: Time) -> Result<(), Error> {
        let old = self
            .pending
            .partition_point(|captured| captured.time < until);
        for Captured {
            time,
            length,
            bytes,
        } in self.pending.drain(..old)
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
    fn hosts(self, run_spec: &RunSpec) -> BTreeSet<&str> {
        let host_pairs = run_spec.flows.iter().chain(&run_spec.datagrams);
        let host_pairs = host_pairs.chain(run_spec.traffic.iter().flatten());
        let hosts = host_pairs.map(|host_pair| match self {
            End::Senders => &host_pair.source,
            End::Receivers => &host_pair.destination,
        });
        let local = hosts.filter(|host| run_spec.is_local(host));
        local.map(|host| host.namespace.as_str()).collect()
    }

    /// The end that a plan names; links have none.
    fn of(vantage: &Vantage) -> Option<End> {
        match vantage {
            Vantage::Senders => Some(End::Senders),
            Vantage::Receivers => Some(End::Receivers),
            Vantage::Link(_) => None,
        }
    }

    /// Return true if a frame on a host belongs to a flow of which the host is this end.
    fn matches(self, flows: &HashSet<(SocketAddrV4, SocketAddrV4)>, frame: &Frame) -> bool {
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
    use crate::frame::tests::{expected_headers, frame};

    fn captured_frame(is_outgoing: bool, bytes: &[u8]) -> Frame<'_> {
        Frame {
            real_ns: 0,
            is_outgoing,
            length: 54,
            bytes,
        }
    }

    #[test]
    fn a_host_writes_down_the_flows_that_it_sends() {
        let (bytes, ends) = (frame(), expected_headers());
        let sends = HashSet::from([(ends.source, ends.destination)]);
        let receives = HashSet::from([(ends.destination, ends.source)]);
        assert!(End::Senders.matches(&sends, &captured_frame(true, &bytes)));
        assert!(
            End::Senders.matches(&receives, &captured_frame(false, &bytes)),
            "an ACK of its own"
        );
        assert!(
            !End::Senders.matches(&sends, &captured_frame(false, &bytes)),
            "another's data"
        );
        assert!(
            !End::Senders.matches(&receives, &captured_frame(true, &bytes)),
            "its ACK of another's"
        );
        assert!(!End::Senders.matches(&sends, &captured_frame(true, b"something else")));
    }
    #[test]
    fn a_receiver_writes_down_the_flows_that_it_receives() {
        let (bytes, ends) = (frame(), expected_headers());
        let flow = HashSet::from([(ends.source, ends.destination)]);
        let back = HashSet::from([(ends.destination, ends.source)]);
        assert!(
            End::Receivers.matches(&flow, &captured_frame(false, &bytes)),
            "data"
        );
        assert!(
            End::Receivers.matches(&back, &captured_frame(true, &bytes)),
            "its ACK"
        );
        assert!(!End::Receivers.matches(&flow, &captured_frame(true, &bytes)));
    }
}
