//! What was sent and not seen: lost before the point, or missed by the capture. Gaps in the identifications of a sender that
//! counts its packets tell how much there was besides the bytes that are missing.
//!
//! What it was is guessed when the packet behind the gap is seen, by the order in which holes are repaired, and corrected
//! by what follows: a gap in new data takes packets back that were taken for repairs since the new data before it, and
//! nothing is sent twice within a round trip. What nothing explains waits. It was new data that is still to be missed,
//! as long as none was seen behind it, or a repair that was lost, if the next one is seen a round trip later. A sender that
//! was seen to go back to what it had repaired may have done so with it, and then its timer has not expired since.
//!
//! At the sender there are gaps only once the capture is known to have missed something. There acknowledgements may tell of
//! new data before the gap does, and a repair in a gap can have arrived: that counts as sent once it was known to be needed,
//! right behind the last packet that was seen. On the way it was lost before the point, as long as nothing tells otherwise,
//! and counts as sent with the packet behind the gap.

use std::collections::VecDeque;

use super::identities::Place;
use super::{Data, Sending, WIDEST_HOLE};
use crate::flow::scoreboard::{Copied, State, Stretch};
use crate::rows::{Rows, NOT_KEPT};
use crate::tables::{Fate, Vantage};

/// Stretches that are looked at for those that can have been sent again.
const MOST_LOOKED_AT: usize = 4096;
/// Packets that wait for what they were, and guesses that are remembered.
const MOST_WAITING: usize = 1024;
/// Nothing is sent again sooner after it was sent than this share of the least RTT.
const TOO_SOON: f64 = 0.9;

/// A packet that was not seen: it passed between two that were.
#[derive(Clone, Copy, Debug)]
struct Slot {
    after_ns: i64,
    before_ns: i64,
    /// Of what passed before it.
    tsval: u32,
}

/// What was taken for the content of a packet that was not seen: a stretch that was sent again.
#[derive(Clone, Copy, Debug)]
struct Guess {
    start: u64,
    slot: Slot,
}

/// Packets that were not seen, in their order.
#[derive(Clone, Debug, Default)]
pub struct Unseen {
    /// Those of which nobody knows what was in them.
    slots: VecDeque<Slot>,
    /// So many of these came before the last new data: none of them was new data that is still to be missed.
    settled: usize,
    /// Those that were taken for repairs.
    guesses: VecDeque<Guess>,
    /// So many of these came before the last new data.
    settled_guesses: usize,
    /// What ends here and comes now was sent before.
    pub until: u64,
    /// The last data's TSval.
    tsval: u32,
    /// Packets of new data that acknowledgements told of before a gap did.
    pub acknowledged: u32,
    /// Where the last repair ends: the sender goes on from there.
    pub cursor: u64,
    /// The sender counts its packets, and this is when the last gap in them was seen.
    gap_ns: Option<i64>,
}

impl Unseen {
    /// Packets that can have been new data behind the last that was seen.
    fn open(&self) -> usize {
        self.slots.len() - self.settled
    }

    /// One more that nobody knows the content of.
    fn wait(&mut self, slot: Slot) {
        if self.slots.len() == MOST_WAITING {
            self.slots.pop_front();
            self.settled = self.settled.saturating_sub(1);
        }
        let at = self
            .slots
            .partition_point(|one| one.before_ns <= slot.before_ns);
        self.settled += usize::from(at < self.settled);
        self.slots.insert(at, slot);
    }

    fn guess(&mut self, start: u64, slot: Slot) {
        if self.guesses.len() == MOST_WAITING {
            self.guesses.pop_front();
            self.settled_guesses = self.settled_guesses.saturating_sub(1);
        }
        self.guesses.push_back(Guess { start, slot });
    }

    /// Takes the last guess of a stretch back.
    fn take_guess(&mut self, start: u64) -> Option<Slot> {
        let at = self.guesses.iter().rposition(|one| one.start == start)?;
        self.settled_guesses -= usize::from(at < self.settled_guesses);
        self.guesses.remove(at).map(|one| one.slot)
    }

