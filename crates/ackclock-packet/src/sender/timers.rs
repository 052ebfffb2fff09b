//! The sender's timers. None is an event by itself: the sender names the earliest, and the
//! simulation wakes it then.

use ackclock_units::Time;

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
