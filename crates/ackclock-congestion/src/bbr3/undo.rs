//! The state before a loss, restored if the loss turns out spurious (draft-ietf-ccwg-bbr section 5.5.11).

use super::super::bbr::path::full_pipe::FullPipe;
use super::bounds::ShortTerm;
use super::{Bbr3, State};

/// The bounds before the last loss episode, and the state that the episode ended.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// `undo_state`: Startup or UP, if losses ended it.
    pub state: Option<State>,
    short_term: ShortTerm,
    long_term: f64,
}

impl Undo {
    /// The state before any loss.
    pub const NONE: Undo = Undo {
        state: None,
        short_term: ShortTerm::NONE,
        long_term: f64::INFINITY,
    };
}

impl Bbr3 {
    /// `SaveStateUponLoss`; the window is saved elsewhere.
    pub(super) fn save_state(&mut self) {
        self.undo = Undo {
            state: None,
            short_term: self.short_term,
            long_term: self.long_term.volume,
        };
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn restore_state(&mut self) {
        let undo = self.undo;
        self.cwnd = self.saved.restore(self.cwnd);
        self.was_in_loss = false;
        self.signals.lost = false;
        self.path.full = FullPipe::default();
        self.short_term.bandwidth = self.short_term.bandwidth.max(undo.short_term.bandwidth);
        self.short_term.volume = self.short_term.volume.max(undo.short_term.volume);
        self.long_term.volume = self.long_term.volume.max(undo.long_term);
        let is_dip = self.state == State::ProbeRtt;
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_reached = false;
                if !is_dip {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if self.state != State::Up && !is_dip => {
                self.refill(self.path.rounds.end());
            }
            _ => {}
        }
        self.undo.state = None;
    }
}
