//! The TCP segments and UDP datagrams of several files merged by time, with the packet counts of each file.
//!
//! A file keeps its own order, even where its timestamps go back: reordering is judged by order, not by a clock. One
//! packet of each file is prefetched, so memory does not grow with the files, of which only some are open at a time.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ReadError;
use crate::filter::Filter;
use crate::framing::{Interface, Records};
use crate::packet::{self, Checksum, Datagram, IcmpError, Segment, Skipped};
use crate::source::{Source, STANDARD_INPUT};
use duplicate_filter::DuplicateFilter;

mod duplicate_filter;

/// The maximum number of ICMP errors that are kept until the next segment; evidence needs no more.
const MAX_ICMP_ERRORS: usize = 4096;
/// The maximum number of open files: a decompressor may take 128 MiB.
const MAX_OPEN_FILES: usize = 4;

/// Packet counts of one file, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets of any kind.
    pub packets: u64,
    /// Packets that the filter rejects. They are counted nowhere else.
    pub filtered: u64,
    /// TCP segments, including duplicates.
    pub segments: u64,
    /// Packets of link types that are not known here.
    pub unknown_link: u64,
    /// Frames without IP.
    pub not_ip: u64,
    /// IP packets without TCP, UDP datagrams among them.
    pub not_tcp: u64,
    /// UDP datagrams, including duplicates.
    pub datagrams: u64,
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
    /// Segments and datagrams captured before on another interface or in the other direction.
    pub duplicate: u64,
    /// Packets without a time.
    pub without_time: u64,
    /// Packets with an earlier time than the one before them.
    pub out_of_order_timestamps: u64,
}

/// A packet of a transport protocol.
#[derive(Clone, Copy, Debug)]
pub enum Packet<'a> {
    /// A TCP segment.
    Segment(&'a Segment),
    /// A UDP datagram.
    Datagram(&'a Datagram),
}

/// The protocol of the last packet that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Protocol {
    #[default]
    Tcp,
    Udp,
}

/// One of the files.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    number: u32,
    filter: Arc<Filter>,
    records: Option<Records<Source>>,
    /// The prefetched packet, or else the last one that was read, is in one of these two.
    protocol: Protocol,
    segment: Segment,
    datagram: Datagram,
    is_prefetched: bool,
    waiting: bool,
    duplicate_filter: DuplicateFilter,
    previous_ns: i64,
    counts: Counts,
    /// ICMP errors that were read since they were last taken.
    icmp_errors: Vec<IcmpError>,
    interfaces: Vec<Interface>,
    reason: Option<ReadError>,
}

impl File {
    fn open(path: &Path, number: u32, filter: Arc<Filter>) -> Self {
        let mut file = Self {
            path: path.to_owned(),
            number,
            filter,
            records: None,
            protocol: Protocol::Tcp,
            segment: Segment::default(),
            datagram: Datagram::default(),
            is_prefetched: false,
            waiting: false,
            duplicate_filter: DuplicateFilter::default(),
            previous_ns: i64::MIN,
            counts: Counts::default(),
            icmp_errors: Vec::new(),
            interfaces: Vec::new(),
            reason: None,
        };
        match Source::open(path).and_then(Records::new) {
            Ok(records) => file.records = Some(records),
            Err(reason) => file.reason = Some(reason),
        }
        file
    }

    /// The path, or `-`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Return the packet counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Its interfaces, as far as they are described so far.
    pub fn interfaces(&self) -> &[Interface] {
        self.records
            .as_ref()
            .map_or(&self.interfaces, Records::interfaces)
    }

    /// Packets that the capturing host lost, if the file records it.
    pub fn dropped(&self) -> Option<u64> {
        let stored =
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
        stored.reduce(u64::saturating_add)
    }

    /// Return the reason why it, or the rest of it, cannot be read.
    pub fn reason(&self) -> Option<&ReadError> {
        self.reason.as_ref()
    }

    /// No packet could be read.
    pub fn is_unreadable(&self) -> bool {
        self.reason.is_some() && self.counts.packets == self.counts.unknown_link
    }

