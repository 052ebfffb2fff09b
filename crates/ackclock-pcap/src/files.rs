//! The segments of several files in one order of time, with what each file held besides.
//!
//! A file keeps its own order, even where its times go back: what overtook what is told by order, not by a clock. Of
//! each file one segment is known ahead; so memory does not grow with the files, of which only some are open at once.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use crate::error::Unreadable;
use crate::framing::{Interface, Records};
use crate::packet::{self, Checksum, Segment, Skipped};
use crate::source::{Source, STANDARD_INPUT};
use places::Places;

mod places;

/// Files beyond these are closed until their time comes: a decompressor may take 128 MiB.
const MOST_OPEN: usize = 4;

/// What was found in one file, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of any kind.
    pub packets: u64,
    /// TCP segments among them, with those seen twice.
    pub segments: u64,
    /// Packets of link types that are not known here.
    pub unknown_link: u64,
    /// Frames without IP.
    pub not_ip: u64,
    /// IP packets without TCP.
    pub not_tcp: u64,
    /// Fragments without the ports.
    pub later_fragments: u64,
    /// Packets of which too little was captured.
    pub cut: u64,
    /// Packets whose headers contradict themselves.
    pub malformed: u64,
    /// Segments with a wrong checksum. They are given.
    pub bad_checksums: u64,
    /// Segments whose checksum the network card was to complete.
    pub offloaded_checksums: u64,
    /// Segments larger than any frame.
    pub super_segments: u64,
    /// Segments that were seen before, from another place of the host.
    pub seen_before: u64,
    /// Packets without a time.
    pub without_time: u64,
    /// Packets with an earlier time than the one before them.
    pub back_in_time: u64,
}

/// One of the files.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    number: u32,
    records: Option<Records<Source>>,
    /// The segment that is known ahead or was read last, and whether it is the former.
    segment: Segment,
    is_ahead: bool,
    waiting: bool,
    places: Places,
    previous_ns: i64,
    counts: Counts,
    interfaces: Vec<Interface>,
    reason: Option<Unreadable>,
}

impl File {
    fn open(path: &Path, number: u32) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            number,
            records: None,
            segment: Segment::default(),
            is_ahead: false,
            waiting: false,
            places: Places::default(),
            previous_ns: i64::MIN,
            counts: Counts::default(),
            interfaces: Vec::new(),
            reason: None,
        };
        match Source::open(path).and_then(Records::new) {
            Ok(records) => file.records = Some(records),
            Err(reason) => file.reason = Some(reason),
        }
        file
    }

    /// Its path, or `-`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was found in it so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Its interfaces, as far as they are described so far.
    pub fn interfaces(&self) -> &[Interface] {
        self.records
            .as_ref()
            .map_or(&self.interfaces, Records::interfaces)
    }

    /// Packets that the capturing host lost, if the file says so.
    pub fn dropped(&self) -> Option<u64> {
        let said =
            self.interfaces()
                .iter()
                .filter_map(|one| match (one.dropped, one.dropped_by_system) {
                    (None, None) => None,
                    (by_interface, by_system) => Some(
                        by_interface
                            .unwrap_or(0)
                            .saturating_add(by_system.unwrap_or(0)),
                    ),
                });
        said.reduce(u64::saturating_add)
    }

    /// Why it, or its rest, cannot be read.
    pub fn reason(&self) -> Option<&Unreadable> {
        self.reason.as_ref()
    }

    /// Nothing in it could be read.
    pub fn refused(&self) -> bool {
        self.reason.is_some() && self.counts.packets == self.counts.unknown_link
    }

    /// Closes the file until its time comes; standard input cannot begin anew.
    fn wait(&mut self) {
        if self.records.is_some() && self.path.as_os_str() != STANDARD_INPUT {
            self.records = None;
            self.waiting = true;
        }
    }

    /// When its next segment is due.
    fn due_ns(&self) -> Option<i64> {
        self.is_ahead
            .then(|| self.segment.time_ns.unwrap_or(self.previous_ns))
    }

    /// Gives the segment that is known ahead. A file that waited is open from now on.
    fn take(&mut self) -> Option<Segment> {
        if self.waiting {
            *self = Self::open(&self.path, self.number);
            self.look_ahead();
        }
        std::mem::take(&mut self.is_ahead).then_some(self.segment)
    }

    /// The segment that is known ahead, or else the next one.
    #[inline]
    fn next(&mut self) -> Option<&Segment> {
        let known = std::mem::take(&mut self.is_ahead);
        (known || self.read()).then_some(&self.segment)
    }

    /// Reads the segment behind the one that was given.
    fn look_ahead(&mut self) {
        self.is_ahead = self.read();
    }

    /// Reads the next segment, if there is one.
    #[inline]
    fn read(&mut self) -> bool {
        while let Some(records) = &mut self.records {
            let record = match records.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.close(None);
                    break;
                }
                Err(reason) => {
                    self.close(Some(reason));
                    break;
                }
            };
            self.counts.packets += 1;
            match record.time_ns {
                None => self.counts.without_time += 1,
                Some(time) => {
                    self.counts.back_in_time += u64::from(time < self.previous_ns);
                    self.previous_ns = time;
                }
            }
            let segment = &mut self.segment;
            match packet::decode_into(&record, segment) {
                Ok(()) => {
                    segment.file = self.number;
                    // Only such captures can have a packet at two places.
                    if segment.outbound.is_some() || records.interfaces().len() > 1 {
                        segment.seen_before = self.places.seen_before(segment);
                    }
                    self.counts.take_in(segment);
                    return true;
                }
                Err(skipped) => self.counts.pass_over(skipped),
            }
        }
        false
    }

    #[cold]
    fn close(&mut self, reason: Option<Unreadable>) {
        let Some(records) = self.records.take() else {
            return;
        };
        self.interfaces = records.interfaces().to_vec();
        let unknown = self
            .interfaces
            .iter()
            .find(|interface| !packet::knows(interface.link));
        self.reason = match unknown {
            Some(interface)
                if self.counts.unknown_link == self.counts.packets && self.counts.packets > 0 =>
            {
                Some(Unreadable::LinkType(interface.link))
            }
            _ => reason,
        };
    }
}

