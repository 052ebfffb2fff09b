//! Detection of packets that one host captured several times, as in captures of `any` and of several interfaces: on a
//! bridge and its port, incoming and outgoing on a router, outgoing and incoming on loopback.
//!
//! A packet is a duplicate if it has the same bytes as an earlier one and another capture point. At the same capture
//! point it is another packet: retransmitted, or duplicated by the network.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::packet::{Datagram, Endpoint, Flags, Segment};

/// The longest time between two capture points of one host; longer is a path between hosts.
const MAX_FORWARDING_NS: i64 = 1_000_000;
/// Packets that are remembered: those of a millisecond at 1 M packets/s, nearly.
const SLOTS: usize = 1024;
/// The number of distinct capture points tracked for one packet.
const MAX_POINTS: usize = 4;

/// A hash table of the most recent packets and the capture points that had them.
#[derive(Debug, Default)]
pub struct DuplicateFilter {
    slots: Vec<Option<RecentPacket>>,
}

#[derive(Clone, Copy, Debug)]
struct RecentPacket {
    packet: Identity,
    time_ns: i64,
    points: [u32; MAX_POINTS],
    count: usize,
}

/// The header fields that forwarding leaves unchanged: all but the TTL and the IP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    ends: (Endpoint, Endpoint),
    numbers: (u32, u32),
    flags: u16,
    window: u16,
    payload_bytes: u32,
    identification: Option<u32>,
    timestamps: Option<(u32, u32)>,
    checksum_field: Option<u16>,
}

impl DuplicateFilter {
    /// Record a segment; return true if another capture point of the host had it before.
    pub fn is_duplicate(&mut self, segment: &Segment) -> bool {
        self.is_repeated(Identity::of(segment), segment.time_ns, segment.place)
    }

    /// Record a datagram; return true if another capture point of the host had it before.
    pub fn is_duplicate_datagram(&mut self, datagram: &Datagram) -> bool {
        let packet = Identity::of_datagram(datagram);
        self.is_repeated(packet, datagram.time_ns, datagram.place)
    }

    fn is_repeated(&mut self, packet: Identity, time_ns: Option<i64>, place: u32) -> bool {
        let Some(time_ns) = time_ns else {
            return false;
        };
        if self.slots.is_empty() {
            self.slots = vec![None; SLOTS];
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(packet);
        let slot = &mut self.slots[hash as usize % SLOTS];
        if let Some(recent) = slot {
            let is_recent = recent.time_ns.abs_diff(time_ns) <= MAX_FORWARDING_NS as u64;
            let is_same_point = recent.points[..recent.count].contains(&place);
            if recent.packet == packet && is_recent && !is_same_point && recent.count < MAX_POINTS {
                recent.points[recent.count] = place;
                recent.count += 1;
                return true;
            }
        }
        *slot = Some(RecentPacket {
            packet,
            time_ns,
            points: [place; MAX_POINTS],
            count: 1,
        });
        false
    }
}

impl Identity {
    fn of(segment: &Segment) -> Self {
        let Flags(flags) = segment.flags;
        Self {
            ends: (segment.source, segment.destination),
            numbers: (segment.sequence, segment.acknowledgement),
            flags,
            window: segment.window,
            payload_bytes: segment.payload_bytes,
            identification: segment.identification,
            timestamps: segment.options.timestamps,
            checksum_field: segment.checksum_field,
        }
    }

    fn of_datagram(datagram: &Datagram) -> Self {
        Self {
            ends: (datagram.source, datagram.destination),
            numbers: (0, 0),
            flags: 0,
            window: 0,
            payload_bytes: datagram.payload_bytes,
            identification: datagram.identification,
            timestamps: None,
            checksum_field: Some(datagram.checksum_field),
        }
    }
}
