//! Loss detection (by time: RACK, by count, or by duplicate ACKs), and recovery: how the sender enters and leaves
//! `Recovery`, and its window meanwhile.

use ackclock_core::Time;

use super::prr::Prr;
use super::scoreboard::{DetectedLosses, DUPLICATE_THRESHOLD};
use super::send_reason::Trigger;
use super::undo::Evidence;
use super::{floor_segments, CaState, Outlet, Sender};
use ackclock_congestion::{Loss, RecoveryPolicy};
use ackclock_core::tables::EventKind;
use ackclock_plan::{LossDetection, Reduction};

/// The present recovery episode, or the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryEpisode {
    /// The next new segment when it began (RFC 6582's *recover*); 0 before the first.
    pub recover: u64,
    /// The segment whose timeout began it.
    pub timed_out: Option<u64>,
    /// True once a partial ACK has restarted the retransmission timer.
    pub had_partial_ack: bool,
}

impl RecoveryEpisode {
    /// True if all that was sent before it is acknowledged.
    #[inline]
    pub fn is_over(&self, unacknowledged: u64) -> bool {
        unacknowledged >= self.recover
    }

    /// True if duplicate ACKs may begin another: they are not for segments sent during this one.
    pub fn allows_new(&self, unacknowledged: u64) -> bool {
        self.recover == 0 || unacknowledged > self.recover
    }
}

impl Sender {
    /// Detect losses after an ACK; `rack_update`: the ACK updates RACK.
    #[inline]
    pub(super) fn detect_losses(
        &mut self,
        evidence: &Evidence,
        rack_update: bool,
        now: Time,
        out: &mut impl Outlet,
    ) -> DetectedLosses {
        self.end_reaction(now);
        if !self.reconsider(evidence, now, out) {
            return DetectedLosses::default();
        }
        if !self.tcp.sack {
            return self.detect_by_duplicates(evidence.advanced);
        }
        match self.tcp.loss_detection {
            // As Linux: an ACK without an RTT leaves overtaken segments to the timer.
            LossDetection::Rack if !rack_update => DetectedLosses::unchanged(),
            LossDetection::Rack => {
                let window = self.reordering_window();
                self.board.detect_by_time(&self.rack, window, now)
            }
            LossDetection::DuplicateAcks => self.board.detect_by_count(),
        }
    }

    /// Detect losses by New Reno (RFC 6582): the third duplicate, and in recovery each partial ACK, shows that the
    /// first unacknowledged segment is lost. Duplicates of an old recovery do not start a new one.
    pub(super) fn detect_by_duplicates(&mut self, advanced: bool) -> DetectedLosses {
        let unacknowledged = self.board.unacknowledged;
        let losses = match self.ca_state {
            CaState::Recovery => advanced && !self.episode.is_over(unacknowledged),
            CaState::Loss => false,
            _ => {
                self.board.sacked >= DUPLICATE_THRESHOLD && self.episode.allows_new(unacknowledged)
            }
        };
        if losses {
            self.board.mark_head_lost()
        } else {
            DetectedLosses::default()
        }
    }

    pub(super) fn on_reordering_timer(&mut self, now: Time, out: &mut impl Outlet) {
        let prior_in_flight = self.board.in_flight();
        let window = self.reordering_window();
        let losses = self.board.detect_by_time(&self.rack, window, now);
        if losses.lost > 0
            && matches!(
                self.ca_state,
                CaState::Open | CaState::Disorder | CaState::Cwr
            )
        {
            self.enter_recovery(prior_in_flight, now, out);
            // As Linux, the timer counts as an ACK that delivered a segment, so a first one is sent.
            self.follow_prr(1, false);
        }
        match losses.next {
            Some(due) => self.set_reordering_timer(due, now),
            None => self.timers.resume(now),
        }
    }

    pub(super) fn mark_all_lost(&mut self, now: Time) {
        if !self.tcp.sack {
            self.board.clear_duplicates();
        }
        let rack = self.tcp.sack && self.tcp.loss_detection == LossDetection::Rack;
        let patience = self.rack.rtt;
        self.board
            .mark_all_lost(|sent| rack && sent + patience > now);
    }

    pub(super) fn change_state(&mut self, prior_in_flight: u32, now: Time, out: &mut impl Outlet) {
        match self.ca_state {
            // Losses detected above the end of a recovery start the next one (as in Linux).
            CaState::Open | CaState::Disorder | CaState::Cwr if self.board.lost > 0 => {
                self.enter_recovery(prior_in_flight, now, out);
            }
            CaState::Open | CaState::Disorder => {
                let in_order = self.board.is_clean();
                self.ca_state = if in_order {
                    CaState::Open
                } else {
                    CaState::Disorder
                };
            }
            _ => {}
        }
    }

