//! What was sent and not yet acknowledged, as the capture saw it: stretches of bytes with their copies.
//!
//! A stretch ends where a segment ended; one that is sent again in other pieces is split. The cost is amortised O(1) per
//! packet: each stretch is sacked once and taken for lost once after each time it was sent, and the number of stretches
//! is bounded.

use ackclock_core::tcp::seq;
use std::collections::VecDeque;

use super::ranges::Ranges;
use crate::tables::Cause;

/// Stretches that are kept of a flow: beyond, the oldest are given up. A window of 90 MB at 1448 bytes.
pub const MOST: usize = 1 << 16;
/// Copies that are kept of a stretch.
const MOST_COPIES: usize = 32;

/// One copy of a stretch that has several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copied {
    /// When it was seen; of an unseen one, about when it was sent.
    pub sent_ns: i64,
    /// Its TSval.
    pub tsval: u32,
    /// Its place in the path's series.
    pub arrival: u32,
    /// The capture has it.
    pub seen: bool,
    /// Why it was sent.
    pub cause: Cause,
    /// It came behind one that was sent later.
    pub late: bool,
    /// It reached its receiver, as a DSACK or the network's own copy told.
    pub extra: bool,
}

/// Where a stretch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Under way, for all that the sender knows.
    InFlight,
    /// Taken for lost, not sent again.
    Lost,
    /// Acknowledged selectively.
    Sacked,
}

/// A stretch of bytes.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Its first byte.
    pub start: u64,
    /// When its first copy was seen.
    pub first_ns: i64,
    /// When its last copy was.
    pub last_ns: i64,
    /// When it was sacked.
    pub sacked_ns: i64,
    /// When it was taken for lost; 0: never.
    pub lost_ns: i64,
    /// All copies, once there are several; a pointer, as most stretches have one.
    #[allow(clippy::box_collection)]
    pub copies: Option<Box<Vec<Copied>>>,
    /// How many.
    pub bytes: u32,
    /// The TSval of the last copy.
    pub tsval: u32,
    /// The last copy's place in the path's series.
    pub arrival: u32,
    /// The identification of the last copy, if there is one that tells copies apart.
    pub identification: u32,
    /// Where it is.
    pub state: State,
    /// The capture has no copy of it.
    pub unseen: bool,
    /// It came behind what was sent after it.
    pub late: bool,
}

impl Stretch {
    /// The byte after its last.
    #[inline]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }

    /// Whether it was sent once.
    #[inline]
    pub fn once(&self) -> bool {
        self.copies.is_none()
    }

    /// Remembers another copy; of many, the second is given up.
    pub fn add(&mut self, copy: Copied) -> Option<Copied> {
        let first = Copied {
            sent_ns: self.first_ns,
            tsval: self.tsval,
            arrival: self.arrival,
            seen: !self.unseen,
            cause: Cause::Unknown,
            late: false,
            extra: false,
        };
        let copies = self.copies.get_or_insert_with(|| Box::new(vec![first]));
        let given_up = (copies.len() == MOST_COPIES).then(|| copies.remove(1));
        copies.push(copy);
        self.last_ns = copy.sent_ns;
        self.tsval = copy.tsval;
        self.arrival = copy.arrival;
        self.unseen = false;
        given_up
    }

    /// A copy that was not seen came, behind one that was sent later: gives its number. It is the first whose TSval is not
    /// older, as what tells of an unseen copy was sent behind it; without TSvals the last, as what overtakes it does so
    /// within less than a round trip.
    pub fn came(&mut self, sent_ns: i64, arrival: u32, tsval: Option<u32>) -> Option<usize> {
        let copies = self.copies.as_deref_mut()?;
        let not_older = |copy: &Copied| tsval.is_some_and(|own| !seq::is_before(copy.tsval, own));
        let first = copies.iter().position(|copy| !copy.seen && not_older(copy));
        let number = first.or_else(|| copies.iter().rposition(|copy| !copy.seen))?;
        let copy = &mut copies[number];
        copy.seen = true;
        copy.late = true;
        copy.arrival = arrival;
        copy.sent_ns = copy.sent_ns.min(sent_ns);
        self.late |= number == 0;
        Some(number)
    }

    /// Takes its last copy back, if that was not seen.
    fn take_back(&mut self) -> bool {
        let Some(copies) = self.copies.as_deref_mut() else {
            return false;
        };
        let [.., before, last] = copies.as_slice() else {
            return false;
        };
        if last.seen || last.extra {
            return false;
        }
        let (before, alone) = (*before, copies.len() == 2);
        copies.pop();
        self.last_ns = before.sent_ns;
        self.tsval = before.tsval;
        self.arrival = before.arrival;
        if alone {
            self.copies = None;
            self.unseen = !before.seen;
        }
        true
    }

