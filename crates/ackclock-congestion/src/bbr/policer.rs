//! Policers: two intervals with the same rate and heavy loss mean that a token bucket limits the flow, and
//! its rate is used for a while.
//!
//! Draft-cardwell-iccrg-bbr-congestion-control-00 leaves it out; described by its authors in "BBR:
//! Congestion-Based Congestion Control" (ACM Queue 14(5), 2016, section "Token-bucket policers") and in Linux.
//! Deviation: an interval's rate is not rounded to milliseconds.
//!
//! ```text
//!            loss                   interval over, lossy
//!   idle ───────────▶ sampling ───────────────────────▶ one rate known
//!    ▲  ▲                │                                    │ next one within 1/8
//!    │  └─ application ──┘                                    ▼
//!    └──────────────── 48 rounds of probing ───────────── policed
//! ```

use ackclock_core::Time;

use super::super::Ack;

/// Rounds of an interval, at least.
const LEAST_ROUNDS: u32 = 4;
/// Rounds of an interval, at most: longer ones tell of no token bucket.
const MOST_ROUNDS: u32 = 16;
/// Lost per delivered segment that makes an interval lossy (Linux: 50/256, a fifth).
const LOSSY: f64 = 50.0 / 256.0;
/// Two rates this close, relative to the first, are the same.
const SAME: f64 = 0.125;
/// Two rates this close in B/s (4 kb/s) are the same.
const SAME_BYTES_PER_S: f64 = 500.0;
/// Rounds for which a policer's rate is used before probing again.
const USE_ROUNDS: u32 = 48;

/// What an ACK tells besides itself.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Whether it began a round.
    pub round_started: bool,
    /// Whether the application limits the sender.
    pub limited: bool,
    /// Whether the sender probes for bandwidth as in steady state.
    pub probing: bool,
    /// Bytes of a segment.
    pub segment_bytes: f64,
}

/// The detector. Rates are in segments per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policer {
    lost: u64,
    sampling: bool,
    rounds: u32,
    since: Time,
    delivered_before: u64,
    lost_before: u64,
    /// The rate of the interval before, or the one in use.
    rate: Option<f64>,
    in_use: bool,
}

impl Policer {
    /// The policer's rate, if one is in use.
    #[inline]
    pub fn rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.in_use)
    }

    /// Forgets all but the count of losses.
    pub fn reset(&mut self) {
        *self = Policer {
            lost: self.lost,
            ..Policer::default()
        };
    }

    /// Counts losses that no ACK reported.
    pub fn count_lost(&mut self, segments: u32) {
        self.lost += u64::from(segments);
    }

    /// Takes an ACK. Returns whether the rate in use has been given up.
    #[inline]
    pub fn observe(&mut self, ack: &Ack, look: &Look) -> bool {
        self.lost += u64::from(ack.newly_lost);
        if self.in_use {
            return self.count_use(look);
        }
        if self.sampling || ack.newly_lost > 0 {
            self.sample(ack, look);
        }
        false
    }

    fn count_use(&mut self, look: &Look) -> bool {
        self.rounds += u32::from(look.probing && look.round_started);
        let over = self.rounds >= USE_ROUNDS;
        if over {
            self.reset();
        }
        over
    }

    fn sample(&mut self, ack: &Ack, look: &Look) {
        if !self.sampling {
            self.start_interval(ack);
        }
        self.rounds += u32::from(look.round_started);
        if look.limited || self.rounds > MOST_ROUNDS {
            self.reset();
            return;
        }
        // An interval ends with a loss: then the tokens are used up.
        if self.rounds < LEAST_ROUNDS || ack.newly_lost == 0 {
            return;
        }
        let delivered = (ack.delivered - self.delivered_before) as f64;
        let lost = (self.lost - self.lost_before) as f64;
        let length = ack.now.since(self.since);
        if delivered > 0.0 && lost >= LOSSY * delivered && length > Time::ZERO {
            self.end_interval(delivered / length.seconds(), ack, look);
        }
    }

    fn start_interval(&mut self, ack: &Ack) {
        self.sampling = true;
        self.rounds = 0;
        self.since = ack.now;
        self.delivered_before = ack.delivered;
        self.lost_before = self.lost;
    }

    fn end_interval(&mut self, rate: f64, ack: &Ack, look: &Look) {
        let same = |before: f64| {
            let difference = (rate - before).abs();
            difference <= SAME * before || difference * look.segment_bytes <= SAME_BYTES_PER_S
        };
        if let Some(before) = self.rate.filter(|&before| same(before)) {
            self.rate = Some(f64::midpoint(rate, before));
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.rate = Some(rate);
            self.start_interval(ack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::window::testing::ack;
    use super::*;

    const LOOK: Look = Look {
        round_started: true,
        limited: false,
        probing: true,
        segment_bytes: 1448.0,
    };

    /// Rounds of 100 ms in which `delivered` segments arrive and `lost` are lost.
    fn rounds(policer: &mut Policer, from: u64, count: u64, delivered: u64, lost: u32) -> bool {
        (from..from + count).any(|round| {
            let ack = Ack {
                delivered: round * delivered,
                newly_lost: lost,
                ..ack(Time::from_milliseconds(100 * round), 1)
            };
            policer.observe(&ack, &LOOK)
        })
    }

    #[test]
    fn two_lossy_intervals_at_one_rate_are_a_policer() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 4, 100, 25);
        assert_eq!(policer.rate(), None, "one interval");
        rounds(&mut policer, 5, 4, 100, 25);
        let rate = policer.rate().expect("policed");
        assert!((rate - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn less_than_a_fifth_of_loss_is_no_policer() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 40, 100, 19);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn after_48_rounds_it_is_given_up() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1, 8, 100, 25);
        assert!(policer.rate().is_some());
        assert!(!rounds(&mut policer, 9, 47, 100, 0));
        assert!(rounds(&mut policer, 56, 1, 100, 0));
        assert_eq!(policer.rate(), None);
    }
}
