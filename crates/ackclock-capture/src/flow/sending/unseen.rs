//! What was sent and lost before the point: gaps in the identifications of a sender that counts its packets tell how much
//! there was besides the bytes that are missing.

use super::{Data, Sending, WIDEST_HOLE};
use crate::flow::scoreboard::{Copied, State, Stretch};
use crate::rows::{Rows, NOT_KEPT};
use crate::tables::Vantage;

/// A sender counts its packets if so many agree with their sequence numbers, and so many times more than do not.
const ENOUGH: u32 = 8;
const RATHER: u32 = 3;
/// They go on if they are further by less, and count if they did so in so many packets in a row.
const LOST_BETWEEN: u16 = 256;
const IN_A_ROW: u8 = 2;
/// More packets than that are not missing at once.
const MOST_MISSING: u16 = 2048;
/// Stretches that are looked at for those that can have been sent again.
const MOST_LOOKED_AT: usize = 4096;
/// Nothing is sent again sooner after it was sent than this share of the least RTT.
const TOO_SOON: f64 = 0.9;

/// Where a packet belongs among those that its end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nobody knows.
    #[default]
    Unknown,
    /// Behind all that were seen, and so many that were not.
    Next {
        /// How many.
        missing: u32,
    },
    /// Before one that was seen.
    Older,
}

/// The identifications of an end's packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identities {
    expected: Option<u16>,
    agreed: u32,
    others: u32,
    in_a_row: u8,
}

impl Identities {
    /// A packet without data.
    #[inline]
    pub fn count(&mut self, identification: Option<u32>) {
        if let Some((own, ahead)) = self.ahead(identification) {
            self.goes_on(ahead);
            if ahead.cast_signed() >= 0 {
                self.expected = Some(own.wrapping_add(1));
            }
        }
    }

    /// Data in so many packets, behind a hole of so many: 0 too if it is none that nobody saw.
    #[inline]
    pub fn take(&mut self, identification: Option<u32>, packets: u32, hole: u32) -> Place {
        let Some((own, ahead)) = self.ahead(identification) else {
            return Place::Unknown;
        };
        self.goes_on(ahead);
        if u32::from(ahead) == hole {
            self.agreed += 1;
        } else {
            self.others += 1;
        }
        let counts = self.counts();
        let older = ahead.cast_signed() < 0;
        if !older || !counts {
            self.expected = Some(own.wrapping_add(packets as u16));
        }
        match (counts, older) {
            (false, _) => Place::Unknown,
            (true, true) => Place::Older,
            (true, false) if ahead > MOST_MISSING => Place::Unknown,
            (true, false) => Place::Next {
                missing: u32::from(ahead),
            },
        }
    }

    /// The identification of the next packet, if they go on.
    pub fn expected(&self) -> Option<u32> {
        self.expected
            .filter(|_| self.in_a_row >= IN_A_ROW)
            .map(u32::from)
    }

    #[inline]
    fn goes_on(&mut self, ahead: u16) {
        self.in_a_row = if ahead < LOST_BETWEEN {
            self.in_a_row.saturating_add(1)
        } else {
            self.in_a_row / 2
        };
    }

    #[inline]
    fn counts(&self) -> bool {
        self.agreed >= ENOUGH && self.agreed / RATHER >= self.others
    }

    /// 0 is none, but for a sender that counts and has come to it.
    #[inline]
    fn ahead(&self, identification: Option<u32>) -> Option<(u16, u16)> {
        let own = identification? as u16;
        if own == 0 && self.expected != Some(0) {
            return None;
        }
        let expected = self.expected.unwrap_or(own);
        Some((own, own.wrapping_sub(expected)))
    }
}

/// Packets that were not seen, as far as nobody knows what was in them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen {
    packets: u32,
    /// What ends here and comes now was sent before.
    pub until: u64,
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
        let elsewhere = matches!(self.vantage, Vantage::Middle | Vantage::Receiver);
        if !elsewhere || !self.acks_seen {
            return;
        }
        if let Place::Next { missing } = data.place {
            self.unseen.packets += missing;
        }
        if self.unseen.packets > 0 {
            self.place_missing(data, found, rows);
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
        let missing_bytes = u64::from(self.unseen.packets) * u64::from(self.mss);
        self.unseen.until.max(self.next + missing_bytes)
    }

    fn place_missing(&mut self, data: &Data, found: Option<Hole>, rows: &mut Rows) {
        let new = data.start >= self.next;
        let hole = found.unwrap_or_else(|| self.hole(data.start));
        self.unseen.packets = self.unseen.packets.saturating_sub(hole.packets);
        let cursor = self.repairs.repaired.max(self.una);
        let until = if new { hole.start } else { data.start };
        if until >= cursor {
            self.sent_unseen(cursor, until, data, rows);
        } else {
            self.sent_unseen(cursor, hole.start, data, rows);
            self.sent_unseen(self.una, until, data, rows);
        }
        if new {
            let bytes = u64::from(self.unseen.packets) * u64::from(self.mss);
            self.unseen.until = self.unseen.until.max(data.start + bytes);
            self.unseen.packets = 0;
        }
    }

    /// Of what is missing between two positions, in their order, as much was sent again as there are packets.
    fn sent_unseen(&mut self, from: u64, until: u64, data: &Data, rows: &mut Rows) {
        let soon_ns = (self.rtt.min_ns as f64 * TOO_SOON) as i64;
        let mut at = from;
        for _ in 0..MOST_LOOKED_AT {
            if self.unseen.packets == 0 || at >= until {
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
                && (lost || stretch.start < self.board.high_sacked())
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
            self.unseen.packets -= 1;
            self.one_unseen(start, at, data, rows);
        }
    }

    /// It has arrived, as acknowledgements that have passed the point tell: it was not sent again, unless the timer made the
    /// sender begin anew before it could hear of them.
    fn has_arrived(&self, start: u64, end: u64) -> bool {
        let acked = self.pending.back().map_or(self.una, |ack| ack.position);
        end <= acked || self.passed.has(start, end)
    }

    fn one_unseen(&mut self, start: u64, end: u64, data: &Data, rows: &mut Rows) {
        let mut cause = None;
        for index in self.board.between(start, end) {
            let own = Data { start, ..*data };
            let cause = *cause.get_or_insert_with(|| self.repair(index, &own, rows));
            let copy = Copied {
                sent_ns: data.now_ns,
                tsval: data.tsval.unwrap_or(0),
                arrival: NOT_KEPT,
                seen: false,
                cause,
                late: false,
                extra: false,
            };
            self.send_again(index, copy, 0, rows);
        }
        self.repairs.repaired = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_goes_through_0_and_packets_without_one_tell_nothing() {
        let mut identities = Identities::default();
        let mut take = |number: u32| identities.take(Some(number), 1, 0);
        for number in 65_500..65_536 {
            take(number);
        }
        assert_eq!(take(0), Place::Next { missing: 0 });
        assert_eq!(take(1), Place::Next { missing: 0 });
        assert_eq!(take(0), Place::Unknown, "no count");
        assert_eq!(take(3), Place::Next { missing: 1 });
        let mut none = Identities::default();
        for _ in 0..20 {
            assert_eq!(none.take(Some(0), 1, 0), Place::Unknown);
        }
    }
}
