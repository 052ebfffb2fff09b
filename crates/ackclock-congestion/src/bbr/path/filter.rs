//! The largest value of a sliding window, in constant space.
//!
//! K. Nichols' algorithm (draft-ietf-ccwg-bbr section 5.5.5 names it): the best value is kept with a
//! second and a third best that are newer, so that there is an heir when the best one grows too old. It
//! may be a little below the true maximum of the window, never above.

/// A value and when it was seen, in rounds, cycles or whatever the window counts.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    value: f64,
}

/// The three best values, the best and oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowedMax {
    best: [Sample; 3],
}

impl WindowedMax {
    /// The maximum; zero before the first sample.
    #[inline]
    pub fn get(&self) -> f64 {
        self.best[0].value
    }

    /// Take a sample at time `at`; those older than `window` are forgotten.
    #[inline]
    pub fn update(&mut self, window: u64, at: u64, value: f64) {
        let new = Sample { at, value };
        let [first, second, third] = self.best;
        if value >= first.value || at - third.at > window {
            self.best = [new; 3];
            return;
        }
        if value >= second.value {
            self.best = [first, new, new];
        } else if value >= third.value {
            self.best = [first, second, new];
        }
        self.age(window, new);
    }

    /// The heirs move up when the best is too old. Where an heir is none because it is as old as the one
    /// before it, the newest sample takes its place after a quarter (second) or half (third) of the window.
    #[inline]
    fn age(&mut self, window: u64, new: Sample) {
        let [first, second, third] = self.best;
        let age = new.at - first.at;
        if age > window {
            self.best = if new.at - second.at > window {
                [third, new, new]
            } else {
                [second, third, new]
            };
        } else if second.at == first.at && age > window / 4 {
            self.best = [first, new, new];
        } else if third.at == second.at && age > window / 2 {
            self.best = [first, second, new];
        }
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // values pass through unchanged
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_window_stays_and_then_its_heir() {
        let mut filter = WindowedMax::default();
        for (at, value) in [(1, 5.0), (2, 9.0), (4, 7.0), (8, 8.0), (12, 3.0)] {
            filter.update(10, at, value);
        }
        assert_eq!(filter.get(), 9.0);
        filter.update(10, 13, 1.0);
        assert_eq!(filter.get(), 8.0, "the 9 of time 2 is 11 old");
    }

    #[test]
    fn a_larger_value_replaces_the_maximum_immediately() {
        let mut filter = WindowedMax::default();
        filter.update(10, 1, 5.0);
        filter.update(10, 1, 6.0);
        assert_eq!(filter.get(), 6.0);
    }

    #[test]
    fn after_an_idle_window_only_the_new_value_counts() {
        let mut filter = WindowedMax::default();
        filter.update(2, 1, 5.0);
        filter.update(2, 9, 1.0);
        assert_eq!(filter.get(), 1.0);
    }

    #[test]
    fn it_is_never_above_the_true_maximum_and_never_below_the_newest() {
        let mut filter = WindowedMax::default();
        let values: Vec<f64> = (0..300u32).map(|n| f64::from(n * 7919 % 101)).collect();
        for (at, &value) in values.iter().enumerate() {
            filter.update(10, at as u64, value);
            let from = at.saturating_sub(10);
            let truth = values[from..=at].iter().copied().fold(0.0, f64::max);
            assert!(filter.get() <= truth && filter.get() >= value, "at {at}");
        }
    }
}
