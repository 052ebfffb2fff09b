//! The send buffer, as Linux keeps it: a queue of buffers of many segments each, in memory that grows with the window.
//!
//! The application writes as much as there is room for. Its bytes fill one buffer after the other, each of 64 KB or, as
//! long as the receiver's window is small, half of that. A batch never reaches beyond the buffer that it is cut from, so
//! what is left of one goes alone; a batch that leaves becomes a buffer of its own until it is acknowledged, and SACKed
//! buffers that adjoin become one. Each costs memory beside its payload.
//!
//! Memory for two windows (three, if the control asks for it) is granted when an ACK leaves the window unused, that is,
//! when nothing was left to send. The application is woken when a third of the memory is free, so behind a hole
//! that stays open the sender may run dry.
//!
//! Seen of Linux 6.1 by a module that printed its queues at each ACK: memory, sizes, and when they change.

use std::collections::VecDeque;

use ackclock_plan::TcpPlan;

/// Memory of a buffer beside its payload.
const OVERHEAD_BYTES: u64 = 768;
/// Beside its MSS, what a segment is granted memory for: headers, and the kernel's own note of what a buffer holds.
const HEADROOM_BYTES: u64 = 524;
/// The same of what describes a buffer.
const DESCRIPTOR_BYTES: u64 = 256;
/// Payload of the largest buffer: an IP packet with room for headers.
const LARGEST_BUFFER_BYTES: u64 = 65_343;
/// The largest window that an opening segment can offer, which has no scale.
const OPENING_WINDOW_BYTES: u64 = 65_535;
/// A receiver's window opens by so many segments for each that arrives.
const OPENED_SEGMENTS: u64 = 2;
/// Memory is granted for no window smaller than this.
const LEAST_WINDOW: u32 = 10;
/// For so many windows memory is granted.
const WINDOWS: u64 = 2;
/// The same if the congestion control paces itself: BBR asks for it.
const WINDOWS_IF_PACED: u64 = 3;

/// What is sent and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// Segments.
    pub segments: u32,
    /// Buffers that they are in.
    pub buffers: u32,
    /// The next segment to be sent.
    pub next: u64,
}

/// The send buffer of a connection.
#[derive(Debug)]
pub struct SendBuffer {
    mss_bytes: u64,
    /// The receiver's window when it is open.
    receive_window_bytes: u64,
    /// Windows for which memory is granted.
    windows: u64,
    /// The largest window for which memory was granted.
    granted_window: u32,
    /// Memory granted.
    granted_bytes: u64,
    /// With more segments in memory, no third of it is free, however few buffers they are in.
    most_segments: u64,
    /// Segments left in each buffer that is not sent yet.
    unsent: VecDeque<u32>,
    /// Segments written so far.
    written: u64,
    /// The application waits for room.
    waits: bool,
}

impl SendBuffer {
    /// An empty one, of a congestion control that paces itself or not.
    pub fn new(tcp: &TcpPlan, paced: bool) -> SendBuffer {
        let receive_window_bytes = tcp.receive_window_bytes.unwrap_or(u64::MAX);
        SendBuffer::of(u64::from(tcp.mss_bytes), receive_window_bytes, paced)
    }

    fn of(mss_bytes: u64, receive_window_bytes: u64, paced: bool) -> SendBuffer {
        let mut buffer = SendBuffer {
            mss_bytes,
            receive_window_bytes,
            windows: if paced { WINDOWS_IF_PACED } else { WINDOWS },
            granted_window: 0,
            granted_bytes: 0,
            most_segments: 0,
            unsent: VecDeque::new(),
            written: 0,
            waits: false,
        };
        buffer.grant(LEAST_WINDOW);
        buffer
    }

    /// Segments written so far.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether the application waits for room.
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Segments left in the first buffer to be sent.
    #[inline]
    pub fn first(&self) -> u32 {
        self.unsent.front().copied().unwrap_or(0)
    }

    /// Whether the first buffer goes into so much `room` and is complete, so that waiting brings nothing: a single
    /// segment, or what has another buffer behind it.
    #[inline]
    pub fn goes_whole(&self, room: u32) -> bool {
        self.first() == 1 || (self.unsent.len() > 1 && self.first() <= room)
    }

    /// A segment leaves the first buffer.
    #[inline]
    pub fn take(&mut self) {
        if let Some(first) = self.unsent.front_mut() {
            *first -= 1;
            if *first == 0 {
                self.unsent.pop_front();
            }
        }
    }

    /// Grants memory for a window of so many segments, if that is more.
    #[inline]
    pub fn grant(&mut self, window: u32) {
        if window > self.granted_window {
            self.grant_more(window);
        }
    }

    fn grant_more(&mut self, window: u32) {
        let segment = (self.mss_bytes + HEADROOM_BYTES).next_power_of_two() + DESCRIPTOR_BYTES;
        let window = window.max(LEAST_WINDOW);
        self.granted_window = window;
        self.granted_bytes = self.windows * u64::from(window) * segment;
        self.most_segments = self.granted_bytes / self.mss_bytes * 2 / 3 + 1;
    }

    /// Whether the segments that are written and not acknowledged leave so little memory free that the application is
    /// not woken, however few buffers they are in.
    #[inline]
    pub fn is_full(&self, unacknowledged: u64) -> bool {
        self.written - unacknowledged > self.most_segments
    }

    /// Memory in use.
    fn used_bytes(&self, out: Outstanding) -> u64 {
        let segments = u64::from(out.segments) + (self.written - out.next);
        let buffers = u64::from(out.buffers) + self.unsent.len() as u64;
        segments * self.mss_bytes + buffers * OVERHEAD_BYTES
    }

