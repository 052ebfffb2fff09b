//! The segments of a capture as rows, each with a key that is the same in another capture of the same path; on request,
//! the datagrams of QUIC, too.
//!
//! The key hashes the fields that no hop changes: addresses, ports, sequence and acknowledgement numbers, flags,
//! window, timestamps, and the IP identification, which distinguishes retransmissions. Segments that offloads merged
//! (TSO, GRO) are listed as the segments on the wire: FIN is of the last of them, CWR of the first. PSH is left out, as
//! offloads change it. The key of a datagram hashes its ends, its length and its headers, with the first encrypted bytes;
//! datagrams of other protocols may be alike.
//!
//! Merged segments are cut at the MSS of the handshake. They may be smaller (path MTU discovery, RFC 4821): then the
//! boundaries come from another capture of the path that has them one by one.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::path::Path;

use ackclock_core::tables::{record, table};

use crate::files::{Capture, Packet};
use crate::filter::Filter;
use crate::packet::{Datagram, Endpoint, Flags, Segment};

/// The MSS of connections without a captured SYN; the timestamp option is subtracted.
const DEFAULT_MSS: u32 = 1460;
const TIMESTAMPS_BYTES: u32 = 12;

table!(
    /// A row for each segment.
    Listed {
        /// Since 1970.
        time_ns: u64,
        key: u64,
        /// A row of [`Pairs`].
        pair: u32,
        from_first: bool,
        sequence: u32,
        acknowledgement: u32,
        payload_bytes: u32,
    }
);

table!(
    /// The ends of connections.
    Pairs {
        first: String,
        second: String,
    }
);

record!(
    /// The rows since the last drain.
    Lists {
        listed: Listed,
        pairs: Pairs,
    }
);

/// Sequence numbers at which segments begin and end, by what the segments of one transmission have in common.
type Boundaries = HashMap<u64, Vec<u32>>;

/// A capture read segment by segment into rows.
#[derive(Debug)]
pub struct Listing {
    boundaries: Boundaries,
    capture: Capture,
    lists_datagrams: bool,
    pairs: HashMap<[Endpoint; 2], Pair>,
    previous_ns: i64,
    rows: Lists,
}

#[derive(Clone, Copy, Debug)]
struct Pair {
    number: u32,
    mss: u32,
    /// A published version of QUIC was seen.
    is_quic: bool,
}

impl Listing {
    /// Open a file, for the packets that match a filter: segments, and datagrams of QUIC if they are
    /// wanted.
    pub fn open(path: &Path, filter: Filter, lists_datagrams: bool) -> Self {
        Self {
            capture: Capture::filtered(&[path], filter),
            boundaries: Boundaries::new(),
            lists_datagrams,
            pairs: HashMap::new(),
            previous_ns: 0,
            rows: Lists::default(),
        }
    }

    /// Cut segments also where those of another capture of the same path begin and end.
    #[must_use]
    pub fn cut_as(mut self, other: &Path, filter: Filter) -> Self {
        let mut capture = Capture::filtered(&[other], filter);
        while let Some(packet) = capture.next_packet() {
            if let Packet::Segment(segment) = packet {
                if segment.payload_bytes > 0 && !segment.duplicate {
                    let end = segment.sequence.wrapping_add(segment.payload_bytes);
                    let cuts = self.boundaries.entry(transmission(segment)).or_default();
                    cuts.extend([segment.sequence, end]);
                }
            }
        }
        self
    }

    /// Read at most `packets` segments and datagrams; return false at the end.
    pub fn advance(&mut self, packets: u64) -> bool {
        for _ in 0..packets {
            match self.capture.next_packet() {
                None => return false,
                Some(Packet::Segment(segment)) if !segment.duplicate => {
                    let segment = *segment;
                    self.list(&segment);
                }
                Some(Packet::Datagram(datagram)) if self.lists_datagrams && !datagram.duplicate => {
                    let datagram = *datagram;
                    self.list_datagram(&datagram);
                }
                Some(_) => {}
            }
        }
        true
    }

    /// Take the accumulated rows.
    pub fn drain(&mut self) -> Lists {
        std::mem::take(&mut self.rows)
    }

