//! Random early detection as a model of many packets sees it: an average, and the share of packets that it drops.
//!
//! S. Floyd, V. Jacobson: Random Early Detection Gateways for Congestion Avoidance, IEEE/ACM ToN 1(4), 1993;
//! beyond the upper threshold S. Floyd's recommendation on using the gentle variant, 2000. The packet engine
//! has the same, packet by packet.

use serde::Deserialize;

/// Drop policy of a queue, besides overflow.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Policy {
    /// No drops besides overflow.
    Droptail {},
    /// Random early detection.
    Red(Red),
}

/// RED's parameters, in packets.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Average up to which nothing is dropped.
    pub min_p: f64,
    /// Average from which everything is dropped, or with `gentle` ever more.
    pub max_p: f64,
    /// Probability at the upper threshold.
    pub probability: f64,
    /// Weight of the present queue in the average, for each packet that arrives.
    pub weight: f64,
    /// Beyond the upper threshold the probability rises to 1 at twice the threshold, and does not jump.
    pub gentle: bool,
}

impl Red {
    /// The average after `arrived_p` packets at a queue that holds `backlog_p`. An idle link counts as one that
    /// sends (figure 2 of the paper): as if at least the `sendable_p` packets had arrived that it could have sent.
    pub fn averaged(&self, average_p: f64, backlog_p: f64, arrived_p: f64, sendable_p: f64) -> f64 {
        let packets = if backlog_p > 0.0 {
            arrived_p
        } else {
            arrived_p.max(sendable_p)
        };
        backlog_p + (1.0 - self.weight).powf(packets) * (average_p - backlog_p)
    }

    /// The share of arriving packets that is dropped at an average.
    ///
    /// RED spreads its drops: with probability `p` from the curve, gaps between drops are uniform on 1 … 1/p
    /// (section 7, method 2 of the paper), (1 + 1/p) / 2 on average, so that a share of 2p / (1 + p) is dropped.
    pub fn dropped(&self, average_p: f64) -> f64 {
        let p = self.probability_at(average_p);
        2.0 * p / (1.0 + p)
    }

    /// The curve, `p_b` (figure 2 of the paper).
    fn probability_at(&self, average_p: f64) -> f64 {
        let above = (average_p - self.min_p) / (self.max_p - self.min_p);
        if above < 0.0 {
            0.0
        } else if above < 1.0 {
            self.probability * above
        } else if self.gentle {
            (self.probability + (1.0 - self.probability) * (average_p / self.max_p - 1.0)).min(1.0)
        } else {
            1.0
        }
    }

    /// True if thresholds are in order and shares are shares.
    pub fn is_sound(&self) -> bool {
        self.min_p >= 0.0
            && self.min_p < self.max_p
            && self.max_p.is_finite()
            && (0.0..=1.0).contains(&self.probability)
            && self.weight > 0.0
            && self.weight <= 1.0
    }
}

/// Expectation in the errors of unsound parameters.
pub const EXPECTED: &str = "0 <= min < max, 0 <= probability <= 1, 0 < weight <= 1";

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Red = Red {
        min_p: 10.0,
        max_p: 30.0,
        probability: 0.2,
        weight: 0.5,
        gentle: true,
    };

    /// Halfway between the thresholds p is half of its highest, and gaps uniform on 1 … 1/p drop 2p / (1 + p).
    #[test]
    fn a_held_average_drops_by_gaps_that_are_uniform() {
        let abrupt = Red {
            gentle: false,
            ..RED
        };
        for (average_p, p) in [
            (0.0, 0.0),
            (20.0, 0.1),
            (45.0, 0.6),
            (60.0, 1.0),
            (90.0, 1.0),
        ] {
            let share = RED.dropped(average_p);
            assert!(
                (share - 2.0 * p / (1.0 + p)).abs() < 1e-12,
                "{average_p}: {share}"
            );
        }
        assert_eq!(abrupt.dropped(20.0), RED.dropped(20.0));
        assert_eq!(abrupt.dropped(30.0), 1.0);
    }

    /// With the weight 1/2 each packet halves the way to the backlog; four packets' time of idling counts as four.
    #[test]
    fn each_packet_moves_the_average_and_so_does_idling() {
        assert_eq!(RED.averaged(20.0, 4.0, 2.0, 100.0), 8.0);
        assert_eq!(RED.averaged(32.0, 0.0, 1.0, 4.0), 2.0);
        assert_eq!(RED.averaged(32.0, 0.0, 5.0, 4.0), 1.0);
        let at_once = Red { weight: 1.0, ..RED };
        assert_eq!(at_once.averaged(20.0, 4.0, 0.0, 0.0), 20.0);
        assert_eq!(at_once.averaged(20.0, 4.0, 1.0, 0.0), 4.0);
    }
}
