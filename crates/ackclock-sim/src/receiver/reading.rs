//! The receive buffer and the window that it leaves, with an application that reads at once or slowly.
//!
//! Sources: RFC 9293 sections 3.8.6.2.2 (silly window syndrome at the receiver) and 3.8.6.1 (zero window); window updates
//! as in Linux, which sends one when reading has opened the window to twice what the last ACK left.
//!
//! Deviation: windows are whole segments, so each step of the right edge is a segment at least; RFC 9293 has half of the
//! buffer where that is less.

use ackclock_core::Time;
use ackclock_traffic::{Reads, SlowReader};

use super::{Receiver, Reply, State};

/// An application that reads slowly, and the window that it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    reads: Reads,
    /// First segment beyond the window that the last packet advertised.
    window_end: u64,
}

impl Reader {
    /// An application that has read nothing.
    pub fn new(reader: SlowReader) -> Reader {
        Reader {
            reads: Reads::new(reader),
            window_end: 0,
        }
    }
}

impl Receiver {
    /// Window for the next packet, in segments from the next one expected.
    #[inline]
    pub(super) fn advertise(&mut self) -> u64 {
        let opened = self.opened();
        if self.reader.is_none() {
            return opened;
        }
        self.advertise_room(opened)
    }

    #[cold]
    fn advertise_room(&mut self, opened: u64) -> u64 {
        let window = opened.min(self.room());
        let next = self.next;
        if let Some(reader) = &mut self.reader {
            reader.window_end = next + window;
        }
        window
    }

    /// Window to which the segments that have arrived have opened it: without SACK those in order, since an ACK that
    /// opens the window is no duplicate (RFC 5681 section 2).
    #[inline]
    fn opened(&self) -> u64 {
        let out_of_order = if self.sack { self.ranges.segments() } else { 0 };
        self.window.advertised(self.next + out_of_order)
    }

    /// Segments for which the buffer has room behind the next one expected.
    fn room(&self) -> u64 {
        self.window.room(self.unread_bytes())
    }

    /// Bytes in order that the application has not read.
    pub fn unread_bytes(&self) -> u64 {
        let reader = self.reader.as_ref();
        reader.map_or(0, |reader| self.delivered_bytes() - reader.reads.read_bytes)
    }

    /// True if the application has not read all that has arrived in order.
    pub(super) fn has_unread(&self) -> bool {
        self.unread_bytes() > 0
    }

    /// Let the application read what is due.
    #[cold]
    pub(super) fn read(&mut self, now: Time) {
        let arrived = self.delivered_bytes();
        let is_all = self.awaits_read();
        if let Some(reader) = &mut self.reader {
            reader.reads.read(arrived, is_all, now);
        }
        let is_all = self.awaits_read();
        if let Some(reader) = &self.reader {
            self.reads_at = reader.reads.due(arrived, is_all);
        }
        if self.acknowledges_read() {
            self.max_pending = 1;
        }
        self.set_timer(self.timer);
    }

    /// True if no more data can come before a read: all have, or the buffer is full.
    fn awaits_read(&self) -> bool {
        self.next >= self.workload.segments || self.room() == 0
    }

    /// Handle the time of a read: close after the last one, and report a window that has opened.
    #[cold]
    pub(super) fn on_read(&mut self, now: Time) -> Option<Reply> {
        self.read(now);
        self.note_end(now);
        if self.state == State::CloseWait && !self.has_unread() {
            return Some(self.close(now));
        }
        if self.pending > 0 && self.acknowledges_read() {
            return Some(self.acknowledge_rarely());
        }
        let end = self.reader.as_ref().map_or(0, |reader| reader.window_end);
        let left = end.saturating_sub(self.next);
        let window = self.opened().min(self.room());
        let is_open = matches!(self.state, State::Established | State::CloseWait);
        (is_open && window > left && window >= 2 * left).then(|| self.acknowledge_rarely())
    }

    /// Acknowledge what has arrived, for another reason than that a segment arrives.
    #[cold]
    #[inline(never)]
    pub(super) fn acknowledge_rarely(&mut self) -> Reply {
        self.acknowledge(None)
    }

    /// Handle the end of the data and the FIN: the application closes when it has read all.
    pub(super) fn on_end(&mut self, now: Time) -> Reply {
        if self.has_unread() {
            self.state = State::CloseWait;
            return self.acknowledge_rarely();
        }
        self.close(now)
    }
}
