//! At what rate new data is sent, and whether the pipe grows.

use std::cmp::Ordering;

use super::{FILLS, STEADY_REMOTE};
use crate::flow::app_limited::{rate, RecurringRate};

/// A sender whose rate stays within this share from one group of rounds to the next is application-limited: a pacing
/// CCA would probe for more. It stays so until the rate differs by the larger share.
const STEADY: f64 = 0.01;
const UNSTEADY: f64 = 0.02;
const STEADY_ROUNDS: u32 = 4;
/// The pipe counts as rising after so many groups of rounds in a row without a decrease.
const RISING: u32 = 3;
/// The least segments of a ceiling.
const MIN_CEILING: u64 = 3;
/// A pipe has a ceiling if it does not rise above it for so many rounds.
const CEILING_ROUNDS: u32 = 8;
/// It is near its ceiling if less than this part (1/8) and a segment is missing.
const NEAR_CEILING: u64 = 8;
/// Segments that tell a rate.
const STEADY_SENDS: u32 = 12;
/// Segments that suffice to compare with a known rate.
const MIN_COMPARED_SENDS: u32 = 4;
/// The score at which a known rate is fully trusted; each deviating round takes one point.
const TRUST: i32 = 6;

/// The rate of new data over groups of rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendRate {
    pub(super) from: (i64, u64),
    pub(super) until: (i64, u64),
    pub(super) last_ns: i64,
    pub(super) rounds: u32,
    pub(super) sends: u32,
    /// In one of them packets waited.
    pub(super) is_queued: bool,
    pub(super) bps: f64,
    pub(super) steady: u32,
    /// The last rate that was steady, how far that is believed, and what was sent since it was looked for.
    pub(super) own_bps: f64,
    pub(super) recurring: RecurringRate,
    pub(super) trust: i32,
    pub(super) since: (i64, u64),
    pub(super) since_sends: u32,
    /// The two highest rates between consecutive segments: no link on the way is slower.
    pub(super) closest_bps: [f64; 2],
}

impl SendRate {
    #[inline]
    pub(super) fn on_send(&mut self, now_ns: i64, next: u64, is_retransmission: bool) {
        if next > self.until.1 || is_retransmission {
            self.last_ns = now_ns; // what is late followed another
        }
        if next <= self.until.1 {
            return;
        }
        if self.from.0 == 0 {
            self.from = (now_ns, next);
        }
        self.recurring.sent(now_ns, next);
        self.until = (now_ns, next);
        self.sends += 1;
        self.since_sends += 1;
    }

    /// Take a segment that follows the previous one without a hole.
    #[inline]
    pub(super) fn on_in_order(&mut self, now_ns: i64, bytes: u32) {
        let bps = rate((self.last_ns, 0), (now_ns, u64::from(bytes)));
        let [fastest, second] = self.closest_bps;
        if bps > second {
            self.closest_bps = [fastest.max(bps), fastest.min(bps)];
        }
    }

    /// The rate of the slowest link on the way, if segments ever followed each other at that.
    pub(super) fn link_bps(&self) -> f64 {
        let [_, second] = self.closest_bps;
        second
    }

    /// End a round. A constant rate while a queue stands (`is_queued`) may be the link's, and is no evidence.
    pub(super) fn round(&mut self, is_queued: bool) {
        self.rounds += 1;
        if self.since_sends >= MIN_COMPARED_SENDS {
            let bps = rate(self.since, self.until);
            // Behind a full link, that is the link's.
            let slower = bps < FILLS * self.link_bps();
            if self.recurring.round(bps) && slower && !is_queued {
                self.own_bps = bps;
                self.trust = self.trust.max(TRUST / 2);
            }
            self.since = self.until;
            self.since_sends = 0;
            if (bps - self.own_bps).abs() < UNSTEADY * self.own_bps {
                self.trust = (self.trust + 2).min(TRUST);
                self.steady = self.steady.max(STEADY_REMOTE);
            } else {
                self.trust = (self.trust - 1).max(-1);
                if self.trust < 0 {
                    self.own_bps = 0.0;
                }
            }
        }
        self.is_queued |= is_queued;
        if self.rounds < STEADY_ROUNDS || self.sends < STEADY_SENDS {
            return;
        }
        let bps = rate(self.from, self.until);
        let change = (bps - self.bps).abs() / self.bps.max(1.0);
        let allowed = if self.steady > 0 { UNSTEADY } else { STEADY };
        let steady = if change < allowed {
            self.steady + u32::from(!self.is_queued)
        } else {
            0
        };
        let begun_bps = if steady > 1 { self.bps } else { bps }; // it must not drift away
        if steady >= STEADY_REMOTE && !self.is_queued {
            self.own_bps = begun_bps;
            self.trust = self.trust.max(TRUST / 2);
        }
        *self = Self {
            from: self.until,
            rounds: 0,
            sends: 0,
            is_queued: false,
            bps: begun_bps,
            steady,
            ..*self
        };
    }
}

/// The growth of the pipe over groups of [`STEADY_ROUNDS`] rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PipeGrowth {
    pub(super) rounds: u32,
    pub(super) max_bytes: u64,
    pub(super) before_bytes: u64,
    pub(super) times: u32,
}

impl PipeGrowth {
    pub(super) fn round(&mut self, pipe_bytes: u64) {
        self.rounds += 1;
        self.max_bytes = self.max_bytes.max(pipe_bytes);
        if self.rounds < STEADY_ROUNDS {
            return;
        }
        let times = match self.max_bytes.cmp(&self.before_bytes) {
            Ordering::Less => 0,
            Ordering::Equal => self.times,
            Ordering::Greater => self.times + 1,
        };
        *self = Self {
            before_bytes: self.max_bytes,
            times,
            ..Self::default()
        };
    }

    pub(super) fn is_rising(&self) -> bool {
        self.times >= RISING
    }
}

/// The most that was ever under way, and whether the pipe comes back to it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PipeCeiling {
    bytes: u64,
    /// Rounds since it rose, and those among them that came near it.
    rounds: u32,
    near: u32,
}

impl PipeCeiling {
    pub(super) fn round(&mut self, pipe_bytes: u64, mss: u32) {
        if pipe_bytes > self.bytes + u64::from(mss) {
            *self = Self {
                bytes: pipe_bytes,
                ..Self::default()
            };
            return;
        }
        self.rounds += 1;
        self.near +=
            u32::from(pipe_bytes + u64::from(mss) >= self.bytes - self.bytes / NEAR_CEILING);
    }

    /// The pipe reaches it in most rounds, and does not rise above it. What is smaller than a few segments is what there
    /// was to send.
    pub(super) fn holds(&self, mss: u32) -> bool {
        self.rounds >= CEILING_ROUNDS
            && 2 * self.near > self.rounds
            && self.bytes >= MIN_CEILING * u64::from(mss)
    }
}
