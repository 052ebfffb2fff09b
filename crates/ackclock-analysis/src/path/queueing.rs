//! Estimation of a queue from round-trip times.

use super::trace::{line, quantile, Levels, Trace};
use super::{Delay, Estimate, RttSample, NOISE_S};
use bases::{possible, Bases};

mod bases;

/// Parts of a trace that are taken as independent, and the 97.5 % quantile of Student's t with one less.
const BLOCKS: usize = 10;
const STUDENT: f64 = 2.262;
/// Packets in such a part, at least: four classes of two.
const MIN_SAMPLES: usize = 8;
/// Samples over which a rate is measured.
const WINDOW: usize = 8;
/// And for how long at least: ten times the noise.
const WINDOW_S: f64 = 0.010;
/// The relative difference of two measurements of one rate that noise explains.
const ONE_RATE: f64 = 0.1;
/// The quantile taken as the minimum where packets are captured behind the queue.
const ALWAYS: f64 = 0.1;
/// Packets that pass undelayed while less than half of a burst is used, at least.
const MIN_UNDELAYED: usize = 4;
/// Lost packets whose queue is known, at least; and how far apart nine in ten may be, over their median, if the queue
/// drops where it is full.
const MIN_DROPS: usize = 15;
const DROP_TAIL: f64 = 0.5;

/// Round trips in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    /// When their packets came, on the trace's clock.
    time_s: Vec<f64>,
    /// Their excess over the shortest round trip of the flow, in seconds.
    queued_s: Vec<f64>,
    /// The bytes until then, this packet included.
    passed: Vec<f64>,
    rtt_s: Vec<f64>,
    base_s: f64,
    /// Packets have waited when they come.
    behind: bool,
}

/// The queue that the round trips show.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    /// Bytes a second.
    pub rate: Estimate,
    /// The share of its busy time in which it had this rate, give or take a tenth: a link has one rate, noise has any.
    pub steady: f64,
    /// The share of the active time in which it was busy.
    pub busy: f64,
    /// Bytes that come without being delayed.
    pub burst: Option<Estimate>,
    /// The greatest lateness of packets behind the queue while it was busy: what was held back then comes as a burst.
    pub max_lateness_s: f64,
    /// Bytes beyond the rate at which it drops, if there is such a number.
    pub depth: Option<Estimate>,
}

impl Delays {
    /// The samples while the trace lasts; they may be in any order.
    pub fn new(trace: &Trace, samples: &[RttSample]) -> Self {
        let second =
            |sample: &RttSample| sample.time_ns.saturating_sub(trace.start_ns) as f64 * 1e-9;
        let within = |sample: &&RttSample| (0.0..=trace.seconds()).contains(&second(sample));
        let mut those: Vec<RttSample> = samples.iter().filter(within).copied().collect();
        those.sort_by_key(|sample| sample.time_ns);
        let bases = Bases::of(samples);
        let mut delays = Self::default();
        let (mut place, mut passed) = (0, 0.0);
        for sample in &those {
            let time_s = second(sample);
            while place < trace.len() && trace.time_s[place] <= time_s {
                passed += if trace.lost[place] {
                    0.0
                } else {
                    trace.bytes[place]
                };
                place += 1;
            }
            let rtt_ns = possible(sample.rtt_ns);
            delays.time_s.push(time_s);
            delays
                .queued_s
                .push(rtt_ns.saturating_sub(bases.ns(sample.flow)).max(0) as f64 * 1e-9);
            delays.passed.push(passed);
            delays.rtt_s.push(rtt_ns as f64 * 1e-9);
        }
        let least = samples.iter().map(|sample| possible(sample.rtt_ns)).min();
        let behind = samples.iter().filter(|sample| sample.behind).count();
        delays.behind = 2 * behind > samples.len();
        delays.in_order();
        delays.base_s = least.unwrap_or(0) as f64 * 1e-9;
        delays
    }

    /// The packets were captured behind the queue.
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    fn len(&self) -> usize {
        self.time_s.len()
    }

    /// When a packet came to the queue.
    fn arrival_s(&self, place: usize) -> f64 {
        let waits_s = if self.behind {
            self.queued_s[place]
        } else {
            0.0
        };
        self.time_s[place] - waits_s
    }

    /// When it left.
    fn leaves_s(&self, place: usize) -> f64 {
        self.arrival_s(place) + self.queued_s[place]
    }

