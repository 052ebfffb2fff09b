//! What the sender hears: acknowledgements, when they have come to it.

use super::tap::Said;
use super::unseen::Hole;
use super::{Ack, Data, Sending, WIDEST_HOLE};
use crate::flow::capacity::Passed;
use crate::flow::scoreboard::{State, Stretch};
use crate::rows::Rows;
use crate::series::RttSample;
use crate::tables::{Fate, Vantage};
use ackclock_core::tcp::seq;

/// Acknowledgements that wait at once.
const MOST_PENDING: usize = 1 << 14;

/// What an acknowledgement says of a stretch that it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// When the sender hears it.
    pub now_ns: i64,
    /// The echo of the copy that arrived.
    pub echo: Option<u32>,
    /// The copy that arrived waited for one that was sent then.
    pub filled_ns: Option<i64>,
}

impl Sending {
    /// Takes in what the sender has heard by now, and tells what is settled. What it echoes says what it has heard, but
    /// for acknowledgements of the same tick.
    #[inline]
    pub fn hear(&mut self, now_ns: i64, echo: Option<u32>, rows: &mut Rows) {
        while self.has_come(0, now_ns, echo) {
            self.hear_next(now_ns, rows);
        }
        if self.settling.due(now_ns) && !self.is_missing() {
            self.settle(now_ns, rows);
        }
    }

    /// Whether the sender has heard the acknowledgement by now that is so many behind the next one.
    #[inline]
    fn has_come(&self, behind: usize, now_ns: i64, echo: Option<u32>) -> bool {
        self.pending.get(behind).is_some_and(|ack| {
            let ahead = ack
                .timestamps
                .zip(echo)
                .map_or(0, |((tsval, _), echo)| seq::distance(tsval, echo));
            ahead < 0 || ahead == 0 && ack.seen_ns + self.lead_ns <= now_ns
        })
    }

    #[inline]
    fn hear_next(&mut self, now_ns: i64, rows: &mut Rows) {
        if let Some(ack) = self.pending.pop_front() {
            self.apply(&ack, (ack.seen_ns + self.lead_ns).min(now_ns), rows);
        }
    }

    /// What is missing before the first answer to an acknowledgement is taken for sent before that was heard: a burst that
    /// finds a queue full loses its end. That hole, if there is one.
    #[inline]
    pub(super) fn hear_up_to_a_hole(&mut self, data: &Data, rows: &mut Rows) -> Option<Hole> {
        if self.lead_ns == 0 || data.start <= self.next || !self.acks_seen {
            return None;
        }
        while self.has_come(1, data.now_ns, data.tsecr) {
            self.hear_next(data.now_ns, rows);
        }
        let hole = self.hole(data.start);
        if hole.packets == 0 || !self.has_come(0, data.now_ns, data.tsecr) {
            return None;
        }
        self.left_hole = true;
        self.open_hole(data.start, data.now_ns, data.tsval.unwrap_or(0));
        Some(hole)
    }

    /// An acknowledgement was seen.
    #[inline]
    pub fn ack(&mut self, ack: &Ack, rows: &mut Rows) {
        self.acks_seen = true;
        self.note(ack, rows);
        if let Some((tsval, tsecr)) = ack.timestamps {
            self.ack_echoes.sent(tsval, ack.seen_ns);
            if let Some(half_ns) = self.own_echoes.echoed(tsecr, ack.seen_ns) {
                self.rtt_timestamps.add(half_ns + self.lead_ns);
            }
        }
        if self.lead_ns == 0 {
            self.apply(ack, ack.seen_ns, rows);
            return;
        }
        for &(start, end) in ack.sack.iter().take(usize::from(ack.blocks)) {
            self.passed.join(start, end);
        }
        if self.pending.len() == MOST_PENDING {
            if let Some(first) = self.pending.pop_front() {
                self.apply(&first, first.seen_ns + self.lead_ns, rows);
            }
        }
        self.pending.push_back(*ack);
    }

