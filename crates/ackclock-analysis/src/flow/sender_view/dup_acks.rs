//! Without SACK: which copies arrived is told by how acknowledgements come.
//!
//! A receiver answers at once what comes above a hole, what fills it, and what it has already (RFC 5681 section 4.2).
//! So while something is missing there is an answer to each segment that arrives, and the times of all of them tell
//! which of several copies came: see `ack_alignment.rs`. They are looked at when all is acknowledged that was sent
//! before the last duplicate. An answer that none of them gets came late: to a copy that was marked lost.

use super::ack_alignment::{AckEvent, Departure};
use super::arrivals::arrivals;
use super::SenderView;
use crate::flow::scoreboard::SentRange;
use crate::tables::{Fate, Vantage};

/// Segments and answers that are looked at together.
const MAX_EVENTS: usize = 4096;
/// One in so many that the capture lost is not many.
const MAX_NOT_CAPTURED: u64 = 50;

/// Transmissions and acknowledgements since the first duplicate acknowledgement.
#[derive(Debug, Default)]
pub struct DupAcks {
    sent: Vec<Departure>,
    acks: Vec<AckEvent>,
    /// When all before is acknowledged, nothing is missing.
    until: u64,
    /// The last transmission that was matched before: its time and first byte.
    last_matched: (i64, u64),
}

/// All copies of a range.
fn copies(range: &SentRange) -> impl Iterator<Item = Departure> + '_ {
    let sent = move |sent_ns: i64| Departure {
        start: range.start,
        end: range.end(),
        sent_ns,
        is_retransmission: !range.has_one_transmission(),
    };
    let single = range.has_one_transmission().then(|| sent(range.last_ns));
    let several = range.copies.iter().flat_map(|all| all.iter());
    single
        .into_iter()
        .chain(several.map(move |copy| sent(copy.sent_ns)))
}

impl SenderView {
    /// A duplicate acknowledgement came. A capture that loses many packets loses too many answers.
    pub(super) fn on_dup_ack(&mut self, now_ns: i64) {
        let not_captured = self.totals.fates[Fate::NotCaptured as usize];
        let many = not_captured * MAX_NOT_CAPTURED > self.totals.data_segments;
        if self.has_sack || many || self.vantage != Vantage::Sender {
            return;
        }
        if !self.is_collecting() {
            let sent = self.recent_departures(now_ns);
            self.dup_acks.get_or_insert_default().sent = sent;
        }
        if let Some(dup_acks) = &mut self.dup_acks {
            dup_acks.until = self.snd_nxt;
        }
        self.on_ack_event(self.snd_una, now_ns);
    }

    /// Something is missing, as a duplicate told.
    #[inline]
    pub(super) fn is_collecting(&self) -> bool {
        let dup_acks = self.dup_acks.as_ref();
        dup_acks.is_some_and(|dup_acks| !dup_acks.acks.is_empty())
    }

    /// A segment is sent.
    #[inline]
    pub(super) fn on_send(&mut self, start: u64, end: u64, sent_ns: i64) {
        let Some(dup_acks) = &mut self.dup_acks else {
            return;
        };
        if !dup_acks.acks.is_empty() && dup_acks.sent.len() < MAX_EVENTS {
            dup_acks.sent.push(Departure {
                start,
                end,
                sent_ns,
                is_retransmission: false,
            });
        }
    }

    /// Process the acknowledgement that follows one of all before a position.
    pub(super) fn on_ack_event(&mut self, before: u64, now_ns: i64) {
        let Some(dup_acks) = &mut self.dup_acks else {
            return;
        };
        dup_acks.acks.push(AckEvent {
            ack_ns: now_ns,
            before,
            after: self.snd_una,
        });
        let many = dup_acks.acks.len().max(dup_acks.sent.len()) >= MAX_EVENTS;
        if self.snd_una >= dup_acks.until || many {
            self.match_acks();
        }
    }

    /// Return the transmissions that may not be acknowledged yet, in sending order.
    fn recent_departures(&self, now_ns: i64) -> Vec<Departure> {
        let lately = (now_ns - 4 * self.rtt_estimator.srtt_ns, 0);
        let last_matched = self.dup_acks.as_ref().map(|before| before.last_matched);
        let since = last_matched.map_or(lately, |last_matched| last_matched.max(lately));
        let resolution = self.resolution.sent_ranges().flat_map(copies);
        let outstanding = self.board.iter().flat_map(copies);
        let all = resolution.chain(outstanding);
        let mut sent: Vec<Departure> = all.filter(|one| (one.sent_ns, one.start) > since).collect();
        sent.sort_by_key(|one| (one.sent_ns, one.start));
        sent
    }

    /// Report which copies arrived.
    fn match_acks(&mut self) {
        let Some(dup_acks) = self.dup_acks.as_deref_mut() else {
            return;
        };
        let (mut sent, acks) = (
            std::mem::take(&mut dup_acks.sent),
            std::mem::take(&mut dup_acks.acks),
        );
        mark_copies(&mut sent);
        let (min_ack_delay_ns, round_ns) =
            (self.min_ack_delay_ns(), self.rtt_estimator.srtt_ns.max(1));
        let (arrived, last) = arrivals(&sent, &acks, min_ack_delay_ns, round_ns);
        if let Some(dup_acks) = self.dup_acks.as_deref_mut() {
            dup_acks.last_matched = last.map_or((0, 0), |last| (last.sent_ns, last.start));
        }
        let since_ns = sent.first().map_or(i64::MAX, |first| first.sent_ns);
        let copies = arrived.into_iter().filter(|one| one.is_retransmission);
        self.resolution.arrived(copies, since_ns);
    }
}

/// Mark the transmissions of ranges that were sent more than once.
fn mark_copies(sent: &mut [Departure]) {
    let mut starts: Vec<u64> = sent.iter().map(|one| one.start).collect();
    starts.sort_unstable();
    for one in sent {
        let first = starts.partition_point(|&start| start < one.start);
        one.is_retransmission |= starts.get(first + 1) == Some(&one.start);
    }
}
