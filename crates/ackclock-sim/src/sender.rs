//! The sending side of a TCP connection: transmission, loss detection and recovery.
//!
//! Sources: RFC 9293 (connection, persist timer), RFC 5681 and 6582 (New Reno), RFC 2018 and 6675 (SACK), RFC 6937
//! (PRR), RFC 8985 (RACK-TLP), RFC 6298 (RTO), RFC 3042 (limited transmit), RFC 6928 (initial window), RFC 3522,
//! 3708, 4015 and 5682 (undo).
//! The window itself is the [`Controller`]'s. ECN marks lead to the state `Cwr` (`ecn.rs`).
//!
//! ```text
//!            the sender opens           SYN/ACK
//!   Closed ──────────────────▶ SynSent ─────────────────────────────────┐
//!     │     the receiver opens         SYN             its request (2)  ▼
//!     └──────────────────────▶ Listen ─────▶ SynReceived ────────────▶ Open
//!
//!               SACKs or duplicates             FIN acknowledged
//!     ┌─▶ Open ◀────────────────────▶ Disorder        (1) ─────▶ Done
//!     │     └─────────────┬──────────────┘
//!     │             marks │       losses detected
//!     │                   ├──────────────────┐
//!     │                   ▼                  ▼
//!     ├────────────────── Cwr ──────────▶ Recovery ──────┐
//!     │ sent after it:         losses        │           │ restart from one segment
//!     │ acknowledged                         │           ▼
//!     └─── all sent before it: acknowledged ─┴───────── Loss ◀──── timeout ──── (1)
//!
//!   (1) each state from Open on    (2) without bytes, the bare ACK
//! ```
//!
//! Deviations: sequence numbers count segments, so nothing is ever re-segmented; a connection carries data one way. The
//! FIN is a separate segment after the data, unless there is a send buffer (`tso_batching`): then it goes with the last
//! segment if that is not sent when the application closes, and a single segment with the FIN needs no room in the
//! window, as Linux does both. Evidence of a spurious reduction leads from `Recovery` and `Loss` back to `Open`
//! immediately (`undo.rs`, `frto.rs`).

mod ack;
mod agent;
mod buffer;
mod cwnd_validation;
mod ecn;
mod frto;
mod handshake;
mod leap;
mod messages;
mod output;
mod pacing;
mod persist;
mod prr;
mod recovery;
mod reordering;
pub mod scoreboard;
mod send_reason;
mod timers;
mod tlp;
mod undo;

use std::sync::Arc;

use ackclock_core::tables::EventKind;
use ackclock_core::tcp::delivery_rate::RateSampler;
use ackclock_core::Time;
use ackclock_plan::{FlowPlan, TcpPlan};

use crate::options::Blocks;
use crate::packet::{Kind, Packet};
use crate::rtt::{RttEstimator, TimedSegment};
use crate::workload::Workload;
use ackclock_congestion::{Controller, CubicState, Error, Prototype, Variables};

use buffer::SendBuffer;
use cwnd_validation::CwndUsage;
use ecn::EcnState;
use frto::Frto;
use handshake::Handshake;
use leap::Withheld;
pub use leap::{Batch, Skipped};
use pacing::Pacing;
use prr::Prr;
use recovery::RecoveryEpisode;
use reordering::Reordering;
use scoreboard::{Rack, Scoreboard};
use send_reason::BlockedBy;
pub use send_reason::SendReason;
use timers::{Purpose, Timers};
use tlp::TlpProbe;
use undo::Undo;

/// Outlet for a sender's packets and events.
pub trait Outlet {
    /// Send a packet to the first hop; outlets that record the reason of its transmission call `reason`.
    fn send(&mut self, packet: Packet, reason: impl FnOnce() -> SendReason);
    /// Report an event with a value (a segment number).
    fn report(&mut self, flow: u32, kind: EventKind, value: f64);
}

/// Counts of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets sent, of all kinds.
    pub sent_packets: u64,
    /// Bytes of them (IP packets).
    pub sent_bytes: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Retransmission timeouts, repeated ones included.
    pub timeouts: u64,
    /// Retransmitted SYNs.
    pub syn_retransmissions: u64,
    /// Fast recovery episodes.
    pub recoveries: u64,
    /// Tail loss probes.
    pub tail_probes: u64,
    /// Packets that arrived, of all kinds.
    pub received_packets: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaState {
    Closed,
    SynSent,
    /// The receiver will open the connection.
    Listen,
    /// The SYN/ACK is sent, and the request has not arrived.
    SynReceived,
    Open,
    Disorder,
    /// The window is reduced for ECN marks (Linux: `TCP_CA_CWR`).
    Cwr,
    Recovery,
    Loss,
    Done,
}

