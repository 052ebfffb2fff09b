//! The sending side of a TCP connection: what is sent, when, and what is taken for lost.
//!
//! Sources: RFC 9293 (connection), RFC 5681 and 6582 (New Reno), RFC 2018 and 6675 (SACK), RFC 6937
//! (PRR), RFC 8985 (RACK-TLP), RFC 6298 (RTO), RFC 3042 (limited transmit), RFC 6928 (initial window).
//! The window itself is the [`Controller`]'s.
//!
//! ```text
//!              SYN/ACK              SACKs or duplicates       losses found
//!   SynSent ───────────▶ Open ◀──────────────────▶ Disorder ─────────────▶ Recovery
//!                         ▲ ▲                                                  │
//!                         │ └────────── all sent before it delivered ──────────┤
//!                         └──────────────────── Loss ◀──── timeout ────────────┘
//! ```
//!
//! Deviations: sequence numbers count segments, so nothing is ever re-segmented and the FIN is a
//! segment of its own after the data; a connection carries data one way. Left out, because without
//! reordering or delay spikes they do not act: F-RTO (RFC 5682), undoing a reduction after a spurious
//! retransmission (RFC 4015), RACK's adaptation of the reordering window to DSACKs.

mod recovery;
pub mod scoreboard;
mod timers;

use ackclock_units::{Rate, Time};

use crate::congestion::{self, Ack, Controller, Loss};
use crate::packet::{Ecn, Kind, Packet, NO_SACK};
use crate::plan::{CongestionPlan, FlowPlan, LossDetection, Reduction, TcpPlan};
use crate::receiver::Blocks;
use crate::record::Happening;
use crate::rtt::RttEstimator;
use crate::workload::Workload;
use crate::PlanError;

use recovery::Prr;
use scoreboard::{Delivery, Found, Rack, Scoreboard, Sending, DUPLICATE_THRESHOLD};
use timers::{Purpose, Timers};

/// Where a sender's packets go.
pub trait Outlet {
    /// Takes a packet for the first hop.
    fn send(&mut self, packet: Packet);
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
    fn send(&mut self, packet: Packet) {
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    SynSent,
    Open,
    Disorder,
    Recovery,
    Loss,
    Done,
}

/// Bytes of the TCP timestamps option with its padding (RFC 7323 appendix A).
pub const TIMESTAMPS_BYTES: u32 = 12;
/// Bytes of the options on a SYN: MSS, SACK permitted, timestamps, window scale.
pub const SYN_OPTIONS_BYTES: u32 = 20;

/// The sending side of a connection.
pub struct Sender {
    flow: u32,
    phase: Phase,
    tcp: TcpPlan,
    congestion: CongestionPlan,
    controller: Box<dyn Controller>,
    /// The controller's window in whole segments, or recovery's.
    window: u32,
    board: Scoreboard,
    rtt: RttEstimator,
    workload: Workload,
    timers: Timers,
    receive_window: u64,
    /// Reduction in progress (`Recovery` with PRR).
    prr: Option<Prr>,
    /// Recovery and Loss end when everything below it is acknowledged.
    recovery_end: u64,
    rack: Rack,
    /// A tail loss probe is out: ends when everything below is acknowledged.
    probe_end: Option<u64>,
    probe_repeated: bool,
    /// Segments delivered.
    delivered: u64,
    delivered_at: Time,
    flight_start: Time,
    /// Whether the window limited the sender when the most was in flight.
    window_limited: bool,
    most_outstanding: u32,
    usage_until: u64,
    /// Pacing: earliest time of the next segment.
    next_departure: Time,
    last_sent: Time,
    established: Option<Time>,
    started: Time,
    finished: Option<Time>,
    counters: Counters,
}

impl Sender {
    /// The sender of flow number `flow`.
    ///
    /// # Errors
    /// If the congestion control or its parameters are not known.
    pub fn new(flow: u32, plan: &FlowPlan) -> Result<Sender, PlanError> {
        let tcp = plan.tcp.clone();
        let controller = congestion::make(
            &plan.congestion.kind,
            &plan.congestion.parameters,
            tcp.initial_window,
        )?;
        if tcp.mss_bytes == 0 {
            return Err(PlanError::NotPositive("mss_bytes"));
        }
        Ok(Sender {
            flow,
            phase: Phase::Closed,
            window: tcp.initial_window,
            controller,
            congestion: plan.congestion.clone(),
            board: Scoreboard::default(),
            rtt: RttEstimator::new(&tcp),
            workload: Workload::new(plan),
            timers: Timers::IDLE,
            receive_window: tcp.receive_window_bytes.map_or(u64::MAX / 2, |bytes| {
                (bytes / u64::from(tcp.mss_bytes)).max(1)
            }),
            prr: None,
            recovery_end: 0,
            rack: Rack::default(),
            probe_end: None,
            probe_repeated: false,
            delivered: 0,
            delivered_at: Time::ZERO,
            flight_start: Time::ZERO,
            window_limited: false,
            most_outstanding: 0,
            usage_until: 0,
            next_departure: Time::ZERO,
            last_sent: Time::ZERO,
            established: None,
            started: Time::NEVER,
            finished: None,
            counters: Counters::default(),
            tcp,
        })
    }

