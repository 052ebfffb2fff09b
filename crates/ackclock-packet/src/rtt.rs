//! Round-trip time and retransmission timeout.
//!
//! RFC 6298: SRTT and RTTVAR by exponential averages with gains 1/8 and 1/4 (section 2), RTO =
//! SRTT + 4 RTTVAR, doubled at each expiry (5.5). The smallest RTT is that of the last 300 s, for RACK
//! (RFC 8985 section 6.2) and the controllers.
//!
//! Deviations:
//! - The clock is exact, so the granularity term G of the RFC is zero.
//! - The RTO's floor is the plan's `min_rto`: 1 s by the RFC (2.4), 200 ms in Linux.
//! - Samples are expected once per ACK, as with timestamps; the gains are not scaled by the number of
//!   samples per round trip (RFC 7323 appendix G suggests it; Linux does not do it).
//! - With `rto_floor_on_variance` the variance is Linux's, in three respects:
//!   1. When a sample falls short of SRTT by more than the mean deviation, the deviation follows it
//!      with gain 1/32 and not 1/4, since a shrinking RTT is no reason for a longer timeout.
//!   2. What enters the RTO is not the deviation but the largest one of the current flight. It
//!      rises at once; at the end of each flight it comes down a quarter of the way to the
//!      largest deviation of that flight.
//!   3. `min_rto` is the floor of that term, four deviations, so RTO ≥ SRTT + `min_rto`.

use ackclock_units::Time;

use crate::plan::TcpPlan;

/// Length of the window of the smallest RTT (Linux: `tcp_min_rtt_wlen`, 300 s).
const MIN_RTT_WINDOW: Time = Time::from_milliseconds(300_000);
/// Parts of that window; the oldest part is forgotten at a time.
const MIN_RTT_PARTS: usize = 4;

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    limits: Limits,
    /// 8 × SRTT, ps: the average without rounding loss. Zero before the first sample.
    srtt_8: u64,
    /// 4 × the mean deviation (RTTVAR of the RFC), ps.
    deviation_4: u64,
    /// The variance term of the RTO, ps.
    variance_term: u64,
    flight: Flight,
    /// Expiries in a row.
    doublings: u32,
    rto: Time,
    minimum: WindowedMinimum,
}

/// What bounds the RTO.
#[derive(Clone, Copy, Debug)]
struct Limits {
    initial: Time,
    min: Time,
    max: Time,
    floor_on_variance: bool,
}

/// A flight of segments: the unit in which Linux's variance term comes down.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    /// It ends when a segment beyond this one is acknowledged.
    end: u64,
    /// The largest 4 × deviation in it, but at least `min_rto`, ps.
    largest: u64,
}

impl RttEstimator {
    /// An estimator without samples, by the plan's `initial_rto`, `min_rto`, `max_rto` and
    /// `rto_floor_on_variance`.
    pub fn new(plan: &TcpPlan) -> RttEstimator {
        RttEstimator {
            limits: Limits {
                initial: plan.initial_rto,
                min: plan.min_rto,
                max: plan.max_rto,
                floor_on_variance: plan.rto_floor_on_variance,
            },
            srtt_8: 0,
            deviation_4: 0,
            variance_term: 0,
            flight: Flight::default(),
            doublings: 0,
            rto: plan.initial_rto.min(plan.max_rto),
            minimum: WindowedMinimum::new(),
        }
    }

    /// Takes the RTT of a segment that was sent only once (Karn's algorithm, RFC 6298 section 3).
    /// `next` is the next segment to be sent for the first time and `unacknowledged` the first one not
    /// cumulatively acknowledged. Ends the backoff.
    pub fn sample(&mut self, now: Time, rtt: Time, next: u64, unacknowledged: u64) {
        self.minimum.insert(now, rtt);
        let rtt = rtt.picoseconds().max(1);
        if self.srtt_8 == 0 {
            self.start(rtt, next);
        } else {
            self.average(rtt);
            self.update_variance_term(next, unacknowledged);
        }
        self.doublings = 0;
        self.rto = self.computed_rto();
    }

    /// Takes an RTT for the minimum alone: that of an ACK's newest segment, which includes no delay
    /// of the receiver's.
    #[inline]
    pub fn observe_minimum(&mut self, now: Time, rtt: Time) {
        self.minimum.insert(now, rtt);
    }

    /// Whether there was a sample.
    #[inline]
    pub fn has_sample(&self) -> bool {
        self.srtt_8 != 0
    }

