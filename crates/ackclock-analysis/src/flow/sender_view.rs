//! The data of one direction, as its sender sees it: what is sent, acknowledged, lost and retransmitted.
//!
//! Acknowledgements wait here for as long as they take from the capture's point to the sender. So wherever a capture
//! was taken, the order of data and acknowledgements is the sender's, and its round trips are whole.

use std::collections::VecDeque;

use super::ack_responses::AckResponses;
use super::app_limited::SendEvent;
use super::path_change::RttStep;
use super::ranges::Ranges;
use super::rate_limit::LimitClassifier;
use super::rtt::{RttEstimator, RttStats, TimestampMatcher, TsvalClock, WindowedMin};
use super::scoreboard::{Scoreboard, SentRange, State, Transmission, MAX_RANGES};
use crate::output::{Output, NOT_KEPT};
use crate::series::Arrival;
use crate::tables::{Fate, RetransmitCause, Vantage};
use ack_tracer::AckTracer;
use copy_resolution::PendingResolution;
use dup_acks::DupAcks;
use ip_id::IpIdOrder;
use retransmissions::RecoveryState;
pub use segment::{Ack, Data};
pub use totals::Totals;
use upstream_loss::UpstreamLoss;

mod ack;
mod ack_alignment;
mod ack_path;
mod ack_tracer;
mod arrivals;
mod copy_resolution;
mod dup_acks;
pub mod ip_id;
mod nagle;
mod out_of_sequence;
mod retransmissions;
mod sampling;
mod segment;
mod totals;
mod upstream_loss;

/// A segment may be longer than most by the options that it does not have: timestamps, padded.
pub const MAX_OPTION_BYTES: u32 = 12;
/// Ranges that are kept of a flow of which no acknowledgement is seen.
const MAX_ONE_WAY_RANGES: usize = 1024;
/// Sequence numbers that a hole may span: what is beyond is no hole but another numbering.
pub const MAX_HOLE: u64 = 1 << 28;

/// The data of one direction.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // what was seen and what was not
pub struct SenderView {
    /// The flow's number, and its path's if that is kept.
    pub flow: u32,
    pub(super) path: Option<u16>,
    /// The first byte.
    pub base: u64,
    /// The byte after the last that was sent.
    pub snd_nxt: u64,
    /// The first byte that is not acknowledged.
    pub snd_una: u64,
    /// Its segments' size.
    pub mss: u32,
    /// The largest segment that its receiver takes.
    pub max_segment_bytes: u32,
    /// The payload of its last segment of new data.
    pub(super) last_bytes: u32,
    /// Bytes around the payload of its last segment, on Ethernet.
    pub(super) header_bytes: u32,
    /// Its place in the path's series.
    pub(super) last_arrival: u32,
    /// The capture began when the connection was open.
    pub is_mid_stream: bool,
    /// The RTT of the handshake, if that was captured.
    pub handshake_ns: Option<i64>,
    /// The vantage point.
    pub vantage: Vantage,
    /// The host that captured sends it.
    pub ours: bool,
    /// The delay of acknowledgements from the vantage point to the sender.
    pub sender_delay_ns: i64,
    /// The outstanding ranges.
    pub board: Scoreboard,
    pub(super) resolution: PendingResolution,
    pub(super) recovery: RecoveryState,
    pub(super) upstream_loss: UpstreamLoss,
    pub(super) pending: VecDeque<Ack>,
    /// Ranges sacked by captured acknowledgements, processed by the sender or not.
    pub(super) captured_sacks: Ranges,
    pub(super) retransmitted: VecDeque<(i64, u64)>,
    /// Counts.
    pub totals: Totals,
    /// Round-trip times at the sender; by timestamps; of the half towards the receiver and of that towards the sender.
    pub rtt: RttStats,
    /// By timestamps.
    pub rtt_timestamps: RttStats,
    /// From the vantage point to the receiver and back, by either.
    pub receiver_side_rtt: RttStats,
    /// From the vantage point to the sender and back.
    pub sender_side_rtt: RttStats,
    /// Times from acknowledgements to the data that follow them.
    pub ack_responses: AckResponses,
    /// The delay between sender and vantage point, which grows with a queue.
    pub queue_delay: WindowedMin,
    /// The clock of its TSvals.
    pub(super) tsval_clock: TsvalClock,
    /// The RTT estimator (RFC 6298).
    pub rtt_estimator: RttEstimator,
    /// The clock of the TSvals of acknowledgements, and how long those waited on their way to the vantage point and
    /// from there to the sender.
    pub(super) ack_clock: TsvalClock,
    pub(super) ack_waits: [RttStats; 2],
    /// A rise of the round-trip time that stays.
    pub rtt_step: RttStep,
    pub(super) own_timestamps: TimestampMatcher,
    pub(super) ack_timestamps: TimestampMatcher,
    /// The classifier of what limits the sender.
    pub limits: LimitClassifier,
    /// When the first data was captured.
    pub first_data_ns: i64,
    /// When the last data was captured.
    pub last_data_ns: i64,
    /// When the last acknowledgement of new data was captured; 0 without one.
    pub last_ack_ns: i64,
    pub(super) last_sent_ns: i64,
    pub(super) last_processed_ack_ns: i64,
    /// When the last processed acknowledgement was captured.
    pub(super) last_ack_captured_ns: i64,
    pub(super) empty_since_ns: Option<i64>,
    /// Since then the receiver's window was closed.
    pub(super) shut_while_empty: bool,
    /// The acknowledgement that emptied the pipe carried no data.
    pub(super) emptied_by_pure_ack: bool,
    pub(super) newest_delivered_ns: i64,
    pub(super) duplicate_acks: u32,
    /// The TSecr of the last acknowledgement, and when the cumulative acknowledgement last advanced.
    pub(super) last_echo: Option<u32>,
    pub(super) advanced_ns: i64,
    /// Without SACK: segments that came above what was missing, as duplicate acknowledgements tell.
    pub(super) queued: u32,
    pub(super) dup_acks: Option<Box<DupAcks>>,
    pub(super) edge: Option<u64>,
    /// The right edge before the last update, until data reaches it.
    pub(super) edge_before: Option<u64>,
    /// The receiver's window as it last was.
    pub window_bytes: Option<u64>,
    /// The same, or the largest that it can have been.
    pub max_window_bytes: Option<u64>,
    pub(super) sent_since_ack: u32,
    pub(super) had_room: bool,
    pub(super) latched_pipe_bytes: u64,
    next_sample_ns: i64,
    pub(super) has_acks: bool,
    pub(super) has_sack: bool,
    /// The cause of the last packet, if it was retransmitted.
    pub last_cause: Option<RetransmitCause>,
    /// The last packet left a hole behind.
    pub left_hole: bool,
    /// Takes samples, if they are wanted.
    pub(super) tracer: Option<Box<AckTracer>>,
}