    // ---- what the simulation calls ----

    /// Opens the connection.
    pub fn start(&mut self, now: Time, out: &mut impl Outlet) {
        self.phase = Phase::SynSent;
        self.started = now;
        self.send_syn(now, out);
    }

    /// A packet from the receiver arrived.
    #[inline]
    pub fn on_packet(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        now: Time,
        out: &mut impl Outlet,
    ) {
        match packet.kind {
            Kind::Ack | Kind::FinAck => {
                if self.phase != Phase::Done {
                    self.on_ack(packet, blocks, now, out);
                }
                if packet.kind == Kind::FinAck {
                    self.send_control(Kind::LastAck, now, out);
                }
            }
            Kind::SynAck => self.on_syn_ack(packet, now, out),
            _ => {}
        }
    }

    /// The time named by [`Sender::wake`] has come.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Outlet) {
        if self.timers.retransmission <= now {
            match (self.phase, self.timers.purpose) {
                (Phase::SynSent, _) => self.on_syn_timeout(now, out),
                (_, Purpose::Timeout) => self.on_timeout(now, out),
                (_, Purpose::Probe) => self.on_probe_timer(now, out),
                (_, Purpose::Reordering) => self.on_reordering_timer(now, out),
            }
        }
        self.timers.pacing = Time::NEVER;
        self.timers.application = Time::NEVER;
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
            Phase::Recovery => f64::from(self.window),
            _ => self.controller.cwnd(),
        }
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

    /// When the SYN was first sent; [`Time::NEVER`] before.
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

    /// Whether the connection is between its SYN and its last acknowledgement.
    pub fn is_active(&self) -> bool {
        !matches!(self.phase, Phase::Closed | Phase::Done)
    }

    // ---- opening ----

    fn send_syn(&mut self, now: Time, out: &mut impl Outlet) {
        self.send_control(Kind::Syn, now, out);
        self.timers.set(Purpose::Timeout, now + self.rtt.rto());
    }

    fn on_syn_timeout(&mut self, now: Time, out: &mut impl Outlet) {
        self.counters.syn_retransmissions += 1;
        out.report(self.flow, Happening::SynRetransmission, f64::NAN);
        self.rtt.backoff();
        self.send_syn(now, out);
    }

    fn on_syn_ack(&mut self, packet: &Packet, now: Time, out: &mut impl Outlet) {
        if self.phase == Phase::Closed {
            return;
        }
        self.send_control(Kind::LastAck, now, out);
        if self.phase != Phase::SynSent {
            return;
        }
        self.phase = Phase::Open;
        self.timers.stop();
        self.rtt.reset_backoff();
        if self.tcp.timestamps || self.counters.syn_retransmissions == 0 {
            self.rtt.sample(now, now.since(packet.timestamp), 0, 0);
        }
        // Linux restarts from one segment when more than one SYN was lost (RFC 5681 section 3.1 after any).
        if self.counters.syn_retransmissions > 1 {
            let CongestionPlan { kind, parameters } = &self.congestion;
            if let Ok(controller) = congestion::make(kind, parameters, 1) {
                self.controller = controller;
            }
        }
        self.window = whole_segments(self.controller.cwnd());
        self.established = Some(now);
        self.delivered_at = now;
        self.flight_start = now;
        self.workload.start(now);
        out.report(self.flow, Happening::Established, f64::NAN);
        self.transmit(now, out);
    }

    // ---- acknowledgements ----