impl Counts {
    #[inline]
    fn take_in(&mut self, segment: &Segment) {
        self.segments += 1;
        let usual = matches!(segment.checksum, Checksum::Unknown | Checksum::Good);
        if !usual || segment.super_segment || segment.seen_before {
            self.take_in_unusual(segment);
        }
    }

    /// Apart, as all of these counters together would be read as one vector, just after its parts were written.
    #[cold]
    fn take_in_unusual(&mut self, segment: &Segment) {
        self.bad_checksums += u64::from(segment.checksum == Checksum::Bad);
        self.offloaded_checksums += u64::from(segment.checksum == Checksum::Offloaded);
        self.super_segments += u64::from(segment.super_segment);
        self.seen_before += u64::from(segment.seen_before);
    }

    fn pass_over(&mut self, skipped: Skipped) {
        *match skipped {
            Skipped::LinkType => &mut self.unknown_link,
            Skipped::NotIp => &mut self.not_ip,
            Skipped::NotTcp => &mut self.not_tcp,
            Skipped::LaterFragment => &mut self.later_fragments,
            Skipped::Cut => &mut self.cut,
            Skipped::Malformed => &mut self.malformed,
        } += 1;
    }
}

/// The segments of all files, in the order of their times.
#[derive(Debug)]
pub struct Capture {
    files: Vec<File>,
    order: BinaryHeap<Reverse<(i64, usize)>>,
    /// The last segment of several files.
    merged: Option<Segment>,
}

impl Capture {
    /// Opens files; `-` is standard input. A file that cannot be read has its [`File::reason`].
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Self {
        let mut files = Vec::with_capacity(paths.len());
        let mut order = BinaryHeap::with_capacity(paths.len());
        for (number, path) in paths.iter().enumerate() {
            let mut file = File::open(path.as_ref(), number as u32);
            file.look_ahead();
            if let Some(due_ns) = file.due_ns() {
                order.push(Reverse((due_ns, number)));
            }
            if number >= MOST_OPEN {
                file.wait();
            }
            files.push(file);
        }
        Self {
            files,
            order,
            merged: None,
        }
    }

    /// The files, in the order in which they were named.
    pub fn files(&self) -> &[File] {
        &self.files
    }
}

impl Iterator for Capture {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        self.next_segment().copied()
    }
}

impl Capture {
    /// The next segment where it was read: copied only if somebody keeps it.
    #[inline]
    pub fn next_segment(&mut self) -> Option<&Segment> {
        if self.files.len() == 1 {
            return self.files[0].next();
        }
        self.merged = self.next_of_several();
        self.merged.as_ref()
    }

    fn next_of_several(&mut self) -> Option<Segment> {
        loop {
            let mut first = self.order.peek_mut()?;
            let Reverse((_, number)) = *first;
            let file = &mut self.files[number];
            let segment = file.take();
            file.look_ahead();
            match file.due_ns() {
                Some(due_ns) => *first = Reverse((due_ns, number)),
                None => {
                    PeekMut::pop(first);
                }
            }
            if segment.is_some() {
                return segment;
            }
        }
    }
}

#[cfg(test)]
mod tests;
