//! Messages: writes of any size, and the segments that TCP makes of them.
//!
//! A segment is as long as what is unsent when it leaves, up to the MSS; it keeps that length. Nagle's algorithm holds
//! a segment that is not full back as long as something is outstanding (RFC 896, RFC 9293 section 3.7.4), here as Linux
//! has it, by G. Minshall's modification: as long as a segment that was not full is outstanding
//! (draft-minshall-nagle-01), so the rest of a large write does not wait for its full segments. Closing ends the wait.
//!
//! ```text
//!   written   aaaa bbbb cc                     each a write
//!   sent      aaaa      ────▶  bbbbcc          what was held back leaves as one segment
//!   ACK            ◀────
//! ```

use std::collections::VecDeque;

use ackclock_core::Time;
use ackclock_traffic::Writes;

/// The messages of an application, and their segments.
#[derive(Clone, Debug)]
pub struct Messages {
    writes: Writes,
    mss_bytes: u64,
    /// Bytes of all writes; `u64::MAX` if endless.
    total_bytes: u64,
    /// Writes so far, and their bytes.
    written: u64,
    written_bytes: u64,
    /// True once the application has closed.
    closed: bool,
    /// First segment behind the last one sent that was not full.
    small_end: u64,
    /// Segments sent.
    sent: SentLengths,
}

/// Lengths of sent segments, as the sums up to their ends.
#[derive(Clone, Debug, Default)]
struct SentLengths {
    /// The first segment of which the length is kept, and the bytes before it.
    first: u64,
    first_byte: u64,
    ends: VecDeque<u64>,
}

impl Messages {
    pub fn new(writes: Writes, mss_bytes: u64, size_bytes: Option<u64>) -> Messages {
        Messages {
            writes,
            mss_bytes,
            total_bytes: size_bytes.unwrap_or(u64::MAX),
            written: 0,
            written_bytes: 0,
            closed: false,
            small_end: 0,
            sent: SentLengths::default(),
        }
    }

    /// Append the writes whose time was before `open` since the connection's opening: they have joined what waits.
    pub fn write_overdue(&mut self, open: Time) {
        let overdue = self.writes.overdue(open);
        if overdue > self.written {
            self.written = overdue;
            self.written_bytes = self.bytes_of(overdue);
        }
    }

    /// Append one write that is due at `open`; returns whether there was one.
    pub fn write_due(&mut self, open: Time) -> bool {
        let is_due = !self.has_written_all() && self.writes.due(open) > self.written;
        if is_due {
            self.written += 1;
            self.written_bytes = self.bytes_of(self.written);
        }
        is_due
    }

    /// End the application with the writes up to `open`.
    pub fn stop(&mut self, open: Option<Time>) {
        let due = open.map_or(0, |open| self.writes.due(open));
        self.total_bytes = self.bytes_of(due.max(self.written));
        self.written_bytes = self.total_bytes;
    }

    fn bytes_of(&self, writes: u64) -> u64 {
        let bytes = writes.saturating_mul(self.writes.size_bytes);
        bytes.min(self.total_bytes)
    }

    fn has_written_all(&self) -> bool {
        self.written_bytes >= self.total_bytes
    }

    /// Close if all is written. Returns the segments of all data, the first time.
    pub fn close(&mut self) -> Option<u64> {
        if self.closed || !self.has_written_all() {
            return None;
        }
        self.closed = true;
        Some(self.segments(self.written_bytes))
    }

    /// Bytes that are written and not sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.written_bytes - self.sent.bytes()
    }

    /// Time of the next write since the connection's opening; none if all are done.
    pub fn next_write(&self) -> Option<Time> {
        (!self.has_written_all()).then(|| self.writes.time_of(self.written))
    }

    /// Segments of the data written by `open`, were nothing held back.
    pub fn data(&self, open: Time) -> u64 {
        let due = self.writes.due(open);
        self.segments(self.bytes_of(due).max(self.written_bytes))
    }

    /// Segments of the first `bytes`, those not sent yet as long as they can be.
    fn segments(&self, bytes: u64) -> u64 {
        self.sent.end() + (bytes - self.sent.bytes()).div_ceil(self.mss_bytes)
    }

    /// Segments that may have been sent when those before `acknowledged` are acknowledged: all that are full, and the
    /// last one unless Nagle's algorithm holds it back.
    pub fn released(&self, acknowledged: u64) -> u64 {
        let holds = !self.writes.nodelay && !self.closed && self.small_end > acknowledged;
        if holds {
            self.sent.end() + self.unsent_bytes() / self.mss_bytes
        } else {
            self.segments(self.written_bytes)
        }
    }

    /// Give the next segment its length; those before `acknowledged` are no longer needed.
    pub fn send(&mut self, acknowledged: u64) {
        let bytes = self.unsent_bytes().min(self.mss_bytes);
        if bytes > 0 {
            self.sent.forget_before(acknowledged);
            self.sent.push(bytes);
            if bytes < self.mss_bytes {
                self.small_end = self.sent.end();
            }
        }
    }

    /// Take the length of a segment that another end has sent.
    pub fn learn(&mut self, segment: u64, bytes: u64) {
        if segment == self.sent.end() {
            self.sent.push(bytes);
            self.sent
                .forget_before(segment.saturating_sub(KEPT_SEGMENTS));
        }
    }

    /// Payload of a segment that was sent.
    pub fn payload_bytes(&self, segment: u64) -> u64 {
        self.sent.bytes_before(segment + 1) - self.sent.bytes_before(segment)
    }

    /// Payload of the first `segments` segments together.
    pub fn payload_before(&self, segments: u64) -> u64 {
        self.sent.bytes_before(segments)
    }
}

