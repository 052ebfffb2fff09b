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
const MIN_ROUNDS: u32 = 4;
/// Rounds of an interval, at most: longer ones show no token bucket.
const MAX_ROUNDS: u32 = 16;
/// Lost per delivered segment that makes an interval lossy (Linux: 50/256, a fifth).
const LOSSY: f64 = 50.0 / 256.0;
/// Two rates this close, relative to the first, are the same.
const MAX_RATE_DIFFERENCE: f64 = 0.125;
/// Two rates this close in B/s (4 kb/s) are the same.
const MAX_DIFFERENCE_BYTES_PER_S: f64 = 500.0;
/// Rounds for which a policer's rate is used before probing again.
const USE_ROUNDS: u32 = 48;

/// The context of an ACK.
#[derive(Clone, Copy, Debug)]
pub struct RoundInfo {
    /// True if it began a round.
    pub round_started: bool,
    /// True if the application limits the sender.
    pub limited: bool,
    /// True if the sender probes for bandwidth as in steady state.
    pub probing: bool,
    /// Bytes of a segment.
    pub segment_bytes: f64,
}

/// The detector. Rates are in segments per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongTermBandwidth {
    lost: u64,
    sampling: bool,
    rounds: u32,
    since: Time,
    delivered_before: u64,
    lost_upstream: u64,
    /// The rate of the interval before, or the one in use.
    rate: Option<f64>,
    in_use: bool,
}

impl LongTermBandwidth {
    /// The policer's rate, if one is in use.
    #[inline]
    pub fn rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.in_use)
    }

    /// Forget all but the count of losses.
    pub fn reset(&mut self) {
        *self = LongTermBandwidth {
            lost: self.lost,
            ..LongTermBandwidth::default()
        };
    }

    /// Count losses that no ACK reported.
    pub fn count_lost(&mut self, segments: u32) {
        self.lost += u64::from(segments);
    }

    /// Take an ACK. Returns whether the rate in use has been given up.
    #[inline]
    pub fn observe(&mut self, ack: &Ack, round: &RoundInfo) -> bool {
        self.lost += u64::from(ack.newly_lost);
        if self.in_use {
            return self.count_use(round);
        }
        if self.sampling || ack.newly_lost > 0 {
            self.sample(ack, round);
        }
        false
    }

    fn count_use(&mut self, round: &RoundInfo) -> bool {
        self.rounds += u32::from(round.probing && round.round_started);
        let over = self.rounds >= USE_ROUNDS;
        if over {
            self.reset();
        }
        over
    }

    fn sample(&mut self, ack: &Ack, round: &RoundInfo) {
        if !self.sampling {
            self.start_interval(ack);
        }
        self.rounds += u32::from(round.round_started);
        if round.limited || self.rounds > MAX_ROUNDS {
            self.reset();
            return;
        }
        // An interval ends with a loss: then the tokens are used up.
        if self.rounds < MIN_ROUNDS || ack.newly_lost == 0 {
            return;
        }
        let delivered = (ack.delivered - self.delivered_before) as f64;
        let lost = (self.lost - self.lost_upstream) as f64;
        let length = ack.now.since(self.since);
        if delivered > 0.0 && lost >= LOSSY * delivered && length > Time::ZERO {
            self.end_interval(delivered / length.seconds(), ack, round);
        }
    }

    fn start_interval(&mut self, ack: &Ack) {
        self.sampling = true;
        self.rounds = 0;
        self.since = ack.now;
        self.delivered_before = ack.delivered;
        self.lost_upstream = self.lost;
    }

    fn end_interval(&mut self, rate: f64, ack: &Ack, round: &RoundInfo) {
        let is_same = |before: f64| {
            let difference = (rate - before).abs();
            difference <= MAX_RATE_DIFFERENCE * before
                || difference * round.segment_bytes <= MAX_DIFFERENCE_BYTES_PER_S
        };
        if let Some(before) = self.rate.filter(|&before| is_same(before)) {
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

    const ROUND: RoundInfo = RoundInfo {
        round_started: true,
        limited: false,
        probing: true,
        segment_bytes: 1448.0,
    };

    /// Rounds of 100 ms in which `delivered` segments arrive and `lost` are lost.
    fn rounds(
        lt_bw: &mut LongTermBandwidth,
        from: u64,
        count: u64,
        delivered: u64,
        lost: u32,
    ) -> bool {
        (from..from + count).any(|round| {
            let ack = Ack {
                delivered: round * delivered,
                newly_lost: lost,
                ..ack(Time::from_milliseconds(100 * round), 1)
            };
            lt_bw.observe(&ack, &ROUND)
        })
    }

    #[test]
    fn two_lossy_intervals_at_one_rate_are_a_policer() {
        let mut lt_bw = LongTermBandwidth::default();
        rounds(&mut lt_bw, 1, 4, 100, 25);
        assert_eq!(lt_bw.rate(), None, "one interval");
        rounds(&mut lt_bw, 5, 4, 100, 25);
        let rate = lt_bw.rate().expect("policed");
        assert!((rate - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn less_than_a_fifth_of_loss_is_no_policer() {
        let mut lt_bw = LongTermBandwidth::default();
        rounds(&mut lt_bw, 1, 40, 100, 19);
        assert_eq!(lt_bw.rate(), None);
    }

    #[test]
    fn after_48_rounds_it_is_given_up() {
        let mut lt_bw = LongTermBandwidth::default();
        rounds(&mut lt_bw, 1, 8, 100, 25);
        assert!(lt_bw.rate().is_some());
        assert!(!rounds(&mut lt_bw, 9, 47, 100, 0));
        assert!(rounds(&mut lt_bw, 56, 1, 100, 0));
        assert_eq!(lt_bw.rate(), None);
    }
}
