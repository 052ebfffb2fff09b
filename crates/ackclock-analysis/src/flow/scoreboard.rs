//! The scoreboard of one direction: sent and unacknowledged ranges of bytes, with their transmissions.
//!
//! A range ends where a segment ended; one that is retransmitted in other pieces is split. The cost is amortised O(1)
//! per packet: each range is sacked once and marked lost once after each time it was sent, and the number of ranges is
//! bounded.

use ackclock_core::tcp::seq;
use std::collections::VecDeque;

use super::ranges::Ranges;
use crate::tables::RetransmitCause;

/// Ranges that are kept of a flow: beyond, the oldest are given up. A window of 90 MB at 1448 bytes.
pub const MAX_RANGES: usize = 1 << 16;
/// Copies that are kept of a range.
const MAX_COPIES: usize = 32;

/// One copy of a range that has several.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // what is known of it
pub struct Transmission {
    /// When it was seen; of an unseen one, about when it was sent.
    pub sent_ns: i64,
    /// Its TSval.
    pub tsval: u32,
    /// Its place in the path's series.
    pub arrival: u32,
    /// The capture has it.
    pub captured: bool,
    /// Why it was sent.
    pub cause: RetransmitCause,
    /// It came behind one that was sent later.
    pub late: bool,
    /// It reached its receiver, as a DSACK or the network's own copy told.
    pub dsacked: bool,
    /// It is of a segment that began in a range before.
    pub continued: bool,
}

/// The state of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In flight, for all that the sender knows.
    InFlight,
    /// Marked lost, not retransmitted.
    Lost,
    /// Acknowledged selectively.
    Sacked,
}

/// A range of bytes.
#[derive(Clone, Debug)]
pub struct SentRange {
    /// Its first byte.
    pub start: u64,
    /// When its first copy was seen.
    pub first_ns: i64,
    /// When its last copy was.
    pub last_ns: i64,
    /// When it was sacked.
    pub sacked_ns: i64,
    /// When it was marked lost; 0: never.
    pub lost_ns: i64,
    /// All copies, once there are several; a pointer, as most ranges have one.
    #[allow(clippy::box_collection)]
    pub copies: Option<Box<Vec<Transmission>>>,
    /// The number of them.
    pub bytes: u32,
    /// The TSval of the last copy.
    pub tsval: u32,
    /// The last copy's place in the path's series; if there is no copy in the capture, that of the packet before it.
    pub arrival: u32,
    /// The identification of the last copy, if there is one that tells copies apart.
    pub identification: u32,
    /// Its state.
    pub state: State,
    /// The capture has no copy of it.
    pub not_captured: bool,
    /// It came behind what was sent after it.
    pub late: bool,
    /// Its first copy is of a segment that began in a range before.
    pub continued: bool,
}

impl SentRange {
    /// The byte after its last.
    #[inline]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }

    /// Return true if it was sent once.
    #[inline]
    pub fn has_one_transmission(&self) -> bool {
        self.copies.is_none()
    }

    /// Store another copy; of many, the second is given up.
    pub fn add(&mut self, copy: Transmission) -> Option<Transmission> {
        let first = Transmission {
            sent_ns: self.first_ns,
            tsval: self.tsval,
            arrival: self.arrival,
            captured: !self.not_captured,
            cause: RetransmitCause::Unknown,
            late: false,
            dsacked: false,
            continued: self.continued,
        };
        let copies = self.copies.get_or_insert_with(|| Box::new(vec![first]));
        let given_up = (copies.len() == MAX_COPIES).then(|| copies.remove(1));
        copies.push(copy);
        self.last_ns = copy.sent_ns;
        self.tsval = copy.tsval;
        self.arrival = copy.arrival;
        self.not_captured = false;
        given_up
    }

