//! A QUIC connection as its headers show it. It is one once a version that exists was seen, or a peer has answered to
//! the connection ID of a long header of another version.

use ackclock_pcap::packet::quic::has_rfc9000_layout;
use ackclock_pcap::packet::{ConnectionId, Datagram, Endpoint, PacketTypes, QuicHeaders};

use super::handshake::Handshake;
use super::spin::{Samples, Spin};

/// Shorter connection IDs do not identify a connection.
const MIN_ID_BYTES: usize = 4;
/// The shortest connection ID to which a client sends its first Initial (RFC 9000 section 7.2).
const MIN_ORIGINAL_ID_BYTES: usize = 8;
/// Connection IDs of a server that are kept.
const MAX_IDS: usize = 8;
/// The changes of the client's address that are listed.
const MAX_CHANGES: usize = 64;

/// The number of datagrams with a packet of each type, in the order of the flags of [`PacketTypes`].
pub type TypeCounts = [u64; 7];

/// A change of the client's address: a migration, or a NAT's new binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressChange {
    /// When.
    pub time_ns: i64,
    /// From.
    pub from: Endpoint,
    /// To.
    pub to: Endpoint,
}

/// The visible state of a connection.
#[derive(Clone, Debug, Default)]
pub struct QuicConnection {
    /// The last version of a long header other than Version Negotiation.
    pub version: Option<u32>,
    /// Versions that a server offered.
    pub offered: Vec<u32>,
    /// The datagrams by the types of their packets.
    pub datagrams: TypeCounts,
    /// The connection ID that each end, client and server, chose first.
    pub ids: [Option<ConnectionId>; 2],
    /// The one that the client chose for the server in its first packet.
    original_id: Option<ConnectionId>,
    /// Connection IDs by which the client has addressed the server, the last ones.
    pub server_ids: Vec<ConnectionId>,
    /// The number of times that the client took another connection ID for the server after the handshake.
    pub id_changes: u64,
    /// Changes of the client's address, the first of them.
    pub address_changes: Vec<AddressChange>,
    /// The handshake.
    pub handshake: Handshake,
    /// The spin bit.
    pub spin: Spin,
    is_confirmed: bool,
}

impl QuicConnection {
    /// Take a datagram of one end, 0 the client. Return a connection ID by which an end is addressed from now on.
    pub fn take(
        &mut self,
        end: usize,
        datagram: &Datagram,
        now_ns: i64,
    ) -> Option<(usize, ConnectionId)> {
        let headers = &datagram.quic;
        self.confirm(end, headers);
        let types = self.readable(headers);
        for (bit, count) in self.datagrams.iter_mut().enumerate() {
            *count += u64::from(types.has(1 << bit));
        }
        if types == headers.types {
            self.handshake.take(end, datagram, now_ns);
            if let Some(spin) = headers.spin {
                self.spin.take(end, spin, now_ns);
            }
        }
        if headers.types.has(PacketTypes::VERSION_NEGOTIATION) {
            self.offered = headers.offered().to_vec();
            return None;
        }
        if let Some(source_id) = headers.source_id {
            self.version = headers.version;
            if end == 0 {
                self.original_id = self.original_id.or(headers.destination_id);
            }
            let is_first = self.ids[end].is_none();
            if !headers.types.has(PacketTypes::RETRY) {
                self.ids[end].get_or_insert(source_id);
            }
            let id = if end == 1 {
                Some(source_id)
            } else {
                self.issued_id(headers)
            };
            if let Some(id) = id.and_then(|id| self.new_id(id)) {
                return Some((1, id));
            }
            let is_clients = end == 0 && is_first && source_id.bytes().len() >= MIN_ID_BYTES;
            return is_clients.then_some((0, source_id));
        }
        self.version = self.version.or(headers.version);
        (end == 0)
            .then(|| self.short_id(headers))
            .flatten()
            .map(|id| (1, id))
    }

    /// Return the types of packets that are known to be what they look like: of a version with another layout, none.
    fn readable(&self, headers: &QuicHeaders) -> PacketTypes {
        if self.has_rfc9000_layout()
            || headers
                .version
                .is_some_and(|v| v == 0 || has_rfc9000_layout(v))
        {
            headers.types
        } else {
            PacketTypes(headers.types.0 & PacketTypes::OTHER)
        }
    }

    /// Return true if the headers of its version have a known layout.
    pub fn has_rfc9000_layout(&self) -> bool {
        self.version.is_some_and(has_rfc9000_layout)
    }

    /// Return true if it is QUIC, on the evidence so far.
    pub fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn confirm(&mut self, end: usize, headers: &QuicHeaders) {
        let is_answer = headers
            .destination_id
            .is_some_and(|id| id.bytes().len() >= MIN_ID_BYTES && Some(id) == self.ids[1 - end])
            && (headers.version == self.version || headers.version == Some(0));
        self.is_confirmed |= headers.has_published_version() || is_answer;
    }

    /// Return true if a client's packet begins another connection between the same ends: an Initial without Handshake
    /// packets beside it, to a connection ID that is long enough for a first one. An Initial to any other ID uses one
    /// that the server has issued in an encrypted packet.
    pub fn is_new_connection(&self, headers: &QuicHeaders) -> bool {
        let Some(id) = headers.destination_id else {
            return false;
        };
        self.is_confirmed
            && headers.types.has(PacketTypes::INITIAL)
            && !headers
                .types
                .has(PacketTypes::HANDSHAKE | PacketTypes::SHORT)
            && id.bytes().len() >= MIN_ORIGINAL_ID_BYTES
            && self.handshake.has_response()
            && self.original_id.is_some_and(|original| original != id)
            && self.ids[1] != Some(id)
            && !self.server_ids.contains(&id)
    }

    /// Return the connection ID of a client's long header, if it is one that the server has issued.
    fn issued_id(&self, headers: &QuicHeaders) -> Option<ConnectionId> {
        let id = headers
            .destination_id
            .filter(|_| self.handshake.has_response())?;
        (Some(id) != self.original_id).then_some(id)
    }

    /// Return true if an end, 0 the client, is addressed by this connection ID.
    pub fn has_id(&self, end: usize, id: ConnectionId) -> bool {
        if end == 1 {
            self.server_ids.contains(&id)
        } else {
            self.ids[0] == Some(id)
        }
    }

    /// Return the connection ID of a client's short header, if it is another one than before.
    fn short_id(&mut self, headers: &QuicHeaders) -> Option<ConnectionId> {
        let length = self.ids[1]?.bytes().len();
        let bytes = headers.short_bytes.as_ref()?.bytes().get(..length)?;
        let id = ConnectionId::new(bytes)?;
        let new = self.new_id(id);
        self.id_changes += u64::from(new.is_some());
        new
    }

    fn new_id(&mut self, id: ConnectionId) -> Option<ConnectionId> {
        if id.bytes().len() < MIN_ID_BYTES || self.server_ids.contains(&id) {
            return None;
        }
        if self.server_ids.len() == MAX_IDS {
            self.server_ids.remove(0);
        }
        self.server_ids.push(id);
        Some(id)
    }

    /// The client's address is another one.
    pub fn move_client(&mut self, change: AddressChange) {
        if self.address_changes.len() < MAX_CHANGES {
            self.address_changes.push(change);
        }
    }

    /// Return the largest RTT that is known since the handshake was complete, in nanoseconds.
    pub fn rtt_ns(&self) -> Option<i64> {
        self.handshake.complete_ns?;
        let spin = self.spin.rtts().map(|[all, ..]: [Samples; 3]| all.max_ns);
        self.handshake.rtt_ns().max(spin)
    }
}
