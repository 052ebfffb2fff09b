//! Receive window, which the receiver advertises with each ACK. It opens as in Linux.
//!
//! It begins with the largest unscaled window, and each new segment opens it by two segments, up to the room of the
//! receive buffer. Every segment that opens it is acknowledged immediately (`quick.rs`). A slow start that doubles
//! its window from up to 64 KiB is not limited by that; Hybla's on a long path is, and so is a larger initial window.
//!
//! A buffer of a given size has its room from the start. One without limit grows (dynamic right-sizing: Fisk and Feng,
//! 2001): per round trip the receiver compares the bytes that it has read with the previous maximum, and if they exceed
//! it, makes room for twice as much, and for twice the relative growth:
//!
//! ```text
//!   room = (2 copied + 16 MSS) · (1 + 2 (copied − before) / before)
//! ```
//!
//! In slow start that is six times the bytes of a round trip, so nearly each segment opens the window; later it opens
//! with a round trip that exceeds all before.
//!
//! Source for Linux 6.1: windows in captures of a slow start at 1 Gb/s, 50 ms.
//!
//! The receiver measures the round trip with timestamps, from an ACK's timestamp to the arrival of the first segment
//! that echoes it: the minimum of those, but smoothed over eight while they grow (since 2025; before, smoothed in both
//! directions).
//!
//! Each ACK carries the window, in whole segments from the next one expected; the sender obeys the last. A segment that
//! arrives moves the right edge, wherever it belongs: one behind a hole lies within the window already (RFC 9293 section
//! 3.8.6).
//!
//! Deviations: the buffer of a given size grows in whole segments. The time from an ACK to the departure of its
//! response is that of the handshake, so a queue of ACKs is not measured. A segment counts as a full one, and windows
//! are multiples of it (Linux rounds them to the scale, or without one to segments). A window without limit opens by
//! two segments for each that arrives whatever the tuned buffer has room for: that only decides which ACKs are quick.
//! Without SACK segments out of order do not open it; Linux's buffer, too, has been opened to its room by then, so
//! that their ACKs are duplicates.

use ackclock_core::Time;
use ackclock_plan::{DelayedAck, TcpPlan, TIMESTAMPS_BYTES};

use crate::options::{timestamp, TIMESTAMP_TICK};
use crate::packet::MAX_WINDOW;

/// Initial window: the largest that the header can advertise without scaling (RFC 9293 section 3.1).
const FIRST_BYTES: u64 = 65_535;
/// Segments by which the window opens for one that arrives.
const OPENED_SEGMENTS: u64 = 2;
/// Initial room (half of `net.ipv4.tcp_rmem`'s default), less a segment.
const FIRST_ROOM_BYTES: u64 = 65_536;
/// Smallest number of segments in a round trip for which the buffer grows (`TCP_INIT_CWND`).
const FIRST_COPIED_SEGMENTS: u64 = 10;
/// Segments of room in addition to two round trips' worth.
const CUSHION_SEGMENTS: u64 = 16;
/// Memory of a segment besides its payload: headers and the kernel's descriptors.
const OVERHEAD_BYTES: u64 = 768;
/// Memory of a segment grows by so much, until half of it holds the payload.
const MEMORY_STEP_BYTES: u64 = 128;
/// Samples over which the round trip is smoothed.
const SMOOTHED: u64 = 8;

/// Advertised window and buffer of a receiver.
#[derive(Clone, Debug)]
pub struct Window {
    /// Window before the first segment arrives, and the room of the buffer, in segments.
    first_segments: u64,
    room_segments: u64,
    /// Payload of a full segment.
    segment_bytes: u64,
    offered_bytes: u64,
    room_bytes: u64,
    /// Bytes by which a segment opens it.
    step_bytes: u64,
    /// True if the buffer has grown since the last ACK.
    is_changed: bool,
    /// Tuning of the buffer, if its size is not fixed.
    tuning: Option<Tuning>,
}

/// Dynamic right-sizing: measures once per round trip how much has arrived.
#[derive(Clone, Debug)]
struct Tuning {
    /// Start and end of the round trip.
    began: Time,
    ends: Time,
    /// Round-trip time times [`SMOOTHED`]; zero before the first sample.
    round_trips: Time,
    /// Departure of the handshake packet to which the first segment responds.
    opening: Time,
    /// Time from an ACK's departure to that of the segment which responds to it, once known.
    return_time: Option<Time>,
    /// Segments sent before this time echo the same timestamp as the last sample's.
    next_echo: Time,
    /// The next segment expected when the round trip began.
    round_next: u64,
    /// Most bytes received in a round trip.
    copied_bytes: u64,
    /// Payload of a segment, and that including the timestamp option.
    payload_bytes: u64,
    whole_bytes: u64,
}

