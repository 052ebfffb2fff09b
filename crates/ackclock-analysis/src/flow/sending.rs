//! The data of one direction, as its sender sees it: what is sent, acknowledged, lost and repaired.
//!
//! Acknowledgements wait here for as long as they take from the capture's point to the sender. So wherever a capture was
//! taken, the order of data and acknowledgements is the sender's, and its round trips are whole.

use std::collections::VecDeque;

use super::ranges::Ranges;
use super::rounds::Rounds;
use super::rtt::{Clock, Echoes, Far, Series, Smoothed};
use super::scoreboard::{Copied, Scoreboard, State, Stretch, MOST};
use super::writing::Sent;
use crate::rows::{Rows, Told, NOT_KEPT};
use crate::series::Arrival;
use crate::tables::{Cause, Fate, Vantage};
use duplicates::Duplicates;
use identities::Place;
use repairs::Repairs;
use settling::Settling;
use tap::Tap;
use unseen::Unseen;

mod aligning;
mod arrivals;
mod duplicates;
mod hearing;
pub mod identities;
mod noting;
mod repairs;
mod settling;
mod tap;
mod unseen;

/// Stretches that are kept of a flow of which no acknowledgement is seen.
const MOST_ONE_WAY: usize = 1024;
/// Header and check sequence of an Ethernet frame.
const ETHERNET_BYTES: u32 = 18;
/// Sequence numbers that a hole may span: what is beyond is no hole but another numbering.
pub const WIDEST_HOLE: u64 = 1 << 28;

/// A data segment, with its sequence number unwrapped.
#[derive(Clone, Copy, Debug)]
pub struct Data {
    /// When it was seen.
    pub now_ns: i64,
    /// Its first byte.
    pub start: u64,
    /// Its payload.
    pub bytes: u32,
    /// Its TSval, if it has timestamps.
    pub tsval: Option<u32>,
    /// The acknowledgement that it echoes.
    pub tsecr: Option<u32>,
    /// Its IP identification, if that is not 0.
    pub identification: Option<u32>,
    /// The bytes of its IP packet.
    pub packet_bytes: u32,
    /// Where it belongs among its end's packets.
    pub place: Place,
}

impl Data {
    /// What it takes of an Ethernet as so many packets, whose headers an offload has taken for one.
    fn wire_bytes(&self, packets: u32) -> u32 {
        let header_bytes = self.packet_bytes.saturating_sub(self.bytes) + ETHERNET_BYTES;
        self.bytes
            .saturating_add(header_bytes.saturating_mul(packets))
    }
}

/// What an acknowledgement says, unwrapped.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it was seen.
    pub seen_ns: i64,
    /// The next byte that is expected.
    pub position: u64,
    /// SACK blocks, but for a DSACK.
    pub sack: [(u64, u64); 4],
    /// How many of them.
    pub blocks: u8,
    /// What arrived twice (RFC 2883).
    pub twice: Option<(u64, u64)>,
    /// The receiver's window, scaled.
    pub window_bytes: Option<u64>,
    /// Its TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// It carries no data.
    pub pure: bool,
    /// It reports congestion marks (RFC 3168's ECE).
    pub marked: bool,
}

/// Counts of a direction, in segments where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Totals {
    pub data_packets: u64,
    pub data_segments: u64,
    pub super_segments: u64,
    pub payload_bytes: u64,
    pub delivered_bytes: u64,
    pub fates: [u64; 8],
    pub fate_bytes: [u64; 8],
    pub causes: [u64; 8],
    pub timeouts: u64,
    pub recoveries: u64,
    pub duplicate_acks: u64,
    pub initial_window: u32,
    pub window_max_bytes: u64,
    pub pipe_max_bytes: u64,
}

