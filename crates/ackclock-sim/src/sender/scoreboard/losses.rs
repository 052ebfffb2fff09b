//! Which segments are lost, by time or by count, and which of them to send again next.

use std::cmp::Reverse;

use ackclock_core::Time;

use super::{is_unrepaired, Rack, Scoreboard, EVER_RETRANSMITTED, LOST, RESENT, SACKED};

/// What loss detection found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Segments marked lost.
    pub lost: u32,
    /// Whether one of them was a retransmission.
    pub lost_again: bool,
    /// When all that were overtaken will be lost if they stay away (RACK's reordering timer).
    pub next: Option<Time>,
    /// Nothing was looked for: that timer runs on.
    pub unchanged: bool,
}

impl Found {
    /// Nothing was looked for.
    pub fn unchanged() -> Found {
        Found {
            unchanged: true,
            ..Found::default()
        }
    }

    fn wait(&mut self, due: Time) {
        self.next = Some(self.next.map_or(due, |next| next.max(due)));
    }
}

impl Scoreboard {
    /// RACK (RFC 8985 section 6.2, step 5): a segment sent before `rack`'s is lost once
    /// `rack.rtt + window` have passed since its sending.
    pub fn detect_by_time(&mut self, rack: &Rack, window: Time, now: Time) -> Found {
        let mut found = Found::default();
        let patience = rack.rtt + window;
        let overtaken = |sent, sequence| rack.has_overtaken(sent, sequence);
        while let Some(&(sequence, sent)) = self.resendings.front() {
            if self.is_resending_in_flight(sequence, sent) {
                if !overtaken(sent, sequence) {
                    break;
                }
                if sent + patience > now {
                    found.wait(self.last_resent_before(rack) + patience);
                    break;
                }
                self.lose_again(sequence, &mut found);
            }
            self.resendings.pop_front();
        }
        while let Some((sequence, sent)) = self.next_unjudged(self.next) {
            if !overtaken(sent, sequence) {
                break;
            }
            if sent + patience > now {
                found.wait(self.last_sent_before(rack) + patience);
                break;
            }
            self.lose(sequence, &mut found);
        }
        found
    }

    /// Last sending of the retransmissions in flight that `rack` has overtaken.
    fn last_resent_before(&self, rack: &Rack) -> Time {
        let resendings = self.resendings.iter();
        resendings
            .take_while(|&&(sequence, sent)| rack.has_overtaken(sent, sequence))
            .filter(|&&(sequence, sent)| self.is_resending_in_flight(sequence, sent))
            .last()
            .map_or(Time::ZERO, |&(_, sent)| sent)
    }

    /// Last sending of the unjudged segments that `rack` has overtaken. Few ACKs can ask: once three
    /// segments are SACKed, patience ends.
    fn last_sent_before(&self, rack: &Rack) -> Time {
        let (mut sequence, mut last) = (self.judged, Time::ZERO);
        while sequence < self.next {
            let segment = self.segment(sequence);
            if segment.flags & SACKED != 0 {
                sequence = segment.flight_start;
                continue;
            }
            if segment.flags & (LOST | EVER_RETRANSMITTED) == 0 {
                if !rack.has_overtaken(segment.sent, sequence) {
                    break;
                }
                last = segment.sent;
            }
            sequence += 1;
        }
        last
    }

    /// RFC 6675's `IsLost`: three SACKed segments lie above it.
    pub fn detect_by_count(&mut self) -> Found {
        let mut found = Found::default();
        if let Some(third) = self.highest_sacked[2] {
            while let Some((sequence, _)) = self.next_unjudged(third) {
                self.lose(sequence, &mut found);
            }
        }
        found
    }

    /// Marks the first unacknowledged segment lost (three duplicate ACKs or a partial ACK without SACK).
    pub fn lose_head(&mut self) -> Found {
        let mut found = Found::default();
        let head = self.unacknowledged;
        if head < self.next && self.segment(head).flags & (LOST | SACKED) == 0 {
            self.judged = self.judged.max(head);
            self.lose(head, &mut found);
        }
        found
    }

    /// Whether this is the last sending of a segment sent again, neither SACKed nor lost.
    fn is_resending_in_flight(&self, sequence: u64, sent: Time) -> bool {
        sequence >= self.unacknowledged && {
            let segment = self.segment(sequence);
            let was_resent = segment.flags & (EVER_RETRANSMITTED | SACKED) == EVER_RETRANSMITTED;
            was_resent && !is_unrepaired(segment.flags) && segment.sent == sent
        }
    }

