//! What is taken for lost: by time (RACK), by count, or by duplicate ACKs.

use ackclock_core::{jiffies, Time};
use ackclock_plan::LossDetection;

use super::scoreboard::{Found, DUPLICATE_THRESHOLD};
use super::timers::{Purpose, TIMER_FLOOR};
use super::undoing::Evidence;
use super::{Outlet, Phase, Sender};

impl Sender {
    /// `heard`: the ACK lets RACK hear of a segment.
    #[inline]
    pub(super) fn detect_losses(
        &mut self,
        evidence: &Evidence,
        heard: bool,
        now: Time,
        out: &mut impl Outlet,
    ) -> Found {
        self.end_reaction(now);
        if !self.reconsider(evidence, now, out) {
            return Found::default();
        }
        if !self.tcp.sack {
            return self.detect_by_duplicates(evidence.advanced);
        }
        match self.tcp.loss_detection {
            // As Linux: an ACK that tells nothing of times leaves what is overtaken to the timer.
            LossDetection::Rack if !heard => Found::unchanged(),
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
        let unacknowledged = self.board.unacknowledged();
        let found = match self.phase {
            Phase::Recovery => advanced && !self.episode.is_over(unacknowledged),
            Phase::Loss => false,
            _ => {
                self.board.sacked() >= DUPLICATE_THRESHOLD
                    && self.episode.lets_begin(unacknowledged)
            }
        };
        if found {
            self.board.lose_head()
        } else {
            Found::default()
        }
    }

    /// Linux sets the reordering timer by the clock's ticks, and for no less than 2 ms: meanwhile a third SACK may tell as
    /// much (RFC 8985 section 6.3 has an exact timer). The timeout, if it is due before, is not put off.
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
        let found = self.board.detect_by_time(&self.rack, window, now);
        if found.lost > 0 && matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Reduced) {
            self.enter_recovery(prior_in_flight, now, out);
            // As Linux, the timer stands for an ACK that delivered a segment: a first one goes out.
            self.follow_prr(1, false);
        }
        match found.next {
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
        self.board.lose_all(|sent| rack && sent + patience > now);
    }
}
