//! Messages: small writes, each followed by what TCP sends of it (`workload/messages.rs`).

use ackclock_core::Time;

use super::{Outlet, Sender};

impl Sender {
    /// Write the messages that are due, each write followed by what TCP sends of it, and close after the last.
    #[cold]
    #[inline(never)]
    pub(super) fn write_messages(&mut self, now: Time, out: &mut impl Outlet) {
        self.workload.write_overdue(now);
        let before = self.counters.sent_packets;
        while self.workload.write_due(now) {
            self.stop = self.fill_window::<false>(now, out);
        }
        if self.counters.sent_packets > before {
            let limited = self.board.in_flight() >= self.window;
            self.cwnd_usage.observe(limited, &self.board);
        }
        self.workload.close_messages();
    }
}
