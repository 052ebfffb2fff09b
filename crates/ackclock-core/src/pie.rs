//! PIE's control law, of a queue of packets and of a fluid queue.
//!
//! R. Pan, P. Natarajan, F. Baker, G. White: Proportional Integral Controller Enhanced (PIE), RFC 8033 sections 4.2
//! and 5.5; weights as `tc-pie(8)` has them.

/// `tc` counts α and β in sixteenths of a hertz.
const UNITS_PER_HERTZ: f64 = 16.0;
/// Below this p the weights are scaled down (section 4.2).
const SCALED_BELOW: f64 = 0.1;
/// From one decade of p to the next the weights fall by this: nearly the √p law, in powers of two.
const SCALE_PER_DECADE: f64 = 4.0;
/// Below this p there is no further scaling.
const LAST_DECADE: f64 = 1e-6;
/// The largest step up once p has reached [`SCALED_BELOW`] (section 5.5).
const LARGEST_STEP: f64 = 0.02;
/// A delay beyond which p rises by [`LARGEST_STEP`] more at each update (section 5.5).
const HIGH_DELAY_S: f64 = 0.25;

/// Factor of p at an update without delay, as in Linux; RFC 8033 section 4.2 has 0.98.
pub const DECAY: f64 = 1.0 - 1.0 / 64.0;
/// While p is below this and the delay below half the target, nothing is dropped (section 4.1).
pub const HARMLESS: f64 = 0.2;
/// Fewer full packets than this in the queue are never dropped from (section 4.1).
pub const FREE_PACKETS: u32 = 2;
/// p is summed up over the packets; below this sum nothing is dropped (section 5.4).
pub const TOO_EARLY: f64 = 0.85;

/// Settings of the control law.
#[derive(Clone, Copy, Debug)]
pub struct ControlLaw {
    /// Target delay.
    pub target_s: f64,
    /// Weight of the delay's deviation from the target, in sixteenths of a hertz.
    pub alpha: f64,
    /// Weight of the delay's change since the last update, in sixteenths of a hertz.
    pub beta: f64,
}

impl ControlLaw {
    /// Change of the drop probability at an update, from the delays now and at the update before.
    pub fn step(&self, probability: f64, delay_s: f64, delay_old_s: f64) -> f64 {
        let error_s = delay_s - self.target_s;
        let growth_s = delay_s - delay_old_s;
        let weighted = self.alpha * error_s + self.beta * growth_s;
        let step = weighted / (scale(probability) * UNITS_PER_HERTZ);
        let capped = if probability >= SCALED_BELOW {
            step.min(LARGEST_STEP)
        } else {
            step
        };
        let extra = if delay_s > HIGH_DELAY_S {
            LARGEST_STEP
        } else {
            0.0
        };
        capped + extra
    }
}

/// Divisor of α and β at this p: 2 below 10 %, and four times as much for each decade below 1 %
/// (the table of section 4.2).
fn scale(probability: f64) -> f64 {
    if probability >= SCALED_BELOW {
        return 1.0;
    }
    let (mut scale, mut decade) = (2.0, 0.01);
    // A little less than the last decade, as the decades are products of rounded numbers.
    while probability < decade && decade > LAST_DECADE * 0.99 {
        scale *= SCALE_PER_DECADE;
        decade /= 10.0;
    }
    scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_are_scaled_as_in_the_table_of_rfc_8033() {
        let table = [
            (0.0, 2048.0),
            (0.000_000_9, 2048.0),
            (0.000_001_1, 512.0),
            (0.000_009, 512.0),
            (0.000_011, 128.0),
            (0.000_09, 128.0),
            (0.000_11, 32.0),
            (0.000_9, 32.0),
            (0.001_1, 8.0),
            (0.009, 8.0),
            (0.011, 2.0),
            (0.09, 2.0),
            (0.1, 1.0),
            (0.9, 1.0),
        ];
        for (probability, divisor) in table {
            assert_eq!(scale(probability), divisor);
        }
    }
}
