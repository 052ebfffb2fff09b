//! The receiving side of a TCP connection: puts segments in order and acknowledges.
//!
//! Sources: RFC 9293 (connection), RFC 5681 section 4.2 and RFC 1122 section 4.2.3.2 (delayed ACKs), RFC 2018
//! section 4 (which SACK blocks, in which order), RFC 2883 (duplicates), RFC 7323 section 4.3 (which timestamp
//! is echoed). `quick` delayed ACKs do as Linux does: the first ACKs of a connection, those of segments that open
//! the receive window and those after a duplicate segment or a long gap are not delayed, SACKs are compressed, and the
//! window opens as Linux opens it. Where the plan's timers have ticks, so has the delay.
//!
//! ```text
//!               SYN                   an ACK or data
//!   Listen ───────────▶ SynReceived ────────────────┐
//!     │                                             ▼         FIN, all received           ACK
//!     │ opens it itself                        Established ────────────────────▶ LastAck ─────▶ Closed
//!     ▼                                             ▲
//!   SynSent ──────────▶ Requested ──────────────────┘
//!             SYN/ACK               data
//! ```
//!
//! A slow reader leaves data in the buffer, which closes the window. It reads all before it closes; meanwhile the FIN is
//! acknowledged, and the state is `CloseWait`:
//!
//! ```text
//!                FIN, all received              all read
//!   Established ───────────────────▶ CloseWait ──────────▶ LastAck
//! ```

use ackclock_core::{jiffies, Time};
use ackclock_plan::{DelayedAck, FlowPlan};

use crate::options::{self, Blocks};
use crate::packet::{Flags, Kind, Packet};
use crate::workload::Workload;

mod client;
mod compression;
mod echo;
mod handshake;
mod leap;
mod misbehaviour;
mod quick;
pub(crate) mod ranges;
mod reading;
mod short_segments;
mod window;

pub use client::Client;
use compression::Compression;
use echo::{Echo, EcnAction};
use quick::Quick;
use ranges::Ranges;
use reading::Reader;
use short_segments::ShortSegments;
use window::Window;

/// Reply of the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// `SynAck`, `Ack` or `FinAck`.
    pub kind: Kind,
    /// Next segment expected.
    pub ack: u64,
    /// Advertised window, in segments from there.
    pub window: u64,
    /// Timestamp to echo.
    pub echo: Time,
    /// Size on the wire, headers and options included.
    pub wire_bytes: u32,
    /// SACK blocks, if any.
    pub blocks: Option<Blocks>,
    /// Flags, its own ECN bits among them.
    pub flags: Flags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listen,
    /// It opens the connection.
    SynSent,
    SynReceived,
    /// The request is sent, and no data have arrived.
    Requested,
    Established,
    /// The sender's FIN was acknowledged, and the application has not read all.
    CloseWait,
    /// The sender's FIN was acknowledged with ours, which awaits its acknowledgement.
    LastAck,
    Closed,
}

/// The receiving side of a connection.
pub struct Receiver {
    state: State,
    next: u64,
    /// Segments that have arrived above `next`.
    ranges: Ranges,
    block_limit: usize,
    sack: bool,
    workload: Workload,
    policy: DelayedAck,
    delay: Time,
    /// The clock's tick, by which the delay is measured; zero if it is exact.
    tick: Time,
    /// Time since which an ACK has been delayed.
    ack_delayed_since: Time,
    echo_of_marks: Echo,
    /// True if the segment being received is to be acknowledged immediately.
    ack_now: bool,
    /// An ACK that goes out before the one of the segment just received.
    earlier: Option<Box<Reply>>,
    /// Segments received since the last ACK.
    pending: u32,
    /// Number of them with which `quick` delayed ACKs wait no longer.
    max_pending: u32,
    quick: Quick,
    window: Window,
    compression: Compression,
    /// Timestamp of the earliest segment not yet acknowledged.
    echo: Time,
    last_arrival: Time,
    /// Time of the delayed ACK, or of a SYN/ACK or FIN to retransmit.
    timer: Time,
    /// The application, if it reads slowly.
    reader: Option<Box<Reader>>,
    /// Time of its next read.
    reads_at: Time,
    /// Earlier of the timer and the next read.
    deadline: Time,
    /// Wait for the answer to a SYN/ACK or FIN, doubled from `initial_rto` up to `max_rto` (RFC 6298).
    control_rto: Time,
    initial_rto: Time,
    max_rto: Time,
    /// Bytes of an ACK without SACK blocks.
    ack_bytes: u32,
    /// Bytes of a SYN or SYN/ACK.
    syn_ack_bytes: u32,
    /// Packets that arrived, of all kinds.
    pub received_packets: u64,
    /// Packets sent, of all kinds.
    pub sent_packets: u64,
    /// Segments that arrived more than once.
    pub duplicates: u64,
    /// Lengths of the segments, if the sender's application writes messages.
    short_segments: Option<Box<ShortSegments>>,
    /// The client's side, if this end opens the connection.
    client: Option<Box<Client>>,
    /// Segments that leaps have skipped; `next` lacks them.
    skipped_segments: u64,
    /// Its misbehaviour, if it has any.
    misbehaviour: Option<Box<misbehaviour::State>>,
}

