//! What does not advance: sent again, and why; come late; made twice by the network.

use ackclock_core::tables::EventKind;
use ackclock_core::tcp::seq;

use super::{Data, Place, Sending};
use crate::flow::scoreboard::{Copied, State, Stretch};
use crate::rows::{How, Rows, Told, NOT_KEPT};
use crate::steps::Signal;
use crate::tables::{Cause, Fate, Vantage};

/// The shortest retransmission timeout that is in use: Linux's, with some slack.
const LEAST_RTO_NS: i64 = 190_000_000;
/// Copies of an acknowledged stretch that are kept with it.
const MOST_SPURIOUS: usize = 16;
/// What is late by less was not sent again, if no RTT is known (Wireshark's rule).
const UNKNOWN_RTT_NS: i64 = 3_000_000;
/// A retransmission comes no sooner after the hole than this share of the least RTT.
const TOO_SOON: f64 = 0.9;

/// A lost repair is repaired a round trip after it, or by this share of one sooner.
const EARLY: f64 = 0.15;

/// How far repairs are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repairs {
    /// What was sent before the timer expired ends here.
    timeout_until: u64,
    /// What was sent before fast recovery began ends here.
    recover: u64,
    /// A tail probe is out, sent when this was the last byte.
    probed: u64,
    /// The sender repairs repairs without its timer: it went back to what it had repaired.
    again: bool,
    /// Where the last hole begins that fast recovery has repaired.
    pub repaired: u64,
}

impl Repairs {
    /// Recovery of either kind goes on.
    pub fn within(&self, una: u64) -> bool {
        una < self.recover || self.after_timeout(una)
    }

    /// What was outstanding when the timer expired is not all acknowledged.
    pub fn after_timeout(&self, una: u64) -> bool {
        una < self.timeout_until
    }

    /// The cumulative acknowledgement advanced.
    #[inline]
    pub fn advanced(&mut self, una: u64) {
        if self.probed != 0 && una >= self.probed {
            self.probed = 0;
        }
    }
}

/// What a segment that does not advance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Again,
    /// A copy that was lost before the point, as it seemed.
    Came,
    Late,
    Duplicate,
}

impl Sending {
    /// Data below what was sent before.
    pub(super) fn old_data(&mut self, data: &Data, end: u64, arrival: u32, rows: &mut Rows) {
        let mut copy = Copied {
            sent_ns: data.now_ns,
            tsval: data.tsval.unwrap_or(0),
            arrival,
            seen: true,
            cause: Cause::Unknown,
            late: false,
            extra: false,
        };
        if data.start < self.una {
            self.acknowledged_data(data, end.min(self.una), &copy, rows);
        }
        let counted = matches!(data.place, Place::Next { .. });
        let mut cause = None;
        for index in self.board.between(data.start.max(self.una), end) {
            match self.kind(index, data) {
                Kind::Late => {
                    let late = self.vantage != Vantage::Sender;
                    let identification = data.identification.unwrap_or(0);
                    self.board.filled(index, copy, identification, late);
                }
                Kind::Duplicate => self.duplicate(index, data, rows),
                Kind::Came => {
                    self.board.came(index, data.now_ns, arrival, data.tsval);
                }
                Kind::Again => {
                    self.was_not_repaired(index, data);
                    copy.cause = *cause.get_or_insert_with(|| self.repair(index, data, rows));
                    self.unseen_repair(index, data, copy.cause, rows);
                    if copy.cause == Cause::Fast {
                        let goes_back = index > 0 && data.start < self.unseen.cursor;
                        self.repairs.again |= goes_back && counted;
                        self.repairs.repaired = self.repairs.repaired.max(data.start);
                    }
                    self.send_again(index, copy, data.identification.unwrap_or(0), rows);
                }
            }
        }
        if cause.is_some() && data.place != Place::Older {
            self.unseen.cursor = end;
        }
        self.between_numberings(data, end, rows);
        self.last_cause = cause.or(self.last_cause);
    }

    /// Data where there is no stretch: before the numbering began anew.
    fn between_numberings(&mut self, data: &Data, end: u64, rows: &mut Rows) {
        let from = data.start.max(self.una);
        let indices = self.board.between(from, end);
        let covered: u64 = indices
            .filter_map(|index| self.board.get(index))
            .map(|stretch| u64::from(stretch.bytes))
            .sum();
        let bytes = end.saturating_sub(from).saturating_sub(covered) as u32;
        if bytes > 0 {
            let told = Told {
                flow: self.flow,
                time_ns: data.now_ns,
                offset: from.saturating_sub(self.base),
                bytes,
                units: self.units(bytes),
                number: self.number(from) as u64,
                seen: true,
                fate: Fate::Unresolved,
                cause: Cause::Unknown,
                confidence: 0.0,
            };
            self.tell(&told, rows);
        }
    }

