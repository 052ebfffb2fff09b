//! The sender's timers. None is an event by itself: the sender names the earliest, and the
//! simulation wakes it then.
//!
//! Here are the deadlines, how ACKs restart the retransmission timer, and what its timeout does.

use ackclock_core::{jiffies, Time};

use super::recovery::RecoveryEpisode;
use super::scoreboard::{Delivery, DetectedLosses};
use super::send_reason::{BlockedBy, Trigger};
use super::{floor_segments, CaState, Outlet, Sender};
use ackclock_core::tables::EventKind;

/// Time that Linux adds to probe and reordering timers (`TCP_TIMEOUT_MIN_US`; before 6.6, and 6.1.60, two jiffies).
pub const TIMER_FLOOR: Time = Time::from_milliseconds(2);

/// Purpose of the retransmission timer; there is one at a time, as in RFC 8985 section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Retransmission timeout (RFC 6298).
    Timeout,
    /// Tail loss probe (RFC 8985 section 7.2).
    TlpProbe,
    /// RACK's reordering window (RFC 8985 section 6.3).
    Reordering,
    /// Probe of a closed window (RFC 9293 section 3.8.6.1).
    Persist,
}

/// The deadlines of a sender; [`Time::NEVER`] where there is none.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// The retransmission timer.
    pub retransmission: Time,
    /// Time at which it was set.
    pub since: Time,
    /// Its purpose.
    pub purpose: Purpose,
    /// Time at which the timeout is due, after any other purpose of the retransmission timer.
    pub timeout: Time,
    /// Time at which it expires, having been due, with jiffies.
    pub tick: Time,
    /// Time at which pacing allows the next segment, if one waits.
    pub pacing: Time,
    /// Time at which the application writes the next segment, if the sender waits for it, or stops.
    pub application: Time,
}

impl Timers {
    /// No timer runs.
    pub const IDLE: Timers = Timers {
        retransmission: Time::NEVER,
        since: Time::ZERO,
        purpose: Purpose::Timeout,
        timeout: Time::NEVER,
        tick: Time::NEVER,
        pacing: Time::NEVER,
        application: Time::NEVER,
    };

    /// The earliest deadline.
    #[inline]
    pub fn earliest(&self) -> Time {
        self.retransmission.min(self.pacing).min(self.application)
    }

    /// Start the timeout.
    #[inline]
    pub fn start(&mut self, now: Time, wait: Time) {
        self.purpose = Purpose::Timeout;
        self.since = now;
        self.timeout = now + wait;
        self.retransmission = self.timeout;
    }

    /// Use the timer for another purpose first, at most until the timeout, which is not delayed. A timeout that is past
    /// (it waits for the end of its jiffy) bounds nothing, as in Linux.
    #[inline]
    pub fn set(&mut self, purpose: Purpose, now: Time, due: Time) {
        self.purpose = purpose;
        self.since = now;
        self.retransmission = if self.timeout < now {
            due
        } else {
            due.min(self.timeout)
        };
    }

    /// Resume the timeout, which has run on. If it is past (it waited for the end of its jiffy), it is due after the
    /// shortest wait that Linux's timers know.
    #[inline]
    pub fn resume(&mut self, now: Time) {
        self.purpose = Purpose::Timeout;
        self.since = now;
        self.retransmission = if self.timeout < now {
            now + Time::from_microseconds(1)
        } else {
            self.timeout
        };
    }

    /// Start the persist timer, which runs when nothing is outstanding.
    pub fn persist(&mut self, now: Time, wait: Time) {
        self.start(now, wait);
        self.purpose = Purpose::Persist;
    }

    /// Return True if the retransmission timer, which is due, still waits for the end of a jiffy. To check then costs
    /// less than to count ticks with each ACK, which puts it off. That of reordering has counted its own.
    pub fn awaits_tick(&mut self, tick: Time, now: Time) -> bool {
        if tick == Time::ZERO || self.purpose == Purpose::Reordering || self.tick == now {
            return false;
        }
        let wait = self.retransmission.since(self.since);
        self.tick = jiffies::timer_expiry(tick, self.since, wait);
        self.retransmission = self.tick;
        self.tick > now
    }

    /// Stop the retransmission timer.
    pub fn stop(&mut self) {
        self.retransmission = Time::NEVER;
        self.timeout = Time::NEVER;
    }
}

impl Sender {
    /// Restart the timeout after an ACK: on progress, or when a SACK shows that segments sent before the first hole's
    /// last sending still arrive (Linux's rule against early timeouts). Waiting for what is overtaken does not put it
    /// off: else a hole that is not marked lost by time would never be retransmitted while others are reordered.
    #[inline(always)]
    pub(super) fn rearm(
        &mut self,
        delivery: &Delivery,
        found: &DetectedLosses,
        advanced: bool,
        now: Time,
    ) {
        if self.board.outstanding() == 0 {
            if self.stop != BlockedBy::Receiver {
                self.timers.stop();
            }
            return;
        }
        let still_arrives = || {
            let oldest = delivery.oldest_sacked;
            oldest.is_some_and(|sent| sent < self.board.head_sent())
        };
        let restarts = (advanced && !self.is_impatient()) || still_arrives();
        if let Some(due) = found.next {
            if restarts {
                self.timers.start(now, self.rtt.rto());
            }
            self.set_reordering_timer(due, now);
        } else if restarts {
            self.start_timer(now);
        } else if self.timers.purpose != Purpose::Timeout
            && !(found.unchanged && self.timers.purpose == Purpose::Reordering)
        {
            self.wait_on(now);
        }
    }

