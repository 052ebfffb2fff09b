//! The send buffer, as in Linux: a queue of buffers of many segments each, in memory that grows with the window.
//!
//! The application writes until the memory is full. Its bytes fill one buffer after the other, each of 64 KB or, as
//! long as the receiver's window is small, half of that. A batch never reaches beyond the buffer that it is cut from,
//! so the rest of a buffer is sent separately; a batch that is sent becomes a separate buffer until it is acknowledged,
//! and adjoining SACKed buffers merge. Each costs memory besides its payload.
//!
//! A full buffer at the head sends a batch while the application is writing, and its rest is filled up, until the
//! window is full. So a connection's first ten segments leave a full buffer behind:
//!
//! ```text
//!   written   22        2   2   2   2   2      then no memory is left: 32 segments
//!   sent          2   2   2   2   2            the window is full
//!   left      22  20  22 …          20  22
//! ```
//!
//! Memory for two windows (three with an algorithm that sets a pacing rate) is granted while the window is not used:
//! when an ACK leaves room in it, without data or while a batch is deferred, and between two batches of one ACK.
//! The application is woken when a third of the memory is free, so behind a hole that stays open the sender may run
//! dry.
//!
//! A buffer of a given size is granted that memory at once and never grows (`SO_SNDBUF`, of which Linux makes twice as
//! much). As always memory is checked when a buffer is begun: a write that finds the window open goes on beyond it.
//!
//! Source for Linux 6.1: a module that printed its queues at each ACK: memory, sizes, and when they change.

use std::collections::VecDeque;

use ackclock_plan::TcpPlan;

/// Memory of a buffer besides its payload.
const OVERHEAD_BYTES: u64 = 768;
/// Memory granted for a segment besides its MSS: headers, and the kernel's descriptor of a buffer.
const HEADROOM_BYTES: u64 = 524;
/// Memory of a buffer's descriptor.
const DESCRIPTOR_BYTES: u64 = 256;
/// Payload of the largest buffer: an IP packet with room for headers.
const LARGEST_BUFFER_BYTES: u64 = 65_343;
/// Smallest window for which memory is granted.
const MIN_WINDOW: u32 = 10;
/// Number of windows for which memory is granted.
const WINDOWS: u64 = 2;
/// Number of windows for an algorithm with its own pacing rate: BBR requests it.
const WINDOWS_IF_PACED: u64 = 3;

/// Segments that are sent and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Outstanding {
    /// Segments.
    pub segments: u32,
    /// Buffers that contain them.
    pub buffers: u32,
    /// The next segment to be sent.
    pub next: u64,
}

/// The send buffer of a connection.
#[derive(Debug)]
pub struct SendBuffer {
    mss_bytes: u64,
    /// Segments of a full buffer.
    full_segments: u32,
    /// The largest window that the receiver has advertised, in segments.
    max_window: u64,
    /// Windows for which memory is granted.
    windows: u64,
    /// The largest window for which memory was granted.
    granted_window: u32,
    /// Memory granted.
    granted_bytes: u64,
    /// Number of segments above which less than a third of the memory is free, however few buffers they are in.
    max_segments: u64,
    /// Segments left in each buffer that is not sent yet.
    unsent: VecDeque<u32>,
    /// Segments written so far.
    pub written: u64,
    /// The application waits for room.
    pub is_waiting: bool,
    /// The application has been woken since.
    pub woken: bool,
    /// The application has written all and closed.
    closed: bool,
}

impl SendBuffer {
    /// An empty buffer; `paced`: the congestion control algorithm sets a pacing rate.
    pub fn new(tcp: &TcpPlan, paced: bool) -> SendBuffer {
        let mut buffer = SendBuffer::of(u64::from(tcp.mss_bytes), paced);
        if let Some(bytes) = tcp.send_buffer_bytes {
            buffer.granted_window = u32::MAX;
            buffer.set_memory(bytes);
        }
        buffer
    }

    fn of(mss_bytes: u64, paced: bool) -> SendBuffer {
        let mut buffer = SendBuffer {
            mss_bytes,
            full_segments: 1,
            max_window: 0,
            windows: if paced { WINDOWS_IF_PACED } else { WINDOWS },
            granted_window: 0,
            granted_bytes: 0,
            max_segments: 0,
            unsent: VecDeque::new(),
            written: 0,
            is_waiting: false,
            woken: false,
            closed: false,
        };
        buffer.grant(MIN_WINDOW);
        buffer
    }

