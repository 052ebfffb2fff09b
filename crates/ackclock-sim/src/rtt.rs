//! Round-trip time and retransmission timeout.
//!
//! RFC 6298: SRTT and RTTVAR by exponential averages with gains 1/8 and 1/4 (section 2), RTO =
//! SRTT + 4 RTTVAR, doubled at each expiry (5.5). The smallest RTT is that of the last 300 s, for RACK
//! (RFC 8985 section 6.2) and the controllers.
//!
//! Deviations:
//! - The clock's granularity G is the plan's `rtt_tick`: samples are whole ticks, as those of a clock that counts them.
//!   It is zero, an exact clock, unless a stack has one.
//! - The RTO's floor is the plan's `min_rto`: 1 s by the RFC (2.4), 200 ms in Linux.
//! - `rto_slop` is added to the sampled RTO (FreeBSD adds 200 ms; otherwise it is zero).
//! - Samples are expected once per ACK, as with timestamps, or of one segment at a time ([`TimedSegment`]); the
//!   gains are not scaled by the number of samples per round trip (RFC 7323 appendix G suggests it; Linux does
//!   not do it).
//! - With `rto_floor_on_variance` the variance is Linux's, in three respects:
//!   1. When a sample falls short of SRTT by more than the mean deviation, the deviation follows it
//!      with gain 1/32 and not 1/4, since a shrinking RTT is no reason for a longer timeout.
//!   2. What enters the RTO is not the deviation but the largest one of the current flight. It
//!      rises immediately; at the end of each flight it comes down a quarter of the way to the
//!      largest deviation of that flight.
//!   3. `min_rto` is the floor of that term, four deviations, so RTO ≥ SRTT + `min_rto`.

use ackclock_core::Time;
use ackclock_plan::TcpPlan;

/// Length of the window of the smallest RTT (Linux: `tcp_min_rtt_wlen`, 300 s).
const MIN_RTT_WINDOW: Time = Time::from_milliseconds(300_000);
/// RTO without a sample after a lost SYN (RFC 6298, 5.7).
const RTO_AFTER_LOST_SYN: Time = Time::from_milliseconds(3_000);
/// Parts of that window; the oldest part is forgotten at a time.
const MIN_RTT_PARTS: usize = 4;

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    limits: Limits,
    /// 8 × SRTT, ps: the average without rounding loss. Zero before the first sample.
    srtt_8: u64,
    /// The same of the exact RTTs of all ACKs, for the controllers, where the RTO has other samples; zero where it has not.
    exact_srtt_8: u64,
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

/// Bounds of the RTO.
#[derive(Clone, Copy, Debug)]
struct Limits {
    initial: Time,
    min: Time,
    max: Time,
    slop: Time,
    tick: u64,
    floor_on_variance: bool,
}