impl Receiver {
    /// The receiver of a flow.
    pub fn new(plan: &FlowPlan) -> Receiver {
        Receiver {
            state: State::Listen,
            next: 0,
            ranges: Ranges::default(),
            block_limit: options::max_blocks(&plan.tcp),
            sack: plan.tcp.sack,
            workload: Workload::new(plan),
            policy: plan.tcp.delayed_ack,
            delay: plan.tcp.delayed_ack_timeout,
            tick: plan.tcp.timer_tick,
            ack_delayed_since: Time::ZERO,
            echo_of_marks: Echo::new(plan.tcp.ecn),
            ack_now: false,
            earlier: None,
            pending: 0,
            max_pending: 2,
            quick: Quick::new(),
            window: Window::new(&plan.tcp),
            compression: Compression::new(
                plan.tcp.sack && plan.tcp.delayed_ack == DelayedAck::Quick,
            ),
            echo: Time::ZERO,
            last_arrival: Time::ZERO,
            timer: Time::NEVER,
            reader: plan.slow_reader.map(Reader::new).map(Box::new),
            reads_at: Time::NEVER,
            deadline: Time::NEVER,
            control_rto: plan.tcp.initial_rto,
            initial_rto: plan.tcp.initial_rto,
            max_rto: plan.tcp.max_rto,
            ack_bytes: plan.tcp.segment_header_bytes(),
            syn_ack_bytes: options::syn_header_bytes(&plan.tcp),
            received_packets: 0,
            sent_packets: 0,
            duplicates: 0,
            skipped_segments: 0,
            short_segments: plan.writes.map(|_| Box::new(ShortSegments::new(&plan.tcp))),
            client: plan
                .request_bytes
                .map(|bytes| Box::new(Client::new(bytes, &plan.tcp))),
            misbehaviour: plan
                .misbehaviour
                .map(misbehaviour::State::new)
                .map(Box::new),
        }
    }

    /// Time of the receiver's next timer (delayed ACK, SYN/ACK or FIN to retransmit, or a slow reader's next read).
    #[inline]
    pub fn wake(&self) -> Time {
        self.deadline
    }

    /// Set the timer, not that of the next read.
    #[inline]
    fn set_timer(&mut self, due: Time) {
        self.timer = due;
        self.deadline = due.min(self.reads_at);
    }

    /// True if the connection is closed on this side.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    /// Payload bytes received in order, without the segments whose loss was concealed.
    pub fn delivered_bytes(&self) -> u64 {
        if let Some(short) = &self.short_segments {
            return short.bytes_before(self.next);
        }
        let concealed = self.concealed_segments() * self.workload.mss_bytes();
        let before = self.workload.payload_before(self.next);
        before.saturating_sub(concealed) + self.skipped_segments * self.workload.mss_bytes()
    }

    /// Process a packet from the sender.
    #[inline(always)]
    pub fn on_packet(&mut self, packet: &Packet, now: Time) -> Option<Reply> {
        self.received_packets += 1;
        let reply = self.handle(packet, now);
        if self.client.is_some() {
            self.note_end(now);
        }
        reply
    }

