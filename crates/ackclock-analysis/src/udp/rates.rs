//! Bytes over time, in intervals that double as the flow goes on, so that their number is bounded.

/// The first interval, in nanoseconds.
const FIRST_INTERVAL_NS: i64 = 10_000_000;
/// The maximum number of intervals.
const MAX_INTERVALS: usize = 128;

/// Bytes of both directions per interval.
#[derive(Clone, Debug)]
pub struct Rates {
    interval_ns: i64,
    bytes: Vec<[u64; 2]>,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            interval_ns: FIRST_INTERVAL_NS,
            bytes: Vec::new(),
        }
    }
}

impl Rates {
    /// Add bytes of a direction at a time since the beginning.
    pub fn add(&mut self, direction: usize, bytes: u32, since_ns: i64) {
        let mut interval = (since_ns.max(0) / self.interval_ns) as usize;
        while interval >= MAX_INTERVALS {
            self.halve();
            interval /= 2;
        }
        if interval >= self.bytes.len() {
            self.bytes.resize(interval + 1, [0; 2]);
        }
        self.bytes[interval][direction] += u64::from(bytes);
    }

    fn halve(&mut self) {
        let sum = |pair: &[[u64; 2]]| {
            let second = pair.get(1).copied().unwrap_or_default();
            [pair[0][0] + second[0], pair[0][1] + second[1]]
        };
        self.bytes = self.bytes.chunks(2).map(sum).collect();
        self.interval_ns *= 2;
    }

    /// Return the interval in seconds.
    pub fn interval_s(&self) -> f64 {
        self.interval_ns as f64 * 1e-9
    }

    /// Return the rates of a direction in bit/s, one for each interval.
    pub fn bps(&self, direction: usize) -> Vec<f64> {
        let bps = |bytes: &[u64; 2]| 8.0 * bytes[direction] as f64 / self.interval_s();
        self.bytes.iter().map(bps).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_and_keep_all_bytes() {
        let mut rates = Rates::default();
        for packet in 0..1000 {
            rates.add(packet % 2, 100, packet as i64 * FIRST_INTERVAL_NS);
        }
        assert_eq!(rates.interval_ns, 8 * FIRST_INTERVAL_NS);
        assert_eq!(rates.bytes.len(), 125);
        assert_eq!(rates.bytes[0], [400, 400]);
        assert_eq!(rates.bps(0)[124], 8.0 * 400.0 / rates.interval_s());
        rates.add(1, 5, 1 << 57);
        let total: u64 = rates.bytes.iter().flatten().sum();
        assert_eq!(total, 100_005);
    }
}
