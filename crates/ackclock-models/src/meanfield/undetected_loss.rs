//! Lost packets that their senders have not detected.
//!
//! They are part of their senders' windows, but get no acknowledgement and so clock nothing out. Therefore a full
//! queue loses only the growth of the windows, not an increasing amount until the first detection.

use std::collections::VecDeque;

/// Losses of one class with their times.
#[derive(Clone, Debug, Default)]
pub struct UndetectedLosses {
    lost: VecDeque<(f64, f64)>,
    sum_p: f64,
}

impl UndetectedLosses {
    /// Record packets lost at a time; times are ascending.
    pub fn push(&mut self, now_s: f64, lost_p: f64) {
        if lost_p > 0.0 {
            self.lost.push_back((now_s, lost_p));
            self.sum_p += lost_p;
        }
    }

    /// Packets whose loss is undetected.
    pub fn left_p(&self) -> f64 {
        self.sum_p
    }

    /// Remove and return the packets lost up to a time.
    pub fn detect(&mut self, until_s: f64) -> f64 {
        let mut detected_p = 0.0;
        while let Some((_, lost_p)) = self.lost.front().filter(|(then_s, _)| *then_s <= until_s) {
            detected_p += lost_p;
            self.lost.pop_front();
        }
        // No rounding remains where nothing does.
        self.sum_p = if self.lost.is_empty() {
            0.0
        } else {
            (self.sum_p - detected_p).max(0.0)
        };
        detected_p
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loss_is_detected_in_order_and_not_repeated() {
        let mut undetected = UndetectedLosses::default();
        for (now_s, lost_p) in [(1.0, 0.5), (2.0, 0.0), (3.0, 0.25), (4.0, 1.0)] {
            undetected.push(now_s, lost_p);
        }
        assert_eq!((undetected.detect(0.5), undetected.left_p()), (0.0, 1.75));
        assert_eq!((undetected.detect(3.0), undetected.left_p()), (0.75, 1.0));
        assert_eq!((undetected.detect(3.5), undetected.left_p()), (0.0, 1.0));
        assert_eq!((undetected.detect(9.0), undetected.left_p()), (1.0, 0.0));
    }
}
