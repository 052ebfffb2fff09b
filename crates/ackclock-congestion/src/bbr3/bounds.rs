//! The bounds that congestion sets to the model: a short-term one that holds until the next probe, and a
//! long-term one that probes move (draft-ietf-ccwg-bbr sections 5.3.3.9 and 5.5.10).

use super::super::bbr::path::pipe::MIN_WINDOW;
use super::super::bbr::path::rounds::Rounds;
use super::super::Ack;

/// Bandwidth (segments/s) and volume (segments) that losses outside probes leave; infinite without.
#[derive(Clone, Copy, Debug)]
pub struct ShortTerm {
    /// `bw_shortterm`, once `bw_lo`.
    pub bandwidth: f64,
    /// `inflight_shortterm`, once `inflight_lo`.
    pub volume: f64,
}

impl ShortTerm {
    /// No bound.
    pub const NONE: ShortTerm = ShortTerm {
        bandwidth: f64::INFINITY,
        volume: f64::INFINITY,
    };

    /// A round with losses: down to what was delivered in it, by 1 − `beta` at most.
    pub fn reduce(&mut self, bandwidth: f64, cwnd: f64, latest: &Latest, beta: f64) {
        if self.bandwidth.is_infinite() {
            self.bandwidth = bandwidth;
        }
        if self.volume.is_infinite() {
            self.volume = cwnd;
        }
        self.bandwidth = latest.bandwidth.max(beta * self.bandwidth);
        self.volume = latest.volume.max(beta * self.volume);
    }
}

/// The largest delivery rate (segments/s) and delivered volume (segments) of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latest {
    /// `bw_latest`.
    pub bandwidth: f64,
    /// `inflight_latest`.
    pub volume: f64,
}

/// The rounds in which losses are counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signals {
    /// The delivery of the round.
    pub latest: Latest,
    /// A round begins with its first loss.
    pub round: Rounds,
    /// True if something was lost in it.
    pub lost: bool,
    /// ACKs that reported losses in it.
    pub reports: u32,
}

impl Signals {
    /// Something was lost.
    pub fn note_loss(&mut self, delivered: u64) {
        if !self.lost {
            self.round.restart(delivered);
        }
        self.lost = true;
        self.reports += 1;
    }

    /// Take an ACK with its delivery rate.
    #[inline]
    pub fn observe(&mut self, ack: &Ack, bandwidth: f64) {
        self.latest.bandwidth = self.latest.bandwidth.max(bandwidth);
        self.latest.volume = self.latest.volume.max(delivered_since_sent(ack));
        self.round.observe(ack);
    }

    /// After an ACK was dealt with: a new round starts from it.
    #[inline]
    pub fn advance(&mut self, ack: &Ack, bandwidth: f64) {
        if self.round.started {
            self.reports = 0;
            self.latest = Latest {
                bandwidth,
                volume: delivered_since_sent(ack),
            };
        }
    }

    /// Forget all but where the round ends.
    pub fn reset(&mut self) {
        self.lost = false;
        self.latest = Latest::default();
    }
}

/// `RS.delivered`.
#[inline]
fn delivered_since_sent(ack: &Ack) -> f64 {
    (ack.delivered - ack.prior_delivered) as f64
}

/// `inflight_longterm` (once `inflight_hi`): the volume above which probes found too much loss. A probe
/// that stays within the loss threshold raises it, by 1, 2, 4… segments per round trip.
#[derive(Clone, Copy, Debug)]
pub struct LongTerm {
    /// Segments; infinite as long as no probe lost too much.
    pub volume: f64,
    acked_per_segment: f64,
    acked: f64,
    rounds: u32,
}

/// The doublings stop here, so that the growth stays a number of segments.
const MAX_DOUBLINGS: u32 = 30;

impl LongTerm {
    /// No bound.
    pub const NONE: LongTerm = LongTerm {
        volume: f64::INFINITY,
        acked_per_segment: f64::INFINITY,
        acked: 0.0,
        rounds: 0,
    };

    /// The pipe is filled anew; a probe follows.
    pub fn refill(&mut self) {
        self.rounds = 0;
        self.acked = 0.0;
    }

