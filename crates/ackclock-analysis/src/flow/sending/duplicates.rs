//! Without SACK: which copies arrived is told by how acknowledgements come.
//!
//! A receiver answers at once what comes above a hole, what fills it, and what it has already (RFC 5681 section 4.2). So
//! while something is missing there is an answer to each segment that arrives, and the times of all of them tell which of
//! several copies came: see `aligning.rs`. They are looked at when all is acknowledged that was sent before the last
//! duplicate. An answer that none of them gets came late: to a copy that was taken for lost.

use super::aligning::{Answer, Departure};
use super::arrivals::arrivals;
use super::Sending;
use crate::flow::scoreboard::Stretch;
use crate::tables::{Fate, Vantage};

/// Segments and answers that are looked at together.
const MOST: usize = 4096;
/// One in so many that the capture lost is not many.
const MOST_MISSED: u64 = 50;

/// What was sent and heard since something was missing.
#[derive(Debug, Default)]
pub struct Duplicates {
    sent: Vec<Departure>,
    heard: Vec<Answer>,
    /// When all before is acknowledged, nothing is missing.
    until: u64,
    /// What was sent up to this one had its answer before: when it was sent, and its first byte.
    answered: (i64, u64),
}

/// All copies of a stretch.
fn copies(stretch: &Stretch) -> impl Iterator<Item = Departure> + '_ {
    let sent = move |sent_ns: i64| Departure {
        start: stretch.start,
        end: stretch.end(),
        sent_ns,
        again: !stretch.once(),
    };
    let single = stretch.once().then(|| sent(stretch.last_ns));
    let several = stretch.copies.iter().flat_map(|all| all.iter());
    single
        .into_iter()
        .chain(several.map(move |copy| sent(copy.sent_ns)))
}

impl Sending {
    /// A duplicate acknowledgement came. A capture that loses many packets loses too many answers.
    pub(super) fn duplicated(&mut self, now_ns: i64) {
        let missed = self.totals.fates[Fate::CaptureLost as usize];
        let many = missed * MOST_MISSED > self.totals.data_segments;
        if self.sack_seen || many || self.vantage != Vantage::Sender {
            return;
        }
        if !self.is_missing() {
            let sent = self.sent_lately(now_ns);
            self.duplicates.get_or_insert_default().sent = sent;
        }
        if let Some(duplicates) = &mut self.duplicates {
            duplicates.until = self.next;
        }
        self.answered(self.una, now_ns);
    }

    /// Something is missing, as a duplicate told.
    #[inline]
    pub(super) fn is_missing(&self) -> bool {
        let duplicates = self.duplicates.as_ref();
        duplicates.is_some_and(|duplicates| !duplicates.heard.is_empty())
    }

    /// A segment is sent.
    #[inline]
    pub(super) fn sends(&mut self, start: u64, end: u64, sent_ns: i64) {
        let Some(duplicates) = &mut self.duplicates else {
            return;
        };
        if !duplicates.heard.is_empty() && duplicates.sent.len() < MOST {
            duplicates.sent.push(Departure {
                start,
                end,
                sent_ns,
                again: false,
            });
        }
    }

    /// The acknowledgement is heard that follows one of all before a position.
    pub(super) fn answered(&mut self, before: u64, now_ns: i64) {
        let Some(duplicates) = &mut self.duplicates else {
            return;
        };
        duplicates.heard.push(Answer {
            heard_ns: now_ns,
            before,
            after: self.una,
        });
        let many = duplicates.heard.len().max(duplicates.sent.len()) >= MOST;
        if self.una >= duplicates.until || many {
            self.look_back();
        }
    }

    /// What may not have had its answer yet, in the order of sending.
    fn sent_lately(&self, now_ns: i64) -> Vec<Departure> {
        let lately = (now_ns - 4 * self.smoothed.srtt_ns, 0);
        let answered = self.duplicates.as_ref().map(|before| before.answered);
        let since = answered.map_or(lately, |answered| answered.max(lately));
        let settling = self.settling.stretches().flat_map(copies);
        let outstanding = self.board.iter().flat_map(copies);
        let all = settling.chain(outstanding);
        let mut sent: Vec<Departure> = all.filter(|one| (one.sent_ns, one.start) > since).collect();
        sent.sort_by_key(|one| (one.sent_ns, one.start));
        sent
    }

    /// Tells which copies arrived.
    fn look_back(&mut self) {
        let Some(duplicates) = self.duplicates.as_deref_mut() else {
            return;
        };
        let (mut sent, heard) = (
            std::mem::take(&mut duplicates.sent),
            std::mem::take(&mut duplicates.heard),
        );
        mark_copies(&mut sent);
        let (soon_ns, round_ns) = (self.soon_ns(), self.smoothed.srtt_ns.max(1));
        let (arrived, last) = arrivals(&sent, &heard, soon_ns, round_ns);
        if let Some(duplicates) = self.duplicates.as_deref_mut() {
            duplicates.answered = last.map_or((0, 0), |last| (last.sent_ns, last.start));
        }
        let since_ns = sent.first().map_or(i64::MAX, |first| first.sent_ns);
        let copies = arrived.into_iter().filter(|one| one.again);
        self.settling.arrived(copies, since_ns);
    }
}

/// What was sent more than once is told.
fn mark_copies(sent: &mut [Departure]) {
    let mut starts: Vec<u64> = sent.iter().map(|one| one.start).collect();
    starts.sort_unstable();
    for one in sent {
        let first = starts.partition_point(|&start| start < one.start);
        one.again |= starts.get(first + 1) == Some(&one.start);
    }
}