    /// Start the timeout, and the probe timer where a probe may help.
    #[inline]
    pub(super) fn start_timer(&mut self, now: Time) {
        self.timers.start(now, self.rtt.rto());
        self.wait_on(now);
    }

    /// Set the timer to the running timeout, or to a probe before it where one may help. A probe is sent no later than
    /// the timeout would expire (RFC 8985 section 7.2).
    #[inline]
    fn wait_on(&mut self, now: Time) {
        if self.can_probe() {
            self.timers
                .set(Purpose::TlpProbe, now, now + self.probe_timeout());
        } else {
            self.timers.resume(now);
        }
    }

    /// Set the reordering timer. Linux rounds it to jiffies, and to no less than 2 ms: meanwhile a third SACK may show
    /// as much (RFC 8985 section 6.3 has an exact timer). The timeout, if it is still to come and before, is not put off.
    pub(super) fn set_reordering_timer(&mut self, due: Time, now: Time) {
        let due = match self.tcp.timer_tick {
            Time::ZERO => due,
            tick => jiffies::timer_expiry(tick, now, due.since(now) + TIMER_FLOOR),
        };
        if due < self.timers.timeout || self.timers.timeout < now {
            self.timers.set(Purpose::Reordering, now, due);
        } else {
            self.timers.resume(now);
        }
    }

    /// Handle a timeout: restart from one segment (RFC 6298 section 5, RFC 5681 section 3.1).
    pub(super) fn on_timeout(&mut self, now: Time, out: &mut impl Outlet) {
        if self.board.outstanding() == 0 {
            self.timers.stop();
            return;
        }
        self.counters.timeouts += 1;
        out.report(
            self.flow,
            EventKind::Timeout,
            self.board.unacknowledged as f64,
        );
        let in_flight = self.board.in_flight();
        let head = self.board.unacknowledged;
        let repeated = self.ca_state == CaState::Loss && self.episode.timed_out == Some(head);
        self.arm_frto(repeated);
        if !repeated && !matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            self.save_prior_window(true);
        }
        self.mark_all_lost(now);
        if repeated {
            self.controller.on_repeated_timeout();
        } else {
            let now = self.controller_time(now);
            self.controller.on_timeout(now, in_flight);
            self.episode = RecoveryEpisode {
                recover: self.board.next,
                timed_out: Some(head),
                had_partial_ack: false,
            };
        }
        self.prr = None;
        self.tlp = None;
        self.queue_cwr();
        self.ca_state = CaState::Loss;
        self.window = floor_segments(self.controller.cwnd());
        self.rtt.backoff();
        self.send_lost(Trigger::Timeout, now, out);
        self.timers.start(now, self.rtt.rto());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Time = Time::from_milliseconds(10);

    #[test]
    fn an_exact_timer_expires_when_due() {
        let mut timers = Timers::IDLE;
        timers.start(Time::from_milliseconds(3), Time::from_milliseconds(200));
        let due = Time::from_milliseconds(203);
        assert_eq!(timers.retransmission, due);
        assert!(!timers.awaits_tick(Time::ZERO, due));
        assert_eq!(timers.retransmission, due);
    }

    #[test]
    fn a_jiffy_timer_counts_from_when_it_was_set() {
        let mut timers = Timers::IDLE;
        timers.start(Time::from_milliseconds(3), Time::from_milliseconds(201));
        let struck = Time::from_milliseconds(220); // 21 whole ticks after that of its setting, and one more
        assert!(timers.awaits_tick(TICK, Time::from_milliseconds(204)));
        assert_eq!(timers.retransmission, struck);
        assert!(!timers.awaits_tick(TICK, struck));
    }

    #[test]
    fn other_purposes_do_not_delay_the_timeout() {
        let mut timers = Timers::IDLE;
        timers.start(Time::ZERO, Time::from_milliseconds(200));
        timers.set(
            Purpose::TlpProbe,
            Time::from_milliseconds(50),
            Time::from_milliseconds(300),
        );
        assert_eq!(timers.retransmission, Time::from_milliseconds(200));
        timers.resume(Time::from_milliseconds(60));
        assert_eq!(timers.retransmission, Time::from_milliseconds(200));
    }

    #[test]
    fn a_timeout_that_waits_for_its_jiffy_is_not_set_in_the_past() {
        let (due, now) = (Time::from_milliseconds(204), Time::from_milliseconds(207));
        let mut timers = Timers::IDLE;
        timers.start(
            Time::from_milliseconds(3),
            due.since(Time::from_milliseconds(3)),
        );
        assert!(timers.awaits_tick(TICK, due));
        let probe = Time::from_milliseconds(250);
        timers.set(Purpose::TlpProbe, now, probe);
        assert_eq!(timers.retransmission, probe);
        timers.resume(now);
        assert_eq!(timers.retransmission, Time::from_microseconds(207_001));
        assert!(timers.awaits_tick(TICK, timers.retransmission));
        assert_eq!(timers.retransmission, Time::from_milliseconds(220));
    }
}
