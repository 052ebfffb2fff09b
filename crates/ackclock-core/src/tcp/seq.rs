//! Serial number arithmetic on 32-bit numbers that wrap: sequence numbers (RFC 9293 section 3.4), TSvals (RFC 7323).
//!
//! Two numbers compare correctly if they are less than 2^31 apart.

/// Signed distance from `earlier` to `later`.
#[inline]
pub const fn distance(later: u32, earlier: u32) -> i32 {
    later.wrapping_sub(earlier).cast_signed()
}

/// True if `a` precedes `b`.
#[inline]
pub const fn is_before(a: u32, b: u32) -> bool {
    distance(a, b) < 0
}

/// True if `a` follows `b`.
#[inline]
pub const fn is_after(a: u32, b: u32) -> bool {
    distance(a, b) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_across_the_wrap() {
        assert_eq!(distance(5, u32::MAX), 6);
        assert_eq!(distance(u32::MAX, 5), -6);
        assert!(is_after(0, u32::MAX) && is_before(u32::MAX, 0));
        assert!(!is_after(7, 7) && !is_before(7, 7));
    }
}