    /// Take a window that the receiver advertises, in segments: a buffer has no more than half of the largest.
    #[inline]
    pub fn observe_window(&mut self, window: u64) {
        if window > self.max_window {
            self.max_window = window;
            let most = (LARGEST_BUFFER_BYTES / self.mss_bytes).max(1);
            self.full_segments = (window / 2).clamp(1, most) as u32;
        }
    }

    /// Segments left in the first buffer to be sent.
    #[inline]
    pub fn first(&self) -> u32 {
        self.unsent.front().copied().unwrap_or(0)
    }

    /// True if the first buffer fits into `room` and is complete, so that waiting adds nothing: a single
    /// segment, what has another buffer behind it, or the end.
    #[inline]
    pub fn is_complete_within(&self, room: u32) -> bool {
        self.first() == 1 || ((self.unsent.len() > 1 || self.closed) && self.first() <= room)
    }

    /// True if the application has written all `segments` and is to close.
    #[inline]
    pub fn ends(&self, segments: u64) -> bool {
        self.written == segments && !self.closed
    }

    /// Close the application's side. Returns whether the FIN goes with the last segment; if that is sent, the FIN is a
    /// separate one.
    pub fn close(&mut self) -> bool {
        self.closed = true;
        let goes_with_data = !self.unsent.is_empty();
        if !goes_with_data {
            self.unsent.push_back(1);
            self.written += 1;
        }
        goes_with_data
    }

    /// True if only a single segment with the FIN is left.
    #[inline]
    pub fn has_fin_left(&self) -> bool {
        self.closed && self.unsent.len() == 1 && self.first() == 1
    }

    /// Remove a segment from the first buffer.
    #[inline]
    pub fn take(&mut self) {
        if let Some(first) = self.unsent.front_mut() {
            *first -= 1;
            if *first == 0 {
                self.unsent.pop_front();
            }
        }
    }

    /// Grant memory for a window of `window` segments, if that is more.
    #[inline]
    pub fn grant(&mut self, window: u32) {
        if window > self.granted_window {
            self.grant_more(window);
        }
    }

    fn grant_more(&mut self, window: u32) {
        let segment = (self.mss_bytes + HEADROOM_BYTES).next_power_of_two() + DESCRIPTOR_BYTES;
        let window = window.max(MIN_WINDOW);
        self.granted_window = window;
        self.set_memory(self.windows * u64::from(window) * segment);
    }

    fn set_memory(&mut self, bytes: u64) {
        self.granted_bytes = bytes;
        self.max_segments = bytes / self.mss_bytes * 2 / 3 + 1;
    }

    /// True if the segments that are written and not acknowledged leave so little memory free that the application is
    /// not woken, however few buffers they are in.
    #[inline]
    pub fn is_full(&self, unacknowledged: u64) -> bool {
        self.written - unacknowledged > self.max_segments
    }

    /// Memory in use.
    fn used_bytes(&self, out: Outstanding) -> u64 {
        let segments = u64::from(out.segments) + (self.written - out.next);
        let buffers = u64::from(out.buffers) + self.unsent.len() as u64;
        segments * self.mss_bytes + buffers * OVERHEAD_BYTES
    }

    /// Wake the application if a third of the memory is free; returns whether it is awake.
    pub fn wakes(&mut self, out: Outstanding) -> bool {
        let used = self.used_bytes(out);
        self.woken |= used + used / 2 <= self.granted_bytes;
        self.woken
    }

    /// Write up to segment `available`: the application fills the last buffer, whatever the memory,
    /// or begins another if there is room, and waits if there is none. Returns whether anything was written.
    pub fn fill(&mut self, available: u64, out: Outstanding) -> bool {
        let largest = self.full_segments;
        (self.is_waiting, self.woken) = (false, false);
        let left = available.saturating_sub(self.written);
        if left == 0 {
            return false;
        }
        let begun = self.unsent.back().is_some_and(|&last| last < largest);
        if !begun {
            if self.used_bytes(out) >= self.granted_bytes {
                self.is_waiting = true;
                return false;
            }
            self.unsent.push_back(0);
        }
        if let Some(last) = self.unsent.back_mut() {
            let more = u64::from(largest - *last).min(left);
            *last += more as u32;
            self.written += more;
        }
        true
    }

