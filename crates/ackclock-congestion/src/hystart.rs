//! `HyStart`: leaves slow start before the queue overflows.
//!
//! S. Ha, I. Rhee: Taming the elephants: New TCP slow start, Computer Networks 55(9), 2011. Here as
//! Linux has it since 5.6 (`tcp_cubic.c`, with the round start of 6.1.129). Two detectors, in rounds of
//! one flight each; whichever fires first makes the present window ssthresh:
//!
//! - *ACK train*: ACKs that follow each other within 2 ms measure how long the bottleneck takes to
//!   drain a flight. A train of half the smallest RTT means that the window is about half the
//!   pipe, which the flight on its way will double. (A paced sender stretches its trains, and Linux
//!   waits for the whole RTT there; the detector gets this as an input.)
//! - *Delay increase*: the smallest of a round's RTTs exceeds the smallest ever by an eighth of it (4 to
//!   16 ms): a queue is standing.
//!
//! The smallest RTT is that since the last timeout, of the samples that the controller does not discard.
//!
//! Deviations from the paper are Linux's: the train is compared with RTT/2 plus an allowance for
//! segments sent in batches; the delay detector takes the round's minimum over all its samples from the
//! ninth on. Deviations from Linux: times are not rounded to microseconds; samples during fast recovery
//! are no reason to leave a slow start that has ended.
//!
//! ```text
//!            flight acknowledged
//!                 ┌────┐
//!                 ▼    │      train > RTT/2, or delay up
//!   start ────▶ searching ─────────────────────────▶ found
//!                 ▲                                    │
//!                 └───────────── timeout ──────────────┘
//! ```

use ackclock_core::Time;

use super::detector::{Detector, Steer, View};
use super::Ack;

/// Below this window a train is too short for an estimate (Linux: `hystart_low_window`).
const LOW_WINDOW: u32 = 16;
/// ACKs closer than this belong to one train (Linux: `hystart_ack_delta_us`).
const TRAIN_SPACING: Time = Time::from_milliseconds(2);
/// Samples that come before a round's smallest RTT is trusted.
const MIN_SAMPLES: u32 = 8;
/// Least delay increase that counts: smaller ones are noise of schedulers and batches.
const DELAY_MIN: Time = Time::from_milliseconds(4);
/// Delay increase that counts on the longest paths.
const DELAY_MAX: Time = Time::from_milliseconds(16);
/// Four of the largest batches that a segmentation offload sends at once (64 KiB each): the bytes whose
/// sending time a train may last longer.
const BATCH_BYTES: f64 = 4.0 * 65_536.0;
/// The allowance for batches is at most this.
const BATCH_ALLOWANCE_MAX: Time = Time::from_milliseconds(1);

/// Linux's pacing rate in slow start and later, in windows per smoothed RTT; the detector uses it even without pacing.
const PACING_RATIOS: (f64, f64) = (2.0, 1.2);

/// The round that began with a timeout ends with the repair.
const UNTIL_RECOVERED: u64 = u64::MAX;

/// The detectors' state.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    /// Smallest RTT since the last timeout.
    min_rtt: Option<Time>,
    exited: bool,
    /// The round ends when a segment beyond this one is acknowledged, or [`UNTIL_RECOVERED`].
    round_end: u64,
    round_start: Time,
    /// The newest ACK of the present train.
    train_end: Time,
    /// Smallest RTT of the round.
    round_min: Time,
    /// RTT samples of the round, up to [`MIN_SAMPLES`].
    samples: u32,
}

/// The path properties that the detectors compare with.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// The congestion window, in segments.
    cwnd: u32,
    /// The smallest RTT since the last timeout.
    min_rtt: Time,
    /// The rate that Linux would pace at, B/s.
    pacing_rate_bytes_per_s: f64,
    /// True if the sender does pace.
    paced: bool,
}

impl HyStart {
    /// Searching from the start of the connection.
    pub fn from_start() -> HyStart {
        HyStart::searching(Time::ZERO, 0, None)
    }

    /// Search again, after a timeout at `now`.
    fn restart(&mut self, now: Time) {
        *self = HyStart::searching(now, UNTIL_RECOVERED, None);
    }

    fn searching(now: Time, round_end: u64, min_rtt: Option<Time>) -> HyStart {
        HyStart {
            min_rtt,
            exited: false,
            round_end,
            round_start: now,
            train_end: now,
            round_min: Time::NEVER,
            samples: 0,
        }
    }