    fn on_ack(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        now: Time,
        out: &mut impl Outlet,
    ) {
        let ack = packet.sequence;
        if ack > self.board.next() || matches!(self.phase, Phase::Closed | Phase::SynSent) {
            return;
        }
        let prior_unacknowledged = self.board.unacknowledged();
        let prior_in_flight = self.board.in_flight();
        let advanced = ack > prior_unacknowledged;
        let delivery = self.take_delivery(packet, blocks, advanced);
        let rtt = self.measure_rtt(&delivery, packet, advanced, now);
        let rate = self.measure_rate(&delivery, now);
        let found = self.detect_losses(advanced, now);
        self.settle_probe(packet, advanced, now);
        self.change_state(&delivery, &found, advanced, prior_in_flight, now, out);
        self.controller.on_ack(&Ack {
            now,
            newly_acked: delivery.segments,
            newly_acked_bytes: u64::from(delivery.segments) * u64::from(self.tcp.mss_bytes),
            advanced,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            prior_in_flight,
            in_flight: self.board.in_flight(),
            delivery_rate: rate,
            delivered: self.delivered,
            prior_delivered: self.prior_delivered(&delivery),
            application_limited: delivery
                .latest
                .is_some_and(|latest| latest.application_limited),
            window_limited: self.is_window_limited(),
            newly_lost: found.lost,
            marked_bytes: 0,
            next: self.board.next(),
            unacknowledged: ack,
            recovering: self.phase == Phase::Recovery,
        });
        if self.prr.is_none() {
            self.window = whole_segments(self.controller.cwnd());
        }
        self.rearm(&delivery, &found, advanced, now);
        self.transmit(now, out);
        if advanced {
            self.check_end(now, out);
        }
    }

    #[inline]
    fn take_delivery(
        &mut self,
        packet: &Packet,
        blocks: Option<&Blocks>,
        advanced: bool,
    ) -> Delivery {
        let mut delivery = Delivery::default();
        let outstanding = self.board.outstanding();
        if advanced {
            self.board.acknowledge(packet.sequence, &mut delivery);
        }
        if self.tcp.sack {
            if let Some(blocks) = blocks {
                for &block in blocks.as_slice() {
                    self.board.sack(block, &mut delivery);
                }
            }
        } else if self.board.sacked() > 0 || packet.sequence == self.board.unacknowledged() {
            self.count_duplicates(&mut delivery, advanced, outstanding);
        }
        self.delivered += u64::from(delivery.segments);
        delivery
    }

    /// Without SACK a duplicate ACK stands for one delivered segment, and a cumulative ACK delivers
    /// what the duplicates before it have not yet stood for.
    fn count_duplicates(&mut self, delivery: &mut Delivery, advanced: bool, outstanding: u32) {
        if advanced {
            let before = self.board.sacked();
            self.board.forget_duplicates(delivery.segments);
            delivery.segments = delivery.segments.saturating_sub(before).max(1);
        } else if outstanding > 0 {
            let before = self.board.sacked();
            self.board.count_duplicate();
            delivery.segments += self.board.sacked() - before;
        }
    }

    /// Takes the RTT sample for the timer from the oldest delivered segment (so that it includes the
    /// receiver's delay, RFC 6298 section 3 with Karn's rule), else from the echoed timestamp; returns
    /// the sample for the controller, from the newest one.
    #[inline]
    fn measure_rtt(
        &mut self,
        delivery: &Delivery,
        packet: &Packet,
        advanced: bool,
        now: Time,
    ) -> Option<Time> {
        let cumulative = if delivery.repeated {
            None
        } else {
            delivery.oldest
        };
        let oldest = cumulative.or(delivery.oldest_sacked);
        let echoed = (self.tcp.timestamps && advanced).then_some(packet.timestamp);
        let sent = oldest.or(echoed)?;
        let newest = if cumulative.is_some() {
            delivery.newest
        } else {
            delivery.newest_sacked
        };
        let rtt = now.since(newest.unwrap_or(sent));
        self.rtt.observe_minimum(now, rtt);
        self.rtt.sample(
            now,
            now.since(sent),
            self.board.next(),
            self.board.unacknowledged(),
        );
        Some(rtt)
    }