impl Window {
    /// A window before the connection is open. Except with Linux's ACKs, it is fully open from the start.
    pub fn new(tcp: &TcpPlan) -> Window {
        let payload = u64::from(tcp.mss_bytes);
        let segments = |bytes: u64| (bytes / payload).clamp(1, MAX_WINDOW);
        let mut window = Window::opening(tcp, payload);
        window.room_segments = tcp.receive_window_bytes.map_or(MAX_WINDOW, segments);
        window.first_segments = match tcp.delayed_ack {
            DelayedAck::Quick => segments(FIRST_BYTES),
            DelayedAck::On | DelayedAck::Off => MAX_WINDOW,
        };
        window
    }

    fn opening(tcp: &TcpPlan, payload: u64) -> Window {
        match (tcp.delayed_ack, tcp.receive_window_bytes) {
            (DelayedAck::Quick, None) => {
                let whole = payload + u64::from(u32::from(tcp.timestamps) * TIMESTAMPS_BYTES);
                Window::tuned(payload, whole)
            }
            (DelayedAck::Quick, Some(room)) => Window::given(payload, room),
            _ => Window::given(payload, 0),
        }
    }

    /// A window with fixed room.
    fn given(payload: u64, room: u64) -> Window {
        Window {
            first_segments: MAX_WINDOW,
            room_segments: MAX_WINDOW,
            segment_bytes: payload,
            offered_bytes: FIRST_BYTES,
            room_bytes: room,
            step_bytes: OPENED_SEGMENTS * payload,
            is_changed: false,
            tuning: None,
        }
    }

    /// A window with room that grows.
    fn tuned(payload: u64, whole: u64) -> Window {
        let first = FIRST_ROOM_BYTES.saturating_sub(whole).max(2 * whole);
        Window {
            first_segments: MAX_WINDOW,
            room_segments: MAX_WINDOW,
            segment_bytes: payload,
            offered_bytes: first,
            room_bytes: first,
            step_bytes: OPENED_SEGMENTS * whole,
            is_changed: false,
            tuning: Some(Tuning::new(payload, whole, first)),
        }
    }

    /// Window to advertise, in segments, when `arrived` segments have opened it.
    #[inline]
    pub fn advertised(&self, arrived: u64) -> u64 {
        let opened = self.first_segments + OPENED_SEGMENTS * arrived;
        opened.min(self.room_segments)
    }

    /// Segments for which there is room beside `unread_bytes`.
    pub fn room(&self, unread_bytes: u64) -> u64 {
        let unread = unread_bytes.div_ceil(self.segment_bytes);
        self.room_segments.saturating_sub(unread)
    }

    /// Record the departure of the handshake packet to which the first segment responds.
    pub fn on_opening(&mut self, now: Time) {
        if let Some(tuning) = &mut self.tuning {
            tuning.opening = now;
        }
    }

    /// Begin the first round trip of the established connection.
    pub fn on_opened(&mut self, now: Time) {
        if let Some(tuning) = &mut self.tuning {
            tuning.began = now;
        }
    }

    /// Handle a new segment; returns whether the buffer grows for it.
    #[inline]
    pub fn opens(&mut self) -> bool {
        let opens = self.offered_bytes < self.room_bytes;
        if opens {
            self.offered_bytes += self.step_bytes;
            self.is_changed = true;
        }
        opens
    }

    /// Record that the application has read all segments before `next`; the last to arrive was sent at `sent`.
    #[inline(always)]
    pub fn on_read(&mut self, next: u64, sent: Time, now: Time) {
        if let Some(tuning) = &mut self.tuning {
            if sent >= tuning.next_echo {
                tuning.sample(sent, now);
            }
            if now >= tuning.ends {
                let room = tuning.end_round(next, now);
                self.room_bytes = self.room_bytes.max(room);
            }
        }
    }

    /// Record the departure of an ACK; returns whether the buffer has grown since the one before.
    #[inline]
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }
}

impl Tuning {
    fn new(payload_bytes: u64, whole_bytes: u64, first_bytes: u64) -> Tuning {
        Tuning {
            began: Time::ZERO,
            ends: Time::NEVER,
            round_trips: Time::ZERO,
            opening: Time::ZERO,
            return_time: None,
            next_echo: Time::ZERO,
            round_next: 0,
            copied_bytes: (FIRST_COPIED_SEGMENTS * whole_bytes).min(first_bytes),
            payload_bytes,
            whole_bytes,
        }
    }

