//! Departures under a pacing rate.

use std::collections::VecDeque;

use ackclock_core::{Rate, Time};

/// The bytes that a pacing rate has released over time.
#[derive(Debug, Default)]
pub struct Paced {
    /// Times, and segments since the first.
    course: VecDeque<(Time, f64)>,
}

/// More samples than an RTT has; what is older is forgotten.
const MAX_SAMPLES: usize = 1 << 16;

impl Paced {
    /// `rate` holds until `end`.
    pub fn advance(&mut self, end: Time, rate: Option<Rate>, mss_bytes: u32) {
        let Some(rate) = rate.filter(|rate| rate.bits_per_second().is_finite()) else {
            self.course.clear();
            return;
        };
        let (before, sum) = self.course.back().copied().unwrap_or((end, 0.0));
        let bits = rate.bits_per_second() * end.since(before).seconds();
        self.course
            .push_back((end, sum + bits / (8.0 * f64::from(mss_bytes))));
        if self.course.len() > MAX_SAMPLES {
            self.course.pop_front();
        }
    }

    /// Segments since `time`, and one that may go at once; infinite if it is not known.
    pub fn since(&self, time: Time) -> f64 {
        let after = self.course.partition_point(|&(end, _)| end <= time);
        let (Some(&(_, sum)), Some(at)) = (self.course.back(), after.checked_sub(1)) else {
            return f64::INFINITY;
        };
        let (from, before) = self.course[at];
        let (to, until) = self.course.get(after).copied().unwrap_or((from, before));
        let part = time.since(from).seconds() / to.since(from).seconds().max(f64::MIN_POSITIVE);
        sum - (before + (until - before) * part) + 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS_BYTES: u32 = 1000;

    fn at(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    #[test]
    fn a_pacing_rate_limits_departures() {
        let mut paced = Paced::default();
        let rate = Some(Rate::from_bytes_per_second(100_000.0));
        for now in [0, 10, 20, 30] {
            paced.advance(at(now), rate, MSS_BYTES);
        }
        // A segment every 10 ms, and the one that may go at once.
        assert!((paced.since(at(5)) - 3.5).abs() < 1e-9);
        assert!(paced.since(at(30)) >= 1.0);
    }

    #[test]
    fn without_a_pacing_rate_only_the_window_limits() {
        let mut paced = Paced::default();
        paced.advance(at(0), Some(Rate::from_bytes_per_second(1e5)), MSS_BYTES);
        paced.advance(at(10), None, MSS_BYTES);
        assert_eq!(paced.since(at(5)), f64::INFINITY);
    }
}
