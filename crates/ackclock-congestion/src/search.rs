//! SEARCH: slow start ends when what is delivered no longer doubles from one round trip to the next.
//!
//! J. Chung, M. Kachooei, F. Li, M. Claypool: SEARCH – a New Slow Start Algorithm for TCP and QUIC,
//! draft-chung-ccwg-search. The newest text that was at hand is that of June 2024 ("SEARCH 3.0"), and this file follows
//! its pseudo-code, with the line numbers in brackets. Deliveries are counted in bins; a window is ten of them, 3.5
//! initial RTTs long:
//!
//! ```text
//!   norm_diff = (2 prev_delv − curr_delv) / (2 prev_delv)     [18]   prev_delv: the window one RTT earlier
//! ```
//!
//! is 0 while deliveries double and 0.5 when they stay the same; from 0.26 on, slow start ends, with the window that it
//! had two initial RTTs before [39–42].
//!
//! Of later revisions:
//! - the threshold is 0.26, where the text has 0.35;
//! - a gap of many bins without ACKs starts all anew, which revision 09 leaves to the implementation ("handling missed
//!   bins"): here from more than two initial RTTs' worth on;
//! - the earlier window must be less than 15 bins back; the text allows 15, of which the oldest of the 25 bins
//!   would be overwritten.
//!
//! Not in here: revision 09 (March 2026) compares with what was sent one RTT earlier, norm_diff = (prev_sent − curr_delv) /
//! prev_sent, where this file has twice of what was delivered then; the two are equal while slow start doubles and nothing
//! else limits the sender. After the exit it lowers the window step by step towards what an initial RTT delivered, where
//! this file takes the last two initial RTTs back at once. Revision 09 was at hand only in descriptions, revision 10 by
//! its title.
//!
//! Other deviations: segments and not bytes are counted, those selectively acknowledged too; only the slow start before
//! the first loss is watched. Like the draft, it takes a pause of the application for a bottleneck.

use ackclock_core::Time;

use super::detector::{Detector, Steer, View};
use super::{Ack, Opening};

/// W [2]: bins of a window.
const W: u64 = 10;
/// `EXTRA_BINS` [3]: how far the earlier window may be back.
const EXTRA_BINS: u64 = 15;
/// `NUM_BINS` [4].
const NUM_BINS: usize = (W + EXTRA_BINS) as usize;
/// `WINDOW_SIZE` [1] is 3.5 initial RTTs, so a bin [5] is 7/20 of one.
const BIN_SHARE: (u64, u64) = (7, 20);
/// THRESH.
const THRESH: f64 = 0.26;
/// Bins passed at once from which all starts anew: two initial RTTs, 2 × ⌈20/7⌉.
const MAX_PASSED_BINS: u64 = 6;
/// `2 * INITIAL_RTT / BIN_DURATION` [39].
const OVERSHOOT_BINS: u64 = 2 * BIN_SHARE.1 / BIN_SHARE.0;

/// The bins since the start, or since a gap.
#[derive(Clone, Copy, Debug)]
struct Bins {
    /// Segments delivered in each of the last bins, by its number modulo [`NUM_BINS`].
    delivered: [u32; NUM_BINS],
    /// Bins that have ended: `curr_idx` + 1.
    ended: u64,
    /// `bin_end`.
    end: Time,
    duration: Time,
    /// Segments delivered over the connection's life when the last bin ended.
    counted: u64,
}

impl Bins {
    fn new(now: Time, duration: Time, counted: u64) -> Bins {
        Bins {
            delivered: [0; NUM_BINS],
            ended: 0,
            end: now + duration,
            duration,
            counted,
        }
    }

    /// `update_bins` [24–31]: what was delivered goes into the newest of the bins that have passed.
    fn update(&mut self, now: Time, delivered: u64) {
        let late = now.since(self.end).picoseconds();
        let passed = late / self.duration.picoseconds() + 1;
        if passed > MAX_PASSED_BINS {
            *self = Bins::new(now, self.duration, delivered);
            return;
        }
        for bin in self.ended..self.ended + passed {
            self.delivered[bin as usize % NUM_BINS] = 0;
        }
        self.ended += passed;
        self.end += Time::from_picoseconds(self.duration.picoseconds() * passed);
        let newest = (self.ended - 1) as usize % NUM_BINS;
        self.delivered[newest] = (delivered - self.counted) as u32;
        self.counted = delivered;
    }

    /// `sum_bins` [32–38]: the bins after `first` up to `last`, moved back by `fraction` of a bin.
    fn sum(&self, first: u64, last: u64, fraction: f64) -> f64 {
        let bin = |index: u64| f64::from(self.delivered[index as usize % NUM_BINS]);
        let middle: f64 = (first + 1..last).map(bin).sum();
        middle + bin(first) * fraction + bin(last) * (1.0 - fraction)
    }

    /// `norm_diff` [12–18]; none while the bins do not reach back far enough.
    fn norm_diff(&self, rtt: Time) -> Option<f64> {
        let (rtt, bin) = (rtt.picoseconds(), self.duration.picoseconds());
        let back = rtt / bin;
        let current = self.ended.checked_sub(1)?;
        let previous = current.checked_sub(back)?;
        if previous < W || back >= EXTRA_BINS {
            return None;
        }
        let fraction = (rtt % bin) as f64 / bin as f64;
        let expected = 2.0 * self.sum(previous - W, previous, fraction);
        let found = self.sum(current - W, current, 0.0);
        (expected > 0.0).then(|| (expected - found) / expected)
    }

    /// `overshoot` [39, 40]: what the last two round trips delivered, and so added to the window.
    fn overshoot(&self) -> f64 {
        let current = self.ended - 1;
        self.sum(current - OVERSHOOT_BINS, current, 0.0)
    }
}

/// The state of SEARCH.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// None before the first RTT sample.
    bins: Option<Bins>,
    /// The newest RTT.
    rtt: Time,
}

impl Search {
    fn initialize(&mut self, now: Time, initial_rtt: Time, delivered: u64) {
        let (parts, whole) = BIN_SHARE;
        let duration = Time::from_picoseconds(initial_rtt.picoseconds() * parts / whole);
        if duration > Time::ZERO {
            self.bins = Some(Bins::new(now, duration, delivered));
        }
    }
}

impl Detector for Search {
    /// The window that is corrected has grown by the ACK.
    const AFTER_GROWTH: bool = true;

    fn on_established(&mut self, opening: &Opening) {
        self.initialize(opening.now, opening.srtt, 0);
    }

    fn on_ack(&mut self, ack: &Ack, view: View) -> Option<Steer> {
        if !view.in_first_slow_start() {
            return None;
        }
        self.rtt = ack.rtt.unwrap_or(self.rtt);
        let Some(bins) = &mut self.bins else {
            self.initialize(ack.now, self.rtt, ack.delivered);
            return None;
        };
        if ack.now <= bins.end {
            return None;
        }
        bins.update(ack.now, ack.delivered);
        let norm_diff = bins.norm_diff(self.rtt)?;
        (norm_diff >= THRESH).then(|| Steer::Exit(view.cwnd - bins.overshoot()))
    }
}

#[cfg(test)]
mod tests;