/// Segments whose lengths an onlooker keeps: more than a window and what the network delays.
const KEPT_SEGMENTS: u64 = 1 << 16;

impl SentLengths {
    fn end(&self) -> u64 {
        self.first + self.ends.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.ends.back().copied().unwrap_or(self.first_byte)
    }

    fn push(&mut self, bytes: u64) {
        self.ends.push_back(self.bytes() + bytes);
    }

    fn forget_before(&mut self, segment: u64) {
        while self.first < segment {
            let Some(end) = self.ends.pop_front() else {
                return;
            };
            (self.first, self.first_byte) = (self.first + 1, end);
        }
    }

    fn bytes_before(&self, segment: u64) -> u64 {
        match segment.checked_sub(self.first + 1) {
            None => self.first_byte,
            Some(place) => self
                .ends
                .get(place as usize)
                .copied()
                .unwrap_or(self.bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Time {
        Time::from_milliseconds(milliseconds)
    }

    fn messages(size_bytes: u64, count: u64, nodelay: bool) -> Messages {
        let writes = Writes {
            size_bytes,
            count,
            every: ms(10),
            nodelay,
        };
        Messages::new(writes, 1000, None)
    }

    /// Send what is released, and return the lengths.
    fn send(messages: &mut Messages, acknowledged: u64) -> Vec<u64> {
        let first = messages.sent.end();
        (first..messages.released(acknowledged))
            .map(|segment| {
                messages.send(acknowledged);
                messages.payload_bytes(segment)
            })
            .collect()
    }

    /// Write what is due, sending after each write; returns the lengths.
    fn write(messages: &mut Messages, open: Time, acknowledged: u64) -> Vec<u64> {
        let mut lengths = Vec::new();
        messages.write_overdue(open);
        while messages.write_due(open) {
            lengths.extend(send(messages, acknowledged));
        }
        lengths
    }

    #[test]
    fn small_writes_join_until_the_acknowledgement() {
        let mut held = messages(100, 3, false);
        assert_eq!(write(&mut held, ms(0), 0), [100]);
        assert!(write(&mut held, ms(10), 0).is_empty());
        assert_eq!(send(&mut held, 1), [500]);
        let mut direct = messages(100, 3, true);
        assert_eq!(write(&mut direct, ms(0), 0), [100, 100, 100]);
        assert_eq!(write(&mut direct, ms(30), 0), [700, 100, 100]);
    }

    /// Minshall's modification: RFC 896 would hold the rest until the full segments are acknowledged.
    #[test]
    fn the_rest_of_a_large_write_does_not_wait_for_full_segments() {
        let mut large = messages(2500, 2, false);
        assert_eq!(write(&mut large, ms(0), 0), [1000, 1000, 500, 1000, 1000]);
        assert_eq!(send(&mut large, 3), [500]);
    }

    #[test]
    fn closing_releases_what_is_held_back() {
        let mut closing = messages(100, 2, false);
        assert_eq!(write(&mut closing, ms(0), 0), [100]);
        closing.stop(Some(ms(5)));
        assert_eq!((closing.close(), closing.close()), (Some(2), None));
        assert_eq!(send(&mut closing, 0), [100]);
    }

    #[test]
    fn sums_outlast_the_segments() {
        let mut sent = messages(100, 1, true);
        for message in 0..4 {
            write(&mut sent, ms(10 * message), message);
        }
        let sums: Vec<u64> = (3..6).map(|segment| sent.payload_before(segment)).collect();
        assert_eq!(sums, [300, 400, 400]);
    }
}
