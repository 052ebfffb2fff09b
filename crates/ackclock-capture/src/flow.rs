//! One connection: its handshake, its ends and its two directions.

use ackclock_core::tables::EventKind;

use crate::packet::{Checksum, Endpoint, Flags, Options as TcpOptions, Segment};
use crate::quiet::Quiet;
use crate::rows::{How, Rows};
use crate::tables::{Cause, Limit, Stall};
use half::Half;
use sending::{Ack, Data, Sending};
use silence::Silence;

mod capacity;
mod ending;
mod half;
mod ranges;
mod rounds;
mod rtt;
mod scoreboard;
mod sending;
mod silence;
mod vantage;
mod writing;

/// A SYN with the number of one before is another copy of it for so long (RFC 9293's 2 MSL).
const SAME_SYN_NS: i64 = 240_000_000_000;
/// How sure the class of a silence is: what came behind it decided; or that could not, or nothing came.
const DECIDED: f64 = 0.9;
const LIKELY: f64 = 0.6;

/// The window limits what is sent, for all that is known of it.
pub(crate) fn window_limits(limit: u8) -> bool {
    [
        Limit::Control,
        Limit::SlowStart,
        Limit::Bottleneck,
        Limit::SharedBottleneck,
    ]
    .iter()
    .any(|&one| one as u8 == limit)
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Client and server.
    pub ends: [Endpoint; 2],
    number: u32,
    start_ns: i64,
    /// When its last packet was seen.
    pub last_ns: i64,
    syn_ns: Option<i64>,
    synack_ns: Option<i64>,
    established_ns: Option<i64>,
    /// What is sent by the client, and by the server.
    halves: [Half; 2],
    reset: bool,
    /// The last silence, until it is told why it was.
    silence: Option<Box<Silence>>,
    /// Since when there was nothing but probes of a shut window and their answers.
    asked_since_ns: Option<i64>,
    bad_checksums: u32,
    stalls: u32,
    stalled_ns: i64,
    /// From the point to the client and back, and to the server and back; 0 if not known.
    to_ns: [i64; 2],
    /// What ended the handshake was not sent at once: the acknowledgement was lost, and data came later.
    opened_late: bool,
    /// The timestamps of what ended the handshake, and when it was sent.
    opening: Option<((u32, u32), i64)>,
}

impl Connection {
    /// Begins with a segment.
    pub fn new(number: u32, segment: &Segment, now_ns: i64) -> Self {
        let [client, server] = ends(segment);
        Self {
            ends: [client, server],
            number,
            start_ns: now_ns,
            last_ns: now_ns,
            syn_ns: None,
            synack_ns: None,
            established_ns: None,
            halves: [Half::default(), Half::default()],
            reset: false,
            silence: None,
            asked_since_ns: None,
            bad_checksums: 0,
            stalls: 0,
            stalled_ns: 0,
            to_ns: [0; 2],
            opened_late: false,
            opening: None,
        }
    }

    /// Begins with a segment, in the memory of one that is over.
    pub fn again(&mut self, number: u32, segment: &Segment, now_ns: i64) {
        let spare = self.halves.each_mut().map(|half| half.spare.take());
        *self = Self::new(number, segment, now_ns);
        for (half, spare) in self.halves.iter_mut().zip(spare) {
            half.spare = spare;
        }
    }

    /// Whether a segment with its addresses and ports begins another connection: a SYN with another number, or one that
    /// comes when no copy of the first can be under way any more.
    #[inline]
    pub fn is_over_for(&self, segment: &Segment, now_ns: i64) -> bool {
        let Flags(flags) = segment.flags;
        if flags & (Flags::SYN | Flags::ACK | Flags::RST) != Flags::SYN {
            return false;
        }
        let from = self.from(segment);
        match self.halves[from].initial {
            Some(initial) => initial != segment.sequence || now_ns - self.last_ns > SAME_SYN_NS,
            None => self.halves[from].packets > 0 || self.halves[1 - from].packets > 0,
        }
    }

