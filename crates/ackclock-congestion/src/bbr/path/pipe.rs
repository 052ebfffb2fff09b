//! Bandwidth and RTT as numbers of segments.

use ackclock_core::{Rate, Time};

/// The smallest window: an ACK for every other segment still finds two of them in flight
/// (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.3.2).
pub const MIN_WINDOW: u32 = 4;
/// Bytes of the largest batch.
const LARGEST_BATCH_BYTES: f64 = 65_536.0;
/// A batch lasts a millisecond, in Linux's binary one.
const BATCH_S: f64 = 1.0 / 1024.0;
/// Batches that may be in flight besides the pipe: in the host's queue, in its network card, and at the
/// receiver (draft-ietf-ccwg-bbr section 5.5.8.1).
pub const BATCHES: u32 = 3;

/// The conversion of rates to segments.
#[derive(Clone, Copy, Debug)]
pub struct Pipe {
    /// Payload of a segment.
    mss_bytes: f64,
    /// The window to start from.
    pub initial_window: u32,
}

impl Pipe {
    /// A pipe whose MSS is set by [`Pipe::open`].
    pub fn new(initial_window: f64) -> Pipe {
        Pipe {
            mss_bytes: 1.0,
            initial_window: (initial_window as u32).max(1),
        }
    }

    /// The connection is open.
    pub fn open(&mut self, mss_bytes: u32) {
        self.mss_bytes = f64::from(mss_bytes.max(1));
    }

    /// Segments per second.
    #[inline]
    pub fn segments_per_s(&self, rate: Rate) -> f64 {
        rate.bytes_per_second() / self.mss_bytes
    }

    /// Bytes per second.
    #[inline]
    pub fn bytes_per_s(&self, segments_per_s: f64) -> f64 {
        segments_per_s * self.mss_bytes
    }

    /// `gain` × bandwidth × delay, in segments; the initial window before there is an RTT.
    #[inline]
    pub fn volume(&self, segments_per_s: f64, rtt: Time, gain: f64) -> f64 {
        if rtt.is_never() {
            f64::from(self.initial_window)
        } else {
            gain * segments_per_s * rtt.seconds()
        }
    }

    /// Segments that leave in one batch of a host with segmentation offload, at least `least`.
    #[inline]
    pub fn batch(&self, bytes_per_s: f64, least: u32) -> u32 {
        let bytes = (bytes_per_s * BATCH_S).min(LARGEST_BATCH_BYTES - 1.0);
        ((bytes / self.mss_bytes) as u32).max(least)
    }

    /// The pacing rate before there is a bandwidth: `gain` × the initial window per RTT, or per
    /// millisecond if there is none.
    pub fn first_pacing_bytes_per_s(&self, srtt: Time, gain: f64) -> f64 {
        let rtt_s = if srtt == Time::ZERO {
            1e-3
        } else {
            srtt.seconds()
        };
        self.bytes_per_s(gain * f64::from(self.initial_window) / rtt_s)
    }
}

/// The next whole number of segments.
#[inline]
pub fn floor_segments(segments: f64) -> u32 {
    // Conversions are instructions; `ceil` is a call.
    let below = segments as u32;
    below.saturating_add(u32::from(f64::from(below) < segments))
}

/// The window to come back to when a loss is repaired or a dip has ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct SavedWindow(u32);

impl SavedWindow {
    /// Store a window; one that was already cut does not replace a larger one.
    pub fn save(&mut self, cwnd: u32, was_cut: bool) {
        self.0 = if was_cut { self.0.max(cwnd) } else { cwnd };
    }

    /// The window to go on with.
    pub fn restore(self, cwnd: u32) -> u32 {
        self.0.max(cwnd)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // exact in binary
mod tests {
    use super::*;

    fn pipe() -> Pipe {
        let mut pipe = Pipe::new(10.0);
        pipe.open(1448);
        pipe
    }

    /// 20 Mb/s × 50 ms / (1448 B × 8) = 86.3 segments.
    #[test]
    fn the_volume_of_20_megabit_and_50_ms() {
        let bandwidth = pipe().segments_per_s(Rate::from_bits_per_second(20e6));
        let volume = pipe().volume(bandwidth, Time::from_milliseconds(50), 2.0);
        assert!((volume - 2.0 * 86.326).abs() < 1e-2);
        assert_eq!(pipe().volume(bandwidth, Time::NEVER, 2.0), 10.0);
    }

    #[test]
    fn a_batch_is_a_millisecond_between_the_minimum_and_64_kilobytes() {
        assert_eq!(pipe().batch(2.5e6, 2), 2);
        assert_eq!(pipe().batch(1024.0 * 1448.0 * 7.5, 2), 7);
        assert_eq!(pipe().batch(1e12, 2), 45);
    }

    #[test]
    fn a_cut_window_does_not_replace_the_saved_one() {
        let mut saved = SavedWindow::default();
        saved.save(80, false);
        saved.save(4, true);
        assert_eq!(saved.restore(10), 80);
        saved.save(20, false);
        assert_eq!(saved.restore(10), 20);
    }
}
