//! The kernel's clock: time in whole ticks, for controllers that count in them.
//!
//! Linux's older modules measure in jiffies, 1/HZ s each. What they make of an RTT of a few ticks is not what
//! the papers' formulas make of it, so the tick is a parameter of theirs (4 ms is HZ = 250).

use ackclock_units::Time;

use super::require;

/// Length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    tick: Time,
}

impl Clock {
    /// A clock with ticks of `tick`.
    ///
    /// # Errors
    /// A tick below 1 µs or above 1 s: there would be too many in a run, or none in an RTT.
    pub fn new(tick: Time) -> Result<Clock, serde_json::Error> {
        require(
            (Time::from_microseconds(1)..=Time::from_milliseconds(1_000)).contains(&tick),
            "tick, the kernel's clock, must be between 1 µs and 1 s",
        )?;
        Ok(Clock { tick })
    }

    /// Whole ticks since the start of the simulation.
    pub fn at(self, now: Time) -> u64 {
        now.picoseconds() / self.tick.picoseconds()
    }

    /// Ticks of a measured span, which is known in whole microseconds; a tick begun counts.
    pub fn of(self, span: Time) -> u64 {
        let measured = Time::from_microseconds(span.microseconds());
        measured.picoseconds().div_ceil(self.tick.picoseconds())
    }

    /// HZ: ticks per second, to the nearest.
    pub fn per_second(self) -> u64 {
        ((1.0 / self.tick.seconds()).round() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded_down_and_a_span_up() {
        let clock = Clock::new(Time::from_milliseconds(10)).expect("a usual tick");
        assert_eq!(clock.at(Time::from_milliseconds(59)), 5);
        assert_eq!(clock.of(Time::from_microseconds(50_001)), 6);
        assert_eq!(clock.of(Time::from_milliseconds(50)), 5);
        let hardly_more = Time::from_milliseconds(50) + Time::from_picoseconds(999_999);
        assert_eq!(clock.of(hardly_more), 5);
        assert_eq!(clock.per_second(), 100);
    }

    #[test]
    fn a_zero_tick_is_rejected() {
        assert!(Clock::new(Time::ZERO).is_err());
        assert!(Clock::new(Time::from_milliseconds(2_000)).is_err());
    }
}
