//! Simulated time and rates.
//!
//! Inside an engine, time is an integer number of picoseconds. One byte takes 800 ps at
//! 10 Gb/s, so serialisation times at common link rates are exact, and a run of 200 days fits.
//! Plans and datasets hold SI numbers: seconds, bit/s, bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Picoseconds in one second.
pub const PICOSECONDS_PER_SECOND: u64 = 1_000_000_000_000;

/// A point in simulated time, or the span between two, in picoseconds.
///
/// Sums saturate at [`Time::NEVER`] and differences at [`Time::ZERO`]: "never plus 200 ms" is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the simulation, or an empty span.
    pub const ZERO: Time = Time(0);
    /// Later than every event.
    pub const NEVER: Time = Time(u64::MAX);

    /// A time of `picoseconds` ps.
    pub const fn from_picoseconds(picoseconds: u64) -> Time {
        Time(picoseconds)
    }

    /// A time of `microseconds` µs.
    pub const fn from_microseconds(microseconds: u64) -> Time {
        Time(microseconds * 1_000_000)
    }

    /// A time of `milliseconds` ms.
    pub const fn from_milliseconds(milliseconds: u64) -> Time {
        Time(milliseconds * 1_000_000_000)
    }

    /// A time of `seconds` s, rounded to the nearest picosecond; negative and NaN become zero,
    /// what does not fit becomes [`Time::NEVER`].
    #[inline]
    pub fn from_seconds(seconds: f64) -> Time {
        Time((seconds * PICOSECONDS_PER_SECOND as f64).round() as u64)
    }

    /// The time in picoseconds.
    pub const fn picoseconds(self) -> u64 {
        self.0
    }

    /// The time in whole microseconds, rounded down (the resolution of Linux's clocks).
    pub const fn microseconds(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The time in whole nanoseconds, rounded down.
    pub const fn nanoseconds(self) -> u64 {
        self.0 / 1_000
    }

    /// The time in picoseconds as a float, for sums that exceed an integer's range.
    #[inline]
    pub fn as_f64(self) -> f64 {
        // Signed conversion is one instruction; longer times than 2^63 ps (106 days) fall back.
        i64::try_from(self.0).map_or_else(|_| self.as_f64_unsigned(), |signed| signed as f64)
    }

    #[cold]
    #[inline(never)]
    fn as_f64_unsigned(self) -> f64 {
        self.0 as f64
    }

    /// The time in seconds.
    #[inline]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / PICOSECONDS_PER_SECOND as f64
    }

    /// `self − earlier`, or zero if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }

    /// The time multiplied by a factor ≥ 0, rounded.
    #[must_use]
    #[inline]
    pub fn scaled(self, factor: f64) -> Time {
        Time((self.0 as f64 * factor).round() as u64)
    }

    /// True if this is [`Time::NEVER`].
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        self.since(other)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.6} s", self.seconds())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.seconds())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        f64::deserialize(deserializer).map(Time::from_seconds)
    }
}

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(f64);

impl Rate {
    /// A rate of `bits` bit/s.
    pub const fn from_bits_per_second(bits: f64) -> Rate {
        Rate(bits)
    }

    /// A rate of `bytes` B/s.
    pub fn from_bytes_per_second(bytes: f64) -> Rate {
        Rate(bytes * 8.0)
    }

    /// Rate at which `bytes` pass in `span`; infinite if the span is zero.
    #[inline]
    pub fn of(bytes: f64, span: Time) -> Rate {
        Rate(bytes * (8.0 * PICOSECONDS_PER_SECOND as f64) / span.as_f64())
    }

    /// The rate in bit/s.
    pub const fn bits_per_second(self) -> f64 {
        self.0
    }

    /// The rate in B/s.
    pub fn bytes_per_second(self) -> f64 {
        self.0 / 8.0
    }

    /// Transmission time of `bytes` at this rate, to the nearest picosecond.
    #[inline]
    pub fn transmission_time(self, bytes: u64) -> Time {
        Time((bytes as f64 * 8.0 * PICOSECONDS_PER_SECOND as f64 / self.0).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_takes_800_ps_at_10_gigabit_per_second() {
        let rate = Rate::from_bits_per_second(10e9);
        assert_eq!(rate.transmission_time(1), Time::from_picoseconds(800));
        assert_eq!(
            rate.transmission_time(1514),
            Time::from_picoseconds(1_211_200)
        );
    }

    #[test]
    fn sums_saturate_at_never_and_differences_at_zero() {
        assert_eq!(Time::NEVER + Time::from_milliseconds(200), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::from_milliseconds(1)), Time::ZERO);
    }

    #[test]
    fn seconds_convert_with_saturation() {
        assert_eq!(Time::from_seconds(0.1).picoseconds(), 100_000_000_000);
        assert_eq!(Time::from_seconds(-1.0), Time::ZERO);
        assert_eq!(Time::from_seconds(f64::NAN), Time::ZERO);
        assert_eq!(Time::from_seconds(f64::INFINITY), Time::NEVER);
    }
}
