//! A round trip of segments, and the RTTs measured in it: for CCAs that evaluate the delay once per
//! round.

use ackclock_core::Time;

use super::Ack;

/// A round trip, from one evaluation of the delay to the next.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// The round ends when a segment beyond this one is acknowledged.
    end: u64,
    samples: u32,
    min_rtt: Time,
}

impl Round {
    /// A round that ends when a segment beyond `end` is acknowledged; with 0, at the first ACK.
    pub fn until(end: u64) -> Round {
        Round {
            end,
            samples: 0,
            min_rtt: Time::NEVER,
        }
    }

    /// The round of what has been sent when `ack` arrives.
    pub fn after(ack: &Ack) -> Round {
        Round::until(ack.next)
    }

    /// Count an RTT.
    pub fn sample(&mut self, rtt: Time) {
        self.samples += 1;
        self.min_rtt = self.min_rtt.min(rtt);
    }

    /// Return true if `ack` ends the round.
    pub fn is_over(&self, ack: &Ack) -> bool {
        ack.may_raise_cwnd && ack.unacknowledged > self.end
    }

    /// RTTs measured in the round.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// The smallest of them; [`Time::NEVER`] without any.
    pub fn min_rtt(&self) -> Time {
        self.min_rtt
    }
}
