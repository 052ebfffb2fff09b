//! A rate of small packets that follows the delay.
//!
//! Braud (2016), chapter 6: in a queue whose limit counts packets, small packets take the places of large ones, and
//! the delay of a full queue falls. Its sections 6.5 and 8.2 leave as the next step a tool "qui ajuste
//! automatiquement l'intensité de l'envoi de paquets UDP en fonction de la latence mesurée" and stops where the link
//! has little load. This is one; the law is ours.
//!
//! Each datagram is answered. The queueing delay q is the mean RTT of the last period less the smallest RTT ever
//! seen (so a way that becomes longer looks like a queue). Once a period, which is 100 ms or the RTT if that is
//! longer,
//!
//! ```text
//! rate ← rate · (q / target)^(1/2), by a factor of at most 2 and at least ½, within [least, most]
//! ```
//!
//! More delay than the target raises the number of small packets. On an idle link q is 0, and the rate halves each
//! period down to the least, which goes on to measure.
//!
//! Stability. A queue of N packets, always full, on a link of C bytes/s with packets of S and of s bytes, r of the
//! latter a second, has the delay N S/(C + r (S − s)): its elasticity by r, −r(S − s)/(C + r(S − s)), lies between
//! −1 and 0. With e = ln(q/target) the law is e(k+1) = e(k) − a e(k−d) with 0 < a < ½, where d counts the periods
//! until a change is seen: one for the mean over the last period, one more for the queue to be filled anew, as it
//! is no longer than an RTT. Such a recursion is stable for a < 2 sin(π/(4d + 2)), which is 1 for d = 1 and 0.618
//! for d = 2.

use ackclock_core::Time;

/// Least time between two changes of the rate.
const PERIOD: Time = Time::from_milliseconds(100);
/// The most by which the rate changes at once.
const LARGEST_FACTOR: f64 = 2.0;

/// The rate and what is measured.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    target: Time,
    min_per_s: f64,
    max_per_s: f64,
    per_s: f64,
    last_departure: Time,
    smallest: Time,
    rtt: Option<Time>,
    /// Sum of the RTTs of this period, ps, and how many there are.
    sum: u64,
    samples: u64,
    /// End of the period; never before the first RTT.
    period_end: Time,
}

impl Control {
    /// A control that begins with the lowest rate.
    pub fn new(target: Time, min_per_s: f64, max_per_s: f64) -> Control {
        Control {
            target,
            min_per_s,
            max_per_s,
            per_s: min_per_s,
            last_departure: Time::ZERO,
            smallest: Time::NEVER,
            rtt: None,
            sum: 0,
            samples: 0,
            period_end: Time::NEVER,
        }
    }

    /// A datagram leaves at `now`; when the next one does.
    pub fn after(&mut self, now: Time) -> Time {
        self.last_departure = now;
        self.departure()
    }

    /// When the next datagram leaves at the present rate.
    pub fn departure(&self) -> Time {
        self.last_departure + Time::from_seconds(1.0 / self.per_s)
    }

    /// The last RTT.
    pub fn rtt(&self) -> Option<Time> {
        self.rtt
    }

    /// Take an RTT; return whether the rate has changed.
    pub fn on_rtt(&mut self, rtt: Time, now: Time) -> bool {
        self.smallest = self.smallest.min(rtt);
        self.rtt = Some(rtt);
        self.sum += rtt.picoseconds();
        self.samples += 1;
        if self.period_end.is_never() {
            self.period_end = now + PERIOD.max(rtt);
        }
        if now < self.period_end {
            return false;
        }
        let mean = Time::from_picoseconds(self.sum / self.samples);
        self.adjust(mean.since(self.smallest));
        self.period_end = now + PERIOD.max(mean);
        (self.sum, self.samples) = (0, 0);
        true
    }

