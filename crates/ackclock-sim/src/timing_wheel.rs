//! Timing wheel: event queue of very many sources.
//!
//! As in the [`crate::tournament_tree::TournamentTree`], each source has at most one pending event, and the order is
//! total: by time, then by the source's number. A tournament plays log4(n) matches for each change; here an event goes
//! into the bucket of its time, and only the bucket that is being emptied is sorted. That pays with hundreds of links
//! and more. (R. Brown: Calendar queues, CACM 31(10), 1988; G. Varghese, T. Lauck: Hashed and hierarchical timing
//! wheels, SOSP 1987.)
//!
//! Events later than a turn of the wheel wait in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_core::Time;

/// End of a bucket's chain.
const END: u32 = u32::MAX;
/// Smallest and largest number of buckets.
const MIN_BUCKETS: usize = 1 << 10;
const MAX_BUCKETS: usize = 1 << 16;

/// Pending event of a source.
#[derive(Clone, Copy)]
struct Slot {
    /// Time of its event.
    time: Time,
    /// The next source in its bucket's chain.
    next: u32,
}

const EMPTY: Slot = Slot {
    time: Time::NEVER,
    next: END,
};

/// The pending event of each source, the earliest first.
pub struct TimingWheel {
    /// Events.
    count: usize,
    /// Pending events by source.
    slots: Vec<Slot>,
    /// First source of the chain, by bucket.
    heads: Vec<u32>,
    occupied: Bitmap,
    /// A bucket is 2 to the power of this wide, in picoseconds.
    shift: u32,
    /// Number of the bucket that is being emptied, counted from time zero.
    cursor: u64,
    /// The events up to the end of that bucket, the earliest last.
    current: Vec<(Time, u32)>,
    /// The bucket of the present time: nothing comes before it.
    floor: u64,
    /// Events of this bucket and later ones are in `overflow`.
    overflow_from: u64,
    overflow: BinaryHeap<Reverse<(Time, u32)>>,
}

impl TimingWheel {
    /// A calendar of `sources` sources, none of which has an event. Most events should be set no further
    /// ahead than `horizon`.
    pub fn new(sources: usize, horizon: Time) -> TimingWheel {
        let buckets = (2 * sources)
            .next_power_of_two()
            .clamp(MIN_BUCKETS, MAX_BUCKETS);
        let width = (horizon.picoseconds() / (buckets as u64 / 2)).max(1);
        TimingWheel {
            count: 0,
            slots: vec![EMPTY; sources],
            heads: vec![END; buckets],
            occupied: Bitmap::new(buckets),
            shift: width.next_power_of_two().trailing_zeros(),
            cursor: 0,
            current: Vec::new(),
            floor: 0,
            overflow_from: buckets as u64,
            overflow: BinaryHeap::new(),
        }
    }

    /// True if there is no event.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The earliest event: its time ([`Time::NEVER`] if there is none) and its source.
    #[inline(always)]
    pub fn first(&mut self) -> (Time, usize) {
        if self.count == 0 {
            return (Time::NEVER, 0);
        }
        if self.current.is_empty() {
            self.refill();
        }
        match self.current.last() {
            Some(&(time, source)) => (time, source as usize),
            None => (Time::NEVER, 0),
        }
    }

    /// Time of the source's event.
    pub fn time(&self, source: usize) -> Time {
        self.slots[source].time
    }

    /// Take the earliest event, which [`TimingWheel::first`] has just returned.
    #[inline(always)]
    pub fn take(&mut self) {
        if let Some((time, source)) = self.current.pop() {
            self.count -= 1;
            self.slots[source as usize].time = Time::NEVER;
            self.floor = self.bucket(time);
        }
    }

    /// Add the event of a source that has none, not before the present.
    #[inline(always)]
    pub fn add(&mut self, source: usize, time: Time) {
        self.slots[source].time = time;
        self.count += 1;
        self.insert(source as u32, time);
    }

    /// Set the source's event, not before the present; [`Time::NEVER`] removes it.
    #[inline(always)]
    pub fn set(&mut self, source: usize, time: Time) {
        let before = self.slots[source].time;
        if before == time {
            return;
        }
        if !before.is_never() {
            self.count -= 1;
            self.remove(source, before);
        }
        self.slots[source].time = time;
        if !time.is_never() {
            self.count += 1;
            self.insert(source as u32, time);
        }
    }