    /// What data says of when it was sent, and of the acknowledgement that it echoes.
    #[inline]
    pub(super) fn look_at_timestamps(&mut self, data: &Data) {
        if let Some(tsval) = data.tsval {
            self.own_echoes.sent(tsval, data.now_ns);
            if self.lead_ns > 0 {
                self.clock.passed(tsval, data.now_ns);
                if let Some((late_ns, tick_ns)) = self.clock.late_ns() {
                    self.rounds.late(late_ns - tick_ns);
                }
            }
        }
        let half_ns = data
            .tsecr
            .and_then(|tsecr| self.ack_echoes.echoed(tsecr, data.now_ns));
        if self.next == self.base && data.start > self.base {
            return; // All before it was lost: it waited for a timer, and answers nothing.
        }
        if let Some(half_ns) = half_ns {
            self.sender_half_sample(data.now_ns, half_ns);
            if let Some(tap) = self.tap.as_mut().filter(|_| self.lead_ns > 0) {
                tap.answered(data, half_ns);
            }
        } else if let Some(tap) = self.tap.as_mut().filter(|_| self.lead_ns > 0) {
            tap.together(data, self.lead_ns);
        }
    }

    pub(super) fn sender_half_sample(&mut self, now_ns: i64, half_ns: i64) {
        self.sender_half.add(half_ns);
        self.far.take(half_ns, self.ack_echoes.ahead());
        if self.lead_ns > 0 {
            self.lead_ns = self.far.recent_ns().max(1);
            self.rounds.whole_rtt(half_ns + self.receiver_half.min_ns);
            self.rounds.capacity.arrived(
                Passed {
                    now_ns,
                    bytes: self.totals.payload_bytes,
                    rtt_ns: half_ns,
                },
                (self.sender_half.min_ns, self.rtt.min_ns),
                self.mss,
            );
        }
    }

    /// How long the sender had nothing under way, at least, before it sent this so long after all was acknowledged: what
    /// the packet spent in a queue is no part of it.
    pub(super) fn idle_ns(&self, after_ns: i64, data: &Data) -> i64 {
        match self
            .clock
            .late_ns()
            .filter(|_| data.tsval.is_some() && self.lead_ns > 0)
        {
            Some((late_ns, _)) => {
                let heard_ns = self.last_ack_ns + self.sender_half.min_ns;
                after_ns.min(data.now_ns - late_ns - heard_ns)
            }
            None if self.lead_ns > 0 => after_ns - self.rtt.min_ns,
            None => after_ns,
        }
    }

    /// Data has come to the end of the window before the last one: the sender sent it when it had not heard of the last.
    pub(super) fn has_filled(&self) -> bool {
        let end = self.next + u64::from(self.mss);
        self.edge_before
            .is_some_and(|edge| self.next <= edge && edge < end)
    }