    fn list(&mut self, segment: &Segment) {
        self.previous_ns = segment.time_ns.unwrap_or(self.previous_ns);
        let pair = self.pair_of_segment(segment);
        let options = if segment.options.timestamps.is_some() {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        let mss = pair.mss.saturating_sub(options).max(1);
        // Without timestamps a segment may be longer by them.
        let is_merged = segment.payload_bytes > mss + TIMESTAMPS_BYTES;
        let most = if is_merged {
            mss
        } else {
            segment.payload_bytes
        };
        let cuts = self.cuts_within(segment);
        let mut cuts = cuts.into_iter().peekable();
        let (mut number, mut before) = (0, 0);
        loop {
            while cuts.next_if(|&cut| cut <= before).is_some() {}
            let end = cuts.peek().copied().unwrap_or(segment.payload_bytes);
            let bytes = (end - before).min(most);
            self.row(segment, pair.number, (number, before, bytes));
            number += 1;
            before += bytes;
            if before >= segment.payload_bytes {
                return;
            }
        }
    }

    /// Return where the other capture cuts this segment, in bytes behind its start.
    fn cuts_within(&self, segment: &Segment) -> Vec<u32> {
        if self.boundaries.is_empty() || segment.payload_bytes == 0 {
            return Vec::new();
        }
        let cuts = self.boundaries.get(&transmission(segment));
        let behind = cuts.into_iter().flatten();
        let behind = behind.map(|cut| cut.wrapping_sub(segment.sequence));
        let mut cuts: Vec<u32> = behind.filter(|&cut| cut < segment.payload_bytes).collect();
        cuts.sort_unstable();
        cuts
    }

    fn row(&mut self, segment: &Segment, pair: u32, (number, before, bytes): (u32, u32, u32)) {
        let sequence = segment.sequence.wrapping_add(before);
        let identification = segment
            .identification
            .map(|first| first.wrapping_add(number) & 0xffff);
        let Flags(mut flags) = segment.flags;
        if before > 0 {
            flags &= !Flags::CWR;
        }
        if before + bytes < segment.payload_bytes {
            flags &= !Flags::FIN;
        }
        let identity = (
            (segment.source, segment.destination),
            (sequence, segment.acknowledgement, bytes),
            (flags & !Flags::PSH, segment.window),
            (identification, segment.options.timestamps),
        );
        let key = hashed(&identity);
        let rows = &mut self.rows.listed;
        rows.time_ns.push(self.previous_ns.max(0) as u64);
        rows.key.push(key);
        rows.pair.push(pair);
        rows.from_first.push(segment.source <= segment.destination);
        rows.sequence.push(sequence);
        rows.acknowledgement.push(segment.acknowledgement);
        rows.payload_bytes.push(bytes);
    }

    fn list_datagram(&mut self, datagram: &Datagram) {
        let ends = (datagram.source, datagram.destination);
        let pair = self.pair(ends);
        pair.is_quic |= datagram.quic.has_published_version();
        let Pair {
            number, is_quic, ..
        } = *pair;
        if !is_quic {
            return;
        }
        self.previous_ns = datagram.time_ns.unwrap_or(self.previous_ns);
        let key = hashed(&(ends, datagram.payload_bytes, datagram.quic));
        let rows = &mut self.rows.listed;
        rows.time_ns.push(self.previous_ns.max(0) as u64);
        rows.key.push(key);
        rows.pair.push(number);
        rows.from_first.push(ends.0 <= ends.1);
        rows.sequence.push(0);
        rows.acknowledgement.push(0);
        rows.payload_bytes.push(datagram.payload_bytes);
    }

    fn pair_of_segment(&mut self, segment: &Segment) -> Pair {
        let pair = self.pair((segment.source, segment.destination));
        if segment.flags.has(Flags::SYN) {
            if let Some(mss) = segment.options.mss {
                pair.mss = pair.mss.min(mss.into());
            }
        }
        *pair
    }

    fn pair(&mut self, (source, destination): (Endpoint, Endpoint)) -> &mut Pair {
        let ends = if source <= destination {
            [source, destination]
        } else {
            [destination, source]
        };
        let number = self.pairs.len() as u32;
        let rows = &mut self.rows.pairs;
        self.pairs.entry(ends).or_insert_with(|| {
            rows.first.push(text(ends[0]));
            rows.second.push(text(ends[1]));
            Pair {
                number,
                mss: DEFAULT_MSS,
                is_quic: false,
            }
        })
    }
}

/// Return the same number for segments that one host sent together, as one super-segment is cut into.
fn transmission(segment: &Segment) -> u64 {
    let ends = (segment.source, segment.destination);
    let timestamps = segment.options.timestamps;
    hashed(&(ends, segment.acknowledgement, segment.window, timestamps))
}

fn hashed(identity: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(identity)
}

/// Format an endpoint as the dataset has it.
fn text(end: Endpoint) -> String {
    std::net::SocketAddr::new(end.address.ip(), end.port).to_string()
}
