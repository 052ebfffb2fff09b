//! One capture file, in the order of time.
//!
//! A receiver's clock runs ahead of the simulation's, so records of what it sends and receives come early. They wait
//! until the simulation has reached their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_core::Time;
use ackclock_pcap::savefile;

use super::frame::Frame;
use crate::packet::Ecn;

/// The bytes of a file that have not been taken.
#[derive(Debug)]
pub struct File {
    bytes: Vec<u8>,
    /// Record whose time has not come, with the numbers by which they were written.
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

    /// Record a frame that passes at `time`, no earlier than `now`, with these ECN bits.
    pub fn write(&mut self, frame: &Frame, ecn: Ecn, time: Time, now: Time) {
        self.write_due(now);
        if time <= now {
            return frame.append_to(&mut self.bytes, time, ecn);
        }
        let mut record = Vec::new();
        frame.append_to(&mut record, time, ecn);
        self.waiting.push(Reverse((time, self.written, record)));
        self.written += 1;
    }

    /// Take the bytes up to `now` since the last call; the first ones begin with the file header.
    pub fn take(&mut self, now: Time) -> Vec<u8> {
        self.write_due(now);
        std::mem::take(&mut self.bytes)
    }

    /// Write the waiting records that are due.
    fn write_due(&mut self, now: Time) {
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
