//! Undo of spurious reductions.
//!
//! A segment that was only late, reordered or after the timeout, may be marked lost. Evidence that it was not:
//!
//! - **Timestamps** (Eifel: RFC 3522 section 3.2): an ACK that advances is for a segment sent before the first
//!   retransmission.
//! - **DSACKs** (RFC 3708 section 2): all retransmissions of the episode arrived a second time.
//! - **F-RTO** (RFC 5682), for timeouts: see `frto.rs`.
//!
//! ```text
//!                              evidence                           undone
//!   Recovery, all acknowledged timestamps or DSACKs               the window
//!   Recovery, a part of it     timestamps, no retransmission out  the window and all marks of losses
//!   Recovery, Disorder, Open   DSACKs                             the window
//!   Loss                       timestamps, F-RTO                  the window and all marks of losses
//! ```
//!
//! Window and threshold are restored, unless they have grown larger (RFC 4015 section 3). Segments that are then still
//! marked lost begin another episode immediately. A lost segment whose mark is undone before it was retransmitted waits
//! for the timeout: time marks no segment lost twice.
//!
//! As in Linux and unlike the RFCs: the window is restored completely, where RFC 4015 section 3.2 starts from the
//! segments in flight; the retransmission timer is not adapted (RFC 4015 section 3.3). DSACKs count during and after
//! the recovery until the next, with those of segments acknowledged before; a probe's retransmission sets no timestamp.
//! A reduction for marks is never undone (RFC 4015 section 3.2), nor is one for losses detected during it.
//!
//! Deviation: without SACK nothing is undone; Linux undoes by timestamps.

use ackclock_core::tables::EventKind;
use ackclock_core::Time;

use super::{floor_segments, CaState, Outlet, Sender};
use crate::options::timestamp;
use ackclock_congestion::PriorWindow;

/// State for the undo of a reduction, and the evidence for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undo {
    /// The window and threshold before the reduction, if there was one.
    before: Option<PriorWindow>,
    /// The first unacknowledged segment when the episode began; `None` if nothing can be undone.
    from: Option<u64>,
    /// Retransmissions of the episode that no DSACK has reported, once there was one.
    unreported: Option<u32>,
    /// Time of the first of them.
    first_retransmission: Option<Time>,
}

/// Evidence of an ACK on whether retransmissions were spurious.
#[derive(Clone, Copy, Debug)]
pub struct Evidence {
    /// The timestamp that it echoes, if there are timestamps.
    pub echo: Option<Time>,
    /// True if the cumulative acknowledgement advanced.
    pub advanced: bool,
    /// First unacknowledged segment before it.
    pub prior_unacknowledged: u64,
    /// The lowest segment that it delivers and that was sent once, where some were out of order.
    pub original: Option<u64>,
    /// True if it delivers something by SACK.
    pub selective: bool,
    /// True if it reports nothing.
    pub duplicate: bool,
}

impl Undo {
    /// Begin an episode, with a reduction unless `before` is `None`, and with retransmissions already in flight.
    fn begin(&mut self, from: Option<u64>, before: Option<PriorWindow>, retrans_out: u32) {
        self.before = before;
        self.from = from;
        self.unreported = (retrans_out > 0).then_some(retrans_out);
    }

    /// Discard the state: nothing can be undone.
    pub fn forget(&mut self) {
        self.from = None;
    }

    /// Count a retransmission.
    pub fn on_retransmission(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// Count a DSACK of a retransmitted segment.
    fn on_duplicate(&mut self, sequence: u64) {
        if self.from.is_some_and(|from| sequence >= from) {
            self.unreported = self.unreported.map(|count| count.saturating_sub(1));
        }
    }

    /// True if DSACKs reported all retransmissions.
    fn all_dsacked(&self) -> bool {
        self.from.is_some() && self.unreported == Some(0)
    }

    /// True if the echo shows that an ACK is for a segment sent before the first retransmission (Eifel).
    fn acked_original(&self, echo: Option<Time>) -> bool {
        let before = |first| echo.is_some_and(|echo| timestamp(echo) < timestamp(first));
        self.from.is_some() && self.first_retransmission.is_none_or(before)
    }
}

impl Sender {
    /// Save the window and threshold that a reduction is about to change.
    pub(super) fn save_prior_window(&mut self, reduces: bool) {
        if !self.tcp.undo_spurious && !self.tcp.frto {
            return;
        }
        let cwnd = self.controller.cwnd();
        let remembered = (cwnd / 2.0).floor() + (cwnd / 4.0).floor();
        let before = PriorWindow {
            cwnd,
            ssthresh: self.controller.ssthresh().max(remembered),
        };
        if !self.board.has_retransmission() {
            self.undo.first_retransmission = None;
        }
        let from = (self.tcp.undo_spurious && self.tcp.sack).then_some(self.board.unacknowledged);
        let retrans_out = self.board.retrans_out;
        self.undo
            .begin(from, reduces.then_some(before), retrans_out);
    }

