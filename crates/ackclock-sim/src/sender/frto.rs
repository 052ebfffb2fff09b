//! F-RTO: detection of spurious timeouts by the ACKs that follow (RFC 5682 section 3.1, with SACK).
//!
//! ```text
//!             timeout: the first segment is retransmitted
//!                │
//!                ▼            the ACK advances: new segments go out
//!              armed ──────────────────────────────────────────────▶ probing
//!                │                                                     │
//!                │ no new segment may be sent                          │ an original transmission is acknowledged:
//!                ▼                                                     │   the timeout was spurious, and is undone
//!               off: recovery as after any timeout ◀───────────────────┘ only new segments are acknowledged, or none:
//!                                                                          the timeout was genuine
//! ```
//!
//! As in Linux and unlike the RFC: an acknowledged or SACKed segment that was sent once is proof at any time, also
//! before new segments are sent; a repeated timeout rearms F-RTO, one in fast recovery does not; the response is that
//! of `undo.rs`, immediately.
//!
//! Deviation: off without SACK (RFC 5682 section 2 is for it).

use ackclock_core::Time;

use super::undo::Evidence;
use super::{CaState, Outlet, Sender};

/// State of F-RTO.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frto {
    /// True while F-RTO is armed.
    is_open: bool,
    /// New segments are sent before lost ones, at this ACK.
    pub prefers_new_data: bool,
}

impl Sender {
    /// Arm F-RTO after a timeout; `repeated`: it is not the first.
    pub(super) fn arm_frto(&mut self, repeated: bool) {
        let in_repair = matches!(self.ca_state, CaState::Recovery | CaState::Loss);
        self.frto = Frto {
            is_open: self.tcp.frto && self.tcp.sack && (repeated || !in_repair),
            prefers_new_data: false,
        };
    }

    /// Process an ACK in the recovery after a timeout.
    pub(super) fn reconsider_timeout(
        &mut self,
        evidence: &Evidence,
        over: bool,
        now: Time,
        out: &mut impl Outlet,
    ) {
        let needless = evidence.advanced && self.is_spurious(evidence);
        if needless || self.is_early(evidence) {
            self.board.clear_losses(true);
            self.frto = Frto::default();
            self.reopen(out);
            return;
        }
        self.send_new_data(evidence, over, now);
        if over {
            self.end_recovery(evidence, now, out);
        }
    }

    /// RFC 5682 section 3.1, step 3b.
    fn is_early(&self, evidence: &Evidence) -> bool {
        let of_episode = |sequence| sequence < self.episode.recover;
        self.frto.is_open && evidence.original.is_some_and(of_episode)
    }

    /// Steps 2 and 3a.
    fn send_new_data(&mut self, evidence: &Evidence, over: bool, now: Time) {
        if !self.frto.is_open {
            return;
        }
        if self.board.next > self.episode.recover {
            self.frto.is_open = !evidence.selective && !evidence.duplicate;
        } else if evidence.advanced && !over {
            self.frto.prefers_new_data = self.has_new(now);
            self.frto.is_open = self.frto.prefers_new_data;
        }
    }

    /// Conclude an ACK after which segments were sent: without a new one among them, F-RTO ends and the recovery goes
    /// on. Otherwise an application that this ACK wakes adds only new segments.
    pub(super) fn confirm_new_data(&mut self) -> bool {
        self.frto.is_open &= self.board.next > self.episode.recover;
        self.frto.prefers_new_data = self.frto.is_open;
        self.frto.is_open
    }
}