/// The sending side of a connection.
pub struct Sender {
    flow: u32,
    ca_state: CaState,
    tcp: TcpPlan,
    handshake: Handshake,
    controller: Box<dyn Controller>,
    /// The controller's window in whole segments, or that of recovery.
    window: u32,
    cwnd_usage: CwndUsage,
    /// Limit that ended the last attempt to send.
    stop: BlockedBy,
    /// First segment beyond the receiver's window (RFC 9293 section 3.3.1: SND.UNA + SND.WND).
    window_end: u64,
    /// Wait for the next zero-window probe, once one is awaited.
    probe_wait: Time,
    workload: Workload,
    /// Send buffer, if its size is limited.
    buffer: Option<SendBuffer>,
    board: Scoreboard,
    rack: Rack,
    rtt: RttEstimator,
    /// The segment that is timed, if one is at a time.
    timed: TimedSegment,
    /// RTT sample of the last ACK for the controller.
    ack_rtt: Option<Time>,
    rates: RateSampler,
    timers: Timers,
    pacing: Pacing,
    episode: RecoveryEpisode,
    /// The reduction in progress (`Recovery` and `Cwr` with PRR).
    prr: Option<Prr>,
    ecn: EcnState,
    undo: Undo,
    frto: Frto,
    reordering: Reordering,
    /// Outstanding tail loss probe.
    tlp: Option<TlpProbe>,
    /// Time and segments that leaps have skipped.
    pub skipped: Skipped,
    /// Segments of the window that a leap has left to be released.
    withheld: Withheld,
    /// Time of the first SYN, by either end; [`Time::NEVER`] before.
    pub started: Time,
    /// Time at which the connection was established.
    pub established: Option<Time>,
    /// Time at which the last data byte was acknowledged.
    pub finished: Option<Time>,
    /// Counts so far.
    pub counters: Counters,
}

impl Sender {
    /// Prototype of the controllers of flows with this plan.
    ///
    /// # Errors
    /// Unknown congestion control algorithm or parameters.
    pub fn prototype(plan: &FlowPlan) -> Result<Arc<Prototype>, Error> {
        let (control, tcp) = (&plan.congestion, &plan.tcp);
        Prototype::new(&control.kind, &control.parameters, tcp.initial_window).map(Arc::new)
    }

    /// The sender of flow number `flow`, with a controller from the flow's [`Sender::prototype`].
    pub fn new(flow: u32, plan: &FlowPlan, prototype: &Arc<Prototype>) -> Sender {
        let tcp = plan.tcp.clone();
        let controller = prototype.controller();
        let paced = tcp.pacing || controller.requires_pacing();
        let is_bulk = plan.writes.is_none();
        let buffer = (tcp.tso_batching && is_bulk)
            .then(|| SendBuffer::new(&tcp, controller.requires_pacing()));
        Sender {
            flow,
            ca_state: CaState::Closed,
            handshake: Handshake {
                prototype: Arc::clone(prototype),
                seed: u64::from(flow),
                request_bytes: plan.request_bytes,
                retransmissions: 0,
            },
            controller,
            window: tcp.initial_window,
            cwnd_usage: CwndUsage::default(),
            stop: BlockedBy::Opening,
            window_end: 0,
            probe_wait: Time::ZERO,
            workload: Workload::new(plan),
            buffer,
            board: Scoreboard::default(),
            rack: Rack::default(),
            rtt: RttEstimator::new(&tcp),
            timed: TimedSegment::default(),
            ack_rtt: None,
            rates: RateSampler::default(),
            timers: Timers::IDLE,
            pacing: Pacing::new(paced),
            episode: RecoveryEpisode::default(),
            prr: None,
            ecn: EcnState::default(),
            undo: Undo::default(),
            frto: Frto::default(),
            reordering: Reordering::default(),
            tlp: None,
            skipped: Skipped::default(),
            withheld: Withheld::default(),
            started: Time::NEVER,
            established: None,
            finished: None,
            counters: Counters::default(),
            tcp,
        }
    }

