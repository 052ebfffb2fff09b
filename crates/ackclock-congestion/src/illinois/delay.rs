//! Illinois' measurements: the mean queueing delay over an RTT, and the largest one seen.

use ackclock_core::Time;

/// RTTs above this count as this (2^32 / 1,280 µs: what fits Linux's arithmetic).
const LONGEST: Time = Time::from_microseconds(u32::MAX as u64 / 1280);

/// RTTs in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delay {
    /// Smallest and largest RTT of the connection.
    extremes: Option<(u64, u64)>,
    /// Sum and number of the present round's.
    sum: u64,
    count: u64,
}

impl Delay {
    /// Take an RTT.
    pub fn observe(&mut self, rtt: Time) {
        let rtt = rtt.min(LONGEST).microseconds();
        let (smallest, largest) = self.extremes.unwrap_or((rtt, rtt));
        self.extremes = Some((smallest.min(rtt), largest.max(rtt)));
        self.sum += rtt;
        self.count += 1;
    }

    /// Forget the round's RTTs.
    pub fn begin_round(&mut self) {
        self.sum = 0;
        self.count = 0;
    }

    /// The round's mean queueing delay and the connection's largest, if the round has any RTT.
    pub fn mean_and_largest(&self) -> Option<(u64, u64)> {
        let (smallest, largest) = self.extremes?;
        let mean = self.sum.checked_div(self.count)?;
        Some((mean.saturating_sub(smallest), largest - smallest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_of_the_round_and_the_extremes_of_the_connection() {
        let mut delay = Delay::default();
        assert_eq!(delay.mean_and_largest(), None);
        for rtt in [50, 90, 70] {
            delay.observe(Time::from_milliseconds(rtt));
        }
        assert_eq!(delay.mean_and_largest(), Some((20_000, 40_000)));
        delay.begin_round();
        assert_eq!(delay.mean_and_largest(), None);
        delay.observe(Time::from_milliseconds(60));
        assert_eq!(delay.mean_and_largest(), Some((10_000, 40_000)));
        delay.observe(Time::from_milliseconds(60_000));
        assert_eq!(
            delay.mean_and_largest().map(|(_, largest)| largest),
            Some(3_355_443 - 50_000)
        );
    }
}
