//! ACK aggregation: the excess of ACKs over the bandwidth that aggregation on the path delivers at once
//! (draft-ietf-ccwg-bbr section 5.5.9; Linux has it in version 1 since 5.1).

use ackclock_core::Time;

use super::filter::WindowedMax;
use crate::Ack;

/// The present episode, and the largest excess of some rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregation {
    since: Time,
    acked: f64,
    excess: WindowedMax,
}

impl Aggregation {
    /// A new episode begins.
    pub fn restart(&mut self, now: Time) {
        self.since = now;
        self.acked = 0.0;
    }

    /// Process an ACK with the bandwidth in segments per second; `window` and `round` are in rounds.
    #[inline]
    pub fn observe(&mut self, ack: &Ack, bandwidth: f64, cwnd: u32, window: u64, round: u64) {
        let mut expected = (bandwidth * ack.now.since(self.since).seconds()) as u32;
        if self.acked <= f64::from(expected) {
            self.restart(ack.now);
            expected = 0;
        }
        self.acked += f64::from(ack.newly_acked);
        let excess = (self.acked - f64::from(expected)).min(f64::from(cwnd));
        self.excess.update(window, round, excess);
    }

    /// Segments that ACKs ran ahead.
    #[inline]
    pub fn excess(&self) -> f64 {
        self.excess.get()
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // whole segments
mod tests {
    use super::*;
    use crate::window::testing::ack;

    fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    /// 1000 segments/s expected; the ACKs of 20 ms arrive at once.
    #[test]
    fn a_burst_above_the_bandwidth_is_the_excess() {
        let mut aggregation = Aggregation::default();
        aggregation.observe(&ack(ms(1000), 2), 1000.0, 100, 10, 1);
        assert_eq!(aggregation.excess(), 2.0);
        aggregation.observe(&ack(ms(1001), 20), 1000.0, 100, 10, 1);
        assert_eq!(aggregation.excess(), 21.0, "22 acknowledged, 1 expected");
        aggregation.observe(&ack(ms(1030), 2), 1000.0, 100, 10, 2);
        assert_eq!(aggregation.excess(), 21.0, "remembered");
        aggregation.observe(&ack(ms(1030), 200), 1000.0, 100, 10, 2);
        assert_eq!(aggregation.excess(), 100.0, "at most the window");
    }
}
