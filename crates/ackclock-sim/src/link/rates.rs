//! A rate that follows a trace: constant from each of its steps to the next.
//!
//! A packet in transmission when the rate changes continues at the new one, to the bit; at 0 it waits.

use ackclock_core::{Rate, Time};
use ackclock_plan::{CoursePlan, TracePlan};

/// Rates of a period, which repeats.
#[derive(Debug)]
pub struct Rates {
    /// Start of each step, the first at 0.
    at: Vec<Time>,
    steps: Vec<Rate>,
    period: Time,
    /// Bits that fit before each step, and into the whole period.
    before: Vec<f64>,
}

impl Rates {
    /// Rates of a trace, if it has any.
    pub fn of(plan: &TracePlan) -> Option<Rates> {
        let CoursePlan::Rates { at_s, rate_bps } = &plan.course else {
            return None;
        };
        let rates: Vec<Rate> = rate_bps
            .iter()
            .map(|&bps| Rate::from_bits_per_second(bps))
            .collect();
        let mut before = vec![0.0];
        for (step, rate) in rates.iter().enumerate() {
            let end = at_s.get(step + 1).copied().unwrap_or(plan.period);
            before.push(before[step] + bits(*rate, end - at_s[step]));
        }
        Some(Rates {
            at: at_s.clone(),
            steps: rates,
            period: plan.period,
            before,
        })
    }

    /// Transmission time of `bytes` that start at `now`.
    pub fn transmission_time(&self, bytes: u64, now: Time) -> Time {
        let (mut step, mut end) = self.step(now);
        let (mut time, mut missing) = (now, bytes as f64 * 8.0);
        loop {
            let rate = self.steps[step];
            let fitting = bits(rate, end - time);
            if fitting >= missing {
                return (time - now) + Time::from_seconds(missing / rate.bits_per_second());
            }
            missing -= fitting;
            time = end;
            step = (step + 1) % self.at.len();
            end = time + self.end(step) - self.at[step];
        }
    }

    /// Bits that can be sent up to a time.
    pub fn capacity_bits(&self, until: Time) -> f64 {
        let (step, end) = self.step(until);
        let turns = (until.picoseconds() / self.period.picoseconds()) as f64;
        let missing = bits(self.steps[step], end - until);
        turns * self.before[self.at.len()] + self.before[step + 1] - missing
    }

    /// Step at a time, and its end.
    fn step(&self, now: Time) -> (usize, Time) {
        let within = Time::from_picoseconds(now.picoseconds() % self.period.picoseconds());
        let step = self.at.partition_point(|&at| at <= within) - 1;
        (step, now - within + self.end(step))
    }

    /// End of a step within its period.
    fn end(&self, step: usize) -> Time {
        self.at.get(step + 1).copied().unwrap_or(self.period)
    }
}

fn bits(rate: Rate, span: Time) -> f64 {
    rate.bits_per_second() * span.seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    /// 8 Mb/s for 10 ms, nothing for 5, 1 Mb/s for 5: 1000, 0 and 125 bytes a millisecond.
    fn three() -> Rates {
        Rates::of(&TracePlan {
            file: String::new(),
            sha256: String::new(),
            period: ms(20),
            course: CoursePlan::Rates {
                at_s: vec![ms(0), ms(10), ms(15)],
                rate_bps: vec![8e6, 0.0, 1e6],
            },
        })
        .expect("rates")
    }

    #[test]
    fn a_packet_within_a_step_takes_its_time_at_that_rate() {
        assert_eq!(
            three().transmission_time(1500, ms(3)),
            Time::from_microseconds(1500)
        );
        assert_eq!(three().transmission_time(1000, ms(29)), ms(1));
    }

    #[test]
    fn a_packet_over_several_steps_is_sent_with_each_s_share() {
        // 500 bytes before the pause, 4 ms of the slow step for the others.
        let half = ms(9) + Time::from_microseconds(500);
        assert_eq!(three().transmission_time(1000, half), ms(19) - half);
        // 625 bytes in all of the slow step, then the next period.
        assert_eq!(three().transmission_time(1625, ms(12)), ms(21) - ms(12));
    }

    #[test]
    fn the_capacity_is_the_integral() {
        assert!((three().capacity_bits(ms(12)) - 80_000.0).abs() < 1e-6);
        assert!((three().capacity_bits(ms(38)) - 168_000.0).abs() < 1e-6);
        let (two, one) = (three().capacity_bits(ms(40)), three().capacity_bits(ms(20)));
        assert!((two - 170_000.0).abs() < 1e-6 && (one - 85_000.0).abs() < 1e-6);
    }
}
