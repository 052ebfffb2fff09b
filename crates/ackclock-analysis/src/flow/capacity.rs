//! The rate of the link that limits a flow, from how its acknowledgements are spaced while a queue grows or stands
//! (C. Dovrolis, P. Ramanathan, D. Moore: *Packet-Dispersion Techniques and a Capacity-Estimation Methodology*,
//! IEEE/ACM Transactions on Networking 12(6), 2004).
//!
//! Deviations: trains are what a flow sends anyway, and count if their packets waited. What others send in between makes
//! a train slower, and what a host or a link holds back for milliseconds makes the trains behind it as fast as memory: so
//! the rate is the greatest median of so many trains in a row that a few of either kind do not matter.

/// Segments of a train: with delayed acknowledgements, two acknowledgements behind the one that it begins with.
const TRAIN: u64 = 4;
/// The number of trains in a row of which the median is taken.
const KEPT: usize = 15;
/// Fewer are no evidence.
const MIN_TRAINS: usize = 4;
/// A packet waited if its round trip is longer than the least by this share of it.
const WAITED: f64 = 0.05;

/// A train is stretched if its last packet's round trip is longer than its first's by so large a part of its time.
const STRETCHED: f64 = 0.25;
/// The same share where acknowledgements wait for a paced sender: less could be the gap to the next paced segment.
const STRETCHED_AND_PACED: f64 = 0.4;

/// Trains, and the rates that they tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capacity {
    acknowledged: Train,
    arrived: Train,
    queued_trains: TrainRates,
    stretched_trains: usize,
}

/// The bytes that have passed the vantage point, with the latest round trip or a part of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// When.
    pub now_ns: i64,
    /// Bytes so far.
    pub bytes: u64,
    /// The round trip, or its half in which there may be a queue.
    pub rtt_ns: i64,
}

/// The start of the current train, and the byte count at which it ends.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    begin: Option<Progress>,
    over: u64,
}

impl Capacity {
    /// An acknowledgement that tells of what lies behind the vantage point; `min_rtts_ns`: how long that takes at
    /// least, and how long a whole round trip; `mss`: the size of a segment.
    #[inline]
    pub fn acknowledged(&mut self, progress: Progress, min_rtts_ns: (i64, i64), mss: u32) {
        if progress.bytes >= self.acknowledged.over {
            if let Some(begin) = self.acknowledged.next(progress, mss) {
                self.add_train(begin, progress, min_rtts_ns, STRETCHED);
            }
        }
    }

    /// Data that tells of what lies before the vantage point.
    #[inline]
    pub fn arrived(&mut self, progress: Progress, min_rtts_ns: (i64, i64), mss: u32) {
        if progress.bytes >= self.arrived.over {
            if let Some(begin) = self.arrived.next(progress, mss) {
                self.add_train(begin, progress, min_rtts_ns, STRETCHED_AND_PACED);
            }
        }
    }

    /// Discard the current train.
    #[inline]
    pub fn interrupted(&mut self) {
        self.acknowledged = Train::default();
    }

    #[inline(never)]
    fn add_train(
        &mut self,
        begin: Progress,
        end: Progress,
        min_rtts_ns: (i64, i64),
        min_stretch: f64,
    ) {
        let spent_ns = end.now_ns - begin.now_ns;
        if spent_ns <= 0 {
            return;
        }
        let waited_ns = begin.rtt_ns.min(end.rtt_ns) - min_rtts_ns.0;
        let is_queued = waited_ns as f64 > WAITED * min_rtts_ns.1 as f64;
        let is_stretched = (end.rtt_ns - begin.rtt_ns) as f64 > min_stretch * spent_ns as f64;
        let bps = ((end.bytes - begin.bytes) as f64 * 8e9 / spent_ns as f64) as f32;
        if is_queued || is_stretched {
            self.queued_trains.take(bps);
        }
        if is_stretched {
            self.stretched_trains = self.stretched_trains.saturating_add(1);
        }
    }

