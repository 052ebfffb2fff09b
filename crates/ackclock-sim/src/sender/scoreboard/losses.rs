//! Loss detection by time or by count, and the order of retransmissions.

use std::cmp::Reverse;

use ackclock_core::Time;

use super::{
    is_unretransmitted, Rack, Scoreboard, EVER_RETRANSMITTED, LOST, RETRANSMITTED, SACKED,
};

/// Losses that loss detection has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct DetectedLosses {
    /// Segments marked lost.
    pub lost: u32,
    /// True if one of them was a retransmission.
    pub lost_retransmission: bool,
    /// Time at which all overtaken segments will be lost unless they are delivered (RACK's reordering timer).
    pub next: Option<Time>,
    /// True if detection did not run, so that timer goes on.
    pub unchanged: bool,
}

impl DetectedLosses {
    /// Result when detection did not run.
    pub fn unchanged() -> DetectedLosses {
        DetectedLosses {
            unchanged: true,
            ..DetectedLosses::default()
        }
    }

    fn await_until(&mut self, due: Time) {
        self.next = Some(self.next.map_or(due, |next| next.max(due)));
    }
}

impl Scoreboard {
    /// Detect losses by RACK (RFC 8985 section 6.2, step 5): a segment sent before `rack`'s is lost once
    /// `rack.rtt + window` have passed since its sending.
    pub fn detect_by_time(&mut self, rack: &Rack, window: Time, now: Time) -> DetectedLosses {
        let mut losses = DetectedLosses::default();
        let patience = rack.rtt + window;
        let overtaken = |sent, sequence| rack.has_overtaken(sent, sequence);
        while let Some(&(sequence, sent)) = self.retransmit_queue.front() {
            if self.is_latest_retransmission(sequence, sent) {
                if !overtaken(sent, sequence) {
                    break;
                }
                if sent + patience > now {
                    losses.await_until(self.last_retransmitted_before(rack) + patience);
                    break;
                }
                self.mark_retransmission_lost(sequence, &mut losses);
            }
            self.retransmit_queue.pop_front();
        }
        while let Some((sequence, sent)) = self.next_unchecked(self.next) {
            if !overtaken(sent, sequence) {
                break;
            }
            if sent + patience > now {
                losses.await_until(self.last_sent_before(rack) + patience);
                break;
            }
            self.mark_lost(sequence, &mut losses);
        }
        losses
    }

    /// Last transmission of the retransmissions in flight that `rack` has overtaken.
    fn last_retransmitted_before(&self, rack: &Rack) -> Time {
        let retransmit_queue = self.retransmit_queue.iter();
        retransmit_queue
            .take_while(|&&(sequence, sent)| rack.has_overtaken(sent, sequence))
            .filter(|&&(sequence, sent)| self.is_latest_retransmission(sequence, sent))
            .last()
            .map_or(Time::ZERO, |&(_, sent)| sent)
    }

