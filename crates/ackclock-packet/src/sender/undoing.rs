//! Reductions that prove needless are taken back.
//!
//! A segment that only came late, behind others or after the timeout, is taken for lost. What proves it:
//!
//! - **Timestamps** (Eifel: RFC 3522 section 3.2): an ACK that advances answers a segment sent before the first
//!   retransmission.
//! - **DSACKs** (RFC 3708 section 2): all retransmissions of the episode arrived a second time.
//! - **F-RTO** (RFC 5682), for timeouts: see `frto.rs`.
//!
//! ```text
//!                              what proves it                     what is taken back
//!   Recovery, all acknowledged timestamps or DSACKs               the window
//!   Recovery, a part of it     timestamps, no retransmission out  the window and all marks of losses
//!   Recovery, Disorder, Open   DSACKs                             the window
//!   Loss                       timestamps, F-RTO                  the window and all marks of losses
//! ```
//!
//! Window and threshold come back to what they were, unless they have grown beyond (RFC 4015 section 3). What is then
//! still taken for lost begins another episode at once. A segment whose mark is taken back before it was sent again waits
//! for the timeout if it was lost: time condemns no segment twice.
//!
//! As Linux, and other than the RFCs: the window comes back whole, where RFC 4015 section 3.2 lets it start from what
//! is in flight; the retransmission timer is not made more patient (RFC 4015 section 3.3). DSACKs count while and after
//! the repair until the next, with those of segments long acknowledged; a probe's retransmission is no stamp.
//! A reduction for marks is never taken back (RFC 4015 section 3.2), and one for losses found during it neither.
//!
//! Deviation: without SACK nothing is taken back; Linux does by timestamps.

use ackclock_record::Happening;
use ackclock_units::Time;

use super::{whole_segments, Outlet, Phase, Sender};
use crate::options::timestamp;
use ackclock_congestion::Before;

/// What would have to be taken back, and what speaks for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    /// The window and threshold before the reduction, if there was one.
    before: Option<Before>,
    /// The first unacknowledged segment when the episode began; none if nothing can be taken back.
    from: Option<u64>,
    /// Retransmissions of the episode that no DSACK has reported, once there was one.
    unreported: Option<u32>,
    /// When the first of them was sent.
    first_resent: Option<Time>,
}

/// What an ACK says about whether segments had to be sent again.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// The timestamp that it echoes, if there are timestamps.
    pub echo: Option<Time>,
    /// Whether the cumulative acknowledgement advanced.
    pub advanced: bool,
    /// What was unacknowledged before it.
    pub prior_unacknowledged: u64,
    /// The lowest segment that it delivers and that was sent once, where some were out of order.
    pub original: Option<u64>,
    /// Whether it delivers something by SACK.
    pub selective: bool,
    /// Whether it reports nothing at all.
    pub duplicate: bool,
}

impl Undo {
    /// An episode begins with a reduction, unless `before` is none; so many retransmissions are out already.
    fn begin(&mut self, from: Option<u64>, before: Option<Before>, resent: u32) {
        self.before = before;
        self.from = from;
        self.unreported = (resent > 0).then_some(resent);
    }

    /// Nothing can be taken back.
    pub fn forget(&mut self) {
        self.from = None;
    }

    /// A segment is sent again.
    pub fn on_retransmission(&mut self, now: Time) {
        self.first_resent.get_or_insert(now);
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// A segment that was sent again has arrived twice.
    fn on_duplicate(&mut self, sequence: u64) {
        if self.from.is_some_and(|from| sequence >= from) {
            self.unreported = self.unreported.map(|count| count.saturating_sub(1));
        }
    }

    /// Whether all that was sent again arrived twice.
    fn all_were_reported(&self) -> bool {
        self.from.is_some() && self.unreported == Some(0)
    }

    /// Whether an ACK with this echo answers what was sent before anything was sent again, by the clock of timestamps.
    fn is_answered(&self, echo: Option<Time>) -> bool {
        let before = |first| echo.is_some_and(|echo| timestamp(echo) < timestamp(first));
        self.from.is_some() && self.first_resent.is_none_or(before)
    }
}

impl Sender {
    /// Keeps what a reduction is about to change.
    pub(super) fn remember(&mut self, reduces: bool) {
        if !self.tcp.undo_spurious && !self.tcp.frto {
            return;
        }
        let cwnd = self.controller.cwnd();
        let remembered = (cwnd / 2.0).floor() + (cwnd / 4.0).floor();
        let before = Before {
            cwnd,
            ssthresh: self.controller.ssthresh().max(remembered),
        };
        if !self.board.was_repaired() {
            self.undo.first_resent = None;
        }
        let from = (self.tcp.undo_spurious && self.tcp.sack).then_some(self.board.unacknowledged());
        let resent = self.board.resent();
        self.undo.begin(from, reduces.then_some(before), resent);
    }

