//! Without SACK: duplicate ACKs stand for segments that arrived (RFC 5681 section 3.2, RFC 6582).

use super::Scoreboard;

impl Scoreboard {
    /// Counts a duplicate ACK where there is no SACK: some segment has arrived.
    pub fn count_duplicate(&mut self) {
        self.sacked += 1;
        self.limit_duplicates();
    }

    /// Duplicates stand for segments that arrived: neither for the first hole nor for lost ones.
    fn limit_duplicates(&mut self) {
        let missing = self.lost.max(1);
        self.sacked = self.sacked.min(self.outstanding().saturating_sub(missing));
    }

    /// Corrects the count of duplicates after a cumulative ACK of `segments` segments: one filled a
    /// hole, the others are those the duplicates stood for.
    pub fn forget_duplicates(&mut self, segments: u32) {
        self.sacked -= self.sacked.min(segments.saturating_sub(1));
        self.limit_duplicates();
    }

    /// Forgets all duplicates (end of recovery without SACK).
    pub fn clear_duplicates(&mut self) {
        self.sacked = 0;
    }
}