    /// Data that is acknowledged already.
    fn acknowledged_data(&mut self, data: &Data, end: u64, copy: &Copied, rows: &mut Rows) {
        let alone = self.vantage != Vantage::Sender;
        let same = |identification: u32, tsval: u32| {
            alone
                && data.identification == Some(identification)
                && data.tsval.is_none_or(|own| own == tsval)
        };
        let bytes = (end - data.start) as u32;
        let offset = data.start.saturating_sub(self.base);
        let mut told = Told {
            flow: self.flow,
            time_ns: data.now_ns,
            offset,
            bytes,
            units: self.units(bytes),
            number: offset / u64::from(self.mss.max(1)),
            seen: true,
            fate: Fate::Spurious,
            cause: Cause::Unknown,
            confidence: 0.95,
        };
        if self.settling.fill(data.start, end, copy.arrival) {
            return;
        }
        let same_bytes = |one: &&mut Stretch| one.start == data.start && one.end() == end;
        let known = self.settling.stretch(data.start).filter(same_bytes);
        let tsval = known.map(|one| one.tsval);
        let older = tsval.is_some_and(|tsval| self.older(data, tsval));
        if older
            && self
                .settling
                .came(data.start, data.now_ns, copy.arrival, data.tsval)
        {
            return;
        }
        if !self.acks_seen {
            told.fate = Fate::Unresolved;
        }
        if let Some(stretch) = self.settling.stretch(data.start) {
            // The copies of one stretch are as long as it is.
            let whole = stretch.start == data.start && stretch.bytes == bytes;
            if same(stretch.identification, stretch.tsval) {
                told.fate = Fate::Duplicate;
            } else if whole
                && stretch
                    .copies
                    .as_ref()
                    .is_none_or(|all| all.len() < MOST_SPURIOUS)
            {
                stretch.add(*copy);
                self.last_cause = Some(Cause::Unknown);
                self.sent_again_event(data, Cause::Unknown, rows);
                return;
            }
        }
        self.last_cause = Some(Cause::Spurious);
        if !self.acks_seen {
            self.totals.causes[Cause::Unknown as usize] += u64::from(told.units);
            self.tell(&told, rows);
            return;
        }
        let probe = bytes == 1 && end == self.una && self.una == self.next;
        let cause = match told.fate {
            Fate::Spurious if probe => Some(Cause::WindowProbe),
            Fate::Spurious => Some(Cause::Spurious),
            _ => None,
        };
        if let Some(cause) = cause {
            self.totals.causes[cause as usize] += u64::from(told.units);
            told.cause = cause;
            if cause == Cause::Spurious {
                self.sent_again_event(data, cause, rows);
            }
        }
        self.tell(&told, rows);
    }

    fn duplicate(&mut self, index: usize, data: &Data, rows: &mut Rows) {
        let Some(stretch) = self.board.get(index) else {
            return;
        };
        let told = Told {
            time_ns: data.now_ns,
            ..self.told(stretch, Fate::Duplicate, 0.95)
        };
        self.tell(&told, rows);
    }

    /// Whether a stretch comes late, a second time, or was sent again (Jaiswal et al., *Measurement and Classification
    /// of Out-of-Sequence Packets in a Tier-1 IP Backbone*, 2003, with timestamps besides). At the sender there is only
    /// one of them, but for what the capture itself has out of order.
    fn kind(&self, index: usize, data: &Data) -> Kind {
        let Some(stretch) = self.board.get(index) else {
            return Kind::Again;
        };
        let lag_ns = data.now_ns - stretch.last_ns;
        if !stretch.unseen {
            let sure = data
                .identification
                .is_some_and(|own| own == stretch.identification);
            let same_tick = data.tsval.is_some_and(|own| own == stretch.tsval);
            let agrees = data.tsval.is_none() || same_tick;
            let guess = data.identification.is_none() && same_tick && self.too_soon(lag_ns);
            let duplicate = (sure && agrees || guess) && !matches!(self.vantage, Vantage::Sender);
            let missed = stretch.copies.as_deref();
            let missed = missed.is_some_and(|copies| copies.iter().any(|copy| !copy.seen));
            return match (duplicate, missed && self.older(data, stretch.tsval)) {
                (true, _) => Kind::Duplicate,
                (false, true) => Kind::Came,
                (false, false) => Kind::Again,
            };
        }
        if self.came_late(index, data, lag_ns) {
            Kind::Late
        } else {
            Kind::Again
        }
    }

