//! The sender's scoreboard: which segments are in flight, SACKed, lost, retransmitted.
//!
//! Costs are amortised O(1) per ACK whatever the window: a run of SACKed segments knows its end, so
//! a SACK block that grows by one segment costs one step; losses are found by a cursor that only moves
//! up and by a queue of retransmissions in the order of their sending.
//!
//! `in_flight` is RFC 6675's *pipe*: sent, neither SACKed nor lost, plus retransmissions.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ackclock_core::tcp::delivery_rate::{Sample, Sending};
use ackclock_core::Time;

use crate::options::Block;

mod buffers;
mod losses;
mod rack;

pub use losses::DetectedLosses;
pub use rack::{Rack, RackUpdate};

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission of it is in flight.
const RETRANSMITTED: u8 = 4;
/// It was sent more than once.
const EVER_RETRANSMITTED: u8 = 8;
const APPLICATION_LIMITED: u8 = 16;
/// A buffer of the sender's memory begins with it.
const FIRST: u8 = 32;

/// A duplicate threshold of three segments (RFC 5681, RFC 6675).
pub const DUPLICATE_THRESHOLD: u32 = 3;

/// State of a segment: its last transmission, and the connection's state at that time.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    sent: Time,
    /// Sending time of the segment whose delivery opened this flight (rate sample); once SACKed, the
    /// end of the run of SACKed segments that begins here, as a segment number.
    flight_start: u64,
    delivered_at: Time,
    /// Segments delivered before it was sent, modulo 2^32.
    delivered: u32,
    flags: u8,
}

/// Segments that an ACK delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// Segments delivered for the first time.
    pub segments: u32,
    /// Segments SACKed for the first time among them.
    pub sacked: u32,
    /// True if one of them had been sent more than once.
    pub retransmitted: bool,
    /// Sending times of the oldest and newest segment cumulatively acknowledged and sent once.
    pub oldest: Option<Time>,
    /// See `oldest`.
    pub newest: Option<Time>,
    /// Sending times of the oldest and newest segment SACKed and sent once.
    pub oldest_sacked: Option<Time>,
    /// See `oldest_sacked`.
    pub newest_sacked: Option<Time>,
    /// The lowest segment that was sent once, where some were SACKed, lost or retransmitted.
    pub original: Option<u64>,
    /// The most recently sent of all delivered segments.
    pub latest: Option<Sample>,
    /// Update of RACK, if it differs from `latest`: see [`RackUpdate`].
    pub rack_update: Option<RackUpdate>,
}

impl Delivery {
    #[inline]
    fn note_original(&mut self, sequence: u64) {
        self.original = Some(
            self.original
                .map_or(sequence, |lowest| lowest.min(sequence)),
        );
    }

    #[inline]
    fn count_delivered(&mut self, sequence: u64, segment: &Segment) {
        let newer = |latest: Sample| (latest.sent, latest.sequence) < (segment.sent, sequence);
        if self.latest.is_none_or(newer) {
            self.latest = Some(Sample {
                sequence,
                sent: segment.sent,
                flight_start: Time::from_picoseconds(segment.flight_start),
                delivered_at: segment.delivered_at,
                delivered: segment.delivered,
                retransmitted: segment.flags & EVER_RETRANSMITTED != 0,
                application_limited: segment.flags & APPLICATION_LIMITED != 0,
            });
        }
    }
}

/// The segments from the first unacknowledged to the last sent.
#[derive(Debug)]
pub struct Scoreboard {
    ring: Vec<Segment>,
    /// First segment not cumulatively acknowledged.
    pub unacknowledged: u64,
    /// Next segment to send for the first time.
    pub next: u64,
    /// Segments SACKed (or, without SACK, duplicate ACKs counted).
    pub sacked: u32,
    /// Segments marked lost and not delivered.
    pub lost: u32,
    /// Retransmissions in flight.
    pub retrans_out: u32,
    /// Lost segments of which no retransmission is in flight.
    unretransmitted: u32,
    /// Numbers of the three highest SACKed segments, highest first.
    highest_sacked: [Option<u64>; 3],
    /// Below it, every segment sent once has been checked for loss.
    checked_below: u64,
    /// Retransmissions in flight in the order of transmission; entries may be stale.
    retransmit_queue: VecDeque<(u64, Time)>,
    /// Below it, every lost segment has been retransmitted since.
    retransmitted_below: u64,
    /// One past the highest segment ever marked lost.
    lost_end: u64,
    /// Lost segments that the cursor `retransmitted_below` does not find: lost a second time, or late (a timeout had
    /// spared them). The lowest first; entries may be stale.
    lost_retransmission: BinaryHeap<Reverse<u64>>,
    /// Segments with which a buffer begins.
    firsts: u32,
}

