//! Which copy of a stretch arrived: known once it is acknowledged, and for good when no DSACK can come any more.
//!
//! By the timestamp that the acknowledgement echoes (Eifel, RFC 3522); else a copy is taken for the one that arrived if
//! an acknowledgement of it can have come back in the time since. A DSACK (RFC 2883) tells of one more that arrived.
//!
//! Confidences are rounded from the shares that were right in every sixth case of the scoreboard, over all its vantages:
//! surest is what an echo, a DSACK or the receiver's side tells, less so what times tell, least a repair that nobody saw.

use ackclock_core::tcp::seq;
use std::collections::VecDeque;

use super::aligning::Departure;
use super::hearing::Heard;
use super::Sending;
use crate::flow::scoreboard::{Copied, State, Stretch};
use crate::rows::{Rows, Told, NOT_KEPT};
use crate::tables::{Cause, Fate, Vantage};

/// Stretches that wait at once.
const MOST_WAITING: usize = 4096;
/// Bytes whose acknowledgement is in the capture before them: how long they may be late.
const DISORDER_NS: i64 = 3_000_000;
/// How long a DSACK may take, besides two round trips.
const DSACK_NS: i64 = 100_000_000;
/// An acknowledgement after a smaller share of the least RTT is of an earlier copy.
const TOO_SOON: f64 = 0.9;
/// The same of the least of few samples, each of which may be longer than the path is.
const TOO_SOON_FOR_FEW: f64 = 0.6;
/// So many samples are few.
const FEW: u64 = 16;
/// As surely as an echo tells.
const SURE: f64 = 0.99;

/// A stretch that is acknowledged, and what is known of it.
#[derive(Debug)]
struct Waiting {
    stretch: Stretch,
    due_ns: i64,
    arrived: usize,
    confidence: f64,
    /// Which copy arrived was told by all acknowledgements together.
    looked_at: bool,
}

/// Stretches that are acknowledged and not settled, in the order of their positions.
#[derive(Debug, Default)]
pub struct Settling {
    waiting: VecDeque<Waiting>,
}

impl Settling {
    /// Something is to be settled.
    #[inline]
    pub fn due(&self, now_ns: i64) -> bool {
        self.waiting
            .front()
            .is_some_and(|first| first.due_ns <= now_ns)
    }

    fn find(&mut self, start: u64) -> Option<&mut Waiting> {
        let index = self
            .waiting
            .partition_point(|one| one.stretch.end() <= start);
        self.waiting
            .get_mut(index)
            .filter(|one| one.stretch.start <= start)
    }

    /// Bytes came that are acknowledged already, and were not seen: the capture has them out of order.
    pub fn fill(&mut self, start: u64, end: u64, arrival: u32) -> bool {
        let index = self
            .waiting
            .partition_point(|one| one.stretch.end() <= start);
        let Some(one) = self.waiting.get_mut(index) else {
            return false;
        };
        let hole = &mut one.stretch;
        if !hole.unseen || !hole.once() || hole.start > start || hole.end() < end {
            return false;
        }
        let mut pieces = Vec::with_capacity(2);
        if hole.end() > end {
            pieces.push(hole.split(end));
        }
        let before = hole.start < start;
        let mut came = if before {
            hole.split(start)
        } else {
            hole.clone()
        };
        came.unseen = false;
        came.arrival = arrival;
        let (due_ns, arrived, confidence) = (one.due_ns, one.arrived, one.confidence);
        if before {
            pieces.push(came);
        } else {
            one.stretch = came;
        }
        for stretch in pieces {
            let piece = Waiting {
                stretch,
                due_ns,
                arrived,
                confidence,
                looked_at: false,
            };
            self.waiting.insert(index + 1, piece);
        }
        true
    }

    /// The stretch that holds a position, to which something happened late.
    pub fn stretch(&mut self, start: u64) -> Option<&mut Stretch> {
        self.find(start).map(|one| &mut one.stretch)
    }

    /// A copy came that was not seen, behind one that was sent later: the later one was sent for nothing.
    pub fn came(&mut self, start: u64, now_ns: i64, arrival: u32, tsval: Option<u32>) -> bool {
        let Some(one) = self.find(start) else {
            return false;
        };
        let came = one.stretch.came(now_ns, arrival, tsval);
        if let Some(number) = came {
            one.arrived = one.arrived.min(number);
        }
        came.is_some()
    }

