//! Without SACK: duplicate ACKs stand for segments that arrived (RFC 5681 section 3.2, RFC 6582).

use super::Scoreboard;

impl Scoreboard {
    /// Count a duplicate ACK without SACK: some segment has arrived.
    pub fn count_duplicate(&mut self) {
        self.sacked += 1;
        self.limit_duplicates();
    }

    /// Limit the count of duplicates: they count segments other than the first hole and lost ones.
    fn limit_duplicates(&mut self) {
        let missing = self.lost.max(1);
        self.sacked = self.sacked.min(self.outstanding().saturating_sub(missing));
    }

    /// Correct the count of duplicates after a cumulative ACK of `segments` segments: one filled a
    /// hole, the others are those the duplicates stood for.
    pub fn forget_duplicates(&mut self, segments: u32) {
        self.sacked -= self.sacked.min(segments.saturating_sub(1));
        self.limit_duplicates();
    }

    /// Clear the count of duplicates (end of recovery without SACK).
    pub fn clear_duplicates(&mut self) {
        self.sacked = 0;
    }
}