    /// The delivery rate between the newest delivered segment's sending and now, the slower of sending
    /// and acknowledging (draft-cheng-iccrg-delivery-rate-estimation).
    #[inline]
    fn measure_rate(&mut self, delivery: &Delivery, now: Time) -> Option<Rate> {
        let latest = delivery.latest?;
        self.advance_rack(&latest, now);
        self.flight_start = latest.sent;
        self.delivered_at = now;
        let sending = latest.sent.since(latest.flight_start);
        let acknowledging = now.since(latest.delivered_at);
        let interval = sending.max(acknowledging);
        if interval < self.rtt.min_rtt() || interval == Time::ZERO {
            return None;
        }
        let segments = (self.delivered as u32).wrapping_sub(latest.delivered);
        let bytes = f64::from(segments) * f64::from(self.tcp.mss_bytes);
        Some(Rate::of(bytes, interval))
    }

    fn prior_delivered(&self, delivery: &Delivery) -> u64 {
        delivery.latest.map_or(self.delivered, |latest| {
            self.delivered - u64::from((self.delivered as u32).wrapping_sub(latest.delivered))
        })
    }

    /// RFC 8985 section 6.2, step 2: an RTT below the minimum of a segment sent again belongs to the
    /// first sending.
    #[inline]
    fn advance_rack(&mut self, latest: &scoreboard::Sample, now: Time) {
        let rtt = now.since(latest.sent);
        if latest.repeated && rtt < self.rtt.min_rtt() {
            return;
        }
        self.rack.rtt = rtt;
        if (latest.sent, latest.sequence) > (self.rack.sent, self.rack.sequence) {
            self.rack.sent = latest.sent;
            self.rack.sequence = latest.sequence;
        }
    }

    // ---- losses ----

    #[inline]
    fn detect_losses(&mut self, advanced: bool, now: Time) -> Found {
        if self.phase == Phase::Open && self.board.is_clean() {
            return Found::default();
        }
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if repairing && self.board.unacknowledged() >= self.recovery_end {
            self.leave_recovery();
        }
        if !self.tcp.sack {
            return self.detect_by_duplicates(advanced);
        }
        match self.tcp.loss_detection {
            LossDetection::Rack => {
                let window = self.reordering_window();
                self.board.detect_by_time(&self.rack, window, now)
            }
            LossDetection::DuplicateAcks => self.board.detect_by_count(),
        }
    }

    /// New Reno (RFC 6582): the third duplicate, and in recovery each partial ACK, tells that the
    /// first unacknowledged segment is lost. Duplicates of an old recovery do not start a new one.
    fn detect_by_duplicates(&mut self, advanced: bool) -> Found {
        let partial = advanced
            && self.phase == Phase::Recovery
            && self.board.unacknowledged() < self.recovery_end;
        let third = self.phase != Phase::Recovery
            && self.phase != Phase::Loss
            && self.board.sacked() >= DUPLICATE_THRESHOLD
            && (self.recovery_end == 0 || self.board.unacknowledged() > self.recovery_end);
        if partial || third {
            self.board.lose_head()
        } else {
            Found::default()
        }
    }

    /// RFC 8985 section 6.2, step 4: none in recovery or once three segments are SACKed, else a
    /// quarter of the smallest RTT, at most the smoothed one.
    fn reordering_window(&self) -> Time {
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if repairing || self.board.sacked() >= DUPLICATE_THRESHOLD {
            Time::ZERO
        } else {
            self.rtt.min_rtt().scaled(0.25).min(self.rtt.srtt())
        }
    }

    fn change_state(
        &mut self,
        delivery: &Delivery,
        found: &Found,
        advanced: bool,
        prior_in_flight: u32,
        now: Time,
        out: &mut impl Outlet,
    ) {
        match self.phase {
            Phase::Open | Phase::Disorder if found.lost > 0 => {
                self.enter_recovery(prior_in_flight, now, out);
            }
            Phase::Open | Phase::Disorder => {
                let in_order = self.board.is_clean();
                self.phase = if in_order {
                    Phase::Open
                } else {
                    Phase::Disorder
                };
            }
            _ => {}
        }
        if let Some(prr) = &mut self.prr {
            if delivery.segments > 0 {
                let progress = advanced && found.lost == 0;
                self.window = prr.on_ack(delivery.segments, self.board.in_flight(), progress);
            }
        }
    }

