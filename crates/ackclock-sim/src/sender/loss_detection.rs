//! Loss detection: by time (RACK), by count, or by duplicate ACKs.

use ackclock_core::{jiffies, Time};
use ackclock_plan::LossDetection;

use super::scoreboard::{DetectedLosses, DUPLICATE_THRESHOLD};
use super::timers::{Purpose, TIMER_FLOOR};
use super::undo::Evidence;
use super::{CaState, Outlet, Sender};

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

    /// Set the reordering timer. Linux rounds it to jiffies, and to no less than 2 ms: meanwhile a third SACK may show
    /// as much (RFC 8985 section 6.3 has an exact timer). The timeout, if it is due before, is not put off.
    pub(super) fn set_reordering_timer(&mut self, due: Time, now: Time) {
        let due = match self.tcp.timer_tick {
            Time::ZERO => due,
            tick => jiffies::timer_expiry(tick, now, due.since(now) + TIMER_FLOOR),
        };
        if due < self.timers.timeout {
            self.timers.set(Purpose::Reordering, now, due);
        } else {
            self.timers.resume(now);
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
}
