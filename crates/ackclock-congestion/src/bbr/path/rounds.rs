//! Packet-timed round trips (draft-ietf-ccwg-bbr section 5.5.1): a round ends with the delivery of a
//! segment that was sent after the round began.

use crate::Ack;

/// The present round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// Rounds so far.
    pub count: u64,
    /// True if the present ACK began a round.
    pub started: bool,
    /// The round ends when a segment sent after this many deliveries is delivered.
    end: u64,
}

impl Rounds {
    /// Take an ACK that delivered something.
    #[inline]
    pub fn observe(&mut self, ack: &Ack) {
        self.started = ack.prior_delivered >= self.end;
        if self.started {
            self.end = ack.delivered;
            self.count += 1;
        }
    }

    /// Deliveries after which the round ends, if they were sent later still.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Let a round begin now, without counting it.
    pub fn restart(&mut self, delivered: u64) {
        self.end = delivered;
    }
}

/// Deliveries whose rate is no sample of the path, because the sender held back on purpose: what
/// was sent while `delivered` was between two values.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeldBack {
    from: u64,
    /// One past the end.
    until: u64,
}

impl HeldBack {
    /// Record that the sender holds back now: what it sends until the segments in flight are delivered is no sample.
    pub fn mark(&mut self, ack: &Ack) {
        if self.until <= ack.delivered {
            self.from = ack.delivered;
        }
        self.until = ack.delivered + u64::from(ack.in_flight) + 1;
    }

    /// Return true if an ACK's delivery rate was limited, by this or by the application.
    #[inline]
    pub fn limits(&self, ack: &Ack) -> bool {
        ack.application_limited || (self.from..self.until).contains(&ack.prior_delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::testing::ack;
    use ackclock_core::Time;

    fn delivering(prior_delivered: u64, delivered: u64) -> Ack {
        Ack {
            delivered,
            prior_delivered,
            ..ack(Time::ZERO, 1)
        }
    }

    #[test]
    fn a_round_ends_when_its_segments_are_delivered() {
        let mut rounds = Rounds::default();
        rounds.observe(&delivering(0, 1));
        assert!(rounds.started);
        rounds.observe(&delivering(0, 10));
        assert!(!rounds.started);
        rounds.observe(&delivering(1, 11));
        assert!(
            rounds.started,
            "sent after the delivery that began the round"
        );
        assert_eq!(rounds.count, 2);
    }

    #[test]
    fn segments_sent_while_holding_back_are_limited() {
        let mut held = HeldBack::default();
        held.mark(&Ack {
            in_flight: 4,
            ..delivering(90, 100)
        });
        assert!(!held.limits(&delivering(99, 101)));
        assert!(held.limits(&delivering(100, 102)));
        assert!(held.limits(&delivering(104, 108)));
        assert!(!held.limits(&delivering(105, 109)));
    }
}
