//! The rate of the link that limits a flow, from how its acknowledgements are spaced while a queue grows or stands
//! (C. Dovrolis, P. Ramanathan, D. Moore: *Packet-Dispersion Techniques and a Capacity-Estimation Methodology*,
//! IEEE/ACM Transactions on Networking 12(6), 2004).
//!
//! Deviations: trains are what a flow sends anyway, and count if their packets waited; what others send in between makes
//! a train slower, so the fastest count, but for a few that acknowledgements heard together make too fast.

/// Segments of a train: with delayed acknowledgements, two acknowledgements behind the one that it begins with.
const TRAIN: u64 = 4;
/// So many of the fastest are kept: the median of them is the rate.
const KEPT: usize = 8;
/// Fewer are no evidence.
const LEAST: usize = 4;
/// A packet waited if its round trip is longer than the least by this share of it.
const WAITED: f64 = 0.05;

/// A train is stretched if its last packet's round trip is longer than its first's by so large a part of its time.
const STRETCHED: i64 = 4;

/// Trains, and the rates that they tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Capacity {
    begin_ns: i64,
    begin_bytes: u64,
    begin_rtt_ns: i64,
    waited: Fastest,
    stretched: Fastest,
}

impl Capacity {
    /// An acknowledgement was seen: so much has arrived by then; the round-trip time that it tells, the least one, and
    /// the size of a segment.
    #[inline]
    pub fn acked(&mut self, seen_ns: i64, arrived: u64, rtt: (i64, i64), mss: u32) {
        let (rtt_ns, least_ns) = rtt;
        let bytes = arrived.saturating_sub(self.begin_bytes);
        if self.begin_ns != 0 && bytes < TRAIN * u64::from(mss) {
            return;
        }
        let spent_ns = seen_ns - self.begin_ns;
        if self.begin_ns != 0 && spent_ns > 0 {
            let waited_ns = self.begin_rtt_ns.min(rtt_ns) - least_ns;
            let waited = waited_ns as f64 > WAITED * least_ns as f64;
            let stretched = rtt_ns - self.begin_rtt_ns > spent_ns / STRETCHED;
            let bps = (bytes as f64 * 8e9 / spent_ns as f64) as f32;
            if waited || stretched {
                self.waited.take(bps);
            }
            if stretched {
                self.stretched.take(bps);
            }
        }
        self.begin_ns = seen_ns;
        self.begin_bytes = arrived;
        self.begin_rtt_ns = rtt_ns;
    }

    /// Nothing tells of a train any more.
    #[inline]
    pub fn interrupted(&mut self) {
        self.begin_ns = 0;
    }

    /// The rate at which packets leave that waited, if enough is known of it: the link's, or less.
    pub fn bps(&self) -> Option<f64> {
        self.waited.bps()
    }

    /// That of packets which came to the link faster than they left: the flow does not send at a rate of its own.
    pub fn stretched_bps(&self) -> Option<f64> {
        self.stretched.bps()
    }
}

/// The fastest of rates.
#[derive(Clone, Copy, Debug, Default)]
struct Fastest {
    bps: [f32; KEPT],
    count: usize,
}

impl Fastest {
    fn take(&mut self, bps: f32) {
        if let Some(place) = self.bps.iter().position(|&kept| bps > kept) {
            self.bps[place..].rotate_right(1);
            self.bps[place] = bps;
        }
        self.count = (self.count + 1).min(KEPT);
    }

    fn bps(&self) -> Option<f64> {
        (self.count >= LEAST).then(|| f64::from(self.bps[self.count / 2]))
    }
}