    /// Close the file until its first packet is due; standard input stays open, as it cannot be reopened.
    fn wait(&mut self) {
        if self.records.is_some() && self.path.as_os_str() != STANDARD_INPUT {
            self.records = None;
            self.icmp_errors.clear(); // they are read again
            self.waiting = true;
        }
    }

    /// Return the time of the prefetched packet.
    fn due_ns(&self) -> Option<i64> {
        self.is_prefetched
            .then(|| self.time_ns().unwrap_or(self.previous_ns))
    }

    /// Return the time of the last packet that was read.
    fn time_ns(&self) -> Option<i64> {
        match self.protocol {
            Protocol::Tcp => self.segment.time_ns,
            Protocol::Udp => self.datagram.time_ns,
        }
    }

    /// Return the last packet that was read.
    #[inline]
    fn packet(&self) -> Packet<'_> {
        match self.protocol {
            Protocol::Tcp => Packet::Segment(&self.segment),
            Protocol::Udp => Packet::Datagram(&self.datagram),
        }
    }

    /// Return the prefetched packet, or else the next one; reopen a file that was closed to wait.
    #[inline]
    fn next(&mut self) -> Option<Packet<'_>> {
        if self.waiting {
            *self = Self::open(&self.path, self.number, Arc::clone(&self.filter));
        }
        let known = std::mem::take(&mut self.is_prefetched);
        (known || self.read()).then(|| self.packet())
    }

    /// Read the next packet ahead.
    fn prefetch(&mut self) {
        self.is_prefetched = self.read();
    }

    /// Read the next packet; return false at the end.
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
                    self.counts.out_of_order_timestamps += u64::from(time < self.previous_ns);
                    self.previous_ns = time;
                }
            }
            if !self.filter.matches(&record) {
                self.counts.filtered += 1;
                continue;
            }
            let segment = &mut self.segment;
            match packet::decode_into(&record, segment) {
                Ok(()) => {
                    self.protocol = Protocol::Tcp;
                    segment.file = self.number;
                    // Only such captures can have a packet at two places.
                    if segment.outbound.is_some() || records.interfaces().len() > 1 {
                        segment.duplicate = self.duplicate_filter.is_duplicate(segment);
                    }
                    self.counts.count(segment);
                    return true;
                }
                Err(Skipped::Udp) => {
                    let datagram = &mut self.datagram;
                    if let Err(skipped) = packet::datagram_into(&record, datagram) {
                        self.counts.count_skipped(skipped);
                        continue;
                    }
                    self.protocol = Protocol::Udp;
                    datagram.file = self.number;
                    if datagram.outbound.is_some() || records.interfaces().len() > 1 {
                        datagram.duplicate = self.duplicate_filter.is_duplicate_datagram(datagram);
                        self.counts.duplicate += u64::from(datagram.duplicate);
                    }
                    self.counts.count_skipped(Skipped::Udp);
                    self.counts.datagrams += 1;
                    return true;
                }
                Err(skipped) => {
                    self.counts.count_skipped(skipped);
                    if skipped == Skipped::Icmp && self.icmp_errors.len() < MAX_ICMP_ERRORS {
                        self.icmp_errors.extend(packet::icmp_error(&record));
                    }
                }
            }
        }
        false
    }

    #[cold]
    fn close(&mut self, reason: Option<ReadError>) {
        let Some(records) = self.records.take() else {
            return;
        };
        self.interfaces = records.interfaces().to_vec();
        let unknown = self
            .interfaces
            .iter()
            .find(|interface| !packet::is_supported_link(interface.link));
        self.reason = match unknown {
            Some(interface)
                if self.counts.unknown_link == self.counts.packets && self.counts.packets > 0 =>
            {
                Some(ReadError::LinkType(interface.link))
            }
            _ => reason,
        };
    }
}

impl Counts {
    #[inline]
    fn count(&mut self, segment: &Segment) {
        self.segments += 1;
        let is_common = matches!(segment.checksum, Checksum::Unknown | Checksum::Good);
        if !is_common || segment.super_segment || segment.duplicate {
            self.count_rare(segment);
        }
    }

    /// Kept out of line: inlined, the compiler reads these counters as one vector just after their parts were written.
    #[cold]
    fn count_rare(&mut self, segment: &Segment) {
        self.bad_checksums += u64::from(segment.checksum == Checksum::Bad);
        self.offloaded_checksums += u64::from(segment.checksum == Checksum::Offloaded);
        self.super_segments += u64::from(segment.super_segment);
        self.duplicate += u64::from(segment.duplicate);
    }