    /// The sender hears an acknowledgement.
    #[inline]
    fn apply(&mut self, ack: &Ack, now_ns: i64, rows: &mut Rows) {
        if ack.position > self.next + 1 && ack.position - self.next < WIDEST_HOLE {
            let missed = self.hole_before(ack.position);
            self.unseen.acknowledged = self.unseen.acknowledged.saturating_add(missed);
            self.open_hole(ack.position, now_ns, 0);
        }
        let position = ack.position.min(self.next);
        // The rate is that at which acknowledgements pass the point: their way to the sender may vary.
        if self.empty_since_ns.is_none() {
            let delivered = self.arrived_bytes();
            let (srtt_ns, least_ns) = (self.smoothed.srtt_ns, self.rtt.min_ns);
            self.rounds
                .step(ack.seen_ns, srtt_ns, delivered, least_ns, &mut rows.beside);
        }
        self.tap_before();
        let duplicates = self.totals.duplicate_acks;
        let pipe = self.pipe_bytes();
        if self.sent_since_ack > 0 {
            self.latched_pipe_bytes = pipe;
        }
        if let Some((start, end)) = ack.twice {
            self.sack_seen = true;
            self.arrived_twice(start, end);
        }
        let mut rtt = None;
        if position > self.una {
            rtt = self.advance(position, ack, now_ns, rows);
        } else if position == self.una {
            self.repeated(ack, now_ns);
        }
        if ack.blocks > 0 {
            self.sacked(ack, now_ns, &mut rtt);
        }
        self.lose(now_ns);
        if let Some((sent_ns, rtt_ns)) = rtt {
            self.rtt_sample(sent_ns, rtt_ns, rows);
            self.rounds.capacity.acknowledged(
                Passed {
                    now_ns: ack.seen_ns,
                    bytes: self.arrived_bytes(),
                    rtt_ns: rtt_ns - self.lead_ns,
                },
                (self.receiver_half.min_ns, self.rtt.min_ns),
                self.mss,
            );
        } else if ack.blocks > 0 || position == self.una {
            self.rounds.capacity.interrupted();
        }
        let was_shut = self.is_shut();
        if let Some(window_bytes) = ack.window_bytes {
            self.window_bytes = Some(window_bytes);
            self.totals.window_max_bytes = self.totals.window_max_bytes.max(window_bytes);
            let edge = self.edge.unwrap_or(0).max(position + window_bytes);
            if self.edge != Some(edge) {
                self.edge_before = self.edge.filter(|_| !was_shut);
                self.edge = Some(edge);
            }
        }
        let window = self.rounds.window_bytes();
        let room = self.pipe_bytes() + (window / 4).max(4 * u64::from(self.mss)) <= window;
        let room = room && !self.is_shut() && !self.repairs.within(self.una);
        let unused = room && self.had_room && self.sent_since_ack == 0;
        self.had_room = room;
        let after_ns = now_ns - self.last_heard_ns;
        self.rounds.acked(after_ns, unused, was_shut);
        self.sent_since_ack = 0;
        self.last_heard_ns = now_ns;
        self.heard_seen_ns = ack.seen_ns;
        self.last_echo = ack.timestamps.map(|(_, tsecr)| tsecr);
        let duplicate = self.totals.duplicate_acks > duplicates;
        self.tap_heard(
            ack.seen_ns,
            Said {
                selective: ack.blocks > 0 || duplicate,
                marked: ack.marked,
            },
            rows,
        );
    }

    /// The cumulative acknowledgement advances; gives when the newest segment in it was sent, and its RTT.
    #[inline]
    fn advance(
        &mut self,
        position: u64,
        ack: &Ack,
        now_ns: i64,
        rows: &mut Rows,
    ) -> Option<(i64, i64)> {
        let mut rtt = None;
        let mut how = Heard {
            now_ns,
            echo: ack.timestamps.map(|(_, tsecr)| tsecr),
            filled_ns: None,
        };
        let mut before_ns = None;
        while let Some(stretch) = self.board.take_acked(position) {
            how.filled_ns = before_ns.and_then(|sent_ns| self.behind(sent_ns));
            self.newest_delivered_ns = self.newest_delivered_ns.max(stretch.last_ns);
            if let Some(tap) = &mut self.tap {
                tap.covers(&stretch);
            }
            if stretch.once() && !stretch.unseen && !stretch.late {
                if stretch.state != State::Sacked && how.filled_ns.is_none() {
                    rtt = Some((stretch.last_ns, now_ns - stretch.last_ns));
                }
                if stretch.lost_ns == 0 {
                    before_ns = how.filled_ns.or(Some(stretch.last_ns));
                    self.delivered(&stretch, rows);
                    continue;
                }
            }
            let sent_ns = self.retire(stretch, &how, rows);
            how.echo = None;
            before_ns = how.filled_ns.or(Some(sent_ns));
        }
        self.totals.delivered_bytes += position - self.una;
        let before = std::mem::replace(&mut self.una, position);
        self.last_ack_ns = ack.seen_ns;
        self.advanced_ns = now_ns;
        self.duplicate_acks = 0;
        self.board.forget_below(position);
        self.passed.forget_below(position);
        self.repairs.advanced(position);
        if self.board.is_empty() {
            self.empty_since_ns = Some(now_ns);
            self.queued = 0;
        }
        if self.is_missing() {
            self.answered(before, now_ns);
        }
        rtt
    }