    fn enter_recovery(&mut self, in_flight: u32, now: Time, out: &mut impl Outlet) {
        let prior_window = whole_segments(self.controller.cwnd());
        self.phase = Phase::Recovery;
        self.recovery_end = self.board.next();
        self.probe_end = None;
        self.counters.recoveries += 1;
        out.report(
            self.flow,
            Happening::Recovery,
            self.board.unacknowledged() as f64,
        );
        self.reduce(in_flight, now);
        let target = whole_segments(self.controller.cwnd());
        match self.tcp.reduction {
            Reduction::Prr => self.prr = Some(Prr::new(target, prior_window)),
            Reduction::Immediate => self.send_lost(now, out),
        }
        self.window = target;
    }

    fn reduce(&mut self, in_flight: u32, now: Time) {
        self.controller.on_loss(&Loss {
            now,
            in_flight,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            delivered: self.delivered,
            marked: false,
        });
    }

    fn leave_recovery(&mut self) {
        self.phase = Phase::Open;
        self.prr = None;
        if !self.tcp.sack {
            self.board.clear_duplicates();
        }
    }

    // ---- timers ----

    /// Restarts the retransmission timer after an ACK: on progress, or when a SACK shows that what was
    /// sent before the first hole's last sending still arrives (Linux's rule against early timeouts).
    #[inline]
    fn rearm(&mut self, delivery: &Delivery, found: &Found, advanced: bool, now: Time) {
        if self.board.outstanding() == 0 {
            self.timers.stop();
            return;
        }
        if let Some(due) = found.next {
            self.timers.set(Purpose::Reordering, due);
            return;
        }
        let still_arrives = || {
            let oldest = delivery.oldest_sacked;
            oldest.is_some_and(|sent| sent < self.board.head_sent())
        };
        if advanced || self.timers.purpose != Purpose::Timeout || still_arrives() {
            self.start_timer(now);
        }
    }

    /// Starts the probe timer where a probe may help, else the retransmission timeout.
    #[inline]
    fn start_timer(&mut self, now: Time) {
        let timeout = now + self.rtt.rto();
        if self.may_probe() {
            let probe = now + self.probe_timeout();
            if probe < timeout {
                self.timers.set(Purpose::Probe, probe);
                return;
            }
        }
        self.timers.set(Purpose::Timeout, timeout);
    }

    #[inline]
    fn may_probe(&self) -> bool {
        self.tcp.tail_loss_probe
            && self.tcp.sack
            && self.phase == Phase::Open
            && self.probe_end.is_none()
            && self.rtt.has_sample()
    }

    /// RFC 8985 section 7.2: 2 SRTT, and for a single segment in flight the worst delayed ACK more
    /// (Linux: the RTO's floor).
    fn probe_timeout(&self) -> Time {
        let twice = self.rtt.srtt() + self.rtt.srtt();
        if self.board.outstanding() == 1 {
            twice + self.tcp.min_rto
        } else {
            twice + Time::from_milliseconds(2)
        }
    }

    /// RFC 8985 section 7.3: probe with a new segment, or else with the last one again.
    fn on_probe_timer(&mut self, now: Time, out: &mut impl Outlet) {
        self.timers.stop();
        if self.board.outstanding() == 0 {
            return;
        }
        self.counters.tail_probes += 1;
        out.report(self.flow, Happening::TailProbe, self.board.next() as f64);
        self.probe_repeated = !self.has_new(now);
        if self.probe_repeated {
            self.resend(self.board.next() - 1, now, out);
        } else {
            self.send_new(now, out);
        }
        self.probe_end = Some(self.board.next());
        self.timers.set(Purpose::Timeout, now + self.rtt.rto());
    }

    /// RFC 8985 section 7.4.2: if the probe was a repetition and its ACK reports no duplicate, it
    /// repaired a loss, to which the window must answer.
    fn settle_probe(&mut self, packet: &Packet, advanced: bool, now: Time) {
        let Some(end) = self.probe_end else { return };
        if packet.again {
            self.probe_end = None;
        } else if advanced && packet.sequence >= end {
            self.probe_end = None;
            if self.probe_repeated && matches!(self.phase, Phase::Open | Phase::Disorder) {
                self.reduce(self.board.in_flight() + 1, now);
            }
        }
    }

    fn on_reordering_timer(&mut self, now: Time, out: &mut impl Outlet) {
        let prior_in_flight = self.board.in_flight();
        let window = self.reordering_window();
        let found = self.board.detect_by_time(&self.rack, window, now);
        if found.lost > 0 && matches!(self.phase, Phase::Open | Phase::Disorder) {
            self.enter_recovery(prior_in_flight, now, out);
        }
        match found.next {
            Some(due) => self.timers.set(Purpose::Reordering, due),
            None => self.timers.set(Purpose::Timeout, now + self.rtt.rto()),
        }
    }