    /// Ends it at a position; gives what is behind.
    pub fn split(&mut self, at: u64) -> Self {
        let mut behind = self.clone();
        behind.start = at;
        behind.bytes = (self.end() - at) as u32;
        self.bytes = (at - self.start) as u32;
        behind
    }
}

/// The stretches of one direction.
#[derive(Debug, Default)]
pub struct Scoreboard {
    stretches: VecDeque<Stretch>,
    /// Stretches before this one were looked at for losses.
    scanned: usize,
    in_flight_bytes: u64,
    sacked_bytes: u64,
    high_sacked: u64,
    ranges: Ranges,
}

impl Scoreboard {
    /// Nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Bytes under way: RFC 6675's pipe, without copies of what is not lost.
    pub fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Bytes that are sacked above what is acknowledged.
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Bytes that are taken for lost and not sent again.
    pub fn lost_bytes(&self) -> u64 {
        let ends = self.stretches.front().zip(self.stretches.back());
        ends.map_or(0, |(first, last)| {
            let all = last.end() - first.start;
            all.saturating_sub(self.in_flight_bytes + self.sacked_bytes)
        })
    }

    /// The byte after the highest that is sacked.
    pub fn high_sacked(&self) -> u64 {
        self.high_sacked
    }

    /// All stretches.
    pub fn iter(&self) -> impl Iterator<Item = &Stretch> {
        self.stretches.iter()
    }

    /// The first stretch.
    pub fn front(&self) -> Option<&Stretch> {
        self.stretches.front()
    }

    /// Adds what follows the last stretch.
    #[inline]
    pub fn push(&mut self, stretch: Stretch) {
        self.in_flight_bytes += u64::from(stretch.bytes);
        self.stretches.push_back(stretch);
    }

    /// Gives up the oldest stretch if there are too many.
    pub fn overflow(&mut self, most: usize) -> Option<Stretch> {
        (self.stretches.len() > most).then(|| self.pop())?
    }

    /// Takes the first stretch, if it ends at or before `acked`; one that goes beyond is split.
    #[inline]
    pub fn take_acked(&mut self, acked: u64) -> Option<Stretch> {
        let front = self.stretches.front_mut()?;
        if front.end() <= acked {
            return self.pop();
        }
        if front.start < acked {
            let behind = front.split(acked);
            self.stretches.insert(1, behind);
            self.scanned += usize::from(self.scanned > 0);
            return self.pop();
        }
        None
    }

    fn pop(&mut self) -> Option<Stretch> {
        let stretch = self.stretches.pop_front()?;
        self.scanned = self.scanned.saturating_sub(1);
        match stretch.state {
            State::InFlight => self.in_flight_bytes -= u64::from(stretch.bytes),
            State::Sacked => self.sacked_bytes -= u64::from(stretch.bytes),
            State::Lost => {}
        }
        if self.stretches.is_empty() {
            self.ranges.clear();
        }
        Some(stretch)
    }

    /// The stretches between two positions, split where they reach beyond: their indices.
    pub fn between(&mut self, start: u64, end: u64) -> std::ops::Range<usize> {
        let first = self.cut(start);
        let last = self.cut(end);
        first..last.max(first)
    }

    /// Splits the stretch that holds a position; gives the index of the first that begins at or behind it.
    fn cut(&mut self, at: u64) -> usize {
        let index = self.stretches.partition_point(|one| one.end() <= at);
        match self.stretches.get_mut(index) {
            Some(one) if one.start < at => {
                let behind = one.split(at);
                self.stretches.insert(index + 1, behind);
                self.scanned += usize::from(self.scanned > index);
                index + 1
            }
            _ => index,
        }
    }

    /// The index of the stretch that holds a position, or of the first behind it.
    pub fn place(&self, at: u64) -> usize {
        self.stretches.partition_point(|one| one.end() <= at)
    }

    /// Whether there is such a stretch.
    pub fn any(&self, such: impl Fn(&Stretch) -> bool) -> bool {
        self.stretches.iter().any(such)
    }

    /// The last such stretch.
    pub fn last(&self, such: impl Fn(&Stretch) -> bool) -> Option<&Stretch> {
        self.stretches.iter().rev().find(|one| such(one))
    }

    /// The stretch of an index.
    pub fn get(&self, index: usize) -> Option<&Stretch> {
        self.stretches.get(index)
    }

    /// Another copy of a stretch was sent; gives the one that is given up for it.
    pub fn sent_again(
        &mut self,
        index: usize,
        copy: Copied,
        identification: u32,
    ) -> Option<Copied> {
        let one = self.stretches.get_mut(index)?;
        let given_up = one.add(copy);
        one.identification = identification;
        if one.state == State::Lost {
            one.state = State::InFlight;
            self.in_flight_bytes += u64::from(one.bytes);
        }
        given_up
    }