    fn count_skipped(&mut self, skipped: Skipped) {
        *match skipped {
            Skipped::LinkType => &mut self.unknown_link,
            Skipped::NotIp => &mut self.not_ip,
            Skipped::NotTcp | Skipped::Icmp | Skipped::Udp => &mut self.not_tcp,
            Skipped::LaterFragment => &mut self.later_fragments,
            Skipped::Cut => &mut self.cut,
            Skipped::Malformed => &mut self.malformed,
        } += 1;
    }
}

/// The packets of all files, in the order of their times.
#[derive(Debug)]
pub struct Capture {
    files: Vec<File>,
    order: BinaryHeap<Reverse<(i64, usize)>>,
    /// The file of the last packet of a merged capture, which is the next to be read.
    current: Option<usize>,
    /// ICMP errors of a merged capture since they were last taken.
    icmp_errors: Vec<IcmpError>,
}

impl Capture {
    /// Open files; `-` is standard input. Those that cannot be read report the reason in [`File::reason`].
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Self {
        Self::filtered(paths, Filter::default())
    }

    /// Open files, for the packets that match a filter.
    pub fn filtered<P: AsRef<Path>>(paths: &[P], filter: Filter) -> Self {
        let filter = Arc::new(filter);
        let mut files = Vec::with_capacity(paths.len());
        let mut order = BinaryHeap::with_capacity(paths.len());
        for (number, path) in paths.iter().enumerate() {
            let mut file = File::open(path.as_ref(), number as u32, Arc::clone(&filter));
            file.prefetch();
            if let Some(due_ns) = file.due_ns() {
                order.push(Reverse((due_ns, number)));
            }
            if number >= MAX_OPEN_FILES {
                file.wait();
            }
            files.push(file);
        }
        Self {
            files,
            order,
            current: None,
            icmp_errors: Vec::new(),
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
    /// Return true if ICMP errors were captured before the last segment, or before the end.
    #[inline]
    pub fn has_icmp_errors(&self) -> bool {
        !self.icmp_errors.is_empty()
            || matches!(&self.files[..], [single] if !single.icmp_errors.is_empty())
    }

    /// Take these ICMP errors.
    pub fn take_icmp_errors(&mut self) -> Vec<IcmpError> {
        match &mut self.files[..] {
            [single] => std::mem::take(&mut single.icmp_errors),
            _ => std::mem::take(&mut self.icmp_errors),
        }
    }

    /// Return the next TCP segment; datagrams before it are skipped.
    #[inline]
    pub fn next_segment(&mut self) -> Option<&Segment> {
        loop {
            if let Packet::Datagram(_) = self.advance()? {
                continue;
            }
            // The packet is looked up again, since a loop cannot return what it borrowed.
            let file = self.current.unwrap_or(0);
            return Some(&self.files[file].segment);
        }
    }

    /// Return a reference to the next packet, so that only callers that keep it copy it.
    #[inline]
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        self.advance()
    }

    #[inline]
    fn advance(&mut self) -> Option<Packet<'_>> {
        if self.files.len() == 1 {
            return self.files[0].next();
        }
        self.next_of_several()
    }

    /// Return the next packet of several files. It stays in its file, which is read on when it is done with.
    fn next_of_several(&mut self) -> Option<Packet<'_>> {
        if let Some(number) = self.current.take() {
            self.read_ahead(number);
        }
        loop {
            let Reverse((_, number)) = *self.order.peek()?;
            if self.files[number].next().is_some() {
                self.current = Some(number);
                return Some(self.files[number].packet());
            }
            self.read_ahead(number);
        }
    }

    /// Read the file on that is first in the order, and put it where its next packet belongs.
    fn read_ahead(&mut self, number: usize) {
        let file = &mut self.files[number];
        file.prefetch();
        self.icmp_errors.append(&mut file.icmp_errors);
        if let Some(mut first) = self.order.peek_mut() {
            match file.due_ns() {
                Some(due_ns) => *first = Reverse((due_ns, number)),
                None => {
                    PeekMut::pop(first);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
