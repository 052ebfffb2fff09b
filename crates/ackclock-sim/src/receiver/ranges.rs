//! Ranges of segments that a receiver holds above a hole, and the SACK blocks that report them.

use std::collections::VecDeque;

use crate::options::{Block, Blocks, MAX_BLOCKS};

/// Ranges of segments above the next one expected.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Ranges in order, never adjacent.
    held: VecDeque<Block>,
    /// Ranges most recently extended, the latest first.
    recent: [Block; MAX_BLOCKS],
    recent_count: usize,
    /// Segments in all ranges.
    segments: u64,
}

impl Ranges {
    /// True if nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Number of segments held.
    #[inline]
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// The range that has this segment.
    pub fn range_of(&self, sequence: u64) -> Option<Block> {
        let &(_, last_end) = self.held.back()?;
        if sequence >= last_end {
            return None;
        }
        let after = self.held.partition_point(|&(start, _)| start <= sequence);
        let range = *self.held.get(after.checked_sub(1)?)?;
        (sequence < range.1).then_some(range)
    }

    /// Remove the range that follows without a gap once the hole below `next` is filled, and return the
    /// segment that is expected then.
    pub fn follow(&mut self, mut next: u64) -> u64 {
        if let Some(&(start, end)) = self.held.front() {
            if start == next {
                next = end;
                self.segments -= end - start;
                self.held.pop_front();
            }
        }
        self.retain_recent(|&(_, end)| end > next);
        next
    }

    /// Number of ranges extended more recently than the one that a segment above a hole joins; all of them
    /// if it joins none.
    pub fn place_of(&self, sequence: u64) -> usize {
        let recent = &self.recent[..self.recent_count];
        recent
            .iter()
            .position(|&(start, end)| start <= sequence + 1 && sequence <= end)
            .unwrap_or(recent.len())
    }

    /// Store a segment above a hole.
    pub fn keep(&mut self, sequence: u64) {
        self.segments += 1;
        if let Some(last) = self.held.back_mut().filter(|last| last.1 == sequence) {
            last.1 += 1;
            let range = *last;
            return self.lengthen(range);
        }
        let at = self.held.partition_point(|&(start, _)| start <= sequence);
        let touches_previous = at > 0 && self.held[at - 1].1 == sequence;
        let touches_next = at < self.held.len() && self.held[at].0 == sequence + 1;
        let range = match (touches_previous, touches_next) {
            (true, true) => {
                let (_, end) = self.held.remove(at).unwrap_or((sequence, sequence + 1));
                self.held[at - 1].1 = end;
                self.held[at - 1]
            }
            (true, false) => {
                self.held[at - 1].1 = sequence + 1;
                self.held[at - 1]
            }
            (false, true) => {
                self.held[at].0 = sequence;
                self.held[at]
            }
            (false, false) => {
                self.held.insert(at, (sequence, sequence + 1));
                (sequence, sequence + 1)
            }
        };
        self.remember(range);
    }

    /// Update the most recent range for a segment that has joined its end.
    fn lengthen(&mut self, range: Block) {
        if self.recent_count > 0 && self.recent[0].0 == range.0 {
            self.recent[0] = range;
        } else {
            self.remember(range);
        }
    }

    /// Put a range first among the recent ones, in place of those that it contains.
    pub fn remember(&mut self, (start, end): Block) {
        self.retain_recent(|&(first, last)| last < start || first > end);
        self.recent_count = (self.recent_count + 1).min(self.recent.len());
        self.recent[..self.recent_count].rotate_right(1);
        self.recent[0] = (start, end);
    }

    fn retain_recent(&mut self, keep: impl Fn(&Block) -> bool) {
        let mut kept = 0;
        for index in 0..self.recent_count {
            if keep(&self.recent[index]) {
                self.recent[kept] = self.recent[index];
                kept += 1;
            }
        }
        self.recent_count = kept;
    }

    /// SACK blocks: first a duplicate segment, then the range that contains it (RFC 2883 section 4), then the
    /// others, the most recent first; `limit` of them at most.
    pub fn blocks(&self, duplicate: Option<u64>, limit: usize) -> Blocks {
        let reported = duplicate.map(|sequence| (sequence, sequence + 1));
        let recent = self.recent[..self.recent_count].iter().copied();
        let chosen = reported.into_iter().chain(recent);
        chosen.take(limit).collect()
    }
}
