//! How the receive window opens, as Linux opens it.
//!
//! It begins with what fits a header without scaling, and each new segment opens it by two, up to what the receive buffer
//! has room for. Every segment that opens it is acknowledged at once (`quick.rs`). The growth is as fast as the fastest
//! slow start, so it holds no sender back, and the window itself is not enforced here.
//!
//! A buffer whose size is given has its room from the start. One without limit is made larger as it goes (dynamic
//! right-sizing: Fisk and Feng, 2001): once in a round trip the receiver looks at what it has read in it, and if that
//! is more than ever before, makes room for twice as much, and for twice the share by which it grew:
//!
//! ```text
//!   room = (2 copied + 16 MSS) · (1 + 2 (copied − before) / before)
//! ```
//!
//! In slow start that is six times what a round trip brings, so nearly each segment opens the window; later it opens
//! when the flow has a round trip that is better than all before.
//!
//! Seen of Linux 6.1: windows in captures of a slow start at 1 Gb/s, 50 ms.
//!
//! Deviations: the buffer of a given size grows in whole segments. A round trip is over with the first segment that was
//! sent in answer to what left when it began; Linux compares clocks of milliseconds, smoothed. What waits behind a hole
//! takes no room. A segment counts as a full one, and each window is told (Linux rounds it to the scale).

use ackclock_plan::{DelayedAck, TcpPlan, TIMESTAMPS_BYTES};
use ackclock_units::Time;

/// The window at the start: the most that the header says without scaling (RFC 9293 section 3.1).
const FIRST_BYTES: u64 = 65_535;
/// Segments by which the window opens for one that arrives.
const OPENED_SEGMENTS: u64 = 2;
/// What there is room for at first (half of `net.ipv4.tcp_rmem`'s default), but for a segment.
const FIRST_ROOM_BYTES: u64 = 65_536;
/// The least that a round trip has to bring, in segments, for the buffer to grow (`TCP_INIT_CWND`).
const FIRST_COPIED_SEGMENTS: u64 = 10;
/// Segments of room beside what two round trips bring.
const CUSHION_SEGMENTS: u64 = 16;
/// Memory of a segment beside its payload: headers, and the kernel's own notes.
const OVERHEAD_BYTES: u64 = 768;
/// Memory of a segment grows by so much, until half of it holds the payload.
const MEMORY_STEP_BYTES: u64 = 128;

/// The window that a receiver offers, and what it has room for.
#[derive(Clone, Debug)]
pub struct Window {
    offered_bytes: u64,
    room_bytes: u64,
    /// By which a segment opens it.
    step_bytes: u64,
    /// Whether it is another one than the last ACK told.
    is_news: bool,
    /// When a segment was sent that ends this round trip; never, if the buffer's size is given.
    round_ends: Time,
    /// From an ACK's departure to that of the segment which answers it, once that is known.
    way_back: Option<Time>,
    /// The next segment expected when the round trip began.
    round_next: u64,
    /// The most that a round trip has brought.
    copied_bytes: u64,
    /// The payload of a segment; what it is with the timestamps' option.
    segment_bytes: (u64, u64),
}

impl Window {
    /// Before the connection is open. But for receivers that acknowledge as Linux does, it is open from the start.
    pub fn new(tcp: &TcpPlan) -> Window {
        let payload = u64::from(tcp.mss_bytes);
        let whole = payload + u64::from(u32::from(tcp.timestamps) * TIMESTAMPS_BYTES);
        let is_linux = tcp.delayed_ack == DelayedAck::Quick;
        let is_tuned = is_linux && tcp.receive_window_bytes.is_none();
        let first = FIRST_ROOM_BYTES.saturating_sub(whole).max(2 * whole);
        let room = tcp.receive_window_bytes.filter(|_| is_linux);
        Window {
            offered_bytes: if is_tuned { first } else { FIRST_BYTES },
            room_bytes: room.unwrap_or(if is_tuned { first } else { 0 }),
            step_bytes: OPENED_SEGMENTS * if is_tuned { whole } else { payload },
            is_news: false,
            round_ends: if is_tuned { Time::ZERO } else { Time::NEVER },
            way_back: None,
            round_next: 0,
            copied_bytes: (FIRST_COPIED_SEGMENTS * whole).min(first),
            segment_bytes: (payload, whole),
        }
    }

    /// The last packet of the handshake leaves: the first segment answers it.
    pub fn on_opening(&mut self, now: Time) {
        if self.way_back.is_none() && !self.round_ends.is_never() {
            self.round_ends = now;
        }
    }

    /// A new segment arrived: whether it opens the window.
    #[inline]
    pub fn opens(&mut self) -> bool {
        let opens = self.offered_bytes < self.room_bytes;
        if opens {
            self.offered_bytes += self.step_bytes;
            self.is_news = true;
        }
        opens
    }