    /// The bytes of a hole came: later than what was sent after them, not sent again.
    pub fn filled(&mut self, index: usize, came: Copied, identification: u32, late: bool) {
        let Some(one) = self.stretches.get_mut(index) else {
            return;
        };
        one.unseen = false;
        one.late = late;
        one.last_ns = came.sent_ns;
        one.tsval = came.tsval;
        one.arrival = came.arrival;
        one.identification = identification;
        if one.state == State::Lost {
            one.state = State::InFlight;
            self.in_flight_bytes += u64::from(one.bytes);
        }
    }

    /// A copy that was not seen came, behind one that was sent later.
    pub fn came(&mut self, index: usize, sent_ns: i64, arrival: u32, tsval: Option<u32>) {
        if let Some(one) = self.stretches.get_mut(index) {
            one.came(sent_ns, arrival, tsval);
        }
    }

    /// The last copy of a stretch was not sent, if it is one that was not seen: then it is forgotten.
    pub fn take_back(&mut self, index: usize) -> bool {
        let Some(one) = self.stretches.get_mut(index) else {
            return false;
        };
        let taken = one.take_back();
        if taken && one.state == State::InFlight {
            one.state = State::Lost;
            self.in_flight_bytes -= u64::from(one.bytes);
        }
        taken
    }

    /// A stretch that arrived twice, as a DSACK tells.
    pub fn arrived_twice(&mut self, start: u64) {
        let index = self.stretches.partition_point(|one| one.end() <= start);
        let one = self.stretches.get_mut(index);
        if let Some(last) = one
            .and_then(|one| one.copies.as_mut())
            .and_then(|copies| copies.last_mut())
        {
            last.extra = true;
        }
    }

    /// A block is acknowledged selectively: `each` gets the stretches of which that is new.
    pub fn sack(&mut self, start: u64, end: u64, now_ns: i64, each: impl FnMut(&Stretch)) {
        let (Some(first), Some(last)) = (self.stretches.front(), self.stretches.back()) else {
            return;
        };
        let (start, end) = (start.max(first.start), end.min(last.end()));
        if start >= end || self.ranges.has(start, end) {
            return;
        }
        let mut each = each;
        let mut from = start;
        // What of it is not yet in a range.
        let mut index = self.ranges.place(start);
        while from < end {
            let next = self.ranges.get(index).filter(|next| next.0 < end);
            let until = next.map_or(end, |next| next.0.max(from));
            if from < until {
                self.sack_new(from, until, now_ns, &mut each);
            }
            from = next.map_or(end, |next| next.1);
            index += 1;
        }
        self.ranges.join(start, end);
        self.high_sacked = self.high_sacked.max(end);
    }

    fn sack_new(&mut self, start: u64, end: u64, now_ns: i64, each: &mut impl FnMut(&Stretch)) {
        for index in self.between(start, end) {
            let one = &mut self.stretches[index];
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

    /// Forgets the ranges below what is acknowledged.
    #[inline]
    pub fn forget_below(&mut self, acked: u64) {
        self.ranges.forget_below(acked);
    }

    /// Takes what was sent once and lies below a position for lost; `each` gets how much.
    pub fn lose_below(&mut self, position: u64, now_ns: i64) {
        while let Some(one) = self.stretches.get_mut(self.scanned) {
            if one.end() > position {
                break;
            }
            if one.once() && one.state == State::InFlight {
                self.in_flight_bytes -= u64::from(one.bytes);
                one.state = State::Lost;
                one.lost_ns = now_ns;
            }
            self.scanned += 1;
        }
    }

    /// Takes a copy of the stretch at a position for lost, if it is the last that was sent.
    pub fn lose_copy(&mut self, start: u64, sent_ns: i64, now_ns: i64) {
        let index = self.stretches.partition_point(|one| one.start < start);
        if let Some(one) = self.stretches.get_mut(index) {
            if one.start == start && one.last_ns == sent_ns && one.state == State::InFlight {
                self.in_flight_bytes -= u64::from(one.bytes);
                one.state = State::Lost;
                one.lost_ns = now_ns;
            }
        }
    }

    /// Takes all for lost that is not sacked: the retransmission timer expired, which tells of no segment by itself.
    pub fn lose_all(&mut self) {
        for one in &mut self.stretches {
            if one.state == State::InFlight {
                one.state = State::Lost;
            }
        }
        self.in_flight_bytes = 0;
    }

    /// Takes everything away, from the first on.
    pub fn drain(&mut self) -> impl Iterator<Item = Stretch> + '_ {
        self.in_flight_bytes = 0;
        self.sacked_bytes = 0;
        self.scanned = 0;
        self.ranges.clear();
        self.stretches.drain(..)
    }

    /// Gives back memory that is not needed.
    pub fn shrink(&mut self) {
        if self.stretches.is_empty() {
            self.stretches = VecDeque::new();
            self.ranges.shrink();
        }
    }
}
