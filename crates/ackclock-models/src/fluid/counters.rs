//! Counts: packets by flow and link, times in each regime, sojourn times.

/// Bins of the histogram of sojourn times, evenly between 0 and a full queue.
const BINS: usize = 500;

/// The counts of a flow; integrals over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowCounters {
    /// ∫ A dt, packets.
    pub sent_p: f64,
    /// Packets that left its last queue.
    pub delivered_p: f64,
    /// ∫ λ dt, packets.
    pub dropped_p: f64,
    /// ∫ W dt, packet seconds.
    pub window_p_s: f64,
    /// ∫ R dt, s².
    pub rtt_s2: f64,
    /// Time in which it was there.
    pub active_s: f64,
    /// Reductions of its window.
    pub recoveries: u64,
}

impl FlowCounters {
    /// Difference from earlier counts.
    #[must_use]
    pub fn since(&self, before: &FlowCounters) -> FlowCounters {
        FlowCounters {
            sent_p: self.sent_p - before.sent_p,
            delivered_p: self.delivered_p - before.delivered_p,
            dropped_p: self.dropped_p - before.dropped_p,
            window_p_s: self.window_p_s - before.window_p_s,
            rtt_s2: self.rtt_s2 - before.rtt_s2,
            active_s: self.active_s - before.active_s,
            recoveries: self.recoveries - before.recoveries,
        }
    }
}

/// The counts of a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkCounters {
    /// Packets that arrived at the queue.
    pub arrived_p: f64,
    /// Packets dropped.
    pub dropped_p: f64,
    /// Packets that left.
    pub departed_p: f64,
    /// Time spent transmitting.
    pub busy_s: f64,
    /// Time with an empty queue.
    pub empty_s: f64,
    /// ∫ q dt, packet seconds.
    pub backlog_p_s: f64,
    /// Sojourn times of what left, added up, packet seconds.
    pub sojourn_p_s: f64,
}

impl LinkCounters {
    /// Difference from earlier counts.
    #[must_use]
    pub fn since(&self, before: &LinkCounters) -> LinkCounters {
        LinkCounters {
            arrived_p: self.arrived_p - before.arrived_p,
            dropped_p: self.dropped_p - before.dropped_p,
            departed_p: self.departed_p - before.departed_p,
            busy_s: self.busy_s - before.busy_s,
            empty_s: self.empty_s - before.empty_s,
            backlog_p_s: self.backlog_p_s - before.backlog_p_s,
            sojourn_p_s: self.sojourn_p_s - before.sojourn_p_s,
        }
    }
}

/// A histogram of sojourn times in so many bins of equal width.
#[derive(Clone, Debug)]
pub struct Sojourns {
    longest_s: f64,
    counts_p: Vec<f64>,
    /// The longest one seen.
    pub max_s: f64,
}

impl Sojourns {
    /// An empty histogram for times up to `longest_s`.
    pub fn new(longest_s: f64) -> Sojourns {
        Sojourns {
            longest_s,
            counts_p: vec![0.0; BINS + 1],
            max_s: 0.0,
        }
    }

    /// Add so many packets that waited so long. Bin 0 is for those that did not wait.
    pub fn add(&mut self, sojourn_s: f64, packets: f64) {
        let bin = (sojourn_s / self.longest_s * BINS as f64).ceil() as usize;
        self.counts_p[bin.min(BINS)] += packets;
        self.max_s = self.max_s.max(sojourn_s);
    }

    /// The upper edges (s) and whole packets of the bins that hold some.
    pub fn bins(&self) -> (Vec<f64>, Vec<u64>) {
        let edge_s = |bin: usize| self.longest_s * bin as f64 / BINS as f64;
        let whole = self.counts_p.iter().map(|packets| packets.round() as u64);
        let filled = whole.enumerate().filter(|(_, packets)| *packets > 0);
        filled.map(|(bin, packets)| (edge_s(bin), packets)).unzip()
    }
}