    /// All that wait.
    pub fn stretches(&self) -> impl Iterator<Item = &Stretch> {
        self.waiting.iter().map(|one| &one.stretch)
    }

    /// These copies arrived, in the order in which they were sent, and of all others since then none.
    pub fn arrived(&mut self, copies: impl Iterator<Item = Departure>, since_ns: i64) {
        for sent in copies {
            let open = |one: &&mut Waiting| !one.looked_at && one.confidence < SURE;
            let Some(one) = self.find(sent.start).filter(open) else {
                continue;
            };
            let all = one.stretch.copies.as_deref().map_or(&[][..], |all| all);
            let of_it = |copy: &Copied| copy.sent_ns == sent.sent_ns;
            let Some(number) = all.iter().position(of_it) else {
                continue;
            };
            let known = all[one.arrived].sent_ns < since_ns;
            if !known || number < one.arrived {
                one.arrived = number;
            }
            one.looked_at = true;
        }
    }

    /// One more copy of what begins at a position arrived.
    fn arrived_twice(&mut self, start: u64) -> bool {
        let Some(one) = self.find(start) else {
            return false;
        };
        let Some(copies) = one.stretch.copies.as_deref_mut() else {
            return true;
        };
        let behind = one.arrived + 1;
        match copies.iter_mut().skip(behind).find(|copy| !copy.extra) {
            Some(copy) => copy.extra = true,
            None if one.arrived > 0 => {
                copies[one.arrived].extra = true;
                one.arrived -= 1;
            }
            None => {}
        }
        one.confidence = 0.99;
        true
    }
}

impl Sending {
    /// A DSACK.
    pub(super) fn arrived_twice(&mut self, start: u64, end: u64) {
        if start < end && !self.settling.arrived_twice(start) {
            self.board.arrived_twice(start);
        }
    }

    /// A stretch is acknowledged that is not simply delivered; gives when what arrived was sent.
    pub(super) fn retire(&mut self, mut stretch: Stretch, heard: &Heard, rows: &mut Rows) -> i64 {
        let now_ns = heard.now_ns;
        if stretch.once() && self.came_again(&stretch, now_ns) {
            let missed_ns = stretch.lost_ns;
            stretch.add(Copied {
                sent_ns: missed_ns,
                tsval: stretch.tsval,
                arrival: NOT_KEPT,
                seen: false,
                cause: Cause::Fast,
                late: false,
                extra: false,
            });
            self.tell_copies(&stretch, Some(1), 0.6, rows);
            return missed_ns;
        }
        if stretch.once() && !stretch.unseen {
            let late = stretch.late && self.vantage != Vantage::Sender;
            let (fate, confidence) = if late {
                (Fate::Reordered, 0.95)
            } else {
                (Fate::Delivered, 0.99)
            };
            self.tell(&self.told(&stretch, fate, confidence), rows);
            return stretch.last_ns;
        }
        let (mut arrived, confidence) = self.which_arrived(&stretch, heard);
        if confidence < SURE {
            arrived = self.seen_rather(&stretch, arrived);
        }
        let copies = stretch.copies.as_deref();
        let sent_ns = copies.map_or(stretch.last_ns, |copies| copies[arrived].sent_ns);
        let due_ns = if stretch.once() {
            now_ns + DISORDER_NS.max(self.smoothed.srtt_ns / 4)
        } else {
            now_ns + 2 * self.smoothed.srtt_ns + DSACK_NS
        };
        self.settling.waiting.push_back(Waiting {
            stretch,
            due_ns,
            arrived,
            confidence,
            looked_at: false,
        });
        if self.settling.waiting.len() > MOST_WAITING {
            self.settle_first(rows);
        }
        sent_ns
    }