    /// It was sent before what was seen of the stretch.
    fn older(&self, data: &Data, tsval: u32) -> bool {
        if self.vantage == Vantage::Sender {
            return false;
        }
        match data.place {
            Place::Older => true,
            Place::Next { .. } => false,
            Place::Unknown => data.tsval.is_some_and(|own| seq::is_before(own, tsval)),
        }
    }

    /// What fills a hole was sent before what came behind it.
    fn came_late(&self, index: usize, data: &Data, lag_ns: i64) -> bool {
        if self.vantage == Vantage::Sender && lag_ns > UNKNOWN_RTT_NS {
            return false;
        }
        match data.place {
            Place::Next { .. } if self.vantage != Vantage::Sender => return false,
            Place::Older => return true,
            _ => {}
        }
        let behind = self.board.get(index + 1).filter(|next| next.once());
        let tsval = data.tsval.zip(behind.map(|next| next.tsval));
        if let Some((own, next)) = tsval.filter(|(own, next)| own != next) {
            return seq::is_before(own, next);
        }
        let identification = data.identification.zip(
            behind
                .map(|next| next.identification)
                .filter(|&next| next != 0),
        );
        if let Some((own, next)) = identification {
            return (own.wrapping_sub(next) as u16).cast_signed() < 0;
        }
        self.too_soon(lag_ns)
    }

    fn too_soon(&self, lag_ns: i64) -> bool {
        match self.rtt.min() {
            Some(rtt_ns) => lag_ns < (rtt_ns as f64 * TOO_SOON) as i64,
            None => lag_ns < UNKNOWN_RTT_NS,
        }
    }

    /// Why a stretch is sent again; keeps what follows from it.
    pub(super) fn repair(&mut self, index: usize, data: &Data, rows: &mut Rows) -> Cause {
        let cause = self.cause(index, data);
        let now_ns = data.now_ns;
        let number = self.number(data.start);
        match cause {
            Cause::Timeout
                if self.una >= self.repairs.timeout_until || self.expired(index, data) =>
            {
                self.rounds.timeout(self.mss, self.repairs.within(self.una));
                self.repairs.timeout_until = self.sent_until();
                self.repairs.recover = 0;
                self.repairs.repaired = 0;
                self.unseen.cursor = 0;
                self.totals.timeouts += 1;
                self.tap_sent();
                self.board.lose_all();
                self.duplicate_acks = 0;
                if let Some(tap) = &mut self.tap {
                    tap.signal(Signal::Timeout, self.repairs.timeout_until, now_ns);
                }
                rows.event(
                    now_ns,
                    self.flow,
                    EventKind::Timeout,
                    number,
                    How::default(),
                );
            }
            Cause::Fast if self.una >= self.repairs.recover => {
                self.repairs.recover = self.sent_until();
                self.repairs.repaired = 0;
                self.totals.recoveries += 1;
                self.rounds.loss(self.mss);
                if let Some(tap) = &mut self.tap {
                    tap.signal(Signal::Loss, self.repairs.recover, now_ns);
                }
                rows.event(
                    now_ns,
                    self.flow,
                    EventKind::Recovery,
                    number,
                    How::default(),
                );
            }
            Cause::TailProbe => {
                self.repairs.probed = self.next;
                rows.event(
                    now_ns,
                    self.flow,
                    EventKind::TailProbe,
                    number,
                    How::default(),
                );
            }
            _ => {}
        }
        self.sent_again_event(data, cause, rows);
        cause
    }

