//! Update of RACK by an ACK (RFC 8985 section 6.2, step 2) with each segment that is newly acknowledged or
//! SACKed; its RTT is that of the last one processed. A hole that is filled late makes it patient.
//!
//! As Linux: SACKed segments are processed first, in their order, then those cumulatively acknowledged.

use ackclock_core::Time;

use super::Delivery;
use crate::options::timestamp;

/// State of RACK (RFC 8985 section 5.2): the most recently sent segment that was delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rack {
    /// Time of its transmission.
    pub sent: Time,
    /// Its number.
    pub sequence: u64,
    /// RTT of the segment processed last.
    pub rtt: Time,
}

impl Rack {
    /// Update by an ACK; returns whether it delivered a segment that counts.
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

/// Update of RACK by an ACK, which may ignore retransmitted segments. An ACK without SACKs of segments
/// that were sent once, as nearly all are, has none: RACK processes the last of them.
#[derive(Clone, Copy, Debug)]
pub struct RackUpdate {
    /// Retransmissions after this time would have an RTT below the minimum: the ACK is for an earlier transmission.
    trusted_until: Time,
    /// The timestamp echoed: segments retransmitted after it are acknowledged for an earlier transmission.
    echo: Option<Time>,
    /// Last transmission of the segment processed last.
    last: Time,
    /// Its number plus one, if it was SACKed: a higher one is processed later. 0 before the first.
    highest: u64,
    /// Most recent transmission of all.
    sent: Time,
    /// Segment of that transmission.
    sequence: u64,
}

/// A cumulative ACK is processed after all SACKs.
const AFTER_ALL: u64 = u64::MAX;

impl RackUpdate {
    /// An empty update; see the fields.
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

    /// Process a cumulatively acknowledged segment that was sent once.
    #[inline]
    pub(super) fn acknowledged(&mut self, sequence: u64, sent: Time) {
        (self.last, self.highest) = (sent, AFTER_ALL);
        self.follow(sequence, sent);
    }

    /// Process a cumulatively acknowledged retransmission: the timestamp shows which transmission the ACK is for.
    pub(super) fn acknowledged_retransmission(&mut self, sequence: u64, sent: Time) {
        let before = |echo| timestamp(echo) < timestamp(sent);
        if sent <= self.trusted_until && !self.echo.is_some_and(before) {
            self.acknowledged(sequence, sent);
        }
    }

    /// Process a SACKed segment that was sent once.
    #[inline]
    pub(super) fn sacked(&mut self, sequence: u64, sent: Time) {
        self.follow(sequence, sent);
        if sequence >= self.highest {
            (self.last, self.highest) = (sent, sequence + 1);
        }
    }

    /// Process a SACKed retransmission.
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