    /// A queue does not reorder: what took longer than later packets show, or than those before it show behind the
    /// queue, was delayed otherwise, as by a delayed acknowledgement.
    fn in_order(&mut self) {
        if self.behind {
            let mut before_s = f64::NEG_INFINITY;
            for (time_s, queued_s) in self.time_s.iter().zip(&mut self.queued_s) {
                before_s = before_s.max(time_s - *queued_s);
                *queued_s = time_s - before_s;
            }
            return;
        }
        let mut next_s = f64::INFINITY;
        for (time_s, queued_s) in self.time_s.iter().zip(&mut self.queued_s).rev() {
            next_s = next_s.min(time_s + *queued_s);
            *queued_s = next_s - time_s;
        }
    }

    /// Return the round trips under load.
    pub fn summary(&self) -> Option<Delay> {
        let mut rtt_s = self.rtt_s.clone();
        let mut queued_s = self.queued_s.clone();
        (!rtt_s.is_empty()).then(|| Delay {
            rtt_min_s: self.base_s,
            rtt_median_s: quantile(&mut rtt_s, 0.5),
            rtt_p95_s: quantile(&mut rtt_s, 0.95),
            min_queue_s: quantile(&mut queued_s, 0.1),
        })
    }

    /// The level of a bucket that leaks `rate` bytes a second behind each sample's packet.
    fn levels(&self, trace: &Trace, rate: f64) -> Vec<f64> {
        let (mut place, mut level, mut then_s) = (0, 0.0_f64, 0.0);
        self.time_s
            .iter()
            .map(|&time_s| {
                while place < trace.len() && trace.time_s[place] <= time_s {
                    level = (level - rate * (trace.time_s[place] - then_s)).max(0.0);
                    then_s = trace.time_s[place];
                    if !trace.lost[place] {
                        level += trace.bytes[place];
                    }
                    place += 1;
                }
                (level - rate * (time_s - then_s)).max(0.0)
            })
            .collect()
    }