    /// The rate at which packets leave that waited, if enough is known of it: the link's, or less.
    pub fn bps(&self) -> Option<f64> {
        self.queued_trains.bps()
    }

    /// Packets came to the link faster than they left: the flow does not send at a rate of its own.
    pub fn is_stretched(&self) -> bool {
        self.stretched_trains >= MIN_TRAINS
    }
}

impl Train {
    /// The next begins; return how the last one began.
    fn next(&mut self, progress: Progress, mss: u32) -> Option<Progress> {
        self.over = progress.bytes + TRAIN * u64::from(mss);
        self.begin.replace(progress)
    }
}

/// The rates of the last trains, and the greatest median of disjoint groups of [`KEPT`].
#[derive(Clone, Copy, Debug, Default)]
struct TrainRates {
    bps: [f32; KEPT],
    next: usize,
    count: usize,
    greatest: f32,
}

impl TrainRates {
    fn take(&mut self, bps: f32) {
        self.bps[self.next] = bps;
        self.next = (self.next + 1) % KEPT;
        self.count = (self.count + 1).min(KEPT);
        if self.count == KEPT && self.next == 0 {
            self.greatest = self.greatest.max(self.median());
        }
    }

    fn median(&self) -> f32 {
        let mut known = self.bps;
        let known = &mut known[..self.count];
        known.sort_by(f32::total_cmp);
        known[self.count / 2]
    }

    fn bps(&self) -> Option<f64> {
        (self.count >= MIN_TRAINS).then(|| f64::from(self.median().max(self.greatest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;
    /// A segment takes 1 ms of the link.
    const LINK_BPS: f64 = 8e6;
    const MIN_RTTS_NS: (i64, i64) = (20_000_000, 20_000_000);

    /// Acknowledgements of two segments each that are so far apart and whose round trips grow by so much each.
    fn acknowledge(capacity: &mut Capacity, apart_ns: i64, queue_ns: i64, grows_ns: i64) {
        for number in 1..40 {
            let progress = Progress {
                now_ns: number * apart_ns,
                bytes: 2 * u64::from(MSS) * number as u64,
                rtt_ns: MIN_RTTS_NS.0 + queue_ns + number * grows_ns,
            };
            capacity.acknowledged(progress, MIN_RTTS_NS, MSS);
        }
    }

    fn unwrap_near(measured: Option<f64>, bps: f64) -> bool {
        measured.is_some_and(|measured| (measured / bps - 1.0).abs() < 1e-3)
    }

    #[test]
    fn growing_and_persistent_queues_reveal_the_rate() {
        let mut growing = Capacity::default();
        acknowledge(&mut growing, 2_000_000, 0, 1_000_000);
        assert!(unwrap_near(growing.bps(), LINK_BPS) && growing.is_stretched());
        let mut standing = Capacity::default();
        acknowledge(&mut standing, 2_000_000, 5_000_000, 0);
        assert!(unwrap_near(standing.bps(), LINK_BPS) && !standing.is_stretched());
        let mut empty = Capacity::default();
        acknowledge(&mut empty, 2_000_000, 0, 0);
        assert!(empty.bps().is_none());
    }

    #[test]
    fn trains_that_were_held_back_do_not_raise_the_estimate() {
        let mut capacity = Capacity::default();
        acknowledge(&mut capacity, 2_000_000, 0, 1_000_000);
        for number in 0..KEPT / 2 {
            capacity.queued_trains.take(1e9 + number as f32);
        }
        assert!(unwrap_near(capacity.bps(), LINK_BPS));
    }

    #[test]
    fn an_interrupted_train_is_discarded() {
        let mut capacity = Capacity::default();
        for round in 0..20 {
            acknowledge(&mut capacity, 0, 5_000_000, 0);
            capacity.interrupted();
            assert!(capacity.bps().is_none(), "{round}");
        }
    }
}
