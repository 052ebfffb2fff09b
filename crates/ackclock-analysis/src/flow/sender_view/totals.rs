//! Counts of a direction.

/// Counts of a direction, in segments where nothing else is said.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Totals {
    pub data_packets: u64,
    pub data_segments: u64,
    pub super_segments: u64,
    pub payload_bytes: u64,
    pub delivered_bytes: u64,
    pub fates: [u64; 8],
    pub fate_bytes: [u64; 8],
    pub causes: [u64; 8],
    pub timeouts: u64,
    pub recoveries: u64,
    pub duplicate_acks: u64,
    pub may_be_late: u64,
    pub nagle_waits: u32,
    pub sack_reneged: u32,
    pub nagle_wait_ns: i64,
    pub largest_delivered_bytes: u32,
    pub smallest_stuck_bytes: u32,
    pub initial_window: u32,
    pub window_max_bytes: u64,
    pub pipe_max_bytes: u64,
}