    /// An ACK with an RTT sample arrived in slow start. Returns whether slow start should end now.
    fn should_exit(&mut self, ack: &Ack, rtt: Time, path: &Path) -> bool {
        if self.exited {
            return false;
        }
        if self.round_is_over(ack) {
            *self = HyStart::searching(ack.now, ack.next, self.min_rtt);
        }
        if path.cwnd < LOW_WINDOW {
            return false;
        }
        let train = self.train_is_long(ack.now, path);
        let delay = self.delay_increased(rtt, path.min_rtt);
        self.exited = train || delay;
        self.exited
    }

    fn round_is_over(&self, ack: &Ack) -> bool {
        if self.round_end == UNTIL_RECOVERED {
            !ack.recovering
        } else {
            ack.unacknowledged > self.round_end
        }
    }

    fn train_is_long(&mut self, now: Time, path: &Path) -> bool {
        if now.since(self.train_end) > TRAIN_SPACING {
            return false;
        }
        self.train_end = now;
        let limit = path.min_rtt + batch_allowance(path.pacing_rate_bytes_per_s);
        let threshold = if path.paced { limit } else { half(limit) };
        now.since(self.round_start) > threshold
    }

    fn delay_increased(&mut self, rtt: Time, min_rtt: Time) -> bool {
        self.round_min = self.round_min.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        let increase =
            Time::from_picoseconds(min_rtt.picoseconds() / 8).clamp(DELAY_MIN, DELAY_MAX);
        self.round_min > min_rtt + increase
    }
}

impl Detector for HyStart {
    /// Linux's `pkts_acked` comes before `cong_avoid`.
    const AFTER_GROWTH: bool = false;

    fn is_done(&self) -> bool {
        self.exited
    }

    fn on_ack(&mut self, ack: &Ack, view: View) -> Option<Steer> {
        let rtt = ack.rtt?;
        let min_rtt = self.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt));
        self.min_rtt = Some(min_rtt);
        if !view.in_slow_start() {
            return None;
        }
        let path = Path {
            cwnd: view.cwnd as u32,
            min_rtt,
            pacing_rate_bytes_per_s: pacing_rate_bytes_per_s(view, ack),
            paced: ack.paced,
        };
        self.should_exit(ack, rtt, &path)
            .then_some(Steer::Exit(view.cwnd))
    }

    fn on_timeout(&mut self, now: Time) {
        self.restart(now);
    }
}

/// The rate that Linux keeps ready for pacing.
fn pacing_rate_bytes_per_s(view: View, ack: &Ack) -> f64 {
    let (slow_start, later) = PACING_RATIOS;
    let ratio = if view.cwnd < view.ssthresh / 2.0 {
        slow_start
    } else {
        later
    };
    let segment_bytes = ack.newly_acked_bytes as f64 / f64::from(ack.newly_acked.max(1));
    ratio * view.cwnd * segment_bytes / ack.srtt.seconds()
}

/// Return the extra duration of a train because segments leave in batches.
fn batch_allowance(pacing_rate_bytes_per_s: f64) -> Time {
    Time::from_seconds(BATCH_BYTES / pacing_rate_bytes_per_s).min(BATCH_ALLOWANCE_MAX)
}

fn half(time: Time) -> Time {
    Time::from_picoseconds(time.picoseconds() / 2)
}

#[cfg(test)]
mod tests {
    use super::super::window::testing::ack;
    use super::*;

    const RTT: Time = Time::from_milliseconds(50);

    const PATH: Path = Path {
        cwnd: 100,
        min_rtt: RTT,
        pacing_rate_bytes_per_s: 1e7,
        paced: false,
    };

    const fn us(microseconds: u64) -> Time {
        Time::from_microseconds(microseconds)
    }

    /// An ACK for `unacknowledged` − 1 in a flight that ends before `next`.
    fn numbered(now: Time, unacknowledged: u64, next: u64) -> Ack {
        Ack {
            next,
            unacknowledged,
            ..ack(now, 1)
        }
    }

    /// Feeds a train of ACKs `spacing` apart and return its length when slow start should end.
    fn exit_after(hystart: &mut HyStart, spacing: Time, path: &Path) -> Option<Time> {
        let start = us(1_000_000);
        let mut now = start;
        for segment in 1..200 {
            if hystart.should_exit(&numbered(now, segment, 1000), path.min_rtt, path) {
                return Some(now.since(start));
            }
            now += spacing;
        }
        None
    }