impl SenderView {
    /// From its first segment on.
    pub fn new(flow: u32, path: Option<u16>, start: u64, mss: u32, now_ns: i64) -> Self {
        Self {
            flow,
            path,
            base: start,
            snd_nxt: start,
            snd_una: start,
            mss,
            max_segment_bytes: mss,
            last_bytes: 0,
            header_bytes: 0,
            last_arrival: NOT_KEPT,
            is_mid_stream: false,
            handshake_ns: None,
            vantage: Vantage::Unknown,
            ours: false,
            sender_delay_ns: 0,
            board: Scoreboard::default(),
            resolution: PendingResolution::default(),
            recovery: RecoveryState::default(),
            upstream_loss: UpstreamLoss::default(),
            pending: VecDeque::new(),
            captured_sacks: Ranges::default(),
            retransmitted: VecDeque::new(),
            totals: Totals::default(),
            rtt: RttStats::default(),
            rtt_timestamps: RttStats::default(),
            receiver_side_rtt: RttStats::default(),
            sender_side_rtt: RttStats::default(),
            ack_responses: AckResponses::default(),
            queue_delay: WindowedMin::default(),
            tsval_clock: TsvalClock::default(),
            rtt_estimator: RttEstimator::default(),
            ack_clock: TsvalClock::default(),
            ack_waits: [RttStats::default(); 2],
            rtt_step: RttStep::default(),
            own_timestamps: TimestampMatcher::default(),
            ack_timestamps: TimestampMatcher::default(),
            limits: LimitClassifier::for_flow(flow),
            first_data_ns: now_ns,
            last_data_ns: now_ns,
            last_ack_ns: 0,
            last_sent_ns: now_ns,
            last_processed_ack_ns: now_ns,
            last_ack_captured_ns: now_ns,
            empty_since_ns: None,
            shut_while_empty: false,
            emptied_by_pure_ack: false,
            newest_delivered_ns: i64::MIN,
            duplicate_acks: 0,
            last_echo: None,
            advanced_ns: now_ns,
            queued: 0,
            dup_acks: None,
            edge: None,
            edge_before: None,
            window_bytes: None,
            max_window_bytes: None,
            sent_since_ack: 0,
            had_room: false,
            latched_pipe_bytes: 0,
            next_sample_ns: i64::MIN,
            has_acks: false,
            has_sack: false,
            last_cause: None,
            left_hole: false,
            tracer: None,
        }
    }

