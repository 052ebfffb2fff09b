//! Detection of what limits a path (a policer, a shaper, a queue or nothing), its rate and depth, and the round trips
//! under load.
//!
//! A token bucket of rate r and depth B drops what comes when more than B was sent above the rate. With A(t) what
//! passed, V(t) = A(t) − r t − min over s ≤ t of (A(s) − r s) is what was sent above it. For the right r, packets are
//! lost where V would be above B and pass below: `policing` looks for the r and B under which the losses are most
//! likely. That holds for a queue that drops when it is full as well, V being its length; but there a packet waits for
//! V/r, and behind a policer for nothing. `queueing` tests the round trips: do they grow with V/r; were they longer
//! just before losses; at what rate does a queue drain, if there is one. A queue that lets a burst through undelayed is
//! a shaper. At the receiver, behind the limiter, packets have waited when they come: V is then what the limiter let
//! through above its rate, and while its queue lasts that stays what a shaper's bucket holds.
//!
//! Sources: T. Flach et al., An Internet-Wide Analysis of Traffic Policing, SIGCOMM 2016, section 3 (losses at full
//! level, passes below, flat RTT, 15 losses, three parts of the trace); P. Kanuparthy, C. Dovrolis, ShaperProbe:
//! End-to-end Detection of ISP Traffic Shaping using Active Methods, IMC 2011 (a level shift in the rate of a probing
//! stream: this needs no probes and, as it looks at V, no shift).
//!
//! Departures from Flach et al.: the bytes of all flows of a path are pooled, where theirs looks at one connection and
//! loses policers that several share; the rate is fitted, and not the goodput between the first and the last loss,
//! which is too low after any pause; one likelihood replaces their thresholds on losses, passes and outliers, and
//! gives intervals; a slope of RTT against V/r replaces their 1.3 times the tenth percentile, which long queues
//! elsewhere break.
//!
//! What bytes a limiter counts, only the caller knows: on Ethernet, policers that were measured count frames with their
//! check sequence. A rate comes in bits of the bytes that were given.

mod levels;
mod policing;
mod queueing;
mod trace;

use ackclock_core::tables::codes;

use crate::series::{Arrival, RttSample};
pub use levels::{levels, Level};
use policing::Bucket;
use queueing::{Delays, Queue};
use trace::{in_order, without_outages, Trace};

/// Losses from which a bucket is looked for (Flach et al. 2016 section 3).
const MIN_LOSSES: usize = 15;
/// A bucket explains the losses if it takes away half of the uncertainty about them.
const EXPLAINED: f64 = 0.5;
/// Behind the limiter the times of losses are inferred, and it takes away less.
const EXPLAINED_BEHIND: f64 = 0.35;
/// The gain in log-likelihood (in nats, against losses at random) from which a bucket is certain, even if it explains
/// less than [`EXPLAINED`]: jitter before a bucket of a few packets hides which of them exceeded it. Random losses reach
/// 1.5, small policers 100 and more.
const CERTAIN: f64 = 40.0;
/// A bucket does not explain the losses if it takes away less of the uncertainty than this.
const UNEXPLAINED: f64 = 0.1;
/// A bucket that was in use for less of the time has no known rate: windows of a few packets, of which the last are lost,
/// show that little passes at once, and a bucket of any rate between the goodput and the pace of a burst explains that.
/// Buckets whose rate was right were in use for 0.07 and more, wrong ones for 0.03 and less.
const MIN_IN_USE: f64 = 0.05;
/// In the middle between a policer's slope, 0, and a queue's, 1.
const HALF: f64 = 0.5;
/// Early droppers drop at a part of what fits in: RED from a third of its upper threshold.
const PART: f64 = 0.25;
/// Delays at a loss below this share of what a queue of that length would add: none, and its slope is noise. Small
/// buckets fill within a round trip, in which the delay changes for other reasons.
const UNDELAYED: f64 = 0.1;
/// One overshoot is no evidence: Flach et al. want losses in three parts of the trace.
const MIN_EPISODES: usize = 3;
/// A queue has one rate for half of its time.
const STEADY: f64 = 0.5;
/// A queue limits if it is there for a fifth of the time.
const BUSY: f64 = 0.2;
/// Maximum logarithm of the ratio of two estimates of one rate from different evidence.
const SAME_RATE: f64 = 0.2;
/// Two clocks of 100 ppm, the capture's and the limiter's.
const CLOCKS: f64 = 2e-4;
/// The noise of times from hosts, fast links, interrupts and processing.
const NOISE_S: f64 = 0.001;
/// A rate is precise if its interval reaches no further than this share from it.
const PRECISE: f64 = 0.05;
/// Two full Ethernet frames: a burst above that is a bucket's, not the granularity of a queue; if it is more than
/// noise.
const SHAPED_BYTES: f64 = 3036.0;