    /// Take a sample from a segment sent at `sent`, the first to echo its timestamp.
    fn sample(&mut self, sent: Time, now: Time) {
        let opening = self.opening;
        let return_time = *self.return_time.get_or_insert_with(|| sent.since(opening));
        let echoed = timestamp(sent.since(return_time));
        let ticks = timestamp(now).saturating_sub(echoed).max(1);
        let sample = Time::from_picoseconds(ticks * TIMESTAMP_TICK.picoseconds());
        let latched = Time::from_picoseconds(sample.picoseconds() * SMOOTHED);
        self.round_trips = if self.round_trips == Time::ZERO || latched < self.round_trips {
            latched
        } else {
            self.round_trips + sample - self.round_trip()
        };
        self.ends = self.began + self.round_trip();
        let next = Time::from_picoseconds((echoed + 1) * TIMESTAMP_TICK.picoseconds());
        self.next_echo = next + return_time;
    }

    fn round_trip(&self) -> Time {
        Time::from_picoseconds(self.round_trips.picoseconds() / SMOOTHED)
    }

    /// End a round trip; returns the room for it.
    #[cold]
    fn end_round(&mut self, next: u64, now: Time) -> u64 {
        let copied = (next - self.round_next) * self.payload_bytes;
        self.round_next = next;
        self.began = now;
        self.ends = now + self.round_trip();
        self.room(copied)
    }

    /// Room for a round trip of `copied_bytes`, if these are more than before.
    fn room(&mut self, copied_bytes: u64) -> u64 {
        if copied_bytes <= self.copied_bytes {
            return 0;
        }
        let whole = self.whole_bytes;
        let wanted = u128::from(2 * copied_bytes + CUSHION_SEGMENTS * whole);
        let more = u128::from(copied_bytes - self.copied_bytes);
        let wanted = wanted + 2 * (wanted * more / u128::from(self.copied_bytes));
        let segments = wanted / u128::from(whole);
        let room = segments * u128::from(half_of_memory(whole));
        self.copied_bytes = copied_bytes;
        u64::try_from(room).unwrap_or(u64::MAX)
    }
}

/// Part of the memory of a segment of `bytes` that counts as window.
fn half_of_memory(bytes: u64) -> u64 {
    let least = (2 * bytes).saturating_sub(bytes + OVERHEAD_BYTES);
    (bytes + OVERHEAD_BYTES + least.next_multiple_of(MEMORY_STEP_BYTES)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuned() -> Window {
        Window::tuned(1448, 1460)
    }

    /// A slow start at 1 Gb/s, 50 ms: the round trip that begins after `n` of them brings 10 · 2ⁿ segments, one each
    /// 12.1 µs, or as many as that rate allows. Returns the windows, in segments, that its ACKs advertised.
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
                    found.push(window.offered_bytes / 1448);
                }
            }
        }
        found
    }

    /// Comparison with the windows in a capture of a kernel's slow start (Reno, an endless queue; in steps of 8 KB).
    #[test]
    fn a_buffer_without_limit_grows_as_linuxs() {
        let told = [615, 1577, 2449, 4156, 6628, 8949];
        let kernels = [1114, 2631, 3909, 7089, 10_981, 15_620];
        let mut window = tuned();
        window.on_opening(Time::from_milliseconds(50));
        window.on_opened(Time::from_milliseconds(100));
        let found = slow_start(&mut window, &told);
        for (ours, theirs) in found.iter().zip(kernels) {
            let ratio = *ours as f64 / f64::from(theirs);
            assert!((ratio - 1.0).abs() < 0.08, "{found:?}");
        }
        assert_eq!(found.len(), kernels.len());
    }

    /// The kernel's window came to 8 MiB with segment 2874 (it was looked at there at two rates).
    #[test]
    fn a_buffer_of_a_given_size_opens_by_two_segments_for_each() {
        let mut window = Window::given(1448, 8 << 20);
        assert!((0..2874).all(|_| window.opens()));
        assert!(!window.opens());
        assert!(window.take_changed() && !window.take_changed());
    }

    #[test]
    fn half_of_a_segments_memory_holds_it() {
        assert_eq!([1460, 536, 8960].map(half_of_memory), [1498, 652, 8960]);
        assert!((1..20_000).all(|bytes| half_of_memory(bytes) >= bytes));
    }
}