    /// A repair that comes a round trip after its segment was taken for lost is not the first if what is behind it was
    /// repaired before, since holes are repaired in their order (RFC 6675 section 4, `NextSeg`): another was lost, before the
    /// point or, at the sender, by the capture and behind it. Else the window had no room for it. Of several that were lost
    /// one after the other one is told.
    fn unseen_repair(&mut self, index: usize, data: &Data, cause: Cause, rows: &mut Rows) {
        let srtt_ns = self.smoothed.srtt_ns;
        let counted = data.place != Place::Unknown;
        let known = match self.vantage {
            Vantage::Unknown => false,
            Vantage::Sender => counted,
            Vantage::Middle | Vantage::Receiver => true,
        };
        let Some(stretch) = self.board.get(index) else {
            return;
        };
        let (once, lost_ns) = (stretch.once(), stretch.lost_ns);
        let first = once && self.repairs.repaired <= data.start;
        let again = !once && stretch.state != State::Lost;
        if !known || first || again || lost_ns == 0 || cause != Cause::Fast {
            return;
        }
        let late = (data.now_ns - lost_ns) as f64 >= (1.0 - EARLY) * srtt_ns as f64;
        let sent_ns = match (counted, once) {
            (true, _) => self.slot_between(lost_ns, data.now_ns),
            (false, true) if late && srtt_ns > 0 => Some(lost_ns),
            _ => None,
        };
        let Some(sent_ns) = sent_ns else {
            return;
        };
        let unseen = Copied {
            sent_ns,
            tsval: data.tsval.unwrap_or(0),
            arrival: NOT_KEPT,
            seen: false,
            cause,
            late: false,
            extra: false,
        };
        self.send_again(index, unseen, 0, rows);
    }

    fn number(&self, start: u64) -> f64 {
        (start.saturating_sub(self.base) / u64::from(self.mss.max(1))) as f64
    }

    fn sent_again_event(&self, data: &Data, cause: Cause, rows: &mut Rows) {
        let how = How {
            class: cause as u8,
            ..How::default()
        };
        let (now_ns, number) = (data.now_ns, self.number(data.start));
        rows.event(now_ns, self.flow, EventKind::Retransmission, number, how);
    }

    fn quiet_ns(&self, now_ns: i64) -> i64 {
        now_ns - self.last_sent_ns.max(self.last_heard_ns)
    }

    fn timer_ns(&self) -> i64 {
        LEAST_RTO_NS.max(self.smoothed.srtt_ns + self.smoothed.srtt_ns / 10)
    }

    /// The retransmission timer can have expired: what is sent is the first that is missing, and quiet for long, or what
    /// is heard has not advanced for long and tells nothing new of it.
    fn expired(&self, index: usize, data: &Data) -> bool {
        let Some(head) = self.board.get(index).filter(|_| index == 0) else {
            return false;
        };
        if self.quiet_ns(data.now_ns) >= self.timer_ns() {
            return true;
        }
        let smoothed = &self.smoothed;
        // SACK tells of lost repairs too, later than the first hole's last copy if that was not seen.
        let variation_ns = if self.sack_seen {
            smoothed.variation_ns
        } else {
            0
        };
        let timer_ns = smoothed.srtt_ns + 4 * variation_ns;
        let lost_for_ns = data.now_ns - head.lost_ns;
        let just_lost = head.state == State::Lost && lost_for_ns < smoothed.srtt_ns / 2;
        let repaired_ns = if self.repairs.again {
            head.last_ns.max(self.last_unseen_ns(data.now_ns))
        } else {
            head.last_ns
        };
        let since_ns = data.now_ns - repaired_ns.max(self.advanced_ns);
        since_ns >= self.timer_ns().max(timer_ns) && !just_lost
    }

    fn cause(&self, index: usize, data: &Data) -> Cause {
        let Some(stretch) = self.board.get(index) else {
            return Cause::Unknown;
        };
        let sacked = self.board.sacked_bytes() > 0;
        let told = sacked || self.duplicate_acks > 0;
        let tail = stretch.end() == self.next && stretch.once();
        let calm = !told && !self.repairs.within(self.una) && self.repairs.probed == 0;
        let probes = tail && calm && (index > 0 || self.sack_seen);
        if probes && self.quiet_ns(data.now_ns) >= self.smoothed.srtt_ns {
            return Cause::TailProbe;
        }
        if self.expired(index, data) {
            return Cause::Timeout;
        }
        if self.una < self.repairs.timeout_until && stretch.start < self.repairs.timeout_until {
            return Cause::Timeout;
        }
        let above = self.board.high_sacked() > stretch.start && sacked;
        // What was sent later has arrived, or the window before it is being repaired.
        let overtaken = self.newest_delivered_ns > stretch.last_ns;
        let recovering = self.una < self.repairs.recover;
        let first = self.duplicate_acks > 0 && index == 0;
        if above || overtaken || recovering || first || stretch.state == State::Lost {
            return Cause::Fast;
        }
        Cause::Unknown
    }
}
