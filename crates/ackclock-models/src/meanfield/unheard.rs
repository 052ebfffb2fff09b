//! Packets that were lost and whose senders do not know it yet.
//!
//! They are part of their senders' windows, but no acknowledgement comes for them: they clock nothing out. So a full
//! queue loses what the windows grow by, and not ever more until the first sender hears of it.

use std::collections::VecDeque;

/// Of one class: what was lost when.
#[derive(Clone, Debug, Default)]
pub struct Unheard {
    lost: VecDeque<(f64, f64)>,
    sum_p: f64,
}

impl Unheard {
    /// Packets are lost at a time; times come in ascending order.
    pub fn push(&mut self, now_s: f64, lost_p: f64) {
        if lost_p > 0.0 {
            self.lost.push_back((now_s, lost_p));
            self.sum_p += lost_p;
        }
    }

    /// Packets of which the senders have not heard.
    pub fn left_p(&self) -> f64 {
        self.sum_p
    }

    /// Takes out those that were lost up to a time.
    pub fn hear(&mut self, until_s: f64) -> f64 {
        let mut heard_p = 0.0;
        while let Some((_, lost_p)) = self.lost.front().filter(|(then_s, _)| *then_s <= until_s) {
            heard_p += lost_p;
            self.lost.pop_front();
        }
        // No rounding remains where nothing does.
        self.sum_p = if self.lost.is_empty() {
            0.0
        } else {
            (self.sum_p - heard_p).max(0.0)
        };
        heard_p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_detected_in_order_and_not_repeated() {
        let mut unheard = Unheard::default();
        for (now_s, lost_p) in [(1.0, 0.5), (2.0, 0.0), (3.0, 0.25), (4.0, 1.0)] {
            unheard.push(now_s, lost_p);
        }
        assert_eq!((unheard.hear(0.5), unheard.left_p()), (0.0, 1.75));
        assert_eq!((unheard.hear(3.0), unheard.left_p()), (0.75, 1.0));
        assert_eq!((unheard.hear(3.5), unheard.left_p()), (0.0, 1.0));
        assert_eq!((unheard.hear(9.0), unheard.left_p()), (1.0, 0.0));
    }
}
