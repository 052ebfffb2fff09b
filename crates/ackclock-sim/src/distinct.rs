//! The numbers of a flow's packets that have arrived: goodput counts no datum twice.
//!
//! Numbers below the first that is missing need no memory; above it there is a bit for each. At most [`WINDOW`] of them
//! are kept, and what is older counts as received.

use std::collections::VecDeque;

/// Numbers after the first missing one, at most: as many as RTP has.
const WINDOW: u64 = 1 << 16;
/// Bits of a word.
const BITS: u64 = 64;

/// The numbers received.
#[derive(Clone, Debug, Default)]
pub struct DistinctNumbers {
    /// Words before those that are kept: all their numbers count as received.
    passed: u64,
    words: VecDeque<u64>,
}

impl DistinctNumbers {
    /// Add a number; returns true if it is new.
    pub fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = (number / BITS, 1 << (number % BITS));
        let Some(mut index) = word.checked_sub(self.passed) else {
            return false;
        };
        if let Some(excess) = (index + 1).checked_sub(WINDOW / BITS) {
            self.words.drain(..self.words.len().min(excess as usize));
            self.passed += excess;
            index -= excess;
        }
        let index = index as usize;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        let is_new = self.words[index] & bit == 0;
        self.words[index] |= bit;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.passed += 1;
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn only_the_first_arrival_of_a_number_is_new(numbers in prop::collection::vec(0..5000_u64, 0..3000)) {
            let (mut distinct, mut set) = (DistinctNumbers::default(), HashSet::new());
            for number in numbers {
                prop_assert_eq!(distinct.insert(number), set.insert(number));
            }
        }
    }

    #[test]
    fn what_is_older_than_the_window_counts_as_received() {
        let mut distinct = DistinctNumbers::default();
        assert!(distinct.insert(64) && distinct.insert(0));
        assert!(distinct.insert(WINDOW - 1) && distinct.insert(1));
        assert!(distinct.insert(WINDOW));
        assert!(!distinct.insert(2) && !distinct.insert(64) && distinct.insert(65));
        assert!(distinct.insert(1 << 40) && !distinct.insert((1 << 40) - WINDOW));
        assert!(distinct.words.len() as u64 <= WINDOW / BITS);
    }

    #[test]
    fn numbers_in_order_need_a_word() {
        let mut distinct = DistinctNumbers::default();
        assert!((0..100_000).all(|number| distinct.insert(number)));
        assert!(distinct.words.len() <= 1);
    }
}