    /// Smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Time {
        Time::from_picoseconds(self.srtt_8 / 8)
    }

    /// RTTVAR of the RFC, the mean deviation; zero before the first sample.
    pub fn rttvar(&self) -> Time {
        Time::from_picoseconds(self.deviation_4 / 4)
    }

    /// The smallest RTT of the last 225–300 s up to the newest sample; [`Time::NEVER`] before the
    /// first one.
    pub fn min_rtt(&self) -> Time {
        self.minimum.value
    }

    /// Retransmission timeout, backoff included.
    pub fn rto(&self) -> Time {
        self.rto
    }

    /// The timer expired: doubles the RTO, up to `max_rto` (RFC 6298, 5.5).
    pub fn backoff(&mut self) {
        self.doublings += 1;
        self.rto = self.computed_rto();
    }

    /// New data was acknowledged, if without a sample: the RTO is again what the samples say.
    pub fn reset_backoff(&mut self) {
        if self.doublings > 0 {
            self.doublings = 0;
            self.rto = self.computed_rto();
        }
    }

    /// RFC 6298, 2.2.
    fn start(&mut self, rtt: u64, next: u64) {
        self.srtt_8 = 8 * rtt;
        self.deviation_4 = 2 * rtt;
        self.variance_term = self.deviation_4.max(self.limits.min.picoseconds());
        self.flight = Flight {
            end: next,
            largest: self.variance_term,
        };
    }

    /// RFC 6298, 2.3; with the small gain on falling samples where the plan wants it.
    fn average(&mut self, rtt: u64) {
        let srtt = self.srtt_8 / 8;
        let error = rtt.abs_diff(srtt);
        let deviation = self.deviation_4 / 4;
        let falls = rtt < srtt && error > deviation && self.limits.floor_on_variance;
        let step = if falls {
            (error - deviation) / 8
        } else {
            error
        };
        let kept = if falls { 0 } else { deviation };
        self.deviation_4 = self.deviation_4 - kept + step;
        self.srtt_8 = self.srtt_8 - srtt + rtt;
    }

    /// The variance term: four deviations by the RFC, the flights' maximum in Linux.
    fn update_variance_term(&mut self, next: u64, unacknowledged: u64) {
        if !self.limits.floor_on_variance {
            self.variance_term = self.deviation_4;
            return;
        }
        self.flight.largest = self.flight.largest.max(self.deviation_4);
        self.variance_term = self.variance_term.max(self.flight.largest);
        if unacknowledged > self.flight.end {
            self.variance_term -= (self.variance_term - self.flight.largest) / 4;
            self.flight = Flight {
                end: next,
                largest: self.limits.min.picoseconds(),
            };
        }
    }

    fn computed_rto(&self) -> Time {
        let base = if self.srtt_8 == 0 {
            self.limits.initial
        } else if self.limits.floor_on_variance {
            Time::from_picoseconds(self.srtt_8 / 8 + self.variance_term)
        } else {
            Time::from_picoseconds(self.srtt_8 / 8 + self.deviation_4).max(self.limits.min)
        };
        doubled(base, self.doublings).min(self.limits.max)
    }
}

/// `time` × 2^`doublings`, saturating.
fn doubled(time: Time, doublings: u32) -> Time {
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    Time::from_picoseconds(time.picoseconds().saturating_mul(factor))
}

/// The minimum over a window that slides in [`MIN_RTT_PARTS`] steps.
#[derive(Clone, Copy, Debug)]
struct WindowedMinimum {
    /// Minimum over all parts.
    value: Time,
    /// Minimum of each part, the current one first.
    parts: [Time; MIN_RTT_PARTS],
    /// When the current part ends.
    part_end: Time,
}

impl WindowedMinimum {
    fn new() -> WindowedMinimum {
        WindowedMinimum {
            value: Time::NEVER,
            parts: [Time::NEVER; MIN_RTT_PARTS],
            part_end: Time::ZERO,
        }
    }

    fn insert(&mut self, now: Time, value: Time) {
        if now >= self.part_end {
            self.slide(now);
        }
        self.parts[0] = self.parts[0].min(value);
        self.value = self.value.min(value);
    }

