//! What RACK learns from an ACK (RFC 8985 section 6.2, step 2): it hears each segment that is newly acknowledged or
//! SACKed, and its RTT is that of the last one heard. A hole that is filled late makes it patient.
//!
//! As Linux: the segments SACKed are heard first, in their order, then those cumulatively acknowledged.

use ackclock_core::Time;

use super::Delivery;
use crate::options::timestamp;

/// RACK's knowledge (RFC 8985 section 5.2): the most recently sent segment that was delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rack {
    /// When it was sent.
    pub sent: Time,
    /// Its number.
    pub sequence: u64,
    /// The RTT of the segment heard last.
    pub rtt: Time,
}

impl Rack {
    /// Takes in what an ACK lets it hear; tells whether that is anything.
    #[inline]
    pub fn advance(&mut self, delivery: &Delivery, now: Time) -> bool {
        let (last, sent, sequence) = match (&delivery.rack_update, &delivery.latest) {
            (Some(rack_update), _) if rack_update.highest != 0 => {
                (rack_update.last, rack_update.sent, rack_update.sequence)
            }
            (None, Some(latest)) => (latest.sent, latest.sent, latest.sequence),
            _ => return false,
        };
        self.rtt = now.since(last);
        if !self.has_overtaken(sent, sequence) {
            (self.sent, self.sequence) = (sent, sequence);
        }
        true
    }

    #[inline]
    pub(super) fn has_overtaken(&self, sent: Time, sequence: u64) -> bool {
        (sent, sequence) < (self.sent, self.sequence)
    }
}

/// What an ACK lets RACK hear, and what it may believe of segments that were sent again. An ACK without SACKs of segments
/// that were sent once, as nearly all are, needs none: RACK hears the last of them.
#[derive(Clone, Copy, Debug)]
pub struct RackUpdate {
    /// Their RTT is below the smallest if they were sent after this: the ACK answers an earlier sending.
    trusted_until: Time,
    /// The timestamp echoed: what was sent again after it is acknowledged for an earlier sending.
    echo: Option<Time>,
    /// Last sending of the one heard last.
    last: Time,
    /// Its number and one, if it was SACKed: a higher one is heard later. 0 as long as nothing is heard.
    highest: u64,
    /// The most recent sending of all.
    sent: Time,
    /// Whose that was.
    sequence: u64,
}

/// A cumulative ACK is heard after all SACKs.
const AFTER_ALL: u64 = u64::MAX;

impl RackUpdate {
    /// Nothing yet; see the fields.
    #[inline]
    pub fn new(trusted_until: Time, echo: Option<Time>) -> RackUpdate {
        RackUpdate {
            trusted_until,
            echo,
            last: Time::ZERO,
            highest: 0,
            sent: Time::ZERO,
            sequence: 0,
        }
    }

    /// A segment that was sent once is cumulatively acknowledged.
    #[inline]
    pub(super) fn acknowledged(&mut self, sequence: u64, sent: Time) {
        (self.last, self.highest) = (sent, AFTER_ALL);
        self.follow(sequence, sent);
    }

    /// One that was sent again is: the timestamp tells which sending the ACK answers.
    pub(super) fn acknowledged_retransmission(&mut self, sequence: u64, sent: Time) {
        let before = |echo| timestamp(echo) < timestamp(sent);
        if sent <= self.trusted_until && !self.echo.is_some_and(before) {
            self.acknowledged(sequence, sent);
        }
    }

    /// A segment that was sent once is SACKed.
    #[inline]
    pub(super) fn sacked(&mut self, sequence: u64, sent: Time) {
        self.follow(sequence, sent);
        if sequence >= self.highest {
            (self.last, self.highest) = (sent, sequence + 1);
        }
    }

    /// One that was sent again is.
    pub(super) fn sacked_retransmission(&mut self, sequence: u64, sent: Time) {
        if sent <= self.trusted_until {
            self.sacked(sequence, sent);
        }
    }

    #[inline]
    fn follow(&mut self, sequence: u64, sent: Time) {
        if (sent, sequence) > (self.sent, self.sequence) {
            (self.sent, self.sequence) = (sent, sequence);
        }
    }
}