    /// What was taken for lost and arrived a round trip later was sent again, and that the capture does not have; unless it
    /// has all that the sender counts. For a segment that the capture has, no later packet is needed to show that there was
    /// no gap; and at its receiver it came.
    fn came_again(&self, stretch: &Stretch, now_ns: i64) -> bool {
        let arrived_ns = match stretch.state {
            State::Sacked => stretch.sacked_ns,
            State::InFlight | State::Lost => now_ns,
        };
        let round_ns = (self.rtt.min_ns as f64 * TOO_SOON) as i64;
        let until_ns = if stretch.unseen {
            arrived_ns - round_ns
        } else {
            i64::MIN
        };
        stretch.lost_ns > 0
            && !stretch.late
            && (stretch.unseen || self.vantage != Vantage::Receiver)
            && self.rtt.count > 0
            && arrived_ns - stretch.lost_ns >= round_ns
            && !self.all_seen(stretch.lost_ns, until_ns)
    }

    /// In the middle, what the capture has, while it is not known to miss anything that came: what it has not was lost before
    /// the point.
    fn seen_rather(&self, stretch: &Stretch, arrived: usize) -> usize {
        let whole = self.totals.fates[Fate::CaptureLost as usize] == 0;
        match stretch.copies.as_deref() {
            Some(copies) if whole && self.vantage == Vantage::Middle && !copies[arrived].seen => {
                let later = copies.iter().skip(arrived).position(|copy| copy.seen);
                let earlier = || copies.iter().take(arrived).rposition(|copy| copy.seen);
                later
                    .map(|behind| arrived + behind)
                    .or_else(earlier)
                    .unwrap_or(arrived)
            }
            _ => arrived,
        }
    }

    fn which_arrived(&self, stretch: &Stretch, heard: &Heard) -> (usize, f64) {
        let Some(copies) = stretch.copies.as_deref() else {
            return (0, 0.9);
        };
        let last = copies.len() - 1;
        if let Some(extra) = copies.iter().position(|copy| copy.extra) {
            return (extra.saturating_sub(1), 0.99);
        }
        if self.vantage == Vantage::Receiver {
            let seen = copies.iter().position(|copy| copy.seen);
            return (seen.unwrap_or(last), 0.99);
        }
        if let Some(late) = copies.iter().position(|copy| copy.late) {
            return (late, 0.95);
        }
        let apart = copies[0].tsval != copies[last].tsval;
        if let Some(echo) = heard
            .echo
            .filter(|_| apart && stretch.state != State::Sacked)
        {
            let sent = |tsval: u32| !seq::is_before(echo, tsval);
            if let Some(arrived) = copies.iter().rposition(|copy| sent(copy.tsval)) {
                return (arrived, 0.99);
            }
        }
        if let Some(filled_ns) = heard.filled_ns {
            let before = copies.iter().position(|copy| copy.sent_ns < filled_ns);
            return (before.unwrap_or(0), 0.9);
        }
        let arrived_ns = match stretch.state {
            State::Sacked => stretch.sacked_ns,
            State::InFlight | State::Lost => heard.now_ns,
        };
        let soon_ns = self.soon_ns();
        let can = |sent_ns: i64| arrived_ns - sent_ns >= soon_ns;
        let arrived = copies.iter().rposition(|copy| can(copy.sent_ns));
        (arrived.unwrap_or(0), 0.9)
    }

    /// An acknowledgement comes no sooner. Each RTT of a short flow may be longer by a delayed acknowledgement, or by the
    /// burst that was sent with its segment; the handshake's is not.
    pub(super) fn soon_ns(&self) -> i64 {
        let least_ns = match self.handshake_ns {
            Some(handshake_ns) => self.rtt.min_ns.min(handshake_ns),
            None => self.rtt.min_ns,
        };
        let share = if self.rtt.count < FEW {
            TOO_SOON_FOR_FEW
        } else {
            TOO_SOON
        };
        (least_ns as f64 * share) as i64
    }

    /// Tells what is due.
    pub(super) fn settle(&mut self, now_ns: i64, rows: &mut Rows) {
        while self.settling.due(now_ns) {
            self.settle_first(rows);
        }
    }