    /// Begins new parts until `now` is inside the current one.
    fn slide(&mut self, now: Time) {
        let part = MIN_RTT_WINDOW.picoseconds() / MIN_RTT_PARTS as u64;
        let passed = now.since(self.part_end).picoseconds() / part + 1;
        for _ in 0..passed.min(MIN_RTT_PARTS as u64) {
            self.parts.rotate_right(1);
            self.parts[0] = Time::NEVER;
        }
        self.part_end = Time::from_picoseconds((now.picoseconds() / part + 1).saturating_mul(part));
        self.value = self.parts.into_iter().min().unwrap_or(Time::NEVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{DelayedAck, LossDetection, Reduction};
    use proptest::prelude::*;

    fn plan(min_rto: Time, rto_floor_on_variance: bool) -> TcpPlan {
        TcpPlan {
            mss_bytes: 1448,
            header_bytes: 40,
            sack: true,
            timestamps: true,
            delayed_ack: DelayedAck::Off,
            delayed_ack_timeout: Time::from_milliseconds(40),
            initial_window: 10,
            initial_rto: ms(1000),
            min_rto,
            max_rto: ms(120_000),
            rto_floor_on_variance,
            receive_window_bytes: None,
            loss_detection: LossDetection::Rack,
            tail_loss_probe: true,
            limited_transmit: true,
            reduction: Reduction::Prr,
            pacing: false,
            window_validation: true,
        }
    }

    fn rfc() -> RttEstimator {
        RttEstimator::new(&plan(ms(1000), false))
    }

    fn linux() -> RttEstimator {
        RttEstimator::new(&plan(ms(200), true))
    }

    const fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    const fn us(microseconds: u64) -> Time {
        Time::from_microseconds(microseconds)
    }

    /// One sample per flight of ten segments, the whole flight acknowledged.
    fn feed(estimator: &mut RttEstimator, samples: &[Time]) {
        for (round, rtt) in (1..).zip(samples) {
            estimator.sample(ms(100 * round), *rtt, 10 * round, 10 * (round - 1) + 1);
        }
    }

    #[test]
    fn before_the_first_sample_the_timeout_is_the_initial_one() {
        let estimator = rfc();
        assert_eq!(estimator.rto(), ms(1000));
        assert_eq!(estimator.srtt(), Time::ZERO);
        assert_eq!(estimator.min_rtt(), Time::NEVER);
    }

    #[test]
    fn the_first_sample_sets_srtt_and_half_of_it_as_rttvar() {
        let mut estimator = rfc();
        feed(&mut estimator, &[ms(800)]);
        assert_eq!(estimator.srtt(), ms(800));
        assert_eq!(estimator.rttvar(), ms(400));
        assert_eq!(estimator.rto(), ms(800 + 4 * 400));
    }

    #[test]
    fn later_samples_enter_with_an_eighth_and_a_quarter() {
        let mut estimator = rfc();
        feed(&mut estimator, &[ms(800), ms(400)]);
        // RTTVAR = 3/4 × 400 + 1/4 × |800 − 400|, SRTT = 7/8 × 800 + 1/8 × 400
        assert_eq!(estimator.rttvar(), ms(400));
        assert_eq!(estimator.srtt(), ms(750));
        feed(&mut estimator, &[ms(1550)]);
        // RTTVAR = 3/4 × 400 + 1/4 × 800, SRTT = 7/8 × 750 + 1/8 × 1550
        assert_eq!(estimator.rttvar(), ms(500));
        assert_eq!(estimator.srtt(), ms(850));
        assert_eq!(estimator.rto(), ms(850 + 2000));
    }

    #[test]
    fn the_rfc_floor_is_that_of_the_whole_timeout() {
        let mut estimator = rfc();
        feed(&mut estimator, &[ms(10), ms(10), ms(10)]);
        assert_eq!(estimator.rto(), ms(1000));
    }

    #[test]
    fn backoff_doubles_up_to_the_ceiling_and_new_data_ends_it() {
        let mut estimator = rfc();
        feed(&mut estimator, &[ms(1000)]);
        for expected in [6, 12, 24, 48, 96, 120, 120] {
            estimator.backoff();
            assert_eq!(estimator.rto(), ms(expected * 1000));
        }
        estimator.reset_backoff();
        assert_eq!(estimator.rto(), ms(3000));
    }

    #[test]
    fn a_sample_ends_the_backoff() {
        let mut estimator = linux();
        feed(&mut estimator, &[ms(50)]);
        estimator.backoff();
        assert_eq!(estimator.rto(), ms(500));
        feed(&mut estimator, &[ms(50)]);
        assert_eq!(estimator.rto(), ms(250));
    }

    #[test]
    fn backoff_applies_before_the_first_sample_too() {
        let mut estimator = linux();
        estimator.backoff();
        estimator.backoff();
        assert_eq!(estimator.rto(), ms(4000));
        for _ in 0..100 {
            estimator.backoff();
        }
        assert_eq!(estimator.rto(), ms(120_000));
    }

    #[test]
    fn linux_puts_the_floor_under_the_variance_term() {
        let mut estimator = linux();
        feed(&mut estimator, &[ms(50); 20]);
        assert_eq!(estimator.srtt(), ms(50));
        assert_eq!(estimator.rto(), ms(250));
    }

    #[test]
    fn linux_follows_a_rising_rtt_at_once() {
        let mut estimator = linux();
        feed(&mut estimator, &[ms(200), ms(600)]);
        // mean deviation: 100 → 3/4 × 100 + 1/4 × 400 = 175
        assert_eq!(estimator.rttvar(), ms(175));
        assert_eq!(estimator.srtt(), ms(250));
        assert_eq!(estimator.rto(), ms(250 + 4 * 175));
    }

    #[test]
    fn linux_hardly_lets_a_falling_rtt_raise_the_deviation() {
        let mut estimator = linux();
        feed(&mut estimator, &[ms(400), ms(100)]);
        // 200 + 1/32 × (300 − 200), where the RFC has 3/4 × 200 + 1/4 × 300
        assert_eq!(estimator.rttvar(), us(203_125));
    }

    #[test]
    fn linux_lowers_the_variance_term_by_a_quarter_once_per_flight() {
        let mut estimator = linux();
        estimator.sample(ms(1), ms(400), 10, 0);
        // In the first flight: the term stays at its maximum, 800 ms, while the deviation shrinks.
        for _ in 0..100 {
            estimator.sample(ms(2), ms(400), 10, 5);
        }
        assert_eq!(estimator.rto(), ms(400 + 800));
        // The first flight's own maximum is 800 ms: nothing to come down to yet.
        estimator.sample(ms(3), ms(400), 20, 11);
        assert_eq!(estimator.rto(), ms(400 + 800));
        // The second flight's is the floor of 200 ms: a quarter of the way from 800 ms to it.
        estimator.sample(ms(4), ms(400), 30, 21);
        assert_eq!(estimator.rto(), ms(400 + 650));
        estimator.sample(ms(5), ms(400), 30, 25);
        assert_eq!(estimator.rto(), ms(400 + 650));
    }

    #[test]
    fn the_smallest_rtt_is_forgotten_after_its_window() {
        let mut estimator = linux();
        estimator.sample(ms(0), ms(10), 1, 0);
        estimator.sample(ms(224_000), ms(50), 2, 1);
        assert_eq!(estimator.min_rtt(), ms(10));
        estimator.sample(ms(301_000), ms(40), 3, 2);
        assert_eq!(estimator.min_rtt(), ms(40));
        estimator.sample(ms(3_000_000), ms(60), 4, 3);
        assert_eq!(estimator.min_rtt(), ms(60));
    }

    proptest! {
        /// Against the RFC's formulas in floating point.
        #[test]
        fn agrees_with_the_formulas_of_the_rfc(
            samples in proptest::collection::vec(1_u64..1_000_000_000, 1..100),
        ) {
            let mut estimator = rfc();
            let (mut srtt, mut rttvar) = (0.0, 0.0);
            for (index, rtt_ns) in samples.iter().enumerate() {
                estimator.sample(Time::ZERO, Time::from_picoseconds(rtt_ns * 1000), 0, 0);
                let rtt = *rtt_ns as f64 * 1e-9;
                if index == 0 {
                    (srtt, rttvar) = (rtt, rtt / 2.0);
                } else {
                    rttvar = 0.75 * rttvar + 0.25 * f64::abs(srtt - rtt);
                    srtt = 0.875 * srtt + 0.125 * rtt;
                }
                prop_assert!((estimator.srtt().seconds() - srtt).abs() < 1e-9);
                prop_assert!((estimator.rttvar().seconds() - rttvar).abs() < 1e-9);
                let rto = f64::max(srtt + 4.0 * rttvar, 1.0);
                prop_assert!((estimator.rto().seconds() - rto).abs() < 1e-8);
            }
        }

        /// Whatever the samples, Linux's timeout is at least `min_rto` above SRTT and never beyond
        /// the ceiling.
        #[test]
        fn bounds_of_the_timeout_of_linux(
            samples in proptest::collection::vec((1_u64..2_000_000_000, any::<bool>()), 1..100),
        ) {
            let mut estimator = linux();
            let mut segment = 0;
            for (rtt_ns, ends_flight) in samples {
                segment += if ends_flight { 20 } else { 1 };
                estimator.sample(ms(segment), Time::from_picoseconds(rtt_ns * 1000), segment + 10, segment);
                prop_assert!(estimator.rto() >= estimator.srtt() + ms(200));
                prop_assert!(estimator.rto() <= ms(120_000));
                prop_assert!(estimator.min_rtt() <= Time::from_picoseconds(rtt_ns * 1000));
            }
        }
    }
}