    fn adjust(&mut self, queueing: Time) {
        let factor = (queueing.as_f64() / self.target.as_f64()).sqrt();
        let factor = factor.clamp(1.0 / LARGEST_FACTOR, LARGEST_FACTOR);
        self.per_s = (self.per_s * factor).clamp(self.min_per_s, self.max_per_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Time = Time::from_milliseconds(100);
    const BASE: Time = Time::from_milliseconds(20);

    fn control() -> Control {
        Control::new(TARGET, 10.0, 1000.0)
    }

    /// One change with this queueing delay, long after the last; a first RTT without any tells the smallest.
    fn rate_after(control: &mut Control, queueing: Time, now: &mut Time) -> f64 {
        *now += Time::from_seconds(10.0);
        control.on_rtt(BASE + queueing, *now);
        control.per_s
    }

    fn opened() -> (Control, Time) {
        let mut control = control();
        control.on_rtt(BASE, Time::ZERO);
        assert!(control.on_rtt(BASE, PERIOD), "after 100 ms");
        control.per_s = 100.0;
        (control, PERIOD)
    }

    #[test]
    fn the_rate_follows_the_square_root_of_the_delay_within_bounds() {
        let (mut control, mut now) = opened();
        let mut after = |ms| rate_after(&mut control, Time::from_milliseconds(ms), &mut now);
        assert!((after(225) - 150.0).abs() < 1e-9);
        assert!((after(225) - 225.0).abs() < 1e-9);
        assert!((after(100) - 225.0).abs() < 1e-9, "on target");
        assert!((after(4000) - 450.0).abs() < 1e-9, "twice at most");
        assert!((after(4000) - 900.0).abs() < 1e-9);
        assert!((after(4000) - 1000.0).abs() < 1e-9, "the highest rate");
        assert!((after(0) - 500.0).abs() < 1e-9, "half at least");
        for _ in 0..10 {
            after(0);
        }
        assert!((after(0) - 10.0).abs() < 1e-9, "the lowest rate");
    }

    #[test]
    fn the_rate_changes_at_intervals_of_a_period_and_round_trip() {
        let mut control = control();
        let ms = Time::from_milliseconds;
        assert!(
            !control.on_rtt(ms(250), ms(250)),
            "the first opens a period"
        );
        assert!(!control.on_rtt(ms(250), ms(499)));
        assert!(control.on_rtt(ms(50), ms(500)));
        // The mean was 183 ms.
        assert!(!control.on_rtt(ms(50), ms(683)));
        assert!(control.on_rtt(ms(50), ms(684)));
        assert!(!control.on_rtt(ms(50), ms(783)));
        assert!(control.on_rtt(ms(50), ms(784)));
    }

    /// MODELS: a full queue of `N` packets on a link of `C` bytes/s. The rate that holds the target is
    /// (N S/target − C)/(S − s), and the distance to it shrinks each period by the closed form's factor.
    #[test]
    fn it_holds_the_delay_of_a_queue_limited_in_packets_at_the_target() {
        let (limit, rate_bytes, large, small) = (120.0, 100_000.0, 1500.0, 29.0);
        let delay_s = |per_s: f64| limit * large / (rate_bytes + per_s * (large - small));
        let (mut control, mut now) = opened();
        control.target = Time::from_milliseconds(500);
        let expected = (limit * large / 0.5 - rate_bytes) / (large - small);
        assert!((expected - 176.75).abs() < 0.01);
        let mut errors = Vec::new();
        for _ in 0..40 {
            let queueing = Time::from_seconds(delay_s(control.per_s));
            rate_after(&mut control, queueing, &mut now);
            errors.push((control.per_s / expected).ln().abs());
        }
        assert!(errors[39] < 1e-6, "{errors:?}");
        // Elasticity at the target: r(S − s)/(C + r(S − s)) = 0.722, so each step leaves 1 − 0.361.
        let ratio = errors[12] / errors[11];
        assert!((ratio - 0.639).abs() < 0.002, "{ratio}");
    }

    /// The recursion of the module's description at its largest gain, with two periods of delay, decays.
    #[test]
    fn two_periods_of_delay_are_no_danger() {
        let step = |gain: f64| {
            let mut errors = vec![1.0, 1.0, 1.0];
            for k in 2..400 {
                errors.push(errors[k] - gain * errors[k - 2]);
            }
            errors[390..]
                .iter()
                .fold(0.0_f64, |most, e| most.max(e.abs()))
        };
        assert!(step(0.5) < 1e-6);
        assert!(step(0.7) > 1e3, "beyond 0.618 it grows");
    }
}
