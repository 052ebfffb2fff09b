//! Conversion of random bits.

/// Uniform number in [0, 1) from 64 random bits, of which a float holds the upper 53.
#[inline(always)]
pub fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_from_zero_to_below_one() {
        assert_eq!(unit_interval(0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(unit_interval(1 << 63).to_bits(), 0.5_f64.to_bits());
        assert!(unit_interval(u64::MAX) < 1.0);
    }
}