/// The data of one direction.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // what was seen and what was not
pub struct Sending {
    /// The flow's number, and its path's if that is kept.
    pub flow: u32,
    pub(super) path: Option<u16>,
    /// The first byte.
    pub base: u64,
    /// The byte after the last that was sent.
    pub next: u64,
    /// The first byte that is not acknowledged.
    pub una: u64,
    /// Its segments' size.
    pub mss: u32,
    /// The RTT of the handshake, if that was captured.
    pub handshake_ns: Option<i64>,
    /// Where the capture was taken.
    pub vantage: Vantage,
    /// The host that captured sends it.
    pub ours: bool,
    /// How long acknowledgements take from the capture's point to the sender.
    pub lead_ns: i64,
    /// What is outstanding.
    pub board: Scoreboard,
    pub(super) settling: Settling,
    pub(super) repairs: Repairs,
    pub(super) unseen: Unseen,
    pub(super) pending: VecDeque<Ack>,
    /// What acknowledgements tell selectively that have passed the point, heard by the sender or not.
    pub(super) passed: Ranges,
    pub(super) resent: VecDeque<(i64, u64)>,
    /// Counts.
    pub totals: Totals,
    /// Round-trip times at the sender; by timestamps; of the half towards the receiver and of that towards the sender.
    pub rtt: Series,
    /// By timestamps.
    pub rtt_timestamps: Series,
    /// From the point to the receiver and back, by either.
    pub receiver_half: Series,
    /// From the point to the sender and back.
    pub sender_half: Series,
    /// Whether the sender is further away than the handshake said.
    pub far: Far,
    /// Of its timestamps.
    pub(super) clock: Clock,
    /// Smoothed.
    pub smoothed: Smoothed,
    pub(super) own_echoes: Echoes,
    pub(super) ack_echoes: Echoes,
    /// What holds the sender back.
    pub rounds: Rounds,
    /// First and last data, last acknowledgement of new data.
    pub first_data_ns: i64,
    /// The last data.
    pub last_data_ns: i64,
    /// The last acknowledgement of new data; 0 without one.
    pub last_ack_ns: i64,
    pub(super) last_sent_ns: i64,
    pub(super) last_heard_ns: i64,
    /// When that passed the point.
    pub(super) heard_seen_ns: i64,
    pub(super) empty_since_ns: Option<i64>,
    pub(super) newest_delivered_ns: i64,
    pub(super) duplicate_acks: u32,
    /// What the last acknowledgement echoed, and when the cumulative one last advanced.
    pub(super) last_echo: Option<u32>,
    pub(super) advanced_ns: i64,
    /// Without SACK: segments that came above what was missing, as duplicate acknowledgements tell.
    pub(super) queued: u32,
    pub(super) duplicates: Option<Box<Duplicates>>,
    pub(super) edge: Option<u64>,
    /// What it was before the last acknowledgement that moved it, until data has come up to there.
    pub(super) edge_before: Option<u64>,
    /// The receiver's window as it last was.
    pub window_bytes: Option<u64>,
    pub(super) sent_since_ack: u32,
    pub(super) had_room: bool,
    pub(super) latched_pipe_bytes: u64,
    next_sample_ns: i64,
    pub(super) acks_seen: bool,
    pub(super) sack_seen: bool,
    /// The cause of the last packet, if it was sent again.
    pub last_cause: Option<Cause>,
    /// The last packet left a hole behind.
    pub left_hole: bool,
    /// Takes steps, if they are wanted.
    pub(super) tap: Option<Box<Tap>>,
}

impl Sending {
    /// From its first segment on.
    pub fn new(flow: u32, path: Option<u16>, start: u64, mss: u32, now_ns: i64) -> Self {
        Self {
            flow,
            path,
            base: start,
            next: start,
            una: start,
            mss,
            handshake_ns: None,
            vantage: Vantage::Unknown,
            ours: false,
            lead_ns: 0,
            board: Scoreboard::default(),
            settling: Settling::default(),
            repairs: Repairs::default(),
            unseen: Unseen::default(),
            pending: VecDeque::new(),
            passed: Ranges::default(),
            resent: VecDeque::new(),
            totals: Totals::default(),
            rtt: Series::default(),
            rtt_timestamps: Series::default(),
            receiver_half: Series::default(),
            sender_half: Series::default(),
            far: Far::default(),
            clock: Clock::default(),
            smoothed: Smoothed::default(),
            own_echoes: Echoes::default(),
            ack_echoes: Echoes::default(),
            rounds: Rounds::of(flow),
            first_data_ns: now_ns,
            last_data_ns: now_ns,
            last_ack_ns: 0,
            last_sent_ns: now_ns,
            last_heard_ns: now_ns,
            heard_seen_ns: now_ns,
            empty_since_ns: None,
            newest_delivered_ns: i64::MIN,
            duplicate_acks: 0,
            last_echo: None,
            advanced_ns: now_ns,
            queued: 0,
            duplicates: None,
            edge: None,
            edge_before: None,
            window_bytes: None,
            sent_since_ack: 0,
            had_room: false,
            latched_pipe_bytes: 0,
            next_sample_ns: i64::MIN,
            acks_seen: false,
            sack_seen: false,
            last_cause: None,
            left_hole: false,
            tap: None,
        }
    }

