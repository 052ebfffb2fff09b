//! The sending side of a TCP connection: what is sent, when, and what is taken for lost.
//!
//! Sources: RFC 9293 (connection), RFC 5681 and 6582 (New Reno), RFC 2018 and 6675 (SACK), RFC 6937
//! (PRR), RFC 8985 (RACK-TLP), RFC 6298 (RTO), RFC 3042 (limited transmit), RFC 6928 (initial window), RFC 3522,
//! 3708, 4015 and 5682 (undo).
//! The window itself is the [`Controller`]'s. ECN marks lead to a phase of their own (`marks.rs`).
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
//!     │             marks │       losses found
//!     │                   ├──────────────────┐
//!     │                   ▼                  ▼
//!     ├──────────────── Reduced ────────▶ Recovery ──────┐
//!     │ sent after it:         losses        │           │ a start from one segment
//!     │ acknowledged                         │           ▼
//!     └─── all sent before it: acknowledged ─┴───────── Loss ◀──── timeout ──── (1)
//!
//!   (1) each phase from Open on    (2) without bytes, the bare ACK
//! ```
//!
//! Deviations: sequence numbers count segments, so nothing is ever re-segmented; a connection carries data one way.
//! The FIN is a segment of its own after the data, unless there is a send buffer (`tso_batching`): then it goes with the last
//! segment if that is not sent when the application closes, and a single segment with the FIN needs no room in the
//! window, as Linux does both. What proves needless leads from `Recovery` and
//! `Loss` back to `Open` at once (`undoing.rs`, `frto.rs`).

mod acknowledging;
mod buffer;
mod explaining;
mod frto;
mod losses;
mod marks;
mod opening;
mod pacing;
mod probe;
mod prr;
mod rates;
mod recovery;
mod reordering;
pub mod scoreboard;
mod sending;
mod timers;
mod undoing;
mod usage;

use std::sync::Arc;

use ackclock_plan::{DelayedAck, FlowPlan, TcpPlan};
use ackclock_record::Happening;
use ackclock_units::Time;

use crate::options::Blocks;
use crate::packet::{Kind, Packet};
use crate::rtt::RttEstimator;
use crate::workload::Workload;
use ackclock_congestion::{Controller, Error, Inside, Prototype};

use buffer::{SendBuffer, OPENING_WINDOW_BYTES};
pub use explaining::Reasons;
use explaining::Stop;
use frto::Frto;
use marks::Marks;
use opening::Handshake;
use pacing::Pacing;
use probe::Probe;
use prr::Prr;
use rates::RateSampler;
use recovery::Episode;
use reordering::Reordering;
use scoreboard::{Rack, Scoreboard};
use timers::{Purpose, Timers};
use undoing::Undo;
use usage::Usage;

/// Where a sender's packets go.
pub trait Outlet {
    /// Takes a packet for the first hop; `reasons` is called by those who want to know why it is sent.
    fn send(&mut self, packet: Packet, reasons: impl FnOnce() -> Reasons);
    /// Takes note of something rare, with a value (a segment number).
    fn report(&mut self, flow: u32, happening: Happening, value: f64);
}

/// An outlet that only collects.
#[derive(Debug, Default)]
pub struct Output {
    /// Packets for the first hop.
    pub packets: Vec<Packet>,
    /// Rare things that happened, with a value (a segment number).
    pub happenings: Vec<(Happening, f64)>,
}

impl Outlet for Output {
    fn send(&mut self, packet: Packet, _: impl FnOnce() -> Reasons) {
        self.packets.push(packet);
    }

    fn report(&mut self, _flow: u32, happening: Happening, value: f64) {
        self.happenings.push((happening, value));
    }
}