    /// Whether a segment has its addresses and ports.
    #[inline]
    pub fn is_between(&self, segment: &Segment) -> bool {
        let [client, server] = self.ends;
        (segment.source == client && segment.destination == server)
            || (segment.source == server && segment.destination == client)
    }

    /// Nothing more is to be expected of it.
    pub fn closed(&self) -> bool {
        self.reset || self.halves.iter().all(|half| half.fin.is_some())
    }

    /// The server has answered before, and what the client has sent since is not answered.
    fn owes_an_answer(&self) -> bool {
        let last_ns = |half: &Half| half.sending.as_deref().map(|one| one.last_data_ns);
        let [client, server] = &self.halves;
        let both = last_ns(client).zip(last_ns(server));
        both.is_some_and(|(client_ns, server_ns)| client_ns > server_ns)
    }

    /// How many of its directions carry data, and so take more memory.
    #[inline]
    pub fn large(&self) -> usize {
        let [client, server] = &self.halves;
        usize::from(client.sending.is_some()) + usize::from(server.sending.is_some())
    }

    #[inline]
    fn from(&self, segment: &Segment) -> usize {
        usize::from(segment.source != self.ends[0])
    }

    /// Data are outstanding.
    #[inline]
    pub fn waits(&self) -> bool {
        self.halves.iter().any(|half| {
            half.sending
                .as_ref()
                .is_some_and(|sending| !sending.board.is_empty())
        })
    }

    /// Takes a segment in. `quiet`: the last silence of the whole capture.
    #[inline]
    pub fn take(&mut self, segment: &Segment, now_ns: i64, quiet: &Quiet, rows: &mut Rows) {
        let from = self.from(segment);
        if now_ns - self.last_ns > silence::LEAST_NS || self.asked_since_ns.is_some() {
            self.fell_silent(segment, from, now_ns, quiet, rows);
        }
        self.bad_checksums += u32::from(segment.checksum == Checksum::Bad);
        let Flags(flags) = segment.flags;
        self.halves[from].count(segment, now_ns);
        if flags & Flags::SYN != 0 {
            self.syn(segment, from, now_ns, rows);
        } else if self.established_ns.is_none() && flags & Flags::ACK != 0 {
            self.opened(segment, from, now_ns, rows);
        }
        if flags & Flags::ACK != 0 {
            self.acknowledge(segment, from, now_ns, rows);
        }
        if segment.payload_bytes > 0 {
            self.send(segment, from, now_ns, rows);
        }
        if flags & (Flags::FIN | Flags::RST) != 0 {
            self.close(segment, from);
        }
        if self.silence.is_some() && self.asked_since_ns.is_none() {
            self.look_at_silence(segment, from, now_ns, rows);
        }
        self.last_ns = now_ns;
    }

    fn flow(&self, from: usize) -> u32 {
        self.number.wrapping_mul(2) + from as u32
    }

    fn syn(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Rows) {
        let answers = segment.flags.has(Flags::ACK);
        let flow = self.flow(0);
        let half = &mut self.halves[from];
        if half.initial == Some(segment.sequence) {
            half.syn_retransmissions += 1;
            let (kind, cause) = if answers {
                (EventKind::SynAckRetransmission, Cause::SynAck)
            } else {
                (EventKind::SynRetransmission, Cause::Syn)
            };
            let how = How {
                class: cause as u8,
                ..How::default()
            };
            rows.event(now_ns, flow, kind, f64::NAN, how);
            return;
        }
        half.open(segment);
        if answers {
            self.synack_ns = Some(now_ns);
        } else {
            self.syn_ns = Some(now_ns);
        }
    }

