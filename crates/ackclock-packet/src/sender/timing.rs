//! Retransmission timeout, tail loss probe and reordering timer.

use ackclock_plan::LossDetection;
use ackclock_record::Happening;
use ackclock_units::Time;

use super::scoreboard::{Delivery, Found};
use super::timers::Purpose;
use super::{whole_segments, Outlet, Phase, Sender};
use crate::packet::{Packet, NO_SACK};

/// Least ticks of the reordering timer (Linux: `TCP_TIMEOUT_MIN`).
const LEAST_TICKS: u64 = 2;

impl Sender {
    /// Restarts the retransmission timer after an ACK: on progress, or when a SACK shows that what was
    /// sent before the first hole's last sending still arrives (Linux's rule against early timeouts).
    #[inline]
    pub(super) fn rearm(&mut self, delivery: &Delivery, found: &Found, advanced: bool, now: Time) {
        if self.board.outstanding() == 0 {
            self.timers.stop();
            return;
        }
        if let Some(due) = found.next {
            self.set_reordering_timer(due, now);
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

    /// Starts the probe timer where a probe may help, else the retransmission timeout. A probe goes out
    /// no later than the timeout would strike (RFC 8985 section 7.2).
    #[inline]
    pub(super) fn start_timer(&mut self, now: Time) {
        let timeout = now + self.rtt.rto();
        if self.may_probe() {
            let probe = now + self.probe_timeout();
            self.timers.set(Purpose::Probe, probe.min(timeout));
        } else {
            self.timers.set(Purpose::Timeout, timeout);
        }
    }

    #[inline]
    pub(super) fn may_probe(&self) -> bool {
        self.tcp.tail_loss_probe
            && self.tcp.sack
            && matches!(self.phase, Phase::Open | Phase::Reduced)
            && self.probe_end.is_none()
            && self.rtt.has_sample()
    }

    /// RFC 8985 section 7.2: 2 SRTT, and for a single segment in flight the worst delayed ACK more
    /// (Linux: the RTO's floor).
    pub(super) fn probe_timeout(&self) -> Time {
        let twice = self.rtt.srtt() + self.rtt.srtt();
        if self.board.outstanding() == 1 {
            twice + self.tcp.min_rto
        } else {
            twice + Time::from_milliseconds(2)
        }
    }

    /// RFC 8985 section 7.3: probe with a new segment, or else with the last one again.
    pub(super) fn on_probe_timer(&mut self, now: Time, out: &mut impl Outlet) {
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

    /// RFC 8985 section 7.4.2: once the probe is acknowledged, was it a repetition that repaired a loss?
    /// Not if a duplicate is reported, by SACK or by a plain duplicate ACK; yes if the ACK goes beyond.
    pub(super) fn settle_probe(&mut self, packet: &Packet, advanced: bool, now: Time) {
        let Some(end) = self.probe_end else { return };
        if packet.sequence < end {
            return;
        }
        let beyond = packet.sequence > end;
        let duplicate = packet.again() || (!advanced && packet.sack == NO_SACK);
        if !self.probe_repeated || duplicate || beyond {
            self.probe_end = None;
        }
        let repaired = self.probe_repeated && beyond && !packet.again();
        if repaired && matches!(self.phase, Phase::Open | Phase::Disorder) {
            self.reduce(self.board.in_flight() + 1, now);
            self.controller.on_recovered(now);
        }
    }

    /// Linux sets the reordering timer by the clock's ticks, two more than it takes: meanwhile a third SACK may tell
    /// as much (RFC 8985 section 6.3 has an exact timer).
    fn set_reordering_timer(&mut self, due: Time, now: Time) {
        let tick = self.tcp.timer_tick.picoseconds();
        let due = now.picoseconds().checked_div(tick).map_or(due, |passed| {
            let ticks = passed + due.since(now).picoseconds().div_ceil(tick) + LEAST_TICKS;
            Time::from_picoseconds(ticks * tick)
        });
        self.timers.set(Purpose::Reordering, due);
    }

    pub(super) fn on_reordering_timer(&mut self, now: Time, out: &mut impl Outlet) {
        let prior_in_flight = self.board.in_flight();
        let window = self.reordering_window();
        let found = self.board.detect_by_time(&self.rack, window, now);
        if found.lost > 0 && matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Reduced) {
            self.enter_recovery(prior_in_flight, now, out);
            // As Linux, the timer stands for an ACK that delivered a segment: a first one goes out.
            self.follow_prr(1, false);
        }
        match found.next {
            Some(due) => self.set_reordering_timer(due, now),
            None => self.timers.set(Purpose::Timeout, now + self.rtt.rto()),
        }
    }

    /// RFC 6298 section 5, RFC 5681 section 3.1: start again from one segment.
    pub(super) fn on_timeout(&mut self, now: Time, out: &mut impl Outlet) {
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
        let head = self.board.unacknowledged();
        let repeated = self.phase == Phase::Loss && self.timed_out == Some(head);
        self.mark_all_lost(now);
        if !repeated {
            self.controller.on_timeout(now, in_flight);
            self.recovery_end = self.board.next();
            self.timed_out = Some(head);
        }
        self.prr = None;
        self.probe_end = None;
        self.announce_reduction();
        self.phase = Phase::Loss;
        self.window = whole_segments(self.controller.cwnd());
        self.rtt.backoff();
        self.send_lost(now, out);
        self.timers.set(Purpose::Timeout, now + self.rtt.rto());
    }

    pub(super) fn mark_all_lost(&mut self, now: Time) {
        if !self.tcp.sack {
            self.board.clear_duplicates();
        }
        let rack = self.tcp.sack && self.tcp.loss_detection == LossDetection::Rack;
        let patience = self.rack.rtt;
        self.board.lose_all(|sent| rack && sent + patience > now);
    }
}