    #[test]
    fn a_train_of_half_an_rtt_and_half_the_allowance_ends_slow_start() {
        let train = exit_after(&mut HyStart::from_start(), us(1200), &PATH);
        assert_eq!(train, Some(us(26_400)), "the first beyond (50 + 1) ms / 2");
    }

    #[test]
    fn at_high_rates_the_allowance_is_the_time_of_four_batches() {
        let fast = Path {
            pacing_rate_bytes_per_s: 4.0 * 65_536.0 / 100e-6,
            ..PATH
        };
        let train = exit_after(
            &mut HyStart::from_start(),
            us(10),
            &Path {
                min_rtt: us(1000),
                ..fast
            },
        );
        assert_eq!(train, Some(us(560)), "the first beyond (1000 + 100) µs / 2");
    }

    #[test]
    fn a_paced_train_may_last_one_rtt() {
        let paced = Path {
            paced: true,
            ..PATH
        };
        let train = exit_after(&mut HyStart::from_start(), us(1200), &paced);
        assert_eq!(train, Some(us(51_600)));
    }

    #[test]
    fn acks_far_apart_are_no_train() {
        assert_eq!(
            exit_after(&mut HyStart::from_start(), us(2001), &PATH),
            None
        );
    }

    #[test]
    fn a_small_window_never_exits() {
        let small = Path { cwnd: 15, ..PATH };
        assert_eq!(
            exit_after(&mut HyStart::from_start(), us(1200), &small),
            None
        );
    }

    #[test]
    fn a_new_flight_starts_a_new_train() {
        let mut hystart = HyStart::from_start();
        assert!(!hystart.should_exit(&numbered(us(0), 1, 10), RTT, &PATH));
        for (at_us, segment) in (1..).map(|n| (n * 1900, n + 1)).take(9) {
            assert!(!hystart.should_exit(&numbered(us(at_us), segment, 10), RTT, &PATH));
        }
        // Segment 10 is the first of the next flight: 19 ms into the first train, 0 into this one.
        assert!(!hystart.should_exit(&numbered(us(19_000), 11, 20), RTT, &PATH));
        for at_us in (20_900..44_500).step_by(1900) {
            assert!(!hystart.should_exit(&numbered(us(at_us), 12, 20), RTT, &PATH));
        }
    }

    /// RTTs of one round with ACKs far apart: the index of the sample with which slow start ends.
    fn exit_with(samples_us: &[u64]) -> Option<usize> {
        let mut hystart = HyStart::from_start();
        samples_us.iter().enumerate().position(|(index, rtt_us)| {
            let now = us(10_000 * index as u64);
            hystart.should_exit(&numbered(now, 1, 100), us(*rtt_us), &PATH)
        })
    }

    #[test]
    fn nine_samples_above_the_smallest_rtt_plus_an_eighth_end_slow_start() {
        assert_eq!(exit_with(&[56_251; 20]), Some(8));
        assert_eq!(exit_with(&[56_250; 20]), None);
    }

    #[test]
    fn one_low_sample_in_a_round_prevents_the_exit() {
        let mut samples = [80_000; 20];
        samples[5] = 50_000;
        assert_eq!(exit_with(&samples), None);
    }

    #[test]
    fn the_delay_threshold_is_4_to_16_ms() {
        let exits = |min_rtt: Time, rtt: Time| {
            let mut hystart = HyStart::from_start();
            let path = Path { min_rtt, ..PATH };
            (0..20).any(|n| hystart.should_exit(&numbered(us(10_000 * n), 1, 100), rtt, &path))
        };
        assert!(!exits(us(1000), us(5000)));
        assert!(exits(us(1000), us(5001)));
        assert!(!exits(us(400_000), us(416_000)));
        assert!(exits(us(400_000), us(416_001)));
    }

    #[test]
    fn after_the_exit_no_other_follows_until_a_timeout() {
        let mut hystart = HyStart::from_start();
        assert!(exit_after(&mut hystart, us(1200), &PATH).is_some());
        assert_eq!(exit_after(&mut hystart, us(1200), &PATH), None);
        hystart.restart(us(900_000));
        assert!(exit_after(&mut hystart, us(1200), &PATH).is_some());
    }
}