    /// The next segment below `end` that was sent once, is not SACKed and not judged yet.
    fn next_unjudged(&mut self, end: u64) -> Option<(u64, Time)> {
        self.judged = self.judged.max(self.unacknowledged);
        while self.judged < end {
            let segment = self.segment(self.judged);
            if segment.flags & SACKED != 0 {
                self.judged = segment.flight_start;
            } else if segment.flags & (LOST | EVER_RETRANSMITTED) != 0 {
                self.judged += 1;
            } else {
                return Some((self.judged, segment.sent));
            }
        }
        None
    }

    fn lose(&mut self, sequence: u64, found: &mut Found) {
        let segment = self.segment_mut(sequence);
        segment.flags |= LOST;
        let unrepaired = is_unrepaired(segment.flags);
        self.unrepaired += u32::from(unrepaired);
        self.judged = self.judged.max(sequence + 1);
        self.lost_end = self.lost_end.max(sequence + 1);
        if sequence < self.repaired {
            self.lost_again.push(Reverse(sequence));
        }
        self.lost += 1;
        found.lost += 1;
    }

    fn lose_again(&mut self, sequence: u64, found: &mut Found) {
        let segment = self.segment_mut(sequence);
        let newly = segment.flags & LOST == 0;
        let in_flight = segment.flags & RESENT != 0;
        segment.flags = (segment.flags | LOST) & !RESENT;
        self.resent -= u32::from(in_flight);
        self.unrepaired += 1;
        self.lost += u32::from(newly);
        self.lost_again.push(Reverse(sequence));
        found.lost += 1;
        found.lost_again = true;
    }

    /// A timeout: everything not SACKed is lost, but for segments that `spare` excepts by their
    /// sending time (RFC 8985 section 6.3 spares those sent less than an RTT ago).
    pub fn lose_all(&mut self, spare: impl Fn(Time) -> bool) {
        for sequence in self.unacknowledged..self.next {
            let head = sequence == self.unacknowledged;
            let segment = self.segment_mut(sequence);
            if segment.flags & SACKED != 0 || (!head && spare(segment.sent)) {
                continue;
            }
            let before = segment.flags;
            segment.flags = (before | LOST) & !RESENT;
            self.lost += u32::from(before & LOST == 0);
            self.resent -= u32::from(before & RESENT != 0);
            self.unrepaired += u32::from(!is_unrepaired(before));
        }
        self.lost_end = self.next;
        self.repaired = self.unacknowledged;
        self.lost_again.clear();
    }

    /// None counts as lost any more. What had been found lost by time or count, and was not sent again, is not judged
    /// a second time, unless `anew`.
    #[cold]
    pub fn forget_losses(&mut self, anew: bool) {
        for sequence in self.unacknowledged..self.next {
            self.segment_mut(sequence).flags &= !LOST;
        }
        self.lost = 0;
        self.unrepaired = 0;
        self.repaired = self.unacknowledged;
        self.lost_end = self.unacknowledged;
        self.lost_again.clear();
        if anew {
            self.judged = self.unacknowledged;
            self.list_resendings();
        }
    }

    /// Lists all that was sent again, by its last sending.
    fn list_resendings(&mut self) {
        let outstanding = self.unacknowledged..self.next;
        let mut found: Vec<(u64, Time)> = outstanding
            .map(|sequence| (sequence, *self.segment(sequence)))
            .filter(|(_, segment)| {
                segment.flags & (SACKED | EVER_RETRANSMITTED) == EVER_RETRANSMITTED
            })
            .map(|(sequence, segment)| (sequence, segment.sent))
            .collect();
        found.sort_unstable_by_key(|&(sequence, sent)| (sent, sequence));
        self.resendings = found.into();
    }

    /// The lost segment to send again next: the lowest.
    #[inline]
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.unrepaired == 0 {
            return None;
        }
        self.lowest_lost()
    }

    #[inline(never)]
    fn lowest_lost(&mut self) -> Option<u64> {
        let again = self.next_lost_again();
        let first = self.next_lost_once();
        again.map_or(first, |again| {
            Some(first.map_or(again, |first| first.min(again)))
        })
    }

    fn next_lost_again(&mut self) -> Option<u64> {
        while let Some(&Reverse(sequence)) = self.lost_again.peek() {
            if sequence >= self.unacknowledged && self.is_to_be_repaired(sequence) {
                return Some(sequence);
            }
            self.lost_again.pop();
        }
        None
    }

    fn next_lost_once(&mut self) -> Option<u64> {
        self.repaired = self.repaired.max(self.unacknowledged);
        while self.repaired < self.lost_end {
            let segment = self.segment(self.repaired);
            if segment.flags & SACKED != 0 {
                self.repaired = segment.flight_start;
            } else if self.is_to_be_repaired(self.repaired) {
                return Some(self.repaired);
            } else {
                self.repaired += 1;
            }
        }
        None
    }

    fn is_to_be_repaired(&self, sequence: u64) -> bool {
        is_unrepaired(self.segment(sequence).flags)
    }
}