    #[inline(always)]
    fn handle(&mut self, packet: &Packet, now: Time) -> Option<Reply> {
        match packet.kind {
            Kind::Data => self.on_segment(packet, now),
            Kind::DataFin | Kind::Fin => {
                self.workload.on_end(&packet.for_record());
                self.on_segment(packet, now)
            }
            Kind::Syn => self.on_syn(packet.timestamp, now),
            Kind::ServerSynAck => self.on_server_syn_ack(&packet.for_record(), now),
            Kind::WindowProbe => Some(self.acknowledge_rarely()),
            _ => {
                self.on_last_ack(now);
                None
            }
        }
    }

    /// Take the ACK that precedes the one that [`Receiver::on_packet`] has just returned, if there is one.
    #[inline]
    pub fn take_earlier(&mut self) -> Option<Reply> {
        self.earlier.take().map(|reply| *reply)
    }

    /// Handle the timer of [`Receiver::wake`].
    pub fn on_timer(&mut self, now: Time) -> Option<Reply> {
        if self.reads_at <= now {
            return self.on_read(now);
        }
        match self.state {
            State::SynReceived => Some(self.repeat(Kind::SynAck, now)),
            State::SynSent => self.repeat_syn(now),
            State::Requested => self.repeat_request(now),
            State::LastAck => Some(self.repeat(Kind::FinAck, now)),
            _ => {
                let due = jiffies::timer_expiry(self.tick, self.ack_delayed_since, self.delay);
                if due > now && !self.compression.holds() {
                    self.set_timer(due);
                    return None;
                }
                self.set_timer(Time::NEVER);
                let held = self.compression.release();
                (self.pending > 0 || held).then(|| self.acknowledge_rarely())
            }
        }
    }

    // ---- data ----

    #[inline(always)]
    fn on_segment(&mut self, packet: &Packet, now: Time) -> Option<Reply> {
        if matches!(self.state, State::SynReceived | State::Requested) {
            self.establish(now);
        }
        if self.echo_of_marks.is_on() {
            self.process_ecn(&self.without_mark(packet));
        }
        if self.short_segments.is_some() {
            self.weigh_segment(&packet.for_record());
        }
        let in_order = packet.sequence == self.next && self.ranges.is_empty();
        if !in_order && !self.conceal_gap(packet.sequence) {
            return self.on_disorder(packet.sequence, packet.timestamp, now);
        }
        self.next += 1;
        self.open_window();
        self.window.on_read(self.next, packet.timestamp, now);
        if self.reader.is_some() {
            self.read(now);
        }
        if self.misbehaves() {
            self.get_ahead();
        }
        if self.pending == 0 {
            self.echo = packet.timestamp;
        }
        self.pending += 1;
        if self.next >= self.workload.end {
            return Some(self.on_end(now));
        }
        let last_arrival = std::mem::replace(&mut self.last_arrival, now);
        self.acknowledge_or_wait(last_arrival, now)
    }

    /// Open the window for a new segment.
    #[inline]
    fn open_window(&mut self) {
        if self.window.opens() && !self.is_tiny() {
            self.quick.on_opened();
        }
    }

    /// Process a segment's ECN bits; acknowledges earlier segments if the bits have changed.
    #[inline]
    fn process_ecn(&mut self, packet: &Packet) {
        let asked = self.echo_of_marks.action_for(packet);
        let quick = self.policy == DelayedAck::Quick;
        self.ack_now = match asked {
            EcnAction::None | EcnAction::TwoQuick => false,
            EcnAction::OneQuick => quick,
            EcnAction::Ack | EcnAction::AckBefore => true,
        };
        if asked == EcnAction::TwoQuick {
            self.quick.ensure(2);
        }
        if asked == EcnAction::AckBefore && self.pending > 0 {
            self.earlier = Some(Box::new(self.acknowledge_rarely()));
        }
        self.echo_of_marks.take(packet);
    }

