//! Opening and closing a connection (RFC 9293 sections 3.5 and 3.6).

use std::sync::Arc;

use ackclock_core::Time;

use super::timers::Timers;
use super::{floor_segments, CaState, Outlet, Sender};
use crate::packet::{Kind, Packet};
use ackclock_congestion::{Opening, Prototype};
use ackclock_core::tables::EventKind;

/// State of the handshake.
pub struct Handshake {
    /// Prototype of the controller.
    pub prototype: Arc<Prototype>,
    /// Seed of the controller's random choices.
    pub seed: u64,
    /// Bytes of the receiver's request, if it opens the connection.
    pub request_bytes: Option<u32>,
    /// Retransmitted SYNs or SYN/ACKs.
    pub retransmissions: u32,
}

impl Sender {
    pub(super) fn send_syn(&mut self, now: Time, out: &mut impl Outlet) {
        self.send_control(Kind::Syn, now, out);
        self.timers.start(now, self.rtt.rto());
    }

    pub(super) fn on_syn_timeout(&mut self, now: Time, out: &mut impl Outlet) {
        self.counters.syn_retransmissions += 1;
        self.handshake.retransmissions += 1;
        out.report(self.flow, EventKind::SynRetransmission, f64::NAN);
        self.rtt.backoff();
        self.send_syn(now, out);
    }

    #[cold]
    pub(super) fn on_syn_ack(&mut self, packet: &Packet, now: Time, out: &mut impl Outlet) {
        if self.ca_state == CaState::Closed {
            return;
        }
        self.send_control(Kind::LastAck, now, out);
        if self.ca_state != CaState::SynSent {
            return;
        }
        self.sample_handshake(packet, now);
        self.open(now, out);
    }

    // ---- the receiver opens the connection: see `receiver/client.rs` ----

    /// Reply to a SYN, also to a repeated one, and restart the timer.
    #[cold]
    pub(super) fn on_client_syn(&mut self, now: Time, out: &mut impl Outlet) {
        if self.ca_state == CaState::Listen {
            self.ca_state = CaState::SynReceived;
        } else if self.ca_state == CaState::SynReceived {
            self.handshake.retransmissions += 1;
        } else {
            return;
        }
        self.send_syn_ack(now, out);
    }

    #[cold]
    pub(super) fn on_syn_ack_timeout(&mut self, now: Time, out: &mut impl Outlet) {
        self.handshake.retransmissions += 1;
        self.rtt.backoff();
        self.send_syn_ack(now, out);
    }

    fn send_syn_ack(&mut self, now: Time, out: &mut impl Outlet) {
        self.send_control(Kind::ServerSynAck, now, out);
        self.timers.start(now, self.rtt.rto());
    }

    /// Handle an ACK of the SYN/ACK: a request with bytes is lost.
    #[cold]
    pub(super) fn on_handshake_ack(&mut self, packet: &Packet, now: Time, out: &mut impl Outlet) {
        self.sample_handshake(packet, now);
        if self.handshake.request_bytes == Some(0) {
            self.open(now, out);
        }
    }

    #[cold]
    pub(super) fn on_request(&mut self, packet: &Packet, now: Time, out: &mut impl Outlet) {
        if self.ca_state == CaState::SynReceived {
            self.sample_handshake(packet, now);
            self.open(now, out);
        }
    }

    // ---- both ----

    /// Take the first RTT sample from the handshake (RFC 6298 section 2.2), unless Karn's rule forbids it.
    fn sample_handshake(&mut self, packet: &Packet, now: Time) {
        self.timers.stop();
        if self.rtt.has_sample() {
            return;
        }
        self.rtt.reset_backoff();
        if self.tcp.timestamps || self.handshake.retransmissions == 0 {
            let rtt = now.since(packet.timestamp);
            self.rtt.observe_minimum(now, rtt);
            self.rtt.sample(rtt, 0, 0);
        } else {
            self.rtt.start_after_lost_syn();
        }
    }

    #[cold]
    fn open(&mut self, now: Time, out: &mut impl Outlet) {
        self.ca_state = CaState::Open;
        // Linux restarts from one segment when more than one SYN was lost (RFC 5681 section 3.1 after any).
        if self.handshake.retransmissions > 1 {
            self.controller = self.handshake.prototype.after_lost_syns();
        }
        self.controller.on_established(&Opening {
            now,
            srtt: self.rtt.srtt(),
            mss_bytes: self.tcp.mss_bytes,
            seed: self.handshake.seed,
        });
        self.window = floor_segments(self.controller.cwnd());
        self.established = Some(now);
        self.rates.begin_flight(now);
        self.workload.start(now);
        self.report_opening(EventKind::Established, out);
        self.transmit(now, out);
    }

    /// Report establishment or completion, unless there is a client, which reports them.
    fn report_opening(&mut self, kind: EventKind, out: &mut impl Outlet) {
        if self.handshake.request_bytes.is_none() {
            out.report(self.flow, kind, f64::NAN);
        }
    }

    /// Stop the application: what it has written is sent, then the FIN.
    #[cold]
    pub(super) fn on_stop(&mut self, now: Time, out: &mut impl Outlet) {
        let taken = self.taken();
        self.workload.stop_writing(taken, now);
        self.timers.application = Time::NEVER;
        if self.established.is_some() {
            self.check_end(now, out);
        }
    }

    pub(super) fn check_end(&mut self, now: Time, out: &mut impl Outlet) {
        let total = self.workload.segments;
        let acknowledged = self.board.unacknowledged;
        if acknowledged < total {
            return;
        }
        if self.finished.is_none() {
            self.finished = Some(now);
            self.report_opening(EventKind::Finished, out);
        }
        if acknowledged >= self.workload.end {
            self.ca_state = CaState::Done;
            self.timers = Timers::IDLE;
        }
    }
}
