//! Round-trip times: of segments and their acknowledgements (Karn's rule: of what was sent once), of timestamps and
//! their echoes (RFC 7323), and of both halves of a path together.

use std::collections::VecDeque;

/// Timestamps that wait for their echo: more ticks than any round trip has at 1 kHz, nearly.
const MOST_WAITING: usize = 256;

/// Samples of a window.
const WINDOW: u32 = 16;

/// A series of round-trip times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Series {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum_ns: i64,
    /// The least, once there is one.
    pub min_ns: i64,
    /// The greatest.
    pub max_ns: i64,
}

impl Series {
    /// Adds one.
    #[inline]
    pub fn add(&mut self, rtt_ns: i64) {
        self.min_ns = if self.count == 0 {
            rtt_ns
        } else {
            self.min_ns.min(rtt_ns)
        };
        self.max_ns = self.max_ns.max(rtt_ns);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(rtt_ns);
    }

    /// The least.
    pub fn min(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// In seconds; NaN without any.
    pub fn min_s(&self) -> f64 {
        self.min().map_or(f64::NAN, |min_ns| min_ns as f64 * 1e-9)
    }

    /// The mean, in seconds; NaN without any.
    pub fn mean_s(&self) -> f64 {
        if self.count == 0 {
            return f64::NAN;
        }
        self.sum_ns as f64 / self.count as f64 * 1e-9
    }

    /// In seconds; NaN without any.
    pub fn max_s(&self) -> f64 {
        if self.count == 0 {
            return f64::NAN;
        }
        self.max_ns as f64 * 1e-9
    }
}

/// The smoothed RTT and its variation (RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
pub struct Smoothed {
    /// 0 before the first sample.
    pub srtt_ns: i64,
    /// Its variation.
    pub variation_ns: i64,
}

impl Smoothed {
    /// Takes a sample in.
    #[inline]
    pub fn add(&mut self, rtt_ns: i64) {
        if self.srtt_ns == 0 {
            self.srtt_ns = rtt_ns.max(1);
            self.variation_ns = rtt_ns / 2;
            return;
        }
        let error = rtt_ns - self.srtt_ns;
        self.variation_ns += (error.abs() - self.variation_ns) / 4;
        self.srtt_ns = (self.srtt_ns + error / 8).max(1);
    }
}

/// Timestamps of one end that the other has not echoed yet.
#[derive(Clone, Debug, Default)]
pub struct Echoes {
    waiting: VecDeque<(u32, i64)>,
    newest: Option<u32>,
}

impl Echoes {
    /// A packet with this TSval passed: the first of each value counts.
    #[inline]
    pub fn sent(&mut self, tsval: u32, now_ns: i64) {
        let newer = self
            .newest
            .is_none_or(|newest| tsval.wrapping_sub(newest) as i32 > 0);
        if newer {
            self.newest = Some(tsval);
            if self.waiting.len() == MOST_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((tsval, now_ns));
        }
    }

    /// A packet with this TSecr passed: how long the value was away, if it is the first to come back with it.
    #[inline]
    pub fn echoed(&mut self, tsecr: u32, now_ns: i64) -> Option<i64> {
        while let Some(&(tsval, sent_ns)) = self.waiting.front() {
            let ahead = tsval.wrapping_sub(tsecr) as i32;
            if ahead > 0 {
                return None;
            }
            self.waiting.pop_front();
            if ahead == 0 {
                return Some(now_ns - sent_ns);
            }
        }
        None
    }

    /// When the first passed that is newer than the last echo.
    pub fn unheard_ns(&self) -> Option<i64> {
        self.waiting.front().map(|&(_, sent_ns)| sent_ns)
    }

    /// Gives back memory.
    pub fn shrink(&mut self) {
        self.waiting = VecDeque::new();
    }
}

/// Whether there is more between the sender and the point than the handshake told: a queue. Each window of samples has
/// one that was not made longer by a sender that waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Far {
    count: u32,
    least_ns: i64,
    /// The least of the last window.
    pub window_ns: i64,
}

impl Far {
    /// The least of late: down at once, up after a window, as a sender that waits makes samples longer.
    #[inline]
    pub fn recent_ns(&self) -> i64 {
        match (self.window_ns, self.count) {
            (0, _) => self.least_ns,
            (window_ns, 0) => window_ns,
            (window_ns, _) => window_ns.min(self.least_ns),
        }
    }

    /// A sample of the sender's half.
    #[inline]
    pub fn take(&mut self, half_ns: i64) {
        self.least_ns = if self.count == 0 {
            half_ns
        } else {
            self.least_ns.min(half_ns)
        };
        self.count += 1;
        if self.count == WINDOW {
            self.count = 0;
            self.window_ns = self.least_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packet_with_a_timestamp_and_its_first_echo_count() {
        let mut echoes = Echoes::default();
        for (tsval, now_ns) in [(u32::MAX, 0), (u32::MAX, 5), (0, 10), (1, 20)] {
            echoes.sent(tsval, now_ns);
        }
        assert_eq!(echoes.echoed(u32::MAX, 50), Some(50));
        assert_eq!(echoes.echoed(u32::MAX, 60), None);
        assert_eq!(echoes.echoed(1, 70), Some(50));
        assert_eq!(echoes.echoed(0, 80), None);
    }

    #[test]
    fn the_smoothed_rtt_follows_its_samples() {
        let mut smoothed = Smoothed::default();
        for _ in 0..100 {
            smoothed.add(1000);
        }
        assert_eq!(smoothed.srtt_ns, 1000);
        assert!(smoothed.variation_ns < 4);
    }
}