    /// An ACK reports a segment that arrived twice. What the network has doubled proves nothing: there are no more
    /// duplicates than retransmissions.
    #[cold]
    pub(super) fn hear_duplicate(&mut self, sequence: u64, out: &mut impl Outlet) {
        if self.reordering.duplicates >= self.counters.retransmissions {
            return;
        }
        self.reordering.duplicates += 1;
        out.report(
            self.flow,
            Happening::SpuriousRetransmission,
            sequence as f64,
        );
        if !self.is_probe(sequence) {
            self.reordering.on_duplicate();
        }
        if self.board.was_sent_again(sequence) {
            self.undo.on_duplicate(sequence);
        }
    }

    /// Ends a repair that is complete, or that proves needless. Tells whether to look for losses now.
    pub(super) fn reconsider(
        &mut self,
        evidence: &Evidence,
        now: Time,
        out: &mut impl Outlet,
    ) -> bool {
        let over = self.episode.is_over(self.board.unacknowledged());
        match self.phase {
            Phase::Recovery if over => self.end_repair(evidence, now, out),
            Phase::Recovery => return self.reconsider_recovery(evidence, out),
            Phase::Loss => self.reconsider_timeout(evidence, over, now, out),
            Phase::Open | Phase::Disorder if self.undo.all_were_reported() => {
                self.reordering.on_undo();
                self.take_back(out);
            }
            _ => {}
        }
        true
    }

    /// All that was sent before the repair is acknowledged.
    pub(super) fn end_repair(&mut self, evidence: &Evidence, now: Time, out: &mut impl Outlet) {
        if self.is_needless(evidence) {
            self.take_back(out);
        } else {
            self.reordering.on_repaired();
        }
        self.leave_recovery(now);
    }

    /// Whether timestamps or DSACKs say so.
    pub(super) fn is_needless(&self, evidence: &Evidence) -> bool {
        self.undo.all_were_reported() || self.undo.is_answered(evidence.echo)
    }

    /// A part of what is repaired is acknowledged, or nothing new. While retransmissions are out that would tell the
    /// same, losses are not looked for.
    fn reconsider_recovery(&mut self, evidence: &Evidence, out: &mut impl Outlet) -> bool {
        if evidence.advanced && self.undo.is_answered(evidence.echo) {
            self.note_reordering(Some(evidence.prior_unacknowledged));
            if self.board.resent() > 0 {
                return false;
            }
            self.board.forget_losses(false);
            self.reopen(out);
        } else if self.undo.all_were_reported() {
            self.reordering.on_undo();
            self.reopen(out);
        }
        true
    }

    /// Takes a reduction back, and ends its phase.
    pub(super) fn reopen(&mut self, out: &mut impl Outlet) {
        self.take_back(out);
        self.phase = Phase::Open;
        self.prr = None;
    }

    fn take_back(&mut self, out: &mut impl Outlet) {
        self.undo.from = None;
        if let Some(before) = self.undo.before.take() {
            let cwnd = before.cwnd.max(f64::from(self.window));
            self.controller.undo(&Before { cwnd, ..before });
            self.window = whole_segments(self.controller.cwnd());
            self.withdraw_reduction();
        }
        let first = self.board.unacknowledged();
        out.report(self.flow, Happening::Undo, first as f64);
    }
}