    /// Set the seed for the controller's random choices.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Sender {
        self.handshake.seed = seed;
        self
    }

    // ---- events from the simulation ----

    /// Open the connection.
    pub fn start(&mut self, now: Time, out: &mut impl Outlet) {
        self.ca_state = CaState::SynSent;
        self.started = now;
        self.workload.begin(now);
        self.timers.application = self.workload.stop;
        self.send_syn(now, out);
    }

    /// Wait for the receiver to open the connection.
    pub fn listen(&mut self, now: Time) {
        self.ca_state = CaState::Listen;
        self.started = now;
        self.workload.begin(now);
        self.timers.application = self.workload.stop;
    }

    /// Process a packet from the receiver.
    #[inline(always)]
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        now: Time,
        out: &mut impl Outlet,
    ) {
        self.counters.received_packets += 1;
        // As an ACK that moves the window, one of a part of a segment is no duplicate (RFC 5681 section 2).
        let is_update = self.take_window(packet) | (packet.flags.part() > 0);
        match packet.kind {
            Kind::Ack | Kind::FinAck => {
                if self.is_open() {
                    self.on_ack(packet, blocks, is_update, now, out);
                } else if self.ca_state == CaState::SynReceived {
                    self.on_handshake_ack(packet, now, out);
                }
                if packet.kind == Kind::FinAck {
                    self.send_control(Kind::LastAck, now, out);
                }
            }
            Kind::SynAck => self.on_syn_ack(packet, now, out),
            Kind::ClientSyn => self.on_client_syn(now, out),
            Kind::Request => self.on_request(packet, now, out),
            _ => {}
        }
    }

    /// Handle the timer of [`Sender::wake`].
    pub fn on_timer(&mut self, now: Time, out: &mut impl Outlet) {
        if self.timers.retransmission <= now && !self.timers.awaits_tick(self.tcp.timer_tick, now) {
            match (self.ca_state, self.timers.purpose) {
                (CaState::SynSent, _) => self.on_syn_timeout(now, out),
                (CaState::SynReceived, _) => self.on_syn_ack_timeout(now, out),
                (_, Purpose::Timeout) => self.on_timeout(now, out),
                (_, Purpose::TlpProbe) => self.on_probe_timer(now, out),
                (_, Purpose::Reordering) => self.on_reordering_timer(now, out),
                (_, Purpose::Persist) => self.on_persist_timer(now, out),
            }
        }
        self.timers.pacing = Time::NEVER;
        self.timers.application = self.workload.stop;
        if self.workload.stop <= now {
            self.on_stop(now, out);
        }
        let sent = self.counters.sent_packets;
        self.transmit(now, out);
        if self.counters.sent_packets > sent && self.can_probe() {
            self.start_timer(now);
        }
    }

    /// Time of the sender's next timer.
    #[inline]
    pub fn wake(&self) -> Time {
        self.timers.earliest()
    }

    // ---- state for records ----

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        match self.ca_state {
            CaState::Recovery | CaState::Cwr => f64::from(self.window),
            _ => self.controller.cwnd(),
        }
    }

    /// State of CUBIC or a variant in congestion avoidance; `None` for other algorithms.
    pub fn cubic(&self, now: Time) -> Option<CubicState> {
        self.controller.cubic_state(self.controller_time(now))
    }

    /// Number of the flow.
    pub fn flow(&self) -> u32 {
        self.flow
    }

    /// Internal state of the controller, if it shows any.
    pub fn control_variables(&self) -> Option<Variables> {
        self.controller.variables()
    }

    /// Slow start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        self.controller.ssthresh()
    }

    /// Smoothed RTT, once there is one.
    pub fn srtt(&self) -> Option<Time> {
        self.rtt.has_sample().then(|| self.rtt.srtt())
    }

    /// Segments in flight, with those that a leap has left to be sent.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight() + self.withheld.segments
    }

    /// Payload bytes acknowledged cumulatively.
    pub fn acknowledged_bytes(&self) -> u64 {
        let skipped_bytes = self.skipped.segments * self.workload.mss_bytes();
        self.workload.payload_before(self.board.unacknowledged) + skipped_bytes
    }

    /// True if the connection is closed on this side; it still acknowledges the receiver's FIN.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.ca_state == CaState::Done
    }

    /// True between the SYN and the last acknowledgement.
    pub fn is_active(&self) -> bool {
        !matches!(self.ca_state, CaState::Closed | CaState::Done)
    }
}

/// Round a window down to whole segments, at least one.
#[inline]
fn floor_segments(window: f64) -> u32 {
    (window as u32).max(1)
}