impl Default for Scoreboard {
    fn default() -> Scoreboard {
        Scoreboard {
            ring: vec![Segment::default(); 16],
            unacknowledged: 0,
            next: 0,
            sacked: 0,
            lost: 0,
            retrans_out: 0,
            unretransmitted: 0,
            highest_sacked: [None; 3],
            checked_below: 0,
            retransmit_queue: VecDeque::new(),
            retransmitted_below: 0,
            lost_end: 0,
            lost_retransmission: BinaryHeap::new(),
            firsts: 0,
        }
    }
}

impl Scoreboard {
    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub fn outstanding(&self) -> u32 {
        (self.next - self.unacknowledged) as u32
    }

    /// Segments in flight: RFC 6675's pipe.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        (self.outstanding() + self.retrans_out).saturating_sub(self.sacked + self.lost)
    }

    /// True if everything outstanding was sent once and nothing is SACKed or lost.
    #[inline]
    pub fn is_clean(&self) -> bool {
        self.sacked | self.lost | self.retrans_out == 0 && self.retransmit_queue.is_empty()
    }

    /// The highest segment SACKed of those outstanding.
    #[inline]
    pub fn highest_sacked(&self) -> Option<u64> {
        self.highest_sacked[0].filter(|&highest| highest >= self.unacknowledged)
    }

    /// True if a segment was retransmitted, or is acknowledged, so that its state is gone.
    pub fn was_retransmitted(&self, sequence: u64) -> bool {
        sequence < self.unacknowledged
            || (sequence < self.next && self.segment(sequence).flags & EVER_RETRANSMITTED != 0)
    }

    /// True if retransmissions are in flight, or the first unacknowledged segment was retransmitted.
    pub fn has_retransmission(&self) -> bool {
        self.retrans_out > 0
            || (self.outstanding() > 0 && self.was_retransmitted(self.unacknowledged))
    }

    /// Last transmission of the first unacknowledged segment.
    pub fn head_sent(&self) -> Time {
        self.segment(self.unacknowledged).sent
    }

    #[inline]
    fn segment(&self, sequence: u64) -> &Segment {
        &self.ring[sequence as usize & (self.ring.len() - 1)]
    }

    #[inline]
    fn segment_mut(&mut self, sequence: u64) -> &mut Segment {
        let index = sequence as usize & (self.ring.len() - 1);
        &mut self.ring[index]
    }

    /// Make room for so many segments more.
    #[inline]
    pub fn reserve(&mut self, segments: u32) {
        while self.outstanding() as usize + segments as usize > self.ring.len() {
            self.grow();
        }
    }

    /// Record the first transmission of the next segment, for which there is room; returns its number.
    #[inline]
    pub fn send_next(&mut self, sending: &Sending) -> u64 {
        let sequence = self.next;
        self.next += 1;
        *self.segment_mut(sequence) = Segment {
            sent: sending.now,
            flight_start: sending.flight_start.picoseconds(),
            delivered_at: sending.delivered_at,
            delivered: sending.delivered as u32,
            flags: u8::from(sending.application_limited) * APPLICATION_LIMITED,
        };
        sequence
    }

    fn grow(&mut self) {
        let mut larger = vec![Segment::default(); self.ring.len() * 2];
        let mask = larger.len() - 1;
        for sequence in self.unacknowledged..self.next {
            larger[sequence as usize & mask] = *self.segment(sequence);
        }
        self.ring = larger;
    }

    /// Record the retransmission of a segment.
    pub fn retransmit(&mut self, sequence: u64, sending: &Sending) {
        let segment = self.segment_mut(sequence);
        let before = segment.flags;
        *segment = Segment {
            sent: sending.now,
            flight_start: sending.flight_start.picoseconds(),
            delivered_at: sending.delivered_at,
            delivered: sending.delivered as u32,
            flags: (before & (LOST | FIRST)) | RETRANSMITTED | EVER_RETRANSMITTED,
        };
        self.retrans_out += u32::from(before & RETRANSMITTED == 0);
        self.unretransmitted -= u32::from(is_unretransmitted(before));
        self.retransmit_queue.push_back((sequence, sending.now));
        if self.firsts > 0 {
            self.begin_buffer(sequence);
        }
    }

    /// Process a cumulative acknowledgement of everything below `ack`.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64, delivery: &mut Delivery) {
        if self.is_clean() {
            self.acknowledge_in_order(ack, delivery);
        } else {
            self.acknowledge_each(ack, delivery);
        }
    }

    /// Process a cumulative acknowledgement where [`Scoreboard::is_clean`].
    #[inline(always)]
    pub fn acknowledge_in_order(&mut self, ack: u64, delivery: &mut Delivery) {
        let first = *self.segment(self.unacknowledged);
        let last = *self.segment(ack - 1);
        delivery.segments += (ack - self.unacknowledged) as u32;
        delivery.oldest = Some(first.sent);
        delivery.newest = Some(last.sent);
        delivery.count_delivered(ack - 1, &last);
        if let Some(rack_update) = &mut delivery.rack_update {
            rack_update.acknowledged(ack - 1, last.sent);
        }
        if self.firsts > 0 {
            self.release(ack);
        }
        self.unacknowledged = ack;
    }

    fn acknowledge_each(&mut self, ack: u64, delivery: &mut Delivery) {
        for sequence in self.unacknowledged..ack {
            let segment = *self.segment(sequence);
            self.firsts -= u32::from(segment.flags & FIRST != 0);
            self.retrans_out -= u32::from(segment.flags & RETRANSMITTED != 0);
            self.lost -= u32::from(segment.flags & LOST != 0);
            self.unretransmitted -= u32::from(is_unretransmitted(segment.flags));
            if segment.flags & SACKED != 0 {
                self.sacked -= 1;
                continue;
            }
            delivery.segments += 1;
            delivery.count_delivered(sequence, &segment);
            if segment.flags & EVER_RETRANSMITTED != 0 {
                delivery.retransmitted = true;
                if let Some(rack_update) = &mut delivery.rack_update {
                    rack_update.acknowledged_retransmission(sequence, segment.sent);
                }
            } else {
                delivery.note_original(sequence);
                if let Some(rack_update) = &mut delivery.rack_update {
                    rack_update.acknowledged(sequence, segment.sent);
                }
                delivery.oldest = delivery.oldest.or(Some(segment.sent));
                delivery.newest = Some(segment.sent);
            }
        }
        self.unacknowledged = ack;
        self.checked_below = self.checked_below.max(ack);
        self.retransmitted_below = self.retransmitted_below.max(ack);
        if self.outstanding() == 0 {
            self.retransmit_queue.clear();
            self.lost_retransmission.clear();
        }
        while matches!(self.retransmit_queue.front(), Some(&(sequence, _)) if sequence < ack) {
            self.retransmit_queue.pop_front();
        }
    }

    /// Process a SACK block; only segments not SACKed before cost anything.
    #[inline]
    pub fn sack(&mut self, (start, end): Block, delivery: &mut Delivery) {
        let start = start.max(self.unacknowledged);
        let end = end.min(self.next);
        if start < end && self.run_end(start) < end {
            self.sack_run(start, end, delivery);
        }
    }

    /// End of the run of SACKed segments that begins with this one, as far as recorded.
    #[inline]
    fn run_end(&self, sequence: u64) -> u64 {
        let segment = self.segment(sequence);
        if segment.flags & SACKED == 0 {
            return sequence;
        }
        segment.flight_start
    }

    #[inline(never)]
    fn sack_run(&mut self, start: u64, end: u64, delivery: &mut Delivery) {
        let mut sequence = start;
        while sequence < end {
            if self.segment(sequence).flags & SACKED != 0 {
                sequence = self.segment(sequence).flight_start;
            } else {
                self.sack_one(sequence, delivery);
                sequence += 1;
            }
        }
        // The run now reaches at least `sequence`: remember it for the next, longer block.
        self.segment_mut(start).flight_start = sequence;
    }

    fn sack_one(&mut self, sequence: u64, delivery: &mut Delivery) {
        let segment = *self.segment(sequence);
        delivery.segments += 1;
        delivery.sacked += 1;
        delivery.count_delivered(sequence, &segment);
        if segment.flags & EVER_RETRANSMITTED != 0 {
            delivery.retransmitted = true;
            if let Some(rack_update) = &mut delivery.rack_update {
                rack_update.sacked_retransmission(sequence, segment.sent);
            }
        } else {
            delivery.note_original(sequence);
            if let Some(rack_update) = &mut delivery.rack_update {
                rack_update.sacked(sequence, segment.sent);
            }
            let oldest = delivery.oldest_sacked.unwrap_or(segment.sent);
            delivery.oldest_sacked = Some(oldest.min(segment.sent));
            let newest = delivery.newest_sacked.unwrap_or(segment.sent);
            delivery.newest_sacked = Some(newest.max(segment.sent));
        }
        self.retrans_out -= u32::from(segment.flags & RETRANSMITTED != 0);
        self.lost -= u32::from(segment.flags & LOST != 0);
        self.unretransmitted -= u32::from(is_unretransmitted(segment.flags));
        self.sacked += 1;
        let segment = self.segment_mut(sequence);
        segment.flags = SACKED | (segment.flags & (EVER_RETRANSMITTED | FIRST));
        segment.flight_start = sequence + 1;
        self.raise_highest(sequence);
        if self.firsts > 0 {
            self.merge(sequence);
        }
    }

    fn raise_highest(&mut self, sequence: u64) {
        let [first, second, third] = self.highest_sacked;
        self.highest_sacked = if Some(sequence) > first {
            [Some(sequence), first, second]
        } else if Some(sequence) > second {
            [first, Some(sequence), second]
        } else if Some(sequence) > third {
            [first, second, Some(sequence)]
        } else {
            return;
        };
    }
}

/// True if a segment is lost and has no retransmission in flight.
#[inline]
fn is_unretransmitted(flags: u8) -> bool {
    flags & (LOST | RETRANSMITTED) == LOST
}

#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod tests;
