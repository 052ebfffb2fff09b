//! By how much packets were late.

use ackclock_core::Time;

/// Lateness that is told apart, in microseconds; above, only the largest is exact.
const RANGE_US: usize = 100_000;

/// Counts of packets by their lateness in whole microseconds, rounded up.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    packets: u64,
    worst: Time,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness {
            counts: vec![0; RANGE_US + 1],
            packets: 0,
            worst: Time::ZERO,
        }
    }
}

impl Lateness {
    /// Count a packet that was late by so much.
    pub fn count(&mut self, late: Time) {
        let microseconds = late.picoseconds().div_ceil(1_000_000) as usize;
        self.counts[microseconds.min(RANGE_US)] += 1;
        self.packets += 1;
        self.worst = self.worst.max(late);
    }

    /// Number of packets.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The largest.
    pub fn worst(&self) -> Time {
        self.worst
    }

    /// The smallest lateness that a share of the packets did not exceed, rounded up to microseconds, but no more than the
    /// largest; `None` without packets.
    pub fn quantile(&self, share: f64) -> Option<Time> {
        let rank = (share * self.packets as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.counts.iter().position(|&count| {
            seen += count;
            seen >= rank
        })?;
        Some(if reached == RANGE_US {
            self.worst
        } else {
            self.worst.min(Time::from_microseconds(reached as u64))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_counted_packets() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.5), None);
        for microseconds in 1..=100 {
            lateness.count(Time::from_microseconds(microseconds));
        }
        let found = [0.0, 0.5, 0.99, 1.0].map(|share| lateness.quantile(share));
        assert_eq!(
            found,
            [1, 50, 99, 100].map(|us| Some(Time::from_microseconds(us)))
        );
    }

    #[test]
    fn the_worst_is_exact() {
        let mut lateness = Lateness::default();
        lateness.count(Time::from_milliseconds(1200));
        lateness.count(Time::from_picoseconds(1));
        assert_eq!(lateness.worst(), Time::from_milliseconds(1200));
        assert_eq!(lateness.quantile(1.0), Some(Time::from_milliseconds(1200)));
        assert_eq!(lateness.quantile(0.5), Some(Time::from_microseconds(1)));
    }

    #[test]
    fn no_quantile_exceeds_the_worst() {
        let mut lateness = Lateness::default();
        let late = Time::from_picoseconds(14_100_000);
        lateness.count(late);
        assert_eq!(lateness.quantile(0.99), Some(late));
    }
}
