//! One capture file, in the order of time.
//!
//! A receiver's clock runs ahead of the simulation's, so what it sends and receives is known before its time. It waits
//! until the simulation is there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_pcap::savefile;
use ackclock_units::Time;

use super::frame::Frame;
use crate::packet::Ecn;

/// The bytes of a file that have not been taken.
#[derive(Debug)]
pub struct File {
    bytes: Vec<u8>,
    /// Records whose time has not come, with the numbers in which they were written.
    waiting: BinaryHeap<Reverse<(Time, u64, Vec<u8>)>>,
    written: u64,
}

impl File {
    /// A file without frames.
    pub fn empty() -> File {
        File {
            bytes: savefile::header(),
            waiting: BinaryHeap::new(),
            written: 0,
        }
    }

    /// Writes down a frame that is seen at `time`, no earlier than `now`, with these ECN bits.
    pub fn write(&mut self, frame: &Frame, ecn: Ecn, time: Time, now: Time) {
        self.settle(now);
        if time <= now {
            return frame.append_to(&mut self.bytes, time, ecn);
        }
        let mut record = Vec::new();
        frame.append_to(&mut record, time, ecn);
        self.waiting.push(Reverse((time, self.written, record)));
        self.written += 1;
    }

    /// The bytes up to `now` since the last call; those of the first call begin with the file's header.
    pub fn take(&mut self, now: Time) -> Vec<u8> {
        self.settle(now);
        std::mem::take(&mut self.bytes)
    }

    /// Writes what has waited for its time.
    fn settle(&mut self, now: Time) {
        while let Some(Reverse((time, _, _))) = self.waiting.peek() {
            if *time > now {
                return;
            }
            if let Some(Reverse((_, _, record))) = self.waiting.pop() {
                self.bytes.extend(record);
            }
        }
    }
}