    /// A copy that was not seen came, behind one that was sent later; return its number. It is the first whose TSval is
    /// not older, as what tells of an unseen copy was sent behind it; without TSvals the last, as what overtakes it
    /// does so within less than a round trip.
    pub fn on_late_copy(
        &mut self,
        sent_ns: i64,
        arrival: u32,
        tsval: Option<u32>,
    ) -> Option<usize> {
        let copies = self.copies.as_deref_mut()?;
        let not_older =
            |copy: &Transmission| tsval.is_some_and(|own| !seq::is_before(copy.tsval, own));
        let first = copies
            .iter()
            .position(|copy| !copy.captured && not_older(copy));
        let number = first.or_else(|| copies.iter().rposition(|copy| !copy.captured))?;
        let copy = &mut copies[number];
        copy.captured = true;
        copy.late = true;
        copy.arrival = arrival;
        copy.sent_ns = copy.sent_ns.min(sent_ns);
        self.late |= number == 0;
        Some(number)
    }

    /// Retract its last transmission, if that was not captured.
    fn retract_last(&mut self) -> bool {
        let Some(copies) = self.copies.as_deref_mut() else {
            return false;
        };
        let [.., before, last] = copies.as_slice() else {
            return false;
        };
        if last.captured || last.dsacked {
            return false;
        }
        let (before, was_pair) = (*before, copies.len() == 2);
        copies.pop();
        self.last_ns = before.sent_ns;
        self.tsval = before.tsval;
        self.arrival = before.arrival;
        if was_pair {
            self.copies = None;
            self.not_captured = !before.captured;
            self.continued = before.continued;
        }
        true
    }

    /// End it at a position; return what is behind. Captured copies are of one segment: the part in front counts.
    pub fn split(&mut self, at: u64) -> Self {
        let mut behind = self.clone();
        behind.continued |= !self.not_captured;
        for copy in behind.copies.iter_mut().flat_map(|all| all.iter_mut()) {
            copy.continued |= copy.captured;
        }
        behind.start = at;
        behind.bytes = (self.end() - at) as u32;
        self.bytes = (at - self.start) as u32;
        behind
    }
}

/// The ranges of one direction.
#[derive(Debug, Default)]
pub struct Scoreboard {
    sent_ranges: VecDeque<SentRange>,
    /// Ranges before this one were looked at for losses.
    scanned: usize,
    in_flight_bytes: u64,
    sacked_bytes: u64,
    high_sacked: u64,
    ranges: Ranges,
}

