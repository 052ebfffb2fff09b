//! The connections of a capture: segments find theirs, and those that are over make room.
//!
//! Memory is bounded by the connections at a time: one that is closed, or of which long nothing was seen, is finished
//! and its rows are written. The more memory there is in use, the shorter is "long".

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use crate::capture_gap::CaptureGap;
use crate::flow::{Connection, SenderView};
use crate::output::Output;
use ackclock_pcap::packet::{Endpoint, Segment};

/// A closed connection is kept for so long, for copies that come late.
const CLOSED_RETENTION_NS: i64 = 10_000_000_000;
/// One that is idle, for so long while there is room: two minutes and a half hour are usual at routers (RFC 5382).
const IDLE_RETENTION_NS: i64 = 1_800_000_000_000;
/// The share of the memory that may be in use before idle ones make room.
const ROOM: f64 = 0.545;
/// In between, an idle connection is kept for this time, and for the less the less room there is.
const PRESSURE_RETENTION_NS: f64 = 30e9;
/// The memory of a connection with its entries in the index and the slots, and of each direction with data, in bytes.
const CONNECTION_BYTES: usize = size_of::<Connection>() + 128;
const DIRECTION_BYTES: usize = size_of::<SenderView>();
/// A connection gives back what it does not need after so long.
const SHRINK_AFTER_NS: i64 = 5_000_000_000;

/// Connections whose memory is used again: others begin while they end.
const MAX_SPARE: usize = 256;

/// One connection is checked for eviction after this many packets, and several before one is added.
const PACKETS_PER_SWEEP: u64 = 16;
const SWEEPS_PER_CONNECTION: u32 = 4;

type Key = (Endpoint, Endpoint);

/// The state by which idle connections are evicted.
#[derive(Clone, Copy, Debug, Default)]
struct IdleState {
    /// When its last packet was seen.
    last_ns: i64,
    /// The connection is closed.
    closed: bool,
    /// It has given back what it does not need.
    is_shrunk: bool,
}

/// All connections.
#[derive(Debug)]
pub struct Connections {
    index: HashMap<Key, u32, Seeded>,
    slots: Vec<Option<Box<Connection>>>,
    /// The idle state of each slot, contiguous because it is scanned all the time.
    idle_states: Vec<IdleState>,
    free: Vec<u32>,
    #[allow(clippy::vec_box)] // what goes into a slot as it is
    spare: Vec<Box<Connection>>,
    hand: usize,
    data_directions: usize,
    begun: u32,
    /// Connections ended early because memory was short; their rest counts as another connection.
    evicted: u32,
    /// The one that the last segment was of; most often the next one is, too.
    last: Option<u32>,
    gap: CaptureGap,
    packets: u64,
    ended: usize,
    /// Memory that shall not be exceeded.
    max_bytes: usize,
}

impl Connections {
    /// None, and memory for some.
    pub fn within(max_bytes: usize) -> Self {
        Self {
            index: HashMap::with_hasher(Seeded::new()),
            slots: Vec::new(),
            idle_states: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            hand: 0,
            data_directions: 0,
            begun: 0,
            evicted: 0,
            last: None,
            gap: CaptureGap::default(),
            packets: 0,
            ended: 0,
            max_bytes,
        }
    }

    /// Return how many connections began.
    pub fn begun(&self) -> u32 {
        self.begun
    }

    /// Return how many open connections were ended because memory was short; their rest counts as another connection.
    pub fn evicted_connections(&self) -> u32 {
        self.evicted
    }

    /// Return the number of the flow whose segments go from one end to the other, if its connection is open.
    pub fn flow(&self, source: Endpoint, destination: Endpoint) -> Option<u32> {
        let slot = *self.index.get(&ordered(source, destination))?;
        let connection = self.slots[slot as usize].as_ref()?;
        Some(connection.flow(usize::from(connection.ends[0] != source)))
    }

    /// Pass a segment to its connection.
    #[inline]
    pub fn take(&mut self, segment: &Segment, now_ns: i64, output: &mut Output) {
        self.gap.packet(now_ns);
        let slot = self.slot(segment, now_ns, output);
        if let Some(connection) = &mut self.slots[slot as usize] {
            let (data_directions, waited) = (connection.data_directions(), connection.waits());
            self.gap.on_connection(connection.last_ns);
            connection.take(segment, now_ns, &self.gap, output);
            self.gap.update_waiting(waited, connection.waits());
            self.data_directions =
                self.data_directions + connection.data_directions() - data_directions;
            self.idle_states[slot as usize] = IdleState {
                last_ns: now_ns,
                closed: connection.closed(),
                is_shrunk: false,
            };
        }
        self.packets = self.packets.wrapping_add(1);
        if self.packets.is_multiple_of(PACKETS_PER_SWEEP) {
            self.sweep(now_ns, output);
        }
    }