    /// RFC 5681 section 4.2: at least every second segment, and within the timer.
    #[inline(always)]
    fn acknowledge_or_wait(&mut self, last_arrival: Time, now: Time) -> Option<Reply> {
        let at_once = self.ack_now
            || match self.policy {
                DelayedAck::Off => true,
                DelayedAck::On => self.pending >= 2,
                DelayedAck::Quick => {
                    // Linux: after an idle time longer than the sender's RTO, its window is small.
                    if now.since(last_arrival) > QUICK_AFTER && last_arrival > Time::ZERO {
                        self.quick.ensure(2);
                    }
                    self.pending >= self.max_pending || self.quick.is_due()
                }
            };
        if at_once {
            return Some(self.acknowledge_in_order());
        }
        if self.timer.is_never() {
            self.ack_delayed_since = now;
            self.set_timer(now + self.delay);
        }
        None
    }

    /// Acknowledge what has arrived, with SACK blocks for the segments above a hole, that of a duplicate first (DSACK).
    fn acknowledge(&mut self, duplicate: Option<u64>) -> Reply {
        let reply = self.acknowledge_in_order();
        if !self.sack || (duplicate.is_none() && self.ranges.is_empty()) {
            return reply;
        }
        let blocks = self.ranges.blocks(duplicate, self.block_limit);
        Reply {
            wire_bytes: reply.wire_bytes + blocks.option_bytes(),
            blocks: Some(blocks),
            flags: reply.flags.with_dsack(duplicate.is_some()),
            ..reply
        }
    }

    /// Acknowledge what has arrived where no segment is held above a hole.
    #[inline(always)]
    fn acknowledge_in_order(&mut self) -> Reply {
        self.pending = 0;
        self.quick.on_ack();
        self.set_timer(Time::NEVER);
        self.sent_packets += 1;
        Reply {
            kind: Kind::Ack,
            ack: self.next,
            window: self.advertise(),
            echo: self.echo,
            wire_bytes: self.ack_bytes,
            blocks: None,
            flags: self
                .echo_of_marks
                .flags()
                .with_opened(self.window.take_changed()),
        }
    }

    /// Acknowledge a segment out of order, a duplicate, or one that fills a hole: immediately, unless SACKs are
    /// compressed.
    #[inline(never)]
    fn on_disorder(&mut self, sequence: u64, timestamp: Time, now: Time) -> Option<Reply> {
        self.last_arrival = now;
        if sequence + u64::from(self.pending) <= self.next {
            // RFC 7323 section 4.3, step 2: it begins at or before the last ACK.
            self.echo = self.echo.max(timestamp);
        }
        let held = self.ranges.range_of(sequence);
        let duplicate = sequence < self.next || held.is_some();
        let mut at_once = duplicate || self.ack_now || self.quick.is_due();
        let mut earlier = None;
        if duplicate {
            self.duplicates += 1;
            self.quick.on_duplicate();
            if self.state == State::LastAck {
                return Some(self.control(Kind::FinAck));
            }
            if let Some(range) = held {
                self.ranges.remember(range);
            }
        } else if sequence == self.next {
            self.open_window();
            self.next = self.ranges.follow(sequence + 1);
            self.window.on_read(self.next, timestamp, now);
            if self.reader.is_some() {
                self.read(now);
            }
            // The ACK advances by more than a segment.
            at_once |= self.next - sequence > 1 || self.ranges.is_empty();
        } else {
            self.open_window();
            if !at_once && self.compression.precedes(self.ranges.place_of(sequence)) {
                self.compression.release();
                earlier = Some(self.acknowledge_rarely());
            }
            self.ranges.keep(sequence);
        }
        if self.next >= self.workload.end && self.state == State::Established {
            return Some(self.on_end(now));
        }
        if !at_once {
            if let Some(wait) = self.compression.hold(self.next) {
                self.set_timer(self.timer.min(now + wait));
                return earlier;
            }
        }
        self.compression.release();
        Some(self.acknowledge(duplicate.then_some(sequence)))
    }
}

/// Idle time after which ACKs are quick again (Linux: longer than the delayed-ACK estimate's bound,
/// its RTO; 200 ms is the least that can be).
const QUICK_AFTER: Time = Time::from_milliseconds(200);

#[cfg(test)]
mod tests;
