//! Repairing losses: how the sender enters and leaves `Recovery`, and the window meanwhile.

use ackclock_units::Time;

use super::explaining::Trigger;
use super::prr::Prr;
use super::scoreboard::Found;
use super::{whole_segments, Outlet, Phase, Sender};
use ackclock_congestion::{Loss, Repair};
use ackclock_plan::Reduction;
use ackclock_record::Happening;

/// The present repair of losses, or the last one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Episode {
    /// The next new segment when it began (RFC 6582's *recover*); 0 before the first.
    pub end: u64,
    /// The segment whose timeout began it.
    pub timed_out: Option<u64>,
}

impl Episode {
    /// Whether all that was sent before it is acknowledged.
    #[inline]
    pub fn is_over(&self, unacknowledged: u64) -> bool {
        unacknowledged >= self.end
    }

    /// Whether duplicate ACKs may begin another: they are not of segments sent during this one.
    pub fn lets_begin(&self, unacknowledged: u64) -> bool {
        self.end == 0 || unacknowledged > self.end
    }
}

impl Sender {
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
            self.send_lost(Trigger::Window, now, out);
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
        self.remember(!was_reduced);
        self.phase = Phase::Recovery;
        self.episode = Episode {
            end: self.board.next(),
            timed_out: None,
        };
        self.probe = None;
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
        match (self.controller.repair(), self.tcp.recovery_reduction) {
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
                self.send_lost(Trigger::Window, now, out);
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
            delivered: self.rates.delivered,
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
        self.send_lost(Trigger::Window, now, out);
    }

    pub(super) fn leave_recovery(&mut self, now: Time) {
        if self.phase == Phase::Recovery {
            self.controller.on_recovered(now, self.heard_rtt);
        }
        self.phase = Phase::Open;
        self.prr = None;
        if !self.tcp.sack {
            self.board.clear_duplicates();
        }
    }
}