    /// The application has read what is before segment `next`; the last to arrive was sent at `sent`, now is `now`.
    #[inline]
    pub fn on_read(&mut self, next: u64, sent: Time, now: Time) {
        if sent >= self.round_ends {
            self.end_round(next, sent, now);
        }
    }

    #[cold]
    fn end_round(&mut self, next: u64, sent: Time, now: Time) {
        let way_back = match self.way_back {
            Some(way_back) => {
                self.resize((next - self.round_next) * self.segment_bytes.0);
                self.round_next = next;
                way_back
            }
            // The handshake's answer: the first round trip begins, with what it brought.
            None => sent.since(self.round_ends),
        };
        self.way_back = Some(way_back);
        self.round_ends = now + way_back;
    }

    /// A round trip brought so much: makes room, if it is more than before.
    fn resize(&mut self, copied_bytes: u64) {
        if copied_bytes <= self.copied_bytes {
            return;
        }
        let whole = self.segment_bytes.1;
        let wanted = u128::from(2 * copied_bytes + CUSHION_SEGMENTS * whole);
        let more = u128::from(copied_bytes - self.copied_bytes);
        let wanted = wanted + 2 * (wanted * more / u128::from(self.copied_bytes));
        let segments = wanted / u128::from(whole);
        let room = segments * u128::from(half_of_memory(whole));
        self.room_bytes = self.room_bytes.max(u64::try_from(room).unwrap_or(u64::MAX));
        self.copied_bytes = copied_bytes;
    }

    /// An ACK leaves: whether it tells another window than the one before.
    #[inline]
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }
}

/// What counts as window of the memory that a segment of so many bytes is given.
fn half_of_memory(bytes: u64) -> u64 {
    let least = (2 * bytes).saturating_sub(bytes + OVERHEAD_BYTES);
    (bytes + OVERHEAD_BYTES + least.next_multiple_of(MEMORY_STEP_BYTES)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned() -> Window {
        let payload = 1448;
        let whole = payload + 12;
        Window {
            offered_bytes: FIRST_ROOM_BYTES - whole,
            room_bytes: FIRST_ROOM_BYTES - whole,
            step_bytes: 2 * whole,
            is_news: false,
            round_ends: Time::ZERO,
            way_back: None,
            round_next: 0,
            copied_bytes: 10 * whole,
            segment_bytes: (payload, whole),
        }
    }

    /// A slow start at 1 Gb/s, 50 ms: the round trip that begins after `n` of them brings 10 · 2ⁿ segments, one each
    /// 12.1 µs, or as many as that rate allows. The windows, in segments, that its ACKs told.
    fn slow_start(window: &mut Window, told: &[u64]) -> Vec<u64> {
        let micros = Time::from_microseconds;
        let (mut next, mut found, mut last) = (0, vec![], Time::ZERO);
        for round in 0..11 {
            let begin = micros(100_000 + 50_000 * round);
            for segment in 0..(10 << round).min(4128) {
                last = (begin + Time::from_picoseconds(12_112_000 * segment)).max(last);
                next += 1;
                window.opens();
                window.on_read(next, last.since(micros(25_000)), last);
                if told.contains(&next) {
                    found.push(window.offered_bytes / window.segment_bytes.0);
                }
            }
        }
        found
    }

    /// Beside the windows in a capture of a kernel's slow start, which reads each 16 KB.
    #[test]
    fn a_buffer_without_limit_grows_as_linuxs() {
        let told = [615, 1577, 2449, 4156, 6628, 8949];
        let kernels = [1097, 2427, 3892, 7151, 11_184, 14_975];
        let mut window = tuned();
        window.on_opening(Time::from_microseconds(50_000));
        let found = slow_start(&mut window, &told);
        for (ours, theirs) in found.iter().zip(kernels) {
            let ratio = *ours as f64 / f64::from(theirs);
            assert!((ratio - 1.0).abs() < 0.12, "{found:?}");
        }
        assert_eq!(found.len(), kernels.len());
    }

    /// The kernel's window came to 8 MiB with segment 2874 (it was looked at there at two rates).
    #[test]
    fn a_buffer_of_a_given_size_opens_by_two_segments_for_each() {
        let mut window = Window {
            offered_bytes: FIRST_BYTES,
            room_bytes: 8 << 20,
            step_bytes: 2 * 1448,
            round_ends: Time::NEVER,
            ..tuned()
        };
        assert!((0..2874).all(|_| window.opens()));
        assert!(!window.opens());
        assert!(window.take_news() && !window.take_news());
    }

    #[test]
    fn half_of_a_segments_memory_holds_it() {
        assert_eq!([1460, 536, 8960].map(half_of_memory), [1498, 652, 8960]);
        assert!((1..20_000).all(|bytes| half_of_memory(bytes) >= bytes));
    }
}