    fn settle_first(&mut self, rows: &mut Rows) {
        let Some(waiting) = self.settling.waiting.pop_front() else {
            return;
        };
        let Waiting {
            stretch,
            arrived,
            confidence,
            ..
        } = waiting;
        match &stretch.copies {
            Some(_) => self.tell_copies(&stretch, Some(arrived), confidence, rows),
            None if stretch.unseen => {
                self.tell(&self.told(&stretch, Fate::CaptureLost, 0.9), rows);
            }
            None => self.tell(&self.told(&stretch, Fate::Delivered, 0.9), rows),
        }
    }

    /// A stretch of which nobody will hear any more. Where no acknowledgements are seen, what has passed counts as
    /// delivered.
    pub(super) fn give_up(&mut self, stretch: Stretch, rows: &mut Rows) {
        if !self.acks_seen && !stretch.unseen {
            self.totals.delivered_bytes += u64::from(stretch.bytes);
        }
        let sacked = stretch.state == State::Sacked;
        if sacked {
            let heard = Heard {
                now_ns: stretch.sacked_ns,
                echo: None,
                filled_ns: None,
            };
            self.retire(stretch, &heard, rows);
        } else if stretch.copies.is_some() {
            self.tell_copies(&stretch, None, 0.8, rows);
        } else if let Some((fate, confidence)) = self.open(&stretch) {
            self.tell(&self.told(&stretch, fate, confidence), rows);
        }
    }

    /// What is known of a stretch that was sent once and is not acknowledged. One that was not seen was lost before the
    /// point, unless it may have arrived and most that were not seen have.
    fn open(&self, stretch: &Stretch) -> Option<(Fate, f64)> {
        let elsewhere = matches!(self.vantage, Vantage::Middle | Vantage::Receiver);
        let fates = &self.totals.fates;
        let missed = fates[Fate::CaptureLost as usize] > fates[Fate::LostBefore as usize];
        let told = self.sack_seen || !missed;
        match (stretch.unseen, stretch.state, self.vantage) {
            (true, ..) if elsewhere && told && stretch.end() < self.next => {
                Some((Fate::LostBefore, 0.9))
            }
            (true, ..) => None,
            (false, _, Vantage::Receiver) => Some((Fate::Delivered, 0.95)),
            (false, State::Lost, _) if stretch.lost_ns > 0 => Some((Fate::Lost, 0.9)),
            _ => Some((Fate::Unresolved, 1.0)),
        }
    }

    /// `arrived`: the copy that reached the receiver; without, the last is open.
    fn tell_copies(
        &mut self,
        stretch: &Stretch,
        arrived: Option<usize>,
        confidence: f64,
        rows: &mut Rows,
    ) {
        let Some(copies) = stretch.copies.as_deref() else {
            return;
        };
        let last = copies.len() - 1;
        for (number, copy) in copies.iter().enumerate() {
            let fate = match arrived {
                Some(arrived) if number == arrived && stretch.late && number == 0 => {
                    Fate::Reordered
                }
                Some(arrived) if number == arrived && !copy.seen => Fate::CaptureLost,
                Some(arrived) if number == arrived => Fate::Delivered,
                Some(arrived) if number > arrived => Fate::Spurious,
                None if number == last => Fate::Unresolved,
                _ if !copy.seen && self.vantage != Vantage::Sender => Fate::LostBefore,
                _ => Fate::Lost,
            };
            if fate == Fate::Lost && !copy.seen && self.ours {
                // It must have passed: the capture lost it, and the network too. Where times alone say that this is the
                // sender, it may have been lost on a short way to the point.
                self.totals.fates[Fate::CaptureLost as usize] +=
                    u64::from(self.units(stretch.bytes));
            }
            if fate == Fate::Lost && copy.seen {
                rows.lost(copy.arrival);
            }
            let told = self.told_copy(stretch, copy, fate, confidence);
            if number > 0 {
                let cause = match fate {
                    Fate::Spurious => Cause::Spurious,
                    _ => copy.cause,
                };
                self.totals.causes[cause as usize] += u64::from(told.units);
            }
            self.tell(&told, rows);
        }
    }

    /// Counts a fate and tells it.
    pub(super) fn tell(&mut self, told: &Told, rows: &mut Rows) {
        let fate = told.fate as usize;
        self.totals.fates[fate] += u64::from(told.units);
        if told.seen {
            self.totals.fate_bytes[fate] += u64::from(told.bytes);
        }
        rows.told(told);
    }
}