codes!(
    /// The kind of limiter.
    Limiter {
        /// Drops what is above a rate once a burst is used up, without delaying anything.
        Policer => "policer",
        /// Delays what is above a rate once a burst is used up.
        Shaper => "shaper",
        /// Delays what is above a rate.
        Queue => "queue",
        /// No limiter on the path.
        None => "none",
        /// The evidence is too little.
        Undecided => "undecided",
    }
);

/// A value with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best estimate.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Estimate {
    /// Without an interval.
    fn exactly(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
        }
    }

    /// Bytes a second as bits a second. No rate is known better than the clocks agree.
    fn as_rate(self) -> Self {
        let bits = self.times(8.0);
        Self {
            low: bits.low.min(bits.value * (1.0 - CLOCKS)),
            high: bits.high.max(bits.value * (1.0 + CLOCKS)),
            ..bits
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }
}

/// Round trips under load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// The shortest.
    pub rtt_min_s: f64,
    /// The median.
    pub rtt_median_s: f64,
    /// The 95th percentile.
    pub rtt_p95_s: f64,
    /// The standing queue: the 10th percentile of the queueing delay.
    pub min_queue_s: f64,
}

/// The limit of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Its limiter.
    pub limiter: Limiter,
    /// Its rate, in bits a second of the bytes that were given.
    pub rate_bps: Option<Estimate>,
    /// The depth: a policer's burst; a shaper's burst and queue. None if it drops at no certain length, or was not
    /// observed to.
    pub depth_bytes: Option<Estimate>,
    /// The limiter was never seen to be empty before most losses: what was sent before the trace is missing in its
    /// depth.
    pub is_depth_a_minimum: bool,
    /// The burst that a shaper passes undelayed.
    pub burst_bytes: Option<Estimate>,
    /// The round trips.
    pub delay: Option<Delay>,
    /// Why.
    pub evidence: Evidence,
}

/// The evidence for the limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Lost segments that were used.
    pub losses: usize,
    /// The capture was taken behind the limiter.
    pub behind: bool,
    /// The share of the uncertainty about which segments were lost that a bucket takes away; None, as all that is said
    /// of a bucket, where none could change the answer.
    pub explained: Option<f64>,
    /// The logarithm of the ratio of likelihoods with and without a bucket.
    pub gain: Option<f64>,
    /// The bucket's rate.
    pub bucket_bps: Option<Estimate>,
    /// The share of the active time in which the bucket was not full: what passed, over what its rate lets through.
    pub in_use: Option<f64>,
    /// The growth of round trips per second of bucket level (V/r).
    pub slope: Option<Estimate>,
    /// The same over the upper half of the levels.
    pub slope_when_full: Option<Estimate>,
    /// The queueing delay just before losses, relative to the time in which a full bucket empties.
    pub delayed: Option<f64>,
    /// Losses more than a round trip apart.
    pub episodes: usize,
    /// Losses come in a row more often than by chance.
    pub in_rows: bool,
    /// The rate at which round trips grow and shrink.
    pub queue_bps: Option<Estimate>,
    /// The share of the time in which a queue had that rate, of that in which there was one.
    pub steady: Option<f64>,
    /// The share of the active time in which there was a queue.
    pub busy: Option<f64>,
}

/// Return what limits a path, given the packets sent into it and the round trips. Both are pooled over the path's flows
/// in one direction; their order does not matter.
pub fn limiter(arrivals: &[Arrival], rtts: &[RttSample]) -> Path {
    fit(arrivals, rtts).path()
}

/// The same, but without the intervals, which are computed with the path.
pub fn fit(arrivals: &[Arrival], rtts: &[RttSample]) -> PathFit {
    fit_if(arrivals, rtts, |queue, trace| !is_decided(queue, trace))
}

/// The same for one path of those that are `together`: without a bucket where it cannot be told better than they are,
/// which is all that is asked then.
pub fn fit_with(arrivals: &[Arrival], rtts: &[RttSample], together: &PathFit) -> PathFit {
    fit_if(arrivals, rtts, |queue, trace| {
        let most = policing::max_explained(trace).max(strength_of(queue));
        let is_weaker = together.has_rate() && together.strength() >= most;
        !is_weaker && !is_decided(queue, trace)
    })
}