    /// Takes the last packet out that passed between two times.
    fn take_slot(&mut self, since_ns: i64, until_ns: i64) -> Option<Slot> {
        let between = |one: &Slot| one.after_ns <= until_ns && one.before_ns >= since_ns;
        let at = self.slots.iter().rposition(between)?;
        self.settled -= usize::from(at < self.settled);
        self.slots.remove(at)
    }

    /// Notes a gap, or that there was none.
    #[inline]
    pub fn note(&mut self, place: Place, now_ns: i64) {
        match place {
            Place::Unknown => self.gap_ns = None,
            Place::Next { missing: 0 } => {
                self.gap_ns.get_or_insert(i64::MIN);
            }
            Place::Next { .. } | Place::Older => self.gap_ns = Some(now_ns),
        }
    }

    /// New data was seen: what was not and is not known by now was something else.
    fn settle(&mut self) {
        self.settled = self.slots.len();
        self.settled_guesses = self.guesses.len();
    }

    /// Nothing is outstanding: what was sent before tells nothing any more.
    fn forget(&mut self) {
        self.slots.drain(..self.settled);
        self.settled = 0;
        self.guesses.drain(..self.settled_guesses);
        self.settled_guesses = 0;
    }

    /// Gives back memory.
    pub fn shrink(&mut self) {
        *self = Self {
            until: self.until,
            cursor: self.cursor,
            tsval: self.tsval,
            acknowledged: self.acknowledged,
            ..Self::default()
        };
    }
}

/// Where bytes are missing, and the packets that they fill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    start: u64,
    /// How many.
    pub packets: u32,
}

impl Sending {
    /// Finds what was in the packets that are missing before this one. The hole before it may have been found already.
    #[inline]
    pub(super) fn missing(&mut self, data: &Data, found: Option<Hole>, rows: &mut Rows) {
        self.unseen.note(data.place, data.now_ns);
        // What a whole capture has not is nothing that was sent on this connection.
        let whole = self.vantage == Vantage::Sender
            && self.totals.fates[Fate::CaptureLost as usize] == 0
            && self.unseen.acknowledged == 0;
        if !whole {
            self.look_for_missing(data, found, rows);
        }
        self.unseen.tsval = data.tsval.unwrap_or(0);
    }

    #[inline(never)]
    fn look_for_missing(&mut self, data: &Data, found: Option<Hole>, rows: &mut Rows) {
        let known = match data.place {
            Place::Older => 0,
            _ => std::mem::take(&mut self.unseen.acknowledged),
        };
        let counts = match self.vantage {
            Vantage::Unknown => false,
            Vantage::Sender => self.totals.fates[Fate::CaptureLost as usize] > 0,
            Vantage::Middle | Vantage::Receiver => true,
        };
        if !counts || !self.acks_seen {
            return;
        }
        let fresh = match data.place {
            Place::Next { missing } => missing.saturating_sub(known),
            _ => 0,
        };
        if fresh > 0 || !self.unseen.slots.is_empty() || !self.unseen.guesses.is_empty() {
            let slot = Slot {
                after_ns: self.last_data_ns,
                before_ns: data.now_ns,
                tsval: self.unseen.tsval,
            };
            self.place_missing(data, fresh, slot, found, rows);
        }
        let sent_before =
            found.is_none() && data.start == self.next && data.start < self.unseen.until;
        if sent_before {
            self.open_hole(
                data.start + u64::from(data.bytes),
                self.last_data_ns,
                data.tsval.unwrap_or(0),
            );
        }
    }

    /// What bytes are missing of before a position.
    pub(super) fn hole(&self, until: u64) -> Hole {
        Hole {
            start: self.next,
            packets: self.hole_before(until),
        }
    }

    /// Packets that bytes are missing of before a position.
    #[inline]
    pub fn hole_before(&self, start: u64) -> u32 {
        match start.saturating_sub(self.next) {
            0 => 0,
            bytes => {
                let packets = bytes.div_ceil(u64::from(self.mss.max(1)));
                u32::try_from(packets).unwrap_or(u32::MAX)
            }
        }
    }

    /// Packets of new data that were not seen before a position, with those that acknowledgements told of since the last data.
    #[inline]
    pub fn missing_before(&self, start: u64) -> u32 {
        self.hole_before(start)
            .saturating_add(self.unseen.acknowledged)
    }