    #[inline(always)]
    fn bucket(&self, time: Time) -> u64 {
        time.picoseconds() >> self.shift
    }

    #[inline(always)]
    fn slot(&self, bucket: u64) -> usize {
        bucket as usize & (self.heads.len() - 1)
    }

    #[inline(always)]
    fn insert(&mut self, source: u32, time: Time) {
        let bucket = self.bucket(time);
        if bucket > self.cursor && bucket < self.overflow_from {
            let slot = self.slot(bucket);
            self.slots[source as usize].next = self.heads[slot];
            self.heads[slot] = source;
            self.occupied.insert(slot);
        } else {
            self.insert_slow(source, time, bucket);
        }
    }

    #[inline(never)]
    fn insert_slow(&mut self, source: u32, time: Time, bucket: u64) {
        if bucket < self.cursor {
            self.rewind(bucket);
        }
        if bucket == self.cursor {
            let after = self
                .current
                .iter()
                .rposition(|&event| event > (time, source));
            self.current
                .insert(after.map_or(0, |after| after + 1), (time, source));
        } else {
            self.overflow.push(Reverse((time, source)));
        }
    }

    /// Go back to an earlier bucket than the one that is being emptied.
    #[cold]
    fn rewind(&mut self, bucket: u64) {
        self.cursor = bucket;
        for (time, source) in std::mem::take(&mut self.current) {
            self.insert(source, time);
        }
    }

    #[inline(never)]
    fn remove(&mut self, source: usize, time: Time) {
        let bucket = self.bucket(time);
        if bucket <= self.cursor {
            self.current.retain(|event| event.1 as usize != source);
        } else if bucket < self.overflow_from {
            self.unchain(source as u32, self.slot(bucket));
        } else {
            self.overflow.retain(|event| event.0 .1 as usize != source);
        }
    }

    fn unchain(&mut self, source: u32, slot: usize) {
        let next = self.slots[source as usize].next;
        if self.heads[slot] == source {
            self.heads[slot] = next;
            if next == END {
                self.occupied.remove(slot);
            }
            return;
        }
        let mut before = self.heads[slot];
        while self.slots[before as usize].next != source {
            before = self.slots[before as usize].next;
        }
        self.slots[before as usize].next = next;
    }

    /// Advance to the next bucket with events.
    #[inline(never)]
    fn refill(&mut self) {
        self.cascade();
        let start = self.cursor.max(self.floor);
        let Some(distance) = self.occupied.distance(self.slot(start)) else {
            return self.skip_to_overflow();
        };
        self.cursor = start + distance as u64;
        let slot = self.slot(self.cursor);
        self.occupied.remove(slot);
        let mut source = std::mem::replace(&mut self.heads[slot], END);
        while source != END {
            self.current
                .push((self.slots[source as usize].time, source));
            source = self.slots[source as usize].next;
        }
        if self.current.len() > 1 {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }

    /// Move events that are within a turn of the wheel from the heap into the wheel.
    #[inline]
    fn cascade(&mut self) {
        self.overflow_from = self.floor + self.heads.len() as u64;
        while let Some(&Reverse((time, source))) = self.overflow.peek() {
            if self.bucket(time) >= self.overflow_from {
                break;
            }
            self.overflow.pop();
            let slot = self.slot(self.bucket(time));
            self.slots[source as usize].next = self.heads[slot];
            self.heads[slot] = source;
            self.occupied.insert(slot);
        }
    }

    /// Advance an empty wheel to the first bucket of the heap.
    #[cold]
    fn skip_to_overflow(&mut self) {
        let Some(&Reverse((first, _))) = self.overflow.peek() else {
            return;
        };
        self.cursor = self.bucket(first);
        while let Some(&Reverse(event)) = self.overflow.peek() {
            if self.bucket(event.0) != self.cursor {
                break;
            }
            self.overflow.pop();
            self.current.push(event);
        }
        self.current.reverse();
    }
}

/// Bitmap of non-empty buckets, with a second level of a bit for each word.
struct Bitmap {
    words: Vec<u64>,
    summary: Vec<u64>,
}

impl Bitmap {
    fn new(bits: usize) -> Bitmap {
        Bitmap {
            words: vec![0; bits.div_ceil(64)],
            summary: vec![0; bits.div_ceil(64 * 64)],
        }
    }

