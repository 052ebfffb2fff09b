//! Stalls of a connection, and why (Mihály et al.; TAPO: *Demystifying and Mitigating TCP Stalls at the Server Side*,
//! CoNEXT 2015, whose tree the transport's classes follow).
//!
//! What a stall was is told by the packets that end it, and the first is not always enough: an acknowledgement that was
//! sent before it and lay somewhere meanwhile tells that a host stood still, and the clock of the data's sender, in its
//! next packet, whether that host's machine did. So a stall stays open until something is decided by what comes.

use super::direction::Direction;
use super::handshake::skips_data;
use super::sender_view::SenderView;
use super::{Connection, MAX_RETRANSMISSION_GAP_NS};
use crate::capture_gap::CaptureGap;
use crate::output::{EventDetail, Output};
use crate::tables::{Stall, Vantage};
use ackclock_core::tables::EventKind;
use ackclock_pcap::packet::{Flags, Segment};

mod tree;

/// No shorter gap is a stall.
pub const MIN_STALL_NS: i64 = 200_000_000;
/// Nor one of fewer smoothed RTTs.
const MIN_STALL_RTTS: i64 = 4;
/// A handshake is silent if it takes longer without a SYN that is retransmitted: the first timeout (RFC 6298 section
/// 2).
const SYN_TIMEOUT_NS: i64 = 1_000_000_000;
/// Minimum share of the stall that a gap of the whole capture covers, and the maximum time (or an RTT) from the gap's
/// end to the stall's.
const CAPTURE_SHARE: f64 = 0.5;
const MAX_RESUME_NS: i64 = 50_000_000;
/// The confidence of a stall's class if the packets behind it decided, and if they did not.
const DECIDED: f64 = 0.9;
const LIKELY: f64 = 0.6;

/// The evidence so far of the cause of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// No evidence so far.
    Pending,
    /// The first packet behind the stall was sent before it, or early in it.
    HeldUp,
    /// The acknowledgement came late, if not later than a receiver may delay it.
    DelayedAck,
    /// New data came though old data should have been retransmitted by then: lost and retransmitted later, or their
    /// acknowledgement was not captured.
    Overdue,
    /// Data are missing: lost by the network, or by the capture.
    Hole,
    /// This was retransmitted, maybe by a host that woke up.
    Retransmission(Stall),
    /// The sender's clock stood still, or its first packet was held up on its way.
    ClockStopped,
}

/// A stall that is over.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // what was the case and what was not
pub struct OpenStall {
    /// Its duration.
    pub gap_ns: i64,
    /// When it was over.
    pub end_ns: i64,
    /// The direction whose data was awaited.
    pub sender: usize,
    /// The smoothed RTT before it, or the handshake's.
    rtt_ns: i64,
    outstanding_bytes: u64,
    snd_nxt: u64,
    window_shut: bool,
    sacked: bool,
    head_retransmitted: bool,
    /// The oldest outstanding segment is so old that its acknowledgement may be missing in the capture.
    is_overdue: bool,
    capture_stalled: bool,
    /// The last segment before it was full: there was more to send (RFC 9293 section 3.7.4).
    ended_full: bool,
    /// Others stopped with it, and none of them for want of data.
    others_stopped: bool,
    handshake: bool,
    /// The packet behind it proves that data passed which were not captured.
    skips_data: bool,
    /// The number of waits for delayed acknowledgements before it (Nagle's algorithm).
    nagle_waits: u32,
    clocks: [Option<(u32, i64)>; 2],
    expected: Option<u32>,
    /// The same where it is unknown whether the sender counts its packets.
    after_handshake: Option<u32>,
    evidence: Evidence,
}

impl Connection {
    /// Process a gap before a packet.
    #[cold]
    pub(super) fn on_gap(
        &mut self,
        segment: &Segment,
        from: usize,
        now_ns: i64,
        gap: &CaptureGap,
        rows: &mut Output,
    ) {
        let zero_window_since_ns = self.zero_window_since_ns.take();
        if zero_window_since_ns.is_none() {
            self.close_stall(rows);
        }
        let begin_ns = zero_window_since_ns.unwrap_or(self.last_ns);
        let open_stall = detect(self, segment, from, (begin_ns, now_ns), gap);
        self.open_stall = open_stall.map(Box::new);
        self.zero_window_since_ns = is_zero_window_probe(self, segment, from).then_some(begin_ns);
    }