    /// Segments of at most the MSS in so many bytes.
    #[inline]
    pub fn units(&self, bytes: u32) -> u32 {
        if bytes <= self.mss {
            1
        } else {
            bytes.div_ceil(self.mss)
        }
    }

    /// Data was seen.
    #[inline]
    pub fn data(&mut self, data: &Data, rows: &mut Rows) {
        self.last_cause = None;
        self.left_hole = false;
        let units = self.units(data.bytes);
        self.totals.data_packets += 1;
        self.totals.data_segments += u64::from(units);
        self.totals.super_segments += u64::from(units > 1);
        self.totals.payload_bytes += u64::from(data.bytes);
        self.look_at_timestamps(data);
        let hole = self.hear_up_to_a_hole(data, rows);
        self.hear(data.now_ns, data.tsecr, rows);
        let arrival = self.path.map_or(NOT_KEPT, |path| {
            rows.arrival(Arrival {
                time_ns: data.now_ns,
                bytes: data.wire_bytes(units),
                path,
                lost: false,
            })
        });
        self.missing(data, hole, rows);
        let before = self.next;
        let end = data.start + u64::from(data.bytes);
        self.sends(data.start, end, data.now_ns);
        if data.start < before {
            self.old_data(data, end.min(before), arrival, rows);
        }
        if self.lead_ns > 0 && data.start == before && data.now_ns > self.first_data_ns {
            self.rounds.follows(data.now_ns, data.bytes);
        }
        if end > before {
            self.new_data(data, data.start.max(before), end, arrival, rows);
        }
        let again = self.last_cause.is_some(); // what is late is no repair
        self.after_sending(data.now_ns, again, rows);
    }

    #[inline]
    fn new_data(&mut self, data: &Data, start: u64, end: u64, arrival: u32, rows: &mut Rows) {
        if let Some(since_ns) = self.empty_since_ns.take() {
            if self.idle_ns(data.now_ns - since_ns, data) > self.rounds.prompt_ns() {
                let delivered = self.arrived_bytes();
                let between_ns = (since_ns, data.now_ns);
                self.rounds
                    .idle(between_ns, delivered, self.rtt.min_ns, &mut rows.beside);
            }
        }
        let stretch = Stretch {
            start,
            first_ns: data.now_ns,
            last_ns: data.now_ns,
            sacked_ns: 0,
            lost_ns: 0,
            copies: None,
            bytes: (end - start) as u32,
            tsval: data.tsval.unwrap_or(0),
            arrival,
            identification: data.identification.unwrap_or(0),
            state: State::InFlight,
            unseen: false,
            late: false,
        };
        if start > self.next {
            self.left_hole = true;
            self.open_hole(start, data.now_ns, stretch.tsval);
        }
        self.board.push(stretch);
        self.next = end;
        let most = if self.acks_seen { MOST } else { MOST_ONE_WAY };
        while let Some(oldest) = self.board.overflow(most) {
            self.una = self.una.max(oldest.end());
            self.give_up(oldest, rows);
        }
    }

    fn after_sending(&mut self, now_ns: i64, again: bool, rows: &mut Rows) {
        self.last_sent_ns = now_ns;
        self.last_data_ns = now_ns;
        self.sent_since_ack += 1;
        let pipe = self.pipe_bytes();
        self.totals.pipe_max_bytes = self.totals.pipe_max_bytes.max(pipe);
        self.rounds.sent(now_ns, self.next, pipe, again);
        if self.lead_ns > 0 && self.has_filled() {
            self.edge_before = None;
            self.rounds.filled();
        }
        self.look_at_prompting(now_ns, again);
        if !self.acks_seen && self.totals.initial_window < u32::MAX {
            self.totals.initial_window = self.totals.data_segments.min(u64::from(u32::MAX)) as u32;
        }
        if now_ns >= self.next_sample_ns {
            self.sample(now_ns, rows);
        }
    }