    #[inline(always)]
    fn insert(&mut self, bit: usize) {
        self.words[bit / 64] |= 1 << (bit % 64);
        self.summary[bit / 4096] |= 1 << (bit / 64 % 64);
    }

    #[inline(always)]
    fn remove(&mut self, bit: usize) {
        self.words[bit / 64] &= !(1 << (bit % 64));
        if self.words[bit / 64] == 0 {
            self.summary[bit / 4096] &= !(1 << (bit / 64 % 64));
        }
    }

    /// Distance from bit `start` to the first set bit, cyclic; `None` if none is set.
    #[inline]
    fn distance(&self, start: usize) -> Option<usize> {
        let here = self.words[start / 64] >> (start % 64);
        if here != 0 {
            return Some(here.trailing_zeros() as usize);
        }
        let bits = 64 * self.words.len();
        let found = self
            .first_word(start / 64 + 1)
            .or_else(|| self.first_word(0))?;
        let bit = 64 * found + self.words[found].trailing_zeros() as usize;
        Some((bit + bits - start) % bits)
    }

    /// The first word from `word` on that is not zero.
    #[inline]
    fn first_word(&self, word: usize) -> Option<usize> {
        let mut index = word / 64;
        let mut summary = self.summary.get(index)? & (u64::MAX << (word % 64));
        while summary == 0 {
            index += 1;
            summary = *self.summary.get(index)?;
        }
        Some(64 * index + summary.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCES: usize = 13;

    #[test]
    fn ties_go_to_the_lower_source() {
        let mut timing_wheel = TimingWheel::new(5, Time::from_microseconds(10));
        for source in [4, 2, 3] {
            timing_wheel.set(source, Time::from_milliseconds(7));
        }
        assert_eq!(timing_wheel.first(), (Time::from_milliseconds(7), 2));
        timing_wheel.set(2, Time::NEVER);
        assert_eq!(timing_wheel.first(), (Time::from_milliseconds(7), 3));
    }

    #[test]
    fn an_empty_wheel_has_no_event() {
        assert!(TimingWheel::new(0, Time::ZERO).first().0.is_never());
        assert!(TimingWheel::new(3, Time::from_microseconds(1))
            .first()
            .0
            .is_never());
    }

    #[test]
    fn an_event_may_precede_the_previous_earliest() {
        let mut timing_wheel = TimingWheel::new(3, Time::from_microseconds(1));
        timing_wheel.set(0, Time::from_milliseconds(900));
        assert_eq!(timing_wheel.first().1, 0);
        timing_wheel.set(1, Time::from_microseconds(3));
        assert_eq!(timing_wheel.first().1, 1);
        timing_wheel.set(2, Time::from_picoseconds(1));
        assert_eq!(timing_wheel.first().1, 2);
    }

    proptest! {
        /// Events are taken, or set anew from any distance ahead of the present, by any source.
        #[test]
        fn agrees_with_a_linear_search(
            horizon_ps in prop::sample::select(vec![0, 5000, 1_000_000_u64]),
            changes in prop::collection::vec((0..SOURCES, 0_u32..36, any::<u64>(), any::<bool>()), 1..400),
        ) {
            let mut timing_wheel = TimingWheel::new(SOURCES, Time::from_picoseconds(horizon_ps));
            let mut times = [Time::NEVER; SOURCES];
            let mut now = Time::ZERO;
            for (source, bits, draw, takes) in changes {
                if takes {
                    let (time, first) = timing_wheel.first();
                    if !time.is_never() {
                        timing_wheel.take();
                        now = time;
                        times[first] = Time::NEVER;
                    }
                }
                let ahead = Time::from_picoseconds(draw & ((1 << bits) - 1));
                times[source] = if bits == 0 { Time::NEVER } else { now + ahead };
                timing_wheel.set(source, times[source]);
                let earliest = *times.iter().min().unwrap();
                prop_assert_eq!(timing_wheel.first().0, earliest);
                if !earliest.is_never() {
                    let first = times.iter().position(|&time| time == earliest).unwrap();
                    prop_assert_eq!(timing_wheel.first().1, first);
                }
            }
        }
    }
}
