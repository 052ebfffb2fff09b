//! What RACK learns from an ACK (RFC 8985 section 6.2, step 2): it hears each segment that is newly acknowledged or
//! SACKed, and its RTT is that of the last one heard. A hole that is filled late makes it patient.
//!
//! As Linux: the segments SACKed are heard first, in their order, then those cumulatively acknowledged.

use ackclock_units::Time;

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
    pub fn advance(&mut self, heard: &Heard, now: Time) -> bool {
        let Some(last) = heard.acknowledged.or(heard.sacked.map(|(_, sent)| sent)) else {
            return false;
        };
        self.rtt = now.since(last);
        (self.sent, self.sequence) = heard.latest.max((self.sent, self.sequence));
        true
    }

    #[inline]
    pub(super) fn has_overtaken(&self, sent: Time, sequence: u64) -> bool {
        (sent, sequence) < (self.sent, self.sequence)
    }
}

/// What an ACK lets RACK hear, and what it may believe of segments that were sent again.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Their RTT is below the smallest if they were sent after this: the ACK answers an earlier sending.
    believed_until: Time,
    /// The timestamp echoed: what was sent again after it is acknowledged for an earlier sending.
    echo: Option<Time>,
    /// Last sending of the last segment cumulatively acknowledged.
    acknowledged: Option<Time>,
    /// Number and last sending of the highest segment SACKed.
    sacked: Option<(u64, Time)>,
    /// The most recently sent of all, and its number.
    latest: (Time, u64),
}

impl Default for Heard {
    fn default() -> Heard {
        Heard::new(Time::NEVER, None)
    }
}

impl Heard {
    /// Nothing yet; see the fields.
    #[inline]
    pub fn new(believed_until: Time, echo: Option<Time>) -> Heard {
        Heard {
            believed_until,
            echo,
            acknowledged: None,
            sacked: None,
            latest: (Time::ZERO, 0),
        }
    }

    /// A cumulative ACK of what was sent once.
    #[inline]
    pub(super) fn advance(&mut self, sequence: u64, sent: Time) {
        self.acknowledged = Some(sent);
        self.latest = self.latest.max((sent, sequence));
    }

    /// A segment is cumulatively acknowledged. The timestamp tells which sending the ACK answers.
    pub(super) fn acknowledged(&mut self, sequence: u64, sent: Time, resent: bool) {
        let before = |echo| timestamp(echo) < timestamp(sent);
        let is_late = resent && (sent > self.believed_until || self.echo.is_some_and(before));
        if !is_late {
            self.advance(sequence, sent);
        }
    }

    /// A segment is SACKed.
    pub(super) fn sacked(&mut self, sequence: u64, sent: Time, resent: bool) {
        if resent && sent > self.believed_until {
            return;
        }
        self.latest = self.latest.max((sent, sequence));
        if self.sacked.is_none_or(|(highest, _)| highest < sequence) {
            self.sacked = Some((sequence, sent));
        }
    }
}