    /// Bytes up to a position were not seen. A hole that is wider than any window is none: the numbering begins anew, and
    /// nothing of it is told.
    pub(super) fn open_hole(&mut self, until: u64, now_ns: i64, tsval: u32) {
        if until - self.next < WIDEST_HOLE {
            if let Some(tap) = &mut self.tap {
                tap.missing(self.next - self.base, until - self.next, self.mss);
            }
            self.board.push(Stretch {
                start: self.next,
                first_ns: now_ns,
                last_ns: now_ns,
                sacked_ns: 0,
                lost_ns: 0,
                copies: None,
                bytes: (until - self.next) as u32,
                tsval,
                arrival: NOT_KEPT,
                identification: 0,
                state: State::InFlight,
                unseen: true,
                late: false,
            });
        }
        self.next = until;
    }

    /// The byte after the last that the sender has sent before what it sends again now: packets that are missing before
    /// that, and no repairs, were new.
    pub(super) fn sent_until(&self) -> u64 {
        let missing_bytes = self.unseen.open() as u64 * u64::from(self.mss);
        self.unseen.until.max(self.next + missing_bytes)
    }

    fn place_missing(
        &mut self,
        data: &Data,
        fresh: u32,
        slot: Slot,
        found: Option<Hole>,
        rows: &mut Rows,
    ) {
        let new = data.start >= self.next;
        if self.board.is_empty() {
            self.unseen.forget();
        }
        let hole = found.unwrap_or_else(|| self.hole(data.start));
        let mut left = fresh.saturating_sub(hole.packets);
        self.fill_hole(hole.packets.saturating_sub(fresh));
        let cursor = self.unseen.cursor.max(self.una);
        let until = if new { hole.start } else { data.start };
        if until >= cursor {
            self.sent_unseen((cursor, until), &mut left, slot, data, rows);
        } else {
            self.sent_unseen((cursor, hole.start), &mut left, slot, data, rows);
            self.sent_unseen((self.una, until), &mut left, slot, data, rows);
        }
        for _ in 0..left {
            self.unseen.wait(slot);
        }
        if new {
            // At the sender packets without data are missed too, and nothing new is sent a round trip late.
            if self.vantage != Vantage::Sender {
                self.sent_before(data);
            }
            self.unseen.settle();
        }
    }

    /// So many packets more were new data: of those that wait, or else of those that were taken for repairs since the last
    /// new data was seen.
    fn fill_hole(&mut self, packets: u32) {
        let packets = packets as usize;
        let waiting = self.unseen.open().min(packets);
        self.unseen
            .slots
            .truncate(self.unseen.slots.len() - waiting);
        let guessed = self.unseen.guesses.len() - self.unseen.settled_guesses;
        for _ in 0..guessed.min(packets - waiting) {
            if let Some(Guess { start, .. }) = self.unseen.guesses.pop_back() {
                self.board.take_back(self.board.place(start));
            }
        }
    }

    /// Of what comes now as new, so much was sent before: since the last new data, and long enough ago to be sent again.
    fn sent_before(&mut self, data: &Data) {
        let soon_ns = self.soon_after_ns();
        let open = self.unseen.slots.iter().skip(self.unseen.settled);
        let old = open.filter(|slot| data.now_ns - slot.after_ns >= soon_ns);
        let packets = old.count();
        if packets > 0 {
            let bytes = packets as u64 * u64::from(self.mss);
            self.unseen.until = self.unseen.until.max(data.start + bytes);
            let end = self.unseen.settled + packets;
            self.unseen.slots.drain(self.unseen.settled..end);
        }
    }

    /// All data that was sent between two times was seen: the sender counts its packets, and there was no gap up to data that
    /// was sent later.
    pub(super) fn all_seen(&self, since_ns: i64, until_ns: i64) -> bool {
        let no_gap = self.unseen.gap_ns.is_some_and(|gap_ns| gap_ns < since_ns);
        no_gap && self.last_data_ns >= until_ns
    }

    /// Nothing is sent again sooner.
    fn soon_after_ns(&self) -> i64 {
        (self.rtt.min_ns as f64 * TOO_SOON) as i64
    }