/// Fit a path; a bucket only with [`MIN_LOSSES`] losses and if `wants_bucket` says so.
fn fit_if(
    arrivals: &[Arrival],
    rtts: &[RttSample],
    wants_bucket: impl Fn(Option<Queue>, &Trace) -> bool,
) -> PathFit {
    let arrivals = in_order(arrivals, |arrival| arrival.time_ns);
    let arrivals = without_outages(arrivals);
    let trace = Trace::new(&arrivals);
    let delays = Delays::new(&trace, rtts);
    let queue = delays.queue(&trace);
    let has_bucket = trace.losses.len() >= MIN_LOSSES && wants_bucket(queue, &trace);
    let bucket = has_bucket.then(|| policing::fit(&trace)).flatten();
    let (trace, delays, bucket) =
        match bucket.and_then(|bucket| policing::from_full(&trace, bucket)) {
            Some((later, bucket)) => {
                let delays = Delays::new(&later, rtts);
                (later, delays, Some(bucket))
            }
            None => (trace, delays, bucket),
        };
    let [slope, slope_when_full] =
        bucket.map_or([None; 2], |bucket| delays.slopes(&trace, bucket.rate.value));
    let evidence = Evidence {
        losses: trace.losses.len(),
        behind: delays.is_behind(),
        explained: bucket.map(|bucket| bucket.explained),
        gain: bucket.map(|bucket| bucket.gain),
        bucket_bps: bucket.map(|bucket| bucket.rate.times(8.0)),
        in_use: bucket.map(|bucket| trace.passed_bytes() / (bucket.rate.value * trace.active_s())),
        slope,
        slope_when_full,
        delayed: bucket
            .zip(delays.before_losses(&trace))
            .map(|(bucket, longer_s)| longer_s * bucket.rate.value / bucket.depth.value),
        episodes: delays.episodes(&trace),
        in_rows: trace.losses_in_rows(),
        queue_bps: queue.map(|queue| queue.rate.times(8.0)),
        steady: queue.map(|queue| queue.steady),
        busy: queue.map(|queue| queue.busy),
    };
    PathFit {
        delay: delays.summary(),
        trace,
        bucket,
        queue,
        evidence,
    }
}

/// Return true if delays alone decide, because no bucket can explain enough to change the result.
fn is_decided(queue: Option<Queue>, trace: &Trace) -> bool {
    strength_of(queue) >= STEADY && policing::max_explained(trace) < EXPLAINED
}

/// Return the strength of evidence from a queue's rate alone.
fn strength_of(queue: Option<Queue>) -> f64 {
    let limits = queue.filter(|queue| queue.busy >= BUSY);
    limits.map_or(0.0, |queue| queue.steady)
}

/// A path of which everything is known but the intervals of a bucket.
#[derive(Debug)]
pub struct PathFit {
    trace: Trace,
    bucket: Option<Bucket>,
    queue: Option<Queue>,
    delay: Option<Delay>,
    evidence: Evidence,
}

impl PathFit {
    /// See [`Evidence::strength`].
    pub fn strength(&self) -> f64 {
        self.evidence.strength()
    }

    /// Return true if the rate is known.
    pub fn has_rate(&self) -> bool {
        self.limited(self.bucket).rate_bps.is_some()
    }

    /// All that is known of it.
    pub fn path(&self) -> Path {
        self.limited(self.bucket.map(|bucket| bucket.bounded(&self.trace)))
    }

    fn limited(&self, bucket: Option<Bucket>) -> Path {
        let mut path = Path {
            limiter: self.evidence.limiter(),
            rate_bps: None,
            depth_bytes: None,
            is_depth_a_minimum: false,
            burst_bytes: None,
            delay: self.delay,
            evidence: Evidence {
                bucket_bps: bucket.map(|bucket| bucket.rate.times(8.0)),
                ..self.evidence
            },
        };
        match path.limiter {
            Limiter::Policer => path.takes_bucket(bucket),
            Limiter::Queue => path.takes_queue(self.queue, bucket),
            // Without round trips it is unknown of a queue.
            Limiter::None if self.delay.is_none() => path.limiter = Limiter::Undecided,
            _ => {}
        }
        path
    }
}

impl Path {
    /// Return the rate if its interval is narrow, else only the interval tells of it. A policer of a few packets drops
    /// the same packets of a window at any rate that fills its bucket between two of them.
    pub fn precise_rate_bps(&self) -> Option<f64> {
        let rate = self.rate_bps?;
        let reach = (rate.high / rate.value).max(rate.value / rate.low);
        (reach <= 1.0 + PRECISE).then_some(rate.value)
    }

    /// Return the interval of the rate; None behind a limiter whose rate is imprecise: the times of what was lost are
    /// inferred there, and intervals that follow from them were wrong as often as right.
    pub fn stated_rate_bps(&self) -> Option<Estimate> {
        let is_stated = !self.evidence.behind || self.precise_rate_bps().is_some();
        self.rate_bps.filter(|_| is_stated)
    }

    fn takes_bucket(&mut self, bucket: Option<Bucket>) {
        self.rate_bps = bucket.map(|bucket| bucket.rate.as_rate());
        self.depth_bytes = bucket
            .map(|bucket| bucket.depth)
            .filter(|_| self.evidence.is_explained());
        self.is_depth_a_minimum = bucket.is_some_and(|bucket| !bucket.was_full);
    }