    /// Segments of at most the MSS in so many bytes.
    #[inline]
    pub fn units(&self, bytes: u32) -> u32 {
        if bytes <= self.mss + MAX_OPTION_BYTES {
            1
        } else {
            bytes.div_ceil(self.mss)
        }
    }

    /// Count a packet of data, which may be of several segments.
    #[inline]
    pub fn begin_packet(&mut self, start: u64, payload_bytes: u32, now_ns: i64) {
        if self.sender_delay_ns > 0 && start == self.snd_nxt && now_ns > self.first_data_ns {
            self.limits.on_in_order(now_ns, payload_bytes);
        }
        self.last_cause = None;
        self.left_hole = false;
        let units = self.units(payload_bytes);
        self.totals.data_packets += 1;
        self.totals.data_segments += u64::from(units);
        self.totals.super_segments += u64::from(units > 1);
        self.totals.payload_bytes += u64::from(payload_bytes);
    }

    /// Process a segment of data, of at most the MSS and the options that it may lack.
    #[inline]
    pub fn data(&mut self, data: &Data, output: &mut Output) {
        self.header_bytes = data.wire_bytes().saturating_sub(data.bytes);
        self.on_timestamps(data);
        let hole = self.process_acks_before_hole(data, output);
        self.process_due_acks(data.now_ns, data.tsecr, output);
        let arrival = self.path.map_or(NOT_KEPT, |path| {
            output.arrival(Arrival {
                time_ns: data.now_ns,
                bytes: data.wire_bytes(),
                path,
                lost: false,
            })
        });
        self.explain_gap(data, hole, output);
        let cause = self.last_cause.take();
        let before = self.snd_nxt;
        let end = data.start + u64::from(data.bytes);
        self.on_send(data.start, end, data.now_ns);
        if data.start < before {
            self.old_data(data, end.min(before), arrival, output);
        }
        if end > before {
            self.new_data(data, data.start.max(before), end, arrival, output);
        }
        self.last_arrival = arrival;
        let is_retransmission = self.last_cause.is_some(); // what is late is no retransmission
        self.after_sending(data.now_ns, is_retransmission, output);
        self.last_cause = self.last_cause.or(cause);
    }

    #[inline]
    fn new_data(&mut self, data: &Data, start: u64, end: u64, arrival: u32, output: &mut Output) {
        if let Some(since_ns) = self.empty_since_ns.take() {
            if self.idle_ns(data.now_ns - since_ns, data) > self.limits.ack_clock_ns() {
                let delivered = self.arrived_bytes();
                let between_ns = (since_ns, data.now_ns);
                self.limits.on_idle(
                    between_ns,
                    self.shut_while_empty,
                    delivered,
                    self.rtt.min_ns,
                    &mut output.shared,
                );
            } else {
                self.detect_nagle(since_ns, data.bytes);
            }
        }
        self.last_bytes = data.bytes;
        self.limits.on_new_data(data.bytes, self.mss);
        let range = SentRange {
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
            not_captured: false,
            late: false,
            continued: start > data.start,
        };
        if start > self.snd_nxt {
            self.left_hole = true;
            self.open_hole(start, data.now_ns, range.tsval);
        }
        self.board.push(range);
        self.snd_nxt = end;
        let most = if self.has_acks {
            MAX_RANGES
        } else {
            MAX_ONE_WAY_RANGES
        };
        while let Some(oldest) = self.board.overflow(most) {
            self.snd_una = self.snd_una.max(oldest.end());
            self.abandon(oldest, output);
        }
    }

    fn after_sending(&mut self, now_ns: i64, is_retransmission: bool, output: &mut Output) {
        if self.vantage == Vantage::Unknown && self.has_acks {
            self.ack_responses
                .on_data(now_ns - self.last_ack_captured_ns);
        }
        self.last_sent_ns = now_ns;
        self.last_data_ns = now_ns;
        self.sent_since_ack += 1;
        let pipe = self.pipe_bytes();
        self.totals.pipe_max_bytes = self.totals.pipe_max_bytes.max(pipe);
        self.limits
            .on_send(now_ns, self.snd_nxt, pipe, is_retransmission);
        if self.sender_delay_ns > 0 && self.has_filled() {
            self.edge_before = None;
            self.limits.on_filled_late();
        }
        self.classify_ack_clocking(now_ns, is_retransmission);
        if !self.has_acks && self.totals.initial_window < u32::MAX {
            self.totals.initial_window = self.totals.data_segments.min(u64::from(u32::MAX)) as u32;
        }
        if now_ns >= self.next_sample_ns {
            self.sample(now_ns, output);
        }
    }

