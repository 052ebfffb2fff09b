//! Ranges of bytes that are acknowledged selectively, apart from each other and in their order.

/// Ranges that are kept apart.
const MAX_RANGES: usize = 4096;

/// The ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Return true if the ranges cover all of it.
    pub fn contains(&self, start: u64, end: u64) -> bool {
        let index = self.0.partition_point(|range| range.1 < end);
        let range = self.0.get(index);
        range.is_some_and(|range| range.0 <= start && end <= range.1)
    }

    /// Add one.
    pub fn insert(&mut self, start: u64, end: u64) {
        let first = self.0.partition_point(|range| range.1 < start);
        let last = self.0.partition_point(|range| range.0 <= end);
        let joined = match self.0.get(first..last) {
            Some([only]) => (only.0.min(start), only.1.max(end)),
            Some([low, .., high]) => (low.0.min(start), high.1.max(end)),
            _ => (start, end),
        };
        self.0.splice(first..last.max(first), [joined]);
        if self.0.len() > MAX_RANGES {
            self.0.remove(0);
        }
    }

    /// The number of the first that ends behind a position.
    pub fn index_after(&self, position: u64) -> usize {
        self.0.partition_point(|range| range.1 <= position)
    }

    /// Return the range at an index.
    pub fn get(&self, number: usize) -> Option<(u64, u64)> {
        self.0.get(number).copied()
    }

    /// Forget those below what is acknowledged.
    #[inline]
    pub fn forget_below(&mut self, on_ack: u64) {
        if self.0.first().is_some_and(|range| range.1 <= on_ack) {
            let gone = self.index_after(on_ack);
            self.0.drain(..gone);
        }
    }

    /// Forget all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Free unused memory.
    pub fn shrink(&mut self) {
        self.0 = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranges_merge_and_acknowledged_ones_are_removed() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (40, 50), (20, 30), (60, 70), (45, 65)] {
            ranges.insert(start, end);
        }
        assert!(ranges.contains(10, 30) && ranges.contains(41, 69));
        assert!(!ranges.contains(25, 41) && !ranges.contains(60, 71));
        assert_eq!(ranges.get(ranges.index_after(30)), Some((40, 70)));
        ranges.forget_below(30);
        assert_eq!(ranges.get(0), Some((40, 70)));
    }
}