    /// What was taken for a repair that was not seen was something else if the repair is seen sooner after it than the
    /// sender can have missed it.
    pub(super) fn was_not_repaired(&mut self, index: usize, data: &Data) {
        let soon_ns = self.soon_after_ns();
        let Some(start) = self.board.get(index).map(|one| one.start) else {
            return;
        };
        let guess = self.unseen.guesses.iter().rfind(|one| one.start == start);
        if guess.is_some_and(|one| data.now_ns - one.slot.after_ns < soon_ns)
            && self.board.take_back(index)
        {
            if let Some(slot) = self.unseen.take_guess(start) {
                self.unseen.wait(slot);
            }
        }
    }

    /// A packet that was not seen between two times: gives when it passed at the latest.
    pub(super) fn slot_between(&mut self, since_ns: i64, now_ns: i64) -> Option<i64> {
        let until_ns = now_ns - self.soon_after_ns();
        let slot = self.unseen.take_slot(since_ns, until_ns)?;
        Some(slot.before_ns)
    }

    /// When the last packet of which nobody knows what it was passed at the latest, if that can have been repaired by now.
    pub(super) fn last_unseen_ns(&self, now_ns: i64) -> i64 {
        let until_ns = now_ns - self.soon_after_ns();
        let mut latest_first = self.unseen.slots.iter().rev();
        let found = latest_first.find(|slot| slot.after_ns <= until_ns);
        found.map_or(i64::MIN, |slot| slot.before_ns)
    }

    /// Of what is missing between two positions, in their order, as much was sent again as there are packets.
    fn sent_unseen(
        &mut self,
        (from, until): (u64, u64),
        left: &mut u32,
        slot: Slot,
        data: &Data,
        rows: &mut Rows,
    ) {
        let soon_ns = self.soon_after_ns();
        let high = self.board.high_sacked();
        let until = if self.board.lost_bytes() > 0 {
            until
        } else {
            until.min(high)
        };
        let mut at = from;
        for _ in 0..MOST_LOOKED_AT {
            if *left == 0 || at >= until {
                return;
            }
            let index = self.board.place(at);
            let Some(stretch) = self.board.get(index) else {
                return;
            };
            let start = stretch.start.max(at);
            let lost = stretch.state == State::Lost;
            let expired = lost && self.repairs.after_timeout(self.una);
            let missing = stretch.state != State::Sacked
                && (lost || stretch.start < high)
                && data.now_ns - stretch.last_ns >= soon_ns;
            let end = stretch.end();
            if !missing || start >= until {
                at = end;
                continue;
            }
            at = end.min(start + u64::from(self.mss.max(1)));
            if !expired && self.has_arrived(start, at) {
                continue;
            }
            *left -= 1;
            self.unseen.guess(start, slot);
            self.one_unseen(start, at, slot, data, rows);
        }
    }

    /// It has arrived, as acknowledgements that have passed the point tell: it was not sent again, unless the timer made the
    /// sender begin anew before it could hear of them.
    fn has_arrived(&self, start: u64, end: u64) -> bool {
        let acked = self.pending.back().map_or(self.una, |ack| ack.position);
        end <= acked || self.passed.has(start, end)
    }

    fn one_unseen(&mut self, start: u64, end: u64, slot: Slot, data: &Data, rows: &mut Rows) {
        let mut cause = None;
        for index in self.board.between(start, end) {
            let own = Data { start, ..*data };
            let cause = *cause.get_or_insert_with(|| self.repair(index, &own, rows));
            let missed_ns = self.board.get(index).map_or(0, |stretch| stretch.lost_ns);
            let (sent_ns, tsval) = if self.vantage == Vantage::Sender {
                let earliest_ns = slot.after_ns.max(missed_ns);
                (earliest_ns.min(data.now_ns), slot.tsval)
            } else {
                (data.now_ns, data.tsval.unwrap_or(0))
            };
            let copy = Copied {
                sent_ns,
                tsval,
                arrival: NOT_KEPT,
                seen: false,
                cause,
                late: false,
                extra: false,
            };
            self.send_again(index, copy, 0, rows);
        }
        self.repairs.repaired = self.repairs.repaired.max(end);
        self.unseen.cursor = end;
    }
}
