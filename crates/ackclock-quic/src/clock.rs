//! Virtual time as the instants that the stack's interface takes.
//!
//! `std::time::Instant` can be made in no other way than by reading the clock, so it is read once in a process. The
//! stack sees nothing but differences between instants, which are those of the virtual time, in nanoseconds.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use ackclock_core::Time;

/// Picoseconds of a nanosecond, the resolution of an instant.
const NANOSECOND: u64 = 1000;

/// The instant of virtual time 0.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The instant of a time, rounded down.
pub fn instant(time: Time) -> Instant {
    *ORIGIN + Duration::from_nanos(time.nanoseconds())
}

/// The time of an instant.
pub fn time(instant: Instant) -> Time {
    let nanoseconds = instant.saturating_duration_since(*ORIGIN).as_nanos() as u64;
    Time::from_picoseconds(nanoseconds.saturating_mul(NANOSECOND))
}

/// A duration as a time.
pub fn span(duration: Duration) -> Time {
    Time::from_picoseconds((duration.as_nanos() as u64).saturating_mul(NANOSECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_truncates_to_nanoseconds() {
        let at = Time::from_picoseconds(1_234_567_890_123);
        assert_eq!(time(instant(at)), Time::from_picoseconds(1_234_567_890_000));
        assert_eq!(time(instant(Time::ZERO)), Time::ZERO);
    }
}
