//! Timers that tick, as the Linux kernel's: a timeout is rounded up to whole ticks of the clock, which are counted from
//! the present one, and one more passes lest it be early. What is set in the middle of a tick ends with another.

use ackclock_units::Time;

/// When a timer is due that was set at `since` for `wait`, on a clock of this tick; an exact one if the tick is zero.
pub fn due(tick: Time, since: Time, wait: Time) -> Time {
    let tick = tick.picoseconds();
    match since.picoseconds().checked_div(tick) {
        Some(passed) => {
            let ticks = passed + wait.picoseconds().div_ceil(tick) + 1;
            Time::from_picoseconds(ticks.saturating_mul(tick))
        }
        None => since + wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_ends_with_a_tick_and_is_not_early() {
        let ms = Time::from_milliseconds;
        // A kernel of 100 Hz: an ACK that waits 40 ms from 329.4 ms on leaves at 370 ms.
        assert_eq!(due(ms(10), ms(329), ms(40)), ms(370));
        assert_eq!(due(ms(10), ms(320), ms(40)), ms(370));
        assert_eq!(due(ms(10), ms(320), ms(41)), ms(380));
        assert_eq!(due(Time::ZERO, ms(329), ms(40)), ms(369));
    }
}