    /// Classify the last transmission as ACK-clocked or not.
    fn classify_ack_clocking(&mut self, now_ns: i64, is_retransmission: bool) {
        let mut sent = SendEvent {
            now_ns,
            next: self.snd_nxt,
            after_ns: now_ns - self.last_processed_ack_ns,
            first: self.sent_since_ack < 2,
            is_retransmission,
            in_recovery: self.recovery.within(self.snd_una),
        };
        if self.vantage == Vantage::Sender {
            self.limits.ack_clocked(&sent);
        } else if let Some((excess_ns, tick_ns)) = self
            .tsval_clock
            .excess_delay_ns()
            .filter(|_| self.sender_delay_ns > 0)
        {
            sent.after_ns =
                now_ns - excess_ns - self.last_ack_captured_ns - self.sender_side_rtt.min_ns;
            self.limits.ack_clocked_by_tsval(&sent, tick_ns);
        }
    }

    /// Return the room in bytes for which a sender waits: a full segment, or half of the largest window where that is
    /// less, as on a loopback device (RFC 9293 section 3.8.6.2.1).
    pub(super) fn sendable_bytes(&self) -> u64 {
        let mss = u64::from(self.mss);
        match self.totals.window_max_bytes {
            0 => mss,
            window_bytes => mss.min(window_bytes / 2),
        }
    }

    /// The receiver's window has no room for a segment more.
    pub(super) fn is_shut(&self) -> bool {
        let end = self.snd_nxt + self.sendable_bytes();
        self.edge.is_some_and(|edge| edge < end)
    }

    /// Something is missing that the sender knows of: what passes may be retransmissions.
    pub fn has_holes(&self) -> bool {
        self.board.sacked_bytes() > 0
            || self.duplicate_acks > 0
            || self.recovery.within(self.snd_una)
    }

    /// Acknowledgements of all that was sent have passed the vantage point.
    pub fn all_acknowledged(&self) -> bool {
        let on_ack = self.pending.back().map_or(self.snd_una, |ack| ack.position);
        on_ack >= self.snd_nxt
    }

    /// Return the bytes that reached the receiver, in order or not.
    pub(super) fn arrived_bytes(&self) -> u64 {
        self.totals.delivered_bytes + self.board.sacked_bytes()
    }

    /// RFC 6675's pipe; without SACK each duplicate acknowledgement stands for a segment that left.
    pub fn pipe_bytes(&self) -> u64 {
        let left = u64::from(self.duplicate_acks) * u64::from(self.mss);
        let in_flight = self.board.in_flight_bytes();
        if self.has_sack {
            in_flight
        } else {
            in_flight.saturating_sub(left)
        }
    }

    /// Another copy of a range.
    pub(super) fn record_retransmission(
        &mut self,
        index: usize,
        copy: Transmission,
        identification: u32,
        output: &mut Output,
    ) {
        let Some(start) = self.board.get(index).map(|range| range.start) else {
            return;
        };
        if let Some(given_up) = self.board.add_transmission(index, copy, identification) {
            if let Some(range) = self.board.get(index) {
                let outcome = self.copy_outcome(range, &given_up, Fate::Lost, 0.8);
                self.report(&outcome, output);
            }
        }
        if self.retransmitted.len() == MAX_RANGES {
            self.retransmitted.pop_front();
        }
        self.retransmitted.push_back((copy.sent_ns, start));
    }

    /// Finish the direction: report the remaining ranges as unresolved. Of acknowledgements whose responses would have
    /// come after the last packet, at `last_ns`, it is unknown what they let out, unless the sender had closed.
    pub fn finish(&mut self, last_ns: i64, is_closed: bool, output: &mut Output) {
        self.process_due_acks(last_ns, None, output);
        let limits = (!is_closed && !self.pending.is_empty()).then(|| self.limits.clone());
        self.process_due_acks(i64::MAX, None, output);
        if let Some(limits) = limits {
            self.limits = limits;
        }
        self.trace_sent();
        let (now_ns, delivered) = (self.last_processed_ack_ns, self.arrived_bytes());
        self.limits
            .end(now_ns, delivered, self.rtt.min_ns, &mut output.shared);
        let open: Vec<SentRange> = self.board.drain().collect();
        for range in open {
            self.abandon(range, output);
        }
        self.resolve_due(i64::MAX, output);
    }

    /// Free unused memory while nothing is outstanding.
    pub fn shrink(&mut self, output: &mut Output) {
        if let Some(tracer) = &mut self.tracer {
            tracer.on_idle(output);
        }
        self.board.shrink();
        self.captured_sacks.shrink();
        self.upstream_loss.shrink();
        self.own_timestamps.shrink();
        self.ack_timestamps.shrink();
        self.retransmitted = VecDeque::new();
        self.dup_acks = None;
        if self.pending.is_empty() {
            self.pending = VecDeque::new();
        }
    }
}
