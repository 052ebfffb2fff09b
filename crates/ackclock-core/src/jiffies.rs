//! The Linux kernel's clock, which counts jiffies of 1/HZ s each.
//!
//! Congestion control modules that measure in jiffies compute values for an RTT of a few jiffies that differ from the
//! papers' formulas, and kernel timers expire only at the end of a jiffy. So the jiffy is a parameter of both (4 ms
//! for HZ = 250).

use crate::Time;

/// Clock that counts jiffies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JiffyClock {
    jiffy: Time,
}

impl JiffyClock {
    /// A clock with jiffies of the given length; `None` below 1 µs (too many in a run) or above 1 s (too few in an
    /// RTT).
    pub fn new(jiffy: Time) -> Option<JiffyClock> {
        let possible = Time::from_microseconds(1)..=Time::from_milliseconds(1_000);
        possible.contains(&jiffy).then_some(JiffyClock { jiffy })
    }

    /// Whole jiffies from the start of the simulation to `now`.
    pub fn at(self, now: Time) -> u64 {
        now.picoseconds() / self.jiffy.picoseconds()
    }

    /// Jiffies in a span that is measured in whole microseconds, rounded up.
    pub fn span(self, span: Time) -> u64 {
        let measured = Time::from_microseconds(span.microseconds());
        measured.picoseconds().div_ceil(self.jiffy.picoseconds())
    }

    /// HZ: jiffies per second, to the nearest.
    pub fn per_second(self) -> u64 {
        ((1.0 / self.jiffy.seconds()).round() as u64).max(1)
    }
}

/// Return when a kernel timer expires that was set at `since` for `wait`.
///
/// The timeout is rounded up to whole jiffies, which count from the present one, and one more passes so that the timer
/// is never early. A jiffy of zero makes it exact.
pub fn timer_expiry(jiffy: Time, since: Time, wait: Time) -> Time {
    let jiffy = jiffy.picoseconds();
    match since.picoseconds().checked_div(jiffy) {
        Some(passed) => {
            let jiffies = passed + wait.picoseconds().div_ceil(jiffy) + 1;
            Time::from_picoseconds(jiffies.saturating_mul(jiffy))
        }
        None => since + wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_down_and_spans_up() {
        let clock = JiffyClock::new(Time::from_milliseconds(10)).expect("a possible jiffy");
        assert_eq!(clock.at(Time::from_milliseconds(59)), 5);
        assert_eq!(clock.span(Time::from_microseconds(50_001)), 6);
        assert_eq!(clock.span(Time::from_milliseconds(50)), 5);
        let hardly_more = Time::from_milliseconds(50) + Time::from_picoseconds(999_999);
        assert_eq!(clock.span(hardly_more), 5);
        assert_eq!(clock.per_second(), 100);
    }

    #[test]
    fn a_jiffy_of_zero_or_two_seconds_is_rejected() {
        assert!(JiffyClock::new(Time::ZERO).is_none());
        assert!(JiffyClock::new(Time::from_milliseconds(2_000)).is_none());
    }

    #[test]
    fn a_timer_expires_at_the_end_of_a_jiffy_and_never_early() {
        let ms = Time::from_milliseconds;
        // A kernel of 100 Hz: a delayed ACK of 40 ms, set at 329.4 ms, leaves at 370 ms.
        assert_eq!(timer_expiry(ms(10), ms(329), ms(40)), ms(370));
        assert_eq!(timer_expiry(ms(10), ms(320), ms(40)), ms(370));
        assert_eq!(timer_expiry(ms(10), ms(320), ms(41)), ms(380));
        assert_eq!(timer_expiry(Time::ZERO, ms(329), ms(40)), ms(369));
    }
}
