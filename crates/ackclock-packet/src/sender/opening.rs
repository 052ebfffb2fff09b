//! Opening and closing a connection (RFC 9293 sections 3.5 and 3.6).

use ackclock_units::Time;

use super::timers::{Purpose, Timers};
use super::{whole_segments, Outlet, Phase, Sender};
use crate::congestion::{self, Opening};
use crate::packet::{Kind, Packet};
use crate::plan::CongestionPlan;
use crate::record::Happening;

impl Sender {
    pub(super) fn send_syn(&mut self, now: Time, out: &mut impl Outlet) {
        self.send_control(Kind::Syn, now, out);
        self.timers.set(Purpose::Timeout, now + self.rtt.rto());
    }

    pub(super) fn on_syn_timeout(&mut self, now: Time, out: &mut impl Outlet) {
        self.counters.syn_retransmissions += 1;
        out.report(self.flow, Happening::SynRetransmission, f64::NAN);
        self.rtt.backoff();
        self.send_syn(now, out);
    }

    pub(super) fn on_syn_ack(&mut self, packet: &Packet, now: Time, out: &mut impl Outlet) {
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
        } else {
            self.rtt.start_after_lost_syn();
        }
        // Linux restarts from one segment when more than one SYN was lost (RFC 5681 section 3.1 after any).
        if self.counters.syn_retransmissions > 1 {
            let CongestionPlan { kind, parameters } = &self.congestion;
            if let Ok(controller) = congestion::make(kind, parameters, 1) {
                self.controller = controller;
            }
        }
        self.controller.on_open(&Opening {
            now,
            srtt: self.rtt.srtt(),
            mss_bytes: self.tcp.mss_bytes,
            seed: self.seed,
        });
        self.window = whole_segments(self.controller.cwnd());
        self.established = Some(now);
        self.delivered_at = now;
        self.flight_start = now;
        self.workload.start(now);
        out.report(self.flow, Happening::Established, f64::NAN);
        self.transmit(now, out);
    }

    /// The application stops writing: what it has handed over is sent, then the FIN.
    pub(super) fn on_stop(&mut self, now: Time, out: &mut impl Outlet) {
        self.workload.stop_writing(self.board.next(), now);
        self.timers.application = Time::NEVER;
        if self.established.is_some() {
            self.check_end(now, out);
        }
    }

    pub(super) fn check_end(&mut self, now: Time, out: &mut impl Outlet) {
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
