//! Times in which an end advertised a receive window of zero (RFC 9293 section 3.8.6.1): it has no room for data, as its
//! application does not read. A window of zero needs no window scale, so it is known without the handshake.

use ackclock_pcap::packet::{Flags, Segment};

/// Zero windows of one end: how many there were, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZeroWindows {
    pub count: u32,
    closed_ns: i64,
    since_ns: Option<i64>,
}

impl ZeroWindows {
    /// Process a packet of this end. SYNs and resets advertise nothing of the buffer.
    #[inline]
    pub fn on_packet(&mut self, segment: &Segment, now_ns: i64) {
        if segment.window == 0 || self.since_ns.is_some() {
            self.on_window(segment, now_ns);
        }
    }

    #[cold]
    fn on_window(&mut self, segment: &Segment, now_ns: i64) {
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            return;
        }
        match (segment.window, self.since_ns) {
            (0, None) => {
                self.count = self.count.saturating_add(1);
                self.since_ns = Some(now_ns);
            }
            (0, Some(_)) | (_, None) => {}
            (_, Some(since_ns)) => {
                self.closed_ns += (now_ns - since_ns).max(0);
                self.since_ns = None;
            }
        }
    }

    /// Return how long the window was zero until the last packet.
    pub fn closed_ns(&self, last_ns: i64) -> i64 {
        let open_ns = self.since_ns.map_or(0, |since_ns| last_ns - since_ns);
        self.closed_ns + open_ns.max(0)
    }
}
