//! The sender's timers. None is an event by itself: the sender names the earliest, and the
//! simulation wakes it then.
//!
//! Here are the deadlines, how ACKs restart the retransmission timer, and what its timeout does.

use ackclock_units::Time;

use super::explaining::Trigger;
use super::recovery::Episode;
use super::scoreboard::{Delivery, Found};
use super::{whole_segments, Outlet, Phase, Sender};
use ackclock_record::Happening;

/// What the retransmission timer waits for; there is one at a time, as in RFC 8985 section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Retransmission timeout (RFC 6298).
    Timeout,
    /// Tail loss probe (RFC 8985 section 7.2).
    Probe,
    /// RACK's reordering window (RFC 8985 section 6.3).
    Reordering,
}

/// The deadlines of a sender; [`Time::NEVER`] where there is none.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// The retransmission timer.
    pub retransmission: Time,
    /// What it is for.
    pub purpose: Purpose,
    /// When pacing lets the next segment go, if one waits.
    pub pacing: Time,
    /// When the application writes the next segment, if the sender waits for it, or stops.
    pub application: Time,
}

impl Timers {
    /// No timer runs.
    pub const IDLE: Timers = Timers {
        retransmission: Time::NEVER,
        purpose: Purpose::Timeout,
        pacing: Time::NEVER,
        application: Time::NEVER,
    };

    /// The earliest deadline.
    #[inline]
    pub fn earliest(&self) -> Time {
        self.retransmission.min(self.pacing).min(self.application)
    }

    /// Starts the retransmission timer.
    #[inline]
    pub fn set(&mut self, purpose: Purpose, due: Time) {
        self.purpose = purpose;
        self.retransmission = due;
    }

    /// Stops the retransmission timer.
    pub fn stop(&mut self) {
        self.retransmission = Time::NEVER;
    }
}

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
        let repeated = self.phase == Phase::Loss && self.episode.timed_out == Some(head);
        self.arm_frto(repeated);
        if !repeated && !matches!(self.phase, Phase::Recovery | Phase::Reduced) {
            self.remember(true);
        }
        self.mark_all_lost(now);
        if !repeated {
            self.controller.on_timeout(now, in_flight);
            self.episode = Episode {
                end: self.board.next(),
                timed_out: Some(head),
            };
        }
        self.prr = None;
        self.probe = None;
        self.announce_reduction();
        self.phase = Phase::Loss;
        self.window = whole_segments(self.controller.cwnd());
        self.rtt.backoff();
        self.send_lost(Trigger::Timeout, now, out);
        self.timers.set(Purpose::Timeout, now + self.rtt.rto());
    }
}
