//! Acknowledgements as rows.

use super::{Ack, Sending};
use crate::rows::Rows;

impl Sending {
    /// Notes an acknowledgement, if segments are wanted.
    #[inline]
    pub(super) fn note(&self, ack: &Ack, rows: &mut Rows) {
        if !rows.options.segments {
            return;
        }
        let time_s = rows.seconds(ack.seen_ns);
        let block = (ack.blocks > 0).then_some(ack.sack[0]);
        let offset = |position: u64| position.saturating_sub(self.base);
        let noted = &mut rows.tables.acknowledgements;
        noted.time_s.push(time_s);
        noted.flow.push(self.flow);
        noted.offset_bytes.push(offset(ack.position));
        let window_bytes = ack.window_bytes.unwrap_or(u64::MAX);
        noted.receiver_window_bytes.push(window_bytes);
        let (start, end) = block.map_or((u64::MAX, u64::MAX), |(start, end)| {
            (offset(start), offset(end))
        });
        noted.sack_start_bytes.push(start);
        noted.sack_end_bytes.push(end);
    }
}