    /// Process a DSACK. Duplicates made by the network prove nothing: there are no more
    /// duplicates than retransmissions.
    #[cold]
    pub(super) fn on_dsack(&mut self, sequence: u64, out: &mut impl Outlet) {
        if self.reordering.duplicates >= self.counters.retransmissions {
            return;
        }
        self.reordering.duplicates += 1;
        out.report(
            self.flow,
            EventKind::SpuriousRetransmission,
            sequence as f64,
        );
        if !self.is_probe(sequence) {
            self.reordering.on_duplicate();
        }
        if self.board.was_retransmitted(sequence) {
            self.undo.on_duplicate(sequence);
        }
    }

    /// End a recovery that is complete or spurious. Returns whether to detect losses now.
    pub(super) fn reconsider(
        &mut self,
        evidence: &Evidence,
        now: Time,
        out: &mut impl Outlet,
    ) -> bool {
        let over = self.episode.is_over(self.board.unacknowledged);
        match self.ca_state {
            CaState::Recovery if over => self.end_recovery(evidence, now, out),
            CaState::Recovery => return self.reconsider_recovery(evidence, out),
            CaState::Loss => self.reconsider_timeout(evidence, over, now, out),
            CaState::Open | CaState::Disorder if self.undo.all_dsacked() => {
                self.reordering.on_undo();
                self.undo_reduction(out);
            }
            _ => {}
        }
        true
    }

    /// End a recovery: all that was sent before it is acknowledged.
    pub(super) fn end_recovery(&mut self, evidence: &Evidence, now: Time, out: &mut impl Outlet) {
        if self.is_spurious(evidence) {
            self.undo_reduction(out);
        } else {
            self.reordering.on_recovery_end();
        }
        self.leave_recovery(now);
    }

    /// True if timestamps or DSACKs prove the recovery spurious.
    pub(super) fn is_spurious(&self, evidence: &Evidence) -> bool {
        self.undo.all_dsacked() || self.undo.acked_original(evidence.echo)
    }

    /// Process an ACK of a part of a recovery, or of nothing new. While retransmissions are in flight that would show
    /// the same, losses are not detected.
    fn reconsider_recovery(&mut self, evidence: &Evidence, out: &mut impl Outlet) -> bool {
        if evidence.advanced && self.undo.acked_original(evidence.echo) {
            self.note_reordering(Some(evidence.prior_unacknowledged));
            if self.board.retrans_out > 0 {
                return false;
            }
            self.board.clear_losses(false);
            self.reopen(out);
        } else if self.undo.all_dsacked() {
            self.reordering.on_undo();
            self.reopen(out);
        }
        true
    }

    /// Undo a reduction, and end its state.
    pub(super) fn reopen(&mut self, out: &mut impl Outlet) {
        self.undo_reduction(out);
        self.ca_state = CaState::Open;
        self.prr = None;
    }

    fn undo_reduction(&mut self, out: &mut impl Outlet) {
        self.undo.from = None;
        if let Some(before) = self.undo.before.take() {
            let cwnd = before.cwnd.max(f64::from(self.window));
            self.controller.undo(&PriorWindow { cwnd, ..before });
            self.window = floor_segments(self.controller.cwnd());
            self.cancel_cwr();
        }
        let first = self.board.unacknowledged;
        out.report(self.flow, EventKind::Undo, first as f64);
    }
}