    /// RFC 6298 section 5, RFC 5681 section 3.1: start again from one segment.
    fn on_timeout(&mut self, now: Time, out: &mut impl Outlet) {
        if self.board.outstanding() == 0 {
            self.timers.stop();
            return;
        }
        self.counters.timeouts += 1;
        out.report(
            self.flow,
            Happening::Timeout,
            self.board.unacknowledged() as f64,
        );
        let in_flight = self.board.in_flight();
        let first = self.phase != Phase::Loss || self.board.unacknowledged() >= self.recovery_end;
        self.mark_all_lost(now);
        if first {
            self.controller.on_timeout(now, in_flight);
            self.recovery_end = self.board.next();
        }
        self.prr = None;
        self.probe_end = None;
        self.phase = Phase::Loss;
        self.window = whole_segments(self.controller.cwnd());
        self.rtt.backoff();
        self.send_lost(now, out);
        self.timers.set(Purpose::Timeout, now + self.rtt.rto());
    }

    fn mark_all_lost(&mut self, now: Time) {
        if !self.tcp.sack {
            self.board.clear_duplicates();
        }
        let rack = self.tcp.sack && self.tcp.loss_detection == LossDetection::Rack;
        let patience = self.rack.rtt;
        self.board.lose_all(|sent| rack && sent + patience > now);
    }

    // ---- sending ----

    /// Sends what the window, the receiver, the application and pacing allow: first what is lost,
    /// then new segments.
    #[inline(always)]
    fn transmit(&mut self, now: Time, out: &mut impl Outlet) {
        if matches!(self.phase, Phase::Closed | Phase::SynSent | Phase::Done) {
            return;
        }
        let before = self.counters.sent_packets;
        let mut limited = false;
        loop {
            if self.occupied() >= self.window {
                limited = true;
                break;
            }
            let lost = self.board.next_lost();
            if lost.is_none() && !self.has_new(now) {
                break;
            }
            if self.must_wait(now) {
                self.timers.pacing = self.next_departure;
                break;
            }
            match lost {
                Some(sequence) => self.resend(sequence, now, out),
                None => self.send_new(now, out),
            }
        }
        if self.counters.sent_packets > before || limited {
            self.validate_window(limited || self.board.in_flight() >= self.window);
        }
    }

    /// Segments that count against the window. RFC 3042 lets SACKed segments make room for new ones;
    /// without limited transmit they do so only in recovery.
    #[inline]
    fn occupied(&self) -> u32 {
        if self.phase == Phase::Disorder && !self.tcp.limited_transmit {
            self.board.outstanding()
        } else {
            self.board.in_flight()
        }
    }

    /// Whether a new segment may be sent: written by the application, within the receive window.
    #[inline]
    fn has_new(&mut self, now: Time) -> bool {
        let next = self.board.next();
        if next >= self.board.unacknowledged() + self.receive_window {
            return false;
        }
        if next < self.workload.available(now) {
            return true;
        }
        if !self.workload.is_fin(next) && next < self.workload.segments() {
            self.timers.application = self.workload.written_at(next);
        }
        false
    }

    #[inline]
    fn must_wait(&mut self, now: Time) -> bool {
        self.tcp.pacing && now < self.next_departure
    }

    #[inline]
    fn sending(&mut self, now: Time) -> Sending {
        if self.board.outstanding() == 0 {
            self.flight_start = now;
            self.delivered_at = now;
        }
        Sending {
            now,
            flight_start: self.flight_start,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            application_limited: !self.window_limited,
        }
    }

    #[inline(always)]
    fn send_new(&mut self, now: Time, out: &mut impl Outlet) {
        let sending = self.sending(now);
        let was_idle = self.board.outstanding() == 0;
        if was_idle && self.last_sent > Time::ZERO {
            self.controller.on_restart(now, self.last_sent);
        }
        let sequence = self.board.send_next(&sending);
        if was_idle || self.timers.retransmission.is_never() {
            self.start_timer(now);
        }
        self.send_segment(sequence, false, now, out);
    }

