//! Segments by hand, and what an analysis makes of them.

use ackclock_analysis::analysis::Analysis;
use ackclock_analysis::output::Options;
use ackclock_analysis::tables::{Fate, RetransmitCause, Stall, Tables};
use ackclock_core::tables::EventKind;
use ackclock_pcap::packet::{Address, Checksum, Endpoint, Flags, Options as TcpOptions, Segment};

pub mod invariants;

/// The size of the segments.
pub const MSS: u32 = 1000;
const MS: i64 = 1_000_000;

/// A client that sends data, seen at some point of its path: times are in milliseconds, positions in segments.
pub struct Trace {
    pub segments: Vec<Segment>,
    /// With timestamps, in milliseconds.
    pub timestamps: bool,
}

fn end(host: u8, port: u16) -> Endpoint {
    Endpoint {
        address: Address(0xffff_0a00_0000 + u128::from(host)),
        port,
    }
}

/// A segment without anything in it.
pub fn segment(at_ms: i64, from_client: bool) -> Segment {
    let (source, destination) = (end(1, 40_000), end(2, 80));
    let (source, destination) = if from_client {
        (source, destination)
    } else {
        (destination, source)
    };
    Segment {
        time_ns: Some(at_ms * MS),
        file: 0,
        interface: 0,
        place: 0,
        outbound: None,
        source,
        destination,
        sequence: 0,
        acknowledgement: 0,
        flags: Flags(Flags::ACK),
        window: 60_000,
        payload_bytes: 0,
        options: TcpOptions::default(),
        identification: None,
        hops: 64,
        ecn: 0,
        packet_bytes: 52,
        frame_bytes: 66,
        checksum_field: None,
        checksum: Checksum::default(),
        encapsulations: 0,
        super_segment: false,
        fragmented: false,
        duplicate: false,
    }
}

impl Trace {
    /// After a handshake: `to_client_ms` and `to_server_ms` are the halves of the round trip.
    pub fn after_handshake(to_client_ms: i64, to_server_ms: i64) -> Self {
        let mut trace = Self {
            segments: Vec::new(),
            timestamps: false,
        };
        trace.syn(0);
        trace.synack(to_server_ms);
        trace.segments.push(Segment {
            sequence: 1,
            acknowledgement: 1,
            ..segment(to_server_ms + to_client_ms, true)
        });
        trace
    }

    pub fn syn(&mut self, at_ms: i64) {
        let mut syn = segment(at_ms, true);
        syn.flags = Flags(Flags::SYN);
        syn.options = opening();
        self.segments.push(syn);
    }

    pub fn synack(&mut self, at_ms: i64) {
        let mut answer = segment(at_ms, false);
        answer.flags = Flags(Flags::SYN | Flags::ACK);
        answer.acknowledgement = 1;
        answer.options = opening();
        self.segments.push(answer);
    }

    /// A whole segment of data.
    pub fn data(&mut self, at_ms: i64, number: u32) -> &mut Segment {
        let mut data = segment(at_ms, true);
        data.sequence = 1 + number * MSS;
        data.acknowledgement = 1;
        data.payload_bytes = MSS;
        data.packet_bytes = MSS + 52;
        data.frame_bytes = MSS + 66;
        if self.timestamps {
            data.options.timestamps = Some((1000 + at_ms as u32, 0));
        }
        self.segments.push(data);
        self.segments.last_mut().expect("it was pushed")
    }

    /// An acknowledgement of all before a segment, with SACK blocks.
    pub fn ack(&mut self, at_ms: i64, number: u32, sack: &[(u32, u32)]) -> &mut Segment {
        let mut ack = segment(at_ms, false);
        ack.sequence = 1;
        ack.acknowledgement = 1 + number * MSS;
        for &(start, end) in sack {
            let slot = usize::from(ack.options.sack_blocks);
            ack.options.sack[slot] = (1 + start * MSS, 1 + end * MSS);
            ack.options.sack_blocks += 1;
        }
        self.segments.push(ack);
        self.segments.last_mut().expect("it was pushed")
    }

    pub fn analysed(&self) -> Tables {
        analysed(&self.segments)
    }
}

fn opening() -> TcpOptions {
    TcpOptions {
        mss: Some(MSS as u16),
        window_scale: Some(7),
        sack_permitted: true,
        ..TcpOptions::default()
    }
}

/// All rows of some segments.
pub fn analysed(segments: &[Segment]) -> Tables {
    let mut analysis = Analysis::new(Options {
        segments: true,
        ..Options::default()
    });
    for segment in segments {
        analysis.take(segment);
    }
    analysis.finish();
    std::mem::take(&mut analysis.output.tables)
}

/// The fates of a segment's copies, in the order of their times, with the causes.
pub fn fates(tables: &Tables, number: u32) -> Vec<(Fate, RetransmitCause)> {
    let rows = &tables.segments;
    let mut found: Vec<_> = (0..rows.flow.len())
        .filter(|&row| rows.offset_bytes[row] == u64::from(number * MSS))
        .map(|row| {
            (
                rows.time_s[row],
                fate(rows.fate[row]),
                cause(rows.cause[row]),
            )
        })
        .collect();
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    found
        .iter()
        .map(|&(_, fate, cause)| (fate, cause))
        .collect()
}

fn fate(code: u8) -> Fate {
    use Fate::*;
    [
        Unresolved,
        Delivered,
        Lost,
        LostBefore,
        Reordered,
        Duplicate,
        Spurious,
        NotCaptured,
    ][usize::from(code)]
}

fn cause(code: u8) -> RetransmitCause {
    use RetransmitCause::*;
    [
        Unknown,
        Fast,
        TailProbe,
        Timeout,
        Syn,
        SynAck,
        Spurious,
        WindowProbe,
    ][usize::from(code)]
}

/// The classes of the stalls.
pub fn stalls(tables: &Tables) -> Vec<&'static str> {
    let events = &tables.events;
    (0..events.kind.len())
        .filter(|&row| events.kind[row] == EventKind::Stall as u8)
        .map(|row| Stall::NAMES[usize::from(events.class[row])])
        .collect()
}

/// Return the number of events of a kind.
pub fn count(tables: &Tables, kind: EventKind) -> usize {
    let events = &tables.events.kind;
    events
        .iter()
        .map(|&one| usize::from(one == kind as u8))
        .sum()
}
