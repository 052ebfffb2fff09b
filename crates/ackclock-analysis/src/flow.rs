//! One connection: its handshake, its ends and its two directions.

use ackclock_core::tables::EventKind;

use crate::capture_gap::CaptureGap;
use crate::output::{EventDetail, Output};
use crate::tables::{Limit, RetransmitCause};
use ackclock_pcap::packet::{Checksum, Endpoint, Flags, Options as TcpOptions, Segment};
use direction::Direction;
use handshake::Handshake;
use identity::ends;
use keep_alive::KeepAlives;
use rate_limit::MAX_SHIFT;
pub use sender_view::SenderView;
use sender_view::{Ack, Data};
use stall::OpenStall;

mod ack_responses;
mod app_limited;
mod capacity;
mod direction;
mod ecn;
mod ecn_feedback;
mod flow_record;
mod handshake;
mod identity;
mod keep_alive;
mod path_change;
mod ranges;
mod rate_limit;
mod rtt;
mod scoreboard;
mod sender_view;
mod stall;
mod vantage;
mod zero_window;

/// The longest gap in which a retransmission can be missing. In a longer one the host may have numbered packets of other
/// connections.
const MAX_RETRANSMISSION_GAP_NS: i64 = 2_000_000_000;

/// The window limits what is sent, for all that is known of it.
pub(crate) fn is_window_limit(limit: u8) -> bool {
    [
        Limit::Cwnd,
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
    handshake: Handshake,
    /// The client's direction and the server's.
    directions: [Direction; 2],
    reset: bool,
    /// The last stall, until it is classified.
    open_stall: Option<Box<OpenStall>>,
    /// Since when there was nothing but probes of a shut window and their answers.
    zero_window_since_ns: Option<i64>,
    bad_checksums: u32,
    stalls: u32,
    stalled_ns: i64,
    keep_alives: KeepAlives,
}

impl Connection {
    /// Begin with a segment.
    pub fn new(number: u32, segment: &Segment, now_ns: i64) -> Self {
        let [client, server] = ends(segment);
        Self {
            ends: [client, server],
            number,
            start_ns: now_ns,
            last_ns: now_ns,
            handshake: Handshake::default(),
            directions: [Direction::default(), Direction::default()],
            reset: false,
            open_stall: None,
            zero_window_since_ns: None,
            bad_checksums: 0,
            stalls: 0,
            stalled_ns: 0,
            keep_alives: KeepAlives::default(),
        }
    }

    /// Begin with a segment, in the memory of one that is over.
    pub fn reset(&mut self, number: u32, segment: &Segment, now_ns: i64) {
        let spare = self
            .directions
            .each_mut()
            .map(|direction| direction.spare.take());
        *self = Self::new(number, segment, now_ns);
        for (direction, spare) in self.directions.iter_mut().zip(spare) {
            direction.spare = spare;
        }
    }

    /// The connection is closed.
    pub fn closed(&self) -> bool {
        self.reset
            || self
                .directions
                .iter()
                .all(|direction| direction.fin.is_some())
    }

    /// The server has answered before, and what the client has sent since is not answered.
    fn has_pending_request(&self) -> bool {
        let last_ns =
            |direction: &Direction| direction.sender_view.as_deref().map(|one| one.last_data_ns);
        let [client, server] = &self.directions;
        let both = last_ns(client).zip(last_ns(server));
        both.is_some_and(|(client_ns, server_ns)| client_ns > server_ns)
    }

    /// Return the number of directions with data, which take more memory.
    #[inline]
    pub fn data_directions(&self) -> usize {
        let [client, server] = &self.directions;
        usize::from(client.sender_view.is_some()) + usize::from(server.sender_view.is_some())
    }

    #[inline]
    fn from(&self, segment: &Segment) -> usize {
        usize::from(segment.source != self.ends[0])
    }

    /// Data are outstanding, and the connection is open.
    #[inline]
    pub fn waits(&self) -> bool {
        let is_outstanding = self.directions.iter().any(|direction| {
            direction
                .sender_view
                .as_ref()
                .is_some_and(|sender_view| !sender_view.board.is_empty())
        });
        is_outstanding && !self.closed()
    }

    /// Take a segment in. `gap`: the last stall of the whole capture.
    #[inline]
    pub fn take(&mut self, segment: &Segment, now_ns: i64, gap: &CaptureGap, rows: &mut Output) {
        let without_data;
        let from = self.from(segment);
        let is_keep_alive = segment.payload_bytes <= 1 && self.is_keep_alive(segment, from);
        self.keep_alives.on_packet(from, is_keep_alive);
        let segment = if is_keep_alive {
            without_data = Segment {
                payload_bytes: 0,
                ..*segment
            };
            &without_data
        } else {
            segment
        };

        if now_ns - self.last_ns > stall::MIN_STALL_NS || self.zero_window_since_ns.is_some() {
            self.on_gap(segment, from, now_ns, gap, rows);
        }
        self.bad_checksums += u32::from(segment.checksum == Checksum::Bad);
        let Flags(flags) = segment.flags;
        self.directions[from].count(segment, now_ns);
        if flags & Flags::ACE != 0 || self.directions[from].ecn_feedback.is_active() {
            self.on_ecn_feedback(segment, from);
        }
        if flags & Flags::SYN != 0 {
            self.on_syn(segment, from, now_ns, rows);
        } else if self.handshake.established_ns.is_none() && flags & Flags::ACK != 0 {
            self.on_established(segment, from, now_ns, rows);
        }
        if flags & Flags::ACK != 0 {
            self.on_ack(segment, from, now_ns, rows);
        }
        if segment.payload_bytes > 0 {
            self.on_data(segment, from, now_ns, rows);
        }
        if flags & (Flags::FIN | Flags::RST) != 0 {
            self.on_close(segment, from);
        }
        if self.open_stall.is_some() && self.zero_window_since_ns.is_none() {
            self.update_stall(segment, from, now_ns, rows);
        }
        self.last_ns = now_ns;
    }

    /// The number of the client's flow (0) or the server's (1).
    pub fn flow(&self, from: usize) -> u32 {
        self.number.wrapping_mul(2) + from as u32
    }

    fn on_syn(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Output) {
        let is_synack = segment.flags.has(Flags::ACK);
        let flow = self.flow(0);
        let direction = &mut self.directions[from];
        direction.ecn_feedback.on_syn(segment.flags);
        if direction.initial == Some(segment.sequence) {
            direction.syn_retransmissions += 1;
            let (kind, cause) = if is_synack {
                (EventKind::SynAckRetransmission, RetransmitCause::SynAck)
            } else {
                (EventKind::SynRetransmission, RetransmitCause::Syn)
            };
            let detail = EventDetail {
                class: cause as u8,
                ..EventDetail::default()
            };
            rows.event(now_ns, flow, kind, f64::NAN, detail);
            return;
        }
        direction.open(segment);
        if !is_synack {
            self.handshake.on_syn(segment, now_ns);
            return;
        }
        let initial = self.directions[0].initial.filter(|_| from == 1);
        if self.handshake.on_synack(segment, initial, now_ns) {
            // What the server did not take is sent again, and was never lost (RFC 7413 section 4.2.1).
            self.directions[0].forget_data();
        }
    }

    /// The client's first acknowledgement behind the answer to its SYN.
    fn on_established(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Output) {
        let handshake = &mut self.handshake;
        if from != 0 || !handshake.on_client_segment(segment, &self.directions, now_ns) {
            return;
        }
        rows.event(
            now_ns,
            self.flow(0),
            EventKind::Established,
            f64::NAN,
            EventDetail::default(),
        );
    }

    #[inline]
    fn on_ack(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Output) {
        let window_bytes = self.window_bytes(segment, from);
        let marks = if segment.flags.has(Flags::SYN) {
            0
        } else {
            self.reported_marks(segment, from)
        };
        let direction = &mut self.directions[1 - from];
        let position = direction.unwrap(segment.acknowledgement);
        let Some(sender_view) = &mut direction.sender_view else {
            // One before the SYN is answered is of another connection (RFC 5961 section 4).
            let is_opening = direction.initial.is_some() && self.handshake.established_ns.is_none();
            if !segment.flags.has(Flags::RST) && !is_opening {
                direction.on_unseen_ack(segment);
            }
            return;
        };
        let max_window_bytes = window_bytes.unwrap_or(u64::from(segment.window) << MAX_SHIFT);
        let mut ack = Ack {
            captured_ns: now_ns,
            position,
            sack: [(0, 0); 4],
            blocks: 0,
            dsack: None,
            window_bytes,
            max_window_bytes,
            timestamps: segment.options.timestamps,
            pure: segment.payload_bytes == 0 && !segment.flags.has(Flags::FIN),
            marks,
        };
        if segment.options.sack_blocks > 0 {
            blocks(&segment.options, position, &mut ack);
        }
        sender_view.on_captured_ack(&ack, rows);
    }

    /// The receive window that a segment advertises; None without the handshake that has its scale, unless it is closed.
    #[inline]
    fn window_bytes(&self, segment: &Segment, from: usize) -> Option<u64> {
        match segment.window {
            0 => Some(0),
            window => self
                .window_shift(from)
                .map(|shift| u64::from(window) << shift),
        }
    }

    /// By how much the windows in this direction's headers are shifted, if that is known.
    #[inline]
    fn window_shift(&self, from: usize) -> Option<u8> {
        let [client, server] = &self.directions;
        let direction = &self.directions[from];
        match (client.initial, server.initial) {
            (Some(_), Some(_)) => match (client.window_scale, server.window_scale) {
                (Some(_), Some(_)) => direction.window_scale,
                _ if client.is_syn_cut || server.is_syn_cut => None,
                _ => Some(0),
            },
            _ => None,
        }
    }

    #[inline]
    fn on_data(&mut self, segment: &Segment, from: usize, now_ns: i64, rows: &mut Output) {
        let start = self.directions[from].position_of(segment);
        if self.directions[from].sender_view.is_none() {
            self.begin_sending(segment, from, start, now_ns, rows);
        }
        let ours = segment.outbound == Some(true) || segment.checksum == Checksum::Offloaded;
        let side_rtts_ns = self.handshake.side_rtts_ns;
        let direction = &mut self.directions[from];
        let Some(sender_view) = &mut direction.sender_view else {
            return;
        };
        direction.size.take(segment.payload_bytes);
        sender_view.mss = direction.size.mss();
        sender_view.max_segment_bytes = direction.size.limit_bytes();
        vantage::classify(sender_view, from, side_rtts_ns, ours);
        let packets = sender_view.units(segment.payload_bytes);
        let hole = sender_view.missing_before(start);
        let is_old = start < sender_view.snd_nxt;
        let mut ip_id_order =
            direction
                .ip_id
                .on_data(segment.identification, packets, hole, is_old, || {
                    sender_view.has_holes()
                });
        let idle_ns = now_ns - sender_view.last_data_ns;
        if hole == 0 && sender_view.all_acknowledged() && idle_ns > MAX_RETRANSMISSION_GAP_NS {
            ip_id_order = ip_id_order.without_gap();
        }
        sender_view.begin_packet(start, segment.payload_bytes, now_ns);
        let mss = sender_view.mss;
        let header_bytes = segment.packet_bytes.saturating_sub(segment.payload_bytes);
        let mut data = Data {
            now_ns,
            start,
            bytes: 0,
            tsval: segment.options.timestamps.map(|(tsval, _)| tsval),
            tsecr: segment
                .options
                .timestamps
                .filter(|_| segment.flags.has(Flags::ACK))
                .map(|(_, tsecr)| tsecr),
            identification: segment.identification.filter(|&number| number != 0),
            packet_bytes: 0,
            ip_id_order,
        };
        // Offloads merge segments (TSO, GRO); the network had them one by one.
        let mut left = segment.payload_bytes;
        let segment_bytes = if packets == 1 { left } else { mss };
        while left > 0 {
            data.bytes = left.min(segment_bytes);
            data.packet_bytes = header_bytes + data.bytes;
            sender_view.data(&data, rows);
            left -= data.bytes;
            data.start += u64::from(data.bytes);
            data.identification = data
                .identification
                .map(|number| number.wrapping_add(1) & 0xffff);
            data.ip_id_order = data.ip_id_order.without_gap();
        }
        direction.next = direction.next.max(sender_view.snd_nxt);
    }

    fn begin_sending(
        &mut self,
        segment: &Segment,
        from: usize,
        start: u64,
        now_ns: i64,
        rows: &mut Output,
    ) {
        let path = rows.path(segment.source.address, segment.destination.address);
        let flow = self.flow(from);
        let handshake_ns = self.handshake.rtt_ns();
        let peer = self.directions[1 - from].mss;
        let direction = &mut self.directions[from];
        direction
            .size
            .limit(peer, segment.options.timestamps.is_some());
        let first = direction.first.unwrap_or(start);
        let mut sender_view =
            SenderView::new(flow, path, first, direction.size.mss(), now_ns).with_tracer(rows);
        sender_view.is_mid_stream = direction.initial.is_none();
        sender_view.handshake_ns = handshake_ns;
        if let (Some(tracer), Some((timestamps, sent_ns)), 0) =
            (&mut sender_view.tracer, self.handshake.last_ack, from)
        {
            tracer.on_handshake(timestamps, sent_ns);
        }
        direction.sender_view = Some(match direction.spare.take() {
            Some(mut spare) => {
                *spare = sender_view;
                spare
            }
            None => Box::new(sender_view),
        });
    }

    fn on_close(&mut self, segment: &Segment, from: usize) {
        if segment.flags.has(Flags::RST) {
            self.reset = true;
        } else {
            let direction = &mut self.directions[from];
            let end = direction.unwrap(segment.sequence) + u64::from(segment.payload_bytes);
            direction.fin = Some(end);
        }
    }

    /// Free unused memory while nothing is in flight.
    pub fn shrink(&mut self, rows: &mut Output) {
        for direction in &mut self.directions {
            if let Some(sender_view) = &mut direction.sender_view {
                sender_view.shrink(rows);
            }
        }
    }
}

/// The SACK blocks, the first apart if it is a DSACK (RFC 2883 section 4).
fn blocks(options: &TcpOptions, position: u64, ack: &mut Ack) {
    let unwrap = |number: u32| direction::unwrap_near(position, number);
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
            ack.dsack = Some((start, end));
        } else {
            ack.sack[usize::from(ack.blocks)] = (start, end);
            ack.blocks += 1;
        }
    }
}
