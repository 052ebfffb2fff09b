//! The propagation delay: the smallest RTT of some seconds, and the dips of the window that let it show.
//!
//! Draft-ietf-ccwg-bbr section 5.3.4.3. Two filters: one decides when a dip is due (nothing as small was
//! seen for an interval), the other holds the estimate for a window. In version 1 both are 10 s long, which
//! makes them one (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.1.2.3).

use ackclock_core::Time;

use super::rounds::Rounds;
use crate::Ack;

/// The two filters.
#[derive(Clone, Copy, Debug)]
pub struct MinRtt {
    window: Time,
    interval: Time,
    value: Time,
    value_at: Time,
    recent: Time,
    recent_at: Time,
}

impl MinRtt {
    /// Create the filters: the estimate holds for `window`, a dip is due after `interval`.
    pub fn new(window: Time, interval: Time) -> MinRtt {
        MinRtt {
            window,
            interval,
            value: Time::NEVER,
            value_at: Time::ZERO,
            recent: Time::NEVER,
            recent_at: Time::ZERO,
        }
    }

    /// The connection is open; its handshake took `srtt` (zero: not known).
    pub fn open(&mut self, now: Time, srtt: Time) {
        let first = if srtt == Time::ZERO {
            Time::NEVER
        } else {
            srtt
        };
        (self.value, self.recent) = (first, first);
        (self.value_at, self.recent_at) = (now, now);
    }

    /// The estimate; [`Time::NEVER`] before the first sample.
    #[inline]
    pub fn get(&self) -> Time {
        self.value
    }

    /// Take an ACK's sample; report whether a dip is due.
    #[inline]
    pub fn observe(&mut self, now: Time, rtt: Option<Time>) -> bool {
        let due = now > self.recent_at + self.interval;
        if let Some(rtt) = rtt.filter(|&rtt| rtt < self.recent || due) {
            (self.recent, self.recent_at) = (rtt, now);
        }
        if self.recent < self.value || now > self.value_at + self.window {
            (self.value, self.value_at) = (self.recent, self.recent_at);
        }
        due
    }

    /// A dip has ended: the next is due an interval from now.
    pub fn refresh(&mut self, now: Time) {
        self.recent_at = now;
    }
}

/// A dip of the window: at least `duration` and a round with little in flight.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProbeRtt {
    end: Option<Time>,
    round_done: bool,
}

impl ProbeRtt {
    /// Track an ACK during a dip to `window` segments; report whether it has lasted long enough.
    pub fn follow(&mut self, ack: &Ack, window: u32, duration: Time, rounds: &mut Rounds) -> bool {
        if self.end.is_some() {
            self.round_done |= rounds.started;
        } else if ack.in_flight <= window {
            self.end = Some(ack.now + duration);
            rounds.restart(ack.delivered);
        }
        self.round_done && self.is_over(ack.now)
    }

    /// Return true if its time has passed.
    pub fn is_over(&self, now: Time) -> bool {
        self.end.is_some_and(|end| now > end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::testing::ack;

    const fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    fn version_3() -> MinRtt {
        let mut min_rtt = MinRtt::new(ms(10_000), ms(5_000));
        min_rtt.open(ms(0), ms(60));
        min_rtt
    }

    #[test]
    fn probe_rtt_is_due_without_a_smaller_rtt_for_the_interval() {
        let mut min_rtt = version_3();
        assert!(!min_rtt.observe(ms(1_000), Some(ms(50))));
        assert!(!min_rtt.observe(ms(6_000), Some(ms(55))));
        assert!(min_rtt.observe(ms(6_001), Some(ms(55))));
        assert_eq!(min_rtt.get(), ms(50), "the estimate lives longer");
        assert!(!min_rtt.observe(ms(6_002), Some(ms(55))));
    }

    #[test]
    fn the_estimate_rises_when_its_window_has_passed() {
        let mut min_rtt = version_3();
        min_rtt.observe(ms(1_000), Some(ms(50)));
        for at in (2_000..=11_000).step_by(500) {
            min_rtt.observe(ms(at), Some(ms(70)));
            assert_eq!(min_rtt.get(), ms(50));
        }
        min_rtt.observe(ms(11_001), Some(ms(70)));
        assert_eq!(min_rtt.get(), ms(70));
    }

    #[test]
    fn version_1_expires_and_probes_immediately() {
        let mut min_rtt = MinRtt::new(ms(10_000), ms(10_000));
        min_rtt.open(ms(0), ms(50));
        assert!(!min_rtt.observe(ms(10_000), Some(ms(58))));
        assert!(min_rtt.observe(ms(10_001), Some(ms(58))));
        assert_eq!(min_rtt.get(), ms(58));
    }

    #[test]
    fn a_dip_takes_its_time_and_a_round_after_the_window_is_reached() {
        let (mut probe_rtt, mut rounds) = (ProbeRtt::default(), Rounds::default());
        let mut at = |now: u64, in_flight: u32, started: bool| {
            rounds.started = started;
            let ack = Ack {
                in_flight,
                ..ack(ms(now), 1)
            };
            probe_rtt.follow(&ack, 4, ms(200), &mut rounds)
        };
        assert!(!at(0, 80, true));
        assert!(!at(40, 4, false));
        assert!(!at(239, 4, true));
        assert!(!at(240, 4, false));
        assert!(at(241, 4, false));
    }
}