    /// A queue behind a bucket is a shaper.
    fn takes_queue(&mut self, queue: Option<Queue>, bucket: Option<Bucket>) {
        let steady = queue.filter(|queue| queue.steady >= STEADY);
        let of_losses =
            self.evidence.is_explained() && (steady.is_none() || self.evidence.one_rate());
        if of_losses {
            self.takes_bucket(bucket);
        } else {
            self.depth_bytes = queue.and_then(|queue| queue.depth);
            let told = bucket.filter(|_| steady.is_none() && self.evidence.follows());
            self.rate_bps = told.map(|bucket| bucket.rate.as_rate());
        }
        if let Some(queue) = steady {
            self.rate_bps = Some(queue.rate.as_rate());
            let noise_s = NOISE_S.max(2.0 * queue.max_lateness_s);
            let least = SHAPED_BYTES.max(queue.rate.value * noise_s);
            self.burst_bytes = queue.burst.filter(|burst| burst.low > least);
        }
        if self.burst_bytes.is_some() {
            self.limiter = Limiter::Shaper;
        }
    }
}

impl Evidence {
    /// Return the limiter by this evidence; a shaper counts as a queue.
    fn limiter(&self) -> Limiter {
        let bucket = self.is_explained();
        let slopes = [self.slope, self.slope_when_full];
        let level = slopes
            .iter()
            .all(|slope| slope.is_some_and(|slope| slope.high < HALF));
        let empty_at_losses = self.delayed.is_some_and(|delayed| delayed < UNDELAYED);
        let undelayed = empty_at_losses && self.slope.is_some_and(|slope| slope.high < HALF);
        // A queue is full when it drops: a slope without a delay then is of something else.
        let grows = !empty_at_losses && slopes.iter().flatten().any(|slope| slope.low > HALF);
        let flat = (undelayed || level && self.delayed.is_some_and(|delayed| delayed < PART))
            && self.episodes >= MIN_EPISODES;
        let delayed = !level && self.delayed > Some(HALF);
        let told_by_losses = bucket && (grows || delayed || self.one_rate());
        let told_by_delays =
            self.steady >= Some(STEADY) && self.busy >= Some(BUSY) && !(bucket && flat);
        if told_by_losses || told_by_delays || self.follows() {
            Limiter::Queue
        } else if (bucket || undelayed && level && self.is_certain()) && flat {
            Limiter::Policer
        } else if self.explains() && !self.is_in_use() {
            Limiter::Undecided
        } else if self.busy.is_none_or(|busy| busy < BUSY)
            && (self.losses == 0 || self.behind || self.by_chance())
        {
            Limiter::None
        } else {
            Limiter::Undecided
        }
    }

    /// A bucket whose rate is known explains which packets were lost.
    fn is_explained(&self) -> bool {
        self.explains() && self.is_in_use()
    }

    /// A bucket whose rate is known gains too much to be chance.
    fn is_certain(&self) -> bool {
        self.gain > Some(CERTAIN) && self.is_in_use()
    }

    fn is_in_use(&self) -> bool {
        self.in_use >= Some(MIN_IN_USE)
    }

    /// A bucket explains which packets were lost.
    fn explains(&self) -> bool {
        let least = if self.behind {
            EXPLAINED_BEHIND
        } else {
            EXPLAINED
        };
        self.explained >= Some(least)
    }

    /// Return the strength of the evidence, from 0 to 1: the share that a bucket explains, or the steadiness of a
    /// queue's rate.
    pub fn strength(&self) -> f64 {
        let steady = self.steady.filter(|_| self.busy >= Some(BUSY));
        self.explained.unwrap_or(0.0).max(steady.unwrap_or(0.0))
    }

    /// Neither a bucket nor earlier losses predict which packets are lost.
    fn by_chance(&self) -> bool {
        self.explained
            .is_some_and(|explained| explained < UNEXPLAINED)
            && !self.in_rows
    }

    /// Round trips grow with V/r as they do in a queue, and had grown when packets were lost.
    fn follows(&self) -> bool {
        let like_a_queue = |slope: &Estimate| slope.low > HALF && slope.high < 1.0 + HALF;
        let slopes = [self.slope, self.slope_when_full];
        self.is_in_use() && slopes.iter().flatten().any(like_a_queue) && self.delayed > Some(PART)
    }

    /// Losses and round trips show the same rate.
    fn one_rate(&self) -> bool {
        let (Some(bucket), Some(queue)) = (self.bucket_bps, self.queue_bps) else {
            return false;
        };
        self.steady >= Some(STEADY) && (bucket.value / queue.value).ln().abs() < SAME_RATE
    }
}

#[cfg(test)]
mod tests;
