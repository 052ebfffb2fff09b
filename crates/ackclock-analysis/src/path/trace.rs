//! Arrivals in the form that the fits work with, and the bucket that they fill.

use std::borrow::Cow;

use super::Arrival;

/// In a longer pause, in seconds, a flow is idle: the shortest retransmission timeout of Linux.
const MAX_PAUSE_S: f64 = 0.2;
/// Arrivals used by the fits, which go over them some hundred times: the first, as the limiter may have been idle
/// before.
const STRETCH: usize = 1 << 16;
/// If fewer than these were lost there, more of them, and at last those with the most losses: the precision is that of
/// some hundred losses.
const LOSSES: usize = 300;
const LONG_STRETCH: usize = 1 << 18;
/// An outage lasts for so long: a bucket of two packets is full again if its rate is more than 24 kb/s.
const OUTAGE_NS: i64 = 1_000_000_000;

/// Arrivals in the order of time, in seconds from the first.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Clock time of second 0.
    pub start_ns: i64,
    pub time_s: Vec<f64>,
    pub bytes: Vec<f64>,
    pub lost: Vec<bool>,
    /// The places of those that were lost.
    pub losses: Vec<usize>,
}

impl Trace {
    /// The part of `arrivals`, which are in the order of time, that the fits use.
    pub fn new(arrivals: &[Arrival]) -> Self {
        let enough = |of: &&[Arrival]| of.iter().filter(|arrival| arrival.lost).count() >= LOSSES;
        let first = |length: usize| &arrivals[..arrivals.len().min(length)];
        let stretch = [first(STRETCH), first(LONG_STRETCH)]
            .into_iter()
            .find(enough);
        Self::from_arrivals(stretch.unwrap_or_else(|| busiest(arrivals, LONG_STRETCH)))
    }

    /// All of `arrivals`, which are in the order of time.
    pub fn from_arrivals(arrivals: &[Arrival]) -> Self {
        let start_ns = arrivals.first().map_or(0, |first| first.time_ns);
        let lost: Vec<bool> = arrivals.iter().map(|arrival| arrival.lost).collect();
        Self {
            start_ns,
            time_s: arrivals
                .iter()
                .map(|arrival| arrival.time_ns.saturating_sub(start_ns) as f64 * 1e-9)
                .collect(),
            bytes: arrivals
                .iter()
                .map(|arrival| f64::from(arrival.bytes))
                .collect(),
            losses: (0..lost.len()).filter(|&place| lost[place]).collect(),
            lost,
        }
    }

    /// The same from where least had been sent above the mean rate: where a bucket is fullest.
    pub fn since_lowest(&self) -> Self {
        let passed = |place: usize| {
            if self.lost[place] {
                0.0
            } else {
                self.bytes[place]
            }
        };
        let rate = self.passed_bytes() / self.seconds();
        let (mut level, mut lowest, mut first) = (0.0, 0.0, 0);
        for place in 0..self.len() {
            let before = level - rate * self.time_s[place];
            if before < lowest {
                (lowest, first) = (before, place);
            }
            level += passed(place);
        }
        let start_s = self.time_s.get(first).copied().unwrap_or(0.0);
        let losses = self.losses.iter().filter(|&&place| place >= first);
        Self {
            start_ns: self.start_ns + (start_s * 1e9).round() as i64,
            time_s: self.time_s[first..]
                .iter()
                .map(|time_s| time_s - start_s)
                .collect(),
            bytes: self.bytes[first..].to_vec(),
            lost: self.lost[first..].to_vec(),
            losses: losses.map(|place| place - first).collect(),
        }
    }

    /// Return the bytes of what was not lost.
    pub fn passed_bytes(&self) -> f64 {
        let passed = self.bytes.iter().zip(&self.lost).filter(|(_, &lost)| !lost);
        passed.map(|(bytes, _)| bytes).sum()
    }

    /// Return the time of the trace, of each pause no more than [`MAX_PAUSE_S`].
    pub fn active_s(&self) -> f64 {
        let gaps = self.time_s.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.map(|gap_s| gap_s.min(MAX_PAUSE_S)).sum()
    }

    /// The same with what passed in a row as one packet, up to so many: enough to look for a rate.
    pub fn merged(&self, most: usize) -> Self {
        let pause_s = self.seconds() / self.len() as f64;
        let mut merged = Self {
            start_ns: self.start_ns,
            ..Self::default()
        };
        let mut packets = 0;
        for ((&time_s, &bytes), &lost) in self.time_s.iter().zip(&self.bytes).zip(&self.lost) {
            let last = merged.len().wrapping_sub(1);
            let in_a_row =
                !lost && packets > 0 && packets < most && time_s - merged.time_s[last] <= pause_s;
            if in_a_row {
                merged.time_s[last] = time_s;
                merged.bytes[last] += bytes;
                packets += 1;
                continue;
            }
            if lost {
                merged.losses.push(merged.len());
            }
            merged.time_s.push(time_s);
            merged.bytes.push(bytes);
            merged.lost.push(lost);
            packets = usize::from(!lost);
        }
        merged
    }

    pub fn len(&self) -> usize {
        self.time_s.len()
    }

