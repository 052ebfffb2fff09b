//! CoDel as a fluid queue sees it: whole packets at the times of its control law.
//!
//! K. Nichols, V. Jacobson, A. McGregor, J. Iyengar: Controlled Delay Active Queue Management, RFC 8289, section 5.
//! The delay of the head is taken to be what the queue takes to drain; state moves once in a step.

use serde::Deserialize;

/// After that many intervals without a drop the count starts anew (RFC 8289 section 5).
const MEMORY_INTERVALS: f64 = 16.0;

/// A queue of no more than this is never above the target.
const FREE_P: f64 = 1.0;

/// CoDel's parameters.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codel {
    /// Delay that is accepted for good.
    pub target_s: f64,
    /// Time that the delay may be above the target before the first drop.
    pub interval_s: f64,
    /// True if 1/√count is followed by a Newton step per drop, as Linux does.
    pub newton: bool,
}

impl Codel {
    /// True if times are positive.
    pub fn is_sound(&self) -> bool {
        [self.target_s, self.interval_s]
            .iter()
            .all(|time_s| *time_s > 0.0 && time_s.is_finite())
    }
}

/// CoDel at work; names as in RFC 8289.
#[derive(Clone, Copy, Debug)]
pub struct State {
    codel: Codel,
    first_above_s: Option<f64>,
    drop_next_s: f64,
    count: f64,
    lastcount: f64,
    inverse_root: f64,
    dropping: bool,
}

impl State {
    /// A queue that has seen no packet.
    pub fn new(codel: Codel) -> State {
        State {
            codel,
            first_above_s: None,
            drop_next_s: 0.0,
            count: 0.0,
            lastcount: 0.0,
            inverse_root: 1.0,
            dropping: false,
        }
    }

    /// Packets to drop at a time, from a queue so long.
    pub fn drops_p(&mut self, now_s: f64, delay_s: f64, backlog_p: f64) -> f64 {
        if delay_s < self.codel.target_s || backlog_p <= FREE_P {
            self.first_above_s = None;
            self.dropping = false;
            return 0.0;
        }
        let first_s = *self
            .first_above_s
            .get_or_insert(now_s + self.codel.interval_s);
        if now_s < first_s {
            return 0.0;
        }
        if self.dropping {
            self.further(now_s, backlog_p)
        } else {
            self.enter(now_s);
            1.0
        }
    }

    /// If the dropping state was left a short time ago, the rate that was needed then is the one to begin with.
    fn enter(&mut self, now_s: f64) {
        self.dropping = true;
        let since_entered = self.count - self.lastcount;
        let recent = now_s < self.drop_next_s + MEMORY_INTERVALS * self.codel.interval_s;
        if since_entered > 1.0 && recent {
            self.count = since_entered;
            self.refine();
        } else {
            (self.count, self.inverse_root) = (1.0, 1.0);
        }
        self.lastcount = self.count;
        self.drop_next_s = now_s + self.codel.interval_s * self.inverse_root;
    }

    fn further(&mut self, now_s: f64, backlog_p: f64) -> f64 {
        let mut drops_p = 0.0;
        while now_s >= self.drop_next_s && backlog_p - drops_p > FREE_P {
            self.count += 1.0;
            self.refine();
            drops_p += 1.0;
            self.drop_next_s += self.codel.interval_s * self.inverse_root;
        }
        drops_p
    }

    /// 1/√count, or a Newton step towards it: x ← x (3 − count x²) / 2.
    fn refine(&mut self) {
        let x = self.inverse_root;
        let step = 0.5 * x * (3.0 - self.count * x * x);
        self.inverse_root = if self.codel.newton && step > 0.0 {
            step
        } else {
            self.count.sqrt().recip()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State::new(Codel {
            target_s: 0.005,
            interval_s: 0.1,
            newton: false,
        })
    }

    /// Above the target for an interval, then at intervals of 1/√count: 0.1, 0.1, 0.071, 0.058 s …
    #[test]
    fn drop_intervals_shrink_with_the_root_of_the_count() {
        let mut state = state();
        let drops: Vec<u32> = (0..4000)
            .filter(|step| state.drops_p(f64::from(*step) * 1e-4, 0.01, 100.0) > 0.0)
            .collect();
        assert_eq!(drops[..4], [1000, 2000, 2708, 3285]);
    }

    #[test]
    fn a_short_delay_or_queue_ends_it() {
        let mut state = state();
        assert_eq!(state.drops_p(0.0, 0.01, 100.0), 0.0);
        assert_eq!(state.drops_p(0.1, 0.01, 100.0), 1.0);
        assert_eq!(state.drops_p(0.2, 0.004, 100.0), 0.0);
        assert_eq!(state.drops_p(0.21, 0.01, 100.0), 0.0);
        assert_eq!(state.drops_p(9.0, 0.01, 1.0), 0.0);
    }
}
