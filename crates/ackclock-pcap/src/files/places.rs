//! The same packet seen at several places of one host, as captures of `any` and of several interfaces have it: on a
//! bridge and its port, coming in and going out of a router, leaving and arriving on loopback.
//!
//! A packet is a copy of one before if it has the same bytes and comes from a place where that one was not yet seen. At
//! the same place it is another packet: sent again, or duplicated by the network.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use crate::packet::{Endpoint, Flags, Segment};

/// What a host may take from one of its places to the next; longer is a path between hosts.
const LONGEST_NS: i64 = 1_000_000;
/// Packets that are remembered: those of a millisecond at 1 M packets/s, nearly.
const SLOTS: usize = 1024;
/// Places of one packet that are told apart.
const MOST_PLACES: usize = 4;

/// The packets of the last moments, and where they were seen.
#[derive(Debug, Default)]
pub struct Places {
    slots: Vec<Option<Seen>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    packet: Identity,
    time_ns: i64,
    places: [u32; MOST_PLACES],
    count: usize,
}

/// What no host changes while it passes a packet on: not the TTL, nor its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Identity {
    ends: (Endpoint, Endpoint),
    numbers: (u32, u32),
    flags: u8,
    window: u16,
    payload_bytes: u32,
    identification: Option<u32>,
    timestamps: Option<(u32, u32)>,
    checksum_field: Option<u16>,
}

impl Places {
    /// Whether this packet was seen before at another place; remembers it.
    pub fn seen_before(&mut self, segment: &Segment) -> bool {
        let Some(time_ns) = segment.time_ns else {
            return false;
        };
        if self.slots.is_empty() {
            self.slots = vec![None; SLOTS];
        }
        let packet = Identity::of(segment);
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(packet);
        let slot = &mut self.slots[hash as usize % SLOTS];
        if let Some(seen) = slot {
            let near = seen.time_ns.abs_diff(time_ns) <= LONGEST_NS as u64;
            let here = seen.places[..seen.count].contains(&segment.place);
            if seen.packet == packet && near && !here && seen.count < MOST_PLACES {
                seen.places[seen.count] = segment.place;
                seen.count += 1;
                return true;
            }
        }
        *slot = Some(Seen {
            packet,
            time_ns,
            places: [segment.place; MOST_PLACES],
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
}
