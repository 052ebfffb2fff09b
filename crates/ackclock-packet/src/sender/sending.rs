//! What may be sent now, and whether the window was used.

use ackclock_units::Time;

use super::batches::Turn;
use super::scoreboard::Sending;
use super::timers::Purpose;
use super::{whole_segments, Outlet, Phase, Sender};
use crate::options;
use crate::packet::{Flags, Kind, Packet, NO_SACK};
use crate::record::Happening;
use ackclock_congestion::Restart;

impl Sender {
    /// Sends what the window, the receiver, the application and pacing allow: first what is lost,
    /// then new segments.
    #[inline(always)]
    pub(super) fn transmit(&mut self, now: Time, out: &mut impl Outlet) {
        if !self.is_open() {
            return;
        }
        let was_idle = self.board.outstanding() == 0;
        if was_idle {
            self.restart(now);
        }
        let before = self.counters.sent_packets;
        let limited = self.fill_window(now, out);
        if self.counters.sent_packets > before || limited {
            self.validate_window(limited || self.board.in_flight() >= self.window);
        }
        if was_idle && self.board.outstanding() > 0 {
            self.start_timer(now);
        }
    }

    /// Whether the connection is established and not over.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        !matches!(
            self.phase,
            Phase::Closed | Phase::SynSent | Phase::Listen | Phase::SynReceived | Phase::Done
        )
    }

    /// Sends until something holds the sender back; tells whether it was the window.
    #[inline(always)]
    fn fill_window(&mut self, now: Time, out: &mut impl Outlet) -> bool {
        self.batch.cut();
        loop {
            if self.occupied() >= self.window {
                return true;
            }
            let lost = self.board.next_lost();
            if lost.is_none() && !self.has_new(now) {
                self.note_bubble(now);
                return false;
            }
            match self.turn(lost.is_none(), now) {
                Turn::Now => {}
                Turn::Later => {
                    self.timers.pacing = self.batch.next_departure();
                    return false;
                }
                Turn::Gather => return true,
            }
            match lost {
                Some(sequence) => self.resend(sequence, now, out),
                None => self.send_new(now, out),
            }
        }
    }

    /// Nothing is in flight: a new flight begins, and the controller hears of the idle time before it.
    fn restart(&mut self, now: Time) {
        self.flight_start = now;
        self.delivered_at = now;
        if self.last_sent == Time::ZERO || !self.has_new(now) {
            return;
        }
        self.controller.on_restart(&Restart {
            now,
            idle_since: self.last_sent,
            rto: self.rtt.rto(),
            initial_window: self.tcp.initial_window,
        });
        self.window = whole_segments(self.controller.cwnd());
    }

    /// Segments that count against the window. RFC 3042 lets SACKed segments make room for new ones;
    /// without limited transmit they do so only in recovery.
    #[inline]
    pub(super) fn occupied(&self) -> u32 {
        if self.phase == Phase::Disorder && !self.tcp.limited_transmit {
            self.board.outstanding()
        } else {
            self.board.in_flight()
        }
    }

    /// Whether a new segment may be sent: written by the application, within the receive window.
    #[inline]
    pub(super) fn has_new(&mut self, now: Time) -> bool {
        let next = self.board.next();
        if next >= self.board.unacknowledged() + self.receive_window {
            return false;
        }
        if next < self.workload.available(now) {
            return true;
        }
        if !self.workload.is_fin(next) && next < self.workload.segments() {
            let written = self.workload.written_at(next);
            self.timers.application = written.min(self.workload.stop());
        }
        false
    }

    /// The application has nothing to send though the window has room: until what is in flight now has
    /// been delivered, the delivery rate is the application's (draft-cheng-iccrg-delivery-rate-estimation
    /// section 3.4).
    fn note_bubble(&mut self, now: Time) {
        if self.board.next() >= self.workload.available(now) {
            let in_flight = u64::from(self.board.in_flight());
            self.application_limited_until = self.delivered + in_flight + 1;
        }
    }

    #[inline]
    pub(super) fn sending(&self, now: Time) -> Sending {
        Sending {
            now,
            flight_start: self.flight_start,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            application_limited: self.delivered < self.application_limited_until,
        }
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Time, out: &mut impl Outlet) {
        let sending = self.sending(now);
        let sequence = self.board.send_next(&sending);
        self.send_segment(sequence, false, now, out);
    }

    pub(super) fn resend(&mut self, sequence: u64, now: Time, out: &mut impl Outlet) {
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
    pub(super) fn send_lost(&mut self, now: Time, out: &mut impl Outlet) {
        if let Some(sequence) = self.board.next_lost() {
            self.resend(sequence, now, out);
        }
    }

    #[inline(always)]
    pub(super) fn send_segment(
        &mut self,
        sequence: u64,
        again: bool,
        now: Time,
        out: &mut impl Outlet,
    ) {
        let kind = if self.workload.is_fin(sequence) {
            Kind::Fin
        } else {
            Kind::Data
        };
        let payload = self.workload.payload_bytes(sequence) as u32;
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        if self.paced {
            self.pace(sequence, payload, now);
        }
        self.last_sent = now;
        self.emit(
            kind,
            sequence,
            payload + options::header_bytes(&self.tcp),
            again,
            now,
            out,
        );
    }

    pub(super) fn send_control(&mut self, kind: Kind, now: Time, out: &mut impl Outlet) {
        let bytes = match kind {
            Kind::Syn | Kind::ServerSynAck => options::syn_header_bytes(&self.tcp),
            _ => options::header_bytes(&self.tcp),
        };
        let again = kind.opens() && self.opening_repeats > 0;
        self.emit(kind, 0, bytes, again, now, out);
    }

    #[inline(always)]
    pub(super) fn emit(
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
        let carries_data = matches!(kind, Kind::Data | Kind::Fin);
        let (ecn, flags) = if carries_data {
            (self.ecn_of(again), self.flags_of(again))
        } else {
            (self.tcp.ecn.of_control(), Flags::repeating(again))
        };
        out.send(Packet {
            sequence,
            timestamp: now,
            enqueued: now,
            flow: self.flow,
            wire_bytes: bytes,
            sack: NO_SACK,
            kind,
            ecn,
            hop: 0,
            flags,
        });
    }

    /// Remembers, over one flight, whether the window limited the sender (as Linux's cwnd validation).
    #[inline]
    pub(super) fn validate_window(&mut self, limited: bool) {
        let outstanding = self.board.outstanding();
        let new_flight = self.board.unacknowledged() >= self.usage_until;
        if new_flight || limited || (!self.window_limited && outstanding > self.most_outstanding) {
            self.window_limited = limited;
            self.most_outstanding = outstanding;
            self.usage_until = self.board.next();
        }
    }

    #[inline]
    pub(super) fn is_window_limited(&self) -> bool {
        if !self.tcp.window_validation || self.window_limited {
            return true;
        }
        let slow_start = self.controller.cwnd() < self.controller.ssthresh();
        slow_start && self.controller.cwnd() < 2.0 * f64::from(self.most_outstanding)
    }
}
