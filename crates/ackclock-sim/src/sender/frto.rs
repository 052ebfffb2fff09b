//! F-RTO: whether a timeout came too early, from the ACKs behind it (RFC 5682 section 3.1, with SACK).
//!
//! ```text
//!             timeout: the first segment is sent again
//!                │
//!                ▼            the ACK advances: new segments go out
//!              armed ──────────────────────────────────────────────▶ asked
//!                │                                                     │
//!                │ no new segment may go                               │ what was sent once before the timeout arrives:
//!                ▼                                                     │   it was spurious, and is taken back
//!               off: repair as after any timeout ◀─────────────────────┘ new segments alone arrive, or nothing:
//!                                                                          it was none
//! ```
//!
//! As Linux, and other than the RFC: what was sent once and is acknowledged or SACKed is proof at each time, before new
//! segments went out too; a timeout that repeats another arms it again, one in fast recovery does not; the response is
//! that of `undoing.rs`, at once.
//!
//! Deviation: off without SACK (RFC 5682 section 2 is for it).

use ackclock_core::Time;

use super::undoing::Evidence;
use super::{Outlet, Phase, Sender};

/// Where the question stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frto {
    /// Whether the answer may still come.
    is_open: bool,
    /// New segments go before lost ones, at this ACK.
    pub asks: bool,
}

impl Sender {
    /// The timer has expired, as `repeated` says not for the first time.
    pub(super) fn arm_frto(&mut self, repeated: bool) {
        let in_repair = matches!(self.phase, Phase::Recovery | Phase::Loss);
        self.frto = Frto {
            is_open: self.tcp.frto && self.tcp.sack && (repeated || !in_repair),
            asks: false,
        };
    }

    /// An ACK while what a timeout took for lost is repaired.
    pub(super) fn reconsider_timeout(
        &mut self,
        evidence: &Evidence,
        over: bool,
        now: Time,
        out: &mut impl Outlet,
    ) {
        let needless = evidence.advanced && self.is_needless(evidence);
        if needless || self.is_early(evidence) {
            self.board.forget_losses(true);
            self.frto = Frto::default();
            self.reopen(out);
            return;
        }
        self.ask(evidence, over, now);
        if over {
            self.end_repair(evidence, now, out);
        }
    }

    /// RFC 5682 section 3.1, step 3b.
    fn is_early(&self, evidence: &Evidence) -> bool {
        let of_episode = |sequence| sequence < self.episode.end;
        self.frto.is_open && evidence.original.is_some_and(of_episode)
    }

    /// Steps 2 and 3a.
    fn ask(&mut self, evidence: &Evidence, over: bool, now: Time) {
        if !self.frto.is_open {
            return;
        }
        if self.board.next() > self.episode.end {
            self.frto.is_open = !evidence.selective && !evidence.duplicate;
        } else if evidence.advanced && !over {
            self.frto.asks = self.has_new(now);
            self.frto.is_open = self.frto.asks;
        }
    }

    /// What may be sent at this ACK has been: if no new segment was among it, nothing is asked, and the repair goes on.
    /// Else an application that this ACK wakes has only new segments to add.
    pub(super) fn has_asked(&mut self) -> bool {
        self.frto.is_open &= self.board.next() > self.episode.end;
        self.frto.asks = self.frto.is_open;
        self.frto.is_open
    }
}
