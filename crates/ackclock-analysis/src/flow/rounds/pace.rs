//! At what rate new data is sent, and whether the pipe grows.

use std::cmp::Ordering;

use super::{
    FILLS, KNOWN_SENDS, RISING, STEADY, STEADY_ELSEWHERE, STEADY_ROUNDS, STEADY_SENDS, TRUST,
    UNSTEADY,
};
use crate::flow::writing::{rate, Recurring};

/// How fast new data is sent, over some rounds and over those before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    pub(super) from: (i64, u64),
    pub(super) until: (i64, u64),
    pub(super) last_ns: i64,
    pub(super) rounds: u32,
    pub(super) sends: u32,
    /// In one of them packets waited.
    pub(super) queued: bool,
    pub(super) bps: f64,
    pub(super) steady: u32,
    /// The last rate that was steady, how far that is believed, and what was sent since it was looked for.
    pub(super) own_bps: f64,
    pub(super) recurring: Recurring,
    pub(super) trust: i32,
    pub(super) since: (i64, u64),
    pub(super) since_sends: u32,
    /// The fastest that a segment followed another, and the next fastest: no link on the way is slower.
    pub(super) closest_bps: [f64; 2],
}

impl Pace {
    #[inline]
    pub(super) fn sent(&mut self, now_ns: i64, next: u64, again: bool) {
        if next > self.until.1 || again {
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

    /// What now is sent begins where the last ended.
    #[inline]
    pub(super) fn follows(&mut self, now_ns: i64, bytes: u32) {
        let bps = rate((self.last_ns, 0), (now_ns, u64::from(bytes)));
        let [most, second] = self.closest_bps;
        if bps > second {
            self.closest_bps = [most.max(bps), most.min(bps)];
        }
    }

    /// The rate of the slowest link on the way, if segments ever followed each other at that.
    pub(super) fn link_bps(&self) -> f64 {
        let [_, second] = self.closest_bps;
        second
    }

    /// A round is over. A rate that stays while packets are `queued` may be what the link gives, and is no sign.
    pub(super) fn round(&mut self, queued: bool) {
        self.rounds += 1;
        if self.since_sends >= KNOWN_SENDS {
            let bps = rate(self.since, self.until);
            // Behind a full link, that is the link's.
            let slower = bps < FILLS * self.link_bps();
            if self.recurring.round(bps) && slower && !queued {
                self.own_bps = bps;
                self.trust = self.trust.max(TRUST / 2);
            }
            self.since = self.until;
            self.since_sends = 0;
            if (bps - self.own_bps).abs() < UNSTEADY * self.own_bps {
                self.trust = (self.trust + 2).min(TRUST);
                self.steady = self.steady.max(STEADY_ELSEWHERE);
            } else {
                self.trust = (self.trust - 1).max(-1);
                if self.trust < 0 {
                    self.own_bps = 0.0;
                }
            }
        }
        self.queued |= queued;
        if self.rounds < STEADY_ROUNDS || self.sends < STEADY_SENDS {
            return;
        }
        let bps = rate(self.from, self.until);
        let change = (bps - self.bps).abs() / self.bps.max(1.0);
        let allowed = if self.steady > 0 { UNSTEADY } else { STEADY };
        let steady = if change < allowed {
            self.steady + u32::from(!self.queued)
        } else {
            0
        };
        let begun_bps = if steady > 1 { self.bps } else { bps }; // it must not drift away
        if steady >= STEADY_ELSEWHERE && !self.queued {
            self.own_bps = begun_bps;
            self.trust = self.trust.max(TRUST / 2);
        }
        *self = Self {
            from: self.until,
            rounds: 0,
            sends: 0,
            queued: false,
            bps: begun_bps,
            steady,
            ..*self
        };
    }
}

/// Whether the pipe grows, of [`STEADY_ROUNDS`] at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rise {
    pub(super) rounds: u32,
    pub(super) most_bytes: u64,
    pub(super) before_bytes: u64,
    pub(super) times: u32,
}

impl Rise {
    pub(super) fn round(&mut self, pipe_bytes: u64) {
        self.rounds += 1;
        self.most_bytes = self.most_bytes.max(pipe_bytes);
        if self.rounds < STEADY_ROUNDS {
            return;
        }
        let times = match self.most_bytes.cmp(&self.before_bytes) {
            Ordering::Less => 0,
            Ordering::Equal => self.times,
            Ordering::Greater => self.times + 1,
        };
        *self = Self {
            before_bytes: self.most_bytes,
            times,
            ..Self::default()
        };
    }

    pub(super) fn goes_on(&self) -> bool {
        self.times >= RISING
    }
}