    /// The client's first acknowledgement behind the answer to its SYN.
    fn opened(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Rows) {
        let Some(synack_ns) = self.synack_ns.filter(|_| from == 0) else {
            return;
        };
        self.established_ns = Some(now_ns);
        let first = self.halves[0]
            .initial
            .map(|initial| initial.wrapping_add(1));
        self.opened_late = first.is_some_and(|first| first != segment.sequence);
        let once = |half: &Half| half.syn_retransmissions == 0;
        if self.halves.iter().all(once) {
            if let Some(syn_ns) = self.syn_ns {
                self.to_ns = [(now_ns - synack_ns).max(1), (synack_ns - syn_ns).max(1)];
                let timestamps = segment.options.timestamps.filter(|_| !self.opened_late);
                self.opening = timestamps.map(|known| (known, synack_ns));
            }
        }
        rows.event(
            now_ns,
            self.flow(0),
            EventKind::Established,
            f64::NAN,
            How::default(),
        );
    }

    #[inline]
    fn acknowledge(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Rows) {
        let shift = self.window_shift(from);
        let half = &mut self.halves[1 - from];
        let position = half.unwrap(segment.acknowledgement);
        let outstanding = half.next.saturating_sub(position);
        let Some(sending) = &mut half.sending else {
            return;
        };
        let window_bytes = shift.map(|shift| u64::from(segment.window) << shift);
        let mut ack = Ack {
            seen_ns: now_ns,
            position,
            sack: [(0, 0); 4],
            blocks: 0,
            twice: None,
            window_bytes,
            timestamps: segment.options.timestamps,
            pure: segment.payload_bytes == 0 && !segment.flags.has(Flags::FIN),
            marked: segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN),
        };
        if segment.options.sack_blocks > 0 {
            blocks(&segment.options, position, &mut ack);
        }
        sending.ack(&ack, rows);
        if shift.is_none() {
            self.halves[from].infer_scale(segment.window, outstanding);
        }
    }

    /// By how much the windows in this direction's headers are shifted, if that is known.
    #[inline]
    fn window_shift(&self, from: usize) -> Option<u8> {
        let [client, server] = &self.halves;
        let half = &self.halves[from];
        match (client.initial, server.initial) {
            (Some(_), Some(_)) => match (client.window_scale, server.window_scale) {
                (Some(_), Some(_)) => half.window_scale,
                _ => Some(0),
            },
            _ => half.inferred_scale,
        }
    }

    #[inline]
    fn send(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Rows) {
        let start = self.halves[from].place(segment);
        if self.halves[from].sending.is_none() {
            self.begin_sending(segment, from, start, now_ns, rows);
        }
        let ours = segment.outbound == Some(true) || segment.checksum == Checksum::Offloaded;
        let to_ns = self.to_ns;
        let half = &mut self.halves[from];
        let Some(sending) = &mut half.sending else {
            return;
        };
        half.size.take(segment.payload_bytes);
        sending.mss = half.size.mss();
        vantage::look(sending, from, to_ns, ours);
        let packets = sending.units(segment.payload_bytes);
        let hole = sending.missing_before(start);
        let place = half
            .identities
            .take(segment.identification, packets, hole, || sending.misses());
        sending.data(
            &Data {
                now_ns,
                start,
                bytes: segment.payload_bytes,
                tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
                tsecr: segment
                    .options
                    .timestamps
                    .filter(|_| segment.flags.has(Flags::ACK))
                    .map(|(_, tsecr)| tsecr),
                identification: segment.identification.filter(|&number| number != 0),
                packet_bytes: segment.packet_bytes,
                place,
            },
            rows,
        );
        half.next = half.next.max(sending.next);
    }

    fn begin_sending(
        &mut self,
        segment: &Segment,
        from: usize,
        start: u64,
        now_ns: i64,
        rows: &mut Rows,
    ) {
        let path = rows.path(segment.source.address, segment.destination.address);
        let flow = self.flow(from);
        let handshake_ns = self.handshake_ns();
        let peer = self.halves[1 - from].mss;
        let half = &mut self.halves[from];
        half.size.limit(peer, segment.options.timestamps.is_some());
        let first = half.first.unwrap_or(start);
        let mut sending = Sending::new(flow, path, first, half.size.mss(), now_ns).tapped(rows);
        sending.handshake_ns = handshake_ns;
        if let (Some(tap), Some((timestamps, sent_ns)), 0) = (&mut sending.tap, self.opening, from)
        {
            tap.opens(timestamps, sent_ns);
        }
        half.sending = Some(match half.spare.take() {
            Some(mut spare) => {
                *spare = sending;
                spare
            }
            None => Box::new(sending),
        });
    }

    fn close(&mut self, segment: &Segment, from: usize) {
        if segment.flags.has(Flags::RST) {
            self.reset = true;
        } else {
            let half = &mut self.halves[from];
            let end = half.unwrap(segment.sequence) + u64::from(segment.payload_bytes);
            half.fin = Some(end);
        }
    }

    /// There was a gap before a packet, or nothing went on.
    #[cold]
    fn fell_silent(
        &mut self,
        segment: &Segment,
        from: usize,
        now_ns: i64,
        quiet: &Quiet,
        rows: &mut Rows,
    ) {
        let asked_since_ns = self.asked_since_ns.take();
        if asked_since_ns.is_none() {
            self.end_silence(rows);
        }
        let begin_ns = asked_since_ns.unwrap_or(self.last_ns);
        let silence = silence::of(self, segment, from, (begin_ns, now_ns), quiet);
        self.silence = silence.map(Box::new);
        self.asked_since_ns = silence::asks(self, segment, from).then_some(begin_ns);
    }

    #[cold]
    fn look_at_silence(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Rows) {
        let Some(mut silence) = self.silence.take() else {
            return;
        };
        match silence.look(self, segment, from, now_ns) {
            Some(class) => {
                let sure = if silence.is_guess(class) {
                    LIKELY
                } else {
                    DECIDED
                };
                self.stalled(&silence, class, sure, rows);
            }
            None => self.silence = Some(silence),
        }
    }

    /// Nothing more tells of the last silence.
    fn end_silence(&mut self, rows: &mut Rows) {
        if let Some(silence) = self.silence.take() {
            self.stalled(&silence, silence.likely(), LIKELY, rows);
        }
    }

    fn stalled(&mut self, silence: &Silence, class: Stall, confidence: f64, rows: &mut Rows) {
        let flow = self.flow(silence.sender);
        self.stalls += 1;
        self.stalled_ns += silence.gap_ns;
        let how = How {
            class: class as u8,
            duration_s: silence.gap_ns as f64 * 1e-9,
            confidence,
        };
        let begin_ns = silence.end_ns - silence.gap_ns;
        rows.event(begin_ns, flow, EventKind::Stall, f64::NAN, how);
    }

    /// Gives back memory while nothing is under way.
    pub fn shrink(&mut self, rows: &mut Rows) {
        for half in &mut self.halves {
            if let Some(sending) = &mut half.sending {
                sending.shrink(rows);
            }
        }
    }
}