    /// Last transmission of the unchecked segments that `rack` has overtaken. It runs for few ACKs: once three
    /// segments are SACKed, the reordering window is zero.
    fn last_sent_before(&self, rack: &Rack) -> Time {
        let (mut sequence, mut last) = (self.checked_below, Time::ZERO);
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

    /// Detect losses by RFC 6675's `IsLost`: three SACKed segments are above it.
    pub fn detect_by_count(&mut self) -> DetectedLosses {
        let mut losses = DetectedLosses::default();
        if let Some(third) = self.highest_sacked[2] {
            while let Some((sequence, _)) = self.next_unchecked(third) {
                self.mark_lost(sequence, &mut losses);
            }
        }
        losses
    }

    /// Mark the first unacknowledged segment lost (three duplicate ACKs or a partial ACK without SACK).
    pub fn mark_head_lost(&mut self) -> DetectedLosses {
        let mut losses = DetectedLosses::default();
        let head = self.unacknowledged;
        if head < self.next && self.segment(head).flags & (LOST | SACKED) == 0 {
            self.checked_below = self.checked_below.max(head);
            self.mark_lost(head, &mut losses);
        }
        losses
    }

    /// True if this is the last transmission of a retransmitted segment, neither SACKed nor lost.
    fn is_latest_retransmission(&self, sequence: u64, sent: Time) -> bool {
        sequence >= self.unacknowledged && {
            let segment = self.segment(sequence);
            let was_resent = segment.flags & (EVER_RETRANSMITTED | SACKED) == EVER_RETRANSMITTED;
            was_resent && !is_unretransmitted(segment.flags) && segment.sent == sent
        }
    }

    /// Next segment below `end` that was sent once, is not SACKed and not checked yet.
    fn next_unchecked(&mut self, end: u64) -> Option<(u64, Time)> {
        self.checked_below = self.checked_below.max(self.unacknowledged);
        while self.checked_below < end {
            let segment = self.segment(self.checked_below);
            if segment.flags & SACKED != 0 {
                self.checked_below = segment.flight_start;
            } else if segment.flags & (LOST | EVER_RETRANSMITTED) != 0 {
                self.checked_below += 1;
            } else {
                return Some((self.checked_below, segment.sent));
            }
        }
        None
    }

    fn mark_lost(&mut self, sequence: u64, losses: &mut DetectedLosses) {
        let segment = self.segment_mut(sequence);
        segment.flags |= LOST;
        let unretransmitted = is_unretransmitted(segment.flags);
        self.unretransmitted += u32::from(unretransmitted);
        self.checked_below = self.checked_below.max(sequence + 1);
        self.lost_end = self.lost_end.max(sequence + 1);
        if sequence < self.retransmitted_below {
            self.lost_retransmission.push(Reverse(sequence));
        }
        self.lost += 1;
        losses.lost += 1;
    }

    fn mark_retransmission_lost(&mut self, sequence: u64, losses: &mut DetectedLosses) {
        let segment = self.segment_mut(sequence);
        let newly = segment.flags & LOST == 0;
        let in_flight = segment.flags & RETRANSMITTED != 0;
        segment.flags = (segment.flags | LOST) & !RETRANSMITTED;
        self.retrans_out -= u32::from(in_flight);
        self.unretransmitted += 1;
        self.lost += u32::from(newly);
        self.lost_retransmission.push(Reverse(sequence));
        losses.lost += 1;
        losses.lost_retransmission = true;
    }

    /// Mark everything not SACKed as lost after a timeout, except segments that `spare` excepts by their
    /// sending time (RFC 8985 section 6.3 spares those sent less than an RTT ago).
    pub fn mark_all_lost(&mut self, spare: impl Fn(Time) -> bool) {
        for sequence in self.unacknowledged..self.next {
            let head = sequence == self.unacknowledged;
            let segment = self.segment_mut(sequence);
            if segment.flags & SACKED != 0 || (!head && spare(segment.sent)) {
                continue;
            }
            let before = segment.flags;
            segment.flags = (before | LOST) & !RETRANSMITTED;
            self.lost += u32::from(before & LOST == 0);
            self.retrans_out -= u32::from(before & RETRANSMITTED != 0);
            self.unretransmitted += u32::from(!is_unretransmitted(before));
        }
        self.lost_end = self.next;
        self.retransmitted_below = self.unacknowledged;
        self.lost_retransmission.clear();
    }

    /// Clear all loss marks. Segments detected as lost by time or count, and not retransmitted, are not checked
    /// a second time, unless `anew`.
    #[cold]
    pub fn clear_losses(&mut self, anew: bool) {
        for sequence in self.unacknowledged..self.next {
            self.segment_mut(sequence).flags &= !LOST;
        }
        self.lost = 0;
        self.unretransmitted = 0;
        self.retransmitted_below = self.unacknowledged;
        self.lost_end = self.unacknowledged;
        self.lost_retransmission.clear();
        if anew {
            self.checked_below = self.unacknowledged;
            self.rebuild_retransmit_queue();
        }
    }

    /// Rebuild the queue of retransmissions by their last transmission.
    fn rebuild_retransmit_queue(&mut self) {
        let outstanding = self.unacknowledged..self.next;
        let mut losses: Vec<(u64, Time)> = outstanding
            .map(|sequence| (sequence, *self.segment(sequence)))
            .filter(|(_, segment)| {
                segment.flags & (SACKED | EVER_RETRANSMITTED) == EVER_RETRANSMITTED
            })
            .map(|(sequence, segment)| (sequence, segment.sent))
            .collect();
        losses.sort_unstable_by_key(|&(sequence, sent)| (sent, sequence));
        self.retransmit_queue = losses.into();
    }

    /// Next lost segment to retransmit: the lowest.
    #[inline]
    pub fn next_lost(&mut self) -> Option<u64> {
        if self.unretransmitted == 0 {
            return None;
        }
        self.lowest_lost()
    }

    #[inline(never)]
    fn lowest_lost(&mut self) -> Option<u64> {
        let again = self.next_lost_retransmission();
        let first = self.next_lost_original();
        again.map_or(first, |again| {
            Some(first.map_or(again, |first| first.min(again)))
        })
    }

    fn next_lost_retransmission(&mut self) -> Option<u64> {
        while let Some(&Reverse(sequence)) = self.lost_retransmission.peek() {
            if sequence >= self.unacknowledged && self.awaits_retransmission(sequence) {
                return Some(sequence);
            }
            self.lost_retransmission.pop();
        }
        None
    }

    fn next_lost_original(&mut self) -> Option<u64> {
        self.retransmitted_below = self.retransmitted_below.max(self.unacknowledged);
        while self.retransmitted_below < self.lost_end {
            let segment = self.segment(self.retransmitted_below);
            if segment.flags & SACKED != 0 {
                self.retransmitted_below = segment.flight_start;
            } else if self.awaits_retransmission(self.retransmitted_below) {
                return Some(self.retransmitted_below);
            } else {
                self.retransmitted_below += 1;
            }
        }
        None
    }

    fn awaits_retransmission(&self, sequence: u64) -> bool {
        is_unretransmitted(self.segment(sequence).flags)
    }
}

/// Duplicate ACKs, which count segments that arrived without SACK (RFC 5681 section 3.2, RFC 6582).
impl Scoreboard {
    /// Count a duplicate ACK without SACK: some segment has arrived.
    pub fn count_duplicate(&mut self) {
        self.sacked += 1;
        self.limit_duplicates();
    }

    /// Limit the count of duplicates: they count segments other than the first hole and lost ones.
    fn limit_duplicates(&mut self) {
        let missing = self.lost.max(1);
        self.sacked = self.sacked.min(self.outstanding().saturating_sub(missing));
    }

    /// Correct the count of duplicates after a cumulative ACK of `segments` segments: one filled a
    /// hole, the others are those the duplicates stood for.
    pub fn forget_duplicates(&mut self, segments: u32) {
        self.sacked -= self.sacked.min(segments.saturating_sub(1));
        self.limit_duplicates();
    }

    /// Clear the count of duplicates (end of recovery without SACK).
    pub fn clear_duplicates(&mut self) {
        self.sacked = 0;
    }
}