    #[cold]
    pub(super) fn update_stall(
        &mut self,
        segment: &Segment,
        from: usize,
        now_ns: i64,
        rows: &mut Output,
    ) {
        let Some(mut open_stall) = self.open_stall.take() else {
            return;
        };
        match open_stall.on_packet(self, segment, from, now_ns) {
            Some(class) => {
                let sure = if open_stall.is_low_confidence(class) {
                    LIKELY
                } else {
                    DECIDED
                };
                self.report_stall(&open_stall, class, sure, rows);
            }
            None => self.open_stall = Some(open_stall),
        }
    }

    /// Report the open stall with its most likely class.
    pub(super) fn close_stall(&mut self, rows: &mut Output) {
        if let Some(open_stall) = self.open_stall.take() {
            self.report_stall(&open_stall, open_stall.likely(), LIKELY, rows);
        }
    }

    fn report_stall(
        &mut self,
        open_stall: &OpenStall,
        class: Stall,
        confidence: f64,
        rows: &mut Output,
    ) {
        let flow = self.flow(open_stall.sender);
        self.stalls += 1;
        self.stalled_ns += open_stall.gap_ns;
        let detail = EventDetail {
            class: class as u8,
            duration_s: open_stall.gap_ns as f64 * 1e-9,
            confidence,
        };
        let begin_ns = open_stall.end_ns - open_stall.gap_ns;
        rows.event(begin_ns, flow, EventKind::Stall, f64::NAN, detail);
    }
}

/// Return true if a packet is a zero-window probe or an ACK that keeps the window closed (RFC 9293 section 3.8.6.1). It
/// does not end a stall: a receiver that does not read is one stall, however often it is probed.
fn is_zero_window_probe(connection: &Connection, segment: &Segment, from: usize) -> bool {
    if segment.payload_bytes > 0 || segment.flags.has(Flags::FIN) {
        return false;
    }
    let [client, server] = &connection.directions;
    let (own, other) = if from == 0 {
        (client, server)
    } else {
        (server, client)
    };
    let is_probe = own.sender_view.as_deref().is_some_and(|sender_view| {
        is_shut(sender_view) && own.unwrap(segment.sequence) < sender_view.snd_nxt
    });
    let is_still_closed = || {
        let receiver_state = connection
            .window_bytes(segment, from)
            .zip(other.sender_view.as_deref());
        receiver_state.is_some_and(|(window_bytes, sender_view)| {
            is_shut(sender_view) && window_bytes < sender_view.sendable_bytes()
        })
    };
    is_probe || is_still_closed()
}

/// The last window that passed the vantage point has no room for a segment.
pub fn is_shut(sender_view: &SenderView) -> bool {
    let pending = sender_view.pending.back().map(|ack| ack.max_window_bytes);
    let window = pending.or(sender_view.max_window_bytes);
    window.is_some_and(|window| window < sender_view.sendable_bytes())
}