/// Counts over the connection's life.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets sent, of all kinds.
    pub sent_packets: u64,
    /// Bytes of them (IP packets).
    pub sent_bytes: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts, repeats included.
    pub timeouts: u64,
    /// SYNs sent again.
    pub syn_retransmissions: u64,
    /// Fast recovery episodes.
    pub recoveries: u64,
    /// Tail loss probes.
    pub tail_probes: u64,
    /// Packets that arrived, of all kinds.
    pub received_packets: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    SynSent,
    /// The receiver is to open the connection.
    Listen,
    /// Its SYN is answered, and it has not asked yet.
    SynReceived,
    Open,
    Disorder,
    /// Coming down for ECN marks.
    Reduced,
    Recovery,
    Loss,
    Done,
}

/// The sending side of a connection.
pub struct Sender {
    flow: u32,
    phase: Phase,
    tcp: TcpPlan,
    handshake: Handshake,
    controller: Box<dyn Controller>,
    /// The controller's window in whole segments, or recovery's.
    window: u32,
    usage: Usage,
    /// What ended the last look at what may be sent.
    stop: Stop,
    /// The receiver's window in segments when it is open.
    receive_window: u64,
    /// What is open of it before the first segment is delivered.
    first_window: u64,
    workload: Workload,
    /// Where the application writes to, if there is a limit to it.
    buffer: Option<SendBuffer>,
    board: Scoreboard,
    rack: Rack,
    rtt: RttEstimator,
    /// What the last ACK tells the controller of the RTT.
    heard_rtt: Option<Time>,
    rates: RateSampler,
    timers: Timers,
    pacing: Pacing,
    episode: Episode,
    /// The reduction in progress (`Recovery` and `Reduced` with PRR).
    prr: Option<Prr>,
    marks: Marks,
    undo: Undo,
    frto: Frto,
    reordering: Reordering,
    /// The tail loss probe that is out.
    probe: Option<Probe>,
    started: Time,
    established: Option<Time>,
    finished: Option<Time>,
    counters: Counters,
}

impl Sender {
    /// What the controllers of such flows are copied from.
    ///
    /// # Errors
    /// If the congestion control or its parameters are not known.
    pub fn prototype(plan: &FlowPlan) -> Result<Arc<Prototype>, Error> {
        let (control, tcp) = (&plan.congestion, &plan.tcp);
        Prototype::new(&control.kind, &control.parameters, tcp.initial_window).map(Arc::new)
    }

    /// The sender of flow number `flow`, with a controller from the flow's [`Sender::prototype`].
    pub fn new(flow: u32, plan: &FlowPlan, prototype: &Arc<Prototype>) -> Sender {
        let tcp = plan.tcp.clone();
        let controller = prototype.controller();
        let paced = tcp.pacing || controller.needs_pacing();
        let buffer = tcp
            .tso_batching
            .then(|| SendBuffer::new(&tcp, controller.needs_pacing()));
        Sender {
            flow,
            phase: Phase::Closed,
            handshake: Handshake {
                prototype: Arc::clone(prototype),
                seed: u64::from(flow),
                request_bytes: plan.request_bytes,
                retransmissions: 0,
            },
            controller,
            window: tcp.initial_window,
            usage: Usage::default(),
            stop: Stop::Opening,
            receive_window: tcp.receive_window_bytes.map_or(u64::MAX / 2, |bytes| {
                (bytes / u64::from(tcp.mss_bytes)).clamp(1, u64::MAX / 2)
            }),
            first_window: match tcp.delayed_ack {
                DelayedAck::Quick => (OPENING_WINDOW_BYTES / u64::from(tcp.mss_bytes)).max(1),
                DelayedAck::On | DelayedAck::Off => u64::MAX / 2,
            },
            workload: Workload::new(plan),
            buffer,
            board: Scoreboard::default(),
            rack: Rack::default(),
            rtt: RttEstimator::new(&tcp),
            heard_rtt: None,
            rates: RateSampler::default(),
            timers: Timers::IDLE,
            pacing: Pacing::new(paced),
            episode: Episode::default(),
            prr: None,
            marks: Marks::default(),
            undo: Undo::default(),
            frto: Frto::default(),
            reordering: Reordering::default(),
            probe: None,
            started: Time::NEVER,
            established: None,
            finished: None,
            counters: Counters::default(),
            tcp,
        }
    }