    /// Without SACK, what is acknowledged together with what filled a hole waited behind it, as many as duplicate
    /// acknowledgements told of: gives when that was sent, which is later than what waited.
    fn behind(&mut self, sent_ns: i64) -> Option<i64> {
        if self.sack_seen || self.queued == 0 {
            return None;
        }
        self.queued -= 1;
        Some(sent_ns)
    }

    fn delivered(&mut self, stretch: &Stretch, rows: &mut Rows) {
        let units = self.units(stretch.bytes);
        self.totals.fates[Fate::Delivered as usize] += u64::from(units);
        self.totals.fate_bytes[Fate::Delivered as usize] += u64::from(stretch.bytes);
        if rows.options.segments {
            let told = self.told(stretch, Fate::Delivered, 1.0);
            rows.told(&told);
        }
    }

    fn repeated(&mut self, ack: &Ack, now_ns: i64) {
        let same_window = ack.window_bytes == self.window_bytes || ack.blocks > 0;
        if ack.pure && !self.board.is_empty() && same_window {
            self.duplicate_acks += 1;
            self.totals.duplicate_acks += 1;
            // What the receiver has already is echoed (RFC 7323 section 4.3), what comes out of order is not.
            let echo = ack.timestamps.map(|(_, tsecr)| tsecr);
            self.queued += u32::from(echo == self.last_echo);
            if ack.blocks == 0 {
                self.duplicated(now_ns);
            }
        }
    }

    fn sacked(&mut self, ack: &Ack, now_ns: i64, rtt: &mut Option<(i64, i64)>) {
        self.sack_seen = true;
        let (newest, tap) = (&mut self.newest_delivered_ns, &mut self.tap);
        for &(start, end) in ack.sack.iter().take(usize::from(ack.blocks)) {
            self.board.sack(start, end, now_ns, |stretch| {
                *newest = (*newest).max(stretch.last_ns);
                if let Some(tap) = tap {
                    tap.covers(stretch);
                }
                if stretch.once() && !stretch.unseen && !stretch.late {
                    let sent_ns = stretch.last_ns;
                    if rtt.is_none_or(|(before_ns, _)| sent_ns > before_ns) {
                        *rtt = Some((sent_ns, now_ns - sent_ns));
                    }
                }
            });
        }
    }

    /// Takes for lost what RACK does: three segments were sacked above it, or its last copy was sent well before one
    /// that arrived (RFC 8985 section 6.2).
    fn lose(&mut self, now_ns: i64) {
        if self.board.sacked_bytes() >= 3 * u64::from(self.mss) {
            self.board.lose_below(self.board.high_sacked(), now_ns);
        } else if !self.sack_seen && self.duplicate_acks == 3 {
            self.board
                .lose_below(self.una + u64::from(self.mss), now_ns);
        }
        let reordering_ns = self.rtt.min_ns / 4;
        while let Some(&(sent_ns, start)) = self.resent.front() {
            if sent_ns + reordering_ns >= self.newest_delivered_ns {
                break;
            }
            self.resent.pop_front();
            self.board.lose_copy(start, sent_ns, now_ns);
        }
    }

    fn rtt_sample(&mut self, sent_ns: i64, rtt_ns: i64, rows: &mut Rows) {
        self.rtt.add(rtt_ns);
        self.receiver_half.add(rtt_ns - self.lead_ns);
        self.smoothed.add(rtt_ns);
        self.rounds.rtt(rtt_ns);
        if self.lead_ns == 0 {
            self.rounds.whole_rtt(rtt_ns);
        }
        if let Some(path) = self.path {
            rows.rtt(RttSample {
                time_ns: sent_ns,
                rtt_ns,
                flow: self.flow,
                path,
                behind: self.vantage == Vantage::Receiver,
            });
        }
    }
}