impl Scoreboard {
    /// Return true if nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.sent_ranges.is_empty()
    }

    /// Bytes in flight: RFC 6675's pipe, without copies of what is not lost.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Bytes that are sacked above what is acknowledged.
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Bytes that are marked lost and not retransmitted.
    pub fn lost_bytes(&self) -> u64 {
        let ends = self.sent_ranges.front().zip(self.sent_ranges.back());
        ends.map_or(0, |(first, last)| {
            let all = last.end() - first.start;
            all.saturating_sub(self.in_flight_bytes + self.sacked_bytes)
        })
    }

    /// The byte after the highest that is sacked.
    pub fn high_sacked(&self) -> u64 {
        self.high_sacked
    }

    /// All ranges.
    pub fn iter(&self) -> impl Iterator<Item = &SentRange> {
        self.sent_ranges.iter()
    }

    /// The first range.
    pub fn front(&self) -> Option<&SentRange> {
        self.sent_ranges.front()
    }

    /// Add what follows the last range.
    #[inline]
    pub fn push(&mut self, range: SentRange) {
        self.in_flight_bytes += u64::from(range.bytes);
        self.sent_ranges.push_back(range);
    }

    /// Give up the oldest range if there are too many, and return it.
    pub fn overflow(&mut self, most: usize) -> Option<SentRange> {
        (self.sent_ranges.len() > most).then(|| self.pop())?
    }

    /// Take the first range, if it ends at or before `on_ack`; one that goes beyond is split.
    #[inline]
    pub fn take_acked(&mut self, on_ack: u64) -> Option<SentRange> {
        let front = self.sent_ranges.front_mut()?;
        if front.end() <= on_ack {
            return self.pop();
        }
        if front.start < on_ack {
            let behind = front.split(on_ack);
            self.sent_ranges.insert(1, behind);
            self.scanned += usize::from(self.scanned > 0);
            return self.pop();
        }
        None
    }

    fn pop(&mut self) -> Option<SentRange> {
        let range = self.sent_ranges.pop_front()?;
        self.scanned = self.scanned.saturating_sub(1);
        match range.state {
            State::InFlight => self.in_flight_bytes -= u64::from(range.bytes),
            State::Sacked => self.sacked_bytes -= u64::from(range.bytes),
            State::Lost => {}
        }
        if self.sent_ranges.is_empty() {
            self.ranges.clear();
        }
        Some(range)
    }

    /// The ranges between two positions, split where they reach beyond: their indices.
    pub fn split_range(&mut self, start: u64, end: u64) -> std::ops::Range<usize> {
        let first = self.split_at(start);
        let last = self.split_at(end);
        first..last.max(first)
    }

    /// Split the range that holds a position; return the index of the first that begins at or behind it.
    fn split_at(&mut self, at: u64) -> usize {
        let index = self.sent_ranges.partition_point(|one| one.end() <= at);
        match self.sent_ranges.get_mut(index) {
            Some(one) if one.start < at => {
                let behind = one.split(at);
                self.sent_ranges.insert(index + 1, behind);
                self.scanned += usize::from(self.scanned > index);
                index + 1
            }
            _ => index,
        }
    }

    /// The index of the range that holds a position, or of the first behind it.
    pub fn index_of(&self, at: u64) -> usize {
        self.sent_ranges.partition_point(|one| one.end() <= at)
    }

    /// Return true if any range matches.
    pub fn any(&self, such: impl Fn(&SentRange) -> bool) -> bool {
        self.sent_ranges.iter().any(such)
    }

    /// The last such range.
    pub fn last(&self, such: impl Fn(&SentRange) -> bool) -> Option<&SentRange> {
        self.sent_ranges.iter().rev().find(|one| such(one))
    }

    /// The range of an index.
    pub fn get(&self, index: usize) -> Option<&SentRange> {
        self.sent_ranges.get(index)
    }

    /// Another copy of a range was sent; return the one that is dropped for it.
    pub fn add_transmission(
        &mut self,
        index: usize,
        copy: Transmission,
        identification: u32,
    ) -> Option<Transmission> {
        let one = self.sent_ranges.get_mut(index)?;
        let given_up = one.add(copy);
        one.identification = identification;
        if one.state == State::Lost {
            one.state = State::InFlight;
            self.in_flight_bytes += u64::from(one.bytes);
        }
        given_up
    }

    /// The bytes of a hole came: later than what was sent after them, not retransmitted.
    pub fn on_filled_late(
        &mut self,
        index: usize,
        on_late_copy: Transmission,
        identification: u32,
        late: bool,
    ) {
        let Some(one) = self.sent_ranges.get_mut(index) else {
            return;
        };
        one.not_captured = false;
        one.late = late;
        one.continued = on_late_copy.continued;
        one.last_ns = on_late_copy.sent_ns;
        one.tsval = on_late_copy.tsval;
        one.arrival = on_late_copy.arrival;
        one.identification = identification;
        if one.state == State::Lost {
            one.state = State::InFlight;
            self.in_flight_bytes += u64::from(one.bytes);
        }
    }

    /// A copy that was not seen came, behind one that was sent later.
    pub fn on_late_copy(&mut self, index: usize, sent_ns: i64, arrival: u32, tsval: Option<u32>) {
        if let Some(one) = self.sent_ranges.get_mut(index) {
            one.on_late_copy(sent_ns, arrival, tsval);
        }
    }

    /// The last copy of a range was not sent, if it is one that was not seen: then it is forgotten.
    pub fn retract_last(&mut self, index: usize) -> bool {
        let Some(one) = self.sent_ranges.get_mut(index) else {
            return false;
        };
        let taken = one.retract_last();
        if taken && one.state == State::InFlight {
            one.state = State::Lost;
            self.in_flight_bytes -= u64::from(one.bytes);
        }
        taken
    }

    /// A range that arrived twice, as a DSACK tells.
    pub fn on_dsack(&mut self, start: u64) {
        let index = self.sent_ranges.partition_point(|one| one.end() <= start);
        let one = self.sent_ranges.get_mut(index);
        if let Some(last) = one
            .and_then(|one| one.copies.as_mut())
            .and_then(|copies| copies.last_mut())
        {
            last.dsacked = true;
        }
    }

    /// A block is acknowledged selectively: `each` gets the ranges of which that is new.
    pub fn sack(&mut self, start: u64, end: u64, now_ns: i64, each: impl FnMut(&SentRange)) {
        let (Some(first), Some(last)) = (self.sent_ranges.front(), self.sent_ranges.back()) else {
            return;
        };
        let (start, end) = (start.max(first.start), end.min(last.end()));
        if start >= end || self.ranges.contains(start, end) {
            return;
        }
        let mut each = each;
        let mut from = start;
        // What of it is not yet in a range.
        let mut index = self.ranges.index_after(start);
        while from < end {
            let next = self.ranges.get(index).filter(|next| next.0 < end);
            let until = next.map_or(end, |next| next.0.max(from));
            if from < until {
                self.sack_new(from, until, now_ns, &mut each);
            }
            from = next.map_or(end, |next| next.1);
            index += 1;
        }
        self.ranges.insert(start, end);
        self.high_sacked = self.high_sacked.max(end);
    }

    fn sack_new(&mut self, start: u64, end: u64, now_ns: i64, each: &mut impl FnMut(&SentRange)) {
        for index in self.split_range(start, end) {
            let one = &mut self.sent_ranges[index];
            if one.state == State::Sacked {
                continue;
            }
            if one.state == State::InFlight {
                self.in_flight_bytes -= u64::from(one.bytes);
            }
            each(one);
            one.state = State::Sacked;
            one.sacked_ns = now_ns;
            self.sacked_bytes += u64::from(one.bytes);
        }
    }

    /// Forget the ranges below what is acknowledged.
    #[inline]
    pub fn forget_below(&mut self, on_ack: u64) {
        self.ranges.forget_below(on_ack);
    }

    /// Mark what was sent once and lies below a position lost.
    pub fn mark_lost_below(&mut self, position: u64, now_ns: i64) {
        while let Some(one) = self.sent_ranges.get_mut(self.scanned) {
            if one.end() > position {
                break;
            }
            if one.has_one_transmission() && one.state == State::InFlight {
                self.in_flight_bytes -= u64::from(one.bytes);
                one.state = State::Lost;
                one.lost_ns = now_ns;
            }
            self.scanned += 1;
        }
    }

    /// Mark the copy of the range at a position lost, if it is the last that was sent.
    pub fn mark_copy_lost(&mut self, start: u64, sent_ns: i64, now_ns: i64) {
        let index = self.sent_ranges.partition_point(|one| one.start < start);
        if let Some(one) = self.sent_ranges.get_mut(index) {
            if one.start == start && one.last_ns == sent_ns && one.state == State::InFlight {
                self.in_flight_bytes -= u64::from(one.bytes);
                one.state = State::Lost;
                one.lost_ns = now_ns;
            }
        }
    }

    /// Mark everything lost that is not sacked: the retransmission timer expired.
    pub fn mark_all_lost(&mut self) {
        for one in &mut self.sent_ranges {
            if one.state == State::InFlight {
                one.state = State::Lost;
            }
        }
        self.in_flight_bytes = 0;
    }

    /// Remove all ranges, from the first on.
    pub fn drain(&mut self) -> impl Iterator<Item = SentRange> + '_ {
        self.in_flight_bytes = 0;
        self.sacked_bytes = 0;
        self.scanned = 0;
        self.ranges.clear();
        self.sent_ranges.drain(..)
    }

    /// Free unused memory that is not needed.
    pub fn shrink(&mut self) {
        if self.sent_ranges.is_empty() {
            self.sent_ranges = VecDeque::new();
            self.ranges.shrink();
        }
    }
}