    /// The probe has ended.
    pub fn stop_growing(&mut self) {
        self.acked_per_segment = f64::INFINITY;
    }

    /// Another round of a probe: twice as much growth as in the one before.
    pub fn steepen(&mut self, cwnd: f64) {
        self.acked_per_segment = (cwnd / 2f64.powi(self.rounds as i32)).max(1.0);
        self.rounds = (self.rounds + 1).min(MAX_DOUBLINGS);
    }

    /// A flight of this size lost little.
    pub fn admit(&mut self, in_flight: u32) {
        if self.volume.is_finite() {
            self.volume = self.volume.max(f64::from(in_flight));
        }
    }

    /// Grow by what a probe that uses the bound has delivered.
    pub fn grow(&mut self, ack: &Ack, cwnd: f64, round_started: bool) {
        if !ack.window_limited || cwnd < self.volume.floor() {
            return;
        }
        self.acked += f64::from(ack.newly_acked);
        if self.acked >= self.acked_per_segment {
            let segments = (self.acked / self.acked_per_segment).floor();
            self.acked -= segments * self.acked_per_segment;
            self.volume += segments;
        }
        if round_started {
            self.steepen(cwnd);
        }
    }

    /// The bound less room for other flows.
    pub fn with_headroom(&self, share: f64) -> f64 {
        if self.volume.is_infinite() {
            return self.volume;
        }
        let headroom = (share * self.volume).max(1.0);
        (self.volume - headroom).max(f64::from(MIN_WINDOW))
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // whole numbers
mod tests {
    use super::super::super::window::testing::ack;
    use super::*;
    use ackclock_core::Time;

    #[test]
    fn a_lossy_round_leaves_its_delivery_or_beta() {
        let latest = Latest {
            bandwidth: 900.0,
            volume: 60.0,
        };
        let mut bounds = ShortTerm::NONE;
        bounds.reduce(1000.0, 100.0, &latest, 0.7);
        assert_eq!((bounds.bandwidth, bounds.volume), (900.0, 70.0));
        bounds.reduce(1000.0, 100.0, &latest, 0.7);
        assert_eq!((bounds.bandwidth, bounds.volume), (900.0, 60.0));
    }

    #[test]
    fn a_probe_raises_the_bound_by_1_2_4_segments_per_round() {
        let mut bound = LongTerm {
            volume: 64.0,
            ..LongTerm::NONE
        };
        bound.refill();
        bound.steepen(64.0);
        let mut grown = Vec::new();
        for _ in 0..3 {
            let cwnd = bound.volume as u32;
            for segment in 1..=cwnd {
                bound.grow(&ack(Time::ZERO, 1), bound.volume, segment == cwnd);
            }
            grown.push(bound.volume - 64.0);
        }
        assert_eq!(grown, [1.0, 3.0, 7.0]);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_raise_it() {
        let mut bound = LongTerm {
            volume: 64.0,
            ..LongTerm::NONE
        };
        bound.steepen(1.0);
        bound.grow(&ack(Time::ZERO, 10), 63.0, false);
        assert_eq!(bound.volume, 64.0);
    }

    #[test]
    fn headroom_is_15_percent_min_one_segment_and_leaves_four() {
        let bound = |volume: f64| LongTerm {
            volume,
            ..LongTerm::NONE
        };
        assert_eq!(bound(100.0).with_headroom(0.15), 85.0);
        assert_eq!(bound(6.0).with_headroom(0.15), 5.0);
        assert_eq!(bound(4.0).with_headroom(0.15), 4.0);
        assert!(LongTerm::NONE.with_headroom(0.15).is_infinite());
    }

    #[test]
    fn a_round_of_losses_starts_with_the_first_one() {
        let mut signals = Signals::default();
        let at = |prior_delivered: u64, delivered: u64| Ack {
            delivered,
            prior_delivered,
            ..ack(Time::ZERO, 1)
        };
        signals.note_loss(100);
        signals.observe(&at(99, 101), 5.0);
        assert!(!signals.round.started);
        signals.note_loss(110);
        signals.observe(&at(100, 120), 5.0);
        assert!(signals.round.started && signals.lost);
        assert_eq!(signals.reports, 2);
    }
}