    /// Whether an acknowledgement has let out what was sent just now.
    fn look_at_prompting(&mut self, now_ns: i64, again: bool) {
        let mut sent = Sent {
            now_ns,
            next: self.next,
            after_ns: now_ns - self.last_heard_ns,
            first: self.sent_since_ack < 2,
            again,
            repairing: self.repairs.within(self.una),
        };
        if self.vantage == Vantage::Sender {
            self.rounds.prompted(&sent);
        } else if let Some((late_ns, tick_ns)) = self.clock.late_ns().filter(|_| self.lead_ns > 0) {
            sent.after_ns = now_ns - late_ns - self.heard_seen_ns - self.sender_half.min_ns;
            self.rounds.prompted_by_clock(&sent, tick_ns);
        }
    }

    /// The receiver's window has no room for a segment more.
    pub(super) fn is_shut(&self) -> bool {
        let end = self.next + u64::from(self.mss);
        self.edge.is_some_and(|edge| edge < end)
    }

    /// Something is missing that the sender knows of: what passes may be repairs.
    pub fn misses(&self) -> bool {
        self.board.sacked_bytes() > 0 || self.duplicate_acks > 0 || self.repairs.within(self.una)
    }

    /// What has reached the receiver, in order or not.
    pub(super) fn arrived_bytes(&self) -> u64 {
        self.totals.delivered_bytes + self.board.sacked_bytes()
    }

    /// RFC 6675's pipe; without SACK each duplicate acknowledgement stands for a segment that left.
    pub fn pipe_bytes(&self) -> u64 {
        let left = u64::from(self.duplicate_acks) * u64::from(self.mss);
        let in_flight = self.board.in_flight_bytes();
        if self.sack_seen {
            in_flight
        } else {
            in_flight.saturating_sub(left)
        }
    }

    /// A copy's fate.
    pub(super) fn told_copy(
        &self,
        stretch: &Stretch,
        copy: &Copied,
        fate: Fate,
        confidence: f64,
    ) -> Told {
        Told {
            time_ns: copy.sent_ns,
            seen: copy.seen,
            cause: copy.cause,
            ..self.told(stretch, fate, confidence)
        }
    }

    pub(super) fn told(&self, stretch: &Stretch, fate: Fate, confidence: f64) -> Told {
        let offset = stretch.start.saturating_sub(self.base);
        Told {
            flow: self.flow,
            time_ns: stretch.first_ns,
            offset,
            bytes: stretch.bytes,
            units: self.units(stretch.bytes),
            number: offset / u64::from(self.mss.max(1)),
            seen: !stretch.unseen,
            fate,
            cause: Cause::Unknown,
            confidence,
        }
    }

    /// Another copy of a stretch.
    pub(super) fn send_again(
        &mut self,
        index: usize,
        copy: Copied,
        identification: u32,
        rows: &mut Rows,
    ) {
        let Some(start) = self.board.get(index).map(|stretch| stretch.start) else {
            return;
        };
        if let Some(given_up) = self.board.sent_again(index, copy, identification) {
            if let Some(stretch) = self.board.get(index) {
                let told = self.told_copy(stretch, &given_up, Fate::Lost, 0.8);
                self.tell(&told, rows);
            }
        }
        if self.resent.len() == MOST {
            self.resent.pop_front();
        }
        self.resent.push_back((copy.sent_ns, start));
    }

    /// Nothing more comes: what is open is told as such.
    pub fn finish(&mut self, rows: &mut Rows) {
        self.hear(i64::MAX, None, rows);
        self.tap_sent();
        let (now_ns, delivered) = (self.last_heard_ns, self.arrived_bytes());
        self.rounds
            .end(now_ns, delivered, self.rtt.min_ns, &mut rows.beside);
        let open: Vec<Stretch> = self.board.drain().collect();
        for stretch in open {
            self.give_up(stretch, rows);
        }
        self.settle(i64::MAX, rows);
    }

    /// Gives back memory while nothing is outstanding.
    pub fn shrink(&mut self, rows: &mut Rows) {
        if let Some(tap) = &mut self.tap {
            tap.rest(rows);
        }
        self.board.shrink();
        self.passed.shrink();
        self.unseen.shrink();
        self.own_echoes.shrink();
        self.ack_echoes.shrink();
        self.resent = VecDeque::new();
        self.duplicates = None;
        if self.pending.is_empty() {
            self.pending = VecDeque::new();
        }
    }
}