/// Client and server of the connection that a segment is the first of. Without a SYN, the server is the one with the
/// lower port.
fn ends(segment: &Segment) -> [Endpoint; 2] {
    let (source, destination) = (segment.source, segment.destination);
    let Flags(flags) = segment.flags;
    let from_server = match flags & (Flags::SYN | Flags::ACK) {
        Flags::SYN => false,
        both if both == Flags::SYN | Flags::ACK => true,
        _ => source.port < destination.port,
    };
    if from_server {
        [destination, source]
    } else {
        [source, destination]
    }
}

/// The SACK blocks, the first apart if it is a DSACK (RFC 2883 section 4).
fn blocks(options: &TcpOptions, position: u64, ack: &mut Ack) {
    let unwrap = |number: u32| half::near(position, number);
    let all = options.sack();
    for (index, &(start, end)) in all.iter().enumerate() {
        let (start, end) = (unwrap(start), unwrap(end));
        if start >= end {
            continue;
        }
        let inside = index == 0
            && all
                .get(1)
                .is_some_and(|&(low, high)| unwrap(low) <= start && end <= unwrap(high));
        if index == 0 && (end <= position || inside) {
            ack.twice = Some((start, end));
        } else {
            ack.sack[usize::from(ack.blocks)] = (start, end);
            ack.blocks += 1;
        }
    }
}
