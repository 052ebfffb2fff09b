//! Gaps of a capture as a whole, and the connections active before them: a stopped host stops all.

/// The shortest gap of the whole capture. A connection's gap is longer, by its other delays.
const MIN_GAP_NS: i64 = 100_000_000;
/// Connections that sent within such a window were at work.
const WINDOW_NS: i64 = 200_000_000;

/// The last gap of all connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureGap {
    /// From the last packet before it to the first behind it; the same if there was none.
    pub begin_ns: i64,
    /// See `begin_ns`.
    pub end_ns: i64,
    /// Connections that were at work before it.
    pub active: u32,
    /// Connections with outstanding data.
    pub waiting: u32,
    last_ns: i64,
    window_ns: i64,
    working: [u32; 2],
    waiting_now: u32,
}

impl CaptureGap {
    /// A packet was captured.
    #[inline]
    pub fn packet(&mut self, now_ns: i64) {
        if now_ns - self.last_ns > MIN_GAP_NS {
            self.begin_ns = self.last_ns;
            self.end_ns = now_ns;
            self.active = self.working[0].max(self.working[1]);
            self.waiting = self.waiting_now;
        }
        self.last_ns = now_ns;
        if (now_ns - self.window_ns).abs() >= WINDOW_NS {
            self.window_ns = now_ns;
            self.working = [0, self.working[0]];
        }
    }

    /// Count a packet of a connection whose previous packet was at this time.
    #[inline]
    pub fn on_connection(&mut self, before_ns: i64) {
        self.working[0] += u32::from(before_ns < self.window_ns);
    }

    /// A connection began to wait for acknowledgements, or ended it.
    #[inline]
    pub fn update_waiting(&mut self, before: bool, after: bool) {
        self.waiting_now = self.waiting_now + u32::from(after) - u32::from(before);
    }

    /// Return how much of an interval the gap of the whole capture covers.
    pub fn overlap_ns(&self, begin_ns: i64, end_ns: i64) -> i64 {
        (self.end_ns.min(end_ns) - self.begin_ns.max(begin_ns)).max(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_gap_counts_the_connections_active_before_it() {
        let mut gap = CaptureGap::default();
        let mut latest = [i64::MIN; 3];
        for at_ms in 0..900 {
            let now_ns = at_ms * MS;
            gap.packet(now_ns);
            let own = &mut latest[at_ms as usize % 3];
            gap.on_connection(*own);
            *own = now_ns;
        }
        gap.packet(1500 * MS);
        assert_eq!((gap.begin_ns, gap.end_ns), (899 * MS, 1500 * MS));
        assert_eq!(gap.active, 3);
        assert_eq!(gap.overlap_ns(1000 * MS, 1400 * MS), 400 * MS);
        assert_eq!(gap.overlap_ns(0, 500 * MS), 0);
    }
}
