//! Nagle's algorithm against delayed acknowledgements.

use super::SenderView;

/// A delayed acknowledgement comes so much later: 40 ms on Linux, 200 ms elsewhere, 500 ms at most (RFC 1122).
const MIN_DELAYED_ACK_NS: i64 = 25_000_000;
const MAX_DELAYED_ACK_NS: i64 = 500_000_000;

impl SenderView {
    /// Nagle's algorithm holds a segment back that is not full until all is acknowledged, and the receiver delays that
    /// acknowledgement, as it has nothing to answer yet (RFC 1122 sections 4.2.3.2 and 4.2.3.4). The segment before was not
    /// full either: Linux waits for small segments only (Minshall's variant). `bytes`: those of the new segment.
    pub(super) fn detect_nagle(&mut self, acknowledged_ns: i64, bytes: u32) {
        // Every acknowledgement may have been delayed, but that of the handshake.
        let rtt_ns = self
            .handshake_ns
            .map_or(self.rtt.min_ns, |known_ns| known_ns.min(self.rtt.min_ns));
        // Where the delay to the sender is only estimated, a sender that was idle makes the estimate longer.
        let acknowledged_ns = if self.sender_delay_ns > 0 && self.sender_side_rtt.count > 0 {
            let side_ns = self.sender_side_rtt.min_ns.min(rtt_ns);
            acknowledged_ns.min(self.last_ack_ns + side_ns)
        } else {
            acknowledged_ns
        };
        let waited_ns = acknowledged_ns - self.last_sent_ns - rtt_ns;
        let was_delayed = (MIN_DELAYED_ACK_NS..=MAX_DELAYED_ACK_NS).contains(&waited_ns);
        if was_delayed
            && self.emptied_by_pure_ack
            && self.rtt.count > 0
            && self.last_bytes.max(bytes) < self.max_segment_bytes
        {
            self.totals.nagle_waits = self.totals.nagle_waits.saturating_add(1);
            self.totals.nagle_wait_ns += waited_ns;
        }
    }
}