    /// The packets, as they come to a bucket that leaks `rate` bytes a second, and that what is lost does not enter.
    pub fn arrivals_at(&self, rate: f64) -> impl Iterator<Item = BucketArrival> + '_ {
        let packets = self.time_s.iter().zip(&self.bytes).zip(&self.lost);
        let mut leak = LeakyBucket::new(rate);
        packets.map(move |((&now_s, &bytes), &lost)| BucketArrival {
            level: leak.arrives(now_s, bytes, lost),
            age_s: now_s - leak.empty_s,
            lost,
        })
    }

    /// Return true if losses follow losses more often than independent ones would, by three standard deviations
    /// (Poisson).
    pub fn losses_in_rows(&self) -> bool {
        let losses = self.losses.len() as f64;
        let rows = self
            .losses
            .windows(2)
            .filter(|pair| pair[1] == pair[0] + 1)
            .count() as f64;
        let expected = losses * losses / self.len().max(1) as f64;
        rows > expected + 3.0 * expected.sqrt() + 1.0
    }

    /// Return its duration.
    pub fn seconds(&self) -> f64 {
        self.time_s.last().copied().unwrap_or(0.0)
    }
}

/// The range of this length with the most losses, the first of several.
fn busiest(arrivals: &[Arrival], length: usize) -> &[Arrival] {
    let (mut lost, mut most, mut best_end) = (0_usize, 0, length);
    for (end, arrival) in (1..).zip(arrivals) {
        lost += usize::from(arrival.lost);
        if end > length {
            lost -= usize::from(arrivals[end - length - 1].lost);
        }
        if lost > most {
            (most, best_end) = (lost, end.max(length));
        }
    }
    let end = best_end.min(arrivals.len());
    &arrivals[end.saturating_sub(length)..end]
}

/// A packet that comes to the bucket.
#[derive(Clone, Copy, Debug)]
pub struct BucketArrival {
    /// Bytes above the rate, with this packet: V(t).
    pub level: f64,
    /// Seconds since the bucket was last empty.
    pub age_s: f64,
    /// It was lost.
    pub lost: bool,
}

/// The bucket's level at each packet, and the start of its busy period.
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// See [`BucketArrival::level`].
    pub level: Vec<f64>,
    /// See [`BucketArrival::age_s`].
    pub age_s: Vec<f64>,
}

impl Levels {
    /// Fill them for a bucket that leaks `rate` bytes a second, and that what is lost does not enter.
    pub fn fill(&mut self, trace: &Trace, rate: f64) {
        // In place, as this goes over the trace again and again: nothing in the loop may have to grow.
        self.level.resize(trace.len(), 0.0);
        self.age_s.resize(trace.len(), 0.0);
        let found = self.level.iter_mut().zip(&mut self.age_s);
        for ((level, age_s), arrivals_at) in found.zip(trace.arrivals_at(rate)) {
            (*level, *age_s) = (arrivals_at.level, arrivals_at.age_s);
        }
    }

    /// The packets, as they came.
    pub fn arrivals_at<'a>(&'a self, trace: &'a Trace) -> impl Iterator<Item = BucketArrival> + 'a {
        let found = self.level.iter().zip(&self.age_s).zip(&trace.lost);
        found.map(|((&level, &age_s), &lost)| BucketArrival { level, age_s, lost })
    }
}

/// A bucket that leaks, packet by packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeakyBucket {
    rate: f64,
    level: f64,
    then_s: f64,
    /// When it was last empty.
    empty_s: f64,
}

impl LeakyBucket {
    /// An empty one that leaks `rate` bytes a second.
    pub fn new(rate: f64) -> Self {
        Self {
            rate,
            ..Self::default()
        }
    }

    /// The level with a packet that comes. What is lost does not enter.
    #[inline]
    pub fn arrives(&mut self, now_s: f64, bytes: f64, lost: bool) -> f64 {
        self.level -= self.rate * (now_s - self.then_s);
        if self.level <= 0.0 {
            self.level = 0.0;
            self.empty_s = now_s;
        }
        self.then_s = now_s;
        let with = self.level + bytes;
        if !lost {
            self.level = with;
        }
        with
    }
}

/// The value below which this share of `values` lies; their order changes.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let place = ((values.len() - 1) as f64 * share).round() as usize;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Slope and value at zero of the line with the least squares.
pub fn line(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<(f64, f64)> {
    let (mut count, mut x_sum, mut y_sum) = (0.0, 0.0, 0.0);
    for (x, y) in points.clone() {
        count += 1.0;
        x_sum += x;
        y_sum += y;
    }
    let (x_mean, y_mean) = (x_sum / count, y_sum / count);
    let (mut xx, mut xy) = (0.0, 0.0);
    for (x, y) in points {
        xx += (x - x_mean) * (x - x_mean);
        xy += (x - x_mean) * (y - y_mean);
    }
    let slope = xy / xx;
    slope
        .is_finite()
        .then_some((slope, y_mean - slope * x_mean))
}

/// The arrivals without those that were lost in an outage: nothing passed while all of them came, for [`OUTAGE_NS`]. A
/// bucket of any use would have room again by then.
pub fn without_outages(arrivals: Cow<'_, [Arrival]>) -> Cow<'_, [Arrival]> {
    let is_outage = |run: &[Arrival]| match run {
        [first, .., last] => first.lost && last.time_ns.saturating_sub(first.time_ns) >= OUTAGE_NS,
        _ => false,
    };
    let runs = || arrivals.chunk_by(|one, next| one.lost && next.lost);
    if !runs().any(is_outage) {
        return arrivals;
    }
    let kept = runs().filter(|run| !is_outage(run)).flatten();
    Cow::Owned(kept.copied().collect())
}

/// The items in the order of time; without inferred losses they are, and nothing is copied.
pub fn in_order<T: Copy>(items: &[T], time_ns: impl Fn(&T) -> i64) -> Cow<'_, [T]> {
    if items.is_sorted_by_key(&time_ns) {
        return Cow::Borrowed(items);
    }
    let mut sorted = items.to_vec();
    sorted.sort_by_key(time_ns);
    Cow::Owned(sorted)
}
