//! Buffers of the sender's memory that contain outstanding segments: a batch is one, and adjoining SACKed ones merge.

use super::{Scoreboard, FIRST, SACKED};

impl Scoreboard {
    /// Buffers that hold the outstanding segments.
    pub fn buffers(&self) -> u32 {
        let begun = self.outstanding() > 0 && self.segment(self.unacknowledged).flags & FIRST == 0;
        self.firsts + u32::from(begun)
    }

    /// Begin a buffer with an outstanding segment.
    #[inline]
    pub fn begin_buffer(&mut self, sequence: u64) {
        let segment = self.segment_mut(sequence);
        let is_new = segment.flags & FIRST == 0;
        segment.flags |= FIRST;
        self.firsts += u32::from(is_new);
    }

    fn join_buffer(&mut self, sequence: u64) {
        let segment = self.segment_mut(sequence);
        let was = segment.flags & FIRST != 0;
        segment.flags &= !FIRST;
        self.firsts -= u32::from(was);
    }

    /// Release the memory of segments below `ack`.
    #[inline]
    pub(super) fn release(&mut self, ack: u64) {
        for sequence in self.unacknowledged..ack {
            self.firsts -= u32::from(self.segment(sequence).flags & FIRST != 0);
        }
    }

    /// Merge a segment that was SACKed with SACKed neighbours, and split it from others.
    pub(super) fn merge(&mut self, sequence: u64) {
        let is_sacked = |board: &Scoreboard, at| board.segment(at).flags & SACKED != 0;
        if sequence > self.unacknowledged {
            if is_sacked(self, sequence - 1) {
                self.join_buffer(sequence);
            } else {
                self.begin_buffer(sequence);
            }
        }
        if sequence + 1 < self.next {
            if is_sacked(self, sequence + 1) {
                self.join_buffer(sequence + 1);
            } else {
                self.begin_buffer(sequence + 1);
            }
        }
    }
}