    /// The same sender with another seed for its controller's choices.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Sender {
        self.handshake.seed = seed;
        self
    }

    // ---- what the simulation calls ----

    /// Opens the connection.
    pub fn start(&mut self, now: Time, out: &mut impl Outlet) {
        self.phase = Phase::SynSent;
        self.started = now;
        self.workload.begin(now);
        self.timers.application = self.workload.stop();
        self.send_syn(now, out);
    }

    /// Waits for the receiver to open the connection.
    pub fn listen(&mut self, now: Time) {
        self.phase = Phase::Listen;
        self.started = now;
        self.workload.begin(now);
        self.timers.application = self.workload.stop();
    }

    /// A packet from the receiver arrived.
    #[inline(always)]
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        now: Time,
        out: &mut impl Outlet,
    ) {
        self.counters.received_packets += 1;
        match packet.kind {
            Kind::Ack | Kind::FinAck => {
                if self.is_open() {
                    self.on_ack(packet, blocks, now, out);
                } else if self.phase == Phase::SynReceived {
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

    /// The time named by [`Sender::wake`] has come.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Outlet) {
        if self.timers.retransmission <= now && !self.timers.awaits_tick(self.tcp.timer_tick, now) {
            match (self.phase, self.timers.purpose) {
                (Phase::SynSent, _) => self.on_syn_timeout(now, out),
                (Phase::SynReceived, _) => self.on_syn_ack_timeout(now, out),
                (_, Purpose::Timeout) => self.on_timeout(now, out),
                (_, Purpose::Probe) => self.on_probe_timer(now, out),
                (_, Purpose::Reordering) => self.on_reordering_timer(now, out),
            }
        }
        self.timers.pacing = Time::NEVER;
        self.timers.application = self.workload.stop();
        if self.workload.stop() <= now {
            self.on_stop(now, out);
        }
        let sent = self.counters.sent_packets;
        self.transmit(now, out);
        if self.counters.sent_packets > sent && self.may_probe() {
            self.start_timer(now);
        }
    }

    /// When the sender wants to be woken.
    #[inline]
    pub fn wake(&self) -> Time {
        self.timers.earliest()
    }

    // ---- what the records read ----

    /// Congestion window in segments.
    pub fn cwnd(&self) -> f64 {
        match self.phase {
            Phase::Recovery | Phase::Reduced => f64::from(self.window),
            _ => self.controller.cwnd(),
        }
    }

    /// What its congestion control looks at inside, if it is CUBIC or a relative in congestion avoidance.
    pub fn cubic(&self, now: Time) -> Option<Inside> {
        self.controller.inside(now)
    }

    /// Slow start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        self.controller.ssthresh()
    }

    /// Smoothed RTT, once there is one.
    pub fn srtt(&self) -> Option<Time> {
        self.rtt.has_sample().then(|| self.rtt.srtt())
    }

    /// Segments in flight.
    pub fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// Payload bytes acknowledged cumulatively.
    pub fn acknowledged_bytes(&self) -> u64 {
        self.workload.payload_before(self.board.unacknowledged())
    }

    /// Counts so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When the SYN was first sent, by either end; [`Time::NEVER`] before.
    pub fn started(&self) -> Time {
        self.started
    }

    /// When the connection was established.
    pub fn established(&self) -> Option<Time> {
        self.established
    }

    /// When the last data byte was acknowledged.
    pub fn finished(&self) -> Option<Time> {
        self.finished
    }

    /// Whether the connection is over on this side; it still answers the receiver's FIN.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Whether the connection is between its SYN and its last acknowledgement.
    pub fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Closed | Phase::Done)
    }
}

/// A window in whole segments, at least one.
#[inline]
fn whole_segments(window: f64) -> u32 {
    (window as u32).max(1)
}