/// A flight of segments: the unit in which Linux's variance term comes down.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    /// It ends when a segment above this one is acknowledged.
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
                slop: plan.rto_slop,
                tick: plan.rtt_tick.picoseconds(),
                floor_on_variance: plan.rto_floor_on_variance,
            },
            srtt_8: 0,
            exact_srtt_8: 0,
            deviation_4: 0,
            variance_term: 0,
            flight: Flight::default(),
            doublings: 0,
            rto: plan.initial_rto.min(plan.max_rto),
            minimum: WindowedMinimum::new(),
        }
    }

    /// Take the RTT of a segment that was sent only once (Karn's algorithm, RFC 6298 section 3).
    /// `next` is the next segment to be sent for the first time and `unacknowledged` the first one not
    /// cumulatively acknowledged. Ends the backoff. The minimum is taken separately, of the newest segment.
    #[inline(always)]
    pub fn sample(&mut self, rtt: Time, next: u64, unacknowledged: u64) {
        let rtt = rounded_to_ticks(rtt.picoseconds(), self.limits.tick);
        if self.srtt_8 == 0 {
            self.start(rtt, next);
        } else {
            self.average(rtt);
            self.update_variance_term(next, unacknowledged);
        }
        self.doublings = 0;
        self.rto = self.backed_off_rto();
    }

    /// Take an RTT for the minimum: that of an ACK's newest segment, which includes no delay of the receiver's.
    #[inline]
    pub fn observe_minimum(&mut self, now: Time, rtt: Time) {
        self.minimum.insert(now, rtt);
    }

    /// Take the exact RTT of an ACK for the controllers, where the RTO has other samples.
    pub fn smooth_exact(&mut self, rtt: Time) {
        let rtt = rtt.picoseconds().max(1);
        self.exact_srtt_8 = match self.exact_srtt_8 {
            0 => 8 * rtt,
            smoothed => smoothed - smoothed / 8 + rtt,
        };
    }

    /// Converge to `rtt`, as after many samples of it.
    pub fn converge_to(&mut self, rtt: Time) {
        let picoseconds = rtt.picoseconds().max(1);
        self.srtt_8 = 8 * picoseconds;
        if self.exact_srtt_8 != 0 {
            self.exact_srtt_8 = 8 * picoseconds;
        }
        self.deviation_4 = 0;
        self.variance_term = if self.limits.floor_on_variance {
            self.limits.min.picoseconds()
        } else {
            0
        };
        self.flight.largest = self.variance_term;
        self.rto = self.backed_off_rto();
    }

    /// True if there was a sample.
    #[inline]
    pub fn has_sample(&self) -> bool {
        self.srtt_8 != 0
    }

    /// Raise the initial RTO to 3 s after a lost SYN, which gave no sample (RFC 6298, 5.7).
    pub fn start_after_lost_syn(&mut self) {
        self.limits.initial = self.limits.initial.max(RTO_AFTER_LOST_SYN);
        self.rto = self.backed_off_rto();
    }

    /// Smoothed RTT; zero before the first sample.
    pub fn srtt(&self) -> Time {
        let smoothed_8 = match self.exact_srtt_8 {
            0 => self.srtt_8,
            exact => exact,
        };
        Time::from_picoseconds(smoothed_8 / 8)
    }

    /// RTTVAR of the RFC, the mean deviation; zero before the first sample.
    #[cfg(test)]
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

    /// Double the RTO after the timer expired, up to `max_rto` (RFC 6298, 5.5).
    pub fn backoff(&mut self) {
        self.doublings += 1;
        self.rto = self.backed_off_rto();
    }

    /// End the backoff after an ACK of new data without a sample.
    pub fn reset_backoff(&mut self) {
        if self.doublings > 0 {
            self.doublings = 0;
            self.rto = self.backed_off_rto();
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
    #[inline]
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
    #[inline]
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

    /// The RTO without backoff and ceiling.
    fn base_rto(&self) -> Time {
        if self.srtt_8 == 0 {
            self.limits.initial
        } else if self.limits.floor_on_variance {
            Time::from_picoseconds(self.srtt_8 / 8 + self.variance_term) + self.limits.slop
        } else {
            let rto =
                Time::from_picoseconds(self.srtt_8 / 8 + self.deviation_4.max(self.limits.tick));
            rto.max(self.limits.min) + self.limits.slop
        }
    }

    fn backed_off_rto(&self) -> Time {
        let rto = match self.doublings {
            0 => self.base_rto(),
            doublings => doubled(self.base_rto(), doublings),
        };
        rto.min(self.limits.max)
    }
}

/// Round an RTT in picoseconds to whole ticks, to the nearest and at least one; 0: to at least a picosecond.
fn rounded_to_ticks(rtt: u64, tick: u64) -> u64 {
    if tick == 0 {
        return rtt.max(1);
    }
    ((rtt + tick / 2) / tick).max(1) * tick
}

/// The one segment that is timed at a time (RFC 6298 section 3): a new one when none is, until it is acknowledged. A
/// retransmission ends the measurement (Karn's algorithm).
#[derive(Clone, Copy, Debug, Default)]
pub struct TimedSegment(Option<(u64, Time)>);

impl TimedSegment {
    /// A new segment was sent.
    pub fn start(&mut self, sequence: u64, now: Time) {
        self.0.get_or_insert((sequence, now));
    }

    /// A segment was retransmitted.
    pub fn cancel(&mut self) {
        self.0 = None;
    }

    /// Return the RTT of the timed segment if everything below `unacknowledged` is acknowledged, and time another.
    pub fn take(&mut self, unacknowledged: u64, now: Time) -> Option<Time> {
        let (_, sent) = self.0.filter(|&(timed, _)| timed < unacknowledged)?;
        self.0 = None;
        Some(now.since(sent))
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
    /// End of the current part.
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
        if value < self.parts[0] {
            self.parts[0] = value;
            self.value = self.value.min(value);
        }
    }

    /// Begin new parts until `now` is inside the current one.
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
mod tests;