    /// Seconds of round trip a second of V/r: over all levels, and over the upper half, where a queue behind a bucket
    /// is. About 1 behind a queue, 0 behind a policer.
    pub fn slopes(&self, trace: &Trace, rate: f64) -> [Option<Estimate>; 2] {
        let waits: Vec<f64> = self
            .levels(trace, rate)
            .iter()
            .map(|level| level / rate)
            .collect();
        let middle = quantile(&mut waits.clone(), 0.5);
        let points: Vec<(f64, f64)> = waits
            .into_iter()
            .zip(self.queued_s.iter().copied())
            .collect();
        let upper: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|&(wait, _)| wait >= middle)
            .collect();
        [slope(&points), slope(&upper)]
    }

    /// The queue that the round trips show. A packet that comes before the one before it has left finds a busy link:
    /// so the bytes that arrived between the two left at the link's rate between their departures.
    pub fn queue(&self, trace: &Trace) -> Option<Queue> {
        let windows = self.busy_windows();
        let length = windows.len().div_ceil(BLOCKS).max(MIN_SAMPLES);
        let rates: Vec<(f64, f64)> = windows.chunks(length).map(Window::rate_of).collect();
        let rate = weighted(&rates)?;
        let seconds = |of: &mut dyn Iterator<Item = &Window>| -> f64 {
            of.map(|window| window.duration_s).sum()
        };
        let all_s = seconds(&mut windows.iter());
        let like = |window: &&Window| (window.rate() / rate.value - 1.0).abs() < ONE_RATE;
        let burst = self.burst(trace, rate);
        Some(Queue {
            rate,
            steady: seconds(&mut windows.iter().filter(like)) / all_s,
            busy: (all_s / self.active_s()).min(1.0),
            burst,
            max_lateness_s: self.max_lateness_s(trace, rate.value),
            depth: self.depth(trace, rate.value, burst.map_or(0.0, |burst| burst.value)),
        })
    }

    /// Ranges of samples between which the link was busy.
    fn busy_windows(&self) -> Vec<Window> {
        let mut windows = Vec::new();
        let mut begin = 0;
        for place in 1..self.len() {
            let left_s = self.leaves_s(place - 1);
            if self.arrival_s(place) >= left_s || self.queued_s[place] < NOISE_S {
                begin = place;
            } else if place - begin >= WINDOW && left_s - self.arrival_s(begin) > WINDOW_S {
                let duration_s = self.leaves_s(place) - self.leaves_s(begin);
                if duration_s > 0.0 {
                    windows.push(Window {
                        bytes: self.passed[place] - self.passed[begin],
                        duration_s,
                    });
                }
                begin = place;
            }
        }
        windows
    }

    /// Return the time with packets, without pauses of several round trips.
    fn active_s(&self) -> f64 {
        let pauses = self.time_s.windows(2).map(|pair| pair[1] - pair[0]);
        pauses
            .zip(&self.rtt_s)
            .filter(|(pause, rtt)| *pause < 4.0 * **rtt)
            .map(|(pause, _)| pause)
            .sum()
    }

    /// Return by how much a packet came later behind a busy queue than its rate explains, at most; 0 before the queue.
    fn max_lateness_s(&self, trace: &Trace, rate: f64) -> f64 {
        if !self.behind {
            return 0.0;
        }
        let (mut max_lateness_s, mut sample) = (0.0_f64, 0);
        for place in 1..trace.len() {
            let time_s = trace.time_s[place];
            while sample + 1 < self.len() && self.time_s[sample] < time_s {
                sample += 1;
            }
            let gap_s = time_s - trace.time_s[place - 1];
            if self
                .queued_s
                .get(sample)
                .is_some_and(|&queued_s| queued_s > gap_s)
            {
                max_lateness_s = max_lateness_s.max(gap_s - trace.bytes[place] / rate);
            }
        }
        max_lateness_s
    }

    /// Return the burst that passes undelayed at the start of a busy period, if the rate is known well enough.
    fn burst(&self, trace: &Trace, rate: Estimate) -> Option<Estimate> {
        let mut levels = Levels::default();
        levels.fill(trace, rate.value);
        let (mut bursts, mut undelayed) = (Vec::new(), Vec::new());
        let mut place = 0;
        for (&time_s, &queued_s) in self.time_s.iter().zip(&self.queued_s) {
            // Of what comes at once the last, or behind the queue the first.
            let earlier = |place: usize| {
                if self.behind {
                    trace.time_s[place] < time_s
                } else {
                    trace.time_s[place + 1] <= time_s
                }
            };
            while place + 1 < trace.len() && earlier(place) {
                place += 1;
            }
            let packet = trace.bytes[place];
            if queued_s * rate.value <= 2.0 * packet {
                undelayed.push(levels.level[place]);
            } else if levels.age_s[place] * (rate.high - rate.low) < packet {
                let level = levels.level[place];
                bursts.push(if self.behind {
                    level
                } else {
                    level - packet - queued_s * rate.value
                });
            }
        }
        let length = bursts.len().div_ceil(BLOCKS).max(MIN_SAMPLES);
        let share = if self.behind { ALWAYS } else { 0.5 };
        let typical: Vec<(f64, f64)> = bursts
            .chunks(length)
            .map(|part| (quantile(&mut part.to_vec(), share), part.len() as f64))
            .collect();
        // If a capture begins amid a busy period and its first delays are not known, a queue that never empties looks like
        // a burst: packets must be seen to pass undelayed while the bucket fills.
        let burst = weighted(&typical)?;
        let passed = undelayed.iter().filter(|&&level| level < burst.value / 2.0);
        if passed.count() < MIN_UNDELAYED {
            return None;
        }
        // What has passed is a number of packets, each as a whole.
        let packet = if self.behind { trace.bytes[0] } else { 0.0 };
        Some(Estimate {
            low: burst.low - packet / 2.0,
            high: burst.high + packet / 2.0,
            ..burst
        })
    }

    /// Return the queueing delay above noise at losses: the median of the shorter of the neighbouring round trips.
    pub fn before_losses(&self, trace: &Trace) -> Option<f64> {
        let mut queued_s = Vec::new();
        let mut next = 0;
        for &loss in &trace.losses {
            let time_s = trace.time_s[loss];
            while next < self.len() && self.time_s[next] <= time_s {
                next += 1;
            }
            let recent = (next.saturating_sub(2)..next)
                .filter(|&sample| time_s - self.time_s[sample] < self.rtt_s[sample]);
            queued_s.extend(
                recent
                    .map(|sample| self.queued_s[sample])
                    .min_by(f64::total_cmp),
            );
        }
        (!queued_s.is_empty()).then(|| (quantile(&mut queued_s, 0.5) - NOISE_S).max(0.0))
    }

    /// Losses that are more than a round trip apart.
    pub fn episodes(&self, trace: &Trace) -> usize {
        let rtt_s = quantile(&mut self.rtt_s.clone(), 0.5);
        let times = trace
            .losses
            .windows(2)
            .map(|pair| trace.time_s[pair[1]] - trace.time_s[pair[0]]);
        usize::from(!trace.losses.is_empty()) + times.filter(|&gap_s| gap_s > rtt_s).count()
    }

    /// Return the backlog at losses, if it was always about the same.
    fn depth(&self, trace: &Trace, rate: f64, burst: f64) -> Option<Estimate> {
        let mut depths = Vec::new();
        let (mut place, mut passed, mut sample) = (0, 0.0, 0);
        for &loss in &trace.losses {
            let time_s = trace.time_s[loss];
            while place < loss {
                passed += if trace.lost[place] {
                    0.0
                } else {
                    trace.bytes[place]
                };
                place += 1;
            }
            while sample + 1 < self.len() && self.time_s[sample + 1] <= time_s {
                sample += 1;
            }
            let since_s = time_s - self.time_s.get(sample)?;
            if since_s >= 0.0 && since_s < self.queued_s[sample] {
                let queued =
                    (self.queued_s[sample] - since_s) * rate + passed - self.passed[sample];
                depths.push(burst + queued + trace.bytes[loss] / 2.0);
            }
        }
        depths.sort_by(f64::total_cmp);
        let count = depths.len();
        if count < MIN_DROPS {
            return None;
        }
        let at = |share: f64| depths[((count - 1) as f64 * share.clamp(0.0, 1.0)).round() as usize];
        // The median's ranks (binomial).
        let rank = 0.98 / (count as f64).sqrt();
        // No narrower than a packet, which is lost or passes as a whole.
        let packet = trace.bytes[trace.losses[0]];
        let steady = at(0.95) - at(0.05) < DROP_TAIL * at(0.5);
        steady.then(|| Estimate {
            value: at(0.5),
            low: at(0.5 - rank) - packet / 2.0,
            high: at(0.5 + rank) + packet / 2.0,
        })
    }
}