    #[inline]
    fn slot(&mut self, segment: &Segment, now_ns: i64, output: &mut Output) -> u32 {
        let last = self.last.filter(|&last| self.is_of(last, segment));
        let known = last.or_else(|| self.index.get(&key(segment)).copied());
        if let Some(slot) = known {
            let over = self.slots[slot as usize]
                .as_ref()
                .is_some_and(|connection| connection.is_new_connection(segment, now_ns));
            if !over {
                self.last = Some(slot);
                return slot;
            }
            self.finish(slot, output);
        }
        for _ in 0..SWEEPS_PER_CONNECTION {
            self.sweep(now_ns, output);
        }
        self.begin(segment, now_ns)
    }

    #[inline]
    fn is_of(&self, slot: u32, segment: &Segment) -> bool {
        let connection = self.slots[slot as usize].as_ref();
        connection.is_some_and(|connection| connection.is_between(segment))
    }

    fn begin(&mut self, segment: &Segment, now_ns: i64) -> u32 {
        let connection = Some(match self.spare.pop() {
            Some(mut spare) => {
                spare.reset(self.begun, segment, now_ns);
                spare
            }
            None => Box::new(Connection::new(self.begun, segment, now_ns)),
        });
        self.begun = self.begun.wrapping_add(1);
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = connection;
            slot
        } else {
            self.slots.push(connection);
            self.idle_states.push(IdleState::default());
            self.slots.len() as u32 - 1
        };
        self.index.insert(key(segment), slot);
        self.last = Some(slot);
        slot
    }

    fn finish(&mut self, slot: u32, output: &mut Output) {
        let Some(mut connection) = self.slots[slot as usize].take() else {
            return;
        };
        self.data_directions -= connection.data_directions();
        self.gap.update_waiting(connection.waits(), false);
        let [client, server] = connection.ends;
        self.index.remove(&ordered(client, server));
        self.last = None;
        self.free.push(slot);
        connection.finish(output);
        if self.spare.len() < MAX_SPARE {
            self.spare.push(connection);
        }
    }

    /// Check one more connection for eviction.
    #[inline]
    fn sweep(&mut self, now_ns: i64, output: &mut Output) {
        self.hand += 1;
        if self.hand >= self.slots.len() {
            self.hand = 0;
        }
        let Some(idle_states) = self.idle_states.get(self.hand) else {
            return;
        };
        let idle_ns = now_ns - idle_states.last_ns;
        let closed_ns = if idle_states.closed {
            CLOSED_RETENTION_NS
        } else {
            IDLE_RETENTION_NS
        };
        if idle_ns > self.retention_ns().min(closed_ns) {
            let early =
                idle_ns <= closed_ns && !idle_states.closed && self.slots[self.hand].is_some();
            self.evicted += u32::from(early);
            self.finish(self.hand as u32, output);
        } else if idle_ns > SHRINK_AFTER_NS && !idle_states.is_shrunk {
            self.idle_states[self.hand].is_shrunk = true;
            if let Some(connection) = &mut self.slots[self.hand] {
                connection.shrink(output);
            }
        }
    }

    /// Return how long an idle connection is kept.
    fn retention_ns(&self) -> i64 {
        let count = self.slots.len() - self.free.len();
        let used = (count * CONNECTION_BYTES + self.data_directions * DIRECTION_BYTES) as f64;
        let most = self.max_bytes as f64;
        let room = ROOM * most;
        if used < room {
            return IDLE_RETENTION_NS;
        }
        let left = ((most - used) / (most - room)).max(0.0);
        (PRESSURE_RETENTION_NS * left.powi(4)) as i64
    }

    /// End at most so many of those that are left; false when none is.
    pub fn finish_some(&mut self, most: u64, output: &mut Output) -> bool {
        let first = self.ended;
        self.ended = self.slots.len().min(first.saturating_add(most as usize));
        for slot in first..self.ended {
            self.finish(slot as u32, output);
        }
        self.ended < self.slots.len()
    }
}

#[inline]
fn key(segment: &Segment) -> Key {
    ordered(segment.source, segment.destination)
}

#[inline]
fn ordered(one: Endpoint, other: Endpoint) -> Key {
    if one <= other {
        (one, other)
    } else {
        (other, one)
    }
}

/// Hashes by multiplication, with keys of the process: a capture cannot be made to collide. No result depends on it.
#[derive(Clone, Copy, Debug)]
struct Seeded(u64, u64);

impl Seeded {
    fn new() -> Self {
        let random = RandomState::new();
        Self(random.hash_one(1_u8), random.hash_one(2_u8) | 1)
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded {
            state: self.0,
            key: self.1,
        }
    }
}

#[derive(Debug)]
struct Folded {
    state: u64,
    key: u64,
}

impl Folded {
    #[inline]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.key);
        self.state = (product as u64) ^ ((product >> 64) as u64).rotate_left(23) ^ self.key;
    }
}

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.state
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.fold(byte.into());
        }
    }

    #[inline]
    fn write_u16(&mut self, value: u16) {
        self.fold(value.into());
    }

    #[inline]
    fn write_u128(&mut self, value: u128) {
        self.fold(value as u64);
        self.fold((value >> 64) as u64);
    }
}
