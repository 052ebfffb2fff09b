//! The datagrams between two ends, whatever they carry.

use ackclock_pcap::packet::{ConnectionId, Datagram, Endpoint, PacketTypes};

use super::connection::QuicConnection;
use super::gaps::Gaps;
use super::rates::Rates;

/// Ports below are those of servers (RFC 6335: system ports).
const SYSTEM_PORTS: u16 = 1024;
/// QUIC datagrams of a short header that are no larger may be mere ACKs: header, connection ID, packet number and tag
/// take up to 41 bytes (RFC 9000 section 17.3), an ACK frame with a few ranges and ECN counts up to 40.
const MAX_ACK_BYTES: u32 = 81;

/// Datagrams of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Direction {
    /// Their number.
    pub datagrams: u64,
    /// Their UDP payload.
    pub payload_bytes: u64,
    /// The smallest and the largest payload.
    pub sizes: Option<(u32, u32)>,
    /// QUIC datagrams of one short header that are small enough to be mere ACKs.
    pub ack_sized: u64,
    /// By ECN codepoint: Not-ECT, ECT(1), ECT(0), CE.
    pub ecn: [u64; 4],
    /// The longest time between two of them, in nanoseconds.
    pub max_gap_ns: i64,
    /// When the first and the last one were sent.
    pub span_ns: Option<(i64, i64)>,
}

impl Direction {
    fn take(&mut self, datagram: &Datagram, now_ns: i64) {
        let bytes = datagram.payload_bytes;
        self.datagrams += 1;
        self.payload_bytes += u64::from(bytes);
        let (min, max) = self.sizes.unwrap_or((bytes, bytes));
        self.sizes = Some((min.min(bytes), max.max(bytes)));
        let is_short = datagram.quic.types == PacketTypes(PacketTypes::SHORT);
        self.ack_sized += u64::from(is_short && bytes <= MAX_ACK_BYTES);
        self.ecn[usize::from(datagram.ecn & 3)] += 1;
        let (first_ns, last_ns) = self.span_ns.unwrap_or((now_ns, now_ns));
        self.max_gap_ns = self.max_gap_ns.max(now_ns - last_ns);
        self.span_ns = Some((first_ns, now_ns));
    }
}

/// A flow: what two ends send each other.
#[derive(Clone, Debug)]
pub struct UdpFlow {
    /// Its ends, client and server, by their present addresses.
    pub ends: [Endpoint; 2],
    /// When its first and its last datagram were captured.
    pub span_ns: (i64, i64),
    /// The datagrams of each end, client and server.
    pub directions: [Direction; 2],
    /// Bytes over time.
    pub rates: Rates,
    /// Gaps in which neither end sent.
    pub gaps: Gaps,
    quic: Option<Box<QuicConnection>>,
}

impl UdpFlow {
    /// Begin with a datagram, which is yet to be taken. Its sender is the client, unless its port alone is a server's,
    /// or it is a packet that only servers send.
    pub fn new(datagram: &Datagram, now_ns: i64) -> Self {
        let (source, destination) = (datagram.source, datagram.destination);
        let is_system = |end: Endpoint| end.port < SYSTEM_PORTS;
        let of_server = PacketTypes::RETRY | PacketTypes::VERSION_NEGOTIATION;
        let is_reply = (is_system(source) && !is_system(destination))
            || (datagram.quic.has_published_version() && datagram.quic.types.has(of_server));
        Self {
            ends: if is_reply {
                [destination, source]
            } else {
                [source, destination]
            },
            span_ns: (now_ns, now_ns),
            directions: [Direction::default(); 2],
            rates: Rates::default(),
            gaps: Gaps::default(),
            quic: None,
        }
    }

    /// Return which end sends a datagram, 0 the client.
    pub fn end(&self, datagram: &Datagram) -> usize {
        usize::from(datagram.source == self.ends[1])
    }

    /// Take a datagram. Return a connection ID by which an end, 0 the client, is addressed from now on.
    pub fn take(&mut self, datagram: &Datagram, now_ns: i64) -> Option<(usize, ConnectionId)> {
        let end = self.end(datagram);
        let rtt_ns = self.quic().and_then(QuicConnection::rtt_ns);
        self.gaps.take(end, self.span_ns.1, now_ns, rtt_ns);
        self.span_ns.1 = now_ns;
        self.directions[end].take(datagram, now_ns);
        let since_ns = now_ns - self.span_ns.0;
        self.rates.add(end, datagram.payload_bytes, since_ns);
        if self.quic.is_none() && datagram.quic.version.is_some() {
            self.quic = Some(Box::default());
        }
        self.quic.as_mut()?.take(end, datagram, now_ns)
    }

    /// Return true if an end is addressed by this connection ID.
    pub fn has_id(&self, end: Endpoint, id: ConnectionId) -> bool {
        let quic = self.quic.as_deref();
        let place = self.ends.iter().position(|&own| own == end);
        quic.zip(place)
            .is_some_and(|(quic, place)| quic.has_id(place, id))
    }

    /// Return its QUIC connection, if it is one.
    pub fn quic(&self) -> Option<&QuicConnection> {
        self.quic.as_deref().filter(|quic| quic.is_confirmed())
    }

    /// Return its QUIC connection to be changed, if it is one.
    pub fn quic_mut(&mut self) -> Option<&mut QuicConnection> {
        self.quic.as_deref_mut().filter(|quic| quic.is_confirmed())
    }

    /// Return the UDP payload of both directions.
    pub fn payload_bytes(&self) -> u64 {
        self.directions.iter().map(|one| one.payload_bytes).sum()
    }
}
