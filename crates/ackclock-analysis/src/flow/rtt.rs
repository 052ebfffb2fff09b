//! Round-trip times: of segments and their acknowledgements (Karn's rule: of what was sent once), of timestamps and
//! their echoes (RFC 7323), and of both halves of a path together.

use ackclock_core::tcp::seq;
use std::collections::VecDeque;

/// Timestamps that wait for their echo: more ticks than any round trip has at 1 kHz, nearly.
const MAX_WAITING: usize = 256;

/// Samples of a window.
const WINDOW: u32 = 16;

/// A series of round-trip times.
#[derive(Clone, Copy, Debug, Default)]
pub struct RttStats {
    /// The number of them.
    pub count: u64,
    /// Their sum.
    pub sum_ns: i64,
    /// The least, once there is one.
    pub min_ns: i64,
    /// The greatest.
    pub max_ns: i64,
}

impl RttStats {
    /// Add one.
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

    /// In seconds; NaN without any, or if the capture's clock did not advance in one.
    pub fn min_s(&self) -> f64 {
        self.min()
            .filter(|&min_ns| min_ns > 0)
            .map_or(f64::NAN, |min_ns| min_ns as f64 * 1e-9)
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
pub struct RttEstimator {
    /// 0 before the first sample.
    pub srtt_ns: i64,
    /// Its variation.
    pub variation_ns: i64,
}

impl RttEstimator {
    /// Take a sample in.
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
pub struct TimestampMatcher {
    waiting: VecDeque<(u32, i64)>,
    newest: Option<u32>,
}

impl TimestampMatcher {
    /// A packet with this TSval passed: the first of each value counts.
    #[inline]
    pub fn sent(&mut self, tsval: u32, now_ns: i64) {
        let newer = self
            .newest
            .is_none_or(|newest| seq::is_after(tsval, newest));
        if newer {
            self.newest = Some(tsval);
            if self.waiting.len() == MAX_WAITING {
                self.waiting.pop_front();
            }
            self.waiting.push_back((tsval, now_ns));
        }
    }

    /// A packet with this TSecr passed: how long the value was away, if it is the first to come back with it.
    #[inline]
    pub fn echoed(&mut self, tsecr: u32, now_ns: i64) -> Option<i64> {
        while let Some(&(tsval, sent_ns)) = self.waiting.front() {
            let ahead = seq::distance(tsval, tsecr);
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

    /// A packet behind the last that came back has passed: who sends knows nothing of it yet.
    #[inline]
    pub fn ahead(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Free unused memory.
    pub fn shrink(&mut self) {
        self.waiting = VecDeque::new();
    }
}

/// Ticks of the clocks that TSvals come from (RFC 7323 section 5.4: 1 ms to 1 s), and a microsecond.
const TICKS: [i64; 6] = [
    1_000,
    1_000_000,
    2_000_000,
    4_000_000,
    10_000_000,
    100_000_000,
];
/// One of them is a clock's if it is within this share of what the clock did.
const MAX_TICK_ERROR: f64 = 0.1;
/// The clock must have ticked so often, and for so long.
const MIN_TICKS: u32 = 8;
const MIN_SPAN_NS: i64 = 100_000_000;
/// The least age grows by a part in so many: two clocks may differ by 100 ppm.
const DRIFT: i64 = 10_000;

/// The clock of a sender's timestamps beside the capture's: how old packets are that pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct TsvalClock {
    first: Option<(u32, i64)>,
    tick_ns: i64,
    /// The ticks at which the tick is checked again.
    next_check: i64,
    /// The least age, with the drift since, and until when that is in it.
    min_ns: i64,
    until_ns: i64,
    age_ns: i64,
}

impl TsvalClock {
    /// A packet with this TSval passed; return true if another tick is taken for the clock's than before.
    #[inline]
    pub fn on_packet(&mut self, tsval: u32, now_ns: i64) -> bool {
        let Some((first, first_ns)) = self.first else {
            self.first = Some((tsval, now_ns));
            return false;
        };
        let tick_ns = self.tick_ns;
        let ticks = i64::from(seq::distance(tsval, first));
        if ticks >= self.next_check {
            self.detect_tick(ticks, now_ns - first_ns);
        }
        if self.tick_ns == 0 {
            return false;
        }
        self.age_ns = now_ns - first_ns - ticks * self.tick_ns;
        let drift_ns = (now_ns - self.until_ns) / DRIFT;
        if drift_ns > 0 {
            self.min_ns += drift_ns;
            self.until_ns += drift_ns * DRIFT;
        }
        self.min_ns = self.min_ns.min(self.age_ns);
        tick_ns != self.tick_ns
    }

    /// Detect the tick, and check it each time that the clock has ticked twice as often: a queue that grows makes the
    /// clock look slow, the less the longer it is watched.
    #[cold]
    fn detect_tick(&mut self, ticks: i64, span_ns: i64) {
        if ticks < i64::from(MIN_TICKS) || span_ns < MIN_SPAN_NS {
            return;
        }
        let measured_ns = span_ns as f64 / ticks as f64;
        let is_near = |tick_ns: i64| (measured_ns / tick_ns as f64 - 1.0).abs() < MAX_TICK_ERROR;
        let Some(tick_ns) = TICKS.into_iter().find(|&one| is_near(one)) else {
            return;
        };
        self.next_check = 2 * ticks;
        if tick_ns != self.tick_ns {
            self.tick_ns = tick_ns;
            self.min_ns = 0; // the first packet's age
            self.until_ns = self.first.map_or(0, |(_, first_ns)| first_ns);
        }
    }

    /// Return by how much the delay of a packet with this TSval, captured then, exceeds the minimum at least; 0 if
    /// it is unknown.
    pub fn min_excess_ns(&self, tsval: u32, captured_ns: i64) -> i64 {
        let Some((first, first_ns)) = self.first.filter(|_| self.tick_ns > 0) else {
            return 0;
        };
        let sent_ns = i64::from(seq::distance(tsval, first)) * self.tick_ns;
        (captured_ns - first_ns - sent_ns - self.min_ns - self.tick_ns).max(0)
    }

    /// Return by how much the last packet's delay exceeds the minimum, at most, and the clock's tick, by which
    /// it may be too much.
    #[inline]
    pub fn excess_delay_ns(&self) -> Option<(i64, i64)> {
        (self.tick_ns > 0).then_some((self.age_ns - self.min_ns, self.tick_ns))
    }
}

/// A windowed minimum of the delay between sender and vantage point: more than the handshake's is a queue. Each window
/// of samples has one that was not made longer by a sender that waits.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMin {
    count: u32,
    superseded: u32,
    min_ns: i64,
    /// In the last window most samples were of acknowledgements that others had followed: a sender at the point that
    /// waits would have heard of those.
    pub is_superseded: bool,
    /// The least of the last window.
    pub window_ns: i64,
}

impl WindowedMin {
    /// The least of late: down at once, up after a window, as a sender that waits makes samples longer.
    #[inline]
    pub fn recent_ns(&self) -> i64 {
        match (self.window_ns, self.count) {
            (0, _) => self.min_ns,
            (window_ns, 0) => window_ns,
            (window_ns, _) => window_ns.min(self.min_ns),
        }
    }

    /// A sample of the sender's half; `superseded`: a later acknowledgement had passed the vantage point.
    #[inline]
    pub fn add(&mut self, side_rtt_ns: i64, superseded: bool) {
        self.superseded += u32::from(superseded);
        self.min_ns = if self.count == 0 {
            side_rtt_ns
        } else {
            self.min_ns.min(side_rtt_ns)
        };
        self.count += 1;
        if self.count == WINDOW {
            self.is_superseded = self.superseded * 2 > WINDOW;
            self.count = 0;
            self.superseded = 0;
            self.window_ns = self.min_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packet_with_a_timestamp_and_its_first_echo_count() {
        let mut echoes = TimestampMatcher::default();
        for (tsval, now_ns) in [(u32::MAX, 0), (u32::MAX, 5), (0, 10), (1, 20)] {
            echoes.sent(tsval, now_ns);
        }
        assert_eq!(echoes.echoed(u32::MAX, 50), Some(50));
        assert_eq!(echoes.echoed(u32::MAX, 60), None);
        assert_eq!(echoes.echoed(1, 70), Some(50));
        assert_eq!(echoes.echoed(0, 80), None);
    }

    #[test]
    fn a_tsval_clock_measures_the_excess_delay() {
        let mut clock = TsvalClock::default();
        for number in 0..1000_i64 {
            let sent_ns = number * 730_000;
            let waited_ns = if number % 10 == 0 { 30_000_000 } else { 0 };
            let tsval = (sent_ns / 1_000_000) as u32;
            let now_ns = 5_000_000 + sent_ns + waited_ns;
            clock.on_packet(tsval.wrapping_sub(100), now_ns); // it wraps on the way
            if number > 700 {
                let (excess_delay_ns, tick_ns) = clock.excess_delay_ns().expect("a clock of 1 kHz");
                assert_eq!(tick_ns, 1_000_000);
                let too_much_ns = excess_delay_ns - waited_ns;
                assert!(
                    (-20_000..tick_ns).contains(&too_much_ns),
                    "{excess_delay_ns}"
                );
            }
        }
    }

    #[test]
    fn an_unknown_tick_gives_no_delay() {
        let mut clock = TsvalClock::default();
        for number in 0..1000_i64 {
            clock.on_packet(number as u32, number * 1_500_000);
        }
        assert_eq!(clock.excess_delay_ns(), None);
    }

    #[test]
    fn the_smoothed_rtt_follows_its_samples() {
        let mut rtt_estimator = RttEstimator::default();
        for _ in 0..100 {
            rtt_estimator.add(1000);
        }
        assert_eq!(rtt_estimator.srtt_ns, 1000);
        assert!(rtt_estimator.variation_ns < 4);
    }
}