    fn resend(&mut self, sequence: u64, now: Time, out: &mut impl Outlet) {
        let sending = self.sending(now);
        self.board.send_again(sequence, &sending);
        self.counters.retransmissions += 1;
        out.report(self.flow, Happening::Retransmission, sequence as f64);
        if sequence == self.board.unacknowledged() {
            self.timers.set(Purpose::Timeout, now + self.rtt.rto());
        }
        self.send_segment(sequence, true, now, out);
    }

    /// Sends one lost segment whatever the window (the first of a recovery).
    fn send_lost(&mut self, now: Time, out: &mut impl Outlet) {
        if let Some(sequence) = self.board.next_lost() {
            self.resend(sequence, now, out);
        }
    }

    #[inline(always)]
    fn send_segment(&mut self, sequence: u64, again: bool, now: Time, out: &mut impl Outlet) {
        let kind = if self.workload.is_fin(sequence) {
            Kind::Fin
        } else {
            Kind::Data
        };
        let payload = self.workload.payload_bytes(sequence) as u32;
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        if self.tcp.pacing {
            self.pace(payload + self.header_bytes(), now);
        }
        self.last_sent = now;
        self.emit(
            kind,
            sequence,
            payload + self.header_bytes(),
            again,
            now,
            out,
        );
    }

    fn send_control(&mut self, kind: Kind, now: Time, out: &mut impl Outlet) {
        let bytes = match kind {
            Kind::Syn => self.tcp.header_bytes + SYN_OPTIONS_BYTES,
            _ => self.header_bytes(),
        };
        let again = kind == Kind::Syn && self.counters.syn_retransmissions > 0;
        self.emit(kind, 0, bytes, again, now, out);
    }

    #[inline(always)]
    fn emit(
        &mut self,
        kind: Kind,
        sequence: u64,
        bytes: u32,
        again: bool,
        now: Time,
        out: &mut impl Outlet,
    ) {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(bytes);
        out.send(Packet {
            sequence,
            timestamp: now,
            enqueued: now,
            flow: self.flow,
            wire_bytes: bytes,
            sack: NO_SACK,
            kind,
            ecn: Ecn::NotCapable,
            hop: 0,
            again,
        });
    }

    #[inline]
    fn header_bytes(&self) -> u32 {
        self.tcp.header_bytes + u32::from(self.tcp.timestamps) * TIMESTAMPS_BYTES
    }

    /// Pacing at the controller's rate, else at 2 (slow start) or 1.2 × cwnd/srtt as Linux does.
    fn pace(&mut self, bytes: u32, now: Time) {
        let rate = self.controller.pacing_rate().unwrap_or_else(|| {
            let cwnd = self.controller.cwnd();
            let gain = if cwnd < self.controller.ssthresh() / 2.0 {
                2.0
            } else {
                1.2
            };
            let bytes = gain * cwnd * f64::from(self.tcp.mss_bytes);
            Rate::from_bytes_per_second(bytes / self.rtt.srtt().seconds().max(1e-6))
        });
        self.next_departure =
            self.next_departure.max(now) + rate.transmission_time(u64::from(bytes));
    }

    // ---- whether the window was used ----

    /// Remembers, over one flight, whether the window limited the sender (as Linux's cwnd validation).
    #[inline]
    fn validate_window(&mut self, limited: bool) {
        let outstanding = self.board.outstanding();
        let new_flight = self.board.unacknowledged() >= self.usage_until;
        if new_flight || limited || (!self.window_limited && outstanding > self.most_outstanding) {
            self.window_limited = limited;
            self.most_outstanding = outstanding;
            self.usage_until = self.board.next();
        }
    }

    #[inline]
    fn is_window_limited(&self) -> bool {
        if !self.tcp.window_validation || self.window_limited {
            return true;
        }
        let slow_start = self.controller.cwnd() < self.controller.ssthresh();
        slow_start && self.controller.cwnd() < 2.0 * f64::from(self.most_outstanding)
    }

    // ---- closing ----

    fn check_end(&mut self, now: Time, out: &mut impl Outlet) {
        let total = self.workload.segments();
        let acknowledged = self.board.unacknowledged();
        if acknowledged < total {
            return;
        }
        if self.finished.is_none() {
            self.finished = Some(now);
            out.report(self.flow, Happening::Finished, f64::NAN);
        }
        if acknowledged > total {
            self.phase = Phase::Done;
            self.timers = Timers::IDLE;
        }
    }
}

/// A window in whole segments, at least one.
#[inline]
fn whole_segments(window: f64) -> u32 {
    (window as u32).max(1)
}
