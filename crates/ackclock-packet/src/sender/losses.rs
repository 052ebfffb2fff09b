//! What is taken for lost, and what the sender does about it.

use ackclock_units::Time;

use super::recovery::Prr;
use super::scoreboard::{Found, DUPLICATE_THRESHOLD};
use super::{whole_segments, Outlet, Phase, Sender};
use crate::plan::{LossDetection, Reduction};
use crate::record::Happening;
use ackclock_congestion::{Loss, Repair};

impl Sender {
    #[inline]
    pub(super) fn detect_losses(&mut self, advanced: bool, now: Time) -> Found {
        if self.phase == Phase::Open && self.board.is_clean() {
            return Found::default();
        }
        self.end_reaction(now);
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if repairing && self.board.unacknowledged() >= self.recovery_end {
            self.leave_recovery(now);
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
    pub(super) fn detect_by_duplicates(&mut self, advanced: bool) -> Found {
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
    pub(super) fn reordering_window(&self) -> Time {
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if repairing || self.board.sacked() >= DUPLICATE_THRESHOLD {
            Time::ZERO
        } else {
            self.rtt.min_rtt().scaled(0.25).min(self.rtt.srtt())
        }
    }

    pub(super) fn change_state(&mut self, prior_in_flight: u32, now: Time, out: &mut impl Outlet) {
        match self.phase {
            // What was found lost in an old recovery, beyond its end, starts the next one (as in Linux).
            Phase::Open | Phase::Disorder | Phase::Reduced if self.board.lost() > 0 => {
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
    }

    /// RFC 6582 section 3.2: without SACK a partial ACK's hole is repaired whatever the window.
    pub(super) fn repair_hole(&mut self, found: &Found, now: Time, out: &mut impl Outlet) {
        if !self.tcp.sack && self.phase == Phase::Recovery && found.lost > 0 {
            self.send_lost(now, out);
        }
    }

    /// Sets the window that proportional rate reduction allows, if a reduction is under way.
    pub(super) fn follow_prr(&mut self, delivered: u32, progress: bool) {
        let in_flight = self.board.in_flight();
        if let Some(prr) = &mut self.prr {
            self.window = prr.on_ack(delivered, in_flight, progress);
        }
    }

    pub(super) fn enter_recovery(&mut self, in_flight: u32, now: Time, out: &mut impl Outlet) {
        let was_reduced = self.phase == Phase::Reduced;
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
        if was_reduced {
            self.lose_while_reduced(in_flight, now);
        } else {
            self.reduce(in_flight, now);
        }
        let target = whole_segments(self.controller.cwnd());
        match (self.controller.repair(), self.tcp.reduction) {
            (Repair::Controller, _) => {}
            (Repair::FromStart, _) => self.start_over(now, out),
            (Repair::Stack, Reduction::Prr) => match &mut self.prr {
                Some(prr) if was_reduced => prr.aim(target),
                _ => {
                    self.prr = Some(Prr::new(target, prior_window));
                    self.window = target;
                }
            },
            (Repair::Stack, Reduction::Immediate) => {
                self.window = target;
                self.send_lost(now, out);
            }
        }
    }

    pub(super) fn reduce(&mut self, in_flight: u32, now: Time) {
        self.announce_reduction();
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss(&loss);
    }

    pub(super) fn loss_at(&self, in_flight: u32, now: Time) -> Loss {
        Loss {
            now,
            in_flight,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            delivered: self.delivered,
            marked: false,
        }
    }

    /// Everything outstanding counts as lost and is sent again from the first segment on, in slow start
    /// (Jacobson 1988, section 4 in the code of 4.3BSD-Tahoe).
    fn start_over(&mut self, now: Time, out: &mut impl Outlet) {
        self.mark_all_lost(now);
        self.prr = None;
        self.phase = Phase::Loss;
        self.window = whole_segments(self.controller.cwnd());
        self.send_lost(now, out);
    }

    pub(super) fn leave_recovery(&mut self, now: Time) {
        if self.phase == Phase::Recovery {
            self.controller.on_recovered(now);
        }
        self.phase = Phase::Open;
        self.prr = None;
        if !self.tcp.sack {
            self.board.clear_duplicates();
        }
    }
}