    /// Retransmit a partial ACK's hole regardless of the window, without SACK (RFC 6582 section 3.2).
    pub(super) fn retransmit_hole(
        &mut self,
        found: &DetectedLosses,
        now: Time,
        out: &mut impl Outlet,
    ) {
        if !self.tcp.sack && self.ca_state == CaState::Recovery && found.lost > 0 {
            self.send_lost(Trigger::Window, now, out);
        }
    }

    /// True in a recovery whose timer runs on since the first partial ACK (RFC 6582 section 3.2, step 3; the Impatient
    /// variant of its section 4).
    #[inline]
    pub(super) fn is_impatient(&self) -> bool {
        self.episode.had_partial_ack && self.ca_state == CaState::Recovery
    }

    /// Record a partial ACK, the first of which has restarted the timer.
    #[inline]
    pub(super) fn note_partial_ack(&mut self, advanced: bool) {
        let impatient = self.tcp.impatient && !self.tcp.sack;
        self.episode.had_partial_ack |= impatient && advanced && self.ca_state == CaState::Recovery;
    }

    /// Set the window that proportional rate reduction allows, during a reduction.
    pub(super) fn follow_prr(&mut self, delivered: u32, progress: bool) {
        let in_flight = self.board.in_flight();
        if let Some(prr) = &mut self.prr {
            self.window = prr.on_ack(delivered, in_flight, progress);
        }
    }

    pub(super) fn enter_recovery(&mut self, in_flight: u32, now: Time, out: &mut impl Outlet) {
        let was_reduced = self.ca_state == CaState::Cwr;
        let prior_window = floor_segments(self.controller.cwnd());
        self.save_prior_window(!was_reduced);
        self.ca_state = CaState::Recovery;
        self.episode = RecoveryEpisode {
            recover: self.board.next,
            timed_out: None,
            had_partial_ack: false,
        };
        self.tlp = None;
        self.counters.recoveries += 1;
        out.report(
            self.flow,
            EventKind::Recovery,
            self.board.unacknowledged as f64,
        );
        if was_reduced {
            self.on_loss_in_cwr(in_flight, now);
        } else {
            self.reduce(in_flight, now);
        }
        let target = floor_segments(self.controller.cwnd());
        match (
            self.controller.recovery_policy(),
            self.tcp.recovery_reduction,
        ) {
            (RecoveryPolicy::Controller, _) => {}
            (RecoveryPolicy::SlowStart, _) => self.restart_from_one(now, out),
            (RecoveryPolicy::Stack, Reduction::Prr) => match &mut self.prr {
                Some(prr) if was_reduced => prr.aim(target),
                _ => {
                    self.prr = Some(Prr::new(target, prior_window));
                    self.window = target;
                }
            },
            (RecoveryPolicy::Stack, Reduction::Immediate) => {
                self.window = target;
                self.send_lost(Trigger::Window, now, out);
            }
        }
    }

    pub(super) fn reduce(&mut self, in_flight: u32, now: Time) {
        self.queue_cwr();
        let loss = self.loss_at(in_flight, now);
        self.controller.on_loss(&loss);
    }

    pub(super) fn loss_at(&self, in_flight: u32, now: Time) -> Loss {
        Loss {
            now: self.controller_time(now),
            in_flight,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            delivered: self.rates.delivered,
            marked: false,
        }
    }

    /// Restart from the first segment in slow start: everything outstanding counts as lost
    /// (Jacobson 1988, section 4 in the code of 4.3BSD-Tahoe).
    fn restart_from_one(&mut self, now: Time, out: &mut impl Outlet) {
        self.mark_all_lost(now);
        self.prr = None;
        self.ca_state = CaState::Loss;
        self.window = floor_segments(self.controller.cwnd());
        self.send_lost(Trigger::Window, now, out);
    }

    pub(super) fn leave_recovery(&mut self, now: Time) {
        if self.ca_state == CaState::Recovery {
            let now = self.controller_time(now);
            self.controller.on_recovered(now, self.ack_rtt);
        }
        self.ca_state = CaState::Open;
        self.prr = None;
        if !self.tcp.sack {
            self.board.clear_duplicates();
        }
    }
}
