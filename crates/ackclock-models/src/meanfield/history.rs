//! Loss probability of the recent past, for detection a round trip later.

use std::collections::VecDeque;

/// Values of the steps in which there was a loss; all others are zero.
#[derive(Clone, Debug, Default)]
pub struct History {
    kept: VecDeque<(u64, f64)>,
}

impl History {
    /// The value of a step; steps come in ascending order.
    pub fn push(&mut self, step: u64, value: f64) {
        if value > 0.0 {
            self.kept.push_back((step, value));
        }
    }

    /// Clear the steps before one.
    pub fn forget(&mut self, before: f64) {
        while self
            .kept
            .front()
            .is_some_and(|(step, _)| (*step as f64) < before)
        {
            self.kept.pop_front();
        }
    }

    /// True if there was no loss in all of the kept past.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The value at a time in steps, linear between them.
    pub fn at(&self, steps: f64) -> f64 {
        if steps < 0.0 || self.kept.is_empty() {
            return 0.0;
        }
        let before = steps as u64;
        let share = steps - before as f64;
        let place = self.kept.partition_point(|(step, _)| *step < before);
        let value = |place: usize, step| match self.kept.get(place) {
            Some((found, value)) if *found == step => *value,
            _ => 0.0,
        };
        let next = place
            + usize::from(
                self.kept
                    .get(place)
                    .is_some_and(|(step, _)| *step == before),
            );
        (1.0 - share) * value(place, before) + share * value(next, before + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_linear_between_steps_and_zero_outside() {
        let mut history = History::default();
        for (step, value) in [(3, 0.5), (4, 0.0), (5, 0.25), (6, 0.75)] {
            history.push(step, value);
        }
        for (steps, value) in [
            (-1.0, 0.0),
            (2.5, 0.25),
            (3.0, 0.5),
            (3.5, 0.25),
            (4.5, 0.125),
            (5.5, 0.5),
            (6.75, 0.1875),
            (9.0, 0.0),
        ] {
            assert_eq!(history.at(steps), value, "at {steps}");
        }
        history.forget(4.0);
        assert_eq!(history.at(3.0), 0.0);
        assert_eq!(history.at(5.0), 0.25);
        history.forget(100.0);
        assert!(history.is_empty());
    }
}