/// A range while the link was busy.
#[derive(Clone, Copy, Debug)]
struct Window {
    bytes: f64,
    duration_s: f64,
}

impl Window {
    fn rate(&self) -> f64 {
        self.bytes / self.duration_s
    }

    /// The rate at half of the time of these, and the time.
    fn rate_of(windows: &[Self]) -> (f64, f64) {
        let mut sorted = windows.to_vec();
        sorted.sort_by(|one, other| one.rate().total_cmp(&other.rate()));
        let all_s: f64 = sorted.iter().map(|window| window.duration_s).sum();
        let mut until_s = 0.0;
        let middle = sorted.iter().find(|window| {
            until_s += window.duration_s;
            until_s >= all_s / 2.0
        });
        (middle.map_or(0.0, Self::rate), all_s)
    }
}

/// The slope of `y` against `x`: in each block a line through the medians of four classes.
fn slope(points: &[(f64, f64)]) -> Option<Estimate> {
    let length = points.len().div_ceil(BLOCKS).max(MIN_SAMPLES);
    let mut slopes = Vec::new();
    for block in points
        .chunks(length)
        .filter(|block| block.len() >= MIN_SAMPLES)
    {
        let mut block = block.to_vec();
        block.sort_by(|one, other| one.0.total_cmp(&other.0));
        let medians: Vec<(f64, f64)> = block
            .chunks(block.len().div_ceil(4))
            .map(|class| {
                let mut xs: Vec<f64> = class.iter().map(|point| point.0).collect();
                let mut ys: Vec<f64> = class.iter().map(|point| point.1).collect();
                (quantile(&mut xs, 0.5), quantile(&mut ys, 0.5))
            })
            .collect();
        let mean = medians.iter().map(|point| point.0).sum::<f64>() / medians.len() as f64;
        let spread: f64 = medians.iter().map(|point| (point.0 - mean).powi(2)).sum();
        if let Some((slope, _)) = line(medians.iter().copied()) {
            slopes.push((slope, spread));
        }
    }
    weighted(&slopes)
}

/// The weighted mean of independent values, with its interval; three at least.
fn weighted(values: &[(f64, f64)]) -> Option<Estimate> {
    let sum: f64 = values.iter().map(|&(_, weight)| weight).sum();
    let mean = values
        .iter()
        .map(|&(value, weight)| value * weight)
        .sum::<f64>()
        / sum;
    let count = values.len() as f64;
    let squares: f64 = values
        .iter()
        .map(|&(value, weight)| (weight * (value - mean)).powi(2))
        .sum();
    let error = (squares * count / (count - 1.0)).sqrt() / sum;
    (values.len() >= 3 && mean.is_finite() && error.is_finite()).then_some(Estimate {
        value: mean,
        low: mean - STUDENT * error,
        high: mean + STUDENT * error,
    })
}