    /// True if the only buffer is full: while it is written, a batch of it is sent without waiting for more.
    pub fn pushes(&self) -> bool {
        self.unsent.len() == 1 && self.first() >= self.full_segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Window of a SYN/ACK, which is not scaled, in segments of 1448 bytes.
    const OPENING_WINDOW: u64 = 45;

    fn opened(mss_bytes: u64, window: u64) -> SendBuffer {
        let mut buffer = SendBuffer::of(mss_bytes, false);
        buffer.observe_window(window);
        buffer
    }

    fn outstanding(segments: u32, buffers: u32, next: u64) -> Outstanding {
        Outstanding {
            segments,
            buffers,
            next,
        }
    }

    /// Write all that there is room for, and sends nothing meanwhile.
    fn write(buffer: &mut SendBuffer, available: u64, out: Outstanding) {
        while buffer.fill(available, out) {}
    }

    fn sent(buffer: &mut SendBuffer, segments: u32) {
        (0..segments).for_each(|_| buffer.take());
    }

    /// A connection's first writes with a window of ten segments, as a kernel's module printed them: ten in five
    /// buffers, and a full one.
    #[test]
    fn a_buffer_sent_while_it_is_written_is_refilled() {
        let mut buffer = opened(1448, OPENING_WINDOW);
        let mut next = 0;
        let out = |next: u32| outstanding(next, next / 2, u64::from(next));
        while buffer.fill(u64::MAX, out(next)) {
            if buffer.pushes() && next < 10 {
                sent(&mut buffer, 2);
                next += 2;
            }
        }
        assert_eq!((buffer.written, buffer.used_bytes(out(10))), (32, 50_944));
        assert_eq!(buffer.unsent, [22]);
        assert!(buffer.is_waiting && buffer.pushes());
    }

    /// A buffer behind another waits for its turn, and so does one that is not full.
    #[test]
    fn only_a_full_buffer_at_the_head_pushes() {
        let mut buffer = opened(1448, OPENING_WINDOW);
        assert!(!buffer.pushes());
        assert!(buffer.fill(21, outstanding(0, 0, 0)) && !buffer.pushes());
        assert!(buffer.fill(22, outstanding(0, 0, 0)) && buffer.pushes());
        assert!(buffer.fill(44, outstanding(0, 0, 0)) && !buffer.pushes());
    }

    /// Memory and sizes as the kernel's module printed them (100 Mb/s, 200 ms), where nothing is sent meanwhile.
    #[test]
    fn writes_as_linux_does() {
        let mut buffer = opened(1448, OPENING_WINDOW);
        write(&mut buffer, u64::MAX, outstanding(0, 0, 0));
        assert_eq!((buffer.granted_bytes, buffer.written), (46_080, 44));
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
        buffer.observe_window(OPENING_WINDOW + 24);
        write(&mut buffer, u64::MAX, out);
        assert_eq!(buffer.unsent, [34, 34]);
        assert!(buffer.is_waiting);
    }

    /// The cheaper check never keeps an application asleep that would be woken.
    #[test]
    fn a_buffer_that_would_wake_the_application_is_not_full() {
        for mss_bytes in [1, 536, 1448, 8948] {
            for window in (10..2000).step_by(7) {
                let mut buffer = SendBuffer::of(mss_bytes, false);
                buffer.grant(window);
                let bound = buffer.max_segments;
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
        let mut buffer = opened(1448, OPENING_WINDOW);
        for available in 1..=30 {
            write(&mut buffer, available, outstanding(0, 0, 0));
        }
        assert_eq!(buffer.unsent, [22, 8]);
        assert!(
            !buffer.is_waiting && !buffer.is_complete_within(7) && buffer.is_complete_within(22)
        );
    }

    /// The rest of a buffer is sent separately.
    #[test]
    fn a_single_segment_is_sent_immediately() {
        let mut buffer = opened(1448, OPENING_WINDOW);
        write(&mut buffer, 23, outstanding(0, 0, 0));
        sent(&mut buffer, 22);
        assert_eq!(buffer.first(), 1);
        assert!(buffer.is_complete_within(1));
    }

    /// A small receive window makes small buffers.
    #[test]
    fn a_buffer_is_limited_to_half_of_the_receive_window() {
        let mut buffer = opened(1448, 10);
        write(&mut buffer, 12, outstanding(0, 0, 0));
        assert_eq!(buffer.unsent, [5, 5, 2]);
    }
}