/// A gap before a packet, if it is a stall, which began then.
fn detect(
    connection: &Connection,
    segment: &Segment,
    from: usize,
    (begin_ns, now_ns): (i64, i64),
    gap: &CaptureGap,
) -> Option<OpenStall> {
    let gap_ns = now_ns - begin_ns;
    let directions = &connection.directions;
    let left = |direction: usize| outstanding_bytes(&directions[direction]);
    let sender = match (left(0) > 0, left(1) > 0) {
        (true, false) => 0,
        (false, true) => 1,
        // A window that opens lets the other end go on.
        _ if segment.payload_bytes == 0
            && directions[1 - from]
                .sender_view
                .as_deref()
                .is_some_and(is_shut) =>
        {
            1 - from
        }
        // Nothing is outstanding: what comes was awaited, maybe the answer to a request.
        _ if directions[from].sender_view.is_some() || segment.payload_bytes > 0 => from,
        _ => 1 - from,
    };
    let sender_view = directions[sender].sender_view.as_deref();
    let srtt_ns = sender_view.map_or(0, |sender_view| sender_view.rtt_estimator.srtt_ns);
    let rtt_ns = match srtt_ns {
        0 => connection.handshake.rtt_ns().unwrap_or(0),
        _ => srtt_ns,
    };
    let outstanding_bytes = left(sender);
    let over = segment.flags.has(Flags::FIN) || segment.flags.has(Flags::RST);
    let idle = over && outstanding_bytes == 0 && segment.payload_bytes == 0;
    let handshake = is_opening(connection, segment);
    if gap_ns <= MIN_STALL_RTTS * rtt_ns
        || connection.closed()
        || idle && !connection.has_pending_request()
        || handshake && !is_slow(connection, segment, from, gap_ns)
        || !handshake && directions.iter().any(|direction| direction.packets == 0)
    {
        return None;
    }
    let capture_stalled = gap.overlap_ns(begin_ns, now_ns) as f64 >= CAPTURE_SHARE * gap_ns as f64
        && now_ns - gap.end_ns <= srtt_ns.max(MAX_RESUME_NS);
    let is_at_sender =
        sender_view.is_some_and(|sender_view| sender_view.vantage == Vantage::Sender);
    let stopped = if is_at_sender {
        2 * gap.waiting >= gap.active
    } else {
        sender_view.is_some_and(|sender_view| super::is_window_limit(sender_view.limits.latest))
    };
    let oldest = sender_view.and_then(|sender_view| sender_view.board.front());
    Some(OpenStall {
        gap_ns,
        end_ns: now_ns,
        sender,
        rtt_ns,
        outstanding_bytes,
        snd_nxt: sender_view.map_or(directions[sender].next, |sender_view| sender_view.snd_nxt),
        window_shut: sender_view.is_some_and(is_shut),
        sacked: sender_view.is_some_and(|sender_view| sender_view.board.sacked_bytes() > 0),
        head_retransmitted: oldest.is_some_and(|first| !first.has_one_transmission()),
        is_overdue: outstanding_bytes > 0
            && oldest.is_some_and(|first| now_ns - first.last_ns > MAX_RETRANSMISSION_GAP_NS),
        capture_stalled,
        ended_full: sender_view
            .is_some_and(|sender_view| sender_view.last_bytes >= sender_view.mss),
        others_stopped: capture_stalled && gap.active > 1 && stopped,
        handshake,
        skips_data: skips_data(segment, &directions[from], &directions[1 - from]),
        nagle_waits: sender_view.map_or(0, |sender_view| sender_view.totals.nagle_waits),
        clocks: [0, 1].map(|direction| directions[direction].tsval_span.map(|[_, last]| last)),
        expected: directions[sender].ip_id.next_expected(),
        after_handshake: directions[sender].ip_id.next_after_handshake(),
        evidence: Evidence::Pending,
    })
}

/// Return true while the handshake is incomplete, as far as captured before this segment. A segment other than a SYN
/// follows a SYN-ACK, captured or not.
fn is_opening(connection: &Connection, segment: &Segment) -> bool {
    let is_opening_segment = segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST);
    let is_established = connection.handshake.established_ns.is_some();
    connection.handshake.syn_ns.is_some()
        && !is_established
        && (is_opening_segment || connection.handshake.synack_ns.is_some())
}

/// A handshake takes longer than its round trip: something is retransmitted, or a timer would have expired. A SYN that
/// was sent once and is answered took that long on its way.
fn is_slow(connection: &Connection, segment: &Segment, from: usize, gap_ns: i64) -> bool {
    let is_retransmitted = connection.directions[from].initial == Some(segment.sequence);
    let is_answer = segment.flags.has(Flags::SYN)
        && segment.flags.has(Flags::ACK)
        && connection.directions[1 - from].syn_retransmissions == 0;
    is_retransmitted || gap_ns >= SYN_TIMEOUT_NS && !is_answer
}

/// Return the bytes that are sent and not acknowledged, as far as captured.
fn outstanding_bytes(direction: &Direction) -> u64 {
    direction.sender_view.as_deref().map_or(0, |sender_view| {
        let on_ack = sender_view.pending.back().map_or(0, |ack| ack.position);
        sender_view
            .snd_nxt
            .saturating_sub(sender_view.snd_una.max(on_ack))
    })
}