    /// Whether a third of the memory is free: the application is woken.
    pub fn wakes(&self, out: Outstanding) -> bool {
        let used = self.used_bytes(out);
        used + used / 2 <= self.granted_bytes
    }

    /// The application writes what there is room for, up to segment `available`; `delivered` segments have opened the
    /// receiver's window. Of a buffer that is begun, the rest is filled in any case.
    pub fn write(&mut self, available: u64, delivered: u64, out: Outstanding) {
        let largest = self.largest(delivered);
        if let Some(last) = self.unsent.back_mut() {
            let room = u64::from(largest.saturating_sub(*last));
            let more = room.min(available.saturating_sub(self.written));
            *last += more as u32;
            self.written += more;
        }
        self.waits = false;
        while self.written < available {
            if self.used_bytes(out) >= self.granted_bytes {
                self.waits = true;
                return;
            }
            let segments = u64::from(largest).min(available - self.written);
            self.unsent.push_back(segments as u32);
            self.written += segments;
        }
    }

    /// The receiver's window when so many segments have opened it.
    #[inline]
    fn opened(&self, delivered: u64) -> u64 {
        let window = OPENING_WINDOW_BYTES + OPENED_SEGMENTS * delivered * self.mss_bytes;
        window.min(self.receive_window_bytes)
    }

    /// Whether each segment still opens the receiver's window, so that each ACK tells another one. A window without a
    /// limit is no window.
    #[inline]
    pub fn receiver_opens(&self, delivered: u64) -> bool {
        self.receive_window_bytes != u64::MAX && self.opened(delivered) < self.receive_window_bytes
    }

    /// Segments of a full buffer: no more than half of the receiver's window.
    fn largest(&self, delivered: u64) -> u32 {
        let bytes = (self.opened(delivered) / 2).min(LARGEST_BUFFER_BYTES);
        (bytes / self.mss_bytes).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outstanding(segments: u32, buffers: u32, next: u64) -> Outstanding {
        Outstanding {
            segments,
            buffers,
            next,
        }
    }

    fn sent(buffer: &mut SendBuffer, segments: u32) {
        (0..segments).for_each(|_| buffer.take());
    }

    /// A connection's first writes, as the kernel's module printed them (100 Mb/s, 200 ms).
    #[test]
    fn writes_as_linux_does() {
        let mut buffer = SendBuffer::of(1448, u64::MAX, false);
        buffer.write(u64::MAX, 0, outstanding(0, 0, 0));
        assert_eq!((buffer.granted_bytes, buffer.written()), (46_080, 44));
        assert_eq!(buffer.unsent, [22, 22]);
        sent(&mut buffer, 24);
        let out = outstanding(21, 11, 24);
        assert!(!buffer.wakes(out), "20 segments are left");
        sent(&mut buffer, 20);
        let out = outstanding(20, 10, 44);
        assert_eq!(buffer.used_bytes(out), 36_640);
        assert!(!buffer.wakes(out));
        buffer.grant(22);
        assert!(buffer.granted_bytes == 101_376 && buffer.wakes(out));
        buffer.write(u64::MAX, 12, out);
        assert_eq!(buffer.unsent, [34, 34]);
        assert!(buffer.waits());
    }

    /// What is asked first, and cheaper, never keeps an application asleep that would be woken.
    #[test]
    fn who_would_be_woken_is_not_full() {
        for mss_bytes in [1, 536, 1448, 8948] {
            for window in (10..2000).step_by(7) {
                let mut buffer = SendBuffer::of(mss_bytes, u64::MAX, false);
                buffer.grant(window);
                let bound = buffer.most_segments;
                for segments in bound.saturating_sub(3)..bound + 3 {
                    buffer.written = segments;
                    let out = outstanding(segments as u32, 0, segments);
                    assert!(!(buffer.is_full(0) && buffer.wakes(out)));
                }
                buffer.written = 2 * bound;
                assert!(buffer.is_full(0));
            }
        }
    }

    /// A small application's writes fill the buffer that is begun.
    #[test]
    fn writes_of_one_segment_share_a_buffer() {
        let mut buffer = SendBuffer::of(1448, u64::MAX, false);
        for available in 1..=30 {
            buffer.write(available, 0, outstanding(0, 0, 0));
        }
        assert_eq!(buffer.unsent, [22, 8]);
        assert!(!buffer.waits() && !buffer.goes_whole(7) && buffer.goes_whole(22));
    }

    /// What is left of a buffer goes by itself.
    #[test]
    fn a_single_segment_goes() {
        let mut buffer = SendBuffer::of(1448, u64::MAX, false);
        buffer.write(23, 0, outstanding(0, 0, 0));
        sent(&mut buffer, 22);
        assert_eq!(buffer.first(), 1);
        assert!(buffer.goes_whole(1));
    }

    /// The kernel's window came to 8 MiB with segment 2874 (it was looked at there at two rates).
    #[test]
    fn a_receive_window_opens_by_two_segments_for_each() {
        let buffer = SendBuffer::of(1448, 8 << 20, false);
        assert!(buffer.receiver_opens(2873) && !buffer.receiver_opens(2874));
        assert!(!SendBuffer::of(1448, u64::MAX, false).receiver_opens(0));
    }

    /// A small receive window makes small buffers.
    #[test]
    fn a_buffer_is_half_of_the_receive_window_at_most() {
        let mut buffer = SendBuffer::of(1448, 14_480, false);
        buffer.write(12, 1000, outstanding(0, 0, 0));
        assert_eq!(buffer.unsent, [5, 5, 2]);
    }
}
